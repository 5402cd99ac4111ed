// SPDX-License-Identifier: Apache-2.0
#include "policy/evaluate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>
#include <unordered_map>

#include "policy/match.hpp"
#include "policy/request.hpp"

namespace gpuhealth::policy {
namespace {

constexpr std::size_t kMostDevices = 256;
constexpr std::size_t kMostFirings = 2000;  // of a rule
constexpr Duration kLongestMemory = std::chrono::hours(24 * 400);

struct FlatRule {
  const Policy* policy = nullptr;
  const Rule* rule = nullptr;
  bool in_force = false;
  std::size_t first_of_policy = 0;  // place of the policy's first rule
};

class Evaluator {
 public:
  Evaluator(const Snapshot& snapshot, const PolicySet& set, State& state, const Now& now,
            const EvaluateOptions& options)
      : snapshot_(snapshot),
        set_(set),
        state_(state),
        now_(now),
        options_(options),
        devices_(index_devices(snapshot)),
        last_firing_([this](const std::string& rule) { return last_firing_of(rule); }) {}

  void run() {
    flatten();
    enter_boot();
    fit();
    step_ = state_.last && state_.last->this_boot ? age(*state_.last).count() : 0;
    if (step_ > options_.longest_step.count()) step_ = 0;
    prune();
    end_orphans();
    revert();
    for (rule_ = 0; rule_ < rules_.size(); ++rule_) judge_rule();
    release();
    state_.last = stamp();
  }

  std::vector<Decision> decisions;
  bool breaker_tripped = false;

 private:
  [[nodiscard]] Stamp stamp() const { return {to_microseconds(now_.wall), now_.steady.us, true}; }

  [[nodiscard]] Duration age(const Stamp& at) const {
    const Duration by_clock = policy::age(at, now_);
    const Duration up(now_.steady.us);
    if (at.this_boot || state_.boot_wall_us == 0 || up >= kClockSettles) return by_clock;
    return std::min(by_clock, up + Duration(std::max<std::int64_t>(state_.boot_wall_us - at.wall_us, 0)));
  }

  // --- the state is brought to these rules and GPUs

  void flatten() {
    for (const Policy& policy : set_.policies) {
      const bool in_force =
          (!policy.expires || now_.wall < *policy.expires) && machine_matches(policy.targets, snapshot_.machine);
      const std::size_t first = rules_.size();
      for (const Rule& rule : policy.rules) rules_.push_back({&policy, &rule, in_force, first});
      if (policy.actions) limits_.push_back(*policy.actions);
      if (policy.breaker) breakers_.push_back(*policy.breaker);
    }
    if (limits_.empty()) limits_.push_back(kStandardActions);
    if (breakers_.empty()) breakers_.push_back(kStandardBreaker);
  }

  void enter_boot() {
    if (state_.boot_id == snapshot_.machine.boot_id) return;
    const bool first = state_.boot_id.empty() && !state_.last;
    state_.boot_id = snapshot_.machine.boot_id;
    if (first) return;
    if (state_.last) {
      state_.boot_wall_us = std::max(state_.boot_wall_us, state_.last->wall_us);
      state_.last->this_boot = false;
    }
    if (state_.breaker) state_.breaker->this_boot = false;
    for (auto& firings : state_.firings)
      for (auto& f : firings) f.at.this_boot = false;
    for (auto& c : state_.changes) c.at.this_boot = false;
    for (auto& h : state_.holds) h.revert_last = 0;
    let_go_of_what_ended();
    for (auto& cell : state_.cells) {
      cell.last = 0;
      if (!cell.active) cell.held_us = 0;
    }
  }

  // A fault that is still there gets what the machine has forgotten once more, within the budgets.
  void let_go_of_what_ended() {
    std::erase_if(state_.holds, [&](const State::Hold& hold) {
      if (!ends_at_reboot(hold.request.kind)) return false;
      const auto rule = std::ranges::find(state_.rules, hold.rule);
      const auto device = std::ranges::find(state_.devices, hold.device);
      if (rule != state_.rules.end() && device != state_.devices.end())
        state_
            .cells[static_cast<std::size_t>(rule - state_.rules.begin()) * state_.devices.size() +
                   static_cast<std::size_t>(device - state_.devices.begin())]
            .fired = false;
      return true;
    });
  }

  static bool is_key(std::string_view key, const FlatRule& flat) {
    const std::string_view policy = flat.policy->name, rule = flat.rule->name;
    return key.size() == policy.size() + rule.size() + 1 && key.starts_with(policy) && key.ends_with(rule) &&
           key[policy.size()] == '/';
  }

  void fit() {
    bool same = state_.rules.size() == rules_.size() && state_.devices.size() >= devices_.size();
    for (std::size_t i = 0; same && i < rules_.size(); ++i) same = is_key(state_.rules[i], rules_[i]);
    for (std::size_t i = 0; same && i < devices_.size(); ++i) same = state_.devices[i] == devices_[i].device->id;
    if (!same) refit();
  }

  void refit() {
    State old = std::exchange(state_, State{});
    state_.boot_id = old.boot_id, state_.last = old.last, state_.breaker = old.breaker;
    state_.boot_wall_us = old.boot_wall_us;
    state_.changes = std::move(old.changes), state_.holds = std::move(old.holds);
    std::unordered_map<std::string_view, std::size_t> old_rules, old_devices;
    for (std::size_t i = 0; i < old.rules.size(); ++i) old_rules.emplace(old.rules[i], i);
    for (std::size_t i = 0; i < old.devices.size(); ++i) old_devices.emplace(old.devices[i], i);
    std::set<std::string_view> present;
    for (const auto& d : devices_) state_.devices.push_back(d.device->id), present.insert(d.device->id);
    // GPUs that are gone: they may come back.
    for (const auto& id : old.devices)
      if (!present.contains(id) && state_.devices.size() < kMostDevices) state_.devices.push_back(id);
    state_.cells.resize(rules_.size() * state_.devices.size());
    state_.firings.resize(rules_.size());
    for (std::size_t r = 0; r < rules_.size(); ++r) {
      state_.rules.push_back(key_of(*rules_[r].policy, *rules_[r].rule));
      const auto from = old_rules.find(state_.rules.back());
      if (from == old_rules.end()) continue;
      if (from->second < old.firings.size()) state_.firings[r] = std::move(old.firings[from->second]);
      for (std::size_t d = 0; d < state_.devices.size(); ++d)
        if (const auto column = old_devices.find(state_.devices[d]); column != old_devices.end())
          state_.cells[r * state_.devices.size() + d] = old.cells[from->second * old.devices.size() + column->second];
    }
  }

  void prune() {
    Duration longest{};
    for (const Rate& rate : limits_) longest = std::max(longest, rate.within);
    for (const Rate& rate : breakers_) longest = std::max(longest, rate.within);
    std::erase_if(state_.changes, [&](const State::Change& c) { return age(c.at) >= longest; });
    for (std::size_t r = 0; r < rules_.size(); ++r) {
      auto& firings = state_.firings[r];
      if (firings.empty()) continue;
      const Rule& rule = *rules_[r].rule;
      const Duration window = std::max(rule.cooldown, rule.budget ? rule.budget->within : Duration{});
      // The last about each GPU stays: rules may come after it.
      std::set<std::string> seen;
      std::vector<State::Firing> kept;
      for (auto it = firings.rbegin(); it != firings.rend() && kept.size() < kMostFirings; ++it) {
        const bool newest = seen.insert(it->device + ' ' + std::string(to_string(it->mode))).second;
        const Duration old = age(it->at);
        if (old < window || (newest && old < kLongestMemory)) kept.push_back(*it);
      }
      std::ranges::reverse(kept);
      firings = std::move(kept);
    }
  }

  // --- what is in place

  [[nodiscard]] const FlatRule* find_rule(std::string_view key) const {
    for (const auto& flat : rules_)
      if (is_key(key, flat)) return &flat;
    return nullptr;
  }
  [[nodiscard]] IndexedDevice* find_device(std::string_view id) {
    const auto at = std::ranges::find_if(devices_, [&](const IndexedDevice& d) { return d.device->id == id; });
    return at == devices_.end() ? nullptr : &*at;
  }

  // Takes the holds that `which` names out of the state, a decision for each rule and GPU.
  template <class Which>
  void undo(Which which, const std::string& reason) {
    std::vector<State::Hold> rest;
    std::vector<Decision> made;
    for (State::Hold& hold : state_.holds) {
      const bool forbidden = hold.mode == Mode::Enforce && options_.ceiling == Mode::Observe;
      if (forbidden || !which(hold)) {
        rest.push_back(std::move(hold));
        continue;
      }
      if (info(hold.request.kind).risk != ActionRisk::Reversible) continue;
      auto at = std::ranges::find_if(made, [&](const Decision& d) {
        return d.device == hold.device && d.policy == hold.request.policy && d.rule == hold.request.rule;
      });
      if (at == made.end()) {
        Decision d;
        d.outcome = Outcome::Revert;
        d.mode = hold.mode;
        d.policy = hold.request.policy, d.rule = hold.request.rule, d.device = hold.device;
        if (const auto* flat = find_rule(hold.rule)) d.file = flat->policy->file;
        d.reason = reason;
        made.push_back(std::move(d));
        at = made.end() - 1;
      }
      at->actions.push_back(hold.request);
    }
    state_.holds = std::move(rest);
    std::ranges::move(made, std::back_inserter(decisions));
  }

  void end_orphans() {
    if (state_.holds.empty()) return;
    const auto orphan = [&](const State::Hold& hold) {
      const FlatRule* flat = find_rule(hold.rule);
      if (flat == nullptr || !flat->in_force) return true;
      const IndexedDevice* device = find_device(hold.device);
      return device != nullptr && !gpu_matches(flat->policy->targets, *device->device);
    };
    undo(orphan, "the rule is no longer in force here");
  }

  void revert() {
    if (state_.holds.empty()) return;
    std::map<std::pair<std::string, std::string>, std::string> due;
    for (State::Hold& hold : state_.holds) {
      const FlatRule* flat = find_rule(hold.rule);
      IndexedDevice* device = find_device(hold.device);
      if (flat == nullptr || !flat->rule->revert_when || device == nullptr || device->device->asleep) {
        hold.revert_last = 0;
        continue;
      }
      rule_ = static_cast<std::size_t>(flat - rules_.data());
      device_ = device;
      // Its hysteresis is kept apart from the rule's own: bits count up over both.
      MatchContext context{snapshot_, *device, now_, true, cell_of(*device).memory, &last_firing_};
      const Tri now = holds(*flat->rule->revert_when, context);
      cell_of(*device).memory = context.memory;
      if (now == Tri::No) hold.revert_held_us = 0;
      if (now == Tri::Yes && hold.revert_last > 0) hold.revert_held_us += step_;
      hold.revert_last = static_cast<std::int8_t>(now);
      if (now != Tri::Yes || hold.revert_held_us < flat->rule->revert_hold.count()) continue;
      if (pass_on(*flat, hold)) continue;
      Why why;
      explain(*flat->rule->revert_when, context, why);
      due[{hold.rule, hold.device}] = sentence(why, flat->rule->revert_hold);
    }
    for (const auto& [whose, reason] : due)
      undo([&](const State::Hold& hold) { return hold.rule == whose.first && hold.device == whose.second; }, reason);
  }

  // What concerns the machine stays as long as one GPU of the rule's is in trouble.
  bool pass_on(const FlatRule& flat, State::Hold& hold) {
    if (!hold.request.device.empty()) return false;
    const std::size_t row = static_cast<std::size_t>(&flat - rules_.data()) * state_.devices.size();
    for (std::size_t d = 0; d < devices_.size(); ++d) {
      if (state_.devices[d] == hold.device || !state_.cells[row + d].active) continue;
      hold.device = state_.devices[d];
      hold.revert_held_us = 0, hold.revert_last = 0;
      return true;
    }
    return false;
  }

  // Without revert_when the next episode may ask again.
  void release() {
    std::erase_if(state_.holds, [&](State::Hold& hold) {
      const FlatRule* flat = find_rule(hold.rule);
      const IndexedDevice* device = find_device(hold.device);
      if (flat == nullptr || flat->rule->revert_when || device == nullptr) return false;
      rule_ = static_cast<std::size_t>(flat - rules_.data());
      return !cell_of(*device).active && !pass_on(*flat, hold);
    });
  }

  // --- one rule, GPU by GPU

  State::Cell& cell_of(const IndexedDevice& device) {
    return state_.cells[rule_ * state_.devices.size() + static_cast<std::size_t>(&device - devices_.data())];
  }

  std::optional<std::int64_t> last_firing_of(const std::string& name) {
    const FlatRule& own = rules_[rule_];
    for (std::size_t r = own.first_of_policy; r < rules_.size() && rules_[r].policy == own.policy; ++r) {
      if (rules_[r].rule->name != name) continue;
      std::optional<std::int64_t> last;
      for (const auto& f : state_.firings[r])
        if (f.device == device_->device->id && f.mode >= mode_of(own))
          last = std::max(last.value_or(f.at.wall_us), f.at.wall_us);
      return last;
    }
    return std::nullopt;
  }

  [[nodiscard]] Mode mode_of(const FlatRule& flat) const {
    return std::min(flat.rule->mode.value_or(flat.policy->mode), options_.ceiling);
  }

  void judge_rule() {
    const FlatRule& flat = rules_[rule_];
    for (IndexedDevice& device : devices_) {
      device_ = &device;
      State::Cell& cell = cell_of(device);
      if (!flat.in_force || !gpu_matches(flat.policy->targets, *device.device)) {
        cell = State::Cell{};
        continue;
      }
      if (device.device->asleep) {
        cell.last = 0;
        continue;
      }
      MatchContext context{snapshot_, device, now_, cell.active, cell.memory, &last_firing_};
      const Tri now = holds(flat.rule->when, context);
      cell.memory = context.memory;
      follow(cell, now);
      // What was only said, or counted, is made up for when the rule may do more.
      const bool decided = cell.fired && cell.fired_as >= mode_of(flat);
      if (cell.active && !decided && now == Tri::Yes) fire(cell, context);
    }
  }

  void follow(State::Cell& cell, Tri now) const {
    const Rule& rule = *rules_[rule_].rule;
    const bool before = cell.last > 0, not_before = cell.last < 0;
    cell.last = static_cast<std::int8_t>(now);
    if (now == Tri::Yes) {
      cell.cleared_us = 0;
      if (cell.active) return;
      if (before) cell.held_us += step_;
      cell.active = cell.held_us >= rule.hold.count();
    } else if (now == Tri::No && !cell.active) {
      cell.held_us = 0;
    } else if (now == Tri::No) {
      if (not_before) cell.cleared_us += step_;
      if (cell.cleared_us >= rule.clear_for.count()) {
        const auto memory = cell.memory;
        cell = State::Cell{};
        cell.memory = memory, cell.last = -1;
      }
    }
  }

  void fire(State::Cell& cell, const MatchContext& context) {
    const FlatRule& flat = rules_[rule_];
    Why why;
    explain(flat.rule->when, context, why);
    Decision decision;
    decision.mode = mode_of(flat);
    decision.policy = flat.policy->name, decision.rule = flat.rule->name, decision.file = flat.policy->file;
    decision.device = device_->device->id;
    decision.reason = sentence(why, flat.rule->hold);
    const RequestContext request{snapshot_.machine, *device_->device, *flat.policy,
                                 *flat.rule,        why.condition,    decision.reason};
    for (const PlannedAction& action : flat.rule->actions) decision.actions.push_back(make_request(action, request));

    std::string block_text;
    const Block block = find_block(decision, block_text);
    if (block != Block::None) {
      if (block == cell.said) return;
      cell.said = block;
      decision.outcome = Outcome::Blocked;
      decision.block = block;
      decision.reason += "; not now: " + block_text;
      decisions.push_back(std::move(decision));
      return;
    }
    cell.fired = true;
    cell.fired_as = decision.mode;
    cell.said = Block::None;
    record(decision);
    decision.outcome = decision.mode == Mode::Enforce  ? Outcome::Act
                       : decision.mode == Mode::Shadow ? Outcome::Shadow
                                                       : Outcome::Observe;
    decisions.push_back(std::move(decision));
  }

  void record(const Decision& decision) {
    state_.firings[rule_].push_back({decision.device, stamp(), decision.mode});
    if (decision.mode == Mode::Observe) return;
    for (const ActionRequest& action : decision.actions) {
      if (!changes_something(action.kind)) continue;
      state_.changes.push_back({stamp(), decision.mode});
      if (!resource_of(action.kind).empty())
        state_.holds.push_back({state_.rules[rule_], decision.device, decision.mode, action, 0, 0});
    }
  }

  // --- what speaks against it now

  Block find_block(Decision& decision, std::string& text) {
    const Rule& rule = *rules_[rule_].rule;
    if (const Block block = find_unless(rule.unless, text); block != Block::None) return block;
    if (decision.mode != Mode::Observe)
      if (const Block block = find_conflict(decision, text); block != Block::None) return block;
    if (const Block block = find_cooldown(rule, decision.mode, text); block != Block::None) return block;
    if (decision.mode == Mode::Observe) return Block::None;
    if (rule.budget) {
      const auto spent = std::ranges::count_if(state_.firings[rule_], [&](const State::Firing& f) {
        return f.mode >= decision.mode && age(f.at) < rule.budget->within;
      });
      if (spent >= rule.budget->count) {
        text = fmt::format("the rule's budget of {} in {} is spent", rule.budget->count, text_of(rule.budget->within));
        return Block::Budget;
      }
    }
    return find_limit(decision, text);
  }

  Block find_unless(const Unless& unless, std::string& text) const {
    if (unless.busy && device_->device->busy.value_or(true)) {
      text = device_->device->busy ? "programs use the GPU" : "it is not known whether programs use the GPU";
      return Block::Busy;
    }
    if (unless.battery && snapshot_.on_battery.value_or(false)) {
      text = "the machine runs on battery";
      return Block::Battery;
    }
    for (const Window& window : unless.windows) {
      if (!within(window, now_.wall, snapshot_.utc_offset_s)) continue;
      text = "it is within " + text_of(window);
      return Block::Window;
    }
    return Block::None;
  }

  // What this rule has asked for already is left out; what another rule holds is not taken from it.
  Block find_conflict(Decision& decision, std::string& text) const {
    const std::string& key = state_.rules[rule_];
    std::vector<ActionRequest> wanted;
    for (ActionRequest& action : decision.actions) {
      const auto resource = resource_of(action.kind);
      const auto held = std::ranges::find_if(state_.holds, [&](const State::Hold& hold) {
        return !resource.empty() && hold.mode >= decision.mode && hold.request.device == action.device &&
               resource_of(hold.request.kind) == resource;
      });
      if (held == state_.holds.end()) {
        wanted.push_back(action);
        continue;
      }
      text = held->rule == key ? fmt::format("{} is in place already", to_string(action.kind))
                               : fmt::format("rule {} holds {} there", held->rule, to_string(held->request.kind));
      if (held->rule != key) return Block::Conflict;
    }
    if (wanted.empty()) return Block::Conflict;
    decision.actions = std::move(wanted);
    return Block::None;
  }

  Block find_cooldown(const Rule& rule, Mode mode, std::string& text) const {
    for (const auto& f : state_.firings[rule_]) {
      const Duration old = age(f.at);
      if (f.device != device_->device->id || f.mode < mode || old >= rule.cooldown) continue;
      text = fmt::format("its cooldown of {} is not over", text_of(rule.cooldown));
      return Block::Cooldown;
    }
    return Block::None;
  }

  Block find_limit(const Decision& decision, std::string& text) {
    const auto more =
        std::ranges::count_if(decision.actions, [](const ActionRequest& a) { return changes_something(a.kind); });
    if (more == 0) return Block::None;
    if (state_.breaker && decision.mode == Mode::Enforce) {
      text = "the breaker is open: too many actions in a short time; a person must reset it";
      return Block::Breaker;
    }
    const auto spent = [&](const Rate& rate) {
      return std::ranges::count_if(
          state_.changes, [&](const State::Change& c) { return c.mode >= decision.mode && age(c.at) < rate.within; });
    };
    for (const Rate& rate : breakers_) {
      if (spent(rate) + more <= rate.count) continue;
      text = fmt::format("the breaker opens: more than {} actions in {}", rate.count, text_of(rate.within));
      if (decision.mode == Mode::Enforce) state_.breaker = stamp(), breaker_tripped = true;
      return Block::Breaker;
    }
    for (const Rate& rate : limits_) {
      if (spent(rate) + more <= rate.count) continue;
      text = fmt::format("this machine's limit of {} actions in {} is spent", rate.count, text_of(rate.within));
      return Block::MachineLimit;
    }
    return Block::None;
  }

  const Snapshot& snapshot_;
  const PolicySet& set_;
  State& state_;
  const Now& now_;
  const EvaluateOptions& options_;
  std::vector<IndexedDevice> devices_;
  std::function<std::optional<std::int64_t>(const std::string&)> last_firing_;
  std::vector<FlatRule> rules_;
  std::vector<Rate> limits_, breakers_;
  std::int64_t step_ = 0;
  // What is being judged.
  std::size_t rule_ = 0;
  IndexedDevice* device_ = nullptr;
};

}  // namespace

Evaluation evaluate(const Snapshot& snapshot, const PolicySet& set, State state, const Now& now,
                    const EvaluateOptions& options) {
  Evaluation out;
  out.state = std::move(state);
  Evaluator evaluator(snapshot, set, out.state, now, options);
  evaluator.run();
  out.decisions = std::move(evaluator.decisions);
  out.breaker_tripped = evaluator.breaker_tripped;
  return out;
}

}  // namespace gpuhealth::policy
