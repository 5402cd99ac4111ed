// SPDX-License-Identifier: Apache-2.0
// gpuhealthd.yaml and its drop-ins. Every key is a row of settings.def or of health/thresholds.def; anything else is an
// error with file, line and column. All errors of all files are found at once.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "health/thresholds.hpp"

namespace gpuhealth::daemon {

struct Settings {
#define SETTING(id, key, kind, value, low, high, text) std::int64_t id = value;
#include "daemon/settings.def"
#undef SETTING
};

enum class SettingKind : std::uint8_t { Duration, Count, Size, Days, Source, FailedTrial };
// What telemetry.source says.
enum TelemetrySource : std::int64_t { kSysfs, kRocmSmi, kBoth };
// What kernel.failed-trial says.
enum FailedTrial : std::int64_t { kStay, kReboot };

struct SettingInfo {
  std::string_view key;
  SettingKind kind;
  std::int64_t default_value;
  std::int64_t low;
  std::int64_t high;
  std::string_view text;
  std::int64_t Settings::* field;
};
std::span<const SettingInfo> all_settings();

struct Config {
  Settings settings;
  health::Thresholds thresholds;
  std::vector<std::string> files;  // those that were read, in order
  std::set<std::string> given;     // keys of settings that stand in them
  std::string problem;             // why these are the defaults instead of what the files say; empty when they are not
};

// DIR/gpuhealthd.yaml, then DIR/gpuhealthd.yaml.d/*.yaml by name; later files win. No file at all is the default. The
// error's text holds every mistake, one a line: "FILE:LINE:COLUMN: …".
Result<Config> load_config(const std::string& directory);

// "2s", "500ms", "1min", "1h" -> ms; "256MiB", "1GiB" -> bytes; "7d" -> days; plain numbers where the kind has no unit.
Result<std::int64_t> parse_setting(SettingKind kind, std::string_view text);
// The value as one would write it: "2s", "256MiB", "7d".
std::string format_setting(SettingKind kind, std::int64_t value);

}  // namespace gpuhealth::daemon
