// SPDX-License-Identifier: Apache-2.0
// The daemon's canaries with workers that are scripts. Their time is in the lines that they print; the daemon's is
// moved by hand.
#include "daemon/canary_service.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <iterator>

#include <boost/asio/io_context.hpp>

#include "canary/process.hpp"
#include "core/spawn.hpp"
#include "tests/support/temp_dir.hpp"

namespace gpuhealth::daemon {
namespace {

using canary::stats::FindingKind;
using canary::stats::Level;

class CanaryServiceTest : public testing::Test {
 protected:
  std::string script(const std::string& name, const std::string& body) {
    const auto path = folder_.string() + "/" + name;
    std::ofstream(path) << "#!/bin/sh\n" << body;
    chmod(path.c_str(), 0755);
    return path;
  }
  // Runs the loop until `done` or ten seconds have passed.
  template <class Done>
  void run_until(Done done, CanaryService* service = nullptr) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!done() && std::chrono::steady_clock::now() < end) {
      if (service != nullptr) service->look();
      io_.run_for(std::chrono::milliseconds(50));
      io_.restart();
      clock_.advance(std::chrono::seconds(2));
    }
  }
  test::TempDir folder_;
  boost::asio::io_context io_;
  ManualClock clock_;
};

// Each call is twenty seconds after the one before; the mappings of each take two seconds.
constexpr const char* kStalledWorker = R"(n=$(cat "$0.count" 2>/dev/null || echo 0)
echo $((n + 1)) > "$0.count"
m='{"ms":2010,"control_ms":2,"system_ms":1990}'
echo 'not json at all {"canary"'
echo "{\"canary\":\"userptr_cow\",\"value\":2010,\"time\":$((1000 + 20 * n)),\"epoch\":\"7.0.12\",\"device\":\"0000:03:00.0\",\"mappings\":[$m,$m,$m]}"
printf '{"canary":"triad","val'
)";

TEST_F(CanaryServiceTest, AStallIsConfirmedByTheSecondRunAndLinesAreKept) {
  CanaryService::Options options;
  options.program = script("worker", kStalledWorker);
  options.results = folder_.string() + "/canary/results.jsonl";
  std::vector<health::CanaryFinding> found;
  CanaryService::Handlers on;
  on.devices = [] {
    canary::DeviceSituation d;
    d.device = "0000:03:00.0";
    d.busy = true;  // the stall's rule holds all the same
    return std::vector{d};
  };
  on.finding = [&](const health::CanaryFinding& f) { found.push_back(f); };
  on.log = [](Severity, const std::string&) {};
  CanaryService service(io_, clock_, options, on);
  service.start();
  run_until([&] { return found.size() >= 2; }, &service);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].finding.level, Level::Suspect);
  EXPECT_EQ(found[1].finding.level, Level::Confirmed);
  EXPECT_EQ(found[1].finding.kind, FindingKind::Stall);
  EXPECT_EQ(found[1].cause.text, "software regression: host-memory mapping path");
  const auto as = health::condition_of(found[1].finding.kind);
  EXPECT_EQ(as.type, ConditionType::HostCopyStall);
  EXPECT_EQ(as.severity, Severity::Critical);
  std::ifstream kept(options.results);
  std::string line;
  int lines = 0;
  while (std::getline(kept, line)) ++lines;
  EXPECT_EQ(lines, 2) << "what was no measurement is not kept";
}

// A stall takes two runs: both must be read again to be one. The file of the older run differs.
void expect_stall_told_again(const std::string& folder, boost::asio::io_context& io, const Clock& clock,
                             const std::string& older) {
  CanaryService::Options options;
  options.program = "/nonexistent";
  std::filesystem::create_directories(folder + "/canary");
  options.results = folder + "/canary/results.jsonl";
  const std::string m = R"({"ms":2010,"control_ms":2,"system_ms":1990})";
  const auto keep = [&](const std::string& file, const char* time) {
    std::ofstream(folder + "/canary/" + file, std::ios::app)
        << R"({"canary":"userptr_cow","value":2010,"time":)" << time << R"(,"epoch":"a","device":"x","mappings":[)" << m
        << "," << m << "," << m << "]}\n";
  };
  keep(older, "1000");
  keep("results.jsonl", "1020");
  std::vector<health::CanaryFinding> found;
  CanaryService::Handlers on;
  on.devices = [] { return std::vector<canary::DeviceSituation>(); };
  on.finding = [&](const health::CanaryFinding& f) { found.push_back(f); };
  on.log = [](Severity, const std::string&) {};
  CanaryService service(io, clock, options, on);
  service.start();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].finding.level, Level::Confirmed);
}

TEST_F(CanaryServiceTest, WhatWasOpenBeforeAStartIsToldAgain) {
  expect_stall_told_again(folder_.string(), io_, clock_, "results.jsonl");
}

TEST_F(CanaryServiceTest, WhatWasTurnedOverIsNotForgottenAtAStart) {
  expect_stall_told_again(folder_.string(), io_, clock_, "results.jsonl.1");
}

// `sleep` stands for a child that hangs in the kernel: what a worker left behind and named in its line.
TEST_F(CanaryServiceTest, BesideWhatHangsInTheKernelNoSecondWorkerIsStarted) {
  const auto hung = spawn({"sleep", "600"}, {});
  ASSERT_TRUE(hung);
  CanaryService::Options options;
  options.program = script("worker",
                           "echo x >> \"$0.starts\"\n"
                           "echo '{\"canary\":\"triad\",\"status\":\"stuck\",\"device\":\"0000:03:00.0\","
                           "\"notes\":{\"pid\":\"" +
                               std::to_string(*hung) + "\"}}'\n");
  options.results = folder_.string() + "/canary/results.jsonl";
  CanaryService::Handlers on;
  on.devices = [] {
    canary::DeviceSituation d;
    d.device = "0000:03:00.0";
    d.amdgpu = false;
    return std::vector{d};
  };
  on.finding = [](const health::CanaryFinding&) {};
  on.log = [](Severity, const std::string&) {};
  CanaryService service(io_, clock_, options, on);
  service.start();
  const auto starts = [&] {
    std::ifstream in(options.program + ".starts");
    return std::distance(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()) / 2;
  };
  const auto until = [&](double seconds) {
    const auto end = clock_.now().steady + std::chrono::milliseconds(static_cast<int>(seconds * 1000));
    return [this, end] { return clock_.now().steady >= end; };
  };
  run_until([&] { return starts() == 1; }, &service);
  run_until(until(60), &service);
  EXPECT_EQ(starts(), 1);
  kill(*hung, SIGKILL);
  waitpid(*hung, nullptr, 0);
  run_until([&] { return starts() >= 2; }, &service);
  EXPECT_GE(starts(), 2) << "it has ended: the GPU is measured again";
}

CanaryService::Handlers quiet(std::vector<health::CanaryFinding>* found = nullptr) {
  CanaryService::Handlers on;
  on.devices = [] {
    canary::DeviceSituation d;
    d.device = "0000:03:00.0";
    return std::vector{d};
  };
  on.finding = [found](const health::CanaryFinding& f) {
    if (found != nullptr) found->push_back(f);
  };
  on.log = [](Severity, const std::string&) {};
  return on;
}

constexpr const char* kReset =
    R"({"reset":true,"device":"0000:03:00.0","canary":"userptr_cow","who":"root","why":"new card","time":"2026-12-01T00:00:00Z"})";

TEST_F(CanaryServiceTest, ARunningDaemonObeysAResetThatIsAppendedToItsResults) {
  CanaryService::Options options;
  options.program = script("worker", kStalledWorker);
  options.results = folder_.string() + "/canary/results.jsonl";
  std::vector<health::CanaryFinding> found;
  CanaryService service(io_, clock_, options, quiet(&found));
  service.start();
  run_until([&] { return found.size() >= 2; }, &service);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[1].finding.level, Level::Confirmed);
  std::ofstream(options.results, std::ios::app) << kReset << "\n";
  run_until([&] { return found.size() >= 3; }, &service);
  ASSERT_GE(found.size(), 3U);
  EXPECT_EQ(found[2].finding.level, Level::Recovered);
  EXPECT_EQ(found[2].finding.detail, "its baseline was reset: new card");
}

TEST_F(CanaryServiceTest, AResetIsObeyedAfterARestartToo) {
  CanaryService::Options options;
  options.program = "/nonexistent";
  std::filesystem::create_directories(folder_.string() + "/canary");
  options.results = folder_.string() + "/canary/results.jsonl";
  const std::string m = R"({"ms":2010,"control_ms":2,"system_ms":1990})";
  std::ofstream file(options.results);
  for (const char* time : {"1000", "1020"})
    file << R"({"canary":"userptr_cow","value":2010,"time":)" << time
         << R"(,"epoch":"a","device":"0000:03:00.0","mappings":[)" << m << "," << m << "," << m << "]}\n";
  file << kReset << "\n";
  file.close();
  std::vector<health::CanaryFinding> found;
  CanaryService service(io_, clock_, options, quiet(&found));
  service.start();
  EXPECT_TRUE(found.empty());
}

TEST_F(CanaryServiceTest, AWorkerThatCannotStartEndsItsRun) {
  CanaryService::Options options;
  options.program = "/nonexistent/gpuhealth-canary";
  options.results = folder_.string() + "/canary/results.jsonl";
  auto on = quiet();
  std::vector<std::string> problems;
  on.run_ended = [&](const std::string& device, const std::string& problem) {
    EXPECT_EQ(device, "0000:03:00.0");
    problems.push_back(problem);
  };
  CanaryService service(io_, clock_, options, on);
  service.start();
  ASSERT_TRUE(service.run_now("0000:03:00.0", 1, {}));
  run_until([&] { return !problems.empty(); });
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_NE(problems[0].find("/nonexistent/gpuhealth-canary"), std::string::npos) << problems[0];
  EXPECT_TRUE(service.run_now("0000:03:00.0", 1, {})) << "the GPU is free again";
}

TEST_F(CanaryServiceTest, APersonsRunIsAloneOnItsGpuAndEndsWhenItIsCancelled) {
  CanaryService::Options options;
  options.program = script("worker", "echo \"$@\" > \"$0.args\"\nexec sleep 600\n");
  options.results = folder_.string() + "/canary/results.jsonl";
  auto on = quiet();
  int ended = 0;
  on.run_ended = [&](const std::string&, const std::string&) { ++ended; };
  CanaryService service(io_, clock_, options, on);
  service.start();
  EXPECT_FALSE(service.run_now("0000:99:00.0", 1, {}));
  ASSERT_TRUE(service.run_now("0000:03:00.0", 1, {"triad"}));
  const auto second = service.run_now("0000:03:00.0", 1, {});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::Exhausted);
  run_until([&] { return std::filesystem::exists(options.program + ".args"); }, &service);
  std::ifstream in(options.program + ".args");
  std::string words;
  std::getline(in, words);
  EXPECT_EQ(words, "--backend auto --tier 1 --only triad --device 0000:03:00.0 --json");
  service.cancel("0000:03:00.0");
  run_until([&] { return ended == 1; });
  EXPECT_EQ(ended, 1);
}

TEST(ProcessId, ANumberThatIsUsedAgainIsAnotherProcess) {
  const auto self = canary::process_id(getpid());
  EXPECT_GT(self.started, 0U);
  EXPECT_TRUE(canary::is_there(self));
  EXPECT_FALSE(canary::is_there({self.pid, self.started + 1}));
  EXPECT_TRUE(canary::is_there({self.pid, 0})) << "its start was not known";
}

TEST_F(CanaryServiceTest, AWorkerIsStartedAndStoppedAsItsLauncherSays) {
  CanaryService::Options options;
  options.results = folder_.string() + "/canary/results.jsonl";
  std::vector<std::string> asked;
  double limit = 0;
  options.launch = [&](const std::string& device, const std::vector<std::string>& arguments, double limit_s) {
    asked = arguments;
    limit = limit_s;
    EXPECT_EQ(device, "0000:03:00.0");
    const auto stopped = folder_.string() + "/stopped";
    const auto unit =
        script("unit", "until [ -e " + stopped + " ] || [ ! -e " + folder_.string() + " ]; do sleep 0.05; done\n");
    return CanaryService::Launch{unit, {}, {"touch", stopped}, 20};
  };
  CanaryService::Handlers on;
  on.devices = [] {
    canary::DeviceSituation d;
    d.device = "0000:03:00.0";
    d.busy = true;
    return std::vector{d};
  };
  on.finding = [](const health::CanaryFinding&) {};
  on.log = [](Severity, const std::string&) {};
  {
    CanaryService service(io_, clock_, options, on);
    service.start();
    run_until([&] { return !asked.empty(); }, &service);
    EXPECT_EQ(asked,
              (std::vector<std::string>{"--backend", "ioctl", "--tier", "0", "--device", "0000:03:00.0", "--json"}));
    EXPECT_EQ(limit, 300);
  }
  run_until([&] { return std::filesystem::exists(folder_.path() / "stopped"); });
  EXPECT_TRUE(std::filesystem::exists(folder_.path() / "stopped"));
}

TEST_F(CanaryServiceTest, AWorkerThatNeverEndsIsKilledAtItsLimit) {
  bool ended = false;
  canary::WorkerProcess::Handlers on;
  on.measured = [](const canary::Measurement&, const std::string&) {};
  on.ended = [&] { ended = true; };
  auto process = canary::WorkerProcess::start(io_, script("sleeper", "exec sleep 600\n"), {}, 0.2, on);
  ASSERT_TRUE(process);
  run_until([&] { return ended; });
  EXPECT_TRUE(ended);
}

TEST_F(CanaryServiceTest, AWorkerGivesWayWhenAsked) {
  bool ended = false;
  canary::WorkerProcess::Handlers on;
  on.measured = [](const canary::Measurement&, const std::string&) {};
  on.ended = [&] { ended = true; };
  auto process = canary::WorkerProcess::start(io_, script("sleeper", "exec sleep 600\n"), {}, 600, on);
  ASSERT_TRUE(process);
  (*process)->stop();
  run_until([&] { return ended; });
  EXPECT_TRUE(ended);
}

TEST(LineBuffer, MakesLinesOfPiecesAndDropsWhatIsTooLong) {
  canary::LineBuffer buffer;
  EXPECT_TRUE(buffer.feed("ab").empty());
  EXPECT_EQ(buffer.feed("c\nd\ne"), (std::vector<std::string>{"abc", "d"}));
  EXPECT_EQ(buffer.feed("\n"), std::vector<std::string>{"e"});
  EXPECT_TRUE(buffer.feed(std::string(100000, 'x')).empty());
  EXPECT_EQ(buffer.feed("tail\nnext\n"), std::vector<std::string>{"next"});
}

}  // namespace
}  // namespace gpuhealth::daemon
