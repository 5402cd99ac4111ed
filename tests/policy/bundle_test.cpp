// SPDX-License-Identifier: Apache-2.0
// Bundles that are tampered with, expired, replayed, downgraded, oversized or links are refused, and the old one stays.
#include "policy/bundle.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/support/temp_dir.hpp"

namespace gpuhealth::policy {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

std::string policy_text(const std::string& name) {
  return "apiVersion: gpuhealth/v1\nkind: Policy\nmetadata: {name: " + name +
         "}\nrules: [{name: r, when: {condition: overheating}, do: [notify]}]\n";
}

class BundleTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto keys = make_keys("of a test").value();
    secret_ = parse_secret_key(keys.secret_text).value();
    put("etc/gpuhealthd/trusted.d/fleet.pub", keys.public_text);
    put("etc/machine-id", "0123456789abcdef0123456789abcdef\n");
  }
  void put(const std::string& path, const std::string& text) const {
    const fs::path file = root_.path() / path;
    fs::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << text;
  }
  [[nodiscard]] std::string read(const std::string& path) const {
    std::ifstream in(root_.path() / path, std::ios::binary);
    std::ostringstream out;
    out << in.rdbuf();
    return out.str();
  }
  [[nodiscard]] std::string payload(std::int64_t serial, const std::string& expires = "", int percent = 100) const {
    Bundle b{{"fleet", serial, "2026-11-30T00:00:00Z", expires, percent},
             {{"10-a.yaml", policy_text("serial-" + std::to_string(serial))}}};
    return make_payload(b).value();
  }
  // Signed, in a file.
  std::string bundle(const std::string& payload_text) const {
    put("bundle", sign(payload_text, secret_, "test").value() + payload_text);
    return (root_.path() / "bundle").string();
  }
  [[nodiscard]] Accepted<Installed> install(const std::string& file, bool allow_unsigned = false) const {
    return install_bundle(file, {root_.string(), allow_unsigned, "test"}, now_);
  }
  void expect_refused(const std::string& file, const std::string& code) const {
    const auto before = in_force();
    const auto done = install(file);
    ASSERT_FALSE(done.has_value());
    EXPECT_EQ(done.error().code, code) << done.error().text;
    EXPECT_FALSE(done.error().text.empty());
    EXPECT_EQ(in_force(), before) << "the old policy stays";
    EXPECT_THAT(read("var/lib/gpuhealthd/policy/audit.jsonl"),
                HasSubstr("\"result\":\"refused\",\"reason\":\"" + code + "\""));
  }
  [[nodiscard]] std::vector<std::string> in_force() const {
    std::vector<std::string> out;
    const auto layers = load_layers(root_.string(), {}, now_).value();
    for (const auto& p : layers.set.policies) out.push_back(p.name);
    return out;
  }
  gpuhealth::test::TempDir root_;
  SecretKey secret_;
  WallTime now_{std::chrono::sys_days(std::chrono::year(2026) / 11 / 30)};
};
using Names = std::vector<std::string>;

TEST_F(BundleTest, ASignedOneIsInForceAndWrittenDown) {
  const auto done = install(bundle(payload(3)));
  ASSERT_TRUE(done.has_value()) << done.error().text;
  EXPECT_TRUE(done->active);
  EXPECT_EQ(in_force(), Names{"serial-3"});
  EXPECT_THAT(read("var/lib/gpuhealthd/policy/audit.jsonl"),
              HasSubstr("\"result\":\"installed\",\"name\":\"fleet\",\"serial\":3"));
}

TEST_F(BundleTest, TamperedOnesAreRefusedAtEveryByte) {
  ASSERT_TRUE(install(bundle(payload(3))).has_value());
  const std::string whole = payload(4);
  const std::string signature = sign(whole, secret_, "test").value();
  for (std::size_t i = 0; i < whole.size(); i += 5) {
    std::string changed = whole;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    put("tampered", signature + changed);
    const auto done = install((root_.path() / "tampered").string());
    ASSERT_FALSE(done.has_value()) << i;
    EXPECT_EQ(done.error().code, "tampered");
  }
  put("tampered", signature + whole + " ");
  expect_refused((root_.path() / "tampered").string(), "tampered");
  EXPECT_EQ(in_force(), Names{"serial-3"});
}

TEST_F(BundleTest, AChangedTrustedCommentIsTampering) {
  const std::string whole = payload(4);
  std::string signature = sign(whole, secret_, "serial 4").value();
  signature.replace(signature.find("serial 4"), 8, "serial 5");
  put("b", signature + whole);
  expect_refused((root_.path() / "b").string(), "tampered");
}

TEST_F(BundleTest, ExpiredReplayedAndDowngradedOnesAreRefused) {
  ASSERT_TRUE(install(bundle(payload(5))).has_value());
  expect_refused(bundle(payload(6, "2026-11-29")), "expired");
  expect_refused(bundle(payload(5)), "replayed");
  expect_refused(bundle(payload(4)), "downgraded");
  EXPECT_EQ(in_force(), Names{"serial-5"});
  EXPECT_TRUE(install(bundle(payload(6, "2026-11-30"))).has_value()) << "its last day is still its day";
}

TEST_F(BundleTest, ASecondRollBackTakesNothingAway) {
  ASSERT_TRUE(install(bundle(payload(1))));
  ASSERT_TRUE(install(bundle(payload(2))));
  ASSERT_TRUE(roll_back(root_.string(), "bad", "test", now_));
  EXPECT_EQ(in_force(), std::vector<std::string>{"serial-1"});
  const auto again = roll_back(root_.string(), "bad", "test", now_);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().text, "bundles/1-fleet is what was returned to; there is no bundle before it");
  EXPECT_EQ(in_force(), std::vector<std::string>{"serial-1"});
}

TEST_F(BundleTest, WithoutAMachineIdAPartialRollOutIsHeldBackAndSaysWhy) {
  fs::remove(root_.path() / "etc/machine-id");
  const auto done = install(bundle(payload(1, "", 99)));
  ASSERT_TRUE(done);
  EXPECT_FALSE(done->active);
  EXPECT_THAT(done->text, HasSubstr("without /etc/machine-id this machine has no place in it"));
}

TEST_F(BundleTest, KeysOfAFolderThatOthersMayChangeDoNotCount) {
  fs::permissions(root_.path() / "etc/gpuhealthd/trusted.d", fs::perms::others_write, fs::perm_options::add);
  const auto done = install(bundle(payload(1)));
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, "untrusted");
  std::vector<std::string> notes;
  EXPECT_TRUE(trusted_keys(root_.string(), notes).empty());
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_THAT(notes.front(), HasSubstr("can be changed by others than root; none of its keys counts"));
}

TEST_F(BundleTest, ARollBackDoesNotLetTheBadOneIn) {
  ASSERT_TRUE(install(bundle(payload(1))).has_value());
  ASSERT_TRUE(install(bundle(payload(2))).has_value());
  const auto back = roll_back(root_.string(), "it drained everything", "test", now_);
  ASSERT_TRUE(back.has_value()) << back.error().text;
  EXPECT_EQ(in_force(), Names{"serial-1"});
  expect_refused(bundle(payload(2)), "replayed");
  EXPECT_TRUE(install(bundle(payload(3))).has_value());
  EXPECT_EQ(in_force(), Names{"serial-3"});
}

TEST_F(BundleTest, WhatCannotBeWrittenDownIsNotInstalled) {
  ASSERT_TRUE(install(bundle(payload(1))).has_value());
  fs::remove(root_.path() / "var/lib/gpuhealthd/policy/audit.jsonl");
  fs::create_directory(root_.path() / "var/lib/gpuhealthd/policy/audit.jsonl");
  const auto done = install(bundle(payload(2)));
  ASSERT_FALSE(done.has_value());
  EXPECT_EQ(in_force(), Names{"serial-1"});
  fs::remove(root_.path() / "var/lib/gpuhealthd/policy/audit.jsonl");
  EXPECT_TRUE(install(bundle(payload(2))).has_value()) << "its serial was not used";
}

TEST_F(BundleTest, ASerialThatCannotBeKeptIsNotSwitchedTo) {
  ASSERT_TRUE(install(bundle(payload(1))).has_value());
  fs::remove(root_.path() / "var/lib/gpuhealthd/policy/serial.json");
  fs::create_directory(root_.path() / "var/lib/gpuhealthd/policy/serial.json");
  expect_refused(bundle(payload(2)), "failed");
}

TEST_F(BundleTest, ThereIsNoWayBackToADamagedOne) {
  ASSERT_TRUE(install(bundle(payload(1))).has_value());
  ASSERT_TRUE(install(bundle(payload(2))).has_value());
  fs::remove_all(root_.path() / "var/lib/gpuhealthd/policy/bundles/1-fleet");
  ASSERT_FALSE(roll_back(root_.string(), "it drained everything", "test", now_).has_value());
  EXPECT_EQ(in_force(), Names{"serial-2"});
}

TEST_F(BundleTest, OneThatComesToABrokenMachineSaysThatNothingIsTaken) {
  put("etc/gpuhealthd/policy.d/90-broken.yaml", "kind: Policy\n");
  const auto done = install(bundle(payload(1)));
  ASSERT_TRUE(done.has_value()) << done.error().text;
  EXPECT_THAT(done->text, HasSubstr("no policy of this machine is taken before this is mended"));
}

TEST_F(BundleTest, UnsignedOnesAndForeignKeysAreRefused) {
  put("unsigned", payload(7));
  expect_refused((root_.path() / "unsigned").string(), "unsigned");
  EXPECT_TRUE(install((root_.path() / "unsigned").string(), true).has_value());
  const auto other = parse_secret_key(make_keys("other").value().secret_text).value();
  const auto text = payload(8);
  put("foreign", sign(text, other, "test").value() + text);
  expect_refused((root_.path() / "foreign").string(), "untrusted");
}

TEST_F(BundleTest, AKeyThatOthersMayChangeIsNotTrusted) {
  fs::permissions(root_.path() / "etc/gpuhealthd/trusted.d/fleet.pub", fs::perms(0666));
  expect_refused(bundle(payload(1)), "untrusted");
}

TEST_F(BundleTest, LinksOversizedAndDamagedOnesAreRefused) {
  const auto file = bundle(payload(1));
  fs::create_symlink(file, root_.path() / "link");
  expect_refused((root_.path() / "link").string(), "link");
  put("large", std::string(kMostBundleBytes + 1, 'x'));
  expect_refused((root_.path() / "large").string(), "oversized");
  expect_refused(bundle("gpuhealth-policy-bundle 2\n{}\n"), "malformed");
  expect_refused(bundle("gpuhealth-policy-bundle 1\n{\"name\": \"x\"}\n"), "malformed");
  expect_refused(bundle(payload(1) + "more"), "malformed");
  expect_refused(bundle(payload(1).substr(0, payload(1).size() - 1)), "malformed");
  for (const char* name : {"../x.yaml", "/etc/x.yaml", ".x.yaml", "x", "a/b.yaml"})
    expect_refused(bundle("gpuhealth-policy-bundle 1\n{\"name\":\"x\",\"serial\":1,\"files\":[{\"name\":\"" +
                          std::string(name) + "\",\"size\":1}]}\nx"),
                   "malformed");
  expect_refused((root_.path() / "absent").string(), "unreadable");
  expect_refused(root_.string(), "unreadable");
}

TEST_F(BundleTest, APolicyWithAMistakeIsRefusedWithItsPlace) {
  const std::string bad = policy_text("x") + "mod: 1\n";
  expect_refused(
      bundle("gpuhealth-policy-bundle 1\n{\"name\":\"x\",\"serial\":1,\"files\":[{\"name\":\"a.yaml\",\"size\":" +
             std::to_string(bad.size()) + "}]}\n" + bad),
      "invalid-policy");
}

TEST_F(BundleTest, APolicyThatClashesWithOneOfTheMachineIsRefused) {
  put("etc/gpuhealthd/policy.d/50-own.yaml", policy_text("serial-9"));
  expect_refused(bundle(payload(9)), "invalid-policy");
  EXPECT_FALSE(fs::exists(root_.path() / "var/lib/gpuhealthd/policy/bundles/9-fleet"));
}

TEST_F(BundleTest, TheRollOutIsStableAndHoldsOthersBack) {
  int inside = 0;
  for (int i = 0; i < 1000; ++i) inside += rollout_place("machine-" + std::to_string(i), "fleet") < 5 ? 1 : 0;
  EXPECT_GT(inside, 20);
  EXPECT_LT(inside, 90);
  const int place = rollout_place("0123456789abcdef0123456789abcdef", "fleet");
  EXPECT_EQ(place, rollout_place("0123456789abcdef0123456789abcdef", "fleet"));
  const auto held = install(bundle(payload(1, "", place)));
  ASSERT_TRUE(held.has_value()) << held.error().text;
  EXPECT_FALSE(held->active);
  EXPECT_EQ(in_force(), Names{});
  const auto taken = install(bundle(payload(1, "", place + 1)));
  ASSERT_TRUE(taken.has_value());
  EXPECT_TRUE(taken->active) << "being held back uses no serial";
}

TEST_F(BundleTest, ItEndsAsAWhole) {
  ASSERT_TRUE(install(bundle(payload(1, "2026-12-01"))).has_value());
  const auto later = load_layers(root_.string(), {}, now_ + std::chrono::hours(48)).value();
  ASSERT_EQ(later.files.size(), 1U);
  EXPECT_EQ(later.files[0].state, PolicyFile::State::Expired);
}

TEST_F(BundleTest, AFolderBecomesABundleWithoutItsLinks) {
  put("source/10-a.yaml", policy_text("a"));
  put("source/notes.txt", "x");
  const auto made = collect_bundle((root_.path() / "source").string(), {"fleet", 1, "", "", 100});
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ(made->files.size(), 1U);
  fs::create_symlink("10-a.yaml", root_.path() / "source/20-b.yaml");
  const auto linked = collect_bundle((root_.path() / "source").string(), {"fleet", 1, "", "", 100});
  ASSERT_FALSE(linked.has_value());
  EXPECT_EQ(linked.error().code, "link");
}

// Made with minisign 0.11's own rules for keys: the algorithm's letters, id and key behind each other.
TEST(Minisign, KeysAndSignaturesHaveItsForm) {
  const auto keys = make_keys("x").value();
  EXPECT_THAT(keys.public_text, testing::MatchesRegex("untrusted comment: [^\n]*\nRW[A-Za-z0-9+/]{54}\n"));
  EXPECT_THAT(keys.secret_text, testing::StartsWith("untrusted comment: "));
  const auto secret = parse_secret_key(keys.secret_text).value();
  const auto text = sign("hello", secret, "comment").value();
  EXPECT_THAT(text, HasSubstr("\nRU")) << "ED: over the hash";
  EXPECT_THAT(text, HasSubstr("\ntrusted comment: comment\n"));
  const auto signature = parse_signature(text).value();
  const auto key = parse_public_key(keys.public_text).value();
  EXPECT_TRUE(verify(signature, "hello", key));
  EXPECT_FALSE(verify(signature, "hellp", key));
}

// The key and signature that minisign's own page shows.
TEST(Minisign, ReadsThePublicKeyOfItsPage) {
  const auto key = parse_public_key(
      "untrusted comment: minisign public key\nRWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3\n");
  ASSERT_TRUE(key.has_value());
  EXPECT_EQ(text_of(key->id), "E7620F1842B4E81F");
}

}  // namespace
}  // namespace gpuhealth::policy
