// SPDX-License-Identifier: Apache-2.0
// Pin, trial and hold through grub/, which keeps its own entries in the ledger.
#include <algorithm>

#include "actions/actuator.hpp"
#include "grub/kernels.hpp"
#include "grub/last_good.hpp"
#include "grub/operations.hpp"
#include "grub/qualification.hpp"

namespace gpuhealth::actions {
namespace {

// The kernel that was last found good on this machine, but for the one that runs.
Result<std::string> last_good(const Tree& tree, const grub::Inventory& inventory) {
  std::string best = grub::last_known_good(inventory, grub::read_qualifications(tree), {}, inventory.running);
  if (!best.empty()) return best;
  return fail(ErrorCode::NotFound,
              "no other kernel was found good on this machine yet; gpuhealthctl kernel bless RELEASE says that one is");
}

Result<std::string> newest(const grub::Inventory& inventory) {
  if (!inventory.kernels.empty() && !inventory.kernels.front().running) return inventory.kernels.front().release;
  return fail(ErrorCode::NotFound, "the newest kernel that is installed runs already");
}

Result<grub::Request> request_for(const Asked& asked) {
  grub::Request out;
  if (asked.request->kind == ActionKind::KernelHold) {
    out.operation = grub::Operation::HoldOn;
    return out;
  }
  out.operation = asked.request->kind == ActionKind::KernelPin ? grub::Operation::Pin : grub::Operation::Trial;
  out.release = asked.params.text("release");
  out.by_itself = !asked.by_person;
  if (out.release != "last-good" && out.release != "newest") return out;
  const Tree& tree = asked.machine->files;
  const auto inventory = grub::take_inventory(tree);
  if (!inventory) return tl::unexpected<Error>(inventory.error());
  const auto chosen = out.release == "newest" ? newest(*inventory) : last_good(tree, *inventory);
  if (!chosen) return tl::unexpected<Error>(chosen.error());
  out.release = *chosen;
  return out;
}

Result<Report> perform(const Asked& asked) {
  const auto request = request_for(asked);
  if (!request) return tl::unexpected<Error>(request.error());
  const Tree& tree = asked.machine->files;
  if (asked.dry_run) {
    const auto inventory = grub::take_inventory(tree);
    if (!inventory) return tl::unexpected<Error>(inventory.error());
    const auto plan = grub::plan_operation(tree, *inventory, *request, asked.machine->outside.kernel());
    if (!plan) return tl::unexpected<Error>(plan.error());
    return Report{"", plan->steps, plan->warnings, {}};
  }
  const auto done = grub::perform(tree, *request, asked.machine->outside.kernel());
  if (!done) return tl::unexpected<Error>(done.error());
  Report out;
  out.text = std::string(to_string(request->operation)) + " " + done->release + ": boots next " + done->next +
             ", from then on " + done->lasting;
  out.files = done->changed;
  out.warnings = done->warnings;
  out.ledger = done->ledger;
  return out;
}

constexpr Actuator row(ActionKind kind) {
  return {.kind = kind, .own_ledger = true, .perform = perform};
}

}  // namespace

const Actuator kKernelPin = row(ActionKind::KernelPin);
const Actuator kKernelTrial = row(ActionKind::KernelTrial);
const Actuator kKernelHold = row(ActionKind::KernelHold);

Result<Report> take_back_kernel(const Machine& machine, const LedgerEntry& entry) {
  grub::Request request;
  request.operation = entry.action == "kernel-hold-on" ? grub::Operation::HoldOff : grub::Operation::Unpin;
  const auto done = grub::perform(machine.files, request, machine.outside.kernel());
  if (!done) return tl::unexpected<Error>(done.error());
  return Report{std::string(to_string(request.operation)) + ": the distribution has its own choice back", done->changed,
                done->warnings, done->ledger};
}

}  // namespace gpuhealth::actions
