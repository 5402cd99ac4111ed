// SPDX-License-Identifier: Apache-2.0
#include "canary/scheduler.hpp"

#include <gtest/gtest.h>

namespace gpuhealth::canary {
namespace {

DeviceSituation card(const std::string& name = "0000:03:00.0", int socket = 0) {
  DeviceSituation d;
  d.device = name;
  d.socket = socket;
  return d;
}

ScheduleSettings exact() {
  ScheduleSettings s;
  s.jitter = 0;
  return s;
}

// Runs for `seconds`, each canary taking none; returns the times of the starts.
std::vector<std::pair<double, int>> follow(Scheduler& scheduler, const DeviceSituation& d, double from,
                                           double seconds) {
  std::vector<std::pair<double, int>> out;
  for (double t = from; t < from + seconds; t += 1) {
    for (const auto& s : scheduler.due(t, {d})) out.emplace_back(t, s.tier);
  }
  return out;
}

TEST(Scheduler, SixRunsInTheFirstNinetySecondsThenEveryFiveMinutes) {
  Scheduler s(exact(), 1);
  const auto first = follow(s, card(), 0, 90);
  ASSERT_EQ(first.size(), 6U);
  EXPECT_EQ(first.back().first, 75);
  EXPECT_TRUE(s.qualified("0000:03:00.0"));
  const auto later = follow(s, card(), 90, 1200);
  ASSERT_EQ(later.size(), 4U);
  EXPECT_EQ(later[0].first, 375);
  EXPECT_EQ(later[1].first, 675);
}

TEST(Scheduler, TierZeroAloneNeverUsesTheGpu) {
  auto settings = exact();
  settings.most_tier = 0;
  Scheduler s(settings, 1);
  const auto starts = follow(s, card(), 0, 2 * 3600);
  EXPECT_EQ(starts.size(), 6U + 23U);  // six in 75 s, then one every 300 s
  for (const auto& [t, tier] : starts) EXPECT_EQ(tier, 0);
  auto other = card("0000:0a:00.0");
  other.amdgpu = false;
  EXPECT_TRUE(follow(s, other, 0, 3600).empty()) << "there is nothing of tier 0 for it";
}

TEST(Scheduler, WhatIsWantedRunsNoHigherThanTheTierThatMayRunByItself) {
  auto settings = exact();
  settings.most_tier = 0;
  Scheduler s(settings, 1);
  follow(s, card(), 0, 100);
  s.want("0000:03:00.0", "h2d_file_rw", 110);
  s.want("0000:03:00.0", "userptr_cow", 120);
  const auto starts = follow(s, card(), 100, 100);
  ASSERT_EQ(starts.size(), 1U);
  EXPECT_EQ(starts[0], (std::pair<double, int>{120, 0}));
}

TEST(Scheduler, APersonsRunWaitsForTheOneThatRunsOnItsSocket) {
  Scheduler s(exact(), 1);
  EXPECT_TRUE(s.claim(card("a", 0)));
  EXPECT_FALSE(s.claim(card("a", 0)));
  EXPECT_FALSE(s.claim(card("b", 0)));
  EXPECT_TRUE(s.claim(card("c", 1)));
  EXPECT_TRUE(s.due(0, {card("a", 0), card("b", 0)}).empty()) << "and the clock's run waits for the person's";
  s.finished("a", 1);
  EXPECT_TRUE(s.claim(card("b", 0)));
}

TEST(Scheduler, TheDeepTierComesOnceAnHour) {
  Scheduler s(exact(), 1);
  int deep = 0;
  for (const auto& [t, tier] : follow(s, card(), 0, 4 * 3600)) deep += tier == 2 ? 1 : 0;
  EXPECT_EQ(deep, 3);
}

TEST(Scheduler, JitterKeepsMachinesApartAndWithinATenth) {
  Scheduler s({}, 42);
  follow(s, card(), 0, 90);
  double last = -1;
  for (const auto& [t, tier] : follow(s, card(), 90, 20000)) {
    if (last >= 0 && tier == 1) {
      EXPECT_LE(t - last, 332);
    }
    last = t;
  }
}

TEST(Scheduler, NothingRunsOnASleepingGpuOnBatteryInAGuestOrBesideAHangingChild) {
  for (bool DeviceSituation::* why : {&DeviceSituation::asleep, &DeviceSituation::on_battery,
                                      &DeviceSituation::in_a_guest, &DeviceSituation::stuck}) {
    Scheduler s(exact(), 1);
    auto d = card();
    d.*why = true;
    EXPECT_TRUE(follow(s, d, 0, 4000).empty());
    EXPECT_EQ(s.overdue(d.device), hindrance(d));
    EXPECT_FALSE(hindrance(d).empty());
  }
}

TEST(Scheduler, OnABusyGpuOnlyTheProbeRuns) {
  Scheduler s(exact(), 1);
  auto d = card();
  d.busy = true;
  const auto starts = follow(s, d, 0, 1500);
  ASSERT_EQ(starts.size(), 5U);
  for (const auto& [t, tier] : starts) EXPECT_EQ(tier, 0);
  d.busy = false;
  EXPECT_FALSE(follow(s, d, 1500, 80).empty()) << "caught up soon";
}

TEST(Scheduler, AskedForTheProbeABusyGpuRunsItAtOnceAndMoreOnlyWhenItIsFree) {
  Scheduler s(exact(), 1);
  auto d = card();
  d.busy = true;
  static_cast<void>(follow(s, d, 0, 10));  // the one that was due
  EXPECT_TRUE(follow(s, d, 10, 20).empty());
  s.ask_now(d.device, 0);
  const auto asked = follow(s, d, 30, 20);
  ASSERT_EQ(asked.size(), 1U);
  EXPECT_EQ(asked[0].second, 0);
  s.ask_now(d.device, 1);
  EXPECT_TRUE(follow(s, d, 50, 20).empty());
  d.busy = false;
  const auto free = follow(s, d, 70, 5);
  ASSERT_EQ(free.size(), 1U);
  EXPECT_EQ(free[0].second, 1);
}

TEST(Scheduler, TheProbeBacksOffOnceTheStallIsKnown) {
  Scheduler s(exact(), 1);
  auto d = card();
  d.busy = d.stall_confirmed = true;
  EXPECT_EQ(follow(s, d, 0, 3000).size(), 1U);
}

TEST(Scheduler, OneCanaryASocket) {
  Scheduler s(exact(), 1);
  const auto first = s.due(0, {card("a", 0), card("b", 0), card("c", 1)});
  ASSERT_EQ(first.size(), 2U);
  EXPECT_EQ(first[0].device, "a");
  EXPECT_EQ(first[1].device, "c");
  s.started("a", 0);
  EXPECT_TRUE(s.due(1, {card("b", 0)}).empty());
  s.finished("a", 2);
  EXPECT_EQ(s.due(3, {card("b", 0)}).size(), 1U);
}

TEST(Scheduler, AFindingLooksAgainWhenItWantsTo) {
  Scheduler s(exact(), 1);
  follow(s, card(), 0, 90);
  s.want("0000:03:00.0", "triad", 115);
  EXPECT_TRUE(s.due(114, {card()}).empty());
  const auto start = s.due(115, {card()});
  ASSERT_EQ(start.size(), 1U);
  EXPECT_EQ(start[0].only, std::vector<std::string>{"triad"});
  EXPECT_TRUE(s.due(116, {card()}).empty());
}

TEST(Scheduler, APersonsWishComesNext) {
  Scheduler s(exact(), 1);
  follow(s, card(), 0, 90);
  s.ask_now("0000:03:00.0", 3);
  const auto start = s.due(91, {card()});
  ASSERT_EQ(start.size(), 1U);
  EXPECT_EQ(start[0].tier, 3);
}

TEST(Scheduler, TooLittleMemorySkipsAndSaysSoAfterSixTimes) {
  Scheduler s(exact(), 1);
  auto d = card();
  d.little_memory = true;
  d.amdgpu = false;
  EXPECT_TRUE(follow(s, d, 0, 1000).empty());
  EXPECT_EQ(s.overdue(d.device), "too little free video memory");
}

}  // namespace
}  // namespace gpuhealth::canary
