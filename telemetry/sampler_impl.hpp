// SPDX-License-Identifier: Apache-2.0
// The state of a sampler. Included by sampler.cpp alone.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "telemetry/intel.hpp"
#include "telemetry/metrics_readings.hpp"
#include "telemetry/pcie_link.hpp"
#include "telemetry/sampler.hpp"
#include "telemetry/source_table.hpp"
#include "telemetry/source_text.hpp"
#include "telemetry/sysfs.hpp"
#include "telemetry/throttle_map.hpp"

namespace gpuhealth::telemetry {
namespace sampling {

// A sysfs attribute is at most a page; gpu_metrics must be read in one go (amdgpu reference 1.3).
inline constexpr std::size_t kPage = 4096;
inline constexpr std::uint16_t kNoSlot = 0xffff;

struct Slot {
  Reading reading;
  bool worked = false;     // it has been valid since this driver was bound
  bool from_file = false;  // a file of its own says it
  bool wakes = true;       // that file must not be read while the GPU sleeps
};

struct Source {
  const SourceRow* row = nullptr;  // null for a RAS block
  Fd fd;
  std::vector<Fd> other_ports;  // of an Aer row
  std::string shown;            // relative to the device's folder
  std::array<std::uint16_t, 3> slots{kNoSlot, kNoSlot, kNoSlot};
  SourceTier tier = SourceTier::Fast;
  bool wakes = true;
  std::string last_text;  // what it said last time, which most files say again
  std::optional<std::array<std::optional<double>, 3>> last_values;
  std::optional<std::pair<double, SteadyTime>> last_energy;  // joules
};

}  // namespace sampling

struct Sampler::Impl {
  using Slot = sampling::Slot;
  using Source = sampling::Source;

  std::string dir;
  DeviceInfo device;
  std::string device_key;
  Progress* progress = nullptr;
  std::uint64_t packed = 0;
  PcieChain chain;
  std::optional<IntelFiles> intel;
  std::string render_node;  // of this machine; empty for a tree

  Fd runtime_status;
  Fd control;  // power/control: "auto" lets the kernel suspend the GPU
  Fd metrics_file;
  Fd level_file;
  Fd profile_file;
  Fd ras_events_file;
  std::optional<std::uint64_t> ras_sequence;  // of the last look at it
  std::vector<Source> sources;
  std::vector<Slot> slots;  // in the order of all_readings(), which is that of their numbers
  ResidencyShares residency;
  std::array<char, sampling::kPage> buffer{};
  std::string long_text;
  std::array<std::uint8_t, sampling::kPage> metrics_buffer{};
  std::size_t metrics_size = 0;
  int metrics_errno = 0;

  std::uint32_t slow_samples = 0;
  bool gone = false;
  bool link_maxima_known = false;
  PowerState power = PowerState::Unknown;
  int power_errno = 0;
  std::string level;
  std::string profile;
  ThrottleOutput throttle;

  bool reading_keeps_awake = true;
  bool gfxclk_stuck = false;  // the table's graphics clock is not the clock (quirk GfxclkStuck1200)
  Duration autosuspend{};     // zero where the kernel never suspends this GPU
  SteadyTime hold_until{};
  SteadyTime time;  // of this sample

  Impl(const std::string& sysroot, const DeviceInfo& info, Progress* where);

  void note(std::string_view file) const {
    if (progress != nullptr) progress->at(packed, file);
  }
  AttributeRead read(const Fd& fd, std::string_view file, std::span<char> into);
  Slot& slot(ReadingId id) { return slots[index_of(id)]; }
  static std::uint16_t index_of(ReadingId id);

  void open_source(const SourceRow& row, const std::string& hwmon);
  void open_ras();
  void claim(Source& source, std::size_t i, ReadingId id, const Result<Fd>& opened);

  [[nodiscard]] PowerState read_power();
  [[nodiscard]] bool held(SteadyTime now) const;
  void hold_if_idle(SteadyTime now);
  [[nodiscard]] bool ras_is_due(bool rare);
  std::string_view all_pages(const Source& source, std::string_view first);
  void read_sources(bool slow, bool awake);
  void read_source(Source& source);
  [[nodiscard]] bool spared(const Source& source, const std::optional<MetricsView>& view);
  static std::optional<Values> parsed(Source& source, std::string_view text);
  [[nodiscard]] std::optional<double> power_of(Source& source, double joules) const;
  void read_intel(bool rare);
  void find_render_node();
  void ask_render_node();
  void set_value(Slot& s, const SourceRow* row, std::optional<double> value);
  void set_failed(Slot& s, int sys_errno);
  void add_other_ports(const Source& source, Values& values);
  void read_metrics();
  void apply_metrics();
  void decode_reasons(const MetricsView& view);
  void read_words();
  void read_link_maxima();
  void cross_check();
  void put_aside();
  void fill(Sample& out) const;
};

}  // namespace gpuhealth::telemetry
