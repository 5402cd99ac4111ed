// SPDX-License-Identifier: Apache-2.0
#include "dbus/records.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

namespace gpuhealth::dbus {

void write(Writer& out, const std::vector<store::HistoryPoint>& points) {
  out.begin('a', "(tddd)");
  for (const auto& p : points) out.begin('r', "tddd").time(p.time).number(p.min).number(p.mean).number(p.max).end();
  out.end();
}

void write(Writer& out, const std::vector<Event>& events) {
  out.begin('a', "(tsssss)");
  for (const auto& e : events) {
    out.begin('r', "tsssss").time(e.time).text(e.type).text(to_string(e.severity)).text(e.device).text(e.text);
    out.text(e.boot_id).end();
  }
  out.end();
}

void write(Writer& out, const std::vector<Condition>& conditions) {
  out.begin('a', "(ssssbsstttssa(ss))");
  for (const auto& c : conditions) {
    out.begin('r', "ssssbsstttssa(ss)").text(c.id).text(info(c.type).name).text(to_string(c.severity));
    out.text(to_string(c.state)).flag(c.acknowledged).text(c.device).text(c.device_label).time(c.since);
    out.time(c.last_seen).time(c.state == ConditionState::Cleared ? c.cleared : WallTime{});
    out.text(c.boot_id).text(c.detail);
    write(out, c.evidence);
    out.end();
  }
  out.end();
}

void write(Writer& out, const std::vector<Reading>& readings) {
  out.begin('a', "(sdssi)");
  for (const auto& reading : readings) {
    const ReadingInfo* row = find_reading(reading.id);
    if (row == nullptr) continue;
    const bool has_value = reading.status == ReadingStatus::Valid || reading.status == ReadingStatus::Stale;
    out.begin('r', "sdssi").text(row->name).number(has_value ? reading.value : 0.0).text(to_string(row->unit));
    out.text(to_string(reading.status)).i32(reading.sys_errno).end();
  }
  out.end();
}

void write(Writer& out, const std::vector<Evidence>& evidence) {
  out.begin('a', "(ss)");
  for (const auto& e : evidence) out.begin('r', "ss").text(e.name).text(e.value).end();
  out.end();
}

void write(Writer& out, const std::vector<std::string>& texts) {
  out.begin('a', "s");
  for (const auto& text : texts) out.text(text);
  out.end();
}

std::vector<store::HistoryPoint> read_history(Reader& in) {
  std::vector<store::HistoryPoint> points;
  if (!in.enter('a', "(tddd)")) return points;
  while (in.enter('r', "tddd")) {
    store::HistoryPoint p;
    p.time = in.time();
    p.min = in.number();
    p.mean = in.number();
    p.max = in.number();
    in.leave();
    points.push_back(p);
  }
  in.leave();
  return points;
}

std::vector<Event> read_events(Reader& in) {
  std::vector<Event> events;
  if (!in.enter('a', "(tsssss)")) return events;
  while (in.enter('r', "tsssss")) {
    Event e;
    e.time = in.time();
    e.type = in.text();
    const auto severity = severity_from(in.text());
    e.device = in.text();
    e.text = in.text();
    e.boot_id = in.text();
    in.leave();
    if (!severity) continue;
    e.severity = *severity;
    events.push_back(std::move(e));
  }
  in.leave();
  return events;
}

std::vector<Condition> read_conditions(Reader& in) {
  std::vector<Condition> conditions;
  if (!in.enter('a', "(ssssbsstttssa(ss))")) return conditions;
  while (in.enter('r', "ssssbsstttssa(ss)")) {
    Condition c;
    c.id = in.text();
    const auto type = condition_type_from(in.text());
    const auto severity = severity_from(in.text());
    const auto state = condition_state_from(in.text());
    c.acknowledged = in.flag();
    c.device = in.text();
    c.device_label = in.text();
    c.since = in.time();
    c.last_seen = in.time();
    c.cleared = in.time();
    c.boot_id = in.text();
    c.detail = in.text();
    c.evidence = read_evidence(in);
    in.leave();
    if (!type || !severity || !state) continue;
    c.type = *type;
    c.severity = *severity;
    c.state = *state;
    conditions.push_back(std::move(c));
  }
  in.leave();
  return conditions;
}

std::vector<Reading> read_readings(Reader& in) {
  std::vector<Reading> readings;
  if (!in.enter('a', "(sdssi)")) return readings;
  while (in.enter('r', "sdssi")) {
    const ReadingInfo* row = find_reading(in.text());
    const double value = in.number();
    in.text();  // the unit follows from the name
    const auto status = reading_status_from(in.text());
    const auto sys_errno = std::clamp<std::int32_t>(in.i32(), 0, std::numeric_limits<std::int16_t>::max());
    in.leave();
    if (row == nullptr || !status) continue;
    readings.push_back({row->id, *status, static_cast<std::int16_t>(sys_errno), value});
  }
  in.leave();
  std::ranges::sort(readings, {}, &Reading::id);
  return readings;
}

std::vector<Evidence> read_evidence(Reader& in) {
  std::vector<Evidence> evidence;
  if (!in.enter('a', "(ss)")) return evidence;
  while (in.enter('r', "ss")) {
    std::string name = in.text();
    evidence.push_back({std::move(name), in.text()});
    in.leave();
  }
  in.leave();
  return evidence;
}

std::vector<std::string> read_texts(Reader& in) {
  std::vector<std::string> texts;
  if (!in.enter('a', "s")) return texts;
  while (!in.at_end()) texts.push_back(in.text());
  in.leave();
  return texts;
}

}  // namespace gpuhealth::dbus
