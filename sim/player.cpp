// SPDX-License-Identifier: Apache-2.0
#include "sim/player.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>
#include <type_traits>

#include "sim/kfd.hpp"
#include "sim/machine.hpp"
#include "sim/state_fields.hpp"

namespace gpuhealth::sim {
namespace {

// hwmon numbers change with every load of the driver.
std::string glob_of(const Card& card, const std::string& files) {
  std::string below = files;
  if (below.starts_with("hwmon/") && !below.starts_with("hwmon/hwmon")) below.insert(6, "hwmon*/");
  return "*/" + to_string(card.place.gpu) + "/" + below;
}

// The first line of a file of the card, or of its hwmon.
std::optional<std::string> read_setting(const std::filesystem::path& machine, const Card& card,
                                        const std::string& file) {
  const auto dir = function_dir(machine, card.place.gpu);
  if (!dir) return std::nullopt;
  std::filesystem::path path = *dir / file;
  std::error_code error;
  for (std::filesystem::directory_iterator it(*dir / "hwmon", error), end; !error && it != end; it.increment(error))
    if (file.starts_with("power1")) path = it->path() / file;
  std::ifstream in(path);
  std::string line;
  if (!std::getline(in, line)) return std::nullopt;
  return line;
}

}  // namespace

Player::Player(const Scenario& scenario, Stage& stage) : scenario_(scenario), stage_(stage) {
  for (const auto& card : scenario.cards) actors_[card.name].card = card.card;
}

const Card& Player::card(const std::string& name) const {
  return actors_.at(name).card;
}

Result<void> Player::play(double now_s) {
  bool acted = false;
  while (next_step_ < scenario_.timeline.size() && scenario_.timeline[next_step_].at_s <= now_s) {
    if (auto done = act(scenario_.timeline[next_step_++], now_s); !done) return done;
    acted = true;
  }
  for (const auto& fault : faults_) {
    if (fault.until_s <= now_s) stage_.files().remove(fault.rule);
  }
  std::erase_if(faults_, [&](const Timed& fault) { return fault.until_s <= now_s; });
  stage_.files().tick();
  if (stage_.announcer() != nullptr) stage_.announcer()->tick();
  if (auto done = go_on_sleeping(now_s); !done) return done;

  const auto second = static_cast<unsigned>(now_s);
  if (second == shown_second_ && !acted) return {};
  shown_second_ = second;
  for (const auto& slope : slopes_) {
    const double share = slope.end_s <= slope.start_s
                             ? 1
                             : std::clamp((now_s - slope.start_s) / (slope.end_s - slope.start_s), 0.0, 1.0);
    find_state_field(slope.field)->set(actors_.at(slope.card).card.state, slope.from + share * (slope.to - slope.from));
  }
  std::erase_if(slopes_, [&](const Slope& slope) { return slope.end_s <= now_s; });
  for (auto& [name, actor] : actors_) {
    if (auto done = show(name, actor, second); !done) return done;
  }
  return {};
}

// What programs wrote stays, as a driver keeps it; power in whole watts (amdgpu_pm.c).
void Player::take_settings(Actor& actor) const {
  auto& state = actor.card.state;
  const auto cap = read_setting(stage_.machine(), actor.card, "power1_cap");
  std::int64_t microwatts = 0;
  if (actor.shown_cap && cap && cap != actor.shown_cap &&
      std::from_chars(cap->data(), cap->data() + cap->size(), microwatts).ec == std::errc{})
    state.cap_w = static_cast<unsigned>(microwatts / 1'000'000);
  const auto level = read_setting(stage_.machine(), actor.card, "power_dpm_force_performance_level");
  if (actor.shown_level && level && level != actor.shown_level) state.performance_level = *level;
}

Result<void> Player::show(const std::string& name, Actor& actor, unsigned second) {
  if (!actor.present) return {};
  const auto alone = stage_.files().hold_writes();
  take_settings(actor);
  const auto seed = scenario_.seed + static_cast<unsigned>(std::hash<std::string>{}(name) % 997);
  const Card card = scenario_.noise ? with_noise(actor.card, seed, second) : actor.card;
  auto done = update_card(stage_.machine(), card);
  actor.shown_cap = read_setting(stage_.machine(), card, "power1_cap");
  actor.shown_level = read_setting(stage_.machine(), card, "power_dpm_force_performance_level");
  if (stage_.nodes() != nullptr) stage_.nodes()->show(card);
  for (const auto& [file, change] : actor.files) {
    if (done) done = write(actor, change);
  }
  return done;
}

Result<void> Player::act(const Step& step, double now_s) {
  Actor* actor = step.card.empty() ? nullptr : &actors_.at(step.card);
  return std::visit(
      [&](const auto& what) -> Result<void> {
        using T = std::decay_t<decltype(what)>;
        if constexpr (std::is_same_v<T, SetState>) return set(*actor, step, what);
        if constexpr (std::is_same_v<T, SetFault>) return fault(*actor, what, now_s);
        if constexpr (std::is_same_v<T, WriteFile>) {
          actor->files[what.file] = what;
          return write(*actor, what);
        }
        if constexpr (std::is_same_v<T, Unplug>) {
          actor->present = false;
          if (auto done = remove_card(stage_.machine(), actor->card.place.gpu); !done) return done;
          return sync_nodes();
        }
        if constexpr (std::is_same_v<T, Plug>) return plug(*actor, what.slot);
        if constexpr (std::is_same_v<T, Reboot>) return reboot(what);
        if constexpr (std::is_same_v<T, DaemonStep>) return steer_daemon(what);
        if constexpr (std::is_same_v<T, BusStep>) {
          stage_.stop_bus();
          return stage_.start_bus();
        }
        if constexpr (std::is_same_v<T, LogLine>) return stage_.log(what.priority, what.text);
        if constexpr (std::is_same_v<T, KfdRecord>) return tell_kfd(*actor, what);
        if constexpr (std::is_same_v<T, Uevent>) return uevent(*actor, what);
        if constexpr (std::is_same_v<T, Sleep>) return sleep(what, now_s);
        return {};
      },
      step.what);
}

Result<void> Player::set(Actor& actor, const Step& step, const SetState& change) {
  auto& state = actor.card.state;
  for (const auto& [name, ramp] : change.numbers) {
    std::erase_if(slopes_, [&](const Slope& s) { return s.card == step.card && s.field == name; });
    const auto* field = find_state_field(name);
    slopes_.push_back({step.card, name, field->get(state), ramp.to, step.at_s, step.at_s + ramp.over_s});
  }
  if (change.performance_level) state.performance_level = *change.performance_level;
  if (change.runtime_status) state.runtime_status = *change.runtime_status;
  for (const auto& count : change.ras) {
    const auto it = std::ranges::find(state.ras, count.block, &RasCount::block);
    if (it == state.ras.end()) {
      state.ras.push_back(count);
    } else {
      *it = count;
    }
  }
  if (change.driver_bound && *change.driver_bound != state.driver_bound) {
    state.driver_bound = *change.driver_bound;
    // The driver's files come and go with it; the PCI function stays.
    if (auto done = remove_card(stage_.machine(), actor.card.place.gpu); !done) return done;
    if (auto done = add_card(stage_.machine(), actor.card); !done) return done;
    return sync_nodes();
  }
  return {};
}

Result<void> Player::fault(Actor& actor, const SetFault& change, double now_s) {
  for (const auto& files : change.files) {
    const std::string pattern = glob_of(actor.card, files);
    for (const auto& old : faults_) {
      if (old.pattern == pattern) stage_.files().remove(old.rule);
    }
    std::erase_if(faults_, [&](const Timed& old) { return old.pattern == pattern; });
    if (change.fault) faults_.push_back({stage_.files().add(pattern, *change.fault), now_s + change.for_s, pattern});
  }
  return {};
}

Result<void> Player::write(Actor& actor, const WriteFile& change) {
  if (change.text) return write_file(stage_.machine(), actor.card.place.gpu, change.file, *change.text);
  const auto dir = function_dir(stage_.machine(), actor.card.place.gpu);
  if (!dir) return tl::unexpected<Error>(dir.error());
  std::error_code error;
  if (!change.file.starts_with("hwmon/")) {
    std::filesystem::remove(*dir / change.file, error);
    return {};
  }
  for (const auto& folder : std::filesystem::directory_iterator(*dir / "hwmon", error))
    std::filesystem::remove(folder.path() / change.file.substr(6), error);
  return {};
}

Result<void> Player::tell_kfd(const Actor& actor, const KfdRecord& record) {
  const auto gpu_id = kfd_gpu_id(stage_.machine() / "sys", actor.card.place.gpu);
  if (gpu_id && stage_.nodes() != nullptr) stage_.nodes()->tell_kfd(*gpu_id, record.text);
  return {};
}

Result<void> Player::uevent(const Actor& actor, const Uevent& event) {
  const auto dir = function_dir(stage_.machine(), actor.card.place.gpu);
  if (!dir) return tl::unexpected<Error>(dir.error());
  auto path = "/" + dir->lexically_relative(stage_.machine() / "sys").string();
  std::error_code error;
  if (event.subsystem == "drm") {
    for (const auto& entry : std::filesystem::directory_iterator(*dir / "drm", error)) {
      const auto name = entry.path().filename().string();
      if (name.starts_with("card")) path += "/drm/" + name;
    }
  }
  return send_uevent(event, path);
}

// logind's word, a moment in which it is heard, and then nothing runs until the machine wakes.
Result<void> Player::sleep(const Sleep& step, double now_s) {
  constexpr double kHeardAfter = 0.3;  // real seconds
  if (stage_.announcer() != nullptr) {
    if (auto done = stage_.announcer()->prepare_for_sleep(true); !done) return done;
  }
  stop_at_s_ = now_s + kHeardAfter * stage_.speed();
  wake_at_s_ = *stop_at_s_ + step.for_s;
  return {};
}

Result<void> Player::go_on_sleeping(double now_s) {
  if (stop_at_s_ && now_s >= *stop_at_s_) {
    stop_at_s_.reset();
    stage_.daemon.signal(SIGSTOP);
  }
  if (!wake_at_s_ || now_s < *wake_at_s_) return {};
  wake_at_s_.reset();
  stage_.daemon.signal(SIGCONT);
  return stage_.announcer() == nullptr ? Result<void>() : stage_.announcer()->prepare_for_sleep(false);
}

Result<void> Player::plug(Actor& actor, unsigned slot) {
  actor.card.place = slot_place(slot, actor.card.model.has_card_switch);
  actor.present = true;
  if (auto done = add_card(stage_.machine(), actor.card); !done) return done;
  return sync_nodes();
}

Result<void> Player::sync_nodes() {
  return stage_.nodes() == nullptr ? Result<void>() : stage_.nodes()->sync();
}

Result<void> Player::reboot(const Reboot& change) {
  stop_daemon(SIGTERM);
  std::vector<Card> cards;
  for (auto& [name, actor] : actors_) actor.present = false;
  for (const auto& name : change.order) {
    auto& actor = actors_.at(name);
    actor.card.place = slot_place(static_cast<unsigned>(cards.size()), actor.card.model.has_card_switch);
    actor.present = true;
    cards.push_back(actor.card);
  }
  auto facts = scenario_.facts;
  if (!change.kernel.empty()) kernel_ = change.kernel;
  if (!kernel_.empty()) facts.kernel_release = kernel_;
  stage_.new_log();
  facts.boot_id = fmt::format("5ee05ee0-0000-4000-8000-{:012}", ++boot_);
  if (auto done = write_machine(stage_.machine(), cards, facts); !done) return done;
  if (auto done = sync_nodes(); !done) return done;
  if (change.userptr && stage_.nodes() != nullptr) stage_.nodes()->set_userptr(*change.userptr);
  return stage_.start_daemon();
}

void Player::stop_daemon(int signal) {
  const auto status = stage_.stop_daemon(signal);
  if (signal == SIGTERM && status != 0)
    problem_ =
        status ? fmt::format("the daemon ended with {}", *status) : "the daemon did not end within 2 s of SIGTERM";
}

Result<void> Player::steer_daemon(DaemonStep step) {
  switch (step) {
    case DaemonStep::Stop:
      daemon_wanted_ = false;
      stop_daemon(SIGTERM);
      return {};
    case DaemonStep::Kill:
      daemon_wanted_ = false;
      stop_daemon(SIGKILL);
      return {};
    case DaemonStep::Start:
      daemon_wanted_ = true;
      return stage_.start_daemon();
    case DaemonStep::Reload:
      stage_.daemon.signal(SIGHUP);
      return {};
  }
  return {};
}

}  // namespace gpuhealth::sim
