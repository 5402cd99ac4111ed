// SPDX-License-Identifier: Apache-2.0
#include "grub/at_start.hpp"

#include <algorithm>

namespace gpuhealth::grub {
namespace {

using E = QualificationEvent;

// What a kernel that panicked left in the firmware's or the platform's memory; systemd-pstore may have moved it.
std::string last_words(const Tree& tree) {
  for (const std::string folder : {"/sys/fs/pstore", "/var/lib/systemd/pstore"}) {
    for (const std::string& name : tree.list(folder)) {
      if (!name.starts_with("dmesg-")) continue;
      const auto text = tree.read(folder + "/" + name, std::size_t{1} << 20);
      const auto at = text ? text->find("Kernel panic - ") : std::string::npos;
      if (at != std::string::npos) return text->substr(at, std::min(text->find('\n', at) - at, std::size_t{200}));
    }
  }
  return {};
}

bool over(const Became& one) {
  return one.event == E::SeenOther || one.event == E::SeenAway;
}

// Kernels that the package's hook did not tell of: the daemon was not installed yet, or its file system was full.
void note_waiting(const Inventory& inventory, const Choices& choices, const Occasion& occasion, Qualifications& all) {
  if (!choices.hold) return;
  for (const Kernel& kernel : inventory.kernels) {
    if (kernel.running || kernel.release == choices.pinned) continue;
    (void)advance(all.kernels[kernel.release], E::Held, occasion);
  }
}

Result<void> write_down(const Tree& tree, const Surroundings& surroundings, const Inventory& inventory,
                        const StartReport& report) {
  const auto ledger = Ledger::open(tree, *surroundings.system);  // for its lock
  if (!ledger) return tl::unexpected<Error>(ledger.error());
  Qualifications all = read_qualifications(tree);
  const std::string before = qualifications_text(all);
  const Choices choices = read_choices(tree);
  for (const Became& one : report.became) {
    const Kernel* kernel = find_kernel(inventory, one.release);
    const Occasion occasion = {surroundings.boot_id, surroundings.now, kernel != nullptr ? kernel->build : ""};
    (void)advance(all.kernels[one.release], one.event, occasion, one.reason);
  }
  note_waiting(inventory, choices, {surroundings.boot_id, surroundings.now, {}}, all);
  const std::string after = qualifications_text(all);
  if (after == before) return {};
  return put_file(tree, *surroundings.system, std::string(kQualificationFile), {true, after, 0640});
}

}  // namespace

BootSigns signs_of(const Inventory& inventory, const std::string& boot_id) {
  BootSigns out;
  out.running = inventory.running;
  out.boot_id = boot_id;
  if (const Kernel* kernel = find_kernel(inventory, inventory.running)) out.build = kernel->build;
  const Boot& boot = inventory.boot;
  if (boot.loader == Loader::SystemdBoot) {
    out.one_shot_pending = boot.next.known && boot.lasting.known && boot.next.path != boot.lasting.path;
    return out;
  }
  if (!boot.grubenv) return out;
  const auto& values = boot.grubenv->values;
  const auto next = values.find("next_entry");
  out.one_shot_pending = next != values.end() && next->second == kTrialId;
  if (const auto mark = values.find(kTrialMark); mark != values.end())
    out.entry_started = mark->second == kTrialStarted;
  return out;
}

Result<StartReport> at_start(const Tree& tree, const Surroundings& surroundings, const std::string& ended_in_order) {
  StartReport out;
  auto undone = recover(tree, surroundings);
  if (!undone) return tl::unexpected<Error>(undone.error());
  out.undone = std::move(*undone);
  const auto inventory = take_inventory(tree);
  if (!inventory) return tl::unexpected<Error>(inventory.error());
  out.running = inventory->running;
  BootSigns signs = signs_of(*inventory, surroundings.boot_id);
  signs.ended_in_order = ended_in_order;
  out.became = what_became(read_qualifications(tree), signs);
  for (Became& one : out.became) {
    if (one.event != E::SeenOther) continue;
    if (const std::string words = last_words(tree); !words.empty()) one.reason += " (" + words + ")";
  }
  // The loader first: a verdict that is written down while the one-shot stays would be the worse half.
  const Choices choices = read_choices(tree);
  const auto trial =
      std::ranges::find_if(out.became, [&](const Became& one) { return over(one) && one.release == choices.trial; });
  const bool forgotten =
      choices.trial.empty() && signs.one_shot_pending && inventory->boot.loader != Loader::SystemdBoot;
  if (trial != out.became.end() || forgotten) {
    Request request;
    request.operation = Operation::TrialOver;
    if (trial != out.became.end()) {
      request.release = trial->release;
      request.event = trial->event;
      request.reason = trial->reason;
    }
    if (const auto done = perform(tree, request, surroundings); !done)
      out.warnings.push_back("what is left of a trial could not be taken back: " + done.error().text);
    else
      out.cleared = signs.one_shot_pending;
  }
  if (auto written = write_down(tree, surroundings, *inventory, out); !written)
    return tl::unexpected<Error>(written.error());
  const Qualifications all = read_qualifications(tree);
  if (const auto known = all.kernels.find(out.running); known != all.kernels.end()) {
    out.state = known->second.state;
    out.on_trial = known->second.on_trial();
  }
  return out;
}

}  // namespace gpuhealth::grub
