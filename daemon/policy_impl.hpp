// SPDX-License-Identifier: Apache-2.0
// What the parts of the policy service share. Included by policy_*.cpp alone.
#pragma once

#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include "daemon/act_runner.hpp"
#include "daemon/folder_watch.hpp"
#include "daemon/policy_service.hpp"
#include "policy/layers.hpp"

namespace gpuhealth::daemon {

struct PolicyService::Impl {
  Impl(boost::asio::io_context& context, const Clock& c, Options o, Handlers h);

  boost::asio::io_context& io;
  const Clock& clock;
  Options options;
  Handlers on;
  ActRunner runner;
  actions::ActionService actions;
  FolderWatch folders;
  std::shared_ptr<int> alive = std::make_shared<int>(0);

  // --- policies
  policy::PolicyStore store;
  policy::MachineFacts facts;
  policy::State state;
  std::deque<policy::PastEvent> events;
  Duration window{};  // how far back rules look
  std::string files_seen;
  std::vector<std::string> notes_said;
  bool wants_advisories = false, wants_battery = false;
  bool advisories_are_old = true;
  std::vector<std::string> advisories;
  std::optional<bool> on_battery;
  SteadyTime battery_at, safe_mode_at, saved_at;
  bool devices_known = false;  // before, nothing is decided: a GPU that was not found yet is not gone
  bool look_is_due = false;
  std::string safe_mode;
  Standing told;
  WallTime started;

  // --- what is shown
  std::deque<dbus::ActionView> decisions;  // decided and not done, oldest first
  std::size_t last_decision = 0;
  struct Shown {
    std::string id, state;
  };
  std::map<std::size_t, Shown> shown;  // records, by number

  // --- fleet bundles
  std::string bundle, sound_bundle;  // where `current` leads, now and when the set was last sound
  bool busy_with_bundle = false;
  bool inbox_again = false;

  void start();
  void load_state();
  void save_state(bool durable);
  Result<void> reload();
  void read_machine();
  std::vector<std::string> watched() const;
  void folders_changed();
  std::string fingerprint() const;
  void look_at_safe_mode();
  void tell_standing();

  policy::Snapshot snapshot();
  void look();
  void look_soon();
  void take(const policy::Decision& decision);
  void submit(const policy::Decision& decision);
  void show(const policy::Decision& decision);
  void tell_desktop(const ActionRequest& request);
  void record_changed(const actions::ActionRecord& record);
  void forget_old_records();
  [[nodiscard]] std::string label(const std::string& device) const;
  void prune_events(WallTime now);

  void look_at_bundle();
  [[nodiscard]] bool is_new_bundle() const;  // put in force within the last minutes
  void look_into_inbox();
  void installed(const std::string& path, const std::string& said);
  void judge_bundle(const policy::Decision& decision);
  void roll_back(const std::string& why);

  static actions::ActionService::Handlers handlers(Impl& self);
};

// JSON of a condition, for hooks, mails and bundles of evidence.
std::string condition_json(const Condition& condition);

}  // namespace gpuhealth::daemon
