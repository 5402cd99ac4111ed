// SPDX-License-Identifier: Apache-2.0
// What one evaluation costs: 1000 rules on 64 GPUs, all idle, and with a condition on every GPU. Budget: 5 ms.
#include <benchmark/benchmark.h>

#include <string>

#include "policy/evaluate.hpp"

namespace {

using namespace gpuhealth;
using namespace gpuhealth::policy;

PolicySet rules(int count) {
  std::string text =
      "apiVersion: gpuhealth/v1\nkind: Policy\nmetadata: {name: bench}\ntargets: {gfx: \"gfx1*\"}\nmode: "
      "enforce\nrules:\n";
  for (int i = 0; i < count; ++i) {
    const auto n = std::to_string(i);
    text += "- {name: r" + n + ", for: 5m, do: [notify], when: {all: [";
    text += i % 3 == 0   ? "{condition: overheating}, {not: {condition: clocks-stuck-low}}"
            : i % 3 == 1 ? "{reading: {name: temperature.junction, above: " + std::to_string(80 + i % 30) +
                               " C, clear: 70 C}}, {condition: thermal-throttling}"
                         : "{event: {type: gpu.reset.failed, count: 3, within: 1h}}, {advisory: any}";
    text += "]}}\n";
  }
  auto parsed = parse_policy("bench", text);
  PolicySet set;
  set.policies.push_back(std::move(*parsed.policy));
  return set;
}

Snapshot machine(std::size_t gpus, bool trouble) {
  Snapshot s;
  s.machine.boot_id = "b";
  for (std::size_t i = 0; i < gpus; ++i) {
    DeviceState d;
    d.id = "gpu" + std::to_string(i), d.vendor = "amd", d.gfx = "gfx1100", d.busy = false;
    for (std::size_t r = 0; r < kPlainReadingCount; ++r)
      d.readings.push_back({static_cast<ReadingId>(r), ReadingStatus::Valid, 0, 75});
    if (trouble) {
      Condition c;
      c.type = ConditionType::ThermalThrottling, c.state = ConditionState::Confirmed, c.id = "c" + d.id;
      d.conditions.push_back(std::move(c));
    }
    for (int e = 0; e < 16; ++e) s.events.push_back({{}, "gpu.reset.failed", d.id, std::nullopt});
    s.devices.push_back(std::move(d));
  }
  return s;
}

void BM_Evaluate(benchmark::State& state) {
  const auto set = rules(static_cast<int>(state.range(0)));
  const auto snapshot = machine(static_cast<std::size_t>(state.range(1)), state.range(2) != 0);
  Now now{WallTime(std::chrono::hours(500'000)), {1'000'000'000}};
  State memory;
  for (auto _ : state) {
    now.wall += std::chrono::seconds(2), now.steady = now.steady + std::chrono::seconds(2);
    auto out = evaluate(snapshot, set, std::move(memory), now);
    memory = std::move(out.state);
    benchmark::DoNotOptimize(out.decisions);
  }
}
BENCHMARK(BM_Evaluate)->Args({1000, 64, 0})->Args({1000, 64, 1})->Args({10, 1, 0})->Unit(benchmark::kMicrosecond);

}  // namespace

BENCHMARK_MAIN();
