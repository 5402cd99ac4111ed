// SPDX-License-Identifier: Apache-2.0
// What was asked of us and holds, as it lies in a file.
#include <ctime>

#include <nlohmann/json.hpp>

#include "core/json.hpp"
#include "grub/operations.hpp"

namespace gpuhealth::grub {
namespace {

using Json = nlohmann::ordered_json;

std::string text_in(const Json& json, const char* key) {
  return json.contains(key) && json[key].is_string() ? json[key].get<std::string>() : std::string();
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

Choices read_choices(const Tree& tree) {
  Choices out;
  const auto text = tree.read(kChoicesFile, std::size_t{1} << 20);
  if (!text) return out;
  const Json json = parse_json<Json>(*text);
  if (!json.is_object()) return out;
  out.pinned = text_in(json, "pinned");
  out.trial = text_in(json, "trial");
  out.own_choice = text_in(json, "own_choice");
  out.expires = text_in(json, "expires");
  out.held_pin = text_in(json, "held_pin");
  out.held_expires = text_in(json, "held_expires");
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
  if (!choices.held_pin.empty()) json["held_pin"] = choices.held_pin;
  if (!choices.held_expires.empty()) json["held_expires"] = choices.held_expires;
  if (choices.next_entry_before) json["next_entry_before"] = *choices.next_entry_before;
  return json.dump(1, ' ', true, Json::error_handler_t::replace) + "\n";
}

}  // namespace gpuhealth::grub
