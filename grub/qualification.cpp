// SPDX-License-Identifier: Apache-2.0
#include "grub/qualification.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "core/json.hpp"

namespace gpuhealth::grub {
namespace {

using Json = nlohmann::ordered_json;
using S = QualificationState;
using E = QualificationEvent;

constexpr std::array<std::string_view, 8> kStates = {"installed",  "held",    "trial-armed", "booted",
                                                     "qualifying", "blessed", "rejected",    "never-came-back"};
constexpr std::array<std::string_view, 12> kEvents = {"held",
                                                      "armed",
                                                      "seen-running",
                                                      "seen-other",
                                                      "seen-away",
                                                      "canaries-started",
                                                      "canaries-passed",
                                                      "canaries-failed",
                                                      "blessed-by-person",
                                                      "rejected-by-person",
                                                      "build-changed",
                                                      "asked"};

constexpr std::array kTransitions = std::to_array<Transition>({
    {S::Installed, E::Held, S::Held},
    {S::Installed, E::Armed, S::TrialArmed},
    {S::Installed, E::SeenRunning, S::Booted},
    {S::Held, E::Armed, S::TrialArmed},
    {S::Held, E::SeenRunning, S::Booted},
    {S::TrialArmed, E::SeenRunning, S::Booted},
    {S::TrialArmed, E::SeenOther, S::NeverCameBack},
    {S::TrialArmed, E::SeenAway, S::Installed},
    {S::Booted, E::CanariesStarted, S::Qualifying},
    {S::Booted, E::SeenOther, S::NeverCameBack},
    {S::Booted, E::SeenAway, S::Installed},
    {S::Booted, E::SeenRunning, S::Booted},  // once more, and still without a verdict
    {S::Qualifying, E::CanariesPassed, S::Blessed},
    {S::Qualifying, E::CanariesFailed, S::Rejected},
    {S::Qualifying, E::SeenOther, S::NeverCameBack},
    {S::Qualifying, E::SeenAway, S::Installed},
    {S::Qualifying, E::SeenRunning, S::Booted},  // a reboot in the middle, into the same kernel
    {S::Blessed, E::CanariesFailed, S::Rejected},
    {S::Rejected, E::Armed, S::TrialArmed},
    {S::NeverCameBack, E::Armed, S::TrialArmed},
    {S::NeverCameBack, E::SeenRunning, S::Booted},
    {S::Blessed, E::Armed, S::TrialArmed},
});

}  // namespace

std::string_view to_string(QualificationState state) {
  return kStates.at(static_cast<std::size_t>(state));
}
std::optional<QualificationState> qualification_state_from(std::string_view name) {
  for (std::size_t i = 0; i < kStates.size(); ++i)
    if (kStates.at(i) == name) return static_cast<S>(i);
  return std::nullopt;
}
std::string_view to_string(QualificationEvent event) {
  return kEvents.at(static_cast<std::size_t>(event));
}

std::span<const Transition> all_transitions() {
  return kTransitions;
}

std::optional<QualificationState> next_state(QualificationState state, QualificationEvent event) {
  // A person's word, and another build, hold in every state.
  if (event == E::Asked) return S::Booted;
  if (event == E::BlessedByPerson) return S::Blessed;
  if (event == E::RejectedByPerson) return S::Rejected;
  if (event == E::BuildChanged) return S::Installed;
  for (const Transition& row : kTransitions)
    if (row.from == state && row.event == event) return row.to;
  return std::nullopt;
}

bool advance(Qualification& qualification, QualificationEvent event, const Occasion& occasion, std::string reason) {
  // What is seen within the boot that armed the trial is not the trial's boot.
  const bool seen = event == E::SeenRunning || event == E::SeenOther || event == E::SeenAway;
  if (seen && !qualification.armed_in_boot.empty() && qualification.armed_in_boot == occasion.boot_id) return false;
  const auto to = next_state(qualification.state, event);
  if (!to) return false;
  if (event == E::BuildChanged) qualification = Qualification{};
  if (event == E::Armed) {
    qualification.armed_in_boot = occasion.boot_id;
    ++qualification.trials;
  }
  if (event == E::SeenRunning) qualification.seen_in_boot = occasion.boot_id;
  if (event == E::SeenAway && qualification.on_trial() && qualification.trials > 0) --qualification.trials;
  const bool under_way = *to == S::TrialArmed || *to == S::Booted || *to == S::Qualifying;
  if (!under_way || event == E::Asked) qualification.armed_in_boot.clear();
  qualification.state = *to;
  qualification.since = to_microseconds(occasion.now) / 1'000'000;
  qualification.reason = std::move(reason);
  if (!occasion.build.empty()) qualification.build = occasion.build;
  return true;
}

bool may_try_by_itself(const Qualification& qualification) {
  const bool fresh = qualification.state == S::Installed || qualification.state == S::Held;
  return fresh && qualification.trials == 0;
}

namespace {

std::optional<Became> running_one(const std::string& release, const Qualification& q, const BootSigns& signs) {
  if (q.seen_in_boot == signs.boot_id) return std::nullopt;
  const bool verdict = q.state == S::Blessed || q.state == S::Rejected;
  if (verdict || (q.on_trial() && q.armed_in_boot == signs.boot_id)) return std::nullopt;
  return Became{release, E::SeenRunning, q.on_trial() ? "its trial runs" : "it runs"};
}

std::optional<Became> other_one(const std::string& release, const Qualification& q, const BootSigns& signs) {
  const bool under_way = q.state == S::Booted || q.state == S::Qualifying;
  if (q.state == S::TrialArmed) {
    if (q.armed_in_boot == signs.boot_id) return std::nullopt;
    if (signs.one_shot_pending)
      return Became{release, E::SeenAway, "its trial did not take place: the boot loader did not take the one-shot"};
    if (signs.entry_started == false)
      return Became{release, E::SeenAway, "its trial did not take place: something else was chosen in the boot menu"};
    return Became{release, E::SeenOther,
                  "its trial was started and " + signs.running +
                      " runs now: it panicked, hung or was reset before gpuhealthd saw it"};
  }
  if (!under_way) return std::nullopt;
  if (!q.on_trial()) return Became{release, E::SeenAway, "another kernel was started before it had a verdict"};
  if (!signs.ended_in_order.empty() && signs.ended_in_order == q.seen_in_boot)
    return Became{release, E::SeenAway, "the machine was shut down in order before its canaries had a verdict"};
  return Became{release, E::SeenOther,
                q.state == S::Booted ? "it went down without a shutdown before its canaries began"
                                     : "it went down without a shutdown while its canaries ran"};
}

}  // namespace

std::vector<Became> what_became(const Qualifications& all, const BootSigns& signs) {
  std::vector<Became> out;
  if (signs.running.empty() || signs.boot_id.empty()) return out;
  const auto known = all.kernels.find(signs.running);
  Qualification running = known == all.kernels.end() ? Qualification{} : known->second;
  if (!running.build.empty() && !signs.build.empty() && running.build != signs.build) {
    out.push_back({signs.running, E::BuildChanged, "it is another build than the one that was known"});
    running = {};
  }
  if (auto one = running_one(signs.running, running, signs)) out.push_back(std::move(*one));
  for (const auto& [release, qualification] : all.kernels) {
    if (release == signs.running) continue;
    if (auto one = other_one(release, qualification, signs)) out.push_back(std::move(*one));
  }
  return out;
}

Qualifications read_qualifications(const Tree& tree) {
  Qualifications out;
  const auto text = tree.read(kQualificationFile, std::size_t{4} << 20);
  if (!text) return out;
  const Json json = parse_json<Json>(*text);
  if (!json.is_object() || !json.contains("kernels") || !json["kernels"].is_object()) return out;
  for (const auto& [release, value] : json["kernels"].items()) {
    if (!value.is_object()) continue;
    const auto word = [&](const char* key) {
      return value.contains(key) && value[key].is_string() ? value[key].get<std::string>() : std::string();
    };
    const auto number = [&](const char* key) {
      return value.contains(key) && value[key].is_number_integer() ? value[key].get<std::int64_t>() : std::int64_t{0};
    };
    const auto state = qualification_state_from(word("state"));
    if (!state) continue;
    out.kernels[release] = {*state,
                            word("armed_in_boot"),
                            word("build"),
                            number("since"),
                            static_cast<int>(std::clamp<std::int64_t>(number("trials"), 0, 1000)),
                            word("reason"),
                            word("seen_in_boot"),
                            {}};
    if (!value.contains("gpus") || !value["gpus"].is_array()) continue;
    for (const Json& gpu : value["gpus"])
      if (gpu.is_string()) out.kernels[release].gpus.push_back(gpu.get<std::string>());
  }
  return out;
}

std::string qualifications_text(const Qualifications& all) {
  if (all.kernels.empty()) return {};
  Json kernels = Json::object();
  for (const auto& [release, q] : all.kernels)
    kernels[release] = {{"state", to_string(q.state)},
                        {"armed_in_boot", q.armed_in_boot},
                        {"build", q.build},
                        {"since", q.since},
                        {"trials", q.trials},
                        {"reason", q.reason},
                        {"seen_in_boot", q.seen_in_boot},
                        {"gpus", q.gpus}};
  return Json{{"kernels", kernels}}.dump(1, ' ', true, Json::error_handler_t::replace) + "\n";
}

}  // namespace gpuhealth::grub
