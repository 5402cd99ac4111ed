// SPDX-License-Identifier: Apache-2.0
#include "health/engine.hpp"

#include <algorithm>
#include <string_view>
#include <tuple>
#include <utility>

#include "health/engine_impl.hpp"
#include "health/facts.hpp"

namespace gpuhealth::health {
namespace {

bool asleep(PowerState power) {
  return power == PowerState::Suspended || power == PowerState::Suspending || power == PowerState::Resuming;
}

// The sampling period may be longer than the gap's default: three usual steps are no gap.
Duration gap_of(const Tracked& tracked, const Thresholds& thresholds) {
  const auto usual = std::ranges::min(tracked.recent_steps);
  return std::max(seconds(thresholds.sample_gap_s), usual * 3);
}

std::optional<Duration> step_to(Tracked& tracked, SteadyTime now, const Thresholds& thresholds) {
  if (!tracked.last) return std::nullopt;
  const auto step = now - *tracked.last;
  const bool gap = step > gap_of(tracked, thresholds);
  std::shift_left(tracked.recent_steps.begin(), tracked.recent_steps.end(), 1);
  tracked.recent_steps.back() = step;
  return gap ? std::nullopt : std::optional(step);
}

Verdict verdict_asleep(const DetectorRow& row, Detector& detector, const Look& look) {
  if (row.when_asleep == WhenAsleep::Judge) return detector.judge(look);
  // On its way down or up it is neither without power nor at work.
  const bool off = look.sample.power == PowerState::Suspended;
  return off && row.when_asleep == WhenAsleep::Ends ? Verdict::good() : Verdict::unknown();
}

}  // namespace

void Tracked::forget_samples() {
  detectors.clear();
  load = {};
  signs = {};
  clients.reset();
  second.reset();
  last.reset();
  last_awake = false;
  recent_steps = {};
}

Engine::Engine(Thresholds thresholds, std::string boot_id) : impl_(std::make_unique<Impl>()) {
  impl_->thresholds = thresholds;
  impl_->boot_id = std::move(boot_id);
}
Engine::~Engine() = default;
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;

void Engine::Impl::judge(std::vector<Change>& out, const DetectorRow& row, Life& life, const Verdict& verdict,
                         const Subject& subject, const Moment& moment) const {
  const Pace pace{seconds(thresholds.*row.confirm_after_s), seconds(thresholds.*row.clear_after_s),
                  seconds(thresholds.pending_expires_s), seconds(thresholds.flap_window_s),
                  seconds(thresholds.update_every_s)};
  if (auto change = life.see(verdict, subject, moment, pace)) out.push_back(std::move(*change));
}

std::vector<Change> Engine::on_sample(const DeviceInfo& device, const Sample& sample) {
  std::vector<Change> out;
  const auto id = device.id();
  if (!sample.device.empty() && sample.device != id) return out;  // of another device: nothing can be concluded
  const auto [place, is_new] = impl_->devices.try_emplace(id);
  auto& tracked = place->second;
  if (is_new) impl_->end_earlier_names(out, id, device.pci, sample.time);
  if (tracked.last && sample.time.steady <= *tracked.last) return out;
  tracked.label = label_of(device);
  if (tracked.detectors.empty())
    for (const auto& row : all_detectors()) tracked.detectors.push_back(row.make());

  const auto& thresholds = impl_->thresholds;
  const auto step = step_to(tracked, sample.time.steady, thresholds);
  const bool awake = !asleep(sample.power);
  const bool continuous = step && awake && tracked.last_awake;
  if (tracked.driver && tracked.last && *tracked.driver != device.driver && !device.driver.empty())
    tracked.signs.forget_hangs_before(*tracked.last);
  tracked.driver = device.driver;
  tracked.last = sample.time.steady;
  tracked.last_awake = awake;

  const auto load = awake ? tracked.load.follow(device, sample, thresholds, continuous) : Load{};
  const auto* clients = tracked.clients ? &*tracked.clients : nullptr;
  const auto* second = tracked.second ? &*tracked.second : nullptr;
  const Look look{device, sample,  thresholds, load,           continuous,
                  false,  clients, second,     &tracked.signs, tracked.own_cap};
  for (std::size_t i = 0; i < tracked.detectors.size(); ++i) {
    const auto& row = all_detectors()[i];
    auto& detector = *tracked.detectors[i];
    const auto verdict = awake ? detector.judge(look) : verdict_asleep(row, detector, look);
    impl_->judge(out, row, tracked.life(row.type), verdict, {row.type, id, tracked.label, impl_->boot_id},
                 {sample.time, step});
  }
  impl_->end(out, ConditionType::GpuMissing, id, sample.time, "the GPU is back", true);
  return out;
}

void Engine::on_resume() {
  for (auto& [id, tracked] : impl_->devices) tracked.last_awake = false;
}

// A failed reset is told at once: samples may never come again.
std::vector<Change> Engine::on_sign(const DeviceInfo& device, Sign sign, SignSeen seen, Now now) {
  std::vector<Change> out;
  const auto id = device.id();
  auto& tracked = impl_->devices[id];
  tracked.label = label_of(device);
  const auto text = seen.text;
  tracked.signs.see(sign, std::move(seen));
  const bool fatal = sign == Sign::ResetFailed || sign == Sign::Wedged;
  if (!fatal || !tracked.signs.unanswered(sign, Sign::ResetSucceeded)) return out;
  Verdict verdict;
  verdict.severity = Severity::Critical;
  verdict.detail = "The kernel says: " + text;
  verdict.evidence = {{"kernel log", text}};
  impl_->state_fact(out, ConditionType::GpuHang, id, std::move(verdict), now);
  return out;
}

void Engine::on_clients(const DeviceInfo& device, ClientLook look) {
  impl_->devices[device.id()].clients = std::move(look);
}

void Engine::on_second_opinion(const DeviceInfo& device, Sample sample) {
  impl_->devices[device.id()].second = std::move(sample);
}

void Engine::on_own_power_cap(const std::string& device, std::optional<double> watts) {
  impl_->devices[device].own_cap = watts;
}

std::vector<Change> Engine::restore(std::vector<Condition> open, Now now) {
  std::vector<Change> out;
  std::ranges::sort(open, std::greater{}, &Condition::since);  // of two of a kind the newer goes on
  for (auto& condition : open) {
    if (static_cast<std::size_t>(condition.type) >= kConditionCount || condition.device.empty()) continue;
    if (condition.state == ConditionState::Cleared) continue;
    const auto device = condition.device;
    auto& tracked = impl_->devices[device];
    if (tracked.label.empty()) tracked.label = condition.device_label;
    const bool this_boot = condition.boot_id == impl_->boot_id;
    const auto type = condition.type;
    auto& life = tracked.life(type);
    if (life.open() != nullptr && life.open()->id == condition.id) continue;  // history came back late, with our own
    if ((this_boot || type == ConditionType::GpuMissing) && life.open() == nullptr) {
      life.restore(std::move(condition), now);
      // Whether reads still hang is found out anew; if they do, the same condition is opened again.
      if (type == ConditionType::SourceStuck) impl_->end(out, type, device, now, "the daemon was restarted", false);
      continue;
    }
    Life past;
    past.restore(std::move(condition), now);
    if (auto change = past.end(now, this_boot ? "a newer one goes on" : "the machine was rebooted", true))
      out.push_back(std::move(*change));
  }
  return out;
}

Result<Change> Engine::acknowledge(const std::string& condition_id, Now now) {
  static_cast<void>(now);  // the mark has no time of its own; the caller's event has
  for (auto& [device, tracked] : impl_->devices) {
    for (auto& life : tracked.lives) {
      if (life.open() == nullptr || life.open()->id != condition_id) continue;
      auto change = life.acknowledge();
      if (!change)
        return fail(ErrorCode::InvalidInput,
                    "condition " + condition_id + " is not confirmed yet; it may go away by itself");
      return std::move(*change);
    }
  }
  return fail(ErrorCode::NotFound, "no open condition has the id " + condition_id.substr(0, 128));
}

void Engine::set_thresholds(Thresholds thresholds) {
  impl_->thresholds = thresholds;
}

std::vector<Condition> Engine::open() const {
  std::vector<Condition> out;
  for (const auto& [device, tracked] : impl_->devices)
    for (const auto& life : tracked.lives)
      if (life.open() != nullptr) out.push_back(*life.open());
  std::ranges::sort(out, [](const Condition& a, const Condition& b) {
    return std::tuple(a.state != ConditionState::Confirmed, a.acknowledged, -static_cast<int>(a.severity), b.since,
                      std::string_view(a.id)) < std::tuple(b.state != ConditionState::Confirmed, b.acknowledged,
                                                           -static_cast<int>(b.severity), a.since,
                                                           std::string_view(b.id));
  });
  return out;
}

}  // namespace gpuhealth::health
