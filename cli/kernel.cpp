// SPDX-License-Identifier: Apache-2.0
#include "cli/kernel.hpp"

#include <algorithm>

#include "grub/known_faults.hpp"
#include "telemetry/asic.hpp"
#include "telemetry/discovery.hpp"

namespace gpuhealth::cli {
namespace {

std::vector<std::string> find_gfx(const std::string& root) {
  std::vector<std::string> out;
  const auto found = telemetry::discover(root == "/" ? "" : root, telemetry::NameTable::load());
  if (!found) return out;
  for (const DeviceInfo& device : found->devices)
    if (!device.gfx.empty() && std::ranges::find(out, device.gfx) == out.end()) out.push_back(device.gfx);
  return out;
}

grub::Kernel imagined(const std::string& release) {
  grub::Kernel kernel;
  kernel.release = release;
  return kernel;
}

}  // namespace

Result<void> look_at_kernels(KernelView& view, const std::string& root, const std::string& advisories) {
  const auto tree = Tree::open(root);
  if (!tree) return tl::unexpected<Error>(tree.error());
  auto inventory = grub::take_inventory(*tree);
  if (!inventory) return tl::unexpected<Error>(inventory.error());
  view.root = tree->root();
  view.inventory = std::move(*inventory);
  view.entries = grub::flatten(view.inventory.boot, *tree);
  view.choices = grub::read_choices(*tree);
  view.pin_over = grub::day_ended(view.choices.expires, SystemClock().now().wall).value_or(false);
  view.qualifications = grub::read_qualifications(*tree);
  view.gfx = find_gfx(tree->root());
  view.advisories = grub::load_advisories(advisories.empty() ? grub::find_advisories(view.root) : advisories);
  for (const grub::Kernel& kernel : view.inventory.kernels)
    view.matches[kernel.release] =
        grub::match(view.advisories.advisories, grub::question_about(view.inventory, kernel, view.gfx));
  return {};
}

std::string release_of_choice(const KernelView& view, const grub::Choice& choice) {
  if (!choice.known) return {};
  for (const grub::FlatEntry& entry : view.entries)
    if (entry.path == choice.path) return entry.release;
  return {};
}

std::string next_boot_line(const KernelView& view) {
  const grub::Choice& next = view.inventory.boot.next;
  if (!next.known) return "What boots next is not known: " + next.reason;
  std::string what = release_of_choice(view, next);
  if (what.empty()) {
    for (const grub::FlatEntry& entry : view.entries)
      if (entry.path == next.path) what = "'" + entry.entry->title + "'";
  }
  return what + " boots next: " + next.reason;
}

SafeToUpdate safe_to_update(const KernelView& view, const std::string& release, const grub::Package* pending) {
  SafeToUpdate out;
  out.answer = "unknown";
  out.candidate = release;
  if (out.candidate.empty()) {
    out.candidate = release_of_choice(view, view.inventory.boot.next);
    if (out.candidate == view.inventory.running) out.candidate.clear();
    if (out.candidate.empty() && !view.inventory.kernels.empty() && !view.inventory.kernels.front().running)
      out.candidate = view.inventory.kernels.front().release;
  }
  if (out.candidate.empty()) {
    out.reason = "no other kernel is installed; name a release to ask about it";
    return out;
  }
  const grub::Kernel* kernel = grub::find_kernel(view.inventory, out.candidate);
  grub::Kernel asked = kernel != nullptr ? *kernel : imagined(out.candidate);
  if (kernel == nullptr && pending != nullptr) asked.package = *pending;
  out.matches = grub::match(view.advisories.advisories, grub::question_about(view.inventory, asked, view.gfx));
  const auto qualified = view.qualifications.kernels.find(out.candidate);
  const auto state =
      qualified == view.qualifications.kernels.end() ? grub::QualificationState::Installed : qualified->second.state;
  for (const auto& found : out.matches) {
    if (found.applies != grub::Tri::Yes) continue;
    out.answer = "no";
    out.reason = found.advisory->title + " (" + found.why + ")";
    return out;
  }
  if (state == grub::QualificationState::Rejected || state == grub::QualificationState::NeverCameBack) {
    out.answer = "no";
    out.reason = out.candidate + " was tried on this machine: " + std::string(to_string(state));
  } else if (state == grub::QualificationState::Blessed) {
    out.answer = "yes";
    out.reason = out.candidate + " passed its canaries on this machine, and no advisory names it";
  } else if (!out.matches.empty()) {
    out.reason = "an advisory may apply: " + out.matches.front().advisory->title + " (" + out.matches.front().why + ")";
  } else {
    out.reason = "no advisory names it, and it was not yet tried on this machine";
  }
  return out;
}

}  // namespace gpuhealth::cli
