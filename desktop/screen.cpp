// SPDX-License-Identifier: Apache-2.0
#include "desktop/screen.hpp"

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

namespace gpuhealth::desktop {
namespace {

constexpr const char* kServer = "org.freedesktop.Notifications";
constexpr const char* kPath = "/org/freedesktop/Notifications";
constexpr const char* kOwnName = "org.gpuhealth1.Notify";
constexpr std::uint64_t kDeadline = 3'000'000;
constexpr std::uint32_t kByCall = 3;  // NotificationClosed's reason: we closed it

// The body is markup where the server says so: our text has none, and foreign names may hold '<' and '&'.
std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else
      out += c;
  }
  return out;
}

const char* icon_of(Urgency urgency) {
  return urgency == Urgency::Critical ? "dialog-error"
         : urgency == Urgency::Normal ? "dialog-warning"
                                      : "video-display";
}

}  // namespace

Result<std::unique_ptr<Screen>> Screen::open(const std::string& address, Answers answers) {
  auto screen = std::make_unique<Screen>();
  screen->answers_ = std::move(answers);
  const int r = dbus::open_bus(screen->bus_, address, sd_bus_open_user);
  if (r < 0)
    return fail(ErrorCode::Unavailable, std::string("cannot connect to the session bus: ") + std::strerror(-r), -r);
  if (auto started = screen->start(); !started) return tl::unexpected(started.error());
  return screen;
}

Result<void> Screen::start() {
  const int named = sd_bus_request_name(bus_.get(), kOwnName, 0);
  if (named == -EEXIST) return fail(ErrorCode::Exhausted, "another gpuhealth-notify serves this session");
  if (named < 0)
    return fail(ErrorCode::Unavailable, std::string("the session bus does not answer: ") + std::strerror(-named));
  const auto listen = [&](const char* sender, const char* path, const char* interface, const char* member, auto* call) {
    sd_bus_slot* slot = nullptr;
    sd_bus_match_signal_async(bus_.get(), &slot, sender, path, interface, member, call, nullptr, this);
    matches_.emplace_back(slot);
  };
  listen(kServer, kPath, kServer, "NotificationClosed", on_closed);
  listen(kServer, kPath, kServer, "ActionInvoked", on_pressed);
  listen(kServer, kPath, "org.freedesktop.DBus.Properties", "PropertiesChanged", on_property);
  listen("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "NameOwnerChanged", on_owner);
  return {};
}

void Screen::look_at_server() {
  buttons_ = false;
  markup_ = false;
  dbus::BusError error;
  sd_bus_message* raw = nullptr;
  if (sd_bus_call_method(bus_.get(), kServer, kPath, kServer, "GetCapabilities", error.get(), &raw, "") < 0) {
    buttons_.reset();
    return;
  }
  const dbus::MessagePtr reply(raw);
  const char* word = nullptr;
  if (sd_bus_message_enter_container(raw, 'a', "s") < 0) return;
  while (sd_bus_message_read(raw, "s", &word) > 0) {
    if (std::strcmp(word, "actions") == 0) buttons_ = true;
    if (std::strcmp(word, "body-markup") == 0) markup_ = true;
  }
}

// Servers that hold notices back by themselves have no such property.
bool Screen::disturbing_allowed() const {
  dbus::BusError error;
  int inhibited = 0;
  const int r =
      sd_bus_get_property_trivial(bus_.get(), kServer, kPath, kServer, "Inhibited", error.get(), 'b', &inhibited);
  return r < 0 || inhibited == 0;
}

std::uint32_t Screen::notify(const Notice& notice, std::uint32_t replaces) {
  sd_bus_message* raw = nullptr;
  if (sd_bus_message_new_method_call(bus_.get(), &raw, kServer, kPath, kServer, "Notify") < 0) return 0;
  const dbus::MessagePtr message(raw);
  sd_bus_message_append(raw, "susss", "GPU health", replaces, icon_of(notice.urgency), notice.title.c_str(),
                        (markup_ ? escaped(notice.body) : notice.body).c_str());
  sd_bus_message_open_container(raw, 'a', "s");
  if (buttons_.value_or(false)) {
    for (const auto& button : notice.buttons) {
      // A click on the notice itself means its first button, where that only shows something.
      if (button.key == "details") sd_bus_message_append(raw, "ss", "default", button.label.c_str());
      sd_bus_message_append(raw, "ss", button.key.c_str(), button.label.c_str());
    }
  }
  sd_bus_message_close_container(raw);
  // The server's own time to live, but for what may cost work: that stays until somebody has seen it.
  const int time = notice.urgency == Urgency::Critical ? 0 : -1;
  sd_bus_message_append(raw, "a{sv}i", 3, "urgency", "y", static_cast<int>(notice.urgency), "desktop-entry", "s",
                        "gpuhealth-notify", "category", "s", "device.error", time);
  dbus::BusError error;
  sd_bus_message* answer = nullptr;
  if (sd_bus_call(bus_.get(), raw, kDeadline, error.get(), &answer) < 0) return 0;
  const dbus::MessagePtr reply(answer);
  std::uint32_t id = 0;
  return sd_bus_message_read(answer, "u", &id) < 0 ? 0 : id;
}

void Screen::close(std::uint32_t id) {
  sd_bus_call_method_async(bus_.get(), nullptr, kServer, kPath, kServer, "CloseNotification", nullptr, nullptr, "u",
                           id);
}

void Screen::apply(const std::map<std::string, Notice>& wanted) {
  for (auto it = shown_.begin(); it != shown_.end();) {
    if (wanted.contains(it->first)) {
      ++it;
      continue;
    }
    close(it->second.id);
    it = shown_.erase(it);
  }
  std::optional<bool> allowed;
  for (const auto& [key, notice] : wanted) {
    const auto old = shown_.find(key);
    if (old != shown_.end() && old->second.notice == notice) continue;
    if (!allowed) allowed = disturbing_allowed();
    if (!*allowed) continue;
    if (!buttons_) look_at_server();
    const auto id = notify(notice, old == shown_.end() ? 0 : old->second.id);
    if (id != 0) shown_.insert_or_assign(key, Shown{id, notice});
  }
}

bool Screen::process() {
  int r = 0;
  do {
    r = sd_bus_process(bus_.get(), nullptr);
  } while (r > 0);
  return r >= 0;
}

std::string Screen::key_of(std::uint32_t id) const {
  for (const auto& [key, shown] : shown_) {
    if (shown.id == id) return key;
  }
  return {};
}

int Screen::on_closed(sd_bus_message* m, void* self, sd_bus_error* /*error*/) {
  auto& screen = *static_cast<Screen*>(self);
  std::uint32_t id = 0;
  std::uint32_t reason = 0;
  if (sd_bus_message_read(m, "uu", &id, &reason) < 0) return 0;
  const auto key = screen.key_of(id);
  if (key.empty() || reason == kByCall) return 0;
  screen.shown_.erase(key);
  screen.answers_.dismissed(key);
  return 0;
}

int Screen::on_pressed(sd_bus_message* m, void* self, sd_bus_error* /*error*/) {
  auto& screen = *static_cast<Screen*>(self);
  std::uint32_t id = 0;
  const char* button = nullptr;
  if (sd_bus_message_read(m, "us", &id, &button) < 0) return 0;
  const auto key = screen.key_of(id);
  if (!key.empty()) screen.answers_.pressed(key, button);
  return 0;
}

int Screen::on_owner(sd_bus_message* m, void* self, sd_bus_error* /*error*/) {
  auto& screen = *static_cast<Screen*>(self);
  const char* name = nullptr;
  const char* before = nullptr;
  const char* after = nullptr;
  if (sd_bus_message_read(m, "sss", &name, &before, &after) < 0 || std::strcmp(name, kServer) != 0) return 0;
  // A new server knows nothing of what the old one showed.
  if (*before != '\0') screen.shown_.clear();
  screen.buttons_.reset();
  if (*after != '\0') screen.answers_.again();
  return 0;
}

int Screen::on_property(sd_bus_message* /*m*/, void* self, sd_bus_error* /*error*/) {
  static_cast<Screen*>(self)->answers_.again();
  return 0;
}

}  // namespace gpuhealth::desktop
