// SPDX-License-Identifier: Apache-2.0
#include "telemetry/intel.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "telemetry/parse.hpp"

namespace gpuhealth::telemetry {
namespace fs = std::filesystem;
namespace {

struct NameRow {
  std::uint16_t device_id;
  std::string_view name;
};
constexpr std::array kNames = std::to_array<NameRow>({
#define INTEL_GPU(id, name) {id, name},
#include "telemetry/intel_names.def"
#undef INTEL_GPU
});

struct ReasonRow {
  std::string_view word;  // after "reason_" or "throttle_reason_"
  ThrottleReason reason;
};
// The house's words for Intel's (docs/telemetry.md): the sustained and the burst limit, peak current, heat.
constexpr std::array kReasons = std::to_array<ReasonRow>({
    {"pl1", ThrottleReason::Ppt0},
    {"pl2", ThrottleReason::Ppt1},
    {"psys_pl1", ThrottleReason::Ppt2},
    {"psys_pl2", ThrottleReason::Ppt3},
    {"psys_crit", ThrottleReason::HwPowerBrake},
    {"pl4", ThrottleReason::EdcGfx},
    {"iccmax", ThrottleReason::EdcGfx},
    {"vr_tdc", ThrottleReason::TdcGfx},
    {"thermal", ThrottleReason::TempGpu},
    {"ratl", ThrottleReason::ThermalSocket},
    {"soc_thermal", ThrottleReason::TempSoc},
    {"soc_avg_thermal", ThrottleReason::TempSoc},
    {"mem_thermal", ThrottleReason::TempMem},
    {"vr_thermalert", ThrottleReason::ThermalVr},
    {"vr_thermal", ThrottleReason::ThermalVr},
    {"prochot", ThrottleReason::Prochot},
});

std::vector<std::string> entries(const fs::path& folder, std::string_view prefix) {
  std::vector<std::string> out;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    auto name = it->path().filename().string();
    if (name.starts_with(prefix)) out.push_back(std::move(name));
  }
  std::ranges::sort(out);
  return out;
}

std::size_t block_of(std::string_view name) {
  return static_cast<std::size_t>(std::ranges::find(kRasBlocks, name) - kRasBlocks.begin());
}

}  // namespace

bool is_discrete_intel(const PciAddress& address) {
  return address.domain != 0 || address.bus != 0 || address.device != 2;
}

std::string_view intel_name(std::uint16_t device_id) {
  const auto* const row = std::ranges::find(kNames, device_id, &NameRow::device_id);
  return row == kNames.end() ? std::string_view() : row->name;
}

std::optional<ThrottleReason> intel_reason(std::string_view file) {
  constexpr std::string_view xe = "reason_";
  constexpr std::string_view i915 = "throttle_reason_";
  if (file.starts_with(i915)) {
    file.remove_prefix(i915.size());
  } else if (file.starts_with(xe)) {
    file.remove_prefix(xe.size());
  } else {
    return std::nullopt;
  }
  const auto* const row = std::ranges::find(kReasons, file, &ReasonRow::word);
  return row == kReasons.end() ? std::nullopt : std::optional(row->reason);
}

std::optional<ErrorCounter> intel_error_counter(std::string_view file) {
  const auto has = [&](std::string_view word) {
    // A word of the name: "_fatal_" is none of "nonfatal".
    for (auto at = file.find(word); at != std::string_view::npos; at = file.find(word, at + 1)) {
      const auto end = at + word.size();
      if ((at == 0 || file[at - 1] == '_') && (end == file.size() || file[end] == '_')) return true;
    }
    return false;
  };
  ErrorCounter out;
  out.block = block_of(has("hbm") ? "umc" : "gfx");
  if (has("correctable")) {
    out.kind = RasKind::Correctable;
  } else if (has("fatal") || has("nonfatal")) {
    out.kind = RasKind::Uncorrectable;
  } else {
    return std::nullopt;
  }
  return out;
}

IntelFiles::IntelFiles(const std::string& dir) {
  // xe: tile0/gt0/freq0/throttle/status
  for (const auto& tile : entries(dir, "tile")) {
    for (const auto& gt : entries(dir + "/" + tile, "gt")) {
      const auto below = tile + "/" + gt;
      for (const auto& freq : entries(dir + "/" + below, "freq"))
        open_domain(dir, "", below + "/" + freq + "/throttle/");
      open_counters(dir, below + "/error_counter/");
    }
  }
  // i915: drm/card0/gt/gt0/throttle_reason_status
  for (const auto& card : entries(dir + "/drm", "card")) {
    for (const auto& gt : entries(dir + "/drm/" + card + "/gt", "gt")) {
      const auto below = "drm/" + card + "/gt/" + gt + "/";
      open_domain(dir, "throttle_", below);
      open_counters(dir, below + "error_counter/");
    }
  }
}

void IntelFiles::open_domain(const std::string& dir, const std::string& prefix, const std::string& shown) {
  const std::string status = shown + (prefix.empty() ? "status" : prefix + "reason_status");
  auto opened = open_attribute(dir + "/" + status);
  if (!opened) return;
  Domain domain;
  domain.status = {std::move(*opened), status};
  for (const auto& file : entries(dir + "/" + shown, prefix + "reason_")) {
    const auto reason = intel_reason(file);
    if (!reason) continue;
    auto fd = open_attribute(dir + "/" + shown + file);
    if (fd) domain.reasons.push_back({{std::move(*fd), shown + file}, *reason});
  }
  domains_.push_back(std::move(domain));
}

void IntelFiles::open_counters(const std::string& dir, const std::string& shown) {
  for (const auto& file : entries(dir + "/" + shown, "")) {
    const auto counter = intel_error_counter(file);
    if (!counter) continue;
    auto fd = open_attribute(dir + "/" + shown + file);
    if (fd) counters_.push_back({{std::move(*fd), shown + file}, ras_reading(counter->block, counter->kind)});
  }
}

std::optional<ThrottleSet> IntelFiles::throttle(const Read& read) const {
  const auto says = [&](const Named& file) -> std::optional<bool> {
    const auto got = read(file.fd, file.shown);
    const auto value = got.sys_errno == 0 ? parse_integer(got.text) : std::nullopt;
    return value ? std::optional(*value != 0) : std::nullopt;
  };
  std::optional<ThrottleSet> out;
  for (const auto& domain : domains_) {
    const auto throttled = says(domain.status);
    if (!throttled) continue;
    if (!out) out.emplace();
    if (!*throttled) continue;
    for (const auto& row : domain.reasons) {
      if (says(row.file).value_or(false)) out->insert(row.reason);
    }
  }
  return out;
}

std::vector<Reading> IntelFiles::errors(const Read& read) const {
  std::map<ReadingId, Reading> sums;
  for (const auto& counter : counters_) {
    auto& sum = sums.try_emplace(counter.id, Reading{counter.id, ReadingStatus::Valid, 0, 0}).first->second;
    const auto got = read(counter.file.fd, counter.file.shown);
    const auto value = got.sys_errno == 0 ? parse_integer(got.text) : std::nullopt;
    if (sum.status != ReadingStatus::Valid) continue;
    if (value && *value >= 0) {
      sum.value += static_cast<double>(*value);
    } else {
      const auto why = got.sys_errno != 0 ? got.sys_errno : EINVAL;
      sum = {counter.id, ReadingStatus::Unreadable, static_cast<std::int16_t>(why), 0};
    }
  }
  std::vector<Reading> out;
  out.reserve(sums.size());
  for (const auto& [id, reading] : sums) out.push_back(reading);
  return out;
}

}  // namespace gpuhealth::telemetry
