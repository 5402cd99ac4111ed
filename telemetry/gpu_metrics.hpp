// SPDX-License-Identifier: Apache-2.0
// The gpu_metrics binary of amdgpu: every table of kgd_pp_interface.h, and the attribute streams of v1.9 and of
// partition v1.1. Little-endian, natural alignment; all ones in a field's width mean "not provided".
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gpuhealth::telemetry {

enum class MetricsStatus : std::uint8_t { Ok, Truncated, Longer, UnknownRevision, Invalid };
std::string_view to_string(MetricsStatus status);  // "ok", "truncated", "longer", "unknown-revision", "invalid"

// What the file is; only gpu_metrics files say their own revision, the other files share numbers with it.
enum class MetricsFile : std::uint8_t { GpuMetrics, GpuBoardTemperature, BaseboardTemperature, Partition };

struct MetricsField {
  std::string name;  // "temperature_edge"; "xcp_stats[0].gfx_busy_inst"
  bool array = false;
  bool is_signed = false;                     // raw is then two's complement
  std::vector<std::optional<double>> values;  // one for a scalar; null where the table holds the sentinel
  std::vector<std::uint64_t> raw;             // the same, exact (a u64 does not fit a double)
};

struct GpuMetrics {
  unsigned format = 0;
  unsigned content = 0;
  unsigned structure_size = 0;  // as the header states it
  MetricsStatus status = MetricsStatus::Invalid;
  std::string note;  // why the status is not Ok, and what was skipped; empty when there is nothing to say
  std::vector<MetricsField> fields;

  [[nodiscard]] const MetricsField* find(std::string_view name) const;
  // Element `index` of a field, null when the field is absent or the element is the sentinel.
  [[nodiscard]] std::optional<double> value(std::string_view name, std::size_t index = 0) const;
};

// Never fails: what cannot be decoded is absent and the status says why. Values are the table's own units
// (centi-degrees on APUs; see metrics_units.hpp). A header that states another size than its revision has is Truncated
// or Longer.
GpuMetrics decode_gpu_metrics(std::span<const std::uint8_t> bytes, MetricsFile file = MetricsFile::GpuMetrics);

// The few fields that a sample needs, without allocating: looked up by number in the layout of the revision at hand.
enum class MetricsKey : std::uint8_t {
  ThrottleStatus,       // ASIC bits
  IndepThrottleStatus,  // ASIC-independent bits
  TemperatureEdge,
  TemperatureHotspot,
  TemperatureMem,
  TemperatureVrGfx,
  TemperatureVrSoc,
  TemperatureVrMem,
  TemperatureGfx,
  TemperatureSoc,
  TemperatureSkin,  // APUs; centi-degrees
  CurrentGfxclk,
  CurrentSocclk,
  CurrentUclk,
  CurrentFclk,
  AverageGfxclk,
  AverageSocclk,
  AverageUclk,
  AverageFclk,
  AverageGfxActivity,
  AverageUmcActivity,
  AverageMmActivity,
  AverageSocketPower,
  CurrSocketPower,
  CurrentFanSpeed,
  FanPwm,
  VoltageSoc,
  VoltageGfx,
  VoltageMem,
  PcieLinkWidth,
  PcieLinkSpeed,
  PcieReplayCountAcc,
  AccumulationCounter,
  ProchotResidencyAcc,
  PptResidencyAcc,
  SocketThmResidencyAcc,
  VrThmResidencyAcc,
  HbmThmResidencyAcc,
  ThrottleResidencyProchot,
  ThrottleResidencySpl,
  ThrottleResidencyFppt,
  ThrottleResidencySppt,
  ThrottleResidencyThmCore,
  ThrottleResidencyThmGfx,
  ThrottleResidencyThmSoc,
  Count,
};

struct Layout;

// A view of one table; valid while the bytes are. Cheap: no allocation, constant time a key for fixed layouts.
class MetricsView {
 public:
  explicit MetricsView(std::span<const std::uint8_t> bytes);
  [[nodiscard]] unsigned format() const { return format_; }
  [[nodiscard]] unsigned content() const { return content_; }
  [[nodiscard]] MetricsStatus status() const { return status_; }
  // The raw value (an array's first), null when absent, cut off, or the sentinel. Units are the layout's:
  // metrics_units.hpp.
  [[nodiscard]] std::optional<std::uint64_t> raw(MetricsKey key) const;

 private:
  std::span<const std::uint8_t> bytes_;
  unsigned format_ = 0;
  unsigned content_ = 0;
  MetricsStatus status_ = MetricsStatus::Invalid;
  const Layout* layout_ = nullptr;
  bool stream_ = false;
};

}  // namespace gpuhealth::telemetry
