// SPDX-License-Identifier: Apache-2.0
// The life cycle of one condition of one device (drawn in docs/conditions.md). All durations are steady time.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/clock.hpp"
#include "core/condition.hpp"
#include "health/change.hpp"
#include "health/detector.hpp"

namespace gpuhealth::health {

struct Subject {
  ConditionType type{};
  std::string_view device;
  std::string_view label;
  std::string_view boot_id;
};

struct Pace {
  Duration confirm_after{};
  Duration clear_after{};
  Duration pending_expires{};
  Duration flap_window{};
  Duration update_every{};
};

struct Moment {
  Now now;
  std::optional<Duration> step;  // since the look before; nothing after a gap, which counts for neither side
};

class Life {
 public:
  std::optional<Change> see(const Verdict& verdict, const Subject& subject, const Moment& moment, const Pace& pace);
  // Ends it now. `reason` becomes evidence; a condition that ended for good is not opened again by the flap rule.
  std::optional<Change> end(Now now, std::string_view reason, bool for_good);
  std::optional<Change> acknowledge();
  void restore(Condition condition, Now now);
  [[nodiscard]] const Condition* open() const { return open_ ? &*open_ : nullptr; }

 private:
  Change tell(ChangeKind kind, const Moment& moment);
  std::optional<Change> see_bad(const Verdict& verdict, const Subject& subject, const Moment& moment, const Pace& pace);
  std::optional<Change> see_good(const Moment& moment, const Pace& pace);
  std::optional<Change> update(Severity before, const Moment& moment, const Pace& pace);
  void begin(const Subject& subject, const Moment& moment, const Pace& pace);
  [[nodiscard]] bool expired(const Moment& moment, const Pace& pace) const;

  std::optional<Condition> open_;
  std::optional<Condition> closed_;  // the last one, while it may return
  SteadyTime closed_at_;
  unsigned reopened_ = 0;
  Duration bad_for_{};
  Duration good_for_{};
  bool good_before_ = false;
  std::optional<SteadyTime> last_bad_;
  std::optional<SteadyTime> told_at_;
  Severity told_severity_{};
  std::vector<std::string> told_about_;  // names of the evidence last announced
};

}  // namespace gpuhealth::health
