// SPDX-License-Identifier: Apache-2.0
// Unmodified programs on the simulated nodes. Needs root and /dev/fuse, as a machine for tests has.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "canary/measurement.hpp"
#include "core/json.hpp"
#include "tests/paths.hpp"
#include "tests/support/program.hpp"
#include "tests/support/temp_dir.hpp"

namespace gpuhealth::sim {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string run_inside(const std::string& scenario, const std::string& command) {
  const test::TempDir folder;
  const auto file = folder.path() / "scenario.yaml";
  std::ofstream(file) << scenario;
  return test::run_command(GPUHEALTH_BIN_DIR "/gpuhealth-sim " + file.string() + " -- " + command + " 2>&1").out;
}

// Nodes cannot be made in a container that may not make any.
#define NODES_OR_SKIP(out) \
  if ((out).find("no device nodes can be made") != std::string::npos) GTEST_SKIP() << (out)

TEST(Nodes, LibdrmSeesTheCardsTheirDriverAndTheirSensors) {
  const auto out = run_inside(
      "noise: false\nuserptr: healthy\ncards: {a: {model: rx7900xtx, state: {edge: 71}}, b: {model: rx6900xt}}\n",
      GPUHEALTH_BIN_DIR "/drm-probe");
  NODES_OR_SKIP(out);
  EXPECT_THAT(out, HasSubstr("device 0000:03:00.0 744c /dev/dri/renderD128\ndriver amdgpu 3\n"
                             "asic 744c family 145 temperature 71000\n"));
  EXPECT_THAT(out, HasSubstr("device 0000:06:00.0 73bf /dev/dri/renderD129\ndriver amdgpu 3\n"
                             "asic 73bf family 143 temperature 40000\n"));
}

TEST(Nodes, AmdsOwnProgramSeesTheCards) {
  const auto out =
      run_inside("noise: false\ncards: {a: {model: rx7900xtx, state: {edge: 71, power: 211}}, b: {model: rx6900xt}}\n",
                 "rocm-smi --showid --showtemp --showpower --json");
  EXPECT_THAT(out, HasSubstr("\"card0\": {\"GPU ID\": \"0x744c\", \"Temperature (Sensor edge) (C)\": \"71.0\""));
  EXPECT_THAT(out, HasSubstr("\"Average Graphics Package Power (W)\": \"211.0\""));
  EXPECT_THAT(out, HasSubstr("\"card1\": {\"GPU ID\": \"0x73bf\", \"Temperature (Sensor edge) (C)\": \"40.0\""));
}

// The same tree outside, as plain files. What the device nodes say in addition is not there.
TEST(Nodes, InspectInsideSaysWhatItSaysOutside) {
  const test::TempDir folder;
  const auto copy = (folder.path() / "copy").string();
  const std::string inspect = GPUHEALTH_BIN_DIR "/gpuhealthctl inspect --json --sysroot ";
  const auto out =
      run_inside("noise: false\ncards: {a: {model: rx7900xtx, load: true}, b: {model: mi210}, c: {model: phoenix}}\n",
                 "sh -c 'cp -a /mnt/machine " + copy + " && " + inspect + "/'");
  ASSERT_TRUE(std::filesystem::exists(copy)) << out;
  auto inside = parse_json<nlohmann::json>(out.substr(std::min(out.find('{'), out.size())));
  auto outside = parse_json<nlohmann::json>(test::run_command(inspect + copy).out);
  ASSERT_EQ(inside.at("devices").size(), 3U);
  ASSERT_EQ(outside.at("devices").size(), 3U);
  for (auto* one : {&inside, &outside})
    for (auto& device : one->at("devices")) device.at("readings").erase("vram.losses");
  EXPECT_EQ(inside, outside);
}

// gpuhealthctl through the daemon, on both cards, and the daemon answers afterwards.
TEST(Nodes, TheDaemonMeasuresForWhoeverAsksAndGoesOn) {
  const std::string ctl = GPUHEALTH_BIN_DIR "/gpuhealthctl ";
  const auto out = run_inside(
      "noise: false\nuserptr: healthy\npolkit: allows\nconfig: |\n  canary:\n    interval: 24h\n"
      "cards: {a: {model: rx7900xtx}, b: {model: rx6900xt}}\n",
      "sh -c 'until " + ctl + "-q devices; do sleep 0.2; done; sleep 2; " + ctl + "canary run --tier 0 --json; " + ctl +
          "canary accept; " + ctl + "status; busctl --address=$DBUS_SYSTEM_BUS_ADDRESS tree org.gpuhealth1'");
  NODES_OR_SKIP(out);
  EXPECT_THAT(out, HasSubstr("\"device\": \"0000:03:00.0\""));
  EXPECT_THAT(out, HasSubstr("\"device\": \"0000:06:00.0\""));
  EXPECT_THAT(out, HasSubstr("this machine has several GPUs; name one of 0000:03:00.0, 0000:06:00.0"));
  EXPECT_THAT(out, Not(HasSubstr("hardware cleared")));
  EXPECT_THAT(out, HasSubstr("sampling, last "));
  EXPECT_THAT(out, HasSubstr("/org/gpuhealth1/job/run2"));
}

// One mapping is enough to see whose time it is: the rule itself is played by the scenario host-copy-stall.
TEST(Nodes, TheStallIsTheWorkersOwnKernelTime) {
  const auto out = run_inside("userptr: stall\ncards: {a: {model: rx7900xtx}}\n",
                              GPUHEALTH_BIN_DIR "/gpuhealth-canary --backend ioctl --tier 0 --device 03:00.0 --json");
  NODES_OR_SKIP(out);
  const auto m = canary::parse_measurement(out.substr(std::min(out.find('{'), out.size())));
  ASSERT_TRUE(m) << out;
  ASSERT_EQ(m->mappings.size(), 3U) << out;
  for (const auto& mapping : m->mappings) {
    EXPECT_GE(mapping.ms, 2000);
    EXPECT_LT(mapping.control_ms, 500);
    EXPECT_GE(mapping.system_ms, 100) << "the worker spins, the simulator does not";
  }
}

TEST(Nodes, ConsoleIoctlsOfOtherFilesGoOn) {
  // KDGKBTYPE is of type 'K' as KFD's are: the kernel itself must say that /dev/null is no console.
  const auto out = run_inside(
      "userptr: healthy\ncards: {a: {model: rx7900xtx}}\n",
      "perl -e 'open(F,\"<\",\"/dev/null\"); my $b=\"\"; ioctl(F,0x4B33,$b) or print \"errno \".($!+0).\"\\n\"'");
  NODES_OR_SKIP(out);
  EXPECT_THAT(out, HasSubstr("errno 25"));
}

}  // namespace
}  // namespace gpuhealth::sim
