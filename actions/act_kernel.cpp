// SPDX-License-Identifier: Apache-2.0
// gpuhealth-act kernel …: changes of the boot menu.
#include <cstdio>
#include <string>
#include <vector>

#include "actions/act.hpp"
#include "grub/at_start.hpp"
#include "grub/known_faults.hpp"
#include "grub/last_good.hpp"
#include "grub/operations.hpp"

namespace gpuhealth::actions {
namespace {

using namespace gpuhealth::grub;

Json words(const std::vector<std::string>& list) {
  return list.empty() ? Json::array() : Json(list);
}

int done(const Outcome& out) {
  const auto or_null = [](const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); };
  print({{"operation", to_string(out.operation)},
         {"release", or_null(out.release)},
         {"steps", words(out.steps)},
         {"changed", words(out.changed)},
         {"undone", words(out.undone)},
         {"next", or_null(out.next)},
         {"default", or_null(out.lasting)},
         {"ledger", or_null(out.ledger)},
         {"warnings", words(out.warnings)}});
  return 0;
}

struct Line {
  std::string root = "/", advisories, ended_in_order;
  Request request;
  std::vector<std::string> gfx;
  std::vector<std::string> words;  // what is no option
  bool by_canaries = false;
};

std::string* field_of(Line& line, const std::string& word) {
  if (word == "--root") return &line.root;
  if (word == "--expires") return &line.request.expires;
  if (word == "--reason") return &line.request.reason;
  if (word == "--advisories") return &line.advisories;
  if (word == "--ended-in-order") return &line.ended_in_order;
  return nullptr;
}

bool read_line(const std::vector<std::string>& arguments, Line& out) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (!word.starts_with("--")) {
      out.words.push_back(word);
      continue;
    }
    if (word == "--by-canaries" || word == "--by-rule") {
      (word == "--by-rule" ? out.request.by_itself : out.by_canaries) = true;
      continue;
    }
    if (++i == arguments.size()) return false;
    const std::string& value = arguments[i];
    if (word == "--gpu") {
      out.request.gpus.push_back(value);
    } else if (word == "--gfx") {
      out.gfx.push_back(value);
    } else if (std::string* field = field_of(out, word)) {
      *field = value;
    } else {
      return false;
    }
  }
  return !out.words.empty() && out.words.size() <= 2;
}

int started(const Tree& tree, const Surroundings& surroundings, const std::string& ended_in_order) {
  const auto report = at_start(tree, surroundings, ended_in_order);
  if (!report) return complain(report.error());
  Json became = Json::array();
  for (const Became& one : report->became)
    became.push_back({{"release", one.release}, {"event", to_string(one.event)}, {"reason", one.reason}});
  print({{"operation", "start"},
         {"running", report->running},
         {"state", to_string(report->state)},
         {"on_trial", report->on_trial},
         {"undone", words(report->undone)},
         {"became", became},
         {"cleared", report->cleared},
         {"warnings", words(report->warnings)}});
  return 0;
}

// What the daemon tells over D-Bus. Reads alone.
int shown(const Tree& tree, const std::vector<std::string>& gfx, const std::string& advisories) {
  const auto inventory = take_inventory(tree);
  if (!inventory) return complain(inventory.error());
  const Qualifications all = read_qualifications(tree);
  const Choices choices = read_choices(tree);
  const std::string& running = inventory->running;
  const auto known = all.kernels.find(running);
  const Qualification state = known == all.kernels.end() ? Qualification{} : known->second;
  const AdvisorySet set = load_advisories(advisories.empty() ? find_advisories(tree.root()) : advisories);
  Json ids = Json::array();
  if (const Kernel* kernel = find_kernel(*inventory, running)) {
    for (const AdvisoryMatch& found : match(set.advisories, question_about(*inventory, *kernel, gfx)))
      if (found.applies == Tri::Yes) ids.push_back(found.advisory->id);
  }
  print({{"running", running},
         {"state", to_string(state.state)},
         {"on_trial", state.on_trial()},
         {"reason", state.reason},
         {"next", release_of_choice(*inventory, tree, inventory->boot.next)},
         {"next_reason", inventory->boot.next.reason},
         {"default", release_of_choice(*inventory, tree, inventory->boot.lasting)},
         {"last_known_good", last_known_good(*inventory, all, {})},
         {"pinned", choices.pinned},
         {"trial", choices.trial},
         {"hold", choices.hold},
         {"advisories", ids}});
  return 0;
}

int noted(std::string_view operation, const std::string& release, const Result<std::string>& state) {
  if (!state) return complain(state.error());
  print({{"operation", operation}, {"release", release}, {"state", *state}});
  return 0;
}

}  // namespace

int act_kernel(const std::vector<std::string>& arguments) {
  Line line;
  if (!read_line(arguments, line)) return usage();
  const std::string& verb = line.words.front();
  const std::string release = line.words.size() > 1 ? line.words[1] : std::string();
  const auto operation = operation_from(verb);
  const auto tree = Tree::open(line.root);
  if (!tree) return complain(tree.error());
  System system;
  const Surroundings surroundings = real_surroundings(system);
  if (operation && *operation != Operation::TrialOver) {
    line.request.operation = *operation;
    line.request.release = release;
    if (line.by_canaries)
      line.request.event =
          *operation == Operation::Bless ? QualificationEvent::CanariesPassed : QualificationEvent::CanariesFailed;
    const auto out = perform(*tree, line.request, surroundings);
    return out ? done(*out) : complain(out.error());
  }
  if (verb == "start" && release.empty()) return started(*tree, surroundings, line.ended_in_order);
  if (verb == "show" && release.empty()) return shown(*tree, line.gfx, line.advisories);
  if (verb == "recover" && release.empty()) {
    const auto undone = recover(*tree, surroundings);
    if (!undone) return complain(undone.error());
    print({{"operation", "recover"}, {"undone", words(*undone)}});
    return 0;
  }
  if (release.empty()) return usage();
  if (verb == "installed") return noted(verb, release, note_installed(*tree, release, surroundings));
  const auto event = verb == "qualifying" ? std::optional(QualificationEvent::CanariesStarted)
                     : verb == "qualify"  ? std::optional(QualificationEvent::Asked)
                                          : std::nullopt;
  if (!event) return usage();
  return noted(verb, release, note_event(*tree, release, *event, line.request.reason, surroundings));
}

}  // namespace gpuhealth::actions
