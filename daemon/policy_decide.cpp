// SPDX-License-Identifier: Apache-2.0
// From what the daemon knows to decisions, and what becomes of them.
#include <algorithm>
#include <ctime>
#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

#include "actions/request.hpp"
#include "core/sorted.hpp"
#include "daemon/policy_impl.hpp"
#include "policy/scenario.hpp"

namespace gpuhealth::daemon {
namespace {

namespace fs = std::filesystem;
using policy::Decision;
using policy::Outcome;

constexpr std::size_t kDecisionsShown = 64;
constexpr std::size_t kEventsKept = 4096;
constexpr auto kBatteryEvery = std::chrono::seconds(30);

// A mains adapter that is off, while there is a battery.
std::optional<bool> read_battery(const std::string& sysroot) {
  bool battery = false, mains = false, online = false;
  std::error_code error;
  for (fs::directory_iterator it(sysroot + "/sys/class/power_supply", error), end; !error && it != end;
       it.increment(error)) {
    std::string type, value;
    std::ifstream(it->path() / "type") >> type;
    if (type == "Battery") battery = true;
    if (type != "Mains" && type != "USB") continue;
    std::ifstream(it->path() / "online") >> value;
    mains = mains || type == "Mains";
    online = online || value == "1";
  }
  if (!battery || !mains) return false;
  return !online;
}

int utc_offset_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  return static_cast<int>(parts.tm_gmtoff);
}

std::string rule_of(const ActionRequest& request) {
  return request.rule.empty() ? std::string("a person") : request.policy + "/" + request.rule;
}

std::string_view word_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::Observe:
      return "observed";
    case Outcome::Shadow:
      return "shadow";
    case Outcome::Blocked:
      return "blocked";
    case Outcome::Act:
    case Outcome::Revert:
      break;
  }
  return "decided";
}

Severity severity_of(const ActionRequest& request) {
  const auto urgency = request.params.find("urgency");
  if (urgency == request.params.end()) return Severity::Warning;
  if (urgency->second == "critical") return Severity::Critical;
  return urgency->second == "low" ? Severity::Info : Severity::Warning;
}

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

}  // namespace

std::optional<ConditionType> condition_of(const Event& event) {
  if (!event.type.starts_with("condition.")) return std::nullopt;
  for (const ConditionInfo& row : all_conditions()) {
    const auto at = event.text.find(": " + std::string(row.title));
    if (at == std::string::npos) continue;
    const char next = event.text.size() > at + 2 + row.title.size() ? event.text[at + 2 + row.title.size()] : '.';
    if (next == '.' || next == ':') return row.type;
  }
  return std::nullopt;
}

std::string condition_json(const Condition& c) {
  nlohmann::ordered_json out = {
      {"id", c.id},         {"type", info(c.type).name},      {"severity", to_string(c.severity)},
      {"device", c.device}, {"device_label", c.device_label}, {"since", utc_text(c.since)},
      {"detail", c.detail}};
  out["evidence"] = nlohmann::ordered_json::array();
  for (const Evidence& e : c.evidence) out["evidence"].push_back({{"name", e.name}, {"value", e.value}});
  return out.dump(-1, ' ', true, nlohmann::ordered_json::error_handler_t::replace);
}

std::string PolicyService::Impl::label(const std::string& device) const {
  if (device.empty()) return "this machine";
  const std::string known = on.label(device);
  return known.empty() ? device : known;
}

policy::Snapshot PolicyService::Impl::snapshot() {
  policy::Snapshot out;
  const Now now = clock.now();
  if (wants_battery && (battery_at.us == 0 || now.steady - battery_at >= kBatteryEvery)) {
    battery_at = now.steady;
    on_battery = read_battery(options.sysroot);
  }
  prune_events(now.wall);
  if (std::exchange(advisories_are_old, false))
    advisories = wants_advisories ? on.advisories() : std::vector<std::string>();
  out.machine = facts;
  out.on_battery = on_battery;
  out.utc_offset_s = utc_offset_now();
  out.advisories = advisories;
  out.devices = on.devices();
  out.events.assign(events.begin(), events.end());
  return out;
}

void PolicyService::Impl::prune_events(WallTime now) {
  while (!events.empty() && (events.size() > kEventsKept || events.front().time < now - window)) events.pop_front();
}

void PolicyService::Impl::look_soon() {
  if (std::exchange(look_is_due, true)) return;
  boost::asio::post(io, [this, weak = std::weak_ptr(alive)] {
    if (weak.expired()) return;
    look_is_due = false;
    look();
  });
}

void PolicyService::Impl::look() {
  if (!devices_known || (store.set().policies.empty() && state.holds.empty())) return;
  const policy::Snapshot now = snapshot();
  if (!policy::may_matter(now, store.set(), state)) return;
  policy::EvaluateOptions how;
  if (!safe_mode.empty()) how.ceiling = policy::Mode::Observe;
  how.longest_step = options.longest_step;
  auto evaluation = policy::evaluate(now, store.set(), std::move(state), clock.now(), how);
  state = std::move(evaluation.state);
  const bool costs = std::ranges::any_of(evaluation.decisions, [](const Decision& d) {
    return d.outcome == Outcome::Act || d.outcome == Outcome::Shadow || d.outcome == Outcome::Revert;
  });
  save_state(costs || evaluation.breaker_tripped);
  if (evaluation.breaker_tripped) {
    on.event(Severity::Critical, "policy.breaker", "",
             "the breaker is open: too many actions in a short time. Nothing is changed any more until "
             "gpuhealthctl actions resume");
    tell_standing();
  }
  for (const Decision& decision : evaluation.decisions) take(decision);
  actions.episodes_ended([this](const ActionRequest& request) {
    const std::string rule = request.policy + "/" + request.rule;
    if (!request.device.empty()) return !policy::is_active(state, rule, request.device);
    return std::ranges::none_of(state.devices, [&](const auto& id) { return policy::is_active(state, rule, id); });
  });
}

void PolicyService::Impl::take(const Decision& decision) {
  const std::string who = decision.policy + "/" + decision.rule;
  std::string what;
  for (const auto& action : decision.actions) what += (what.empty() ? "" : ", ") + policy::text_of(action);
  const std::string where = " on " + label(decision.device);
  switch (decision.outcome) {
    case Outcome::Act:
      on.event(Severity::Info, "policy.acts", decision.device, who + ": " + what + where + ": " + decision.reason);
      return submit(decision);
    case Outcome::Revert:
      if (decision.mode == policy::Mode::Enforce)
        for (auto action = decision.actions.rbegin(); action != decision.actions.rend(); ++action)
          actions.no_longer_wanted(*action);
      on.event(Severity::Info, "policy.reverts", decision.device,
               who + (decision.mode == policy::Mode::Enforce ? ": takes back " : ": would take back ") + what + where +
                   ": " + decision.reason);
      return;
    case Outcome::Blocked:
      on.event(Severity::Info, "policy.blocked", decision.device, who + where + ": " + decision.reason);
      judge_bundle(decision);
      break;
    case Outcome::Shadow:
    case Outcome::Observe:
      on.event(Severity::Info, "policy." + std::string(word_of(decision.outcome)), decision.device,
               who + ": would do " + what + where + ": " + decision.reason);
      break;
  }
  show(decision);
}

void PolicyService::Impl::submit(const Decision& decision) {
  const auto known = on.devices();
  const auto device = std::ranges::find(known, decision.device, &policy::DeviceState::id);
  for (const ActionRequest& request : decision.actions) {
    actions::Order order;
    order.request = request;
    WallTime fault = clock.now().wall;
    if (device != known.end()) {
      const auto condition = std::ranges::find(device->conditions, request.condition, &Condition::id);
      if (condition != device->conditions.end() && !request.condition.empty()) {
        order.event = condition_json(*condition);
        fault = condition->since;
      }
    }
    if (request.kind == ActionKind::Notify) tell_desktop(request);
    actions.submit(std::move(order), fault);
  }
}

// Desktops hear of it from the signal of this event.
void PolicyService::Impl::tell_desktop(const ActionRequest& request) {
  const auto via = request.params.find("via");
  if (via == request.params.end() || ("," + via->second + ",").find(",desktop,") == std::string::npos) return;
  const auto given = request.params.find("text");
  std::string text = given == request.params.end() || given->second.empty() ? request.reason : given->second;
  replace_all(text, "{name}", label(request.device));
  replace_all(text, "{pci}", label(request.device));
  on.event(severity_of(request), "policy.notify", request.device, text);
}

// One object for each rule, GPU and action; the newest counts.
void PolicyService::Impl::show(const Decision& decision) {
  for (const ActionRequest& request : decision.actions) {
    dbus::ActionView view;
    view.kind = to_string(request.kind);
    view.device = request.device;
    view.device_label = label(request.device);
    view.state = word_of(decision.outcome);
    view.policy = decision.policy, view.rule = decision.rule, view.reason = decision.reason;
    view.text = "would do " + policy::text_of(request);
    view.detected = clock.now().wall;
    view.fault = view.detected;
    view.reversible = info(request.kind).risk == ActionRisk::Reversible;
    std::erase_if(decisions, [&](const dbus::ActionView& old) {
      const bool same =
          old.policy == view.policy && old.rule == view.rule && old.device == view.device && old.kind == view.kind;
      if (same) on.hide(old.id);
      return same;
    });
    view.id = "decision-" + std::to_string(++last_decision);
    decisions.push_back(view);
    if (decisions.size() > kDecisionsShown) {
      on.hide(decisions.front().id);
      decisions.pop_front();
    }
    on.show(view);
  }
}

void PolicyService::Impl::record_changed(const actions::ActionRecord& record) {
  dbus::ActionView view;
  view.id = record.ledger.empty() ? "new-" + std::to_string(record.number) : record.ledger;
  view.kind = to_string(record.request.kind);
  view.device = record.request.device;
  view.device_label = label(record.request.device);
  view.state = record.state;
  view.policy = record.request.policy, view.rule = record.request.rule, view.reason = record.request.reason;
  view.text = record.text;
  view.before = record.before, view.wanted = record.wanted, view.after = record.after;
  view.fault = record.fault, view.detected = record.detected;
  view.acted = record.acted, view.verified = record.verified, view.confirm_by = record.confirm_by;
  view.reversible = info(record.request.kind).risk == ActionRisk::Reversible;
  auto& last = shown[record.number];
  if (!last.id.empty() && last.id != view.id) on.hide(last.id);
  const bool news = (!last.state.empty() || record.detected >= started) && last.state != record.state;
  last = {view.id, record.state};
  on.show(view);
  forget_old_records();
  if (record.state == "refused" || record.state == "failed") policy::forget_hold(state, record.request);
  if (!news || record.state == "queued" || record.state == "running") return;
  const bool bad = record.state == "refused" || record.state.starts_with("failed");
  const bool back = record.state == "reverted";
  const std::string change =
      back                    ? ": " + record.before + " is back"
      : record.before.empty() ? ""
                              : ": " + record.before + " -> " + (record.after.empty() ? record.wanted : record.after);
  on.event(bad ? Severity::Warning : Severity::Info, "action." + record.state, record.request.device,
           view.kind + " on " + view.device_label + " is " + record.state + change + " (" + rule_of(record.request) +
               (record.text.empty() || record.text.starts_with(view.kind) ? "" : "; " + record.text) + ")");
}

void PolicyService::Impl::forget_old_records() {
  const auto& records = actions.records();
  if (shown.size() <= records.size()) return;
  std::erase_if(shown, [&](const auto& item) {
    const bool gone = std::ranges::find(records, item.first, &actions::ActionRecord::number) == records.end();
    if (gone) on.hide(item.second.id);
    return gone;
  });
}

void PolicyService::happened(const Event& event) {
  if (event.type.starts_with("policy.") || event.type.starts_with("action.")) return;
  impl_->events.push_back({event.time, event.type, event.device, condition_of(event)});
  impl_->prune_events(event.time);
  impl_->look_soon();
}

void PolicyService::old_events(const std::vector<Event>& old) {
  auto& events = impl_->events;
  for (const Event& event : old) {
    policy::PastEvent past{event.time, event.type, event.device, condition_of(event)};
    const bool known = std::ranges::any_of(events, [&](const policy::PastEvent& e) {
      return e.time == past.time && e.type == past.type && e.device == past.device;
    });
    if (!known) events.push_back(std::move(past));
  }
  sort_stable(events, [](const auto& a, const auto& b) { return a.time < b.time; });
  impl_->look_soon();
}

}  // namespace gpuhealth::daemon
