// SPDX-License-Identifier: Apache-2.0
// Which notifications stand on the screen, step by step.
#include "desktop/notices.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>

namespace gpuhealth::desktop {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

const WallTime kNow = wall_from_microseconds(1'764'515'000'000'000);

Condition hot() {
  Condition c;
  c.id = "hot-1";
  c.type = ConditionType::Overheating;
  c.severity = Severity::Critical;
  c.state = ConditionState::Confirmed;
  c.device_label = "Radeon RX 7900 XTX at 0000:03:00.0";
  return c;
}

Condition stall() {
  Condition c = hot();
  c.id = "stall-1";
  c.type = ConditionType::HostCopyStall;
  return c;
}

dbus::Snapshot with(std::vector<Condition> conditions, std::vector<dbus::LooseObject> others = {}) {
  dbus::Snapshot s;
  s.conditions = std::move(conditions);
  s.others = std::move(others);
  return s;
}

dbus::LooseObject kernel(const std::string& running, const std::string& good, const std::string& trial = "") {
  return {"/org/gpuhealth1/kernel",
          "org.gpuhealth1.Kernel",
          {{"Running", running}, {"LastKnownGood", good}, {"Trial", trial}, {"Pinned", std::string()}}};
}

dbus::LooseObject power_cap(const std::string& state) {
  return {"/org/gpuhealth1/action/1",
          "org.gpuhealth1.Action",
          {{"Id", std::string("000001-power-cap")},
           {"Kind", std::string("power-cap")},
           {"State", state},
           {"DeviceLabel", std::string("Radeon RX 7900 XTX at 0000:03:00.0")},
           {"Text", std::string("Its power limit was lowered")},
           {"Before", std::string("303 W")},
           {"After", std::string("250 W")},
           {"Reversible", true},
           {"Acted", static_cast<double>(to_microseconds(kNow))}}};
}

std::vector<std::string> labels(const Notice& notice) {
  std::vector<std::string> out;
  for (const auto& b : notice.buttons) out.push_back(b.label);
  return out;
}

class NoticesTest : public testing::Test {
 protected:
  Notices notices;
  [[nodiscard]] std::map<std::string, Notice> wanted(std::chrono::hours later = {}) const {
    return notices.wanted(kNow + later);
  }
};

TEST_F(NoticesTest, AConfirmedConditionIsToldInPlainWords) {
  notices.update(with({hot()}), kNow);
  ASSERT_EQ(wanted().size(), 1U);
  const auto notice = wanted().at("condition:hot-1");
  EXPECT_EQ(notice.title, "Your graphics card is too hot");
  EXPECT_THAT(notice.body, testing::StartsWith("Radeon RX 7900 XTX has reached the highest temperature"));
  EXPECT_THAT(notice.body, Not(HasSubstr("0000:03")));
  EXPECT_EQ(notice.urgency, Urgency::Critical);
  EXPECT_THAT(labels(notice), ElementsAre("Details", "Not now"));
}

TEST_F(NoticesTest, WhatIsOnlySeenOrKnownToSomebodyIsNotTold) {
  auto raised = hot();
  raised.state = ConditionState::Raised;
  notices.update(with({raised}), kNow);
  EXPECT_TRUE(wanted().empty());
  auto known = hot();
  known.acknowledged = true;
  notices.update(with({known}), kNow);
  EXPECT_TRUE(wanted().empty());
}

TEST_F(NoticesTest, NumbersThatMoveDoNotChangeIt) {
  auto c = hot();
  c.detail = "112 C";
  notices.update(with({c}), kNow);
  const auto before = wanted();
  c.detail = "113 C";
  notices.update(with({c}), kNow);
  EXPECT_EQ(wanted(), before);
}

TEST_F(NoticesTest, AClearedConditionGoes) {
  notices.update(with({hot()}), kNow);
  notices.update(with({}), kNow);
  EXPECT_TRUE(wanted().empty());
}

TEST_F(NoticesTest, ADaemonThatIsGoneClearsNothing) {
  notices.update(with({hot()}), kNow);
  notices.update(std::nullopt, kNow);
  EXPECT_EQ(wanted().size(), 1U);
}

TEST_F(NoticesTest, WhatThePersonClosedStaysClosedUntilItGetsWorse) {
  auto c = hot();
  c.severity = Severity::Warning;
  notices.update(with({c}), kNow);
  notices.dismissed("condition:hot-1", kNow);
  notices.update(with({c}), kNow);
  EXPECT_TRUE(wanted(std::chrono::hours(100)).empty());
  c.severity = Severity::Critical;
  notices.update(with({c}), kNow);
  EXPECT_EQ(wanted().size(), 1U);
}

TEST_F(NoticesTest, NotNowIsADay) {
  notices.update(with({hot()}), kNow);
  EXPECT_EQ(notices.pressed("condition:hot-1", "later", kNow), Wish{});
  notices.dismissed("condition:hot-1", kNow);  // the server closes what was pressed
  EXPECT_TRUE(wanted(std::chrono::hours(23)).empty());
  EXPECT_EQ(wanted(std::chrono::hours(25)).size(), 1U);
  notices.dismissed("condition:hot-1", kNow + std::chrono::hours(25));
  EXPECT_TRUE(wanted(std::chrono::hours(50)).empty());
}

TEST_F(NoticesTest, AnotherKernelIsOfferedWhereItMayHelpAndThereIsOne) {
  notices.update(with({stall(), hot()}, {kernel("7.0.12", "7.0.11")}), kNow);
  EXPECT_THAT(labels(wanted().at("condition:stall-1")),
              ElementsAre("Details", "Try the other kernel at next boot", "Not now"));
  EXPECT_THAT(labels(wanted().at("condition:hot-1")), ElementsAre("Details", "Not now"));
  EXPECT_EQ(notices.pressed("condition:stall-1", "try", kNow), (Wish{Wish::Kind::TryKernel, "7.0.11"}));
  for (const auto& k : {kernel("7.0.11", "7.0.11"), kernel("7.0.12", "")}) {
    notices.update(with({stall()}, {k}), kNow);
    EXPECT_EQ(notices.pressed("condition:stall-1", "try", kNow), Wish{});
  }
}

TEST_F(NoticesTest, ATrialThatWaitsIsToldAndCanBeUndone) {
  notices.update(with({stall()}, {kernel("7.0.12", "7.0.11", "7.0.11")}), kNow);
  EXPECT_THAT(labels(wanted().at("condition:stall-1")), ElementsAre("Details", "Not now"));
  EXPECT_THAT(labels(wanted().at("trial:7.0.11")), ElementsAre("Undo"));
  EXPECT_EQ(notices.pressed("trial:7.0.11", "undo", kNow), (Wish{Wish::Kind::UndoTrial, "7.0.11"}));
}

TEST_F(NoticesTest, WhatTheDaemonDidCanBeUndoneOrKept) {
  notices.update(with({}, {power_cap("applied")}), kNow);
  const auto notice = wanted().at("action:000001-power-cap");
  EXPECT_EQ(notice.title, "Your graphics card was given less power");
  EXPECT_EQ(notice.body, "Radeon RX 7900 XTX: Its power limit was lowered (303 W before, 250 W now).");
  EXPECT_THAT(labels(notice), ElementsAre("Undo", "Keep it"));
  EXPECT_EQ(notices.pressed("action:000001-power-cap", "undo", kNow), (Wish{Wish::Kind::Revert, "000001-power-cap"}));
  EXPECT_EQ(notices.pressed("action:000001-power-cap", "keep", kNow), (Wish{Wish::Kind::Keep, "000001-power-cap"}));
}

TEST_F(NoticesTest, WhatWasOnlyObservedOrIsBackIsNotTold) {
  for (const char* state : {"observed", "shadow", "blocked", "refused", "reverted", "lost", "failed"}) {
    notices.update(with({}, {power_cap(state)}), kNow);
    EXPECT_TRUE(wanted().empty()) << state;
  }
}

TEST_F(NoticesTest, AnOldChangeIsNotToldAtEachLogIn) {
  notices.update(with({}, {power_cap("confirmed")}), kNow + std::chrono::hours(48));
  EXPECT_TRUE(wanted(std::chrono::hours(48)).empty());
}

TEST_F(NoticesTest, ARefusalIsExplained) {
  notices.failed({ErrorCode::NotPermitted, "polkit says no"});
  EXPECT_EQ(wanted().at("failure").body,
            "You are not allowed to change this on this computer. Ask whoever looks after it.");
  notices.update(with({}), kNow);
  EXPECT_EQ(wanted().size(), 1U);
  notices.dismissed("failure", kNow);
  EXPECT_TRUE(wanted().empty());
}

TEST_F(NoticesTest, ButtonsThatAreNotThereDoNothing) {
  notices.update(with({hot()}), kNow);
  EXPECT_EQ(notices.pressed("condition:hot-1", "try", kNow), Wish{});
  EXPECT_EQ(notices.pressed("condition:none", "details", kNow), Wish{});
  EXPECT_EQ(wanted().size(), 1U);
  EXPECT_EQ(notices.pressed("condition:hot-1", "default", kNow), (Wish{Wish::Kind::Details, "hot-1"}));
}

// Words that somebody who only wants to make pictures does not know.
TEST_F(NoticesTest, TextsAreFreeOfJargon) {
  for (const auto& row : all_conditions()) {
    auto c = hot();
    c.type = row.type;
    c.severity = row.severity;
    Notices fresh;
    fresh.update(with({c}), kNow);
    const auto notice = fresh.wanted(kNow).at("condition:hot-1");
    EXPECT_FALSE(notice.title.empty());
    EXPECT_THAT(notice.body, Not(HasSubstr("{"))) << row.name;
    if (row.severity == Severity::Info) continue;
    const auto words = " " + notice.title + " " + notice.body;
    for (const char* jargon :
         {"GPU", "kernel", "PCIe", "SMU", "firmware of", "canary", "RAS", "VRAM", "sysfs", "amdgpu"})
      EXPECT_THAT(words, Not(HasSubstr(jargon))) << row.name;
  }
}

}  // namespace
}  // namespace gpuhealth::desktop
