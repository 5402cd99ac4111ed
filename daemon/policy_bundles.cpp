// SPDX-License-Identifier: Apache-2.0
// Fleet bundles in the daemon: what is put into the inbox is installed by gpuhealth-act, and a new bundle that does not
// load, or wants more than it may in its first minutes, makes room for the one before.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "core/fd.hpp"
#include "core/json.hpp"
#include "daemon/policy_impl.hpp"
#include "policy/bundle.hpp"
#include "policy/files.hpp"

namespace gpuhealth::daemon {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr Duration kDeadline = std::chrono::seconds(120);
constexpr auto kFirstMinutes = std::chrono::minutes(10);
constexpr std::string_view kEnding = ".bundle";
constexpr std::size_t kRefusedKept = 16;

std::string folder_of(const std::string& root) {
  return (root == "/" ? std::string() : root) + std::string(policy::kBundleFolder);
}

std::string text_in(const Json& json, const char* key) {
  return json.is_object() && json.contains(key) && json[key].is_string() ? json[key].get<std::string>() : "";
}

// Who may write there may have anything refused and written to the audit.
bool is_private(const std::string& folder) {
  struct stat info{};
  return lstat(folder.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && (info.st_mode & 022U) == 0 &&
         (info.st_uid == 0 || info.st_uid == geteuid());
}

std::vector<fs::path> files_in(const std::string& folder, std::string_view ending) {
  std::vector<fs::path> out;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (!name.starts_with('.') && name.ends_with(ending)) out.push_back(it->path());
  }
  std::ranges::sort(out);
  return out;
}

}  // namespace

void PolicyService::Impl::look_at_bundle() {
  std::error_code error;
  bundle = fs::read_symlink(fs::path(folder_of(options.root)) / "current", error).string();
}

bool PolicyService::Impl::is_new_bundle() const {
  struct stat info{};
  if (bundle.empty() || lstat((folder_of(options.root) + "/current").c_str(), &info) != 0) return false;
  // By the file's own clock: a simulated machine's runs faster.
  const auto since = wall_from_microseconds(static_cast<std::int64_t>(info.st_ctim.tv_sec) * 1'000'000);
  return SystemClock().now().wall - since < kFirstMinutes;
}

void PolicyService::Impl::look_into_inbox() {
  look_at_bundle();
  const std::string inbox = folder_of(options.root) + "/inbox";
  const auto waiting = files_in(inbox, kEnding);
  if (waiting.empty()) return;
  if (busy_with_bundle) {
    inbox_again = true;
    return;
  }
  if (!is_private(inbox)) {
    on.log(Severity::Warning, inbox + " can be changed by others than root: nothing in it is looked at");
    return;
  }
  busy_with_bundle = true;
  const std::string path = waiting.front().string();
  runner.run({"policy", "install", path, "--root", options.root, "--who", "inbox"}, "", kDeadline,
             [this, path](int, const std::string& said) { installed(path, said); });
}

void PolicyService::Impl::installed(const std::string& path, const std::string& said) {
  busy_with_bundle = false;
  const Json json = parse_json<Json>(said);
  const std::string result = text_in(json, "result");
  const std::string name = fs::path(path).filename().string();
  std::error_code ignored;
  if (result == "installed" || result == "not-installed") {
    fs::remove(path, ignored);
    on.event(Severity::Info, "policy.bundle", "", name + ": " + text_in(json, "text"));
    if (result == "installed") (void)reload();
  } else {
    const std::string why = result == "refused" ? text_in(json, "reason") + ": " + text_in(json, "text")
                                                : std::string("gpuhealth-act did not come to its end");
    fs::rename(path, path + ".refused", ignored);
    if (ignored) fs::remove(path, ignored);
    on.event(Severity::Warning, "policy.bundle-refused", "", name + " is refused, " + why);
    auto refused = files_in(fs::path(path).parent_path().string(), ".refused");
    for (std::size_t i = 0; refused.size() - i > kRefusedKept; ++i) fs::remove(refused[i], ignored);
  }
  inbox_again = false;
  // What cannot be taken out of there would come round for ever.
  if (fs::exists(path, ignored)) return on.log(Severity::Warning, path + " cannot be taken out of the inbox");
  look_into_inbox();
}

// A new bundle whose rules want more than they may.
void PolicyService::Impl::judge_bundle(const policy::Decision& decision) {
  using policy::Block;
  if (decision.mode != policy::Mode::Enforce) return;
  if (decision.block != Block::Budget && decision.block != Block::MachineLimit && decision.block != Block::Breaker)
    return;
  if (!decision.file.starts_with(folder_of(options.root) + "/current/") || !is_new_bundle()) return;
  roll_back("within its first minutes rule " + decision.policy + "/" + decision.rule +
            " wants more than it may: " + decision.reason);
}

void PolicyService::Impl::roll_back(const std::string& why) {
  if (busy_with_bundle) return;
  busy_with_bundle = true;
  on.event(Severity::Critical, "policy.bundle", "", "the bundle in force is taken back: " + why);
  runner.run({"policy", "rollback", "--why", why.substr(0, 2000), "--root", options.root, "--who", "gpuhealthd"}, "",
             kDeadline, [this](int, const std::string& said) {
               busy_with_bundle = false;
               const Json json = parse_json<Json>(said);
               const bool done = json.is_object() && text_in(json, "result") != "refused" && json.contains("result");
               on.event(done ? Severity::Info : Severity::Critical, "policy.bundle", "",
                        done ? text_in(json, "text") : "it could not be taken back: " + text_in(json, "text"));
               look_at_bundle();
               if (done) sound_bundle = bundle;
               (void)reload();
               look_into_inbox();
             });
}

}  // namespace gpuhealth::daemon
