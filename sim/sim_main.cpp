// SPDX-License-Identifier: Apache-2.0
// gpuhealth-sim: a machine that breaks on command. See docs/simulator.md.
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <thread>
#include <variant>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "core/exit_codes.hpp"
#include "sim/isolation.hpp"
#include "sim/judge.hpp"
#include "sim/player.hpp"
#include "sim/scenario.hpp"
#include "sim/stage.hpp"

namespace {

using namespace gpuhealth;
using namespace gpuhealth::sim;
using Steady = std::chrono::steady_clock;

struct Options {
  std::string scenario;
  std::vector<std::string> command;
  double speed = 0;  // 0: 10 for a check, 1 for people
  bool check = false;
  bool json = false;
  bool parse_only = false;
  bool log = false;
};

constexpr double kLookEvery = 0.1;  // real seconds

int complain(const Error& error) {
  std::fputs(fmt::format("gpuhealth-sim: {}\n", error.text).c_str(), stderr);
  return static_cast<int>(exit_code(error.code));
}

std::string bin_dir() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).parent_path().string();
}

// A name of a shipped scenario, or a file.
std::string find_scenario(const std::string& given) {
  std::error_code error;
  if (given.find('/') != std::string::npos || std::filesystem::exists(given, error)) return given;
  for (const std::string& folder : {std::string(GPUHEALTH_SCENARIOS), std::string(GPUHEALTH_SCENARIOS_INSTALLED)}) {
    const std::string path = folder + "/" + given + ".yaml";
    if (std::filesystem::exists(path, error)) return path;
  }
  return given;
}

class Show {
 public:
  Show(const Scenario& scenario, const Options& options, Stage& stage)
      : scenario_(scenario), options_(options), stage_(stage), player_(scenario, stage), judge_(scenario, player_) {}

  int run() {
    start_ = Steady::now();
    if (auto done = stage_.start_daemon(); !done) return complain(done.error());
    Child command;
    if (!options_.command.empty()) {
      auto words = options_.command;
      // Our own programs by name, also where they are not installed.
      std::error_code error;
      const auto own = bin_dir() + "/" + words.front();
      if (words.front().find('/') == std::string::npos && std::filesystem::exists(own, error)) words.front() = own;
      auto child = Child::start(words, stage_.environment(), {});
      if (!child) return complain(child.error());
      command = std::move(*child);
    }
    double next_look = 0;
    for (;;) {
      const double now_s = second(Steady::now());
      if (options_.check && now_s >= scenario_.duration_s) break;
      if (auto done = player_.play(now_s); !done) return complain(done.error());
      if (player_.daemon_wanted() && !stage_.daemon.runs() && died_at_ < 0) died_at_ = now_s;
      if (!options_.command.empty()) {
        if (const auto status = command.wait(0)) return *status;
      }
      if (options_.check && player_.daemon_wanted() && !player_.asleep() && now_s >= next_look) {
        judge_.look(now_s, stage_.bus_address());
        const bool played = player_.finished();
        if (scenario_.ends_early && played && judge_.settled(stage_.canary_results())) break;
        next_look = second(Steady::now()) + kLookEvery * options_.speed;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return conclude();
  }

 private:
  [[nodiscard]] double second(Steady::time_point t) const {
    return std::chrono::duration<double>(t - start_).count() * options_.speed;
  }

  int conclude() {
    auto findings = judge_.conclude(
        stage_.files().accesses(), [this](auto t) { return second(t); }, stage_.canary_results(), stage_.ledger());
    const auto always = [&](std::string text, bool held, std::string seen) {
      findings.push_back({std::move(text), 0, held, std::move(seen)});
    };
    always("the daemon runs throughout", died_at_ < 0,
           died_at_ < 0 ? "it does" : fmt::format("it ended at {:.0f} s", died_at_));
    always("the daemon answers on the bus", judge_.answers() > 0, fmt::format("{} times", judge_.answers()));
    if (died_at_ < 0 && player_.daemon_wanted()) {
      const auto status = stage_.stop_daemon(SIGTERM);
      always("the daemon ends within 2 s of SIGTERM", status == 0,
             status ? fmt::format("it ended with {}", *status) : "it had to be killed");
    }
    if (!player_.problem().empty()) always("the daemon ends when it is told to", false, player_.problem());
    const bool held = std::ranges::all_of(findings, &Finding::held);
    print(findings, held);
    return held ? 0 : 1;
  }

  void print(const std::vector<Finding>& findings, bool held) const {
    if (options_.json) {
      nlohmann::json list = nlohmann::json::array();
      for (const auto& f : findings)
        list.push_back({{"expected", f.text}, {"line", f.line}, {"held", f.held}, {"seen", f.seen}});
      std::puts(nlohmann::json{{"scenario", scenario_.name}, {"held", held}, {"findings", list}}.dump(2).c_str());
    } else {
      for (const auto& f : findings)
        std::puts(fmt::format("{:7} {}\n        seen: {}", f.held ? "ok" : "FAILED", f.text, f.seen).c_str());
      std::puts(held ? "all held" : "NOT all held");
    }
    if (!held || options_.log) std::fputs(("--- gpuhealthd\n" + stage_.daemon_log()).c_str(), stderr);
  }

  const Scenario& scenario_;
  const Options& options_;
  Stage& stage_;
  Player player_;
  Judge judge_;
  Steady::time_point start_;
  double died_at_ = -1;
};

// A week's reads would fill gigabytes; writes are always judged.
std::vector<AccessKind> kinds_that_count(const Scenario& scenario) {
  std::vector<AccessKind> kinds{AccessKind::Write};
  for (const auto& expectation : scenario.expectations)
    if (const auto* access = std::get_if<ExpectAccess>(&expectation.what)) kinds.push_back(access->kind);
  return kinds;
}

int run_inside(const Scenario& scenario, const Options& options) {
  auto stage = Stage::set_up(scenario, {bin_dir(), options.speed});
  if (!stage) return complain(stage.error());
  (*stage)->files().remember(kinds_that_count(scenario));
  return Show(scenario, options, **stage).run();
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Runs gpuhealthd and a command on a simulated machine that breaks as a scenario says.");
  app.name("gpuhealth-sim");
  app.add_option("SCENARIO", options.scenario, "a file, or the name of a shipped scenario")->required();
  app.add_flag("--check", options.check, "play it to its end; exit 0 only when every expectation held");
  app.add_option("--speed", options.speed, "so many times as fast as real time (10 with --check, else 1)")
      ->check(CLI::Range(1, 100));
  app.add_flag("--json", options.json, "print the findings of --check as JSON");
  app.add_flag("--parse", options.parse_only, "only say what is wrong with the scenario");
  app.add_flag("--log", options.log, "print the daemon's log at the end, also when all held");
  app.add_option("COMMAND", options.command, "what to run there, after --");
  app.positionals_at_end(false);
  CLI11_PARSE(app, argc, argv);
  if (options.speed == 0) options.speed = options.check ? 10 : 1;

  const auto scenario = load_scenario(find_scenario(options.scenario));
  if (!scenario) return complain(scenario.error());
  if (options.parse_only) return 0;
  options.speed = std::min(options.speed, scenario->speed_at_most);
  if (!options.check && options.command.empty()) {
    std::fputs("gpuhealth-sim: give --check, or a command after --\n", stderr);
    return static_cast<int>(ExitCode::Usage);
  }
  if (access("/dev/fuse", F_OK) != 0) return complain({ErrorCode::Unavailable, "this machine has no /dev/fuse"});
  const auto status = run_isolated([&] { return run_inside(*scenario, options); });
  if (!status) return complain(status.error());
  return *status;
}
