// SPDX-License-Identifier: Apache-2.0
#include "grub/operations.hpp"

#include <fcntl.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <array>

#include "grub/decide.hpp"
#include "grub/known_faults.hpp"
#include "grub/menu_script.hpp"
#include "grub/preflight.hpp"
#include "grub/qualification.hpp"

namespace gpuhealth::grub {
namespace {

constexpr std::array<std::string_view, 9> kOperations = {"pin",      "unpin",   "trial",  "bless",     "hold-on",
                                                         "hold-off", "protect", "reject", "trial-over"};

constexpr std::string_view kLedgerOwner = "kernel";

void warn_of_pin(const Inventory& inventory, Plan& plan) {
  if (plan.wish.pinned.empty()) return;
  const Kernel* kernel = find_kernel(inventory, plan.wish.pinned);
  if (kernel != nullptr && release_in_path(kernel->image).empty())
    plan.warnings.push_back(kernel->image +
                            " is overwritten by the next update of its package: the pin holds the name, not " +
                            kernel->release);
  plan.warnings.emplace_back(
      "a pinned kernel gets no security fixes: look for newer ones with gpuhealthctl kernel status");
  if (inventory.packages.manager == Ordering::Rpm)
    plan.warnings.emplace_back(
        "dnf removes the oldest kernels beyond installonly_limit: raise it, or keep the pinned one among them");
}

struct Work {
  Plan plan;
  Change change;
};

// What the operation means for the verdicts on the kernels.
void note_qualification(const Tree& tree, const Inventory& inventory, const Request& request,
                        const Surroundings& surroundings, const Choices& choices, Change& change) {
  Qualifications all = read_qualifications(tree);
  const std::string before = qualifications_text(all);
  const auto tell = [&](const std::string& release, QualificationEvent event) {
    if (release.empty()) return;
    Qualification& one = all.kernels[release];
    const Kernel* kernel = find_kernel(inventory, release);
    (void)advance(one, event,
                  {surroundings.boot_id, surroundings.now, kernel != nullptr ? kernel->build : std::string()},
                  request.reason);
  };
  if (request.operation == Operation::Trial) tell(request.release, QualificationEvent::Armed);
  if (request.operation == Operation::Bless) {
    tell(request.release, request.event.value_or(QualificationEvent::BlessedByPerson));
    all.kernels[request.release].gpus = request.gpus;
  }
  if (request.operation == Operation::Reject)
    tell(request.release, request.event.value_or(QualificationEvent::RejectedByPerson));
  if (request.operation == Operation::TrialOver && request.event) tell(request.release, *request.event);
  if (request.operation == Operation::HoldOn) {
    for (const Kernel& kernel : inventory.kernels)
      if (kernel.release != choices.pinned && !kernel.running) tell(kernel.release, QualificationEvent::Held);
  }
  const std::string after = qualifications_text(all);
  if (after != before) change.files[std::string(kQualificationFile)] = {true, after, 0640};
}

Result<Work> prepare(const Tree& tree, const Inventory& inventory, const Request& request,
                     const Surroundings& surroundings) {
  const Selector* selector = selector_for(inventory.boot.loader);
  const bool verdict = request.operation == Operation::Bless || request.operation == Operation::Reject;
  const bool steered = selector != nullptr && inventory.boot.refusal.empty();
  const auto refused = [&] { return fail(ErrorCode::Unavailable, "nothing is changed: " + inventory.boot.refusal); };
  if (!steered && !verdict) return refused();
  if (!request.release.empty() && !is_plain_release(request.release))
    return fail(ErrorCode::InvalidInput, "not a kernel release: " + request.release);
  Work work;
  const Choices before = read_choices(tree);
  work.plan.choices = before;
  if (auto fine = decide(tree, inventory, request, surroundings, work.plan); !fine)
    return tl::unexpected<Error>(fine.error());
  const Choices& choices = work.plan.choices;
  if (verdict && choices == before) {  // it changes nothing of what boots, and nothing is touched there
    note_qualification(tree, inventory, request, surroundings, choices, work.change);
    work.plan.steps.push_back("note the verdict on " + request.release + ": " + std::string(kQualificationFile));
    for (const auto& [path, state] : work.change.files) work.plan.files.push_back(path);
    return work;
  }
  if (!steered) return refused();
  if (auto fine = check_place(tree, inventory); !fine) return tl::unexpected<Error>(fine.error());
  const bool loader_untouched = request.operation == Operation::Protect;
  if (!loader_untouched) {
    auto change = selector->plan(inventory, tree, work.plan.wish);
    if (!change) return tl::unexpected<Error>(change.error());
    work.change = std::move(*change);
  }
  std::vector<std::string> kept = choices.protect;
  for (const std::string& release : {choices.pinned, choices.trial})
    if (!release.empty() && std::ranges::find(kept, release) == kept.end()) kept.push_back(release);
  if (inventory.packages.manager == Ordering::Dpkg && tree.is_folder("/etc/apt/apt.conf.d"))
    work.change.files[std::string(kAptFile)] = apt_protection(kept);
  if (loader_untouched) work.change.steps.push_back("keep " + request.release + " from apt's automatic removal");
  // Our one-shot is over: its key gets back what it held before, which may be nothing. After it fired GRUB leaves it
  // there, empty.
  const std::string pending = env_value(inventory, "next_entry");
  const bool over = (!before.trial.empty() && choices.trial.empty()) || request.operation == Operation::TrialOver;
  if (over && inventory.boot.grubenv && inventory.boot.grubenv->damage.empty()) {
    if (pending == kTrialId || pending.empty())
      work.change.environment.emplace_back("next_entry", before.next_entry_before);
    if (inventory.boot.grubenv->values.contains(kTrialMark))
      work.change.environment.emplace_back(kTrialMark, std::nullopt);
  }
  note_qualification(tree, inventory, request, surroundings, choices, work.change);
  work.change.files[std::string(kChoicesFile)] =
      choices_text(choices).empty() ? FileState{} : FileState{true, choices_text(choices), 0640};
  warn_of_pin(inventory, work.plan);
  work.plan.steps = work.change.steps;
  for (const auto& [path, state] : work.change.files) work.plan.files.push_back(path);
  if (work.change.new_menu) work.plan.files.push_back(inventory.boot.config);
  return work;
}

// --- doing it

class Doing {
 public:
  Doing(const Tree& tree, const Inventory& inventory, const Work& work, const Surroundings& surroundings)
      : tree_(tree), inventory_(inventory), work_(work), surroundings_(surroundings) {}

  Result<std::map<std::string, FileState>> prior() const {
    std::map<std::string, FileState> out;
    std::vector<std::string> paths;
    paths.reserve(work_.change.files.size() + 3);
    for (const auto& [path, state] : work_.change.files) paths.push_back(path);
    if (work_.change.new_menu) {
      paths.push_back(config());
      paths.push_back(config() + "-prev");
    }
    if (!work_.change.environment.empty()) paths.push_back(inventory_.boot.grubenv_path);
    for (const std::string& path : paths) {
      auto state = file_state(tree_, path);
      if (!state) return tl::unexpected<Error>(state.error());
      out[path] = std::move(*state);
    }
    return out;
  }

  Result<void> run(const std::map<std::string, FileState>& prior) {
    for (const auto& [path, state] : work_.change.files) {
      if (auto put = put_file(tree_, *surroundings_.system, path, state); !put) return put;
    }
    if (work_.change.new_menu) {
      if (auto made = make_menu(prior.at(config())); !made) return made;
    }
    if (auto written = write_environment(prior); !written) return written;
    if (!work_.change.one_shot.empty()) {
      if (auto armed = surroundings_.run(tree_, work_.change.one_shot); !armed) return armed;
    }
    return verify();
  }

 private:
  [[nodiscard]] const std::string& config() const { return inventory_.boot.config; }
  [[nodiscard]] std::string folder() const { return config().substr(0, std::max<std::size_t>(config().rfind('/'), 1)); }
  [[nodiscard]] bool nothing_left() const { return work_.plan.wish.pinned.empty() && work_.plan.wish.trial.empty(); }

  Result<void> make_menu(const FileState& current) {
    System& system = *surroundings_.system;
    const std::string beside = config() + ".gpuhealth-new";
    if (auto gone = system.remove(tree_, beside); !gone) return gone;
    std::vector<std::string> command = work_.change.tool;
    command.push_back(beside);
    if (auto made = surroundings_.run(tree_, command); !made) return made;
    auto made = file_state(tree_, beside);
    if (!made) return tl::unexpected<Error>(made.error());
    (void)system.remove(tree_, beside + ".new");  // grub-mkconfig's own, when it is interrupted
    if (auto right = check_menu(made->bytes); !right) return right;
    made->mode = current.exists ? current.mode : 0600;
    // GRUB does not replay journals, so that each step has to be on the disk before the next one.
    if (!nothing_left() || current.exists) {
      const FileState previous = nothing_left() ? FileState{} : FileState{current.exists, current.bytes, current.mode};
      if (auto kept = put_file(tree_, system, config() + "-prev", previous); !kept) return kept;
    }
    if (auto put = put_file(tree_, system, config(), *made); !put) return put;
    return system.sync_file_system(tree_, folder());
  }

  // The new menu must hold every kernel that the old one held and that is still there.
  Result<void> check_menu(const std::string& text) const {
    const auto wrong = [](const std::string& what) {
      return fail(ErrorCode::InvalidInput, "the menu that the tool made is not used: " + what);
    };
    const Script script = parse_script(text);
    if (script.cut || !script.notes.empty())
      return wrong(script.notes.empty() ? "it ends in the middle" : script.notes.front().text);
    if (inventory_.boot.loader == Loader::GrubBls) return {};
    for (const Kernel& kernel : inventory_.kernels) {
      if (kernel.image.empty() || kernel.entries.empty()) continue;
      const std::string name = kernel.image.substr(kernel.image.rfind('/') + 1);
      if (text.find(name) == std::string::npos) return wrong("it lacks " + kernel.release + ", which is installed");
    }
    return {};
  }

  Result<void> write_environment(const std::map<std::string, FileState>& prior) {
    if (work_.change.environment.empty()) return {};
    const std::string& path = inventory_.boot.grubenv_path;
    std::string bytes = prior.at(path).bytes;
    for (const auto& [key, value] : work_.change.environment) {
      auto changed = with_value(bytes, key, value ? std::optional<std::string_view>(*value) : std::nullopt);
      if (!changed) return tl::unexpected<Error>(changed.error());
      bytes = std::move(*changed);
    }
    System& system = *surroundings_.system;
    auto fd = system.open_to_write(tree_, path);
    if (!fd) return tl::unexpected<Error>(fd.error());
    if (auto written = system.write_all(*fd, bytes); !written) return written;
    return system.sync_file(*fd);
  }

  Result<void> verify() {
    const Selector* selector = selector_for(inventory_.boot.loader);
    const auto boot = look_at_boot(tree_);
    if (!boot) return tl::unexpected<Error>(boot.error());
    if (work_.change.new_menu || inventory_.boot.loader == Loader::SystemdBoot) {
      if (auto right = selector->check(*boot, tree_, work_.plan.wish); !right) return right;
    }
    if (work_.plan.wish.trial.empty() || inventory_.boot.loader == Loader::SystemdBoot) return {};
    for (const FlatEntry& entry : flatten(*boot, tree_))
      if (boot->next.known && entry.path == boot->next.path && entry.entry->id == kTrialId) return {};
    return fail(ErrorCode::InvalidInput, "the trial would not boot next: " + boot->next.reason);
  }

  const Tree& tree_;
  const Inventory& inventory_;
  const Work& work_;
  const Surroundings& surroundings_;
};

Error with_undo(Error error, const Result<void>& undone) {
  if (undone) {
    error.text += "\nEverything is as it was before.";
  } else {
    error.text += "\nNot everything could be put back: " + undone.error().text +
                  "\nThe ledger has the prior state; run gpuhealthctl kernel unpin when the cause is gone.";
  }
  return error;
}

}  // namespace

std::string_view to_string(Operation operation) {
  return kOperations.at(static_cast<std::size_t>(operation));
}
std::optional<Operation> operation_from(std::string_view name) {
  for (std::size_t i = 0; i < kOperations.size(); ++i)
    if (kOperations.at(i) == name) return static_cast<Operation>(i);
  return std::nullopt;
}

Result<Plan> plan_operation(const Tree& tree, const Inventory& inventory, const Request& request,
                            const Surroundings& surroundings) {
  auto work = prepare(tree, inventory, request, surroundings);
  if (!work) return tl::unexpected<Error>(work.error());
  return std::move(work->plan);
}

Result<std::vector<std::string>> recover(const Tree& tree, const Surroundings& surroundings) {
  std::vector<std::string> out;
  const auto open_ones = [&] {
    std::vector<LedgerEntry> entries = read_ledger(tree);
    std::erase_if(entries, [](const LedgerEntry& e) {
      return e.owner != kLedgerOwner || (e.state != "intended" && e.state != "failed-to-undo");
    });
    return entries;
  };
  if (open_ones().empty()) return out;
  auto ledger = Ledger::open(tree, *surroundings.system);
  if (!ledger) return tl::unexpected<Error>(ledger.error());
  std::vector<LedgerEntry> entries = open_ones();
  std::ranges::reverse(entries);  // the newest first: its prior state is the older one's result
  for (LedgerEntry& entry : entries) {
    if (auto undone = undo(tree, *surroundings.system, entry); !undone) return tl::unexpected<Error>(undone.error());
    if (auto closed = ledger->close(entry, "undone", "it had not come to its end"); !closed)
      return tl::unexpected<Error>(closed.error());
    out.push_back(entry.id);
  }
  return out;
}

Result<Outcome> perform(const Tree& tree, const Request& request, const Surroundings& surroundings) {
  Outcome out;
  out.operation = request.operation;
  auto undone = recover(tree, surroundings);
  if (!undone) return tl::unexpected<Error>(undone.error());
  out.undone = std::move(*undone);
  auto inventory = take_inventory(tree);
  if (!inventory) return tl::unexpected<Error>(inventory.error());
  auto work = prepare(tree, *inventory, request, surroundings);
  if (!work) return tl::unexpected<Error>(work.error());
  auto ledger = Ledger::open(tree, *surroundings.system);
  if (!ledger) return tl::unexpected<Error>(ledger.error());
  Doing doing(tree, *inventory, *work, surroundings);
  const auto prior = doing.prior();
  if (!prior) return tl::unexpected<Error>(prior.error());
  LedgerEntry intended;
  intended.owner = kLedgerOwner;
  intended.action = "kernel-" + std::string(to_string(request.operation));
  intended.target = request.release;
  intended.boot_id = surroundings.boot_id;
  intended.prior = *prior;
  auto entry = ledger->begin(std::move(intended), surroundings.now);
  if (!entry) return tl::unexpected<Error>(entry.error());
  auto done = doing.run(*prior);
  if (done) done = ledger->close(*entry, "done");
  if (!done) {
    const Result<void> back = undo(tree, *surroundings.system, *entry);
    (void)ledger->close(*entry, back ? "undone" : "failed-to-undo", done.error().text);
    return tl::unexpected<Error>(with_undo(done.error(), back));
  }
  out.release = request.release.empty() ? work->plan.wish.pinned : request.release;
  out.steps = work->plan.steps;
  out.warnings = work->plan.warnings;
  out.ledger = entry->id;
  for (const auto& [path, state] : entry->prior) {
    const auto now = file_state(tree, path);
    if (now && !(*now == state)) out.changed.push_back(path);
  }
  if (const auto after = take_inventory(tree)) {
    out.next = release_of_choice(*after, tree, after->boot.next);
    out.lasting = release_of_choice(*after, tree, after->boot.lasting);
  }
  return out;
}

}  // namespace gpuhealth::grub
