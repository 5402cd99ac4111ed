// SPDX-License-Identifier: Apache-2.0
#include "policy/layers.hpp"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>

#include <nlohmann/json.hpp>

#include "core/json.hpp"
#include "policy/files.hpp"
#include "policy/reader.hpp"

namespace gpuhealth::policy {
namespace {

namespace fs = std::filesystem;

constexpr auto kLayers = std::to_array<Layer>({
    {"vendor", "/usr/lib/gpuhealthd/policy.d"},
    {"fleet", "/var/lib/gpuhealthd/policy/current"},
    {"admin", "/etc/gpuhealthd/policy.d"},
    {"runtime", "/run/gpuhealthd/policy.d"},
});

constexpr std::string_view kConfig = "/etc/gpuhealthd";

// Where a path is: below the root, or in the folder that stands for its /etc/gpuhealthd.
struct Place {
  const Root* root = nullptr;
  std::string path;
};
Place place_of(const Root& root, const std::optional<Root>& config, std::string path) {
  if (!config || !path.starts_with(std::string(kConfig) + "/")) return {&root, std::move(path)};
  return {&*config, path.substr(kConfig.size())};
}
Result<std::optional<Root>> open_config(const std::string& folder) {
  if (folder.empty()) return std::optional<Root>();
  auto opened = Root::open(folder);
  if (!opened) return tl::unexpected<Error>(opened.error());
  return std::optional<Root>(std::move(*opened));
}

bool is_policy_name(std::string_view name) {
  return name.ends_with(".yaml") && !name.ends_with(".test.yaml") && !name.starts_with('.');
}

// Takes one file that counts into `out`.
void take(PolicyFile& file, const Result<std::string>& text, const MachineFacts* facts, WallTime now,
          std::optional<WallTime> last_day, Loaded& out) {
  if (!text) {
    file.state = PolicyFile::State::Broken;
    file.mistakes.push_back({{}, text.error().text, "", ""});
    return;
  }
  auto parsed = parse_policy(file.path, *text);
  if (!parsed.policy) {
    file.state = PolicyFile::State::Broken;
    file.mistakes = std::move(parsed.mistakes);
    return;
  }
  file.policy = parsed.policy->name;
  for (const Policy& other : out.set.policies) {
    if (other.name != file.policy) continue;
    file.state = PolicyFile::State::Broken;
    file.mistakes.push_back({{},
                             "its policy is called " + yaml::shown(file.policy) + " as that of " + other.file + " is",
                             file.policy,
                             "names must differ"});
    return;
  }
  if (last_day) parsed.policy->expires = std::min(parsed.policy->expires.value_or(*last_day), *last_day);
  if (facts != nullptr && parsed.policy->expires && now >= *parsed.policy->expires)
    file.state = PolicyFile::State::Expired;
  if (facts != nullptr && !machine_matches(parsed.policy->targets, *facts)) file.state = PolicyFile::State::Elsewhere;
  out.set.policies.push_back(std::move(*parsed.policy));
}

// A bundle ends as a whole, whatever its policies say.
std::optional<WallTime> bundle_expiry(const Root& root, const std::string& folder) {
  const auto json = parse_json<nlohmann::json>(root.read(folder + "/bundle.json", 65536).value_or(""));
  if (!json.is_object() || !json.contains("expires") || !json["expires"].is_string()) return std::nullopt;
  return parse_last_day(json["expires"].get<std::string>());
}

bool is_test(const Root& root, const std::string& name) {
  const auto text = root.read(name, kMostPolicyBytes);
  return text && kind_of(yaml::parse(*text).root) == "PolicyTest";
}

void finish(Loaded& out) {
  if (!out.sound()) out.set.policies.clear();
}

std::string read_line(const Root& root, const std::string& path) {
  auto text = root.read(path, 65536).value_or("");
  text.resize(std::min(text.find('\n'), text.size()));
  return text;
}

std::string os_release(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    auto line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (!line.starts_with(key) || line.size() <= key.size() || line[key.size()] != '=') continue;
    line.remove_prefix(key.size() + 1);
    if (line.size() >= 2 && (line.front() == '"' || line.front() == '\'') && line.back() == line.front())
      line = line.substr(1, line.size() - 2);
    return std::string(line);
  }
  return "";
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

}  // namespace

std::span<const Layer> all_layers() {
  return kLayers;
}

std::string_view to_string(PolicyFile::State state) {
  constexpr std::array<std::string_view, 6> names = {"in-force", "hidden", "masked", "elsewhere", "expired", "broken"};
  return names.at(static_cast<std::size_t>(state));
}

bool Loaded::sound() const {
  return std::ranges::none_of(files, [](const PolicyFile& f) { return f.state == PolicyFile::State::Broken; });
}

std::string Loaded::problem() const {
  std::string out;
  for (const PolicyFile& file : files)
    for (const auto& mistake : file.mistakes) out += (out.empty() ? "" : "\n") + yaml::line_of(file.path, mistake);
  return out;
}

Result<Loaded> load_layers(const std::string& root_path, const MachineFacts& facts, WallTime now,
                           const std::string& fleet, const std::string& config_dir) {
  const auto root = Root::open(root_path);
  if (!root) return tl::unexpected<Error>(root.error());
  const auto config = open_config(config_dir);
  if (!config) return tl::unexpected<Error>(config.error());
  const auto path_of = [&](const Layer& layer) {
    return layer.name == "fleet" && !fleet.empty() ? fleet : std::string(layer.path);
  };
  std::map<std::string, std::vector<const Layer*>> names;  // each from the highest layer down
  Loaded out;
  for (auto layer = kLayers.rbegin(); layer != kLayers.rend(); ++layer) {
    const Place folder = place_of(*root, *config, path_of(*layer));
    const auto listed = folder.root->list(folder.path, kMostPolicyFiles);
    if (!listed) {
      PolicyFile file{"", folder.root->shown(folder.path), std::string(layer->name), PolicyFile::State::Broken, "", "",
                      {}};
      file.mistakes.push_back({{}, listed.error().text, "", ""});
      out.files.push_back(std::move(file));
      continue;
    }
    for (const auto& name : *listed)
      if (is_policy_name(name)) names[name].push_back(&*layer);
  }
  for (const auto& [name, layers] : names) {
    std::string top;
    for (const Layer* layer : layers) {
      const Place place = place_of(*root, *config, path_of(*layer) + "/" + name);
      PolicyFile file{name, place.root->shown(place.path), std::string(layer->name), PolicyFile::State::InForce, "", "",
                      {}};
      if (!top.empty()) {
        file.state = PolicyFile::State::Hidden;
        file.by = top;
      } else {
        const auto text = place.root->read(place.path, kMostPolicyBytes);
        top = file.path;
        if (text && text->empty()) {
          file.state = PolicyFile::State::Masked;
        } else {
          const auto last_day = layer->name == "fleet" ? bundle_expiry(*root, path_of(*layer)) : std::nullopt;
          take(file, text, &facts, now, last_day, out);
        }
      }
      out.files.push_back(std::move(file));
    }
  }
  finish(out);
  return out;
}

Result<Loaded> load_named(const std::vector<std::string>& paths) {
  Loaded out;
  std::vector<std::string> files;
  for (const auto& path : paths) {
    std::error_code error;
    if (!fs::is_directory(path, error)) {
      files.push_back(path);
      continue;
    }
    const auto root = Root::open(path);
    const auto listed = root ? root->list(".", kMostPolicyFiles) : tl::unexpected<Error>(root.error());
    if (!listed) return tl::unexpected<Error>(listed.error());
    const auto before = files.size();  // tests may stand beside
    for (const auto& name : *listed)
      if (is_policy_name(name) && !is_test(*root, name)) files.push_back((fs::path(path) / name).string());
    if (files.size() == before) return fail(ErrorCode::NotFound, path + " holds no file *.yaml");
  }
  for (const auto& path : files) {
    PolicyFile file{fs::path(path).filename().string(), path, "", PolicyFile::State::InForce, "", "", {}};
    take(file, read_named_file(path, kMostPolicyBytes, true), nullptr, {}, std::nullopt, out);
    out.files.push_back(std::move(file));
  }
  finish(out);
  return out;
}

std::map<std::string, std::string> parse_labels(std::string_view text, std::string_view file,
                                                std::vector<std::string>& notes) {
  std::map<std::string, std::string> out;
  for (int number = 1; !text.empty(); ++number) {
    auto line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    line = trimmed(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    const auto equals = line.find('=');
    const std::string key(trimmed(line.substr(0, equals)));
    if (equals == std::string_view::npos || key.empty()) {
      notes.push_back(std::string(file) + ":" + std::to_string(number) + ":1: " + yaml::shown(line) +
                      " is no label; write key=value");
      continue;
    }
    out[key] = trimmed(line.substr(equals + 1));
  }
  return out;
}

MachineFacts read_facts(const std::string& root_path, std::vector<std::string>& notes, const std::string& config_dir) {
  MachineFacts out;
  const auto root = Root::open(root_path);
  if (!root) {
    notes.push_back(root.error().text);
    return out;
  }
  out.host = trimmed(read_line(*root, "/etc/hostname"));
  auto release = root->read("/etc/os-release", 65536);
  if (!release) release = root->read("/usr/lib/os-release", 65536);
  out.distribution = os_release(release.value_or(""), "ID");
  out.version = os_release(release.value_or(""), "VERSION_ID");
  out.machine_id = trimmed(read_line(*root, "/etc/machine-id"));
  out.kernel = trimmed(read_line(*root, "/proc/sys/kernel/osrelease"));
  utsname names{};
  if (root->path() == "/" && ::uname(&names) == 0) {
    out.host = static_cast<const char*>(names.nodename);
    out.kernel = static_cast<const char*>(names.release);
  }
  const auto config = open_config(config_dir);
  if (!config) {
    notes.push_back(config.error().text);
    return out;
  }
  const Place place = place_of(*root, *config, std::string(kConfig) + "/labels");
  if (const auto labels = place.root->read(place.path, 65536)) {
    out.labels = parse_labels(*labels, place.root->shown(place.path), notes);
  } else if (labels.error().code != ErrorCode::NotFound) {
    notes.push_back(labels.error().text);
  }
  return out;
}

bool PolicyStore::reload(const MachineFacts& facts, WallTime now) {
  auto loaded = load_layers(root_, facts, now, "", config_dir_);
  if (!loaded || !loaded->sound()) {
    problem_ = loaded ? loaded->problem() : loaded.error().text;
    return false;
  }
  problem_.clear();
  set_ = std::move(loaded->set);
  files_ = std::move(loaded->files);
  return true;
}

}  // namespace gpuhealth::policy
