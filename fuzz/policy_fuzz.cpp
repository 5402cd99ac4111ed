// SPDX-License-Identifier: Apache-2.0
// Any bytes as a policy: a policy that can be evaluated, or mistakes that can be shown. As a policy test: the same.
#include <algorithm>
#include <cstdint>
#include <string_view>

#include "fuzz/require.hpp"
#include "policy/evaluate.hpp"
#include "policy/scenario_file.hpp"

using namespace gpuhealth;
using namespace gpuhealth::policy;

namespace {

void check(const std::vector<yaml::Mistake>& mistakes) {
  require(mistakes.size() <= kMostMistakes + 1, "not too many mistakes");
  for (const auto& m : mistakes) {
    require(!m.text.empty() && m.at.line >= 0 && m.at.column >= 0, "a mistake has words and a place");
    for (const unsigned char c : yaml::line_of("f", m)) require(c >= ' ' && c != 0x7f, "it can be shown");
  }
}

Snapshot machine() {
  Snapshot s;
  s.machine.boot_id = "b";
  DeviceState d;
  d.id = "gpu0", d.vendor = "amd", d.gfx = "gfx1100", d.vram = 1e10, d.busy = false;
  for (const auto& r : all_readings()) d.readings.push_back({r.id, ReadingStatus::Valid, 0, 100});
  for (const auto& c : all_conditions()) {
    Condition one;
    one.type = c.type, one.state = ConditionState::Confirmed;
    d.conditions.push_back(one);
  }
  s.devices.push_back(std::move(d));
  return s;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  auto parsed = parse_policy("f", text);
  require(parsed.policy.has_value() == parsed.mistakes.empty(), "a policy or mistakes");
  check(parsed.mistakes);
  if (const auto tree = yaml::parse(text); tree.root) {
    Mistakes mistakes;
    (void)read_test(*tree.root, mistakes);
    check(mistakes.take());
  }
  if (!parsed.policy) return 0;
  require(!parsed.policy->name.empty() && !parsed.policy->rules.empty(), "what must be there is there");
  for (const auto& rule : parsed.policy->rules) require(!rule.name.empty() && !rule.actions.empty(), "a rule is whole");
  static const Snapshot snapshot = machine();
  PolicySet set;
  set.policies.push_back(std::move(*parsed.policy));
  Now now{WallTime(std::chrono::hours(400'000)), {1'000'000}};
  auto first = evaluate(snapshot, set, {}, now);
  require(load_state(save(first.state)).has_value(), "a state reads as it is written");
  now.wall += std::chrono::hours(1), now.steady = now.steady + std::chrono::hours(1);
  (void)evaluate(snapshot, set, std::move(first.state), now);
  return 0;
}
