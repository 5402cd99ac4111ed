// SPDX-License-Identifier: Apache-2.0
#include "sim/judge.hpp"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <fstream>

#include "core/clock.hpp"
#include "core/device.hpp"

namespace gpuhealth::sim {
namespace {

std::string seconds(double s) {
  return s == kNever ? "never" : fmt::format("{:.0f} s", s);
}

// As discovery makes it from the card's files.
std::string id_of(const Card& card) {
  if (card.model.has_unique_id) return fmt::format("uid-{:016x}", card.unique_id);
  DeviceInfo info;
  info.pci = card.place.gpu;
  info.vendor_id = 0x1002;
  info.device_id = card.model.device_id;
  info.subsystem_vendor = card.model.subsystem_vendor;
  info.subsystem_device = card.model.subsystem_device;
  info.vbios_version = card.model.vbios_version;
  return info.id();
}

const dbus::DeviceView* find_device(const std::vector<dbus::DeviceView>& devices, const std::string& id) {
  const auto it = std::ranges::find(devices, id, &dbus::DeviceView::id);
  return it == devices.end() ? nullptr : &*it;
}

std::string say(const Reading* reading) {
  if (reading == nullptr) return "not there";
  const bool valid = reading->status == ReadingStatus::Valid;
  return valid ? fmt::format("{:g}, valid", reading->value) : std::string(to_string(reading->status));
}

bool holds(const ExpectReading& wanted, const Reading* reading) {
  if (reading == nullptr) return false;
  if (wanted.status && reading->status != *wanted.status) return false;
  if (!wanted.at_least && !wanted.at_most) return true;
  if (reading->status != ReadingStatus::Valid) return false;
  return (!wanted.at_least || reading->value >= *wanted.at_least) &&
         (!wanted.at_most || reading->value <= *wanted.at_most);
}

std::vector<canary::Measurement> read_measurements(const std::filesystem::path& path) {
  std::vector<canary::Measurement> out;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    if (auto m = canary::parse_measurement(line)) out.push_back(std::move(*m));
  }
  return out;
}

// The texts that neither its detail nor its evidence has.
std::string unsaid(const Condition& condition, const std::vector<std::string>& wanted) {
  std::string out;
  for (const auto& text : wanted) {
    const auto holds_it = [&](const std::string& said) { return said.find(text) != std::string::npos; };
    const bool said = holds_it(condition.detail) || std::ranges::any_of(condition.evidence, [&](const Evidence& e) {
                        return holds_it(e.name + ": " + e.value);
                      });
    if (!said) out += "; does not say \"" + text + "\"";
  }
  return out;
}

std::string all_said(const Condition& condition) {
  std::string out = condition.detail;
  for (const auto& e : condition.evidence) out += " | " + e.name + ": " + e.value;
  return out;
}

}  // namespace

Judge::Judge(const Scenario& scenario, const Player& player) : scenario_(scenario), player_(player) {
  for (std::size_t i = 0; i < scenario.expectations.size(); ++i) {
    const auto& what = scenario.expectations[i].what;
    if (std::holds_alternative<ExpectReading>(what)) readings_[i] = "not looked at";
    if (std::holds_alternative<ExpectDevice>(what)) devices_[i] = "not looked at";
    wants_events_ = wants_events_ || std::holds_alternative<ExpectEvent>(what);
  }
}

std::string Judge::card_of(const std::string& device) const {
  for (const auto& card : scenario_.cards) {
    const Card& now = player_.card(card.name);
    if (device == id_of(now) || device == id_of(card.card)) return card.name;
    if (device.starts_with("pci-" + to_string(now.place.gpu))) return card.name;  // without its driver
  }
  return {};
}

void Judge::look(double now_s, const std::string& bus_address) {
  auto client = dbus::Client::connect(bus_address, std::chrono::seconds(2));
  if (!client) return;
  const auto conditions = client->conditions();
  const auto devices = client->devices();
  if (!conditions || !devices) return;
  ++answers_;
  look_at_conditions(now_s, *conditions);
  look_at_devices(now_s, *devices);
  if (!wants_events_) return;
  constexpr std::uint32_t kMost = 1000;
  constexpr auto kAll = std::chrono::hours(24 * 365);
  const auto now = SystemClock().now().wall;
  if (const auto events = client->events(now - kAll, now + kAll, kMost)) look_at_events(now_s, *events);
}

void Judge::look_at_events(double now_s, const std::vector<Event>& events) {
  for (const auto& event : events) {
    const auto key = std::to_string(event.time.time_since_epoch().count()) + event.type + event.device + event.text;
    if (event_keys_.insert(key).second) events_.push_back({event, card_of(event.device), now_s});
  }
}

Finding Judge::judge(const ExpectEvent& wanted) const {
  std::size_t count = 0;
  std::string example;
  for (const auto& seen : events_) {
    if (seen.event.type != wanted.type || (!wanted.card.empty() && seen.card != wanted.card)) continue;
    example = fmt::format("{} at {}: {}", to_string(seen.event.severity), seconds(seen.seen_s), seen.event.text);
    if (seen.seen_s > wanted.by_s || (wanted.severity && seen.event.severity != *wanted.severity)) continue;
    if (seen.event.text.find(wanted.says) != std::string::npos) ++count;
  }
  Finding finding;
  finding.seen = fmt::format("{} times{}", count, example.empty() ? "" : ", such as " + example);
  finding.held = count >= wanted.at_least && (!wanted.at_most || count <= *wanted.at_most);
  return finding;
}

void Judge::look_at_conditions(double now_s, const std::vector<Condition>& conditions) {
  for (const auto& c : conditions) {
    if (c.state != ConditionState::Confirmed) continue;
    const auto [it, fresh] = seen_.try_emplace(c.id, Seen{c, card_of(c.device), now_s, kNever});
    if (!fresh) {
      it->second.cleared_s = kNever;
      const auto worst = std::max(it->second.condition.severity, c.severity);
      it->second.condition = c;  // more may be known by now
      it->second.condition.severity = worst;
    }
  }
  for (auto& [id, seen] : seen_) {
    const bool open = std::ranges::any_of(conditions, [&](const Condition& c) { return c.id == id; });
    if (!open && seen.cleared_s == kNever) seen.cleared_s = now_s;
  }
}

void Judge::look_at_devices(double now_s, const std::vector<dbus::DeviceView>& devices) {
  for (auto& [i, seen] : readings_) {
    const auto& wanted = std::get<ExpectReading>(scenario_.expectations[i].what);
    if (seen.empty() || now_s < wanted.from_s || now_s > wanted.by_s) continue;
    const auto* device = find_device(devices, id_of(player_.card(wanted.card)));
    const Reading* reading = nullptr;
    if (device != nullptr) {
      const auto it = std::ranges::find(device->readings, wanted.id, &Reading::id);
      if (it != device->readings.end()) reading = &*it;
    }
    seen = holds(wanted, reading) ? "" : say(reading);
  }
  for (auto& [i, seen] : devices_) {
    const auto& wanted = std::get<ExpectDevice>(scenario_.expectations[i].what);
    if (decided_[i]) continue;
    const bool present = find_device(devices, id_of(player_.card(wanted.card))) != nullptr;
    seen = present == wanted.present ? "" : present ? "it is there" : "it is not there";
    decided_[i] = now_s >= wanted.by_s;
  }
}

Finding Judge::judge(const ExpectCondition& wanted) const {
  Finding finding;
  const Seen* best = nullptr;
  for (const auto& [id, seen] : seen_) {
    if (seen.condition.type != wanted.type || (!wanted.card.empty() && seen.card != wanted.card)) continue;
    if (seen.confirmed_s < wanted.from_s && (wanted.confirmed_by_s || wanted.never)) continue;
    if (best == nullptr || seen.confirmed_s < best->confirmed_s) best = &seen;
  }
  if (best == nullptr) {
    finding.seen = "never confirmed";
    finding.held = wanted.never;
    return finding;
  }
  finding.seen = fmt::format("confirmed at {}, {}, cleared {}", seconds(best->confirmed_s),
                             to_string(best->condition.severity), seconds(best->cleared_s));
  if (wanted.never) return finding;
  const auto missing = unsaid(best->condition, wanted.says);
  if (!wanted.says.empty()) finding.seen += missing + "; said: " + all_said(best->condition);
  finding.held = missing.empty() && (!wanted.confirmed_by_s || best->confirmed_s <= *wanted.confirmed_by_s) &&
                 (!wanted.cleared_by_s || best->cleared_s <= *wanted.cleared_by_s) &&
                 (!wanted.severity || best->condition.severity == *wanted.severity);
  return finding;
}

Finding Judge::judge(const ExpectCanary& wanted, const std::vector<canary::Measurement>& lines) const {
  Finding finding;
  finding.held = true;
  std::size_t count = 0;
  for (const auto& m : lines) {
    if (m.canary != wanted.canary || (!wanted.backend.empty() && m.backend != wanted.backend)) continue;
    if (!wanted.card.empty() && m.device != to_string(player_.card(wanted.card).place.gpu)) continue;
    const auto kernel = m.software.find("kernel");
    if (!wanted.kernel.empty() && (kernel == m.software.end() || kernel->second != wanted.kernel)) continue;
    if (m.value) ++count;
    if (std::ranges::find(wanted.status, canary::to_string(m.status)) != wanted.status.end()) continue;
    finding.held = false;
    finding.seen = fmt::format("{} by {}: {}", canary::to_string(m.status), m.backend, m.reason);
  }
  finding.held = finding.held && count >= wanted.at_least;
  finding.seen = fmt::format("{} lines{}{}", count, finding.seen.empty() ? "" : ", one of them ", finding.seen);
  return finding;
}

Finding Judge::judge(const ExpectAccess& wanted, const std::vector<Access>& accesses,
                     const std::function<double(std::chrono::steady_clock::time_point)>& second) const {
  // The card may have moved: each of its places counts.
  std::vector<std::string> patterns;
  if (wanted.card.empty()) {
    patterns.push_back("*/" + wanted.files);
  } else {
    for (const auto& card : scenario_.cards) {
      if (card.name != wanted.card) continue;
      patterns.push_back("*/" + to_string(card.card.place.gpu) + "/" + wanted.files);
      patterns.push_back("*/" + to_string(player_.card(card.name).place.gpu) + "/" + wanted.files);
    }
  }
  std::size_t count = 0;
  std::string example;
  for (const auto& access : accesses) {
    if (access.kind != wanted.kind) continue;
    const double at = second(access.time);
    if (at < wanted.from_s || at > wanted.to_s) continue;
    const bool fits = std::ranges::any_of(
        patterns, [&](const std::string& pattern) { return fnmatch(pattern.c_str(), access.path.c_str(), 0) == 0; });
    if (!fits) continue;
    ++count;
    example = access.path;
  }
  Finding finding;
  finding.seen = fmt::format("{} times{}", count, count == 0 ? "" : ", such as " + example);
  finding.held = (!wanted.at_least || count >= *wanted.at_least) && (!wanted.at_most || count <= *wanted.at_most);
  return finding;
}

namespace {

// The moments are recorded, each no earlier than the one before: they are written so that text sorts as time.
bool has_times(const LedgerEntry& entry, const std::vector<std::string>& wanted) {
  std::string last;
  return std::ranges::all_of(wanted, [&](const std::string& moment) {
    const auto found = entry.times.find(moment);
    if (found == entry.times.end() || found->second < last) return false;
    last = found->second;
    return true;
  });
}

}  // namespace

Finding Judge::judge(const ExpectLedger& wanted, const std::vector<LedgerEntry>& ledger) {
  Finding finding;
  std::size_t count = 0;
  for (const auto& entry : ledger) {
    if (entry.action != wanted.action) continue;
    count += (wanted.state.empty() || entry.state == wanted.state) && has_times(entry, wanted.times) ? 1 : 0;
    finding.seen += (finding.seen.empty() ? "" : ", ") + entry.id + " " + entry.state;
    for (const auto& moment : wanted.times)
      finding.seen += " " + moment + ":" + (entry.times.contains(moment) ? entry.times.at(moment) : "never");
  }
  if (finding.seen.empty()) finding.seen = "none";
  finding.held = (!wanted.at_least || count >= *wanted.at_least) && (!wanted.at_most || count <= *wanted.at_most);
  return finding;
}

bool Judge::settled(const std::filesystem::path& canary_results) const {
  const auto lines = read_measurements(canary_results);
  return std::ranges::all_of(scenario_.expectations, [&](const Expectation& e) {
    if (const auto* condition = std::get_if<ExpectCondition>(&e.what))
      return condition->never || judge(*condition).held;
    if (const auto* canary = std::get_if<ExpectCanary>(&e.what)) return judge(*canary, lines).held;
    return true;
  });
}

std::vector<Finding> Judge::conclude(const std::vector<Access>& accesses,
                                     const std::function<double(std::chrono::steady_clock::time_point)>& second,
                                     const std::filesystem::path& canary_results,
                                     const std::vector<LedgerEntry>& ledger) const {
  std::vector<Finding> out;
  const auto lines = read_measurements(canary_results);
  for (std::size_t i = 0; i < scenario_.expectations.size(); ++i) {
    const auto& expectation = scenario_.expectations[i];
    Finding finding;
    if (const auto* condition = std::get_if<ExpectCondition>(&expectation.what)) {
      finding = judge(*condition);
    } else if (const auto* access = std::get_if<ExpectAccess>(&expectation.what)) {
      finding = judge(*access, accesses, second);
    } else if (const auto* canary = std::get_if<ExpectCanary>(&expectation.what)) {
      finding = judge(*canary, lines);
    } else if (const auto* kept = std::get_if<ExpectLedger>(&expectation.what)) {
      finding = judge(*kept, ledger);
    } else if (const auto* event = std::get_if<ExpectEvent>(&expectation.what)) {
      finding = judge(*event);
    } else {
      const auto& seen = readings_.contains(i) ? readings_.at(i) : devices_.at(i);
      finding.held = seen.empty();
      finding.seen = seen.empty() ? "as expected" : seen;
    }
    finding.text = expectation.text;
    finding.line = expectation.line;
    out.push_back(std::move(finding));
  }
  for (const auto& [id, seen] : seen_) {
    if (seen.condition.severity == Severity::Info) continue;
    const bool named = std::ranges::any_of(scenario_.expectations, [&](const Expectation& e) {
      const auto* c = std::get_if<ExpectCondition>(&e.what);
      return c != nullptr && !c->never && c->type == seen.condition.type && (c->card.empty() || c->card == seen.card);
    });
    if (named) continue;
    out.push_back({fmt::format("no {} of {}", info(seen.condition.type).name,
                               seen.card.empty() ? seen.condition.device : seen.card),
                   0, false, fmt::format("confirmed at {}: {}", seconds(seen.confirmed_s), seen.condition.detail)});
  }
  if (!scenario_.writes_allowed) {
    Finding writes = judge(ExpectAccess{AccessKind::Write, "", "*", 0, kNever, {}, 0}, accesses, second);
    writes.text = "nothing is written to /sys";
    out.push_back(std::move(writes));
  }
  return out;
}

}  // namespace gpuhealth::sim
