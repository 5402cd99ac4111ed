// SPDX-License-Identifier: Apache-2.0
#include "desktop/notices.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "dbus/names.hpp"

namespace gpuhealth::desktop {
namespace {

using dbus::flag;
using dbus::number;
using dbus::text;

constexpr std::chrono::hours kNotNow{24};
constexpr const char* kFailure = "failure";

struct Text {
  ConditionType type;
  const char* title;
  const char* body;
};
constexpr auto kTexts = std::to_array<Text>({
#define NOTICE(id, title, body) {ConditionType::id, title, body},
#include "desktop/texts.def"
#undef NOTICE
});

// "Radeon RX 7900 XTX at 0000:03:00.0": an address tells such a person nothing.
std::string card_name(const std::string& label) {
  const auto at = label.rfind(" at ");
  const auto name = at == std::string::npos ? label : label.substr(0, at);
  return name.empty() ? "The graphics card" : name;
}

std::string filled(std::string text, const std::string& gpu) {
  const std::string_view place = "{gpu}";
  for (auto at = text.find(place); at != std::string::npos; at = text.find(place, at + gpu.size()))
    text.replace(at, place.size(), gpu);
  return text;
}

Urgency urgency_of(Severity severity) {
  switch (severity) {
    case Severity::Critical:
      return Urgency::Critical;
    case Severity::Warning:
      return Urgency::Normal;
    case Severity::Info:
      break;
  }
  return Urgency::Low;
}

Notice notice_of(const Condition& c) {
  const auto* row = std::ranges::find(kTexts, c.type, &Text::type);
  const std::string gpu = card_name(c.device_label);
  const auto& table = info(c.type);
  Notice out;
  out.title = row != kTexts.end() ? row->title : std::string(table.title);
  out.body = row != kTexts.end() ? filled(row->body, gpu) : gpu + ": " + std::string(table.meaning);
  out.urgency = urgency_of(c.severity);
  return out;
}

// What another kernel may cure: the speed of a card that is sound.
bool may_be_the_kernel(ConditionType type) {
  return type == ConditionType::HostCopyStall || type == ConditionType::ThroughputCollapse ||
         type == ConditionType::PerformanceDrift || type == ConditionType::DriverMissing;
}

const dbus::Properties* kernel_of(const dbus::Snapshot& s) {
  const auto it = std::ranges::find(s.others, dbus::kKernelInterface, &dbus::LooseObject::interface);
  return it == s.others.end() ? nullptr : &it->properties;
}

// The kernel to try; empty where there is none, or something is under way or decided already.
std::string other_kernel(const dbus::Properties* kernel) {
  if (kernel == nullptr || !text(*kernel, "Trial").empty() || !text(*kernel, "Pinned").empty()) return {};
  auto good = text(*kernel, "LastKnownGood");
  return good == text(*kernel, "Running") ? std::string() : good;
}

// Done by the daemon, and still in force; said once, and not again at each log-in.
bool is_news(const dbus::Properties& action, bool seen, WallTime now) {
  const auto state = text(action, "State");
  if (state == "applied" || state == "failed-to-revert") return true;
  const auto acted = wall_from_microseconds(static_cast<std::int64_t>(number(action, "Acted")));
  return state == "confirmed" && (seen || now - acted < kNotNow);
}

Notice notice_of_action(const dbus::Properties& action) {
  const std::string gpu = card_name(text(action, "DeviceLabel"));
  const auto kind = text(action, "Kind");
  const auto before = text(action, "Before");
  const auto after = text(action, "After").empty() ? text(action, "Wanted") : text(action, "After");
  Notice out;
  if (text(action, "State") == "failed-to-revert") {
    out.title = "A setting could not be brought back";
    out.body = "A setting of " + gpu +
               " was changed for a while, and could not be set back. It is tried again when the "
               "computer starts.";
    out.urgency = Urgency::Critical;
    return out;
  }
  out.title =
      kind == "power-cap" ? "Your graphics card was given less power" : "A setting of your graphics card was changed";
  std::string what = text(action, "Text");
  if (what.empty()) what = "A setting (" + kind + ") was changed";
  out.body = gpu + ": " + what;
  if (!before.empty() && !after.empty()) out.body += " (" + before + " before, " + after + " now)";
  out.body += text(action, "Reason").empty() ? "." : ". The reason: " + text(action, "Reason");
  out.urgency = Urgency::Low;
  return out;
}

}  // namespace

void Notices::put(std::map<std::string, Entry>& into, const std::string& key, Notice notice,
                  std::map<std::string, Wish> wishes) {
  Entry entry;
  if (const auto old = entries_.find(key); old != entries_.end()) entry = std::move(old->second);
  entry.notice = std::move(notice);
  entry.wishes = std::move(wishes);
  into.insert_or_assign(key, std::move(entry));
}

void Notices::update(const std::optional<dbus::Snapshot>& snapshot, WallTime now) {
  if (!snapshot) return;
  std::map<std::string, Entry> next;
  const auto* kernel = kernel_of(*snapshot);
  const auto other = other_kernel(kernel);
  for (const auto& c : snapshot->conditions) {
    if (c.state != ConditionState::Confirmed || c.acknowledged) continue;
    Notice notice = notice_of(c);
    std::map<std::string, Wish> wishes = {{"details", {Wish::Kind::Details, c.id}}, {"later", {}}};
    notice.buttons = {{"details", "Details"}};
    if (!other.empty() && may_be_the_kernel(c.type)) {
      notice.buttons.push_back({"try", "Try the other kernel at next boot"});
      wishes["try"] = {Wish::Kind::TryKernel, other};
    }
    notice.buttons.push_back({"later", "Not now"});
    put(next, "condition:" + c.id, std::move(notice), std::move(wishes));
  }
  for (const auto& o : snapshot->others) {
    if (o.interface != dbus::kActionInterface) continue;
    const auto id = text(o.properties, "Id");
    if (!is_news(o.properties, seen_actions_.contains(id), now)) continue;
    seen_actions_.insert(id);
    Notice notice = notice_of_action(o.properties);
    std::map<std::string, Wish> wishes;
    if (flag(o.properties, "Reversible")) {
      notice.buttons.push_back({"undo", "Undo"});
      wishes["undo"] = {Wish::Kind::Revert, id};
    }
    if (text(o.properties, "State") == "applied") {
      notice.buttons.push_back({"keep", "Keep it"});
      wishes["keep"] = {Wish::Kind::Keep, id};
    }
    put(next, "action:" + id, std::move(notice), std::move(wishes));
  }
  if (kernel != nullptr && !text(*kernel, "Trial").empty()) {
    const auto release = text(*kernel, "Trial");
    Notice notice{"At its next start, the computer tries another kernel",
                  "The kernel " + release +
                      " is started once, to see whether the graphics card is faster with it. If it "
                      "is not, or does not start, the computer goes back by itself.",
                  Urgency::Low,
                  {{"undo", "Undo"}}};
    put(next, "trial:" + release, std::move(notice), {{"undo", {Wish::Kind::UndoTrial, release}}});
  }
  if (const auto failure = entries_.find(kFailure); failure != entries_.end())
    next.insert_or_assign(kFailure, std::move(failure->second));
  entries_ = std::move(next);
}

std::map<std::string, Notice> Notices::wanted(WallTime now) const {
  std::map<std::string, Notice> out;
  for (const auto& [key, entry] : entries_) {
    const bool put_away = entry.dismissed && entry.notice.urgency <= *entry.dismissed;
    const bool hidden = now < entry.hidden_until && put_away;
    // After "not now" it comes back when the day is over; what was closed does not.
    const bool over = to_microseconds(entry.hidden_until) > 0 && now >= entry.hidden_until;
    if (hidden || (put_away && !over)) continue;
    out.emplace(key, entry.notice);
  }
  return out;
}

void Notices::dismissed(const std::string& key, WallTime now) {
  const auto it = entries_.find(key);
  if (it == entries_.end()) return;
  if (key == kFailure) {
    entries_.erase(it);
    return;
  }
  if (now < it->second.hidden_until) return;  // the server closes a notice whose button was pressed
  it->second.dismissed = it->second.notice.urgency;
  it->second.hidden_until = {};
}

Wish Notices::pressed(const std::string& key, std::string_view button, WallTime now) {
  const auto it = entries_.find(key);
  if (it == entries_.end()) return {};
  auto& entry = it->second;
  // A click on the notice itself.
  const auto name = button == "default" ? std::string("details") : std::string(button);
  const auto wish = entry.wishes.find(name);
  if (wish == entry.wishes.end()) return {};
  const Wish out = wish->second;
  entry.dismissed = entry.notice.urgency;
  if (name == "later") entry.hidden_until = now + kNotNow;
  return out;
}

void Notices::failed(const Error& why) {
  Notice notice{"That did not work", why.text, Urgency::Normal, {}};
  if (why.code == ErrorCode::NotPermitted)
    notice.body = "You are not allowed to change this on this computer. Ask whoever looks after it.";
  if (why.code == ErrorCode::Unavailable)
    notice.body = "The program that looks after the graphics cards does not answer. Try again in a moment.";
  entries_.insert_or_assign(kFailure, Entry{std::move(notice), {}, std::nullopt, {}});
}

}  // namespace gpuhealth::desktop
