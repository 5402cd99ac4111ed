// SPDX-License-Identifier: Apache-2.0
#include "policy/layers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "tests/support/temp_dir.hpp"

namespace gpuhealth::policy {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class Layers : public testing::Test {
 protected:
  void put(const std::string& path, const std::string& text) const {
    const fs::path file = root_.path() / path;
    fs::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  static std::string text_of_policy(const std::string& name, const std::string& more = "") {
    return "apiVersion: gpuhealth/v1\nkind: Policy\nmetadata: {name: " + name + "}\n" + more +
           "rules: [{name: r, when: {condition: overheating}, do: [notify]}]\n";
  }
  [[nodiscard]] Loaded load() const { return load_layers(root_.string(), facts_, now_).value(); }
  [[nodiscard]] static std::vector<std::string> states(const Loaded& loaded) {
    std::vector<std::string> out;
    for (const auto& f : loaded.files) out.push_back(f.layer + " " + f.name + " " + std::string(to_string(f.state)));
    return out;
  }
  gpuhealth::test::TempDir root_;
  MachineFacts facts_;
  WallTime now_{std::chrono::sys_days(std::chrono::year(2026) / 11 / 30)};
};
constexpr const char* kVendor = "usr/lib/gpuhealthd/policy.d/";
constexpr const char* kAdmin = "etc/gpuhealthd/policy.d/";
constexpr const char* kRuntime = "run/gpuhealthd/policy.d/";
using Lines = std::vector<std::string>;

TEST_F(Layers, WithoutAnyFolderThereIsNothingAndNothingIsWrong) {
  EXPECT_TRUE(load().sound());
  EXPECT_TRUE(load().files.empty());
}

TEST_F(Layers, AFileHidesThoseOfItsNameBelow) {
  put(kVendor + std::string("50-a.yaml"), text_of_policy("vendor"));
  put(kAdmin + std::string("50-a.yaml"), text_of_policy("admin"));
  put(kRuntime + std::string("10-b.yaml"), text_of_policy("runtime"));
  const auto loaded = load();
  EXPECT_EQ(states(loaded),
            (Lines{"runtime 10-b.yaml in-force", "admin 50-a.yaml in-force", "vendor 50-a.yaml hidden"}));
  ASSERT_EQ(loaded.set.policies.size(), 2U);
  EXPECT_EQ(loaded.set.policies[0].name, "runtime") << "the order is that of names";
  EXPECT_EQ(loaded.set.policies[1].name, "admin");
  EXPECT_EQ(loaded.files[2].by, root_.string() + "/etc/gpuhealthd/policy.d/50-a.yaml");
}

TEST_F(Layers, AnEmptyFileOrALinkToNullMasks) {
  put(kVendor + std::string("50-a.yaml"), text_of_policy("a"));
  put(kVendor + std::string("60-b.yaml"), text_of_policy("b"));
  put(kAdmin + std::string("50-a.yaml"), "");
  fs::create_symlink("/dev/null", root_.path() / kAdmin / "60-b.yaml");
  const auto loaded = load();
  EXPECT_TRUE(loaded.sound());
  EXPECT_TRUE(loaded.set.policies.empty());
  EXPECT_EQ(states(loaded), (Lines{"admin 50-a.yaml masked", "vendor 50-a.yaml hidden", "admin 60-b.yaml masked",
                                   "vendor 60-b.yaml hidden"}));
}

TEST_F(Layers, OneMistakeAnywhereTakesTheWholeSetOut) {
  put(kVendor + std::string("50-a.yaml"), text_of_policy("a"));
  put(kAdmin + std::string("60-b.yaml"), text_of_policy("b", "mod: shadow\n"));
  const auto loaded = load();
  EXPECT_FALSE(loaded.sound());
  EXPECT_TRUE(loaded.set.policies.empty());
  EXPECT_EQ(
      loaded.problem(),
      root_.string() + "/etc/gpuhealthd/policy.d/60-b.yaml:4:1: a policy has no key \"mod\"; did you mean \"mode\"?");
}

TEST_F(Layers, TwoPoliciesOfOneNameAreAMistake) {
  put(kVendor + std::string("50-a.yaml"), text_of_policy("same"));
  put(kAdmin + std::string("60-b.yaml"), text_of_policy("same"));
  EXPECT_THAT(load().problem(), HasSubstr("its policy is called \"same\" as that of"));
}

TEST_F(Layers, AHiddenFileMayBeBroken) {
  put(kVendor + std::string("50-a.yaml"), "[");
  put(kAdmin + std::string("50-a.yaml"), text_of_policy("a"));
  EXPECT_TRUE(load().sound());
}

TEST_F(Layers, FilesThatAreNoPoliciesAreLeftAlone) {
  put(kAdmin + std::string("README"), "x");
  put(kAdmin + std::string(".50-a.yaml.swp"), "x");
  put(kAdmin + std::string(".hidden.yaml"), "x");
  put(kAdmin + std::string("tests/a.yaml"), "x");
  EXPECT_TRUE(load().files.empty());
}

TEST_F(Layers, PipesAndFoldersAreMistakesAndDoNotHang) {
  fs::create_directories(root_.path() / kAdmin / "20-folder.yaml");
  ASSERT_EQ(mkfifo((root_.path() / kAdmin / "10-pipe.yaml").c_str(), 0600), 0);
  const auto loaded = load();
  EXPECT_THAT(loaded.problem(), HasSubstr("10-pipe.yaml is not a plain file"));
  EXPECT_THAT(loaded.problem(), HasSubstr("20-folder.yaml"));
}

TEST_F(Layers, ALinkDoesNotLeadOutOfTheRoot) {
  put("etc/secret", text_of_policy("inside"));
  fs::create_directories(root_.path() / kAdmin);
  fs::create_symlink("/etc/secret", root_.path() / kAdmin / "50-a.yaml");
  const auto loaded = load();
  EXPECT_EQ(loaded.problem(), "");
  ASSERT_EQ(loaded.set.policies.size(), 1U);
  EXPECT_EQ(loaded.set.policies[0].name, "inside");
}

TEST_F(Layers, PoliciesForOthersAndExpiredOnesSaySo) {
  put(kAdmin + std::string("10-a.yaml"), text_of_policy("a", "targets: {host: other-*}\n"));
  put(kAdmin + std::string("20-b.yaml"),
      "apiVersion: gpuhealth/v1\nkind: Policy\nmetadata: {name: b, expires: 2026-11-29}\nrules: [{name: r, when: "
      "{condition: overheating}, do: [notify]}]\n");
  put(kAdmin + std::string("30-c.yaml"),
      "apiVersion: gpuhealth/v1\nkind: Policy\nmetadata: {name: c, expires: 2026-11-30}\nrules: [{name: r, when: "
      "{condition: overheating}, do: [notify]}]\n");
  facts_.host = "node-1";
  EXPECT_EQ(states(load()),
            (Lines{"admin 10-a.yaml elsewhere", "admin 20-b.yaml expired", "admin 30-c.yaml in-force"}));
}

TEST_F(Layers, TheStoreKeepsTheLastGoodSet) {
  put(kAdmin + std::string("10-a.yaml"), text_of_policy("a"));
  PolicyStore store(root_.string());
  EXPECT_TRUE(store.reload(facts_, now_));
  EXPECT_EQ(store.set().policies.size(), 1U);
  put(kAdmin + std::string("10-a.yaml"), "kind: [");
  EXPECT_FALSE(store.reload(facts_, now_));
  EXPECT_EQ(store.set().policies.size(), 1U);
  EXPECT_THAT(store.problem(), HasSubstr("10-a.yaml:1:1: is not YAML"));
  put(kAdmin + std::string("10-a.yaml"), text_of_policy("b"));
  EXPECT_TRUE(store.reload(facts_, now_));
  EXPECT_EQ(store.problem(), "");
  EXPECT_EQ(store.set().policies[0].name, "b");
}

TEST_F(Layers, FactsComeFromTheRoot) {
  put("etc/hostname", "node-3\n");
  put("etc/os-release", "NAME=x\nID=debian\nVERSION_ID=\"12\"\n");
  put("etc/machine-id", "0123456789abcdef0123456789abcdef\n");
  put("etc/gpuhealthd/labels", "# ours\nrole = inference\nrack=7 # left\nbroken\n");
  std::vector<std::string> notes;
  const auto facts = read_facts(root_.string(), notes);
  EXPECT_EQ(facts.host, "node-3");
  EXPECT_EQ(facts.distribution, "debian");
  EXPECT_EQ(facts.version, "12");
  EXPECT_EQ(facts.machine_id, "0123456789abcdef0123456789abcdef");
  EXPECT_EQ(facts.labels, (std::map<std::string, std::string>{{"role", "inference"}, {"rack", "7"}}));
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_EQ(notes[0], root_.string() + "/etc/gpuhealthd/labels:4:1: \"broken\" is no label; write key=value");
}

}  // namespace
}  // namespace gpuhealth::policy
