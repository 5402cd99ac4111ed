// SPDX-License-Identifier: Apache-2.0
// Plays a scenario's timeline on a stage: ramps, noise, faults, cards that come and go, reboots.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "sim/scenario.hpp"
#include "sim/stage.hpp"

namespace gpuhealth::sim {

class Player {
 public:
  Player(const Scenario& scenario, Stage& stage);

  // Does what is due at `now_s`; to be called every few milliseconds, with times that grow.
  Result<void> play(double now_s);

  // Where the card is now, or was last.
  [[nodiscard]] const Card& card(const std::string& name) const;
  // Between a stop of the daemon and its start nobody answers, and no condition ends.
  [[nodiscard]] bool daemon_wanted() const { return daemon_wanted_; }
  [[nodiscard]] bool asleep() const { return wake_at_s_.has_value(); }
  [[nodiscard]] bool finished() const { return next_step_ == scenario_.timeline.size(); }
  [[nodiscard]] const std::string& problem() const { return problem_; }  // the daemon did not end as it should

 private:
  struct Actor {
    Card card;
    bool present = true;
    // Settings as the machine's files had them when we wrote them last: what differs was set by somebody else.
    std::optional<std::string> shown_cap, shown_level;
    std::map<std::string, WriteFile> files;  // written by hand; stay so when the state is written again
  };
  struct Slope {
    std::string card;
    std::string field;
    double from = 0;
    double to = 0;
    double start_s = 0;
    double end_s = 0;
  };
  struct Timed {
    int rule = 0;
    double until_s = 0;
    std::string pattern;
  };

  Result<void> act(const Step& step, double now_s);
  Result<void> set(Actor& actor, const Step& step, const SetState& change);
  Result<void> fault(Actor& actor, const SetFault& change, double now_s);
  Result<void> write(Actor& actor, const WriteFile& change);
  Result<void> plug(Actor& actor, unsigned slot);
  Result<void> tell_kfd(const Actor& actor, const KfdRecord& record);
  Result<void> uevent(const Actor& actor, const Uevent& event);
  Result<void> sleep(const Sleep& step, double now_s);
  Result<void> go_on_sleeping(double now_s);
  Result<void> reboot(const Reboot& change);
  Result<void> steer_daemon(DaemonStep step);
  void take_settings(Actor& actor) const;
  Result<void> show(const std::string& name, Actor& actor, unsigned second);
  void stop_daemon(int signal);
  Result<void> sync_nodes();

  const Scenario& scenario_;
  Stage& stage_;
  std::map<std::string, Actor> actors_;
  std::vector<Slope> slopes_;
  std::vector<Timed> faults_;
  std::size_t next_step_ = 0;
  unsigned shown_second_ = 0;
  unsigned boot_ = 1;
  std::string kernel_;  // of the last reboot that changed it
  bool daemon_wanted_ = true;
  std::optional<double> stop_at_s_;  // the machine falls asleep
  std::optional<double> wake_at_s_;
  std::string problem_;
};

}  // namespace gpuhealth::sim
