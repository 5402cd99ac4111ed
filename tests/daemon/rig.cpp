// SPDX-License-Identifier: Apache-2.0
#include "tests/daemon/rig.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <stdexcept>

#include "dbus/sd.hpp"
#include "tests/paths.hpp"

namespace gpuhealth::test {
namespace {

using Steady = std::chrono::steady_clock;
using std::chrono::milliseconds;

bool readable(int fd, Steady::time_point end) {
  const auto left = std::chrono::ceil<milliseconds>(end - Steady::now()).count();
  pollfd wanted{fd, POLLIN, 0};
  return left > 0 && poll(&wanted, 1, static_cast<int>(left)) > 0;
}

[[noreturn]] void become(const std::vector<std::string>& arguments, const std::vector<std::string>& environment,
                         int errors) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  dup2(errors, STDERR_FILENO);
  for (const auto& variable : environment) putenv(const_cast<char*>(variable.c_str()));
  std::vector<char*> list;
  list.reserve(arguments.size() + 1);
  for (const auto& a : arguments) list.push_back(const_cast<char*>(a.c_str()));
  list.push_back(nullptr);
  execv(list[0], list.data());
  _exit(127);
}

}  // namespace

const char* const kFastConfig =
    "sampling:\n  interval: 500ms\n  slow-every: 1\n  rediscover: 5s\n  deadline: 500ms\n"
    "health:\n"
    "  sample:\n    settle: 0\n"
    "  flap:\n    window: 0\n"
    "  overheating:\n    for: 1\n    clear_for: 1\n";

Process::Process(const std::vector<std::string>& arguments, const std::vector<std::string>& environment) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
  errors_.reset(ends[0]);
  const Fd theirs(ends[1]);
  pid_ = fork();
  if (pid_ < 0) throw std::runtime_error("fork");
  if (pid_ == 0) become(arguments, environment, theirs.get());
  handle_.reset(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
  if (handle_.get() < 0) throw std::runtime_error("pidfd_open");
}

Process::~Process() {
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

void Process::send(int signal) const {
  if (pid_ > 0) kill(pid_, signal);
}

std::optional<int> Process::wait(milliseconds limit) {
  if (!readable(handle_.get(), Steady::now() + limit)) return std::nullopt;
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool Process::says(const std::string& text) {
  const auto end = Steady::now() + kPatience;
  while (said_.find(text) == std::string::npos) {
    if (!readable(errors_.get(), end)) return false;
    char bytes[4096];
    const auto n = read(errors_.get(), bytes, sizeof bytes);
    if (n <= 0) return false;
    said_.append(bytes, static_cast<std::size_t>(n));
  }
  return true;
}

std::vector<pid_t> Process::children() const {
  std::ifstream file(fmt::format("/proc/{0}/task/{0}/children", pid_));
  std::vector<pid_t> out;
  for (pid_t child = 0; file >> child;) out.push_back(child);
  return out;
}

Rig::Rig() : state(home.path() / "state"), config(home.path() / "config") {
  std::filesystem::create_directory(state);
  std::filesystem::create_directory(config);
  configure(kFastConfig);
}

void Rig::plug(std::span<const sim::Card> cards, unsigned boot) const {
  sim::MachineFacts facts;
  facts.boot_id = fmt::format("5ee05ee0-0000-4000-8000-{:012}", boot);
  const auto written = sim::write_machine(tree.path(), cards, facts);
  if (!written) throw std::runtime_error(written.error().text);
}

void Rig::configure(const std::string& yaml) const {
  std::ofstream(config / "gpuhealthd.yaml") << yaml;
}

std::vector<std::string> Rig::arguments() const {
  const std::string program = GPUHEALTH_BIN_DIR "/gpuhealthd";
  return {program,       "--sysroot",    tree.string(),  "--bus",        bus.address(),
          "--state-dir", state.string(), "--config-dir", config.string()};
}

void Rig::launch(const std::vector<std::string>& environment) {
  daemon = std::make_unique<Process>(arguments(), environment);
}

void Rig::start(const std::vector<std::string>& environment) {
  Listener listener(bus.address());
  launch(environment);
  listener.wait_for_name();
}

std::optional<int> Rig::stop() {
  daemon->send(SIGTERM);
  return daemon->wait(std::chrono::seconds(2));
}

void Rig::explain() const {
  if (const auto ended = daemon->wait(milliseconds(1))) std::fprintf(stderr, "gpuhealthd ended with %d\n", *ended);
  daemon->says("\n");
  std::fprintf(stderr, "gpuhealthd said:\n%s", daemon->said().c_str());
}

dbus::Client Rig::client() const {
  auto connected = dbus::Client::connect(bus.address());
  if (!connected) throw std::runtime_error(connected.error().text);
  return std::move(*connected);
}

bool Rig::await(const std::function<bool(dbus::Client&)>& seen) const {
  auto looking = client();
  auto watching = client();
  const auto end = Steady::now() + kPatience;
  bool yes = seen(looking);
  if (yes) return true;
  std::ignore = watching.watch(milliseconds(100), [&] {
    yes = seen(looking);
    return !yes && Steady::now() < end;
  });
  if (!yes) explain();
  return yes;
}

std::optional<Condition> Rig::await_confirmed(ConditionType type, const std::string& device) const {
  std::optional<Condition> found;
  std::ignore = await([&](dbus::Client& c) {
    const auto conditions = c.conditions();
    if (!conditions) return false;
    found = find(*conditions, type, device);
    if (found && found->state != ConditionState::Confirmed) found.reset();
    return found.has_value();
  });
  return found;
}

bool Rig::await_samples(std::uint64_t more) const {
  auto now = client().manager();
  if (!now) return false;
  return await([&](dbus::Client& c) {
    const auto later = c.manager();
    return later && later->samples >= now->samples + more;
  });
}

std::string id_of(const sim::Card& card) {
  return fmt::format("uid-{:016x}", card.unique_id);
}

std::optional<Condition> find(const std::vector<Condition>& conditions, ConditionType type, const std::string& device) {
  const auto it =
      std::ranges::find_if(conditions, [&](const Condition& c) { return c.type == type && c.device == device; });
  return it == conditions.end() ? std::nullopt : std::optional(*it);
}

ConditionSignal next_condition(Listener& listener, const std::string& type, const std::string& state) {
  for (;;) {
    const auto message = listener.wait_for("ConditionChanged", "/org/gpuhealth1");
    const char* texts[5] = {};
    int acknowledged = 0;
    if (sd_bus_message_read(message.get(), "sssssb", &texts[0], &texts[1], &texts[2], &texts[3], &texts[4],
                            &acknowledged) < 0)
      throw std::runtime_error("ConditionChanged is not as documented");
    if (type == texts[1] && state == texts[3])
      return {texts[0], texts[1], texts[2], texts[3], texts[4], acknowledged != 0};
  }
}

std::string next_object(Listener& listener, const std::string& member, const std::string& prefix) {
  for (;;) {
    const auto message = listener.wait_for(member, "/org/gpuhealth1");
    const char* path = nullptr;
    if (sd_bus_message_read(message.get(), "o", &path) < 0) throw std::runtime_error(member + " names no object");
    if (std::string_view(path).starts_with(prefix)) return path;
  }
}

}  // namespace gpuhealth::test
