// SPDX-License-Identifier: Apache-2.0
// The daemon's side of actions: a queue in front of gpuhealth-act, one at a time. Follows each action to its end: the
// condition clears (confirmed), its time is over or it is no longer wanted (taken back), and the canary that showed the
// fault runs again. Pure but for its handlers; nothing here blocks.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "actions/carry_out.hpp"
#include "core/clock.hpp"
#include "core/condition.hpp"

namespace gpuhealth::actions {

struct ActionRecord {
  std::size_t number = 0;  // counted since the daemon's start
  ActionRequest request;
  std::string ledger;  // id; empty: nothing was written down (yet)
  std::string state;   // "queued", "running", then as the ledger or gpuhealth-act says; "refused", "withdrawn"
  std::string text;
  std::string before, wanted, after;
  // Zero: not yet. Fault: first seen; detected: asked for; acted: done; verified: a canary ran again and was good.
  WallTime fault, detected, acted, verified;
  WallTime confirm_by;    // zero: no time is set
  bool unwanted = false;  // its reason is gone: it is taken back, as soon as it is done
};

class ActionService {
 public:
  using Ended = std::function<void(int code, std::string said)>;
  using Then = std::function<void(Result<void>)>;
  struct Handlers {
    // Runs gpuhealth-act with these words and this on its input, kills it at the deadline, and calls `ended` once; code
    // -1: it was killed or could not be started.
    std::function<void(std::vector<std::string> words, std::string input, Duration deadline, Ended ended)> act;
    std::function<void(const ActionRequest&)> run_canary;  // on the device; `canary_passed` says what came of it
    std::function<void(const ActionRecord&)> changed;
    std::function<void(Severity, const std::string&)> log;
    // What is written down now; people may have changed it meanwhile. Empty: only what is asked for here is known.
    std::function<std::vector<LedgerEntry>()> ledger;
  };
  ActionService(const Clock& clock, Handlers handlers);

  void start();  // what an earlier run left behind is resolved first
  void submit(Order order, WallTime fault);
  // It is over: what was done for it is good. For one that goes on the time of probation decides.
  void condition_cleared(const std::string& condition);
  // Likewise for a rule that no condition asked: `over` says whether its episode has ended.
  void episodes_ended(const std::function<bool(const ActionRequest&)>& over);
  void no_longer_wanted(const ActionRequest& request);  // revert_when
  void canary_passed(const std::string& device);
  void device_came_back(const std::string& device);  // resume, reset: what was forgotten is written again
  void tick();                                       // every few seconds
  void look_at_ledger();                             // somebody may have changed it

  // A person's word. The answer comes when it is done.
  void confirm(const std::string& id, Then then);
  void revert(const std::string& id, Then then);
  void leave_safe_mode(Then then);

  [[nodiscard]] const std::deque<ActionRecord>& records() const { return records_; }  // newest last
  [[nodiscard]] std::size_t waiting() const { return queue_.size(); }
  [[nodiscard]] bool idle() const { return !running_ && queue_.empty(); }

 private:
  struct Job {
    std::vector<std::string> words;
    std::string input;
    Duration deadline{};
    std::size_t number = 0;  // of the record; 0: none
    Then then;
  };
  void put(Job job);
  void next();
  void ended(const Job& job, int code, const std::string& said);
  void learn(ActionRecord& record, int code, const std::string& said);
  void take_answer(const Job& job, const std::string& said);
  void adopt(const LedgerEntry& entry);
  ActionRecord& add(ActionRecord record);
  void make_room();
  ActionRecord* find(std::size_t number);
  ActionRecord* find(const std::string& ledger);

  const Clock& clock_;
  Handlers handlers_;
  std::deque<Job> queue_;
  bool running_ = false;
  std::deque<ActionRecord> records_;
  std::size_t last_number_ = 0;
  std::map<std::string, WallTime> confirm_by_;
};

}  // namespace gpuhealth::actions
