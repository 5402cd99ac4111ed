// SPDX-License-Identifier: Apache-2.0
#include "telemetry/source_table.hpp"

#include <filesystem>

#include "telemetry/sysfs.hpp"

namespace gpuhealth::telemetry {
namespace {

constexpr auto kNone = ReadingId::PlainCount;

constexpr std::array<ReadingId, 3> ids(ReadingId a, ReadingId b = kNone, ReadingId c = kNone) {
  return {a, b, c};
}

// The .def file names enumerators without their scope.
constexpr auto kRows = [] {
  using enum ReadingId;
  using enum SourceTier;
  using enum SourceAccess;
  using enum SourceParse;
  return std::to_array<SourceRow>({
#define SOURCE(file, tier, access, parse, scale, low, high, ...) \
  {file, tier, access, parse, scale, low, high, ids(__VA_ARGS__)},
#include "telemetry/sources.def"
#undef SOURCE
  });
}();

struct DefaultNumber {
  std::string_view label;
  int number;
};
// What amdgpu uses where a kernel writes no labels (amdgpu_pm.c).
constexpr std::array kDefaults = std::to_array<DefaultNumber>(
    {{"edge", 1}, {"junction", 2}, {"mem", 3}, {"sclk", 1}, {"mclk", 2}, {"vddgfx", 0}, {"vddnb", 1}, {"vddboard", 2}});

// "temp{edge}_input" -> "temp1_input".
std::optional<std::string> resolve_label(std::string_view pattern, const std::string& hwmon, bool defaults) {
  const auto open = pattern.find('{');
  if (open == std::string_view::npos) return std::string(pattern);
  const auto close = pattern.find('}', open);
  const auto label = pattern.substr(open + 1, close - open - 1);
  const std::string kind(pattern.substr(0, open));
  const std::string tail(pattern.substr(close + 1));
  for (int n = 0; n < 8; ++n) {
    if (read_text_or_empty(hwmon + "/" + kind + std::to_string(n) + "_label") == label)
      return kind + std::to_string(n) + tail;
  }
  for (const auto& row : kDefaults) {
    if (!defaults || row.label != label) continue;
    const std::string base = kind + std::to_string(row.number);
    std::error_code error;
    // A label that says something else means that this number is another sensor.
    if (!std::filesystem::exists(hwmon + "/" + base + "_label", error)) return base + tail;
  }
  return std::nullopt;
}

struct Hwmon {
  std::string_view prefix, driver;
};
constexpr std::array kHwmons = std::to_array<Hwmon>({{"hwmon:", "amdgpu"}, {"xe:", "xe"}, {"i915:", "i915"}});

// "card0"; empty where the device has none.
std::string drm_card(const std::string& device_dir) {
  std::error_code error;
  std::string card;
  for (std::filesystem::directory_iterator it(device_dir + "/drm", error), end; !error && it != end;
       it.increment(error)) {
    const auto name = it->path().filename().string();
    if (name.starts_with("card") && name.find('-') == std::string::npos) card = name;
  }
  return card;
}

}  // namespace

std::span<const SourceRow> source_table() {
  return kRows;
}

std::optional<LocatedFile> locate(const SourceRow& row, const std::string& device_dir, const std::string& hwmon_dir,
                                  const std::string& card_end) {
  constexpr std::string_view slot_prefix = "slot:";
  constexpr std::string_view card_prefix = "card:";
  for (const auto& [prefix, driver] : kHwmons) {
    if (!row.file.starts_with(prefix)) continue;
    // By the name that its driver gives it: another one's files have other meanings.
    if (hwmon_dir.empty() || read_text_or_empty(hwmon_dir + "/name") != driver) return std::nullopt;
    const auto name = resolve_label(row.file.substr(prefix.size()), hwmon_dir, driver == "amdgpu");
    if (!name) return std::nullopt;
    return LocatedFile{hwmon_dir + "/" + *name,
                       "hwmon/" + std::filesystem::path(hwmon_dir).filename().string() + "/" + *name};
  }
  if (row.file.starts_with(card_prefix)) {
    const auto card = drm_card(device_dir);
    if (card.empty()) return std::nullopt;
    const std::string shown = "drm/" + card + "/" + std::string(row.file.substr(card_prefix.size()));
    return LocatedFile{device_dir + "/" + shown, shown};
  }
  if (row.file.starts_with(slot_prefix)) {
    const std::string name(row.file.substr(slot_prefix.size()));
    const auto port = std::filesystem::path(card_end).filename().string();
    const bool own = port == std::filesystem::path(device_dir).filename().string();
    return LocatedFile{card_end + "/" + name, own ? name : "../(" + port + ")/" + name};
  }
  return LocatedFile{device_dir + "/" + std::string(row.file), std::string(row.file)};
}

}  // namespace gpuhealth::telemetry
