// SPDX-License-Identifier: Apache-2.0
#include "grub/decide.hpp"

#include <algorithm>
#include <tuple>

#include "grub/known_faults.hpp"
#include "grub/last_good.hpp"
#include "grub/preflight.hpp"
#include "grub/qualification.hpp"

namespace gpuhealth::grub {
namespace {

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

}  // namespace

std::string env_value(const Inventory& inventory, const std::string& key) {
  if (!inventory.boot.grubenv) return {};
  const auto found = inventory.boot.grubenv->values.find(key);
  return found == inventory.boot.grubenv->values.end() ? std::string() : found->second;
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
      if (choices.hold) std::tie(choices.held_pin, choices.held_expires) = std::tie(choices.pinned, choices.expires);
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
      if (!choices.held_pin.empty()) choices.held_pin = request.release;
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
      if (!choices.hold && !choices.temporary)
        std::tie(choices.held_pin, choices.held_expires) = std::tie(choices.pinned, choices.expires);
      choices.temporary = false;
      choices.pinned = good;
      choices.expires.clear();
      choices.hold = true;
      break;
    }
    case Operation::HoldOff:
      if (!choices.hold) break;
      choices.hold = false;
      if (!choices.held_pin.empty()) {
        choices.pinned = choices.held_pin;
      } else if (choices.trial.empty()) {
        choices.pinned.clear();
      } else {
        choices.temporary = true;  // until the trial is over
      }
      choices.expires = choices.held_expires;
      choices.held_pin.clear();
      choices.held_expires.clear();
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

}  // namespace gpuhealth::grub
