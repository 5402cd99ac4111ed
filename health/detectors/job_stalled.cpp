// SPDX-License-Identifier: Apache-2.0
// The copy stall of some kernels (drm/amd, amdgpu_hmm_range_get_pages) as it looks from outside: a program holds video
// memory, a thread of it spins in the kernel, nothing flows and the GPU is idle.
#include <algorithm>
#include <optional>

#include "health/detector.hpp"
#include "health/detectors/all.hpp"
#include "health/facts.hpp"

namespace gpuhealth::health {
namespace {

using R = ReadingId;
constexpr double kMib = 1024.0 * 1024.0;
constexpr double kEngineIdle = 1;  // percent of time

class JobStalled final : public Detector {
 public:
  Verdict judge(const Look& look) override {
    const auto busy = number(look.sample, R::UtilizationGfx);
    if (look.clients == nullptr || !busy) return Verdict::unknown();
    const auto& t = look.thresholds;
    // Samples come more often than looks at the processes; what those found holds until the next.
    if (look.clients->time != last_look_) found_ = search(*look.clients, t);
    if (look.sample.time.steady - look.clients->time > seconds(t.sample_gap_s)) return Verdict::unknown();
    if (*busy > t.job_stalled_idle || !found_) return Verdict::good();
    return bad(*found_, *busy);
  }

 private:
  std::optional<GpuClient> search(const ClientLook& now, const Thresholds& t) {
    std::optional<GpuClient> found;
    for (const auto& client : now.clients) {
      const auto before = std::ranges::find_if(
          last_clients_, [&](const GpuClient& c) { return c.pid == client.pid && c.started == client.started; });
      if (before != last_clients_.end() && stalls(*before, client, now.time - last_look_, t)) found = client;
    }
    last_look_ = now.time;
    last_clients_ = now.clients;
    return found;
  }

  static bool stalls(const GpuClient& before, const GpuClient& now, Duration between, const Thresholds& t) {
    const auto known = [](const std::optional<double>& value, double at_most) { return value && *value <= at_most; };
    const double flow = t.job_stalled_flow_mib * kMib;
    const double seconds = static_cast<double>(between.count()) / 1e6;
    if (!before.vram_bytes || !now.vram_bytes || seconds <= 0) return false;
    const double held = static_cast<double>(*now.vram_bytes);
    const double filled = (held - static_cast<double>(*before.vram_bytes)) / seconds;
    return held >= t.job_stalled_memory_mib * kMib && filled <= flow && -filled <= flow &&
           known(now.engine_percent, kEngineIdle) && known(now.read_bytes_per_s, flow) &&
           now.thread_system_percent.value_or(0) >= t.job_stalled_system &&
           known(now.thread_user_percent, t.job_stalled_user);
  }

  static Verdict bad(const GpuClient& client, double busy) {
    Verdict verdict;
    verdict.kind = Verdict::Kind::Bad;
    const auto who = "pid " + std::to_string(client.pid);
    const auto memory = text_of(static_cast<double>(client.vram_bytes.value_or(0)), Unit::Byte);
    const auto system = text_of(client.thread_system_percent.value_or(0), Unit::Percent);
    verdict.detail = "The program with " + who + " holds " + memory + " of video memory; one of its threads spends " +
                     system + " of its time in the kernel, nothing is read or copied, and the GPU is idle.";
    verdict.evidence = {{"process", who},
                        {"video memory held", memory},
                        {"thread's time in the kernel", system},
                        evidence_of(R::UtilizationGfx, busy)};
    return verdict;
  }

  SteadyTime last_look_;
  std::vector<GpuClient> last_clients_;
  std::optional<GpuClient> found_;
};

}  // namespace

std::unique_ptr<Detector> make_job_stalled() {
  return std::make_unique<JobStalled>();
}

}  // namespace gpuhealth::health
