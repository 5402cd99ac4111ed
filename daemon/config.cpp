// SPDX-License-Identifier: Apache-2.0
#include "daemon/config.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "core/nearest.hpp"

namespace gpuhealth::daemon {
namespace fs = std::filesystem;
namespace {

constexpr std::array kSettings = std::to_array<SettingInfo>({
#define SETTING(id, key, kind, value, low, high, text) {key, SettingKind::kind, value, low, high, text, &Settings::id},
#include "daemon/settings.def"
#undef SETTING
});

constexpr std::uintmax_t kMaxFileBytes = 1 << 20;
constexpr int kMaxDepth = 16;
constexpr std::size_t kMaxErrors = 100;  // of one file; whoever has more has given the wrong file
constexpr std::size_t kMaxShown = 60;    // bytes of what stands there; no key is as long

struct UnitRow {
  SettingKind kind;
  std::string_view suffix;
  double factor;
};
// The first row of a kind that divides a value is the one that it is printed in.
constexpr std::array kUnits = std::to_array<UnitRow>({
    {SettingKind::Duration, "h", 3'600'000},
    {SettingKind::Duration, "min", 60'000},
    {SettingKind::Duration, "s", 1000},
    {SettingKind::Duration, "ms", 1},
    {SettingKind::Size, "GiB", 1024.0 * 1024 * 1024},
    {SettingKind::Size, "MiB", 1024.0 * 1024},
    {SettingKind::Size, "KiB", 1024},
    {SettingKind::Size, "B", 1},
    {SettingKind::Days, "d", 1},
    {SettingKind::Count, "", 1},
});

constexpr std::array<std::string_view, 3> kSources = {"sysfs", "rocm-smi", "both"};  // as TelemetrySource
constexpr std::array<std::string_view, 2> kFailedTrial = {"stay", "reboot"};         // as FailedTrial

// The words of a kind that is one of several; empty: it is a number.
std::span<const std::string_view> words_of(SettingKind kind) {
  if (kind == SettingKind::Source) return kSources;
  if (kind == SettingKind::FailedTrial) return kFailedTrial;
  return {};
}

std::string units_of(SettingKind kind) {
  std::string out;
  for (const auto& row : kUnits) {
    if (row.kind == kind && !row.suffix.empty()) out += (out.empty() ? "" : ", ") + std::string(row.suffix);
  }
  return out;
}

// One line, and nothing that a terminal obeys.
std::string plain(std::string text) {
  std::ranges::replace_if(text, [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
  return text;
}

// What stands in a file, short and in quotes.
std::string shown(std::string_view text) {
  const bool cut = text.size() > kMaxShown;
  auto end = std::min(text.size(), kMaxShown);
  while (cut && end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;  // not within a letter
  return "\"" + std::string(text.substr(0, end)) + (cut ? "…\"" : "\"");
}

struct Unheard : YAML::EventHandler {
  void OnDocumentStart(const YAML::Mark& /*mark*/) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& /*mark*/, YAML::anchor_t /*anchor*/) override {}
  void OnAlias(const YAML::Mark& /*mark*/, YAML::anchor_t /*anchor*/) override {}
  void OnScalar(const YAML::Mark& /*mark*/, const std::string& /*tag*/, YAML::anchor_t /*anchor*/,
                const std::string& /*value*/) override {}
  void OnSequenceStart(const YAML::Mark& /*mark*/, const std::string& /*tag*/, YAML::anchor_t /*anchor*/,
                       YAML::EmitterStyle::value /*style*/) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark& /*mark*/, const std::string& /*tag*/, YAML::anchor_t /*anchor*/,
                  YAML::EmitterStyle::value /*style*/) override {}
  void OnMapEnd() override {}
};

// Looks at two and no more: for some texts yaml-cpp 0.7 finds documents without end (YAML::LoadAll never returns).
bool has_second_document(const std::string& text) {
  std::istringstream in(text);
  YAML::Parser parser(in);
  Unheard unheard;
  return parser.HandleNextDocument(unheard) && parser.HandleNextDocument(unheard);
}

// One file being read: collects every mistake rather than stopping at the first.
class FileReader {
 public:
  FileReader(std::string path, Config& config, std::vector<std::string>& errors)
      : path_(std::move(path)), config_(config), errors_(errors) {}

  void read() {
    std::error_code error;
    const auto size = fs::file_size(path_, error);
    if (error || !fs::is_regular_file(path_, error)) return say("", "cannot be read; expected a plain file");
    if (size > kMaxFileBytes) return say("", "is larger than 1 MiB; no configuration is");
    std::ifstream file(path_);
    std::stringstream text;
    text << file.rdbuf();
    if (!file) return say("", "cannot be read");
    try {
      if (has_second_document(text.str())) return say("", "holds more than one document; keep one");
      walk(YAML::Load(text.str()), "", 0);
    } catch (const YAML::Exception& e) {
      say(place(e.mark), "is not YAML: " + e.msg);
    }
  }

 private:
  static std::string place(const YAML::Mark& mark) {
    if (mark.is_null()) return "";
    return ":" + std::to_string(mark.line + 1) + ":" + std::to_string(mark.column + 1);
  }
  void say(const std::string& where, const std::string& what) {
    if (said_ < kMaxErrors) errors_.push_back(plain(path_ + where + ": " + what));
    if (said_ == kMaxErrors) errors_.push_back(plain(path_ + ": more mistakes follow"));
    ++said_;
  }

  void walk(const YAML::Node& node, const std::string& prefix, int depth) {
    if (!node.IsDefined() || node.IsNull()) return;  // an empty file or section sets nothing
    if (depth > kMaxDepth) return say(place(node.Mark()), "is nested too deep");
    if (!node.IsMap())
      return say(place(node.Mark()),
                 std::string(prefix.empty() ? "the file" : prefix).append(" must hold keys, as in \"sampling:\""));
    std::map<std::string, YAML::Mark> seen;
    for (const auto& entry : node) {
      const auto mark = entry.first.Mark();
      if (!entry.first.IsScalar()) {
        say(place(mark), "a key must be a word");
        continue;
      }
      const auto name = entry.first.Scalar();
      if (const auto [it, fresh] = seen.emplace(name, mark); !fresh) {
        say(place(mark), shown(name) + " stands twice; the first is at line " + std::to_string(it->second.line + 1));
        continue;
      }
      take(prefix.empty() ? name : std::string(prefix).append(".").append(name), entry.second, mark, depth);
    }
  }

  void take(const std::string& key, const YAML::Node& value, const YAML::Mark& mark, int depth) {
    const auto setting = std::ranges::find(kSettings, key, &SettingInfo::key);
    if (setting != kSettings.end()) return set(*setting, value);
    constexpr std::string_view health_prefix = "health.";
    if (key.starts_with(health_prefix)) {
      const auto name = std::string_view(key).substr(health_prefix.size());
      const auto thresholds = health::all_thresholds();
      if (std::ranges::find(thresholds, name, &health::ThresholdInfo::key) != thresholds.end())
        return set_threshold(key, name, value);
    }
    if (is_section(key)) return walk(value, key, depth + 1);
    const auto hint = key.size() > kMaxShown ? std::string() : nearest(key, known_keys());
    say(place(mark), "unknown key " + shown(key) + (hint.empty() ? "" : "; did you mean \"" + hint + "\"?"));
  }

  void set(const SettingInfo& setting, const YAML::Node& value) {
    const auto where = place(value.Mark());
    if (!value.IsScalar())
      return say(where, std::string(setting.key) + " must be one value, such as " +
                            format_setting(setting.kind, setting.default_value));
    const auto number = parse_setting(setting.kind, value.Scalar());
    if (!number) return say(where, std::string(setting.key) + ": " + number.error().text);
    if (*number < setting.low || *number > setting.high) {
      return say(where, std::string(setting.key) + ": " + shown(value.Scalar()) + " is outside " +
                            format_setting(setting.kind, setting.low) + " to " +
                            format_setting(setting.kind, setting.high));
    }
    config_.settings.*setting.field = *number;
    config_.given.emplace(setting.key);
  }

  void set_threshold(const std::string& key, std::string_view name, const YAML::Node& value) {
    const auto where = place(value.Mark());
    double number = 0;
    const auto text = value.IsScalar() ? value.Scalar() : std::string();
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (text.empty() || error != std::errc{} || end != text.data() + text.size() || !std::isfinite(number))
      return say(where, key + ": " + shown(text) + " is not a number");
    if (const auto done = health::set_threshold(config_.thresholds, name, number); !done)
      say(where, key + ": " + done.error().text);
  }

  static std::vector<std::string> known_keys() {
    std::vector<std::string> keys;
    keys.reserve(kSettings.size() + health::all_thresholds().size());
    for (const auto& s : kSettings) keys.emplace_back(s.key);
    for (const auto& t : health::all_thresholds()) keys.push_back("health." + std::string(t.key));
    return keys;
  }
  static bool is_section(const std::string& key) {
    return std::ranges::any_of(known_keys(), [&](const std::string& k) { return k.starts_with(key + "."); });
  }

  std::string path_;
  Config& config_;
  std::vector<std::string>& errors_;
  std::size_t said_ = 0;
};

bool is_missing(const std::error_code& error) {
  return error == std::errc::no_such_file_or_directory || error == std::errc::not_a_directory;
}

std::vector<std::string> drop_ins(const std::string& directory, std::vector<std::string>& errors) {
  std::vector<std::string> files;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    if (it->path().extension() == ".yaml") files.push_back(it->path().string());
  }
  if (error && !is_missing(error)) errors.push_back(directory + ": cannot be read: " + error.message());
  std::ranges::sort(files);
  return files;
}

}  // namespace

std::span<const SettingInfo> all_settings() {
  return kSettings;
}

Result<std::int64_t> parse_setting(SettingKind kind, std::string_view text) {
  if (const auto words = words_of(kind); !words.empty()) {
    const auto name = std::ranges::find(words, text);
    if (name != words.end()) return name - words.begin();
    std::string list(words.front());
    for (std::size_t i = 1; i < words.size(); ++i)
      list += (i + 1 == words.size() ? " and " : ", ") + std::string(words[i]);
    return fail(ErrorCode::InvalidInput, shown(text) + " is none of " + list);
  }
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  auto suffix = text.substr(static_cast<std::size_t>(end - text.data()));
  while (suffix.starts_with(' ')) suffix.remove_prefix(1);
  if (error == std::errc{}) {
    for (const auto& row : kUnits) {
      if (row.kind != kind || row.suffix != suffix) continue;
      const double value = number * row.factor;
      if (value != std::floor(value)) return fail(ErrorCode::InvalidInput, shown(text) + " must be a whole number");
      if (std::abs(value) > 9e15) break;
      return static_cast<std::int64_t>(value);
    }
  }
  if (error == std::errc{} && number == 0 && suffix.empty()) return 0;  // nothing is nothing in any unit
  const auto units = units_of(kind);
  return fail(ErrorCode::InvalidInput,
              shown(text) + " is not a number" + (units.empty() ? "" : " with a unit (" + units + ")"));
}

std::string format_setting(SettingKind kind, std::int64_t value) {
  if (const auto words = words_of(kind); value >= 0 && value < std::ssize(words))
    return std::string(words[static_cast<std::size_t>(value)]);
  for (const auto& row : kUnits) {
    const auto factor = static_cast<std::int64_t>(row.factor);
    if (row.kind == kind && value % factor == 0 && (value != 0 || factor == 1))
      return std::to_string(value / factor) + std::string(row.suffix);
  }
  return std::to_string(value);
}

Result<Config> load_config(const std::string& directory) {
  Config config;
  std::vector<std::string> files;
  std::error_code error;
  const std::string main_file = directory + "/gpuhealthd.yaml";
  // What is there and cannot be read, a link to nowhere too, is a mistake and not "no file".
  if (fs::symlink_status(main_file, error).type() != fs::file_type::not_found) files.push_back(main_file);
  std::vector<std::string> errors;
  const auto more = drop_ins(directory + "/gpuhealthd.yaml.d", errors);
  files.insert(files.end(), more.begin(), more.end());
  for (const auto& file : files) FileReader(file, config, errors).read();
  if (!errors.empty()) {
    std::string text;
    for (const auto& e : errors) text += (text.empty() ? "" : "\n") + e;
    return fail(ErrorCode::InvalidInput, text);
  }
  config.files = std::move(files);
  return config;
}

}  // namespace gpuhealth::daemon
