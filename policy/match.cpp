// SPDX-License-Identifier: Apache-2.0
#include "policy/match.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "health/cause.hpp"
#include "policy/keys.hpp"

namespace gpuhealth::policy {
namespace {

Tri tri(bool value) {
  return value ? Tri::Yes : Tri::No;
}

bool matches_cause(const Condition& condition, const std::string& cause) {
  const std::string stated = cause_of(condition);
  if (stated == cause) return true;
  // Evidence is for people: it has the cause's text.
  return std::ranges::any_of(health::all_causes(),
                             [&](const health::CauseInfo& row) { return row.name == cause && row.text == stated; });
}

Tri condition_holds(const ConditionMatch& match, const MatchContext& context, bool negated) {
  const std::uint64_t bit = 1ULL << static_cast<unsigned>(match.type);
  if ((context.device.confirmed & bit) == 0) return Tri::No;
  // Somebody knows: nothing new is begun, what has begun goes on.
  if ((context.device.acknowledged & bit) != 0 && !context.active && !negated) return Tri::No;
  if (match.at_least == Severity::Info && match.cause.empty()) return Tri::Yes;
  return tri(find_condition(match, *context.device.device) != nullptr);
}

// Nothing where the reading is not there.
std::optional<bool> reading_on(const ReadingMatch& match, const MatchContext& context) {
  const double value = context.device.values.at(static_cast<std::size_t>(match.id));
  if (std::isnan(value)) return std::nullopt;
  const bool inside = (!match.above || value > *match.above) && (!match.at_least || value >= *match.at_least) &&
                      (!match.below || value < *match.below) && (!match.at_most || value <= *match.at_most);
  if (inside || !match.clear) return inside;
  const bool upwards = match.above || match.at_least;
  const bool well = upwards ? value <= *match.clear : value >= *match.clear;
  return (context.memory >> match.memory & 1U) != 0 && !well;
}

Tri reading_holds(const ReadingMatch& match, MatchContext& context) {
  const auto on = reading_on(match, context);
  if (!on) return Tri::Unknown;
  const auto bit = static_cast<std::uint16_t>(1U << match.memory);
  if (match.clear) context.memory = static_cast<std::uint16_t>(*on ? context.memory | bit : context.memory & ~bit);
  return tri(*on);
}

bool is(const CanaryMatch& match, const CanaryFact& fact) {
  if (!match.name.empty() && fact.canary != match.name) return false;
  if (match.finding && fact.finding != *match.finding) return false;
  return !match.slower_than || (fact.ratio && *fact.ratio > *match.slower_than);
}

std::uint32_t count_events(const EventMatch& match, const MatchContext& context) {
  const std::int64_t now = to_microseconds(context.now.wall);
  std::int64_t since = now - match.within.count();
  if (!match.after.empty()) {
    const auto last = (*context.last_firing)(match.after);
    if (!last) return 0;
    since = std::max(since, *last);
  }
  std::uint32_t count = 0;
  for (const auto& event : context.device.events) {
    if (event.type != match.type || event.time_us <= since || event.time_us > now) continue;
    if (match.condition && event.condition != static_cast<int>(*match.condition)) continue;
    ++count;
  }
  return count;
}

bool advisory_applies(const AdvisoryMatch& match, const Snapshot& snapshot) {
  if (match.id.empty()) return !snapshot.advisories.empty();
  return std::ranges::find(snapshot.advisories, match.id) != snapshot.advisories.end();
}

Tri group_holds(const Group& group, MatchContext& context, bool negated) {
  if (group.kind == Group::Kind::Not) {
    const Tri inner = holds(group.parts.front(), context, !negated);
    return static_cast<Tri>(-static_cast<int>(inner));
  }
  // Every part is looked at: readings with hysteresis remember.
  Tri out = group.kind == Group::Kind::All ? Tri::Yes : Tri::No;
  for (const When& part : group.parts) {
    const Tri one = holds(part, context, negated);
    out = group.kind == Group::Kind::All ? std::min(out, one) : std::max(out, one);
  }
  return out;
}

std::string bound_of(const ReadingMatch& match) {
  std::string out;
  const auto add = [&](const char* word, const std::optional<double>& bound) {
    if (bound) out += fmt::format("{}{} {}", out.empty() ? "" : " and ", word, text_of(*bound, match.unit));
  };
  add("above", match.above);
  add("at least", match.at_least);
  add("below", match.below);
  add("at most", match.at_most);
  return out;
}

void explain_reading(const ReadingMatch& match, const MatchContext& context, Why& why, bool negated) {
  const auto on = reading_on(match, context);
  const ReadingInfo* info = find_reading(match.id);
  if (info == nullptr || !on || *on == negated) return;
  const double value = context.device.values.at(static_cast<std::size_t>(match.id));
  why.parts.push_back(
      fmt::format("{} is {} ({}{})", info->name, text_of(value, match.unit), negated ? "not " : "", bound_of(match)));
}

void explain_event(const EventMatch& match, const MatchContext& context, Why& why) {
  const auto name = all_event_types()[static_cast<std::size_t>(match.type)].name;
  const auto count = count_events(match, context);
  why.parts.push_back(fmt::format("{}{}{} {} within {}{}{}", name, match.condition ? " of " : "",
                                  match.condition ? info(*match.condition).name : "",
                                  count == 1 ? std::string("once") : fmt::format("{} times", count),
                                  text_of(match.within), match.after.empty() ? "" : " after rule ", match.after));
}

void explain_condition(const ConditionMatch& match, const MatchContext& context, Why& why, bool negated) {
  const Condition* found = find_condition(match, *context.device.device);
  if (negated) {
    if (found == nullptr) why.parts.push_back(fmt::format("no {}", info(match.type).name));
    return;
  }
  if (found == nullptr) return;
  if (why.condition == nullptr) why.condition = found;
  const auto cause = cause_of(*found);
  why.parts.push_back(fmt::format("{}{}{}{}{}", info(match.type).name, found->detail.empty() ? "" : ": ", found->detail,
                                  cause.empty() ? "" : "; cause: ", cause));
}

void explain_canary(const CanaryMatch& match, const MatchContext& context, Why& why) {
  for (const CanaryFact& fact : context.device.device->canaries) {
    if (!is(match, fact)) continue;
    why.parts.push_back(fmt::format("canary {}: {}{}", fact.canary, to_string(fact.finding),
                                    fact.ratio ? fmt::format(", {:.3g} times slower", *fact.ratio) : ""));
    return;
  }
}

}  // namespace

std::string cause_of(const Condition& condition) {
  const auto at = std::ranges::find(condition.evidence, "cause", &Evidence::name);
  return at == condition.evidence.end() ? "" : at->value;
}

const Condition* find_condition(const ConditionMatch& match, const DeviceState& device) {
  for (const Condition& c : device.conditions) {
    if (c.type != match.type || c.state != ConditionState::Confirmed || c.severity < match.at_least) continue;
    if (match.cause.empty() || matches_cause(c, match.cause)) return &c;
  }
  return nullptr;
}

std::vector<IndexedDevice> index_devices(const Snapshot& snapshot) {
  std::vector<IndexedDevice> out(snapshot.devices.size());
  std::unordered_map<std::string_view, IndexedDevice*> by_id;
  for (std::size_t i = 0; i < out.size(); ++i) {
    IndexedDevice& d = out[i];
    d.device = &snapshot.devices[i];
    by_id.emplace(d.device->id, &d);
    for (const Condition& c : d.device->conditions) {
      if (c.state != ConditionState::Confirmed) continue;
      const std::uint64_t bit = 1ULL << static_cast<unsigned>(c.type);
      d.confirmed |= bit;
      if (c.acknowledged) d.acknowledged |= bit;
    }
    d.values.fill(std::numeric_limits<double>::quiet_NaN());
    for (const Reading& r : d.device->readings) {
      const auto id = static_cast<std::size_t>(r.id);
      if (id < d.values.size() && r.status == ReadingStatus::Valid) d.values.at(id) = r.value;
    }
  }
  for (const PastEvent& event : snapshot.events) {
    IndexedDevice* device = nullptr;
    if (const auto it = by_id.find(event.device); it != by_id.end()) device = it->second;
    if (event.device.empty() && out.size() == 1) device = &out.front();
    const int type = event_type_index(event.type);
    if (device == nullptr || type < 0) continue;
    device->events.push_back(
        {to_microseconds(event.time), type, event.condition ? static_cast<int>(*event.condition) : -1});
  }
  return out;
}

Tri holds(const When& when, MatchContext& context, bool negated) {
  if (const auto* c = std::get_if<ConditionMatch>(&when.what)) return condition_holds(*c, context, negated);
  if (const auto* r = std::get_if<ReadingMatch>(&when.what)) return reading_holds(*r, context);
  if (const auto* g = std::get_if<Group>(&when.what)) return group_holds(*g, context, negated);
  if (const auto* e = std::get_if<EventMatch>(&when.what)) return tri(count_events(*e, context) >= e->count);
  if (const auto* a = std::get_if<AdvisoryMatch>(&when.what)) return tri(advisory_applies(*a, context.snapshot));
  const auto& match = std::get<CanaryMatch>(when.what);
  return tri(
      std::ranges::any_of(context.device.device->canaries, [&](const CanaryFact& fact) { return is(match, fact); }));
}

void explain(const When& when, const MatchContext& context, Why& why, bool negated) {
  if (const auto* c = std::get_if<ConditionMatch>(&when.what)) explain_condition(*c, context, why, negated);
  if (const auto* r = std::get_if<ReadingMatch>(&when.what)) explain_reading(*r, context, why, negated);
  if (const auto* c = std::get_if<CanaryMatch>(&when.what); c != nullptr && !negated) explain_canary(*c, context, why);
  if (const auto* e = std::get_if<EventMatch>(&when.what);
      e != nullptr && !negated && count_events(*e, context) >= e->count)
    explain_event(*e, context, why);
  if (const auto* a = std::get_if<AdvisoryMatch>(&when.what);
      a != nullptr && !negated && advisory_applies(*a, context.snapshot))
    why.parts.push_back(fmt::format("advisory {} applies to the running kernel",
                                    a->id.empty() ? context.snapshot.advisories.front() : a->id));
  if (const auto* g = std::get_if<Group>(&when.what)) {
    for (const When& part : g->parts) explain(part, context, why, negated != (g->kind == Group::Kind::Not));
  }
}

}  // namespace gpuhealth::policy
