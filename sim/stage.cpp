// SPDX-License-Identifier: Apache-2.0
#include "sim/stage.hpp"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <fstream>
#include <sstream>
#include <thread>
#include <utility>

#include "core/fd.hpp"
#include "core/spawn.hpp"

namespace gpuhealth::sim {
namespace fs = std::filesystem;
namespace {

using Steady = std::chrono::steady_clock;
constexpr const char* kStandIn = "libgpuhealth_standin_opencl.so";
constexpr double kPatience = 10;  // seconds that a bus may take to start

Result<void> bind(const fs::path& from, const fs::path& to) {
  if (mount(from.c_str(), to.c_str(), nullptr, MS_BIND | MS_REC, nullptr) != 0)
    return fail_errno("cannot mount " + from.string() + " on " + to.string(), errno);
  return {};
}

// A folder that every Linux has and that a scenario does not need: the private tmpfs on it leaves nothing behind.
Result<fs::path> find_base(const std::string& bin_dir) {
  const std::string here = fs::current_path().string() + "/";
  const std::string programs = bin_dir + "/";
  for (const char* candidate : {"/mnt", "/media", "/srv", "/opt"}) {
    const std::string folder = std::string(candidate) + "/";
    std::error_code error;
    if (fs::is_directory(candidate, error) && !here.starts_with(folder) && !programs.starts_with(folder))
      return fs::path(candidate);
  }
  return fail(ErrorCode::Unavailable, "none of /mnt, /media, /srv, /opt is there to mount on");
}

// Beside this program; as installed, it is in sbin.
std::string daemon_program(const fs::path& bin_dir) {
  const fs::path beside = bin_dir / "gpuhealthd";
  std::error_code error;
  return fs::exists(beside, error) ? beside.string() : (bin_dir.parent_path() / "sbin/gpuhealthd").string();
}

constexpr const char* kBusConfig =
    "<!DOCTYPE busconfig PUBLIC \"-//freedesktop//DTD D-BUS Bus Configuration 1.0//EN\" "
    "\"http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd\">\n"
    "<busconfig><type>custom</type><listen>ADDRESS</listen><auth>EXTERNAL</auth>"
    "<policy context=\"default\"><allow user=\"*\"/><allow own=\"*\"/>"
    "<allow send_destination=\"*\" eavesdrop=\"true\"/><allow eavesdrop=\"true\"/></policy></busconfig>\n";

}  // namespace

Result<Child> Child::start(const std::vector<std::string>& command, const std::vector<std::string>& environment,
                           const fs::path& log) {
  SpawnFiles files;
  if (!log.empty()) {
    files.open(STDIN_FILENO, "/dev/null", O_RDONLY)
        .open(STDERR_FILENO, log, O_WRONLY | O_CREAT | O_APPEND, 0600)
        .dup(STDERR_FILENO, STDOUT_FILENO);
  }
  const auto pid = spawn(command, files, environment);
  if (!pid) return tl::unexpected<Error>(pid.error());
  return Child(*pid);
}

Child::~Child() {
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

bool Child::runs() {
  return pid_ > 0 && !wait(0);
}

void Child::signal(int number) const {
  if (pid_ > 0) kill(pid_, number);
}

std::optional<int> Child::wait(double seconds) {
  if (pid_ <= 0) return 0;
  const auto until = Steady::now() + std::chrono::duration<double>(seconds);
  for (;;) {
    int status = 0;
    const pid_t ended = waitpid(pid_, &status, WNOHANG);
    if (ended == pid_ || (ended < 0 && errno == ECHILD)) {
      pid_ = -1;
      return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    if (Steady::now() >= until) return std::nullopt;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

Result<std::unique_ptr<Stage>> Stage::set_up(const Scenario& scenario, Options options) {
  auto base = find_base(options.bin_dir);
  if (!base) return tl::unexpected<Error>(base.error());
  std::unique_ptr<Stage> stage(new Stage(std::move(options)));
  stage->base_ = *base;
  if (mount("tmpfs", base->c_str(), "tmpfs", MS_NOSUID | MS_NODEV, "mode=755") != 0)
    return fail_errno("cannot mount on " + base->string(), errno);
  stage->machine_ = *base / "machine";
  stage->polkit_ = scenario.polkit;
  stage->new_log();
  for (const char* folder :
       {"machine", "view", "state", "config", "dev", "opencl", "cache", "profile.d", "boot", "root"})
    fs::create_directory(*base / folder);
  std::ofstream(*base / "config/gpuhealthd.yaml") << scenario.config;
  fs::create_directory(*base / "config/policy.d");
  for (const auto& [name, text] : scenario.policies) std::ofstream(*base / "config/policy.d" / name) << text;
  std::vector<Card> cards;
  cards.reserve(scenario.cards.size());
  for (const auto& card : scenario.cards) cards.push_back(card.card);
  if (auto done = write_machine(stage->machine_, cards, scenario.facts); !done)
    return tl::unexpected<Error>(done.error());
  if (auto done = stage->mount_all(scenario); !done) return tl::unexpected<Error>(done.error());
  if (auto done = stage->start_bus(); !done) return tl::unexpected<Error>(done.error());
  return stage;
}

Result<void> Stage::mount_all(const Scenario& scenario) {
  auto files = FaultFs::mount(machine_, base_ / "view");
  if (!files) return tl::unexpected<Error>(files.error());
  files_ = std::move(*files);
  if (auto done = bind(base_ / "view/sys", "/sys"); !done) return done;
  for (const char* file : {"sys/kernel/osrelease", "sys/kernel/random/boot_id"}) {
    const fs::path from = base_ / "view/proc" / file;
    std::error_code error;
    if (!fs::exists(from, error)) continue;
    if (auto done = bind(from, fs::path("/proc") / file); !done) return done;
  }
  if (auto done = mount_nodes(scenario); !done) return done;
  if (auto done = install_opencl(scenario); !done) return done;
  if (auto done = set_variables(scenario); !done) return done;
  if (auto done = mount_other_files(scenario); !done) return done;
  // The log of the machine around this one is not its own.
  std::error_code error;
  if (fs::exists("/dev/kmsg", error)) return bind(base_ / "kmsg", "/dev/kmsg");
  return {};
}

Result<void> Stage::mount_other_files(const Scenario& scenario) {
  std::error_code error;
  for (const auto& [name, content] : scenario.boot) {
    fs::create_directories((base_ / "boot" / name).parent_path(), error);
    std::ofstream(base_ / "boot" / name) << content;
  }
  if (!scenario.boot.empty()) {
    if (auto done = bind(base_ / "boot", "/boot"); !done) return done;
  }
  if (!scenario.cmdline.empty()) {
    std::ofstream(base_ / "cmdline") << scenario.cmdline << "\n";
    if (auto done = bind(base_ / "cmdline", "/proc/cmdline"); !done) return done;
  }
  if (!scenario.needs_uevents) return {};
  // libudev listens only where udevd seems to run.
  if (mount("tmpfs", "/run", "tmpfs", MS_NOSUID | MS_NODEV, "mode=755") != 0)
    return fail_errno("cannot mount on /run", errno);
  fs::create_directory("/run/udev", error);
  std::ofstream("/run/udev/control") << "";
  return {};
}

void Stage::new_log() {
  records_ = 0;
  std::ofstream(base_ / "kmsg", std::ios::trunc) << "";
}

Result<void> Stage::log(unsigned priority, const std::string& text) {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  std::ofstream file(base_ / "kmsg", std::ios::app);
  file << priority << ',' << records_++ << ',' << (now.tv_sec * 1'000'000 + now.tv_nsec / 1000) << ",-;" << text
       << '\n';
  if (!file.flush()) return fail(ErrorCode::Exhausted, "cannot write the simulated kernel log");
  return {};
}

// Where they cannot be made (no root) the other scenarios do without.
Result<void> Stage::mount_nodes(const Scenario& scenario) {
  auto nodes = DeviceNodes::set_up(base_ / "dev", machine_);
  if (!nodes) return scenario.needs_nodes ? tl::unexpected<Error>(nodes.error()) : Result<void>();
  nodes_ = std::move(*nodes);
  nodes_->set_userptr(scenario.userptr);
  for (const auto& card : scenario.cards) nodes_->show(card.card);
  return {};
}

// The stand-in is beside this program, or in libexec; it stands for the first card.
Result<void> Stage::install_opencl(const Scenario& scenario) {
  if (!scenario.opencl || scenario.cards.empty()) return {};
  const auto folder = base_ / "opencl";
  std::error_code error;
  for (const fs::path& from : {fs::path(options_.bin_dir) / "standin" / kStandIn,
                               fs::path(options_.bin_dir).parent_path() / "libexec" / kStandIn}) {
    if (!fs::exists(from, error)) continue;
    fs::copy_file(from, folder / kStandIn, error);
    if (error) return fail_errno("cannot copy " + from.string(), error.value());
    const Card& card = scenario.cards.front().card;
    std::ofstream(folder / "card") << card.model.name << " (simulated)\n"
                                   << to_string(card.place.gpu) << "\n/dev/dri/renderD128\n";
    std::ofstream(folder / "standin.icd") << (folder / kStandIn).string() << "\n";
    return {};
  }
  return fail(ErrorCode::NotFound, std::string(kStandIn) + " is not beside this program");
}

// As people set them for everybody: a file of the shell's profile.
Result<void> Stage::set_variables(const Scenario& scenario) {
  if (scenario.variables.empty()) return {};
  std::ofstream file(base_ / "profile.d/gpu-workarounds.sh");
  for (const auto& [name, value] : scenario.variables) file << "export " << name << "=" << value << "\n";
  file.close();
  return bind(base_ / "profile.d", "/etc/profile.d");
}

std::string Stage::bus_address() const {
  return "unix:path=" + (base_ / "bus").string();
}

Result<void> Stage::start_bus() {
  std::string config = kBusConfig;
  config.replace(config.find("ADDRESS"), 7, bus_address());
  std::ofstream(base_ / "bus.conf") << config;
  auto child = Child::start(
      {"dbus-daemon", "--config-file=" + (base_ / "bus.conf").string(), "--nofork", "--nopidfile", "--nosyslog"}, {},
      base_ / "bus.log");
  if (!child) return tl::unexpected<Error>(child.error());
  bus_ = std::move(*child);
  const auto until = Steady::now() + std::chrono::duration<double>(kPatience);
  while (!fs::exists(base_ / "bus")) {
    if (!bus_.runs() || Steady::now() > until) return fail(ErrorCode::Unavailable, "dbus-daemon did not start");
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  auto announcer = Announcer::start(bus_address(), polkit_);
  if (!announcer) return tl::unexpected<Error>(announcer.error());
  announcer_ = std::move(*announcer);
  return {};
}

void Stage::stop_bus() {
  announcer_.reset();
  bus_.signal(SIGKILL);
  bus_.wait(kPatience);
  std::error_code ignored;
  fs::remove(base_ / "bus", ignored);
}

std::vector<std::string> Stage::environment() const {
  std::ostringstream speed;
  speed << options_.speed;
  const char* path = std::getenv("PATH");
  return {"GPUHEALTH_BUS_ADDRESS=" + bus_address(),
          "DBUS_SYSTEM_BUS_ADDRESS=" + bus_address(),
          "GPUHEALTH_TEST_SPEED=" + speed.str(),
          "XDG_CACHE_HOME=" + (base_ / "cache").string(),
          "OCL_ICD_VENDORS=" + (base_ / "opencl").string(),
          "PATH=" + options_.bin_dir + ":" + (path != nullptr ? path : "/usr/sbin:/usr/bin:/sbin:/bin")};
}

Result<void> Stage::start_daemon() {
  auto child =
      Child::start({daemon_program(options_.bin_dir), "--bus", bus_address(), "--state-dir", (base_ / "state").string(),
                    "--config-dir", (base_ / "config").string(), "--root", (base_ / "root").string()},
                   environment(), base_ / "gpuhealthd.log");
  if (!child) return tl::unexpected<Error>(child.error());
  daemon = std::move(*child);
  return {};
}

std::optional<int> Stage::stop_daemon(int signal) {
  daemon.signal(signal);
  const auto status = daemon.wait(2);
  if (!status) {
    daemon.signal(SIGKILL);
    daemon.wait(kPatience);
  }
  return status;
}

std::vector<LedgerEntry> Stage::ledger() const {
  const auto tree = Tree::open((base_ / "root").string());
  return tree ? read_ledger(*tree) : std::vector<LedgerEntry>();
}

std::string Stage::daemon_log() const {
  std::ifstream file(base_ / "gpuhealthd.log");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace gpuhealth::sim
