// SPDX-License-Identifier: Apache-2.0
// Which notifications should be on the screen, from what the daemon says and what the person has pressed. Pure.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "dbus/client.hpp"

namespace gpuhealth::desktop {

enum class Urgency : std::uint8_t { Low, Normal, Critical };  // as the notification specification numbers them

struct Button {
  std::string key;
  std::string label;
  friend bool operator==(const Button&, const Button&) = default;
};

// Text as it is to be read, without markup.
struct Notice {
  std::string title;
  std::string body;
  Urgency urgency = Urgency::Normal;
  std::vector<Button> buttons;
  friend bool operator==(const Notice&, const Notice&) = default;
};

// What a button asks for.
struct Wish {
  enum class Kind : std::uint8_t { Nothing, Details, TryKernel, UndoTrial, Revert, Keep } kind = Kind::Nothing;
  std::string what;  // id of a condition or an action; a kernel's release
  friend bool operator==(const Wish&, const Wish&) = default;
};

class Notices {
 public:
  // Nothing: the daemon does not answer. What was wrong may still be, so that the notices stay.
  void update(const std::optional<dbus::Snapshot>& snapshot, WallTime now);
  // By key, which stays for the life of a condition or action.
  [[nodiscard]] std::map<std::string, Notice> wanted(WallTime now) const;

  // The person closed it, or it ran out: it is not shown again, unless it gets worse.
  void dismissed(const std::string& key, WallTime now);
  // A button. "Not now" hides the notice for a day.
  Wish pressed(const std::string& key, std::string_view button, WallTime now);
  // What was asked for did not work.
  void failed(const Error& why);

 private:
  struct Entry {
    Notice notice;
    std::map<std::string, Wish> wishes;
    std::optional<Urgency> dismissed;  // at which urgency
    WallTime hidden_until;
  };
  void put(std::map<std::string, Entry>& into, const std::string& key, Notice notice,
           std::map<std::string, Wish> wishes);

  std::map<std::string, Entry> entries_;
  std::set<std::string> seen_actions_;
};

}  // namespace gpuhealth::desktop
