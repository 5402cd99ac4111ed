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

void write(Writer& out, const std::vector<ComputeNode>& nodes) {
  out.begin('a', "(utusiu)");
  for (const auto& n : nodes) {
    out.begin('r', "utusiu").u32(n.node).u64(n.gpu_id).u32(n.partition).text(n.gfx);
    out.i32(n.render_minor).u32(n.compute_units).end();
  }
  out.end();
}

void write(Writer& out, const std::vector<GpuClient>& clients) {
  out.begin('a', "(utxtddb)");
  for (const auto& c : clients) {
    out.begin('r', "utxtddb").u32(c.pid).u64(c.started);
    out.i64(c.vram_bytes ? static_cast<std::int64_t>(*c.vram_bytes) : -1).u64(c.gtt_bytes);
    out.number(c.engine_percent.value_or(-1)).number(c.cpu_percent.value_or(-1)).flag(c.queues).end();
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

std::vector<ComputeNode> read_compute_nodes(Reader& in) {
  std::vector<ComputeNode> nodes;
  if (!in.enter('a', "(utusiu)")) return nodes;
  while (in.enter('r', "utusiu")) {
    ComputeNode n;
    n.node = in.u32();
    n.gpu_id = in.u64();
    n.partition = in.u32();
    n.gfx = in.text();
    n.render_minor = in.i32();
    n.compute_units = in.u32();
    in.leave();
    nodes.push_back(std::move(n));
  }
  in.leave();
  return nodes;
}

std::vector<GpuClient> read_clients(Reader& in) {
  std::vector<GpuClient> clients;
  if (!in.enter('a', "(utxtddb)")) return clients;
  while (in.enter('r', "utxtddb")) {
    GpuClient c;
    c.pid = in.u32();
    c.started = in.u64();
    if (const auto bytes = in.i64(); bytes >= 0) c.vram_bytes = static_cast<std::uint64_t>(bytes);
    c.gtt_bytes = in.u64();
    if (const double engine = in.number(); engine >= 0) c.engine_percent = engine;
    if (const double cpu = in.number(); cpu >= 0) c.cpu_percent = cpu;
    c.queues = in.flag();
    in.leave();
    clients.push_back(c);
  }
  in.leave();
  return clients;
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
