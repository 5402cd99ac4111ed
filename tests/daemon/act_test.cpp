// SPDX-License-Identifier: Apache-2.0
// How gpuhealth-act is started, and how folders are watched.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>

#include <boost/asio/io_context.hpp>

#include "daemon/act_runner.hpp"
#include "daemon/act_unit.hpp"
#include "daemon/folder_watch.hpp"
#include "daemon/policy_service.hpp"
#include "tests/support/temp_dir.hpp"

namespace gpuhealth::daemon {
namespace {

using std::chrono::milliseconds;
using testing::Contains;
using testing::ElementsAre;
using testing::Not;

struct Ended {
  int calls = 0;
  int code = 0;
  std::string said;
};

// A shell in the place of gpuhealth-act.
Ended run(const std::string& script, const std::string& input, Duration deadline = std::chrono::seconds(60)) {
  boost::asio::io_context io(1);
  ActRunner runner(io, {"/bin/sh", false});
  Ended out;
  runner.run({"-c", script}, input, deadline, [&](int code, std::string said) {
    ++out.calls;
    out.code = code;
    out.said = std::move(said);
  });
  EXPECT_EQ(out.calls, 0) << "never from inside the call";
  io.run();
  return out;
}

TEST(ActRunner, HandsOverTheRequestAndTheAnswer) {
  const auto ended = run("read line; echo \"it was $line\"; exit 7", "a request\n");
  EXPECT_EQ(ended.calls, 1);
  EXPECT_EQ(ended.code, 7);
  EXPECT_EQ(ended.said, "it was a request\n");
}

TEST(ActRunner, KillsWhatDoesNotEndByItsDeadline) {
  const auto ended = run("exec sleep 1000", "", milliseconds(50));
  EXPECT_EQ(ended.calls, 1);
  EXPECT_EQ(ended.code, -1);
}

TEST(ActRunner, KeepsNoMoreThanAMebibyteOfWhatItSays) {
  const auto ended = run("head -c 3000000 /dev/zero | tr '\\0' a", "");
  EXPECT_EQ(ended.code, 0);
  EXPECT_EQ(ended.said.size(), 1048576U);
}

TEST(ActRunner, OneThatDoesNotReadItsRequestIsNoTrouble) {
  std::signal(SIGPIPE, SIG_IGN);  // as gpuhealthd does
  EXPECT_EQ(run("exec <&-; echo done", std::string(1 << 20, 'x')).said, "done\n");
}

TEST(ActRunner, SaysThatThereIsNoProgram) {
  boost::asio::io_context io(1);
  ActRunner runner(io, {"/nowhere/gpuhealth-act", false});
  Ended out;
  runner.run({"device", "recover"}, "", std::chrono::seconds(1), [&](int code, std::string said) {
    ++out.calls;
    out.code = code;
    out.said = std::move(said);
  });
  io.run();
  EXPECT_EQ(out.calls, 1);
  EXPECT_EQ(out.code, -1);
  EXPECT_THAT(out.said, testing::HasSubstr("gpuhealth-act could not be started"));
}

TEST(ActUnit, NoTwoHaveOneName) {
  const auto one = next_unit_name();
  const auto other = next_unit_name();
  EXPECT_NE(one, other);
  EXPECT_TRUE(one.starts_with("gpuhealth-act-" + std::to_string(getpid()) + "-")) << one;
}

TEST(ActUnit, OutlivesTheDaemonAndHasADeadline) {
  const auto unit = act_unit("gpuhealth-act-1-1.service", "/usr/libexec/gpuhealth-act", {"device", "recover"},
                             ActRoom::Hardware, 120);
  EXPECT_EQ(unit.start.front(), "/usr/bin/systemd-run");
  for (const char* word : {"--wait", "--pipe", "--collect", "--unit=gpuhealth-act-1-1.service",
                           "--property=RuntimeMaxSec=120", "--property=ProtectSystem=yes"})
    EXPECT_THAT(unit.start, Contains(word));
  EXPECT_THAT(unit.start, Not(Contains(testing::HasSubstr("BindsTo"))));
  EXPECT_THAT(std::vector(unit.start.end() - 4, unit.start.end()),
              ElementsAre("--", "/usr/libexec/gpuhealth-act", "device", "recover"));
  EXPECT_THAT(unit.stop,
              ElementsAre("/usr/bin/systemctl", "--no-block", "--quiet", "stop", "gpuhealth-act-1-1.service"));
}

TEST(ActUnit, OnlyTheBootLoadersAndHooksMayWriteBelowBootAndUsr) {
  EXPECT_EQ(room_of({"device", "run"}, R"({"action": "power-cap", "device": "x"})"), ActRoom::Hardware);
  EXPECT_EQ(room_of({"device", "run"}, R"({"action": "kernel-pin"})"), ActRoom::Boot);
  EXPECT_EQ(room_of({"device", "run"}, R"({"action": "run-hook", "params": {"program": "x"}})"), ActRoom::Hook);
  EXPECT_EQ(room_of({"device", "revert", "000003-kernel-pin"}, ""), ActRoom::Boot);
  EXPECT_EQ(room_of({"device", "run"}, "no JSON"), ActRoom::Hardware);
  for (const ActRoom room : {ActRoom::Boot, ActRoom::Hook})
    EXPECT_THAT(act_unit("n", "p", {}, room, 1).start, Not(Contains("--property=ProtectSystem=yes")));
}

TEST(FolderWatch, ABurstIsOneCallAndAnotherFolderIsNone) {
  test::TempDir dir;
  std::filesystem::create_directory(dir.path() / "watched");
  std::filesystem::create_directory(dir.path() / "other");
  boost::asio::io_context io(1);
  int calls = 0;
  FolderWatch watch(io, milliseconds(50), [&] {
    ++calls;
    io.stop();
  });
  watch.watch({(dir.path() / "watched").string(), (dir.path() / "absent").string()});
  std::ofstream(dir.path() / "other/x") << "1";
  for (const char* name : {"a", "b", "c"}) std::ofstream(dir.path() / "watched" / name) << name;
  io.run_for(std::chrono::seconds(30));
  EXPECT_EQ(calls, 1);
}

TEST(PolicyEvents, AreAboutTheConditionThatTheirTitleNames) {
  Event event;
  event.type = "condition.confirmed";
  event.text =
      "Radeon RX 7900 XTX at 0000:03:00.0: " + std::string(info(ConditionType::DeviceLost).title) + ". It is gone.";
  EXPECT_EQ(condition_of(event), ConditionType::DeviceLost);
  event.text = "x: " + std::string(info(ConditionType::Overheating).title) + ": cleared";
  event.type = "condition.cleared";
  EXPECT_EQ(condition_of(event), ConditionType::Overheating);
  event.text = "x: nothing of the kind";
  EXPECT_EQ(condition_of(event), std::nullopt);
  event.type = "device.removed";
  EXPECT_EQ(condition_of(event), std::nullopt);
}

}  // namespace
}  // namespace gpuhealth::daemon
