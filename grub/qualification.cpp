// SPDX-License-Identifier: Apache-2.0
#include "grub/qualification.hpp"

#include <nlohmann/json.hpp>

namespace gpuhealth::grub {
namespace {

using Json = nlohmann::ordered_json;
using S = QualificationState;
using E = QualificationEvent;

constexpr std::array<std::string_view, 8> kStates = {"installed",  "held",    "trial-armed", "booted",
                                                     "qualifying", "blessed", "rejected",    "never-came-back"};
constexpr std::array<std::string_view, 11> kEvents = {"held",
                                                      "armed",
                                                      "seen-running",
                                                      "seen-other",
                                                      "seen-away",
                                                      "canaries-started",
                                                      "canaries-passed",
                                                      "canaries-failed",
                                                      "blessed-by-person",
                                                      "rejected-by-person",
                                                      "build-changed"};

constexpr std::array kTransitions = std::to_array<Transition>({
    {S::Installed, E::Held, S::Held},
    {S::Installed, E::Armed, S::TrialArmed},
    {S::Installed, E::SeenRunning, S::Booted},
    {S::Held, E::Armed, S::TrialArmed},
    {S::Held, E::SeenRunning, S::Booted},
    {S::TrialArmed, E::SeenRunning, S::Booted},
    {S::TrialArmed, E::SeenOther, S::NeverCameBack},
    {S::Booted, E::CanariesStarted, S::Qualifying},
    {S::Booted, E::SeenOther, S::NeverCameBack},
    {S::Qualifying, E::CanariesPassed, S::Blessed},
    {S::Qualifying, E::CanariesFailed, S::Rejected},
    {S::Qualifying, E::SeenOther, S::NeverCameBack},
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
  if (event == E::BlessedByPerson) return S::Blessed;
  if (event == E::RejectedByPerson) return S::Rejected;
  if (event == E::BuildChanged) return S::Installed;
  for (const Transition& row : kTransitions)
    if (row.from == state && row.event == event) return row.to;
  return std::nullopt;
}

bool advance(Qualification& qualification, QualificationEvent event, const Occasion& occasion, std::string reason) {
  // What is seen within the boot that armed the trial is not the trial's boot.
  const bool seen = event == E::SeenRunning || event == E::SeenOther;
  if (seen && !qualification.armed_in_boot.empty() && qualification.armed_in_boot == occasion.boot_id) return false;
  const auto to = next_state(qualification.state, event);
  if (!to) return false;
  if (event == E::BuildChanged) qualification = Qualification{};
  if (event == E::Armed) {
    qualification.armed_in_boot = occasion.boot_id;
    ++qualification.trials;
  }
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

Qualifications read_qualifications(const Tree& tree) {
  Qualifications out;
  const auto text = tree.read(kQualificationFile, std::size_t{4} << 20);
  if (!text) return out;
  const Json json = Json::parse(*text, nullptr, false);
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
                            static_cast<int>(std::min<std::int64_t>(number("trials"), 1000)),
                            word("reason")};
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
                        {"reason", q.reason}};
  return Json{{"kernels", kernels}}.dump(1, ' ', true, Json::error_handler_t::replace) + "\n";
}

}  // namespace gpuhealth::grub
