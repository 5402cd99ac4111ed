// SPDX-License-Identifier: Apache-2.0
#include "cli/acceptance.hpp"

#include <algorithm>
#include <optional>

namespace gpuhealth::cli {
namespace {

using canary::Status;

std::string text(const Json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_string() ? it->get<std::string>() : std::string();
}

Json device_at(const Json& inspection, std::string_view pci) {
  if (!inspection.is_object() || !inspection.contains("devices") || !inspection["devices"].is_array()) return {};
  for (const auto& one : inspection["devices"]) {
    if (one.is_object() && text(one, "pci") == pci) return one;
  }
  return {};
}

std::optional<double> value(const Json& reading) {
  if (!reading.is_object() || !reading.contains("value") || !reading["value"].is_number()) return std::nullopt;
  return reading["value"].get<double>();
}

struct Counted {
  bool any = false;
  std::string bad;  // "ras.umc.uncorrectable 3"
};

template <class Wanted>
Counted count(const Json& device, const Wanted& wanted) {
  Counted out;
  if (!device.is_object() || !device.contains("readings") || !device["readings"].is_object()) return out;
  for (const auto& [name, reading] : device["readings"].items()) {
    const auto v = wanted(name) ? value(reading) : std::nullopt;
    if (!v) continue;
    out.any = true;
    if (*v > 0) out.bad += (out.bad.empty() ? "" : ", ") + name + " " + std::to_string(static_cast<long long>(*v));
  }
  return out;
}

bool passed(const std::vector<RunRow>& rows, std::string_view canary) {
  return std::ranges::any_of(rows, [&](const auto& r) { return r.measurement.canary == canary && r.verdict == "ok"; });
}

HardwareCheck memory(const Json& device, const std::vector<RunRow>& rows) {
  const auto seen = count(device, [](const std::string& name) {
    return name.starts_with("ras.") && (name.ends_with(".uncorrectable") || name.ends_with(".deferred"));
  });
  if (!seen.bad.empty()) return {"memory errors", "bad", "counted since the driver was loaded: " + seen.bad};
  if (seen.any) return {"memory errors", "ok", "the card counts none"};
  if (passed(rows, "vram_pattern"))
    return {"memory errors", "ok", "no counter can be read; the patterns that were written came back unchanged"};
  return {"memory errors", "unknown", "no counter can be read, and no pattern was written (vram_pattern)"};
}

HardwareCheck pcie(const Json& device) {
  const auto seen =
      count(device, [](const std::string& name) { return name == "aer.nonfatal" || name == "aer.fatal"; });
  if (!seen.bad.empty()) return {"PCIe errors", "bad", "counted since boot: " + seen.bad};
  if (seen.any) return {"PCIe errors", "ok", "no uncorrected error since boot"};
  return {"PCIe errors", "unknown", "no counter can be read (aer_dev_nonfatal, aer_dev_fatal)"};
}

HardwareCheck clocks(const std::vector<RunRow>& rows) {
  for (const auto& r : rows) {
    if (r.measurement.canary != "triad" || !r.measurement.notes.contains("ideal")) continue;
    if (r.verdict == "ok") return {"clocks", "ok", "memory reaches what the card states under load"};
    if (r.verdict == "slower") return {"clocks", "bad", "memory reaches less than half of what the card states"};
  }
  return {"clocks", "unknown", "the card does not state its memory's speed, or it could not be measured (triad)"};
}

}  // namespace

std::vector<HardwareCheck> check_hardware(const Json& inspection, std::string_view pci,
                                          const std::vector<RunRow>& rows) {
  const Json device = device_at(inspection, pci);
  std::vector<HardwareCheck> out = {memory(device, rows), pcie(device), clocks(rows)};
  if (!device.is_object() || !device.contains("conditions") || !device["conditions"].is_array()) return out;
  for (const auto& c : device["conditions"]) {
    const auto severity = text(c, "severity");
    if (severity != "warning" && severity != "critical") continue;
    out.push_back({"condition", "bad", text(c, "title") + ": " + text(c, "detail")});
  }
  return out;
}

std::string acceptance_verdict(const std::vector<RunRow>& rows, const std::vector<HardwareCheck>& checks) {
  const auto any_row = [&](auto which) { return std::ranges::any_of(rows, which); };
  const auto any_check = [&](std::string_view verdict) {
    return std::ranges::any_of(checks, [&](const auto& c) { return c.verdict == verdict; });
  };
  const bool bad_row =
      any_row([](const auto& r) { return r.verdict != "ok" && r.verdict != "unsupported" && r.verdict != "busy"; });
  if (bad_row || any_check("bad")) return "not cleared";
  if (any_row([](const auto& r) { return r.verdict == "busy"; })) return "busy";
  if (!any_row([](const auto& r) { return r.measurement.status == Status::Ok; })) return "unsupported";
  return any_check("unknown") ? "incomplete" : "hardware cleared";
}

}  // namespace gpuhealth::cli
