// SPDX-License-Identifier: Apache-2.0
#include "actions/resolve.hpp"

#include <algorithm>
#include <cerrno>

#include "actions/carry_out.hpp"

namespace gpuhealth::actions {
namespace {

constexpr const char* kTakingBack = "taking_back";
constexpr const char* kLeft = "left";  // what was there when it could not be taken back

bool is(const LedgerEntry& entry, ActionState state) {
  return entry.state == to_string(state);
}

bool device_is_gone(const Error& error) {
  return error.sys_errno == ENODEV || error.sys_errno == ENOENT;
}

Result<void> hand_over(const Machine& machine, Ledger& ledger, LedgerEntry& entry, LedgerEntry& top) {
  top.back = entry.back;
  top.before = entry.before;
  top.prior = entry.prior;
  if (auto saved = ledger.save(top); !saved) return saved;
  return set_state(machine, ledger, entry, ActionState::Reverted,
                   top.id + " is in force on the same setting; it brings back what was there before both");
}

Result<void> write_back(const Machine& machine, const LedgerEntry& entry) {
  std::optional<Error> first;
  const auto note = [&](const Result<void>& done) {
    if (!done && !first) first = done.error();
  };
  if (!entry.prior.empty()) note(undo(machine.files, *machine.outside.system, entry));
  for (const LedgerStep& step : entry.back) note(do_step(machine, step));
  if (first) return tl::unexpected<Error>(*first);
  return {};
}

// The hardware forgets at a reboot what is no file, and /run is empty then.
bool forgotten_at_reboot(const LedgerEntry& entry) {
  return !entry.lasting && !entry.steps.empty() && std::ranges::none_of(entry.steps, [](const LedgerStep& step) {
    const bool file = step.kind == "file" || step.kind == "no-file";
    return (file && !step.path.starts_with("/run/")) || step.kind == "program";
  });
}

// A file below /etc is the machine's, whichever GPU it was written for.
bool same_place(const LedgerEntry& a, const LedgerEntry& b) {
  if (a.action != b.action || a.steps.empty() || b.steps.empty()) return false;
  const LedgerStep& first = a.steps.front();
  return first.path == b.steps.front().path && (a.device == b.device || first.kind == "file");
}

Result<void> go_forward(const Machine& machine, Ledger& ledger, LedgerEntry& entry, const Actuator& actuator) {
  std::string problems;
  for (const LedgerStep& step : entry.steps)
    if (const auto done = do_step(machine, step); !done) problems += done.error().text + "; ";
  const auto now = actuator.observe(machine, entry);
  if (now && *now == entry.wanted)
    return set_state(machine, ledger, entry, ActionState::Done, "it was cut off, and was done again");
  return set_state(machine, ledger, entry, ActionState::Failed,
                   "it was cut off: " + problems + (now ? *now : now.error().text));
}

enum class Need : std::uint8_t { Nothing, Note, Write };

struct Verdict {
  Need need = Need::Nothing;
  ActionState state = ActionState::Interrupted;  // for Note
  std::string note;
};

Verdict judge(const Machine& machine, const LedgerEntry& entry, const Actuator* actuator) {
  const bool same_boot = machine.outside.boot_id.empty() || entry.boot_id == machine.outside.boot_id;
  const bool half_done = is(entry, ActionState::Intended) || is(entry, ActionState::FailedToRevert);
  if (actuator == nullptr)
    return half_done ? Verdict{Need::Note, ActionState::Interrupted, "nobody here knows " + entry.action} : Verdict{};
  if (!same_boot && forgotten_at_reboot(entry) && actuator->recovery == Recovery::Back) {
    // Of /run nothing is left: what was there before is what is there now.
    const bool empty_run = entry.steps.front().path.starts_with("/run/");
    if (empty_run && (half_done || is(entry, ActionState::Applied)))
      return {Need::Note, ActionState::Reverted, "the machine started anew, and /run with it"};
    if (half_done || is(entry, ActionState::Applied))
      return {Need::Note, ActionState::Lost, "the machine started anew before it was decided"};
    if (is(entry, ActionState::Confirmed)) return {Need::Note, ActionState::Over, "the machine started anew"};
    return {};
  }
  if (half_done && actuator->recovery == Recovery::Note) {
    if (entry.action == "reboot" && !same_boot) return {Need::Note, ActionState::Done, "the machine started anew"};
    return {Need::Note, ActionState::Interrupted, "it was cut off"};
  }
  if (half_done && actuator->recovery == Recovery::Forward && !same_boot)
    return {Need::Note, ActionState::Done, "the machine started anew and has found its devices"};
  if (half_done) return {Need::Write, {}, "it had not come to its end"};
  if (in_force(entry) && entry.facts.contains(kTakingBack))
    return {Need::Write, {}, "taking it back had not come to its end"};
  if (!is(entry, ActionState::Applied)) return {};
  const auto by = utc_from(entry.confirm_by);
  if (by && machine.outside.now >= *by) return {Need::Write, {}, "nobody found it good by " + entry.confirm_by};
  return {};
}

}  // namespace

std::vector<LedgerEntry> on_same_setting(const Machine& machine, const LedgerEntry& entry) {
  std::vector<LedgerEntry> out = read_ledger(machine.files);
  std::erase_if(out, [&](const LedgerEntry& other) { return !in_force(other) || !same_place(other, entry); });
  return out;
}

bool sleeps(const Machine& machine, const LedgerEntry& entry, const Actuator& actuator) {
  if (!actuator.on_device) return false;
  const std::string state = value_of(machine, "/sys/bus/pci/devices/" + entry.target + "/power/runtime_status");
  return state == "suspended" || state == "suspending" || state == "resuming";
}

Result<void> set_state(const Machine& machine, Ledger& ledger, LedgerEntry& entry, ActionState state,
                       std::string note) {
  entry.times[std::string(to_string(state))] = utc_text(machine.outside.now);
  return ledger.close(entry, std::string(to_string(state)), std::move(note));
}

Result<void> take_back(const Machine& machine, Ledger& ledger, LedgerEntry& entry, bool by_person,
                       const std::string& why) {
  const Actuator* actuator = actuator_for(entry);
  if (actuator == nullptr || actuator->observe == nullptr || (entry.back.empty() && entry.prior.empty()))
    return fail(ErrorCode::InvalidInput, entry.action + " leaves nothing that could be brought back");
  // One that came later and is in force: what was there before this one is now for that one to bring back.
  for (LedgerEntry& top : on_same_setting(machine, entry))
    if (top.id > entry.id) return hand_over(machine, ledger, entry, top);
  if (!by_person && sleeps(machine, entry, *actuator))
    return fail(ErrorCode::Unavailable,
                entry.target + " sleeps; " + entry.before + " is brought back when it is awake");
  const auto now = actuator->observe(machine, entry);
  if (!now && device_is_gone(now.error()))
    return set_state(machine, ledger, entry, ActionState::Lost,
                     "the device is gone, and what was set in it with it: " + now.error().text);
  const bool begun = entry.facts.contains(kTakingBack);
  if (now && *now == entry.before && !begun) return set_state(machine, ledger, entry, ActionState::Reverted, why);
  // What was read back after the write is what we left there; anything else is somebody else's.
  const bool spare = !by_person || actuator->spares_others;
  if (now && spare && !begun && in_force(entry) && *now != entry.after)
    return set_state(machine, ledger, entry, ActionState::Overtaken,
                     "it is " + *now + " now, which is neither ours nor what was there before; left alone");
  // What somebody has set since we last failed is theirs.
  if (const auto left = entry.facts.find(kLeft); now && spare && left != entry.facts.end() && *now != left->second)
    return set_state(machine, ledger, entry, ActionState::Overtaken,
                     "it is " + *now + " now, which is not what we left there; left alone");
  entry.facts[kTakingBack] = "begun";
  // A full disk must not keep from coming back what was there: that has been written down before the change.
  const auto noted = ledger.save(entry);
  const auto written = write_back(machine, entry);
  const auto after = actuator->observe(machine, entry);
  // Where a value alone proves nothing (a link that trains), the writes must have gone well too.
  const bool is_back = after && *after == entry.before && (written || actuator->verify == nullptr);
  if (is_back) {
    entry.facts.erase(kTakingBack);
    entry.facts.erase(kLeft);
    auto closed = set_state(machine, ledger, entry, ActionState::Reverted, why);
    if (closed) return closed;
    return fail(closed.error().code, entry.before + " is back; that cannot be written down: " + closed.error().text);
  }
  if (!after && device_is_gone(after.error()))
    return set_state(machine, ledger, entry, ActionState::Lost,
                     "the device went away meanwhile, and what was set in it with it: " + after.error().text);
  std::string text = why + "; " + entry.before + " could not be brought back: ";
  text += !written ? written.error().text : after ? "it is " + *after + " now" : after.error().text;
  if (!noted) text += "; " + noted.error().text;
  if (after) entry.facts[kLeft] = *after;
  if (auto saved = set_state(machine, ledger, entry, ActionState::FailedToRevert, text); !saved) return saved;
  return fail(ErrorCode::Unavailable, text);
}

Result<std::vector<std::string>> resolve_all(const Machine& machine, Ledger& ledger, bool may_write,
                                             std::vector<std::string>& left) {
  std::vector<std::string> out;
  std::vector<LedgerEntry> entries = read_ledger(machine.files, &left);
  std::ranges::reverse(entries);  // the newest first: what was there before it is the older one's result
  for (LedgerEntry& entry : entries) {
    if (entry.owner != "actions") continue;
    const Actuator* actuator = actuator_for(entry);
    const Verdict verdict = judge(machine, entry, actuator);
    if (verdict.need == Need::Nothing) continue;
    Result<void> done;
    if (verdict.need == Need::Note) {
      done = set_state(machine, ledger, entry, verdict.state, verdict.note);
      if (!done) return tl::unexpected<Error>(done.error());
    } else if (!may_write) {
      left.push_back(entry.id + " is left open: nothing is written in safe mode; gpuhealthctl actions revert " +
                     entry.id + " brings back " + entry.before);
      continue;
    } else {
      done = actuator->recovery == Recovery::Forward ? go_forward(machine, ledger, entry, *actuator)
                                                     : take_back(machine, ledger, entry, false, verdict.note);
    }
    if (done) {
      out.push_back(entry.id + ": " + entry.state + (entry.note.empty() ? "" : ", " + entry.note));
    } else {
      left.push_back(entry.id + ": " + done.error().text);
    }
  }
  return out;
}

}  // namespace gpuhealth::actions
