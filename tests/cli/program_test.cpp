// SPDX-License-Identifier: Apache-2.0
// The program itself: exit codes, hints, offline commands. No daemon: the bus address given leads nowhere.
#include "tests/support/program.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

#include "tests/paths.hpp"

namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

gpuhealth::test::Outcome run(const std::string& arguments) {
  return gpuhealth::test::run_command(GPUHEALTH_BIN_DIR "/gpuhealthctl 2>&1 " + arguments);
}

class ProgramTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = fs::temp_directory_path() / "gpuhealthctl-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }
  [[nodiscard]] std::string file(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
    return folder_ / name;
  }
  fs::path folder_;
};

constexpr const char* kNoBus = "--bus unix:path=/nonexistent/bus ";

// A named pipe that nobody writes to holds up its reader as a hung management firmware does.
void hang(const fs::path& sensor) {
  fs::remove(sensor);
  ASSERT_EQ(mkfifo(sensor.c_str(), 0444), 0);
}

fs::path find_file(const fs::path& below, const std::string& name) {
  for (const auto& entry : fs::recursive_directory_iterator(below)) {
    if (entry.path().filename() == name && !entry.is_symlink()) return entry.path();
  }
  return {};
}

TEST_F(ProgramTest, InspectSaysWhichGpuDoesNotAnswerAndShowsTheOthers) {
  const std::string tree = folder_ / "machine";
  ASSERT_EQ(
      std::system((GPUHEALTH_BIN_DIR "/gpuhealth-mktree --preset healthy --cards 2 " + tree + " >/dev/null").c_str()),
      0);
  hang(find_file(tree + "/sys/devices", "temp2_input"));
  const auto outcome = run("inspect --json --sysroot " + tree);
  ASSERT_EQ(outcome.code, 0) << outcome.out;
  const auto devices = nlohmann::json::parse(outcome.out)["devices"];
  ASSERT_EQ(devices.size(), 2U);
  const auto hung = devices[0]["readings"]["temperature.junction"]["status"] == "stuck" ? 0U : 1U;
  EXPECT_EQ(devices[hung]["readings"]["temperature.junction"]["status"], "stuck");
  EXPECT_EQ(devices[hung]["driver"], "amdgpu");
  EXPECT_EQ(devices[hung]["conditions"][0]["type"], "source-stuck");
  EXPECT_THAT(devices[hung]["conditions"][0]["detail"].get<std::string>(), HasSubstr("its sensor files"));
  EXPECT_EQ(devices[1 - hung]["readings"]["temperature.junction"]["status"], "valid");
}

TEST_F(ProgramTest, AMisspelledCommandGetsAHint) {
  const auto outcome = run("statsu");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.out, HasSubstr("did you mean status?"));
}

TEST_F(ProgramTest, AMisspelledOptionGetsAHint) {
  const auto outcome = run("history temperature.edge --sinc 24h");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.out, HasSubstr("did you mean --since?"));
}

TEST_F(ProgramTest, WrongOptionValuesAreUsageErrors) {
  for (const char* line : {"--color purple status", "watch --interval 0", "watch --interval soon", "history", "explain",
                           "history temperature.edge --width 3", "decode-metrics x --type board", "status surplus"}) {
    const auto outcome = run(std::string(kNoBus) + line);
    EXPECT_EQ(outcome.code, 2) << line << "\n" << outcome.out;
    EXPECT_THAT(outcome.out, testing::StartsWith("gpuhealthctl: ")) << line;
  }
}

TEST_F(ProgramTest, WrongMetricsAndTimesAreUsageErrorsBeforeTheBusIsAsked) {
  const auto metric = run(std::string(kNoBus) + "history temperature.junctoin");
  EXPECT_EQ(metric.code, 2);
  EXPECT_THAT(metric.out, HasSubstr("did you mean temperature.junction?"));
  EXPECT_EQ(run(std::string(kNoBus) + "history temperature.edge --since yesterday").code, 2);
  EXPECT_EQ(run(std::string(kNoBus) + "history temperature.edge --since 1h --until 2h").code, 2);
  EXPECT_EQ(run(std::string(kNoBus) + "conditions --since never").code, 2);
}

TEST_F(ProgramTest, WithoutDaemonItIsUnavailableAndSaysWhatToDo) {
  for (const char* line :
       {"status", "devices", "watch", "history temperature.edge", "conditions", "acknowledge x", "explain x-1", ""}) {
    const auto outcome = run(std::string(kNoBus) + line);
    EXPECT_EQ(outcome.code, 4) << line << "\n" << outcome.out;
    EXPECT_THAT(outcome.out, HasSubstr("gpuhealthctl doctor")) << line;
  }
}

TEST_F(ProgramTest, ATypeIsExplainedAndTheDoctorWorksWithoutDaemon) {
  const auto type = run(std::string(kNoBus) + "explain overheating");
  EXPECT_EQ(type.code, 0);
  EXPECT_THAT(type.out, HasSubstr("What to do"));
  const auto doctor = run(std::string(kNoBus) + "doctor --json");
  EXPECT_EQ(doctor.code, 0);
  EXPECT_EQ(nlohmann::json::parse(doctor.out)["checks"][0]["state"], "missing");
}

TEST_F(ProgramTest, QuietPrintsNothing) {
  const auto outcome = run(std::string(kNoBus) + "-q explain overheating");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out, "");
}

TEST_F(ProgramTest, VersionAndHelpAreNoErrors) {
  EXPECT_EQ(run("--version").code, 0);
  EXPECT_THAT(run("--version").out, testing::StartsWith("gpuhealthctl "));
  EXPECT_EQ(run("history --help").code, 0);
}

TEST_F(ProgramTest, DecodeMetricsSaysWhatIsWrongWithAFile) {
  const auto absent = run("decode-metrics " + (folder_ / "absent").string());
  EXPECT_EQ(absent.code, 5);
  EXPECT_THAT(absent.out, HasSubstr("No such file or directory"));
  EXPECT_EQ(run("decode-metrics " + folder_.string()).code, 3);
  EXPECT_EQ(run("decode-metrics /dev/zero").code, 3);
}

TEST_F(ProgramTest, DecodeMetricsOfGarbagePrintsJsonAndExitsWith3) {
  for (const auto& path : {file("empty", ""), file("short", "ab"), file("garbage", std::string(500, 'x'))}) {
    const auto outcome = run("decode-metrics --json " + path);
    EXPECT_EQ(outcome.code, 3) << outcome.out;
    EXPECT_EQ(nlohmann::json::parse(outcome.out)["status"], "invalid");
  }
}

TEST_F(ProgramTest, DecodeMetricsReadsATable) {
  std::string bytes(120, '\xff');  // v1.3, all sentinels but the edge temperature
  bytes[0] = 120, bytes[1] = 0, bytes[2] = 1, bytes[3] = 3, bytes[4] = 45, bytes[5] = 0;
  const auto outcome = run("decode-metrics --json " + file("metrics", bytes));
  EXPECT_EQ(outcome.code, 0) << outcome.out;
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json["status"], "ok");
  EXPECT_EQ(json["fields"]["temperature_edge"], 45);
  EXPECT_TRUE(json["fields"]["temperature_hotspot"].is_null());
}

TEST_F(ProgramTest, InspectWantsAFolderWithSys) {
  const auto absent = run("inspect --sysroot " + (folder_ / "absent").string());
  EXPECT_EQ(absent.code, 5);
  const auto without = run("inspect --sysroot " + folder_.string());
  EXPECT_EQ(without.code, 3);
  EXPECT_THAT(without.out, HasSubstr("has no folder sys"));
}

TEST_F(ProgramTest, ErrorsAreJsonTooWhenAskedFor) {
  const auto outcome = run("--json decode-metrics " + (folder_ / "absent").string() + " 2>/dev/null");
  EXPECT_EQ(nlohmann::json::parse(outcome.out)["error"]["code"], "not-found");
}

TEST_F(ProgramTest, WrongCommandLinesAreJsonTooWhenAskedFor) {
  for (const char* line :
       {"--json bogus", "history --json", "status --json surplus", "decode-metrics x --type y --json"}) {
    const auto outcome = run(std::string(line) + " 2>/dev/null");
    EXPECT_EQ(outcome.code, 2) << line;
    const auto json = nlohmann::json::parse(outcome.out, nullptr, false);
    ASSERT_TRUE(json.is_object()) << line << ": " << outcome.out;
    EXPECT_EQ(json["error"]["code"], "invalid-input") << line;
  }
}

TEST_F(ProgramTest, QuietStillSaysWhyAFileIsWrong) {
  const auto outcome = run("-q decode-metrics " + file("empty", ""));
  EXPECT_EQ(outcome.code, 3);
  EXPECT_THAT(outcome.out, testing::StartsWith("gpuhealthctl: " + (folder_ / "empty").string() + ": "));
}

TEST_F(ProgramTest, AnUnknownTypeOfTableIsToldTheKnownOnes) {
  EXPECT_THAT(run("decode-metrics x --type board").out,
              HasSubstr("must be gpu_metrics, gpuboard_temp, baseboard_temp or partition"));
}

TEST_F(ProgramTest, AFullOutputIsAnError) {
  EXPECT_EQ(run("--version >/dev/full").code, 7);
  EXPECT_EQ(run("--help >/dev/full").code, 7);
  EXPECT_EQ(run(std::string(kNoBus) + "explain overheating >/dev/full").code, 7);
}

}  // namespace
