// SPDX-License-Identifier: Apache-2.0
#include "health/life.hpp"

#include <algorithm>
#include <utility>

namespace gpuhealth::health {
namespace {

constexpr unsigned kMostDoublings = 4;  // a flapping condition takes up to 16 times as long to clear

std::vector<std::string> names_of(const std::vector<Evidence>& evidence) {
  std::vector<std::string> out;
  out.reserve(evidence.size());
  for (const auto& e : evidence) out.push_back(e.name);
  return out;
}

}  // namespace

std::optional<Change> Life::see(const Verdict& verdict, const Subject& subject, const Moment& moment,
                                const Pace& pace) {
  if (verdict.kind == Verdict::Kind::Bad) return see_bad(verdict, subject, moment, pace);
  if (!open_) return std::nullopt;
  if (verdict.kind == Verdict::Kind::Good) return see_good(moment, pace);
  return expired(moment, pace) ? end(moment.now, "", true) : std::nullopt;
}

bool Life::expired(const Moment& moment, const Pace& pace) const {
  return open_->state == ConditionState::Raised && last_bad_ && moment.now.steady - *last_bad_ > pace.pending_expires;
}

void Life::begin(const Subject& subject, const Moment& moment, const Pace& pace) {
  if (closed_ && moment.now.steady - closed_at_ <= pace.flap_window) {
    open_ = std::exchange(closed_, std::nullopt);
    open_->state = ConditionState::Raised;
    open_->cleared = {};
    ++reopened_;
    return;
  }
  closed_.reset();
  reopened_ = 0;
  Condition fresh;
  fresh.id = condition_id(subject.type, subject.device, moment.now.wall);
  fresh.type = subject.type;
  fresh.device = subject.device;
  fresh.since = moment.now.wall;
  open_ = std::move(fresh);
}

std::optional<Change> Life::see_bad(const Verdict& verdict, const Subject& subject, const Moment& moment,
                                    const Pace& pace) {
  if (open_ && expired(moment, pace)) return end(moment.now, "", true);
  const bool first = !open_;
  if (first) {
    begin(subject, moment, pace);
    bad_for_ = {};
  } else if (moment.step) {
    bad_for_ += *moment.step;
  } else {
    bad_for_ = {};
  }
  good_for_ = {};
  good_before_ = false;
  last_bad_ = moment.now.steady;

  const auto severity_before = open_->severity;
  open_->severity = verdict.severity;
  open_->device_label = subject.label;
  open_->boot_id = subject.boot_id;
  open_->last_seen = moment.now.wall;
  open_->detail = verdict.detail;
  open_->evidence = verdict.evidence;

  if (open_->state == ConditionState::Confirmed) return update(severity_before, moment, pace);
  if (bad_for_ >= pace.confirm_after || (verdict.urgent && !first)) {
    open_->state = ConditionState::Confirmed;
    return tell(ChangeKind::Confirmed, moment);
  }
  if (first) return Change{ChangeKind::Raised, *open_};
  return std::nullopt;
}

std::optional<Change> Life::update(Severity before, const Moment& moment, const Pace& pace) {
  const bool worse = open_->severity > before;
  if (!told_at_ && !worse) {  // restored: it has been announced
    tell(ChangeKind::Updated, moment);
    return std::nullopt;
  }
  const bool other = open_->severity != told_severity_ || names_of(open_->evidence) != told_about_;
  if (!worse && (!other || moment.now.steady - *told_at_ < pace.update_every)) return std::nullopt;
  return tell(ChangeKind::Updated, moment);
}

Change Life::tell(ChangeKind kind, const Moment& moment) {
  told_at_ = moment.now.steady;
  told_about_ = names_of(open_->evidence);
  told_severity_ = open_->severity;
  return {kind, *open_};
}

std::optional<Change> Life::see_good(const Moment& moment, const Pace& pace) {
  if (open_->state == ConditionState::Raised) return end(moment.now, "", true);
  if (good_before_) good_for_ += moment.step.value_or(Duration{});
  good_before_ = true;
  if (good_for_ < pace.clear_after * (1 << std::min(reopened_, kMostDoublings))) return std::nullopt;
  return end(moment.now, "", false);
}

std::optional<Change> Life::end(Now now, std::string_view reason, bool for_good) {
  if (!open_) return std::nullopt;
  const bool was_confirmed = open_->state == ConditionState::Confirmed;
  open_->state = ConditionState::Cleared;
  open_->cleared = now.wall;
  if (!reason.empty()) open_->evidence.push_back({"cleared because", std::string(reason)});
  Change change{ChangeKind::Cleared, *std::exchange(open_, std::nullopt), was_confirmed};
  // One that had been announced, cleared and came back unconfirmed is the announced one still.
  if (!for_good || (reopened_ > 0 && reason.empty())) {
    closed_ = change.condition;
    closed_at_ = now.steady;
  } else {
    closed_.reset();
    reopened_ = 0;
  }
  bad_for_ = good_for_ = {};
  good_before_ = false;
  last_bad_.reset();
  told_at_.reset();
  return change;
}

void Life::restore(Condition condition, Now now) {
  open_ = std::move(condition);
  last_bad_ = now.steady;
}

std::optional<Change> Life::acknowledge() {
  if (!open_ || open_->state != ConditionState::Confirmed) return std::nullopt;
  open_->acknowledged = true;
  return Change{ChangeKind::Acknowledged, *open_};
}

}  // namespace gpuhealth::health
