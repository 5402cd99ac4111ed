// SPDX-License-Identifier: Apache-2.0
// A program that was to compute on the GPU computes on the processors (project-nomad 1344): it has the runtime, keeps
// the processors busy, and has never used the GPU.
#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "health/detector.hpp"
#include "health/detectors/all.hpp"
#include "health/facts.hpp"

namespace gpuhealth::health {
namespace {

using R = ReadingId;
constexpr double kMib = 1024.0 * 1024.0;
constexpr double kEngineUsed = 1;       // percent of time
constexpr double kLeastCpu = 200;       // two processors, on small machines
constexpr double kBusyWithQueues = 20;  // the GPU works, and it has queues: the work may be its own

class JobFellBack final : public Detector {
 public:
  Verdict judge(const Look& look) override {
    // A GPU that sleeps is unused.
    const auto busy =
        look.sample.power == PowerState::Suspended ? std::optional<double>(0) : number(look.sample, R::UtilizationGfx);
    if (look.clients == nullptr || !busy) return Verdict::unknown();
    const auto& t = look.thresholds;
    if (look.clients->time != last_look_) found_ = search(*look.clients, *busy, t);
    if (look.sample.time.steady - look.clients->time > seconds(t.sample_gap_s)) return Verdict::unknown();
    if (*busy > t.job_fell_back_idle || !found_) return Verdict::good();
    return bad(*found_, *busy, look.clients->processors);
  }

 private:
  using Key = std::pair<std::uint32_t, std::uint64_t>;

  std::optional<GpuClient> search(const ClientLook& now, double busy, const Thresholds& t) {
    std::map<Key, bool> used;
    std::optional<GpuClient> found;
    const double enough = std::max(kLeastCpu, now.processors * t.job_fell_back_cpu);
    for (const auto& client : now.clients) {
      const Key key{client.pid, client.started};
      const auto before = used_.find(key);
      const bool uses = (before != used_.end() && before->second) || client.engine_percent.value_or(0) > kEngineUsed ||
                        static_cast<double>(client.vram_bytes.value_or(0)) > t.job_fell_back_memory_mib * kMib ||
                        (client.queues && busy >= kBusyWithQueues);
      used[key] = uses;
      if (!uses && client.library && client.cpu_percent.value_or(0) >= enough) found = client;
    }
    used_ = std::move(used);
    last_look_ = now.time;
    return found;
  }

  static Verdict bad(const GpuClient& client, double busy, unsigned processors) {
    Verdict verdict;
    verdict.kind = Verdict::Kind::Bad;
    verdict.severity = Severity::Info;
    const auto who = "pid " + std::to_string(client.pid);
    const auto spent = text_of(client.cpu_percent.value_or(0) / 100);
    verdict.detail = "The program with " + who + " has a GPU runtime loaded, keeps " + spent + " of " +
                     std::to_string(processors) + " processors busy, and has not used the GPU.";
    verdict.evidence = {{"process", who},
                        {"processors kept busy", spent + " of " + std::to_string(processors)},
                        {"has the GPU open", client.open ? "yes" : "no"},
                        evidence_of(R::UtilizationGfx, busy)};
    return verdict;
  }

  SteadyTime last_look_;
  std::map<Key, bool> used_;  // who has used the GPU since it was first seen
  std::optional<GpuClient> found_;
};

}  // namespace

std::unique_ptr<Detector> make_job_fell_back() {
  return std::make_unique<JobFellBack>();
}

}  // namespace gpuhealth::health
