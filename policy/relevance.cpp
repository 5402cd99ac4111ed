// SPDX-License-Identifier: Apache-2.0
// Whether there is anything to evaluate: on a healthy machine there is not, and then nothing is computed.
#include <algorithm>
#include <set>

#include "policy/keys.hpp"
#include "policy/match.hpp"

namespace gpuhealth::policy {
namespace {

struct Present {
  std::uint64_t confirmed = 0;  // a bit a condition type
  std::set<int> events;         // types
  bool canaries = false;
  bool advisories = false;
};

Present look(const Snapshot& snapshot) {
  Present out;
  for (const DeviceState& device : snapshot.devices) {
    out.canaries = out.canaries || !device.canaries.empty();
    for (const Condition& c : device.conditions)
      if (c.state == ConditionState::Confirmed) out.confirmed |= 1ULL << static_cast<unsigned>(c.type);
  }
  for (const PastEvent& event : snapshot.events) out.events.insert(event_type_index(event.type));
  out.advisories = !snapshot.advisories.empty();
  return out;
}

// Never no for what holds.
bool could_hold(const When& when, const Present& present) {
  if (const auto* c = std::get_if<ConditionMatch>(&when.what))
    return (present.confirmed >> static_cast<unsigned>(c->type) & 1U) != 0;
  if (const auto* e = std::get_if<EventMatch>(&when.what)) return present.events.contains(e->type);
  if (std::holds_alternative<CanaryMatch>(when.what)) return present.canaries;
  if (std::holds_alternative<AdvisoryMatch>(when.what)) return present.advisories;
  const auto* group = std::get_if<Group>(&when.what);
  if (group == nullptr || group->kind == Group::Kind::Not) return true;
  const auto could = [&](const When& part) { return could_hold(part, present); };
  return group->kind == Group::Kind::All ? std::ranges::all_of(group->parts, could)
                                         : std::ranges::any_of(group->parts, could);
}

Duration window_of(const When& when) {
  if (const auto* e = std::get_if<EventMatch>(&when.what)) return e->within;
  Duration out{};
  if (const auto* group = std::get_if<Group>(&when.what))
    for (const When& part : group->parts) out = std::max(out, window_of(part));
  return out;
}

}  // namespace

bool may_matter(const Snapshot& snapshot, const PolicySet& set, const State& state) {
  // Another boot, and what is in place: both have to be brought to an end.
  if (!state.holds.empty() || (state.last && state.boot_id != snapshot.machine.boot_id)) return true;
  const bool counting = std::ranges::any_of(
      state.cells, [](const State::Cell& c) { return c.active || c.held_us > 0 || c.last > 0 || c.memory != 0; });
  if (counting) return true;
  const Present present = look(snapshot);
  return std::ranges::any_of(set.policies, [&](const Policy& policy) {
    return machine_matches(policy.targets, snapshot.machine) &&
           std::ranges::any_of(policy.rules, [&](const Rule& rule) { return could_hold(rule.when, present); });
  });
}

Duration longest_window(const PolicySet& set) {
  Duration out{};
  for (const Policy& policy : set.policies)
    for (const Rule& rule : policy.rules) {
      out = std::max(out, window_of(rule.when));
      if (rule.revert_when) out = std::max(out, window_of(*rule.revert_when));
    }
  return out;
}

void forget_hold(State& state, const ActionRequest& request) {
  const std::string key = request.policy + "/" + request.rule;
  std::erase_if(state.holds, [&](const State::Hold& hold) {
    return hold.rule == key && hold.request.kind == request.kind && hold.request.device == request.device;
  });
}

bool is_active(const State& state, const std::string& rule, const std::string& device) {
  const auto r = std::ranges::find(state.rules, rule);
  const auto d = std::ranges::find(state.devices, device);
  if (r == state.rules.end() || d == state.devices.end()) return false;
  const auto at = static_cast<std::size_t>(r - state.rules.begin()) * state.devices.size() +
                  static_cast<std::size_t>(d - state.devices.begin());
  return at < state.cells.size() && state.cells[at].active;
}

}  // namespace gpuhealth::policy
