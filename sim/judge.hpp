// SPDX-License-Identifier: Apache-2.0
// Watches what the daemon says while a scenario plays, and holds it to the scenario's expectations. A confirmed warning
// or critical condition that no expectation names is a false alarm, and a failure.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "canary/measurement.hpp"
#include "dbus/client.hpp"
#include "sim/player.hpp"
#include "sim/scenario.hpp"
#include "sim/stage.hpp"
#include "store/ledger.hpp"

namespace gpuhealth::sim {

struct Finding {
  std::string text;  // the expectation, or what was not expected
  int line = 0;      // in the scenario; 0: of no line
  bool held = false;
  std::string seen;
};

class Judge {
 public:
  Judge(const Scenario& scenario, const Player& player);

  // Asks the daemon; one that does not answer (stopped, no bus) is no finding by itself.
  void look(double now_s, const std::string& bus_address);
  // After the end. `second` turns a time of an access into one of the scenario.
  // `canary_results`: the daemon's file of measurements.
  std::vector<Finding> conclude(const std::vector<Access>& accesses,
                                const std::function<double(std::chrono::steady_clock::time_point)>& second,
                                const std::filesystem::path& canary_results,
                                const std::vector<LedgerEntry>& ledger) const;

  // All that is to happen has: conditions confirmed and cleared, canaries measured. What is never to happen, and what
  // is counted or held until a time, is not waited for.
  [[nodiscard]] bool settled(const std::filesystem::path& canary_results) const;

  [[nodiscard]] unsigned answers() const { return answers_; }

 private:
  struct Seen {
    Condition condition;
    std::string card;
    double confirmed_s = 0;
    double cleared_s = kNever;
  };

  [[nodiscard]] std::string card_of(const std::string& device) const;
  void look_at_conditions(double now_s, const std::vector<Condition>& conditions);
  void look_at_devices(double now_s, const std::vector<dbus::DeviceView>& devices);
  void look_at_events(double now_s, const std::vector<Event>& events);
  [[nodiscard]] Finding judge(const ExpectEvent& wanted) const;
  [[nodiscard]] Finding judge(const ExpectCondition& wanted) const;
  [[nodiscard]] static Finding judge(const ExpectLedger& wanted, const std::vector<LedgerEntry>& ledger);
  [[nodiscard]] Finding judge(const ExpectCanary& wanted, const std::vector<canary::Measurement>& lines) const;
  [[nodiscard]] Finding judge(const ExpectAccess& wanted, const std::vector<Access>& accesses,
                              const std::function<double(std::chrono::steady_clock::time_point)>& second) const;

  const Scenario& scenario_;
  const Player& player_;
  std::map<std::string, Seen> seen_;             // by condition id
  std::map<std::size_t, std::string> readings_;  // by expectation: what was seen, "" once it held
  std::map<std::size_t, std::string> devices_;   // likewise
  std::map<std::size_t, bool> decided_;
  struct SeenEvent {
    Event event;
    std::string card;
    double seen_s = 0;
  };
  std::vector<SeenEvent> events_;
  std::set<std::string> event_keys_;
  bool wants_events_ = false;
  unsigned answers_ = 0;
};

}  // namespace gpuhealth::sim
