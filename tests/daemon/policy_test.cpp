// SPDX-License-Identifier: Apache-2.0
// The daemon decides by policy and acts: the real programs on a made-up machine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <sstream>

#include "policy/bundle.hpp"
#include "store/ledger.hpp"
#include "tests/daemon/rig.hpp"

namespace gpuhealth::test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kRules =
    "rules:\n"
    "  - name: too-hot\n"
    "    when: {condition: overheating}\n"
    "    do: [{power-cap: {percent: 80}}]\n"
    "    revert_when: {reading: {name: temperature.junction, below: 90 C}}\n";

std::string policy(const std::string& mode, const std::string& name = "heat", const std::string& rules = kRules) {
  return "apiVersion: gpuhealth/v1\nkind: Policy\nmetadata: {name: " + name + "}\nmode: " + mode + "\n" + rules;
}

class Policies : public testing::Test {
 protected:
  Policies() {
    fs::create_directory(rig.config / "policy.d");
    card.state.junction_c = 112;
    card.state.edge_c = 95;
    rig.plug({&card, 1});
  }
  void put(const fs::path& path, const std::string& text) const {
    fs::create_directories(path.parent_path());
    std::ofstream(path.string() + ".tmp", std::ios::binary) << text;
    fs::rename(path.string() + ".tmp", path);
  }
  void set_policy(const std::string& text) const { put(rig.config / "policy.d/50-heat.yaml", text); }
  [[nodiscard]] std::string cap() const {
    const auto dir = sim::function_dir(rig.tree.path(), card.place.gpu).value();
    for (const auto& hwmon : fs::directory_iterator(dir / "hwmon")) {
      std::ifstream in(hwmon.path() / "power1_cap");
      std::string line;
      std::getline(in, line);
      return line;
    }
    return "none";
  }
  [[nodiscard]] std::vector<LedgerEntry> ledger() const { return read_ledger(Tree::open(rig.tree.string()).value()); }
  [[nodiscard]] bool await_action(const std::string& state, const std::string& kind = "power-cap") const {
    return rig.await([&](dbus::Client& c) {
      const auto actions = c.actions();
      return actions && std::ranges::any_of(
                            *actions, [&](const dbus::ActionView& a) { return a.state == state && a.kind == kind; });
    });
  }
  void cool() {
    card.state.junction_c = 70;
    card.state.edge_c = 55;
    card.state.cap_w = static_cast<unsigned>(std::stoll(cap()) / 1'000'000);  // a driver keeps what it was told
    ASSERT_TRUE(sim::update_card(rig.tree.path(), card));
  }

  sim::Card card = sim::loaded_card(sim::rx7900xtx(), 0);
  Rig rig;
};

TEST_F(Policies, InObserveItIsSaidWhatWouldBeDoneAndNothingIsWritten) {
  set_policy(policy("observe"));
  const std::string before = cap();
  rig.start();
  ASSERT_TRUE(await_action("observed"));
  const auto actions = rig.client().actions().value();
  ASSERT_EQ(actions.size(), 1U);
  const auto& a = actions.front();
  EXPECT_EQ(a.policy, "heat");
  EXPECT_EQ(a.rule, "too-hot");
  EXPECT_EQ(a.device, id_of(card));
  EXPECT_EQ(a.text, "would do power-cap percent=80");
  EXPECT_THAT(a.reason, HasSubstr("overheating"));
  EXPECT_TRUE(a.reversible);
  EXPECT_EQ(rig.client().manager()->policy_mode, "observe");
  ASSERT_TRUE(rig.await_samples(3));
  EXPECT_EQ(cap(), before);
  EXPECT_FALSE(fs::exists(rig.tree.path() / "var/lib/gpuhealthd/ledger"));
}

TEST_F(Policies, EnforcedItIsDoneOnceShownAndTakenBackWhenItIsCool) {
  set_policy(policy("enforce"));
  rig.start();
  ASSERT_TRUE(await_action("applied"));
  EXPECT_EQ(cap(), "272000000") << "80 % is 242 W, and below the driver's own floor";
  const auto a = rig.client().actions().value().front();
  EXPECT_EQ(a.id, "000001-power-cap");
  EXPECT_EQ(a.before, "303 W");
  EXPECT_EQ(a.after, "272 W");
  EXPECT_LE(a.fault, a.detected);
  EXPECT_LE(a.detected, a.acted);
  EXPECT_GT(a.confirm_by, a.acted);
  cool();
  ASSERT_TRUE(await_action("reverted"));
  EXPECT_EQ(cap(), "303000000");
  ASSERT_EQ(ledger().size(), 1U);
  EXPECT_EQ(ledger().front().rule, "too-hot");
  EXPECT_TRUE(ledger().front().times.contains("fault"));
  EXPECT_TRUE(ledger().front().times.contains("detected"));
}

TEST_F(Policies, ABrokenSetLeavesTheLastGoodOneInForce) {
  set_policy(policy("shadow"));
  rig.start();
  ASSERT_TRUE(await_action("shadow"));
  set_policy("apiVersion: gpuhealth/v1\nkind: Policy\nmetadata: {name: heat}\nrulez: 1\n");
  ASSERT_TRUE(rig.await([](dbus::Client& c) { return !c.manager()->policy_problem.empty(); }));
  const auto m = rig.client().manager().value();
  EXPECT_THAT(m.policy_problem, HasSubstr("50-heat.yaml:4:1: a policy has no key \"rulez\""));
  EXPECT_EQ(m.policy_mode, "shadow");
  EXPECT_THAT(m.policy_files, ElementsAre((rig.config / "policy.d/50-heat.yaml").string()));
  const auto refused = rig.client().reload_policy();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::InvalidInput);
  set_policy(policy("observe"));
  EXPECT_TRUE(rig.await([](dbus::Client& c) {
    const auto now = c.manager();
    return now->policy_problem.empty() && now->policy_mode == "observe";
  }));
}

TEST_F(Policies, InSafeModeNothingIsDoneUntilItIsOver) {
  put(rig.config / "observe", "");
  set_policy(policy("enforce"));
  rig.start();
  ASSERT_TRUE(await_action("observed"));
  EXPECT_EQ(rig.client().manager()->safe_mode, (rig.config / "observe").string() + " is there");
  EXPECT_THAT(ledger(), IsEmpty());
  fs::remove(rig.config / "observe");
  ASSERT_TRUE(await_action("applied"));
  EXPECT_EQ(rig.client().manager()->safe_mode, "");
}

TEST_F(Policies, APersonConfirmsAndTakesBackOverTheBus) {
  set_policy(policy("enforce"));
  rig.start();
  ASSERT_TRUE(await_action("applied"));
  ASSERT_TRUE(rig.client().confirm_action("000001-power-cap"));
  EXPECT_EQ(ledger().front().state, "confirmed");
  ASSERT_TRUE(rig.client().revert_action("000001-power-cap"));
  EXPECT_EQ(cap(), "303000000");
  const auto again = rig.client().revert_action("000001-power-cap");
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ErrorCode::InvalidInput);
  const auto none = rig.client().confirm_action("000007-drain");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::NotFound);
}

TEST_F(Policies, KilledBetweenTheActAndItsConfirmationItGoesOnAfterTheRestart) {
  set_policy(policy("enforce"));
  rig.start();
  ASSERT_TRUE(await_action("applied"));
  rig.daemon->send(SIGKILL);
  ASSERT_TRUE(rig.daemon->wait(std::chrono::seconds(5)));
  rig.start();
  ASSERT_TRUE(await_action("applied"));
  ASSERT_TRUE(rig.await_samples(4));
  EXPECT_EQ(ledger().size(), 1U) << "it does not act a second time";
  cool();
  ASSERT_TRUE(await_action("reverted"));
  EXPECT_EQ(cap(), "303000000");
}

TEST_F(Policies, WhatWasHalfDoneWhenTheMachineDiedIsBroughtBackAtTheStart) {
  System system;
  const auto tree = Tree::open(rig.tree.string()).value();
  {
    auto open = Ledger::open(tree, system);
    ASSERT_TRUE(open) << open.error().text;
    LedgerEntry half;
    half.owner = "actions";
    half.action = "power-cap";
    half.device = id_of(card);
    half.target = to_string(card.place.gpu);
    half.boot_id = "5ee05ee0-0000-4000-8000-000000000001";
    half.before = "303 W", half.wanted = "242 W";
    const auto dir =
        "/" + fs::relative(sim::function_dir(rig.tree.path(), card.place.gpu).value(), rig.tree.path()).string();
    std::string hwmon;
    for (const auto& name : tree.list(dir + "/hwmon")) hwmon = dir + "/hwmon/" + name;
    half.steps = {{"value", hwmon + "/power1_cap", 0, 0, "242000000"}};
    half.back = {{"value", hwmon + "/power1_cap", 0, 0, "303000000"}};
    ASSERT_TRUE(open->begin(half, SystemClock().now().wall));
    std::ofstream(rig.tree.string() + hwmon + "/power1_cap") << "242000000\n";
  }
  rig.start();
  ASSERT_TRUE(await_action("reverted"));
  EXPECT_EQ(cap(), "303000000");
}

class Bundles : public Policies {
 protected:
  Bundles() {
    const auto keys = policy::make_keys("of a test").value();
    secret = policy::parse_secret_key(keys.secret_text).value();
    put(rig.tree.path() / "etc/gpuhealthd/trusted.d/fleet.pub", keys.public_text);
    fs::create_directories(inbox());
  }
  [[nodiscard]] fs::path folder() const { return rig.tree.path() / "var/lib/gpuhealthd/policy"; }
  [[nodiscard]] fs::path inbox() const { return folder() / "inbox"; }
  void send(std::int64_t serial, const std::string& text) const {
    const auto payload =
        policy::make_payload({{"fleet", serial, "2026-11-30T00:00:00Z", "", 100}, {{"10-fleet.yaml", text}}}).value();
    put(inbox() / ("fleet-" + std::to_string(serial) + ".bundle"),
        policy::sign(payload, secret, "test").value() + payload);
  }
  [[nodiscard]] std::string current() const {
    std::error_code error;
    return fs::read_symlink(folder() / "current", error).string();
  }
  [[nodiscard]] bool await_current(const std::string& name) const {
    return rig.await([&](dbus::Client& c) {
      const auto m = c.manager();
      return m && current() == name && !m->policy_files.empty();
    });
  }
  policy::SecretKey secret;
};

TEST_F(Bundles, WhatIsPutIntoTheInboxIsInstalledAndCountsAtOnce) {
  rig.start();
  send(7, policy("observe", "fleet"));
  ASSERT_TRUE(await_current("bundles/7-fleet"));
  EXPECT_THAT(rig.client().manager()->policy_files, ElementsAre(HasSubstr("policy/current/10-fleet.yaml")));
  EXPECT_TRUE(await_action("observed"));
  EXPECT_TRUE(rig.await([&](dbus::Client&) { return fs::is_empty(inbox()); }));
}

TEST_F(Bundles, OneThatIsNotSignedIsRefusedSetAsideAndSaid) {
  rig.start();
  put(inbox() / "bad.bundle", "no bundle at all");
  ASSERT_TRUE(rig.await([&](dbus::Client& c) {
    const auto events = c.events(WallTime{}, wall_from_microseconds(9'000'000'000'000'000), 100);
    return events && std::ranges::any_of(*events, [](const Event& e) {
             return e.type == "policy.bundle-refused" && e.text.find("bad.bundle is refused") != std::string::npos;
           });
  }));
  EXPECT_TRUE(fs::exists(inbox() / "bad.bundle.refused"));
  EXPECT_EQ(current(), "");
  std::ifstream audit(folder() / "audit.jsonl");
  std::stringstream text;
  text << audit.rdbuf();
  EXPECT_THAT(text.str(), HasSubstr("\"result\":\"refused\""));
}

TEST_F(Bundles, OneThatWantsMoreThanItMayMakesRoomForTheOneBefore) {
  rig.start();
  send(1, policy("observe", "fleet"));
  ASSERT_TRUE(await_current("bundles/1-fleet"));
  send(2, policy("enforce", "fleet",
                 "limits: {actions: {count: 1, within: 24h}}\n"
                 "rules:\n"
                 "  - {name: a, when: {condition: overheating}, do: [{power-cap: {percent: 80}}]}\n"
                 "  - {name: b, when: {condition: overheating}, do: [{performance-level: {level: low}}]}\n"));
  ASSERT_TRUE(rig.await([&](dbus::Client&) {
    std::ifstream audit(folder() / "audit.jsonl");
    std::stringstream text;
    text << audit.rdbuf();
    return text.str().find("\"what\":\"roll-back\"") != std::string::npos;
  }));
  ASSERT_TRUE(await_current("bundles/1-fleet"));
  // What it had done goes with it.
  ASSERT_TRUE(await_action("reverted"));
  EXPECT_EQ(cap(), "303000000");
}

}  // namespace
}  // namespace gpuhealth::test
