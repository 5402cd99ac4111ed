// SPDX-License-Identifier: Apache-2.0
#include "store/ledger.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <ctime>

#include <nlohmann/json.hpp>

#include "core/json.hpp"

namespace gpuhealth {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kBeside = ".gpuhealth-new";  // of a file that is being written

std::string to_hex(std::string_view bytes) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  out.reserve(bytes.size() * 2);
  for (const char c : bytes) {
    const auto b = static_cast<unsigned char>(c);
    out += kDigits[b >> 4U];
    out += kDigits[b & 15U];
  }
  return out;
}

std::optional<std::string> from_hex(std::string_view text) {
  const auto digit = [](char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; };
  if (text.size() % 2 != 0) return std::nullopt;
  std::string out;
  out.reserve(text.size() / 2);
  for (std::size_t i = 0; i < text.size(); i += 2) {
    const int high = digit(text[i]);
    const int low = digit(text[i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    out += static_cast<char>(high * 16 + low);
  }
  return out;
}

Json steps_json(const std::vector<LedgerStep>& list) {
  Json steps = Json::array();
  for (const LedgerStep& step : list)
    steps.push_back({{"kind", step.kind},
                     {"path", step.path},
                     {"offset", step.offset},
                     {"mask", step.mask},
                     {"hex", to_hex(step.value)}});
  return steps;
}

// Every text of an entry, under its name in the file.
template <class Entry, class Each>
void for_each_text(Entry& entry, Each each) {
  each("id", entry.id);
  each("action", entry.action);
  each("target", entry.target);
  each("state", entry.state);
  each("started", entry.started);
  each("boot_id", entry.boot_id);
  each("note", entry.note);
  each("owner", entry.owner);
  each("device", entry.device);
  each("policy", entry.policy);
  each("rule", entry.rule);
  each("condition", entry.condition);
  each("reason", entry.reason);
  each("before", entry.before);
  each("wanted", entry.wanted);
  each("after", entry.after);
  each("confirm_by", entry.confirm_by);
}
constexpr std::size_t kTextsOfFormat1 = 7;  // the first ones; no entry is without them

Json to_json(const LedgerEntry& entry) {
  Json out = {{"format", kLedgerFormat}};
  for_each_text(entry, [&](const char* key, const std::string& text) { out[key] = text; });
  out["prior"] = Json::object();
  for (const auto& [path, state] : entry.prior) {
    out["prior"][path] = state.exists ? Json{{"mode", state.mode}, {"hex", to_hex(state.bytes)}} : Json(nullptr);
  }
  if (entry.owner != "actions") return out;
  out["params"] = Json(entry.params);
  out["steps"] = steps_json(entry.steps);
  out["back"] = steps_json(entry.back);
  out["facts"] = Json(entry.facts);
  out["lasting"] = entry.lasting;
  out["times"] = Json(entry.times);
  out["warnings"] = Json(entry.warnings);
  return out;
}

bool read_files(const Json& json, LedgerEntry& out) {
  if (!json.is_object()) return false;
  for (const auto& [path, value] : json.items()) {
    FileState state;
    if (value.is_object() && value.contains("hex") && value["hex"].is_string() && value.contains("mode") &&
        value["mode"].is_number_unsigned()) {
      auto bytes = from_hex(value["hex"].get<std::string>());
      if (!bytes) return false;
      state = {true, std::move(*bytes), value["mode"].get<mode_t>()};
    } else if (!value.is_null()) {
      return false;
    }
    out.prior[path] = std::move(state);
  }
  return true;
}

bool read_map(const Json& json, const char* key, std::map<std::string, std::string>& out) {
  if (!json.contains(key)) return true;
  if (!json[key].is_object()) return false;
  for (const auto& [name, value] : json[key].items()) {
    if (!value.is_string()) return false;
    out[name] = value.get<std::string>();
  }
  return true;
}

bool read_steps(const Json& json, std::vector<LedgerStep>& out) {
  if (!json.is_array()) return false;
  for (const Json& item : json) {
    if (!item.is_object()) return false;
    for (const char* key : {"kind", "path", "hex"})
      if (!item.contains(key) || !item[key].is_string()) return false;
    for (const char* key : {"offset", "mask"})
      if (!item.contains(key) || !item[key].is_number_unsigned()) return false;
    const auto value = from_hex(item["hex"].get<std::string>());
    if (!value) return false;
    out.push_back({item["kind"].get<std::string>(), item["path"].get<std::string>(), item["offset"].get<unsigned>(),
                   item["mask"].get<unsigned>(), *value});
  }
  return true;
}

std::optional<LedgerEntry> from_json(const std::string& text) {
  const Json json = parse_json<Json>(text);
  if (!json.is_object()) return std::nullopt;
  LedgerEntry out;
  out.format = 1;
  if (json.contains("format")) {
    if (!json["format"].is_number_integer()) return std::nullopt;
    out.format = json["format"].get<int>();
    if (out.format < 1 || out.format > kLedgerFormat) return std::nullopt;
  }
  bool whole = true;
  std::size_t number = 0;
  for_each_text(out, [&](const char* key, std::string& field) {
    const bool needed = number++ < kTextsOfFormat1;
    if (json.contains(key) && json[key].is_string()) {
      field = json[key].get<std::string>();
    } else if (needed || json.contains(key)) {
      whole = false;
    }
  });
  if (!whole || !json.contains("prior") || !read_files(json["prior"], out)) return std::nullopt;
  if (out.owner.empty()) out.owner = "kernel";
  if (json.contains("steps") && !read_steps(json["steps"], out.steps)) return std::nullopt;
  if (json.contains("back") && !read_steps(json["back"], out.back)) return std::nullopt;
  if (!read_map(json, "params", out.params) || !read_map(json, "facts", out.facts) ||
      !read_map(json, "times", out.times))
    return std::nullopt;
  out.lasting = json.contains("lasting") && json["lasting"] == Json(true);
  if (json.contains("warnings") && json["warnings"].is_array())
    for (const Json& item : json["warnings"])
      if (item.is_string()) out.warnings.push_back(item.get<std::string>());
  return out;
}

std::string path_of(const LedgerEntry& entry) {
  return std::string(kLedgerFolder) + "/" + entry.id + ".json";
}

std::string folder_of(const std::string& path) {
  return path.substr(0, std::max<std::size_t>(path.rfind('/'), 1));
}

// grubenv keeps its place on the disk: GRUB has its block's number, not its name.
constexpr std::size_t kGrubEnvSize = 1024;
bool in_place(const std::string& path, const FileState& state) {
  return path.ends_with("/grubenv") && state.exists && state.bytes.size() == kGrubEnvSize;
}

}  // namespace

std::string utc_text(WallTime time) {
  const std::time_t seconds = to_microseconds(time) / 1'000'000;
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char buffer[32];
  (void)std::strftime(buffer, sizeof buffer, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return buffer;
}

std::optional<WallTime> utc_from(const std::string& text) {
  std::tm parts{};
  const char* end = strptime(text.c_str(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  if (end == nullptr || *end != '\0') return std::nullopt;
  return wall_from_microseconds(static_cast<std::int64_t>(timegm(&parts)) * 1'000'000);
}

Result<void> make_state_folder(const Tree& tree, System& system, std::string_view name) {
  std::string path;
  for (const std::string& part :
       {std::string("/var"), std::string("/lib"), std::string("/gpuhealthd"), "/" + std::string(name)}) {
    path += part;
    if (tree.is_folder(path)) continue;
    if (auto made = system.make_folder(tree, path, path.size() > 8 ? 0750 : 0755); !made) return made;
  }
  return {};
}

Result<FileState> file_state(const Tree& tree, const std::string& path) {
  FileState state;
  const auto info = tree.stat(path);
  if (!info) {
    const auto why = tree.open_file(path, O_RDONLY | O_NONBLOCK);
    if (!why && why.error().code != ErrorCode::NotFound) return tl::unexpected<Error>(why.error());
    return state;
  }
  auto bytes = tree.read(path);
  if (!bytes) return tl::unexpected<Error>(bytes.error());
  return FileState{true, std::move(*bytes), info->st_mode & 07777U};
}

Result<void> put_file(const Tree& tree, System& system, const std::string& path, const FileState& state) {
  if (!state.exists) {
    if (auto gone = system.remove(tree, path); !gone) return gone;
    if (!tree.is_folder(folder_of(path))) return {};
    return system.sync_folder(tree, folder_of(path));
  }
  const std::string beside = path + std::string(kBeside);
  const auto give_up = [&](Error error) -> Result<void> {
    (void)system.remove(tree, beside);
    error.text = path + ": " + error.text;
    return tl::unexpected<Error>(std::move(error));
  };
  if (auto gone = system.remove(tree, beside); !gone) return gone;
  auto fd = system.create(tree, beside, state.mode);
  if (!fd) return tl::unexpected<Error>(fd.error());
  if (auto written = system.write_all(*fd, state.bytes); !written) return give_up(written.error());
  if (auto set = system.chmod(*fd, state.mode); !set) return give_up(set.error());
  if (auto synced = system.sync_file(*fd); !synced) return give_up(synced.error());
  if (auto renamed = system.rename(tree, beside, path); !renamed) return give_up(renamed.error());
  return system.sync_folder(tree, folder_of(path));
}

Result<void> undo(const Tree& tree, System& system, const LedgerEntry& entry) {
  std::optional<Error> first;
  const auto note = [&](const Result<void>& result) {
    if (!result && !first) first = result.error();
  };
  for (const auto& [path, prior] : entry.prior) {
    note(system.remove(tree, path + std::string(kBeside)));
    const auto now = file_state(tree, path);
    if (now && *now == prior) continue;
    if (in_place(path, prior) && now && now->exists) {
      auto fd = system.open_to_write(tree, path);
      if (!fd) {
        note(tl::unexpected<Error>(fd.error()));
        continue;
      }
      note(system.write_all(*fd, prior.bytes));
      note(system.sync_file(*fd));
    } else {
      note(put_file(tree, system, path, prior));
    }
  }
  for (const auto& [path, prior] : entry.prior) {
    if (!path.starts_with("/boot") && !path.ends_with(".cfg")) continue;
    if (tree.is_folder(folder_of(path))) note(system.sync_file_system(tree, folder_of(path)));
  }
  if (first) return tl::unexpected<Error>(*first);
  return {};
}

Result<Ledger> Ledger::open(const Tree& tree, System& system) {
  if (auto made = make_state_folder(tree, system, "ledger"); !made) {
    Error error = made.error();
    error.text = "no change without a ledger: " + error.text;
    return tl::unexpected<Error>(std::move(error));
  }
  auto lock = tree.open_file(std::string(kLedgerFolder) + "/lock", O_RDWR | O_CREAT, 0640);
  if (!lock) return tl::unexpected<Error>(lock.error());
  if (::flock(lock->get(), LOCK_EX | LOCK_NB) != 0)
    return fail(ErrorCode::Unavailable, "another change is being made; try again when it is done", errno);
  // What a power cut left beside: nobody else writes here now.
  for (const std::string& name : tree.list(kLedgerFolder))
    if (name.ends_with(kBeside)) (void)system.remove(tree, std::string(kLedgerFolder) + "/" + name);
  return Ledger(tree, system, std::move(*lock));
}

Result<void> Ledger::save(const LedgerEntry& entry) {
  return put_file(*tree_, *system_, path_of(entry),
                  {true, to_json(entry).dump(1, ' ', true, Json::error_handler_t::replace) + "\n", 0640});
}

Result<LedgerEntry> Ledger::begin(LedgerEntry entry, WallTime now) {
  int number = 0;
  for (const std::string& name : tree_->list(kLedgerFolder)) {
    int found = 0;
    if (std::sscanf(name.c_str(), "%d-", &found) == 1) number = std::max(number, found);
  }
  char digits[16];
  (void)std::snprintf(digits, sizeof digits, "%06d", number + 1);
  entry.format = kLedgerFormat;
  entry.id = std::string(digits) + "-" + entry.action;
  entry.state = "intended";
  entry.started = utc_text(now);
  if (auto written = save(entry); !written) return tl::unexpected<Error>(written.error());
  return entry;
}

Result<void> Ledger::close(LedgerEntry& entry, std::string state, std::string note) {
  entry.state = std::move(state);
  entry.note = std::move(note);
  return save(entry);
}

std::vector<LedgerEntry> read_ledger(const Tree& tree, std::vector<std::string>* notes) {
  std::vector<LedgerEntry> out;
  for (const std::string& name : tree.list(kLedgerFolder)) {
    if (!name.ends_with(".json")) continue;
    const auto text = tree.read(std::string(kLedgerFolder) + "/" + name, std::size_t{64} << 20);
    auto entry = text ? from_json(*text) : std::nullopt;
    if (entry) {
      out.push_back(std::move(*entry));
    } else if (notes != nullptr) {
      notes->push_back(std::string(kLedgerFolder) + "/" + name + " cannot be read");
    }
  }
  return out;
}

}  // namespace gpuhealth
