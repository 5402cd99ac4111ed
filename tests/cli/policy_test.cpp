// SPDX-License-Identifier: Apache-2.0
// gpuhealthctl policy and replay --policy, as programs use them: exit codes, JSON, files. No daemon.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include <nlohmann/json.hpp>

#include "tests/paths.hpp"
#include "tests/support/program.hpp"
#include "tests/support/temp_dir.hpp"

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using testing::HasSubstr;

struct Outcome : gpuhealth::test::Outcome {
  [[nodiscard]] Json json() const { return Json::parse(out, nullptr, false); }
};

Outcome run(const std::string& arguments) {
  return {gpuhealth::test::run_command(GPUHEALTH_BIN_DIR "/gpuhealthctl 2>/dev/null " + arguments)};
}

constexpr const char* kPolicy =
    "apiVersion: gpuhealth/v1\nkind: Policy\nmetadata: {name: p}\nmode: enforce\n"
    "rules:\n  - {name: r, when: {condition: host-copy-stall}, do: [{kernel-pin: {release: last-good}}]}\n";

class PolicyProgram : public testing::Test {
 protected:
  std::string put(const std::string& name, const std::string& text) const {
    const fs::path file = folder_.path() / name;
    fs::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << text;
    return file.string();
  }
  gpuhealth::test::TempDir folder_;
};

// Keys of labels and of parameters are data.
void collect(const Json& json, std::set<std::string>& keys) {
  if (json.is_array())
    for (const Json& item : json) collect(item, keys);
  if (!json.is_object()) return;
  for (const auto& [key, value] : json.items()) {
    keys.insert(key);
    if (key != "labels" && key != "params") collect(value, keys);
  }
}

TEST_F(PolicyProgram, CheckSaysEveryMistakeWithItsPlace) {
  const auto good = put("good.yaml", kPolicy);
  const auto bad = put("bad.yaml", "apiVersion: gpuhealth/v1\nkind: Policy\nmetadata: {name: q}\nrulez: 1\n");
  EXPECT_EQ(run("policy check " + good).code, 0);
  const auto outcome = run("policy check " + folder_.string() + " --json");
  EXPECT_EQ(outcome.code, 3);
  const auto json = outcome.json();
  EXPECT_EQ(json["valid"], false);
  ASSERT_EQ(json["files"].size(), 2U);
  EXPECT_EQ(json["files"][0]["errors"][0], (Json{{"file", bad},
                                                 {"line", 1},
                                                 {"column", 1},
                                                 {"text", "a policy lacks its key \"rules\""},
                                                 {"found", nullptr},
                                                 {"hint", nullptr}}));
  EXPECT_EQ(json["files"][0]["errors"][1], (Json{{"file", bad},
                                                 {"line", 4},
                                                 {"column", 1},
                                                 {"text", "a policy has no key \"rulez\""},
                                                 {"found", "rulez"},
                                                 {"hint", "did you mean \"rules\"?"}}));
  EXPECT_EQ(json["files"][1]["valid"], true);
  EXPECT_EQ(run("policy check " + folder_.string() + "/absent.yaml").code, 5);
  EXPECT_EQ(run("policy check").code, 2);
}

TEST_F(PolicyProgram, TestFailsWithOneWhenADecisionIsMissing) {
  put("p.yaml", kPolicy);
  const std::string head =
      "apiVersion: gpuhealth/v1\nkind: PolicyTest\npolicy: p.yaml\ntimeline: [{at: 0s, confirm: "
      "host-copy-stall}]\nexpect: ";
  const auto good = put("good.test.yaml", head + "[{at: 0s, rule: r, decision: act}]\n");
  EXPECT_EQ(run("policy test " + good).code, 0);
  const auto bad = put("bad.test.yaml", head + "[]\n");
  const auto outcome = run("policy test --json " + good + " " + bad);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.json()["tests"][0]["passed"], true);
  EXPECT_EQ(outcome.json()["tests"][1]["passed"], false);
  EXPECT_EQ(outcome.json()["tests"][1]["decisions"][0]["actions"][0]["action"], "kernel-pin");
  EXPECT_EQ(run("policy test " + put("broken.test.yaml", "kind: PolicyTest\n")).code, 3);
  EXPECT_EQ(run("policy test " + folder_.string() + "/absent").code, 5);
}

TEST_F(PolicyProgram, ShowSaysWhichFileARuleComesFrom) {
  put("usr/lib/gpuhealthd/policy.d/50-a.yaml", kPolicy);
  const auto admin = put("etc/gpuhealthd/policy.d/50-a.yaml", kPolicy);
  const auto json = run("policy show --effective --json --root " + folder_.string()).json();
  ASSERT_EQ(json["rules"].size(), 1U);
  EXPECT_EQ(json["rules"][0]["file"], admin);
  EXPECT_EQ(json["rules"][0]["line"], 6);
  EXPECT_THAT(run("policy show --effective --root " + folder_.string()).out, HasSubstr(admin + ":6"));
  put("etc/gpuhealthd/policy.d/60-b.yaml", "[");
  EXPECT_EQ(run("policy show --root " + folder_.string()).code, 3);
}

TEST_F(PolicyProgram, ABundleGoesFromTheDeskToTheMachine) {
  put("source/10-a.yaml", kPolicy);
  put("source/10-a.test.yaml", "left out");
  const std::string keys = (folder_.path() / "fleet").string(), file = (folder_.path() / "b").string(),
                    root = " --root " + folder_.string();
  EXPECT_EQ(run("policy keygen -o " + keys).code, 0);
  EXPECT_EQ(fs::status(keys + ".key").permissions(), fs::perms(0600));
  EXPECT_EQ(run("policy keygen -o " + keys).code, 3) << "a key is not overwritten";
  const std::string make =
      "policy bundle " + folder_.string() + "/source --name fleet --key " + keys + ".key -o " + file + " --serial ";
  EXPECT_EQ(run(make + "2").code, 0);
  EXPECT_EQ(run("policy verify " + file + root).code, 6) << "its key is not trusted yet";
  fs::create_directories(folder_.path() / "etc/gpuhealthd/trusted.d");
  fs::copy_file(keys + ".pub", folder_.path() / "etc/gpuhealthd/trusted.d/fleet.pub");
  EXPECT_EQ(run("policy verify " + file + root + " --json").json()["files"], Json({"10-a.yaml"}));
  EXPECT_EQ(run("policy install " + file + root + " --json").json()["installed"], true);
  EXPECT_EQ(run("policy show --json" + root).json()["rules"][0]["layer"], "fleet");
  const auto again = run("policy install " + file + root + " --json");
  EXPECT_EQ(again.code, 3);
  EXPECT_EQ(again.json()["refused"], "replayed");
  EXPECT_EQ(run("policy rollback --why test" + root).code, 0);
  EXPECT_EQ(run("policy show --json" + root).json()["rules"].size(), 0U);
}

// Eight runs that stall by whole seconds beside a control of milliseconds.
TEST_F(PolicyProgram, ReplaySaysWhatAPolicyWouldHaveDone) {
  std::string lines;
  for (int i = 0; i < 8; ++i) {
    lines +=
        R"({"canary":"h2d_file_rw","metric":"worst","unit":"ms","value":2003,"status":"ok","device":"0000:03:00.0","epoch":"7.0.12","gate":"strong","time":)" +
        std::to_string(1'764'500'000 + i * 60) +
        R"(,"mappings":[{"ms":2003,"control_ms":2.1,"system_ms":1990,"slots":2},{"ms":2003,"control_ms":2.1,"system_ms":1990,"slots":2},{"ms":2003,"control_ms":2.1,"system_ms":1990,"slots":2}]})" +
        "\n";
  }
  const auto trace = put("trace", lines);
  const auto policy = put("policy/p.yaml", kPolicy);
  const auto json = run("replay " + trace + " --json --policy " + folder_.string() + "/policy").json();
  ASSERT_EQ(json["decisions"].size(), 1U) << json.dump(2);
  EXPECT_EQ(json["decisions"][0]["decision"], "act");
  EXPECT_EQ(json["decisions"][0]["actions"][0]["action"], "kernel-pin");
  EXPECT_EQ(json["decisions"][0]["device"], "0000:03:00.0");
  EXPECT_FALSE(run("replay " + trace + " --json").json().contains("decisions"));
  EXPECT_EQ(run("replay " + trace + " --policy " + put("bad.yaml", "[")).code, 3);
}

TEST_F(PolicyProgram, EveryKeyOfItsJsonIsInTheManual) {
  std::ifstream in(GPUHEALTH_SOURCE_DIR "/docs/json.md");
  std::stringstream manual;
  manual << in.rdbuf();
  std::set<std::string> keys;
  put("usr/lib/gpuhealthd/policy.d/50-a.yaml", kPolicy);
  for (const auto& line :
       {std::string("policy check --json " GPUHEALTH_SOURCE_DIR "/docs/examples"),
        std::string("policy test --json " GPUHEALTH_SOURCE_DIR "/docs/examples"),
        "policy show --json --root " + folder_.string(), "policy keygen --json -o " + folder_.string() + "/k",
        "policy bundle --json " + folder_.string() + "/usr/lib/gpuhealthd/policy.d --name f --serial 1 -o " +
            folder_.string() + "/b",
        "policy verify --json " + folder_.string() + "/b",
        "policy verify --json --unsigned " + folder_.string() + "/b"}) {
    const auto json = run(line).json();
    EXPECT_TRUE(json.is_object()) << line;
    collect(json, keys);
  }
  EXPECT_GT(keys.size(), 30U);
  for (const auto& key : keys)
    EXPECT_TRUE(manual.str().find("`" + key + "`") != std::string::npos ||
                manual.str().find("\"" + key + "\"") != std::string::npos)
        << key;
}

TEST_F(PolicyProgram, SchemaIsJson) {
  EXPECT_EQ(run("policy schema").json()["type"], "object");
}

}  // namespace
