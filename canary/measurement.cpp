// SPDX-License-Identifier: Apache-2.0
#include "canary/measurement.hpp"

#include <array>
#include <cmath>
#include <cstdio>
#include <ctime>

#include <nlohmann/json.hpp>

#include "core/json.hpp"

namespace gpuhealth::canary {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostBytes = 1U << 16U;  // of a line
constexpr std::size_t kMostMappings = 64;
constexpr double kMostSlots = 1 << 20;

class Reader {
 public:
  explicit Reader(const Json& json) : json_(json) {}

  [[nodiscard]] const Json* at(const char* key) const {
    const auto it = json_.find(key);
    return it == json_.end() || it->is_null() ? nullptr : &*it;
  }
  std::string text(const char* key, std::string fallback = {}) {
    const Json* value = at(key);
    if (value == nullptr) return fallback;
    if (!value->is_string()) return wrong(key, "text"), fallback;
    return value->get<std::string>();
  }
  std::optional<double> number(const char* key) {
    const Json* value = at(key);
    if (value == nullptr) return std::nullopt;
    if (!value->is_number() || !std::isfinite(value->get<double>())) return wrong(key, "a finite number"), std::nullopt;
    return value->get<double>();
  }
  // Text by name; numbers and flags of other writers are taken as text.
  std::map<std::string, std::string> texts(const char* key) {
    std::map<std::string, std::string> out;
    const Json* value = at(key);
    if (value == nullptr) return out;
    if (!value->is_object()) return wrong(key, "an object"), out;
    for (const auto& [name, item] : value->items())
      out[name] = item.is_string() ? item.get<std::string>() : item.dump();
    return out;
  }
  void wrong(const std::string& key, const std::string& expected) {
    if (error.empty()) error = "\"" + key + "\" is not " + expected;
  }
  std::string error;

 private:
  const Json& json_;
};

double time_of(Reader& in) {
  const Json* value = in.at("time");
  if (value == nullptr) return 0;
  if (value->is_string()) {
    const auto time = parse_time(value->get<std::string>());
    if (!time) in.wrong("time", "a time (2026-11-30T14:02:07Z, or seconds since 1970)");
    return time.value_or(0);
  }
  return in.number("time").value_or(0);
}

std::vector<Mapping> mappings_of(Reader& in) {
  std::vector<Mapping> out;
  const Json* list = in.at("mappings");
  if (list == nullptr) return out;
  if (!list->is_array() || list->size() > kMostMappings) return in.wrong("mappings", "a short list"), out;
  for (const auto& item : *list) {
    if (!item.is_object()) return in.wrong("mappings", "a list of objects"), out;
    Reader one(item);
    const double slots = one.number("slots").value_or(2);
    if (slots < 1 || slots > kMostSlots) one.wrong("slots", "between 1 and 1048576");
    Mapping mapping;
    mapping.ms = one.number("ms").value_or(0);
    mapping.control_ms = one.number("control_ms").value_or(0);
    mapping.system_ms = one.number("system_ms").value_or(0);
    mapping.slots = one.error.empty() ? static_cast<int>(slots) : 1;
    if (!one.error.empty()) return in.wrong("mappings", "sound: " + one.error), out;
    out.push_back(mapping);
  }
  return out;
}

Measurement read(Reader& in) {
  Measurement m;
  m.canary = in.text("canary");
  if (m.canary.empty() && in.error.empty()) in.error = "it has no \"canary\"";
  m.metric = in.text("metric");
  if (m.metric.empty()) {
    if (const auto rows = metrics_of(m.canary); !rows.empty()) m.metric = rows.front().metric;
  }
  const auto* info = find_canary(m.canary, m.metric);
  m.unit = in.text("unit", info == nullptr ? "" : std::string(info->unit));
  m.value = in.number("value");
  const auto status = status_from(in.text("status", "ok"));
  if (!status) in.wrong("status", "one of ok, wrong, failed, timeout, unsupported, busy, stuck, backend-failed");
  m.status = status.value_or(Status::Failed);
  const auto better = in.text("better", info != nullptr && info->better == Better::Higher ? "higher" : "lower");
  if (better != "higher" && better != "lower") in.wrong("better", "\"higher\" or \"lower\"");
  m.better = better == "higher" ? Better::Higher : Better::Lower;
  const auto tier = in.number("tier").value_or(info == nullptr ? 1 : info->tier);
  if (tier < 0 || tier > 3) in.wrong("tier", "0 to 3");
  m.tier = tier >= 0 && tier <= 3 ? static_cast<int>(tier) : 1;
  return m;
}

Json number_or_null(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? Json(*value) : Json(nullptr);
}

}  // namespace

Result<Measurement> parse_measurement(std::string_view line) {
  if (line.size() > kMostBytes) return fail(ErrorCode::InvalidInput, "it has more than 65536 bytes");
  const Json json = parse_json<Json>(line);
  if (!json.is_object()) return fail(ErrorCode::InvalidInput, "it is not a JSON object");
  Reader in(json);
  Measurement m = read(in);
  m.backend = in.text("backend");
  m.device = in.text("device");
  m.device_name = in.text("device_name");
  m.time = time_of(in);
  m.software = in.texts("software");
  // An epoch may be named (a kernel release will do) or be the fields themselves.
  if (const Json* epoch = in.at("epoch"); epoch != nullptr && epoch->is_object())
    m.software = in.texts("epoch");
  else
    m.epoch = in.text("epoch");
  if (m.epoch.empty() && !m.software.empty()) m.epoch = epoch_of(m.software);
  const auto gate = gate_from(in.text("gate", "unknown"));
  if (!gate) in.wrong("gate", "unknown, weak or strong");
  m.gate = gate.value_or(Gate::Unknown);
  m.p25 = in.number("p25");
  m.worst = in.number("worst");
  if (const auto n = in.number("samples"); n && *n >= 0 && *n < 1e9) m.samples = static_cast<int>(*n);
  m.mappings = mappings_of(in);
  m.user_ms = in.number("user_ms");
  m.system_ms = in.number("system_ms");
  m.gpu_ms = in.number("gpu_ms");
  m.environment = in.texts("environment");
  m.notes = in.texts("notes");
  m.reason = in.text("reason");
  if (m.status == Status::Ok && !m.value && in.error.empty()) in.error = "its status is ok and it has no \"value\"";
  if (!in.error.empty()) return fail(ErrorCode::InvalidInput, in.error);
  return m;
}

std::string to_json_line(const Measurement& m) {
  Json out;
  out["canary"] = m.canary;
  out["metric"] = m.metric;
  out["unit"] = m.unit;
  out["value"] = number_or_null(m.value);
  out["status"] = to_string(m.status);
  if (!m.reason.empty()) out["reason"] = m.reason;
  out["better"] = m.better == Better::Higher ? "higher" : "lower";
  out["tier"] = m.tier;
  out["backend"] = m.backend;
  out["device"] = m.device;
  out["device_name"] = m.device_name;
  out["time"] = time_text(m.time);
  out["epoch"] = m.epoch;
  out["gate"] = to_string(m.gate);
  if (m.p25) out["p25"] = number_or_null(m.p25);
  if (m.worst) out["worst"] = number_or_null(m.worst);
  if (m.samples) out["samples"] = *m.samples;
  for (const auto& mapping : m.mappings)
    out["mappings"].push_back({{"ms", mapping.ms},
                               {"control_ms", mapping.control_ms},
                               {"system_ms", mapping.system_ms},
                               {"slots", mapping.slots}});
  if (m.gpu_ms) out["gpu_ms"] = number_or_null(m.gpu_ms);
  if (m.user_ms) out["user_ms"] = number_or_null(m.user_ms);
  if (m.system_ms) out["system_ms"] = number_or_null(m.system_ms);
  if (!m.environment.empty()) out["environment"] = m.environment;
  if (!m.notes.empty()) out["notes"] = m.notes;
  if (!m.software.empty()) out["software"] = m.software;
  return out.dump(-1, ' ', true, Json::error_handler_t::replace);
}

std::string epoch_of(const std::map<std::string, std::string>& software) {
  std::uint64_t hash = 14695981039346656037ULL;  // FNV-1a
  const auto mix = [&](std::string_view text) {
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
    hash = (hash ^ 0xffU) * 1099511628211ULL;  // ends a field: "ab"+"c" is not "a"+"bc"
  };
  for (const auto& [name, value] : software) {
    mix(name);
    mix(value);
  }
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(hash));
  return text.data();
}

std::optional<double> parse_time(std::string_view text) {
  std::tm tm{};
  const std::string copy(text);
  const char* rest = strptime(copy.c_str(), "%Y-%m-%dT%H:%M:%S", &tm);
  if (rest == nullptr) return std::nullopt;
  double fraction = 0;
  if (*rest == '.') {
    double digit = 0.1;
    for (++rest; *rest >= '0' && *rest <= '9'; ++rest, digit /= 10) fraction += (*rest - '0') * digit;
  }
  if (std::string_view(rest) != "Z" && std::string_view(rest) != "+00:00") return std::nullopt;
  return static_cast<double>(timegm(&tm)) + fraction;
}

std::string time_text(double seconds) {
  const double whole = std::floor(seconds);
  if (std::isnan(whole) || whole < 0 || whole >= 4e11) return "1970-01-01T00:00:00Z";
  const auto t = static_cast<std::time_t>(whole);
  std::tm tm{};
  gmtime_r(&t, &tm);
  std::array<char, 40> text{};
  std::size_t n = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &tm);
  const int milliseconds = static_cast<int>((seconds - whole) * 1000);
  if (milliseconds > 0)
    n += static_cast<std::size_t>(std::snprintf(text.data() + n, text.size() - n, ".%03d", milliseconds));
  return std::string(text.data(), n) + "Z";
}

}  // namespace gpuhealth::canary
