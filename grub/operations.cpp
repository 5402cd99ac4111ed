// SPDX-License-Identifier: Apache-2.0
#include "grub/operations.hpp"

#include <fcntl.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <array>
#include <ctime>

#include <nlohmann/json.hpp>

#include "grub/known_faults.hpp"
#include "grub/last_good.hpp"
#include "grub/menu_script.hpp"
#include "grub/preflight.hpp"
#include "grub/qualification.hpp"

namespace gpuhealth::grub {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::string_view, 9> kOperations = {"pin",      "unpin",   "trial",  "bless",     "hold-on",
                                                         "hold-off", "protect", "reject", "trial-over"};

constexpr std::string_view kLedgerOwner = "kernel";

std::string text_in(const Json& json, const char* key) {
  return json.contains(key) && json[key].is_string() ? json[key].get<std::string>() : std::string();
}

// The kernel to fall back to: the pinned one, else what boots without us, else one that was found good, else what runs.
std::string good_kernel(const Inventory& inventory, const Tree& tree, const Choices& choices,
                        const std::string& not_this) {
  if (!choices.pinned.empty() && choices.pinned != not_this) return choices.pinned;
  const Qualifications all = read_qualifications(tree);
  const auto bad = [&](const std::string& release) {
    const auto known = all.kernels.find(release);
    return known != all.kernels.end() && (known->second.state == QualificationState::Rejected ||
                                          known->second.state == QualificationState::NeverCameBack);
  };
  std::string lasting = release_of_choice(inventory, tree, inventory.boot.lasting);
  if (!lasting.empty() && lasting != not_this && !bad(lasting)) return lasting;
  if (std::string good = last_known_good(inventory, all, {}, not_this); !good.empty()) return good;
  return inventory.running != not_this ? inventory.running : std::string();
}

std::string env_value(const Inventory& inventory, const std::string& key) {
  if (!inventory.boot.grubenv) return {};
  const auto found = inventory.boot.grubenv->values.find(key);
  return found == inventory.boot.grubenv->values.end() ? std::string() : found->second;
}

Result<void> check_trial(const Tree& tree, const Inventory& inventory, const std::string& good,
                         const std::string& release, const Surroundings& surroundings) {
  if (good.empty())
    return fail(ErrorCode::NotFound,
                "there is no other kernel to fall back to: pin a good one first, then try " + release);
  if (good == release)
    return fail(ErrorCode::InvalidInput, release + " is what boots anyhow; a trial is for another kernel");
  if (auto fine = check_kernel(tree, inventory, good); !fine) {
    Error error = fine.error();
    error.text = "the kernel to fall back to is not fit: " + error.text;
    return tl::unexpected<Error>(std::move(error));
  }
  if (inventory.boot.loader == Loader::SystemdBoot) return {};
  const std::string pending = env_value(inventory, "next_entry");
  if (!pending.empty() && pending != kTrialId)
    return fail(ErrorCode::InvalidInput, "another one-shot is pending: next_entry=" + pending + " in grubenv");
  if (!env_value(inventory, "prev_saved_entry").empty())
    return fail(ErrorCode::InvalidInput,
                "grubenv has prev_saved_entry, an older kind of one-shot that is still pending");
  if (inventory.boot.grubenv && !inventory.boot.grubenv->damage.empty())
    return fail(ErrorCode::InvalidInput, inventory.boot.grubenv_path +
                                             " is damaged: " + inventory.boot.grubenv->damage.front() +
                                             "; make a new one with grub-editenv");
  return surroundings.one_shot_works(tree, inventory.boot.grubenv_path);
}

}  // namespace

std::optional<bool> day_ended(const std::string& day, WallTime now) {
  std::tm tm{};
  const char* end = strptime(day.c_str(), "%Y-%m-%d", &tm);
  if (day.size() != 10 || end == nullptr || *end != '\0') return std::nullopt;
  const int wanted = tm.tm_mday;
  const std::time_t start = timegm(&tm);
  if (start == -1 || tm.tm_mday != wanted) return std::nullopt;  // 31 November
  return to_microseconds(now) / 1'000'000 >= start + 86'400;
}

namespace {

// The kernel is not to start by itself any more. What started before the trial does, if it is another one.
Result<void> keep_away(const Tree& tree, const Inventory& inventory, const Request& request, Plan& plan) {
  Choices& choices = plan.choices;
  const std::string& bad = request.release;
  const std::string lasting = release_of_choice(inventory, tree, inventory.boot.lasting);
  const bool pinned = !choices.pinned.empty() && choices.pinned != bad;
  if (pinned) {
    // A pin that was for the trial alone stays where the distribution would start the bad one.
    if (choices.temporary && !choices.own_choice.empty() && choices.own_choice != bad) choices.pinned.clear();
    choices.temporary = false;
    choices.own_choice.clear();
    return {};
  }
  if (choices.pinned.empty() && !lasting.empty() && lasting != bad) return {};  // it does not start by itself
  std::string good = last_known_good(inventory, read_qualifications(tree), request.gpus, bad);
  if (good.empty() && inventory.running != bad) good = inventory.running;
  if (good.empty()) {
    plan.warnings.push_back("no other kernel was found good on this machine yet: " + bad +
                            " goes on being what boots; pin another one with gpuhealthctl kernel pin RELEASE");
    return {};
  }
  if (auto fine = check_kernel(tree, inventory, good); !fine) return fine;
  choices.pinned = good;
  choices.temporary = false;
  return {};
}

Result<void> check_known(const Inventory& inventory, const Qualifications& all, const std::string& release) {
  if (release == inventory.running || find_kernel(inventory, release) != nullptr || all.kernels.contains(release))
    return {};
  return fail(ErrorCode::NotFound, "there is no kernel " + release + " here, and none is known by that name");
}

// A verdict of the canaries is one only while they were asked.
Result<void> check_event(const Tree& tree, const Request& request) {
  if (!request.event) return {};
  const Qualifications all = read_qualifications(tree);
  const auto known = all.kernels.find(request.release);
  const auto state = known == all.kernels.end() ? QualificationState::Installed : known->second.state;
  if (next_state(state, *request.event)) return {};
  return fail(ErrorCode::InvalidInput, request.release + " is " + std::string(to_string(state)) + ": " +
                                           std::string(to_string(*request.event)) + " means nothing there");
}

Result<void> decide(const Tree& tree, const Inventory& inventory, const Request& request,
                    const Surroundings& surroundings, Plan& plan) {
  Choices& choices = plan.choices;
  const auto need_kernel = [&]() -> Result<void> { return check_kernel(tree, inventory, request.release); };
  switch (request.operation) {
    case Operation::Pin:
      if (auto fine = need_kernel(); !fine) return fine;
      if (!request.expires.empty() && !day_ended(request.expires, surroundings.now))
        return fail(ErrorCode::InvalidInput, "\"" + request.expires + "\" is not a day: give it as 2026-12-31 (UTC)");
      choices.pinned = request.release;
      choices.temporary = false;
      choices.own_choice.clear();
      choices.expires = request.expires;
      break;
    case Operation::Unpin:
      choices = Choices{};
      break;
    case Operation::Trial: {
      if (auto fine = need_kernel(); !fine) return fine;
      if (const auto all = read_qualifications(tree); request.by_itself && all.kernels.contains(request.release) &&
                                                      !may_try_by_itself(all.kernels.at(request.release)))
        return fail(ErrorCode::InvalidInput, request.release + " is not tried again by itself, it is " +
                                                 std::string(to_string(all.kernels.at(request.release).state)) +
                                                 "; a person may: gpuhealthctl kernel trial " + request.release);
      const std::string good = good_kernel(inventory, tree, choices, request.release);
      if (auto fine = check_trial(tree, inventory, good, request.release, surroundings); !fine) return fine;
      if (choices.pinned.empty()) choices.own_choice = release_of_choice(inventory, tree, inventory.boot.lasting);
      choices.temporary = choices.pinned.empty() || choices.temporary;
      choices.pinned = good;
      if (choices.trial.empty() && inventory.boot.grubenv && inventory.boot.grubenv->values.contains("next_entry"))
        choices.next_entry_before = env_value(inventory, "next_entry");
      choices.trial = request.release;
      break;
    }
    case Operation::Bless: {
      if (auto fine = check_event(tree, request); !fine) return fine;
      const Choices before = choices;
      choices.trial.clear();
      const bool keep = !choices.temporary && !choices.pinned.empty();
      choices.pinned = keep ? request.release : std::string();
      choices.temporary = false;
      choices.own_choice.clear();
      if (auto fine =
              choices == before ? check_known(inventory, read_qualifications(tree), request.release) : need_kernel();
          !fine)
        return fine;
      break;
    }
    case Operation::Reject: {
      if (auto fine = check_event(tree, request); !fine) return fine;
      if (auto fine = check_known(inventory, read_qualifications(tree), request.release); !fine) return fine;
      if (choices.trial == request.release) choices.trial.clear();
      if (auto fine = keep_away(tree, inventory, request, plan); !fine) return fine;
      break;
    }
    case Operation::TrialOver:
      choices.trial.clear();
      // One that did not take place leaves its pin: what boots meanwhile is what is known to be good.
      if (request.event == QualificationEvent::SeenOther) {
        if (auto fine = keep_away(tree, inventory, request, plan); !fine) return fine;
      }
      break;
    case Operation::HoldOn: {
      choices.own_choice.clear();
      const std::string good = good_kernel(inventory, tree, choices, "");
      if (auto fine = check_kernel(tree, inventory, good); !fine) return fine;
      choices.temporary = false;
      choices.pinned = good;
      choices.hold = true;
      break;
    }
    case Operation::HoldOff:
      choices = Choices{};
      break;
    case Operation::Protect:
      if (auto fine = need_kernel(); !fine) return fine;
      if (inventory.packages.manager != Ordering::Dpkg)
        return fail(ErrorCode::Unavailable,
                    "only apt lets one kernel be kept by a file; with dnf raise installonly_limit, with "
                    "zypper name it in multiversion.kernels");
      if (std::ranges::find(choices.protect, request.release) == choices.protect.end())
        choices.protect.push_back(request.release);
      break;
  }
  plan.wish = {choices.pinned, choices.trial};
  return {};
}

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

Choices read_choices(const Tree& tree) {
  Choices out;
  const auto text = tree.read(kChoicesFile, std::size_t{1} << 20);
  if (!text) return out;
  const Json json = Json::parse(*text, nullptr, false);
  if (!json.is_object()) return out;
  out.pinned = text_in(json, "pinned");
  out.trial = text_in(json, "trial");
  out.own_choice = text_in(json, "own_choice");
  out.expires = text_in(json, "expires");
  out.temporary = json.value("temporary", Json()) == Json(true);
  out.hold = json.value("hold", Json()) == Json(true);
  if (json.contains("next_entry_before") && json["next_entry_before"].is_string())
    out.next_entry_before = json["next_entry_before"].get<std::string>();
  if (json.contains("protect") && json["protect"].is_array())
    for (const Json& item : json["protect"])
      if (item.is_string()) out.protect.push_back(item.get<std::string>());
  return out;
}

std::string choices_text(const Choices& choices) {
  if (choices.pinned.empty() && choices.trial.empty() && !choices.hold && choices.protect.empty()) return {};
  Json json = {{"pinned", choices.pinned}, {"temporary", choices.temporary}, {"hold", choices.hold},
               {"trial", choices.trial},   {"expires", choices.expires},     {"protect", choices.protect}};
  if (!choices.own_choice.empty()) json["own_choice"] = choices.own_choice;
  if (choices.next_entry_before) json["next_entry_before"] = *choices.next_entry_before;
  return json.dump(1, ' ', true, Json::error_handler_t::replace) + "\n";
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

Result<std::string> note_installed(const Tree& tree, const std::string& release, const Surroundings& surroundings) {
  if (!is_plain_release(release)) return fail(ErrorCode::InvalidInput, "not a kernel release: " + release);
  const auto ledger = Ledger::open(tree, *surroundings.system);  // for its lock
  if (!ledger) return tl::unexpected<Error>(ledger.error());
  Qualifications all = read_qualifications(tree);
  Qualification& one = all.kernels[release];
  const Occasion occasion{surroundings.boot_id, surroundings.now, {}};
  // Under the same release there is another kernel now.
  (void)advance(one, QualificationEvent::BuildChanged, occasion);
  const Choices choices = read_choices(tree);
  if (choices.hold && choices.pinned != release) (void)advance(one, QualificationEvent::Held, occasion);
  std::string state(to_string(one.state));
  if (auto put =
          put_file(tree, *surroundings.system, std::string(kQualificationFile), {true, qualifications_text(all), 0640});
      !put)
    return tl::unexpected<Error>(put.error());
  return state;
}

Result<std::string> note_event(const Tree& tree, const std::string& release, QualificationEvent event,
                               const std::string& reason, const Surroundings& surroundings) {
  if (!is_plain_release(release)) return fail(ErrorCode::InvalidInput, "not a kernel release: " + release);
  const auto ledger = Ledger::open(tree, *surroundings.system);  // for its lock
  if (!ledger) return tl::unexpected<Error>(ledger.error());
  Qualifications all = read_qualifications(tree);
  Qualification& one = all.kernels[release];
  if (!advance(one, event, {surroundings.boot_id, surroundings.now, {}}, reason))
    return fail(ErrorCode::InvalidInput, release + " is " + std::string(to_string(one.state)) + ": " +
                                             std::string(to_string(event)) + " means nothing there");
  std::string state(to_string(one.state));
  if (auto put =
          put_file(tree, *surroundings.system, std::string(kQualificationFile), {true, qualifications_text(all), 0640});
      !put)
    return tl::unexpected<Error>(put.error());
  return state;
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
