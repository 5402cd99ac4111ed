// SPDX-License-Identifier: Apache-2.0
#include "actions/carry_out.hpp"

#include <algorithm>
#include <array>
#include <cerrno>

#include "actions/interlocks.hpp"
#include "actions/resolve.hpp"
#include "core/yaml.hpp"

namespace gpuhealth::actions {
namespace {

ActionRisk risk_of(const Actuator& actuator) {
  return info(actuator.kind).risk;
}

Result<Asked> understand(const Machine& machine, const Order& order, const Actuator& actuator) {
  Asked asked;
  asked.machine = &machine;
  asked.request = &order.request;
  asked.event = order.event;
  asked.by_person = order.request.rule.empty() && order.request.condition.empty();
  asked.dry_run = order.dry_run;
  auto params = Params::read(order.request);
  if (!params) return tl::unexpected<Error>(params.error());
  asked.params = std::move(*params);
  if (order.request.device.empty()) {
    if (actuator.on_device)
      return fail(ErrorCode::InvalidInput, std::string(to_string(actuator.kind)) + " needs a device");
    return asked;
  }
  auto target = find_target(machine, order.request.device);
  // What is told of a device that is gone is told all the same, and a device that is gone may be looked for.
  const bool may_be_gone = !actuator.on_device || actuator.kind == ActionKind::PciRescan;
  if (!target && !may_be_gone) return tl::unexpected<Error>(target.error());
  if (target) asked.target = std::move(*target);
  return asked;
}

Result<void> check_mode(const Machine& machine, const Actuator& actuator, const Order& order) {
  if (order.dry_run || actuator.kind == ActionKind::Notify) return {};
  const auto reasons = safe_mode(machine);
  if (reasons.empty()) return {};
  return fail(ErrorCode::NotPermitted, "safe mode, nothing is changed: " + reasons.front());
}

Outcome start_outcome(const Asked& asked) {
  Outcome out;
  out.action = to_string(asked.request->kind);
  out.device = asked.target ? asked.target->id : asked.request->device;
  if (asked.target) out.pci = asked.target->pci;
  return out;
}

void take_report(Outcome& out, Report report) {
  out.text = std::move(report.text);
  out.files = std::move(report.files);
  out.ledger = std::move(report.ledger);
  out.warnings.insert(out.warnings.end(), report.warnings.begin(), report.warnings.end());
}

void take_entry(Outcome& out, const LedgerEntry& entry) {
  out.state = entry.state;
  out.ledger = entry.id;
  out.before = entry.before;
  out.wanted = entry.wanted;
  out.after = entry.after;
  out.confirm_by = entry.confirm_by;
  out.pci = out.pci.empty() ? entry.target : out.pci;
  out.steps.clear();
  for (const LedgerStep& step : entry.steps) out.steps.push_back(describe(step));
}

LedgerEntry fill_entry(LedgerEntry entry, const Asked& asked, const Order& order) {
  const ActionRequest& request = order.request;
  entry.owner = "actions";
  entry.action = to_string(request.kind);
  entry.device = asked.target ? asked.target->id : request.device;
  if (entry.target.empty()) entry.target = asked.target ? asked.target->pci : request.device;
  entry.boot_id = asked.machine->outside.boot_id;
  entry.params = request.params;
  entry.policy = request.policy;
  entry.rule = request.rule;
  entry.condition = request.condition;
  entry.reason = request.reason;
  entry.times = order.times;
  return entry;
}

// The profile sets the level too: what is brought back would depend on which of them goes first.
Result<void> check_sharing(const Machine& machine, const LedgerEntry& wanted) {
  constexpr std::array<std::string_view, 2> kShare = {"performance-level", "power-profile"};
  const auto shares = [&](const LedgerEntry& e) { return std::ranges::find(kShare, e.action) != kShare.end(); };
  if (!shares(wanted)) return {};
  for (const LedgerEntry& other : read_ledger(machine.files))
    if (in_force(other) && shares(other) && other.action != wanted.action && other.device == wanted.device)
      return fail(ErrorCode::Unavailable, other.id + " is in force on this GPU, and both set its performance level; " +
                                              "gpuhealthctl actions revert " + other.id + " makes room");
  return {};
}

// The steps, then what the hardware says. Stops at the first failure unless the rest has to be done all the same.
Result<void> do_and_read_back(const Machine& machine, const Actuator& actuator, LedgerEntry& entry) {
  for (const LedgerStep& step : entry.steps) {
    const auto done = do_step(machine, step);
    if (done) continue;
    if (actuator.recovery != Recovery::Forward) return done;
    entry.warnings.push_back(done.error().text);
  }
  const auto now = actuator.observe(machine, entry);
  if (!now) return tl::unexpected<Error>(now.error());
  entry.after = *now;
  if (*now != entry.wanted) {
    const bool nothing = *now == entry.before;
    return fail(ErrorCode::Unavailable, nothing ? "it was accepted and has no effect: it still is " + *now
                                                : entry.wanted + " was accepted, and " + *now + " was taken");
  }
  if (actuator.verify == nullptr) return {};
  return actuator.verify(machine, entry);
}

// After a failure: back to what was there, and an error that says both.
tl::unexpected<Error> give_up(const Machine& machine, Ledger& ledger, const Actuator& actuator, LedgerEntry& entry,
                              Error error) {
  if (risk_of(actuator) != ActionRisk::Reversible) {
    (void)set_state(machine, ledger, entry, ActionState::Failed, error.text);
    error.text += "\nSee gpuhealthctl actions show " + entry.id + ".";
    return tl::unexpected<Error>(std::move(error));
  }
  const auto back = take_back(machine, ledger, entry, true, error.text);
  if (!back) {
    error.text += "\nWhat was there before could not be brought back: " + back.error().text;
  } else if (entry.state == to_string(ActionState::Lost)) {
    error.text += "\nThe device went away; nothing is left of it.";
  } else {
    error.text += "\nEverything is as it was before (" + entry.before + ").";
  }
  return tl::unexpected<Error>(std::move(error));
}

Result<Outcome> by_steps(const Machine& machine, Ledger& ledger, const Actuator& actuator, const Asked& asked,
                         const Order& order, Outcome out) {
  auto plan = actuator.plan(asked);
  if (!plan) return tl::unexpected<Error>(plan.error());
  LedgerEntry wanted = fill_entry(std::move(plan->entry), asked, order);
  wanted.warnings.insert(wanted.warnings.end(), out.warnings.begin(), out.warnings.end());
  if (!plan->already.empty()) {
    take_entry(out, wanted);
    out.steps.clear();
    out.state = "nothing-to-do";
    out.text = plan->already;
    out.warnings = wanted.warnings;
    return out;
  }
  if (auto fine = check_sharing(machine, wanted); !fine) return tl::unexpected<Error>(fine.error());
  auto entry = ledger.begin(std::move(wanted), machine.outside.now);
  if (!entry) return tl::unexpected<Error>(entry.error());
  if (auto done = do_and_read_back(machine, actuator, *entry); !done)
    return give_up(machine, ledger, actuator, *entry, done.error());
  const bool reversible = risk_of(actuator) == ActionRisk::Reversible;
  const ActionState state = !reversible     ? ActionState::Done
                            : order.confirm ? ActionState::Confirmed
                                            : ActionState::Applied;
  // A setting of the hardware that does not help goes; a mark that keeps jobs away is not there to help.
  if (state == ActionState::Applied && !entry->lasting && actuator.on_device)
    entry->confirm_by = utc_text(machine.outside.now + order.probation);
  if (auto saved = set_state(machine, ledger, *entry, state); !saved)
    return give_up(machine, ledger, actuator, *entry, saved.error());
  take_entry(out, *entry);
  out.warnings = entry->warnings;
  out.text = out.action + ": " + entry->before + " -> " + entry->after;
  return out;
}

// Programs and requests: written down, done, written down.
Result<Outcome> by_itself(const Machine& machine, Ledger& ledger, const Actuator& actuator, const Asked& asked,
                          const Order& order, Outcome out) {
  auto entry = ledger.begin(fill_entry({}, asked, order), machine.outside.now);
  if (!entry) return tl::unexpected<Error>(entry.error());
  auto report = actuator.perform(asked);
  if (!report) return give_up(machine, ledger, actuator, *entry, report.error());
  if (auto saved = set_state(machine, ledger, *entry, ActionState::Done, report->text); !saved)
    return tl::unexpected<Error>(saved.error());
  take_report(out, std::move(*report));
  take_entry(out, *entry);
  return out;
}

Result<Outcome> without_ledger(const Actuator& actuator, const Asked& asked, Outcome out) {
  auto report = actuator.perform(asked);
  if (!report) return tl::unexpected<Error>(report.error());
  take_report(out, std::move(*report));
  out.state = to_string(ActionState::Done);
  return out;
}

Result<Outcome> dry_run(const Actuator& actuator, const Asked& asked, const Order& order, Outcome out) {
  out.state = "planned";
  if (actuator.own_ledger) {
    auto report = actuator.perform(asked);
    if (!report) return tl::unexpected<Error>(report.error());
    out.steps = report->files;
    out.warnings.insert(out.warnings.end(), report->warnings.begin(), report->warnings.end());
    return out;
  }
  if (actuator.plan == nullptr) {
    out.text = std::string(info(actuator.kind).does);
    return out;
  }
  auto plan = actuator.plan(asked);
  if (!plan) return tl::unexpected<Error>(plan.error());
  const LedgerEntry entry = fill_entry(std::move(plan->entry), asked, order);
  take_entry(out, entry);
  out.state = plan->already.empty() ? "planned" : "nothing-to-do";
  out.text = plan->already;
  if (!plan->already.empty()) out.steps.clear();
  out.warnings.insert(out.warnings.end(), entry.warnings.begin(), entry.warnings.end());
  return out;
}

Result<void> check_history(const Machine& machine, const Asked& asked) {
  if (asked.by_person) return {};
  const auto entries = entries_that_count(machine);
  if (const std::string why = breaker_opens(entries, machine.outside.now); !why.empty()) {
    (void)enter_safe_mode(machine, why);
    return fail(ErrorCode::Exhausted,
                "the breaker is open, nothing is changed any more: " + why + "; gpuhealthctl actions resume closes it");
  }
  if (asked.request->kind == ActionKind::Reboot &&
      rebooted_for(read_ledger(machine.files), asked.request->condition, machine.outside.now))
    return fail(ErrorCode::Exhausted, "the machine was rebooted for this already (" +
                                          verdict_of(asked.request->condition) +
                                          "), and it did not help: never a second time for the same verdict");
  return {};
}

// One that holds a kernel's entry: who asked for it is added to what grub/ wrote.
void sign_kernel_entry(const Machine& machine, const Asked& asked, const Order& order, const Outcome& out) {
  if (out.ledger.empty()) return;
  auto ledger = Ledger::open(machine.files, *machine.outside.system);
  auto entry = find_entry(machine.files, out.ledger);
  if (!ledger || !entry) return;
  const LedgerEntry asked_by = fill_entry({}, asked, order);
  entry->policy = asked_by.policy;
  entry->rule = asked_by.rule;
  entry->condition = asked_by.condition;
  entry->reason = asked_by.reason;
  (void)ledger->save(*entry);
}

}  // namespace

bool is_open(const LedgerEntry& entry) {
  return std::ranges::any_of(all_action_states(), [&](const ActionStateInfo& row) {
    return row.open && row.name == entry.state && entry.owner == "actions";
  });
}

bool in_force(const LedgerEntry& entry) {
  return entry.owner == "actions" &&
         (entry.state == to_string(ActionState::Applied) || entry.state == to_string(ActionState::Confirmed));
}

Result<LedgerEntry> find_entry(const Tree& files, const std::string& id) {
  std::vector<LedgerEntry> found;
  const auto number = number_of(id);
  for (LedgerEntry& entry : read_ledger(files)) {
    if (entry.id == id) return std::move(entry);
    const auto own = number_of(std::string_view(entry.id).substr(0, entry.id.find('-')));
    if (number ? own == number : entry.id.starts_with(id)) found.push_back(std::move(entry));
  }
  if (found.size() == 1) return std::move(found.front());
  if (found.empty())
    return fail(ErrorCode::NotFound,
                "there is no action " + yaml::shown(id) + "; gpuhealthctl actions list shows them");
  return fail(ErrorCode::InvalidInput,
              yaml::shown(id) + " is the beginning of " + std::to_string(found.size()) + " actions");
}

Result<Outcome> carry_out(const Machine& machine, const Order& order) {
  const Actuator* actuator = actuator_for(order.request.kind);
  if (actuator == nullptr)
    return fail(ErrorCode::InvalidInput, std::string(to_string(order.request.kind)) + " is done by the daemon itself");
  const auto asked = understand(machine, order, *actuator);
  if (!asked) return tl::unexpected<Error>(asked.error());
  if (auto fine = check_mode(machine, *actuator, order); !fine) return tl::unexpected<Error>(fine.error());
  Outcome out = start_outcome(*asked);
  out.warnings = other_managers(machine, *asked);
  if (auto fine = check_use(machine, *actuator, *asked, out.warnings); !fine)
    return tl::unexpected<Error>(fine.error());
  if (order.dry_run) return dry_run(*actuator, *asked, order, std::move(out));
  if (risk_of(*actuator) == ActionRisk::None) return without_ledger(*actuator, *asked, std::move(out));
  if (actuator->own_ledger) {
    if (auto fine = check_history(machine, *asked); !fine) return tl::unexpected<Error>(fine.error());
    auto done = without_ledger(*actuator, *asked, std::move(out));
    if (done) sign_kernel_entry(machine, *asked, order, *done);
    return done;
  }
  auto ledger = Ledger::open(machine.files, *machine.outside.system);
  if (!ledger) return tl::unexpected<Error>(ledger.error());
  auto resolved = resolve_all(machine, *ledger, true, out.warnings);
  if (!resolved) return tl::unexpected<Error>(resolved.error());
  out.resolved = std::move(*resolved);
  if (auto fine = check_history(machine, *asked); !fine) return tl::unexpected<Error>(fine.error());
  const auto way = actuator->plan != nullptr ? by_steps : by_itself;
  return way(machine, *ledger, *actuator, *asked, order, std::move(out));
}

Result<Outcome> confirm(const Machine& machine, const std::string& id) {
  auto ledger = Ledger::open(machine.files, *machine.outside.system);
  if (!ledger) return tl::unexpected<Error>(ledger.error());
  auto entry = find_entry(machine.files, id);
  if (!entry) return tl::unexpected<Error>(entry.error());
  const bool applied = entry->state == to_string(ActionState::Applied);
  const bool lost = entry->state == to_string(ActionState::Lost);
  if (entry->owner != "actions" || (!applied && !lost))
    return fail(ErrorCode::InvalidInput, entry->id + " is " + entry->state + ": there is nothing to confirm");
  entry->confirm_by.clear();
  if (auto saved = set_state(machine, *ledger, *entry, applied ? ActionState::Confirmed : ActionState::Over,
                             applied ? "" : "it was good, a person says");
      !saved)
    return tl::unexpected<Error>(saved.error());
  Outcome out;
  out.action = entry->action;
  out.device = entry->device;
  take_entry(out, *entry);
  out.steps.clear();  // nothing was written now
  out.text = entry->id + " is " + entry->state;
  return out;
}

Result<Outcome> note_verified(const Machine& machine, const std::string& id) {
  auto ledger = Ledger::open(machine.files, *machine.outside.system);
  if (!ledger) return tl::unexpected<Error>(ledger.error());
  auto entry = find_entry(machine.files, id);
  if (!entry) return tl::unexpected<Error>(entry.error());
  entry->times["verified"] = utc_text(machine.outside.now);
  if (auto saved = ledger->save(*entry); !saved) return tl::unexpected<Error>(saved.error());
  Outcome out;
  out.action = entry->action;
  out.device = entry->device;
  take_entry(out, *entry);
  return out;
}

Result<Outcome> revert(const Machine& machine, const std::string& id, bool by_person) {
  auto entry = find_entry(machine.files, id);
  if (!entry) return tl::unexpected<Error>(entry.error());
  Outcome out;
  out.action = entry->action;
  out.device = entry->device;
  if (entry->owner == "kernel") {
    auto report = take_back_kernel(machine, *entry);
    if (!report) return tl::unexpected<Error>(report.error());
    take_report(out, std::move(*report));
    out.state = to_string(ActionState::Reverted);
    return out;
  }
  auto ledger = Ledger::open(machine.files, *machine.outside.system);
  if (!ledger) return tl::unexpected<Error>(ledger.error());
  entry = find_entry(machine.files, id);
  if (!entry) return tl::unexpected<Error>(entry.error());
  if (!in_force(*entry) && !is_open(*entry))
    return fail(ErrorCode::InvalidInput, entry->id + " is " + entry->state + ": there is nothing to bring back");
  entry->facts[std::string(kAskedBack)] = by_person ? "a person" : "a rule";
  if (auto done = take_back(machine, *ledger, *entry, by_person, by_person ? "by hand" : "its reason is gone"); !done)
    return tl::unexpected<Error>(done.error());
  take_entry(out, *entry);
  out.steps.clear();
  out.text = entry->id + " is " + entry->state + (entry->note.empty() ? "" : ": " + entry->note);
  return out;
}

Result<Outcome> revert_all(const Machine& machine) {
  Outcome out;
  out.action = "revert-all";
  out.state = to_string(ActionState::Done);
  auto entries = read_ledger(machine.files, &out.warnings);
  std::ranges::reverse(entries);
  for (const LedgerEntry& entry : entries) {
    if (!in_force(entry) || entry.owner == "kernel") continue;
    const auto one = revert(machine, entry.id, false);
    if (one) {
      out.resolved.push_back(one->text);
    } else {
      out.warnings.push_back(entry.id + ": " + one.error().text);
    }
  }
  return out;
}

Result<Outcome> recover(const Machine& machine) {
  Outcome out;
  out.action = "recover";
  out.state = to_string(ActionState::Done);
  const auto entries = read_ledger(machine.files, &out.warnings);
  if (std::ranges::none_of(entries, [](const LedgerEntry& e) { return is_open(e) || in_force(e); })) return out;
  out.warnings.clear();
  auto ledger = Ledger::open(machine.files, *machine.outside.system);
  if (!ledger) return tl::unexpected<Error>(ledger.error());
  auto resolved = resolve_all(machine, *ledger, safe_mode(machine).empty(), out.warnings);
  if (!resolved) return tl::unexpected<Error>(resolved.error());
  out.resolved = std::move(*resolved);
  if (const int boots = boots_without_confirmation(entries_that_count(machine)); boots >= kBootsWithoutConfirmation) {
    if (auto entered = enter_safe_mode(machine, std::to_string(boots) + " boots in a row ended before an action was "
                                                                        "found good");
        !entered)
      return tl::unexpected<Error>(entered.error());
    out.warnings.emplace_back("safe mode: boot after boot ended before an action was found good");
  }
  return out;
}

Result<Outcome> apply_again(const Machine& machine, const std::string& device) {
  Outcome out;
  out.action = "apply-again";
  out.device = device;
  out.state = to_string(ActionState::Done);
  if (!safe_mode(machine).empty()) return out;
  auto ledger = Ledger::open(machine.files, *machine.outside.system);
  if (!ledger) return tl::unexpected<Error>(ledger.error());
  for (LedgerEntry& entry : read_ledger(machine.files)) {
    const Actuator* actuator = actuator_for(entry);
    const bool ours = in_force(entry) && entry.boot_id == machine.outside.boot_id && !entry.steps.empty();
    if (!ours || actuator == nullptr || !actuator->on_device || (entry.device != device && entry.target != device))
      continue;
    const auto all = on_same_setting(machine, entry);
    if (all.back().id != entry.id || sleeps(machine, entry, *actuator)) continue;  // the newest one is in force
    const auto now = actuator->observe(machine, entry);
    if (!now || *now == entry.after) continue;
    // Neither ours nor what was there before: somebody else has decided meanwhile.
    if (std::ranges::none_of(all, [&](const LedgerEntry& one) { return one.before == *now; })) {
      (void)set_state(machine, *ledger, entry, ActionState::Overtaken, "it is " + *now + " now; left alone");
      out.warnings.push_back(entry.id + ": " + entry.note);
      continue;
    }
    if (auto done = do_and_read_back(machine, *actuator, entry); !done) {
      out.warnings.push_back(entry.id + ": " + give_up(machine, *ledger, *actuator, entry, done.error()).value().text);
      continue;
    }
    entry.times["applied-again"] = utc_text(machine.outside.now);
    if (auto saved = ledger->save(entry); !saved) return tl::unexpected<Error>(saved.error());
    out.resolved.push_back(entry.id + ": " + entry.after + " again");
  }
  return out;
}

}  // namespace gpuhealth::actions
