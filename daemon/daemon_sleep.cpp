// SPDX-License-Identifier: Apache-2.0
// What a sleep of the machine changes: drivers start anew, limits fall back to their defaults, firmware may be another.
#include "daemon/daemon_impl.hpp"
#include "health/facts.hpp"

namespace gpuhealth::daemon {
namespace {

constexpr auto kLongestWait = std::chrono::seconds(60);  // for logind's word that the machine is awake

std::string shown(const Sample& sample, ReadingId id) {
  const auto value = sample.value(id);
  return value ? health::text_of(*value, find_reading(id)->unit) : std::string();
}

void differs(std::string& out, std::string_view what, const std::string& before, const std::string& now) {
  if (before.empty() || now.empty() || before == now) return;
  out += (out.empty() ? "" : "; ") + std::string(what) + " is " + now + ", was " + before;
}

// What of a card's limits and identity is another after the sleep; empty when nothing is.
std::string changed(const BeforeSleep& before, const DeviceInfo& info, const Sample& now) {
  struct Row {
    ReadingId id;
    std::string_view what;
  };
  static constexpr std::array kRows = std::to_array<Row>({
      {ReadingId::PowerCap, "the power limit"},
      {ReadingId::PowerCapMax, "the highest power limit"},
      {ReadingId::PowerCapMin, "the lowest power limit"},
      {ReadingId::ClockGfxMax, "the highest graphics clock"},
      {ReadingId::ClockMemoryMax, "the highest memory clock"},
      {ReadingId::PcieSpeedMax, "the link's highest speed"},
      {ReadingId::PcieWidthMax, "the link's greatest width"},
      {ReadingId::VramTotal, "video memory"},
  });
  std::string out;
  for (const auto& row : kRows) differs(out, row.what, shown(before.sample, row.id), shown(now, row.id));
  differs(out, "the performance level", before.sample.performance_level, now.performance_level);
  differs(out, "the VBIOS", before.info.vbios_version, info.vbios_version);
  differs(out, "the driver", before.info.driver, info.driver);
  for (const auto& [part, version] : info.firmware) {
    const auto was = before.info.firmware.find(part);
    if (was != before.info.firmware.end()) differs(out, "firmware " + part, was->second, version);
  }
  return out;
}

}  // namespace

void Daemon::Impl::start_sleep_watch() {
  // A tree is no machine that sleeps.
  if (!options.sysroot.empty() && options.bus.empty()) return;
  sleep_watch = std::make_unique<SleepWatch>(io, options.bus, [this](bool sleeping) {
    // Not from inside the bus's own handler.
    asio::post(io, [this, sleeping] { sleeping ? on_falls_asleep() : on_awake(); });
  });
}

void Daemon::Impl::on_falls_asleep() {
  if (sleeping_since) return;
  sleeping_since = clock.now().steady;
  for (auto& [id, device] : devices) {
    if (device.has_sample && device.sample.power == PowerState::Active)
      device.before_sleep = BeforeSleep{device.info, device.sample};
  }
  event(Severity::Info, "machine.sleeps", {}, "the machine is about to sleep");
}

// Between logind's two words nothing is read: the drivers are on their way down or up.
bool Daemon::Impl::machine_sleeps(SteadyTime now) {
  if (sleeping_since && now - *sleeping_since > kLongestWait) on_awake();  // nobody said so; it is long over
  return sleeping_since.has_value();
}

void Daemon::Impl::on_awake() {
  if (!sleeping_since) return;
  const auto slept = std::chrono::duration_cast<std::chrono::seconds>(clock.now().steady - *sleeping_since);
  sleeping_since.reset();
  engine.on_resume();
  event(
      Severity::Info, "machine.woke", {},
      "the machine is awake again after " + std::to_string(slept.count()) + " s; identities and limits are read again");
  discover();  // opens every file anew: the next sample reads all of them
  last_tick = {};
}

void Daemon::Impl::compare_with_before_sleep(Device& device) {
  if (!device.before_sleep || sleeping_since || device.sample.power != PowerState::Active) return;
  // The first sample of files that were opened anew; one that was under way may still be from before.
  const bool complete =
      device.sample.value(ReadingId::PowerCap) || !device.before_sleep->sample.value(ReadingId::PowerCap);
  if (!complete) return;
  const auto what = changed(*device.before_sleep, device.info, device.sample);
  device.before_sleep.reset();
  if (what.empty()) {
    event(Severity::Info, "resume.checked", device.info.id(),
          device.label + ": limits and identity are as before the sleep");
  } else {
    event(Severity::Warning, "resume.changed", device.info.id(), device.label + ": since the sleep " + what);
  }
}

}  // namespace gpuhealth::daemon
