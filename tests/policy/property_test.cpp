// SPDX-License-Identifier: Apache-2.0
// Whatever comes in whatever order: no budget is exceeded, the breaker holds, one thing has one owner, and what is done
// is undone at most once. Random walks with fixed seeds; the counting here is the test's own.
#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "bench.hpp"

namespace gpuhealth::policy {
namespace {

using namespace test;

const std::string kRules =
    "  - {name: cap, when: {condition: overheating}, for: 30s, cooldown: 1m, budget: {count: 3, within: 1h}, do: "
    "[{power-cap: {percent: 80}}, notify],\n"
    "     revert_when: {reading: {name: temperature.junction, below: 75 C}, for: 1m}}\n"
    "  - {name: cap-more, when: {any: [{condition: thermal-throttling}, {reading: {name: temperature.junction, above: "
    "100 C, clear: 90 C}}]}, cooldown: 0s,\n"
    "     budget: {count: 2, within: 30m}, do: [{power-cap: {percent: 60}}, {clock-cap: {mhz: 1500}}]}\n"
    "  - {name: reset, when: {condition: gpu-hang}, cooldown: 0s, budget: {count: 2, within: 2h}, unless: {busy: "
    "true}, do: [gpu-reset]}\n"
    "  - {name: leave, when: {condition: device-lost}, cooldown: 0s, do: [drain]}\n";
const std::string kTop = "mode: enforce\nlimits: {actions: {count: 9, within: 3h}, breaker: {count: 5, within: 5m}}\n";

class Auditor {
 public:
  void see(const Decision& d, Duration at) {
    if (d.outcome == Outcome::Act) act(d, at);
    if (d.outcome != Outcome::Revert) return;
    for (const auto& a : d.actions) {
      EXPECT_EQ(in_place_.erase({d.rule, a.device, to_string(a.kind)}), 1U) << "reverted and not done";
    }
  }

 private:
  void act(const Decision& d, Duration at) {
    fired_[d.rule].push_back(at);
    check(d.rule, "cap", 3, 1h, at), check(d.rule, "cap-more", 2, 30min, at), check(d.rule, "reset", 2, 2h, at);
    for (const auto& a : d.actions) {
      if (!changes_something(a.kind)) continue;
      changes_.push_back(at);
      if (info(a.kind).risk == ActionRisk::Reversible) in_place_.insert({d.rule, a.device, to_string(a.kind)});
    }
    EXPECT_LE(std::ranges::count_if(changes_, [&](Duration t) { return at - t < 3h; }), 9);
    EXPECT_LE(std::ranges::count_if(changes_, [&](Duration t) { return at - t < 5min; }), 5);
  }
  void check(const std::string& rule, const std::string& name, int count, Duration window, Duration at) {
    if (rule != name) return;
    EXPECT_LE(std::ranges::count_if(fired_[rule], [&](Duration t) { return at - t < window; }), count) << rule;
  }
  std::map<std::string, std::vector<Duration>> fired_;
  std::vector<Duration> changes_;
  std::set<std::tuple<std::string, std::string, std::string_view>> in_place_;
};

void walk(unsigned seed) {
  std::mt19937 random(seed);
  const auto one_of = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  Machine m({policy_of(kRules, kTop)}, 3);
  Auditor auditor;
  int boot = 1;
  const WallTime start = m.now.wall;
  for (int step = 0; step < 3000; ++step) {
    const auto gpu = static_cast<std::size_t>(one_of(3));
    switch (one_of(9)) {
      case 0:
      case 1: {
        constexpr std::array types = {ConditionType::Overheating, ConditionType::ThermalThrottling,
                                      ConditionType::GpuHang, ConditionType::DeviceLost};
        m.confirm(types.at(static_cast<std::size_t>(one_of(4))), gpu);
        break;
      }
      case 2:
      case 3:
        m.clear(gpu);
        break;
      case 4:
        m.read(ReadingId::TemperatureJunction, 60 + one_of(60), gpu);
        break;
      case 5:
        m.snapshot.devices[gpu].busy = one_of(2) == 0;
        break;
      case 6:
        m.snapshot.devices[gpu].asleep = one_of(4) == 0;
        break;
      case 7:
        if (one_of(20) == 0) m.state = load_state(save(m.state)).value();
        break;
      default:
        if (one_of(200) == 0) m.snapshot.machine.boot_id = "boot-" + std::to_string(++boot), m.now.steady = {0};
        if (one_of(100) == 0) reset_breaker(m.state);
    }
    m.wait(std::chrono::seconds(one_of(40)));
    if (m.snapshot.events.size() > 200)
      m.snapshot.events.erase(m.snapshot.events.begin(), m.snapshot.events.begin() + 100);
    for (const auto& d : m.look()) auditor.see(d, m.now.wall - start);
    // One owner a GPU and resource.
    std::set<std::pair<std::string, std::string_view>> owned;
    for (const auto& hold : m.state.holds)
      EXPECT_TRUE(owned.insert({hold.request.device, resource_of(hold.request.kind)}).second);
  }
}

TEST(EvaluateProperty, NoOrderOfThingsExceedsABudgetOrUndoesTwice) {
  for (unsigned seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(seed);
    walk(seed);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(EvaluateProperty, SixtyFourGpusAtOnceShareOneBudget) {
  Machine m({policy_of(kRules, kTop)}, 64);
  for (std::size_t i = 0; i < 64; ++i) m.confirm(ConditionType::GpuHang, i);
  std::size_t acts = 0, blocked = 0;
  for (const auto& d : m.look()) (d.outcome == Outcome::Act ? acts : blocked) += 1;
  EXPECT_EQ(acts, 2U);
  EXPECT_EQ(blocked, 62U);
}

}  // namespace
}  // namespace gpuhealth::policy
