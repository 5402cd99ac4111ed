// SPDX-License-Identifier: Apache-2.0
// The machine sleeps, as logind says it on the daemon's own bus.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "sim/announcer.hpp"
#include "sim/machine.hpp"
#include "tests/daemon/rig.hpp"

namespace gpuhealth {
namespace {

using test::id_of;

class SleepTest : public ::testing::Test, protected test::Rig {
 protected:
  void begin(const std::vector<sim::Card>& cards) {
    auto logind = sim::Announcer::start(bus.address(), sim::Polkit::Absent);
    ASSERT_TRUE(logind) << logind.error().text;
    logind_ = std::move(*logind);
    plug(cards);
    start();
    ASSERT_TRUE(await_samples(2 * cards.size()));
  }
  void say(bool sleeping) const { ASSERT_TRUE(logind_->prepare_for_sleep(sleeping)); }
  bool happened(const std::string& type, const std::string& part) const {
    return await([&](dbus::Client& c) { return count(c, type, part) > 0; });
  }
  static std::ptrdiff_t count(dbus::Client& c, const std::string& type, const std::string& part) {
    const auto events = c.events({}, wall_from_microseconds(8'000'000'000'000'000), 100);
    if (!events) return 0;
    return std::ranges::count_if(
        *events, [&](const Event& e) { return e.type == type && e.text.find(part) != std::string::npos; });
  }
  const sim::Card a_ = sim::idle_card(sim::rx7900xtx(), 0);
  std::unique_ptr<sim::Announcer> logind_;
};

TEST_F(SleepTest, NothingIsReadBetweenLogindsTwoWords) {
  begin({a_});
  say(true);
  ASSERT_TRUE(happened("machine.sleeps", ""));
  // A sample that was under way may still come; after it none does.
  auto hot = a_;
  const auto then = client().manager()->samples;
  hot.state.edge_c = 77;
  ASSERT_TRUE(sim::update_card(tree.path(), hot));
  say(false);
  ASSERT_TRUE(happened("machine.woke", ""));
  EXPECT_LE(client().manager()->samples, then + 1);
  EXPECT_TRUE(happened("resume.checked", "as before the sleep"));
}

TEST_F(SleepTest, ALimitThatTheDriverForgotIsTold) {
  auto lowered = a_;
  lowered.state.cap_w = 280;
  begin({lowered});
  say(true);
  ASSERT_TRUE(happened("machine.sleeps", ""));
  lowered.state.cap_w = 303;
  lowered.state.performance_level = "manual";
  ASSERT_TRUE(sim::update_card(tree.path(), lowered));
  say(false);
  EXPECT_TRUE(
      happened("resume.changed",
               "since the sleep the power limit is 303 W, was 280 W; the performance level is manual, was auto"));
  auto c = client();
  EXPECT_EQ(count(c, "resume.checked", ""), 0);
}

TEST_F(SleepTest, VideoMemoryThatDidNotComeBackIsMissedEvenAfterAShortSleep) {
  auto full = sim::loaded_card(sim::rx7900xtx(), 0);
  full.state.vram_used = 14ULL << 30U;
  full.state.gtt_used = 100ULL << 20U;
  configure(std::string(test::kFastConfig) + "  vram-evicted:\n    for: 0\n");
  begin({full});
  say(true);
  ASSERT_TRUE(happened("machine.sleeps", ""));
  full.state.vram_used = 4ULL << 30U;
  full.state.gtt_used = 10ULL << 30U;
  ASSERT_TRUE(sim::update_card(tree.path(), full));
  say(false);
  EXPECT_TRUE(await_confirmed(ConditionType::VramEvicted, id_of(full)));
}

TEST_F(SleepTest, ALogindThatComesAndGoesIsHeardAgain) {
  begin({a_});
  logind_.reset();
  bus.stop();
  bus.start();
  test::Listener(bus.address()).wait_for_name();
  auto again = sim::Announcer::start(bus.address(), sim::Polkit::Absent);
  ASSERT_TRUE(again);
  logind_ = std::move(*again);
  EXPECT_TRUE(await([&](dbus::Client& c) {
    EXPECT_TRUE(logind_->prepare_for_sleep(true));
    EXPECT_TRUE(logind_->prepare_for_sleep(false));
    return count(c, "machine.woke", "") > 0;
  }));
}

}  // namespace
}  // namespace gpuhealth
