// SPDX-License-Identifier: Apache-2.0
// Pin, unpin, trial, bless, hold: what gpuhealth-act does below /boot and /etc. Everything is checked first, written
// down, done, read back; whatever fails, every file is as it was, byte for byte.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/clock.hpp"
#include "core/error.hpp"
#include "core/system.hpp"
#include "grub/kernels.hpp"
#include "grub/qualification.hpp"
#include "grub/selector.hpp"
#include "store/ledger.hpp"

namespace gpuhealth::grub {

// What was asked of us and holds: /var/lib/gpuhealthd/kernel.json.
struct Choices {
  std::string pinned;
  bool temporary = false;  // pinned only for the length of a trial
  bool hold = false;       // new kernels wait for a verdict
  std::string trial;
  std::string own_choice;                        // what the distribution started when a trial without a pin was armed
  std::string expires;                           // last day of the pin, "2026-12-31" UTC; empty: never
  std::string held_pin, held_expires;            // the pin that is there again when the hold ends
  std::vector<std::string> protect;              // kernels to keep besides these
  std::optional<std::string> next_entry_before;  // what grubenv held before the trial was armed
  friend bool operator==(const Choices&, const Choices&) = default;
};
inline constexpr std::string_view kChoicesFile = "/var/lib/gpuhealthd/kernel.json";
Choices read_choices(const Tree& tree);
// Whether this day (UTC) is over; nothing for what is no day. A pin that is over stays until a person takes it back.
std::optional<bool> day_ended(const std::string& day, WallTime now);
std::string choices_text(const Choices& choices);

enum class Operation : std::uint8_t { Pin, Unpin, Trial, Bless, HoldOn, HoldOff, Protect, Reject, TrialOver };
std::string_view to_string(Operation operation);  // "pin", "unpin", "trial", "bless", "hold-on", …
std::optional<Operation> operation_from(std::string_view name);

struct Request {
  Operation operation{};
  std::string release;
  std::string expires;
  // Whose word it is, where it is not a person's: the canaries' (bless, reject), or what a boot has shown (trial-over).
  std::optional<QualificationEvent> event = std::nullopt;
  std::string reason = {};
  std::vector<std::string> gpus = {};  // that are in the machine: a blessing is for these
  bool by_itself = false;              // no person asked: a kernel is tried once
};

// What is outside: injected, so that tests need neither chroot nor a file system of a kind.
struct Surroundings {
  System* system = nullptr;
  // Runs a tool inside the tree with a deadline; the text of the error holds the end of what it said.
  std::function<Result<void>(const Tree& tree, const std::vector<std::string>& command)> run;
  // Can GRUB write its grubenv? The error says why not.
  std::function<Result<void>(const Tree& tree, const std::string& grubenv)> one_shot_works;
  WallTime now;
  std::string boot_id;
};
Surroundings real_surroundings(System& system);

struct Outcome {
  Operation operation{};
  std::string release;
  std::vector<std::string> steps;    // done
  std::vector<std::string> changed;  // files
  std::vector<std::string> undone;   // changes of earlier runs that had not come to their end
  std::string next;                  // release, empty: not known
  std::string lasting;
  std::string ledger;  // id; empty: nothing had to change
  std::vector<std::string> warnings;
};

struct Plan {
  Wish wish;
  Choices choices;
  std::vector<std::string> steps;
  std::vector<std::string> files;
  std::vector<std::string> warnings;
};
// What would be done; changes nothing. Errors as perform() would give them.
Result<Plan> plan_operation(const Tree& tree, const Inventory& inventory, const Request& request,
                            const Surroundings& surroundings);

Result<Outcome> perform(const Tree& tree, const Request& request, const Surroundings& surroundings);

// Undoes changes that did not come to their end; done before every operation, and at every start.
Result<std::vector<std::string>> recover(const Tree& tree, const Surroundings& surroundings);

// A kernel was installed or updated: what the hooks of kernel packages tell. With hold on it waits for its verdict.
Result<std::string> note_installed(const Tree& tree, const std::string& release, const Surroundings& surroundings);

// One event of a kernel's life that changes nothing of what boots: canaries began, a person asks for them again.
Result<std::string> note_event(const Tree& tree, const std::string& release, QualificationEvent event,
                               const std::string& reason, const Surroundings& surroundings);

}  // namespace gpuhealth::grub
