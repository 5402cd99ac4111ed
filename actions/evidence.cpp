// SPDX-License-Identifier: Apache-2.0
// What a bug report or a returned card needs, in one folder that never grows beyond its limit. The devcoredump comes
// first: the kernel throws it away after five minutes.
#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include <nlohmann/json.hpp>

#include "actions/actuator.hpp"
#include "actions/text.hpp"

namespace gpuhealth::actions {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kTailBytes = std::size_t{256} << 10;
constexpr std::size_t kJournalBytes = std::size_t{4} << 20;
// Files that tell something and do nothing: no debugfs, no xgmi_error (which is cleared when it is read).
constexpr std::array<std::string_view, 20> kDeviceFiles = {"vendor",
                                                           "device",
                                                           "subsystem_vendor",
                                                           "subsystem_device",
                                                           "revision",
                                                           "unique_id",
                                                           "vbios_version",
                                                           "mem_info_vram_used",
                                                           "mem_info_gtt_used",
                                                           "mem_info_vram_total",
                                                           "gpu_metrics",
                                                           "gpu_busy_percent",
                                                           "pp_dpm_sclk",
                                                           "pp_dpm_mclk",
                                                           "power_dpm_force_performance_level",
                                                           "aer_dev_nonfatal",
                                                           "aer_dev_fatal",
                                                           "current_link_speed",
                                                           "current_link_width",
                                                           "aer_dev_correctable"};
constexpr std::array<std::string_view, 4> kSleepSafe = {"vendor", "device", "unique_id", "vbios_version"};

class Bundle {
 public:
  Bundle(const Machine& machine, std::string folder, std::uint64_t limit)
      : machine_(machine), folder_(std::move(folder)), left_(limit) {}

  // Whole, or its first bytes when there is no room for it.
  void add(const std::string& name, std::string bytes, bool cut = false) {
    if (error_ || bytes.empty()) return;
    if (bytes.size() > left_) {
      bytes.resize(left_);
      cut = true;
    }
    if (bytes.empty()) {
      manifest_.push_back({{"file", name}, {"bytes", 0}, {"cut", true}});
      return;
    }
    const std::string path = folder_ + "/" + name;
    if (auto put = put_file(machine_.files, *machine_.outside.system, path, {true, bytes, 0640}); !put) {
      error_ = put.error();
      return;
    }
    left_ -= bytes.size();
    files_.push_back(path);
    manifest_.push_back({{"file", name}, {"bytes", bytes.size()}, {"cut", cut}});
  }
  // At most `most` bytes from its start.
  void copy(const Tree& tree, const std::string& from, const std::string& name, std::size_t most) {
    bool cut = false;
    if (auto bytes = head(tree, from, std::min<std::uint64_t>(most, left_), cut)) add(name, std::move(*bytes), cut);
  }
  [[nodiscard]] std::uint64_t left() const { return left_; }
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }
  [[nodiscard]] const std::vector<std::string>& files() const { return files_; }
  [[nodiscard]] const Json& manifest() const { return manifest_; }

 private:
  static std::optional<std::string> head(const Tree& tree, const std::string& path, std::uint64_t most, bool& cut) {
    const auto fd = tree.open_file(path, O_RDONLY | O_NONBLOCK);
    if (!fd) return std::nullopt;
    std::string out;
    std::array<char, 65536> buffer{};
    while (true) {
      const ssize_t n = ::read(fd->get(), buffer.data(), buffer.size());
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return out;
      out.append(buffer.data(), static_cast<std::size_t>(n));
      if (out.size() <= most) continue;
      out.resize(most);
      cut = true;
      return out;
    }
  }

  const Machine& machine_;
  std::string folder_;
  std::uint64_t left_;
  std::optional<Error> error_;
  std::vector<std::string> files_;
  Json manifest_ = Json::array();
};

void add_core_dumps(Bundle& bundle, const Machine& machine, const std::string& pci) {
  static constexpr std::string_view kFolder = "/sys/class/devcoredump/";
  for (const std::string& name : machine.hardware.list(kFolder)) {
    if (!name.starts_with("devcd")) continue;
    const std::string folder = std::string(kFolder) + name;
    const std::string device = machine.hardware.resolve(folder + "/failing_device").value_or("");
    if (!pci.empty() && !device.ends_with("/" + pci)) continue;
    bundle.copy(machine.hardware, folder + "/data", name + ".dump", bundle.left() / 2);
  }
}

void add_device(Bundle& bundle, const Machine& machine, const Target& target) {
  const bool awake = must_be_awake(machine, target).has_value();
  for (const std::string_view file : kDeviceFiles) {
    if (!awake && std::ranges::find(kSleepSafe, file) == kSleepSafe.end()) continue;
    bundle.copy(machine.hardware, target.dir + "/" + std::string(file), "device-" + std::string(file), kTailBytes);
  }
  if (!target.slot.empty())
    for (const char* file : {"current_link_speed", "current_link_width", "aer_dev_correctable", "aer_dev_fatal"})
      bundle.copy(machine.hardware, target.slot + "/" + file, std::string("slot-") + file, kTailBytes);
}

void add_journal(Bundle& bundle, const Machine& machine) {
  const std::string program = find_program(machine, "journalctl");
  if (program.empty()) return;
  const std::array<std::pair<std::string, std::vector<std::string>>, 2> excerpts = {
      {{"kernel.log", {"--dmesg", "--lines=5000"}}, {"gpuhealthd.log", {"--unit=gpuhealthd.service", "--lines=1000"}}}};
  for (const auto& [name, words] : excerpts) {
    ProgramRun run;
    run.words = {program, "--no-pager", "--quiet", "--output=short-iso"};
    run.words.insert(run.words.end(), words.begin(), words.end());
    run.most = kJournalBytes;
    const auto end = machine.outside.run(run);
    if (end && end->code == 0) bundle.add(name, end->said, end->said.size() == run.most);
  }
}

// The last lines, whole ones.
void add_canary_history(Bundle& bundle, const Machine& machine) {
  const auto fd = machine.files.open_file("/var/lib/gpuhealthd/canary/results.jsonl", O_RDONLY);
  if (!fd) return;
  const off_t size = ::lseek(fd->get(), 0, SEEK_END);
  const off_t from = std::max<off_t>(0, size - static_cast<off_t>(kTailBytes));
  std::string text(static_cast<std::size_t>(std::max<off_t>(0, size - from)), '\0');
  const ssize_t n = ::pread(fd->get(), text.data(), text.size(), from);
  text.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  if (from > 0) text.erase(0, std::min(text.find('\n'), text.size() - 1) + 1);
  bundle.add("canary-results.jsonl", text, from > 0);
}

std::string folder_name(const Asked& asked) {
  std::string name = utc_text(asked.machine->outside.now);
  std::erase_if(name, [](char c) { return c == ':' || c == '-'; });
  name += "-" + (asked.target ? asked.target->pci : std::string("machine"));
  std::ranges::replace(name, ':', '-');
  return name;
}

Result<Report> perform(const Asked& asked) {
  const Machine& machine = *asked.machine;
  System& system = *machine.outside.system;
  if (auto made = make_state_folder(machine.files, system, "evidence"); !made)
    return tl::unexpected<Error>(made.error());
  const std::string name = folder_name(asked);
  std::string folder = std::string(kStateFolder) + "/evidence/" + name;
  for (int number = 2; machine.files.stat(folder); ++number)
    folder = std::string(kStateFolder) + "/evidence/" + name + "-" + std::to_string(number);
  if (auto made = system.make_folder(machine.files, folder, 0750); !made) return tl::unexpected<Error>(made.error());
  // A little stays free for the list of what is in it.
  const std::uint64_t limit = asked.params.bytes("limit");
  Bundle bundle(machine, folder, limit - std::min<std::uint64_t>(limit, 4096));
  add_core_dumps(bundle, machine, asked.target ? asked.target->pci : std::string());
  bundle.add("event.json", event_json(asked) + "\n");
  if (asked.target) add_device(bundle, machine, *asked.target);
  add_canary_history(bundle, machine);
  add_journal(bundle, machine);
  if (bundle.error()) return tl::unexpected<Error>(*bundle.error());
  const Json manifest = {{"made", utc_text(machine.outside.now)}, {"limit", limit}, {"files", bundle.manifest()}};
  const std::string path = folder + "/MANIFEST.json";
  if (auto put = put_file(machine.files, system, path, {true, manifest.dump(1) + "\n", 0640}); !put)
    return tl::unexpected<Error>(put.error());
  Report out;
  out.text = std::to_string(bundle.files().size()) + " files are in " + folder;
  out.files = bundle.files();
  out.files.push_back(path);
  return out;
}

}  // namespace

const Actuator kCollectEvidence = {.kind = ActionKind::CollectEvidence, .recovery = Recovery::Note, .perform = perform};

}  // namespace gpuhealth::actions
