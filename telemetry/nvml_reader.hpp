// SPDX-License-Identifier: Apache-2.0
// NVIDIA's GPUs through NVML, answering the same requests as the reader of sysfs. A sleeping GPU is not asked, and
// where one may sleep the library is closed after each sample of it at rest: its open files would keep the GPU awake.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/clock.hpp"
#include "telemetry/frame.hpp"
#include "telemetry/nvml_session.hpp"
#include "telemetry/sampler.hpp"

namespace gpuhealth::telemetry {

class NvmlReader {
 public:
  // `library`: "libnvidia-ml.so.1", or a file.
  NvmlReader(std::string sysroot, std::string library, const Clock& clock, Progress* progress);

  // Appends the frames that answer `request` to `out`. A slow sample is followed by the GPU's clients.
  void answer(const Request& request, std::vector<std::uint8_t>& out);

 private:
  struct Slot {
    Reading reading;
    bool worked = false;
  };
  struct Gpu {
    PciAddress pci;
    std::map<ReadingId, Slot> slots;
    ThrottleSet throttle;
    bool throttle_known = false;
    std::string performance_level;
    SteadyTime hold_until;  // at rest, and may sleep: left alone until then
    bool asked = false;     // once at least
  };
  void discover(const Request& request, std::vector<std::uint8_t>& out);
  void identify(DeviceInfo& device);
  void sample(const Request& request, std::vector<std::uint8_t>& out);
  void sample_one(Gpu& gpu, bool slow, Sample& out);
  void ask(Gpu& gpu, bool slow);
  static void read_answers(const std::string& dir, Gpu& gpu);
  void rest(Gpu& gpu, const std::string& dir, SteadyTime now);
  ClientLook clients(const Gpu& gpu);
  Gpu& gpu_of(const PciAddress& address);
  void note(const PciAddress& gpu, std::string_view what) const;

  std::string sysroot_;
  const Clock& clock_;
  Progress* progress_;
  nvml::Session session_;
  std::map<PciAddress, Gpu> gpus_;
  std::map<PciAddress, DeviceInfo> known_;  // as they were when last awake
};

}  // namespace gpuhealth::telemetry
