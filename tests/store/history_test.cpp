// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <chrono>
#include <limits>

#include "support.hpp"

namespace gpuhealth::store {
namespace {

using namespace test;
using std::chrono::hours;

constexpr auto kEdge = ReadingId::TemperatureEdge;
constexpr std::int64_t kMinute = 60;
constexpr std::int64_t kHour = 3600;
constexpr std::int64_t kDay = 86400;

void age(Database& db, std::int64_t now) {
  for (;;) {
    const auto more = db.maintain(at(now));
    ASSERT_TRUE(more) << more.error().text;
    if (!*more) return;
  }
}

TEST(History, AMinuteHoldsLowestMeanAndHighest) {
  auto db = open_or_die(":memory:");
  for (const auto& [second, value] : {std::pair{0, 45.0}, {20, 48.0}, {59, 46.5}})
    ASSERT_TRUE(db.add(sample(second, {{kEdge, value}})));
  ASSERT_TRUE(db.add(sample(60, {{kEdge, 60}})));
  EXPECT_EQ(show(db.history(query(0, 120))), "0:45/46.5/48 60:60/60/60");
}

TEST(History, NothingReachesTheDiskBeforeItsMinuteIsComplete) {
  const TemporaryDirectory dir;
  const auto path = dir.file("history.db");
  auto db = open_or_die(path);
  const auto size = db.size_bytes();
  for (int second = 0; second < 60; ++second) ASSERT_TRUE(db.add(sample(second, {{kEdge, 45}})));
  ASSERT_TRUE(db.add(sample(64, {{kEdge, 45}})));
  EXPECT_EQ(db.size_bytes(), size);
  ASSERT_TRUE(db.add(sample(65, {{kEdge, 45}})));
  EXPECT_GT(db.size_bytes(), size);
}

TEST(History, OnlyValidReadingsThatAreKeptAreStored) {
  auto db = open_or_die(":memory:");
  Sample s = sample(0, {{kEdge, 45}, {ReadingId::TemperatureVrGfx, 70}});
  s.readings.push_back({ReadingId::PowerAverage, ReadingStatus::Stale, 0, 100});
  s.readings.push_back({ReadingId::ClockGfx, ReadingStatus::Valid, 0, std::numeric_limits<double>::quiet_NaN()});
  s.readings.push_back({ReadingId::FanRpm, ReadingStatus::Valid, 0, std::numeric_limits<double>::infinity()});
  s.readings.push_back({static_cast<ReadingId>(60000), ReadingStatus::Valid, 0, 1});
  s.readings.push_back({ReadingId::VramUsed, ReadingStatus::Valid, 0, 17'163'091'968});
  s.readings.push_back({ras_reading(0, RasKind::Uncorrectable), ReadingStatus::Valid, 0, 3});
  ASSERT_TRUE(db.add(s));
  ASSERT_TRUE(db.flush());
  EXPECT_EQ(show(db.history(query(0, 60, kEdge))), "0:45/45/45");
  EXPECT_EQ(show(db.history(query(0, 60, ReadingId::TemperatureVrGfx))), "");
  EXPECT_EQ(show(db.history(query(0, 60, ReadingId::PowerAverage))), "");
  EXPECT_EQ(show(db.history(query(0, 60, ReadingId::ClockGfx))), "");
  EXPECT_EQ(show(db.history(query(0, 60, ReadingId::FanRpm))), "");
  EXPECT_EQ(show(db.history(query(0, 60, ReadingId::VramUsed))), "0:17163091968/17163091968/17163091968");
  EXPECT_EQ(show(db.history(query(0, 60, ras_reading(0, RasKind::Uncorrectable)))), "0:3/3/3");
}

TEST(History, DevicesAndReadingsDoNotMix) {
  auto db = open_or_die(":memory:");
  ASSERT_TRUE(db.add(sample(0, {{kEdge, 45}, {ReadingId::PowerAverage, 200}}, "uid-1")));
  ASSERT_TRUE(db.add(sample(1, {{kEdge, 70}}, "uid-2")));
  ASSERT_TRUE(db.flush());
  EXPECT_EQ(show(db.history(query(0, 60, kEdge, "uid-1"))), "0:45/45/45");
  EXPECT_EQ(show(db.history(query(0, 60, kEdge, "uid-2"))), "0:70/70/70");
  EXPECT_EQ(show(db.history(query(0, 60, ReadingId::PowerAverage, "uid-1"))), "0:200/200/200");
  EXPECT_EQ(show(db.history(query(0, 60, kEdge, "uid-none"))), "");
}

TEST(History, AMinuteWrittenInPartsIsOneMinute) {
  auto db = open_or_die(":memory:");
  ASSERT_TRUE(db.add(sample(0, {{kEdge, 40}})));
  ASSERT_TRUE(db.flush());
  ASSERT_TRUE(db.add(sample(10, {{kEdge, 50}})));
  ASSERT_TRUE(db.flush());
  ASSERT_TRUE(db.add(sample(20, {{kEdge, 60}})));
  EXPECT_EQ(show(db.history(query(0, 60))), "0:40/50/60");
}

TEST(History, AClockSetBackMergesIntoTheMinutesThatAreThere) {
  auto db = open_or_die(":memory:");
  for (std::int64_t minute = 0; minute < 5; ++minute) ASSERT_TRUE(db.add(sample(60 * minute, {{kEdge, 40}})));
  for (std::int64_t minute = 2; minute < 7; ++minute) ASSERT_TRUE(db.add(sample(60 * minute, {{kEdge, 50}})));
  ASSERT_TRUE(db.flush());
  EXPECT_EQ(show(db.history(query(0, 600))),
            "0:40/40/40 60:40/40/40 120:40/45/50 180:40/45/50 240:40/45/50 300:50/50/50 360:50/50/50");
}

TEST(History, AClockThatLeapsYearsLosesNothingBeforeOrAfter) {
  auto db = open_or_die(":memory:");
  const std::int64_t ten_years = 3650 * kDay;
  ASSERT_TRUE(db.add(sample(0, {{kEdge, 40}})));
  age(db, 0);
  ASSERT_TRUE(db.add(sample(ten_years, {{kEdge, 41}})));
  age(db, ten_years);
  ASSERT_TRUE(db.add(sample(-ten_years * 10, {{kEdge, 42}})));
  ASSERT_TRUE(db.add(sample(60, {{kEdge, 43}})));
  ASSERT_TRUE(db.flush());
  age(db, 60);
  EXPECT_EQ(show(db.history(query(0, 60))), "0:40/40/40 60:43/43/43");
  EXPECT_EQ(show(db.history(query(ten_years, ten_years))), "315360000:41/41/41");
}

TEST(History, TheClocksLastMicrosecondsAreNoTrouble) {
  auto db = open_or_die(":memory:");
  for (const auto wall : {WallTime::min(), WallTime::max(), WallTime{}}) {
    Sample s = sample(0, {{kEdge, 1}});
    s.time.wall = wall;
    ASSERT_TRUE(db.add(s));
    ASSERT_TRUE(db.flush());
    const auto more = db.maintain(wall);
    ASSERT_TRUE(more) << more.error().text;
  }
  HistoryQuery all = query(0, 0);
  all.since = WallTime::min();
  all.until = WallTime::max();
  const auto points = db.history(all);
  ASSERT_TRUE(points);
  EXPECT_GE(points->size(), 1u);
}

// One value a minute: the minute's number. 6 hours are 0..359, a quarter-hour 0..14.
void fill_minutes(Database& db, int count) {
  for (std::int64_t minute = 0; minute < count; ++minute)
    ASSERT_TRUE(db.add(sample(60 * minute, {{kEdge, static_cast<double>(minute)}})));
  ASSERT_TRUE(db.flush());
}

Options thin_options() {
  Options options;
  options.path = ":memory:";
  options.fine_for = hours(1);
  options.medium_for = hours(12);
  options.coarse_for = hours(48);
  return options;
}

TEST(Thinning, QuarterHoursKeepTheExactAggregate) {
  auto db = open_or_die(thin_options());
  fill_minutes(db, 45);
  age(db, 45 * kMinute + kHour);
  EXPECT_EQ(show(db.history(query(0, kHour))), "0:0/7/14 900:15/22/29 1800:30/37/44");
}

TEST(Thinning, MeansAreWeightedByTheirCounts) {
  auto db = open_or_die(thin_options());
  for (int i = 0; i < 9; ++i) ASSERT_TRUE(db.add(sample(i, {{kEdge, 10}})));
  ASSERT_TRUE(db.add(sample(120, {{kEdge, 110}})));
  ASSERT_TRUE(db.flush());
  age(db, 2 * kHour);
  // (9 * 10 + 110) / 10
  EXPECT_EQ(show(db.history(query(0, 900))), "0:10/20/110");
}

TEST(Thinning, OnlyWholeWindowsPastTheAgeMove) {
  auto db = open_or_die(thin_options());
  fill_minutes(db, 31);
  age(db, kHour + 30 * kMinute - 1);  // the second quarter-hour lacks a second
  EXPECT_EQ(show(db.history(query(0, 900))), "0:0/7/14 900:15/15/15");
  const auto points = db.history(query(0, kHour));
  EXPECT_EQ(points->size(), 1u + 16u);
}

TEST(Thinning, SixHoursFollowAndThenNothing) {
  auto db = open_or_die(thin_options());
  fill_minutes(db, 361);
  age(db, 6 * kHour + 12 * kHour);
  EXPECT_EQ(show(db.history(query(0, 6 * kHour))), "0:0/179.5/359 21600:360/360/360");
  age(db, 6 * kHour + 48 * kHour - 60);
  EXPECT_EQ(show(db.history(query(0, 6 * kHour))), "0:0/179.5/359 21600:360/360/360");
  age(db, 6 * kHour + 48 * kHour);
  EXPECT_EQ(show(db.history(query(0, 6 * kHour))), "21600:360/360/360");
  age(db, 12 * kHour + 48 * kHour);
  EXPECT_EQ(show(db.history(query(0, 12 * kHour))), "");
}

TEST(Thinning, LateSamplesJoinTheBucketThatIsThere) {
  auto db = open_or_die(thin_options());
  fill_minutes(db, 15);
  age(db, 2 * kHour);
  ASSERT_TRUE(db.add(sample(30, {{kEdge, 23}})));
  ASSERT_TRUE(db.flush());
  age(db, 2 * kHour);
  // (0 + … + 14 + 23) / 16
  EXPECT_EQ(show(db.history(query(0, 900))), "0:0/8/23");
}

TEST(Thinning, ACallDoesBoundedWork) {
  Options options = thin_options();
  auto db = open_or_die(options);
  fill_minutes(db, 5000);
  int calls = 1;
  for (; calls < 100; ++calls) {
    const auto more = db.maintain(at(5000 * kMinute));
    ASSERT_TRUE(more);
    if (!*more) break;
  }
  // 4940 minutes past their hour at 2000 rows a call, and then their quarter-hours.
  EXPECT_GE(calls, 3);
  EXPECT_LE(calls, 6);
}

TEST(Thinning, LevelBordersNeitherLoseNorRepeatASample) {
  auto db = open_or_die(thin_options());
  fill_minutes(db, 2000);
  age(db, 2000 * kMinute);
  HistoryQuery all = query(0, 2000 * kMinute);
  all.max_points = 1;
  // All 2000 minutes, each once: (0 + 1999) / 2.
  EXPECT_EQ(show(db.history(all)), "0:0/999.5/1999");
  const auto points = db.history(query(0, 2000 * kMinute));
  for (std::size_t i = 1; i < points->size(); ++i) {
    EXPECT_LT((*points)[i - 1].time, (*points)[i].time);
    EXPECT_EQ((*points)[i - 1].max + 1, (*points)[i].min);
  }
}

TEST(Thinning, AWrongClockCannotAgeTheHistoryAway) {
  auto db = open_or_die(thin_options());
  fill_minutes(db, 15);
  age(db, 0);
  age(db, 3650 * kDay);
  EXPECT_NE(show(db.history(query(0, kHour))), "");
  for (int day = 0; day < 5; ++day) age(db, 3650 * kDay);  // it stays so: the clock is right after all
  EXPECT_EQ(show(db.history(query(0, kHour))), "");
}

TEST(Thinning, OldEventsAndClearedConditionsGo) {
  Options options = thin_options();
  options.events_for = hours(24);
  auto db = open_or_die(options);
  ASSERT_TRUE(db.add(event(0, "old")));
  ASSERT_TRUE(db.add(event(10, "young")));
  ASSERT_TRUE(db.put(condition("open", 0)));
  Condition cleared = condition("cleared", 0);
  cleared.state = ConditionState::Cleared;
  cleared.cleared = at(0);
  ASSERT_TRUE(db.put(cleared));
  age(db, kDay + 60);
  EXPECT_EQ(db.events(at(0), at(20), 9)->size(), 0u);
  const auto left = db.conditions(at(-10), 9);
  ASSERT_EQ(left->size(), 1u);
  EXPECT_EQ(left->front().id, "open");
}

TEST(History, IsMergedDownToTheAskedNumberOfPoints) {
  auto db = open_or_die(":memory:");
  fill_minutes(db, 100);
  for (const std::uint32_t most : {0u, 1u, 2u, 3u, 7u, 50u, 99u, 100u, 1000u}) {
    HistoryQuery q = query(0, kDay);
    q.max_points = most;
    const auto points = db.history(q);
    ASSERT_TRUE(points);
    EXPECT_LE(points->size(), std::max(most, 1u));
    EXPECT_GE(points->size(), std::min(most, 100u) / 2);
    EXPECT_EQ(points->front().min, 0);
    EXPECT_EQ(points->back().max, 99);
  }
  HistoryQuery q = query(0, kDay);
  q.max_points = 4;
  EXPECT_EQ(show(db.history(q)), "0:0/12/24 1500:25/37/49 3000:50/62/74 4500:75/87/99");
}

TEST(History, ARangeInsideABucketIsAnsweredWithIt) {
  auto db = open_or_die(thin_options());
  fill_minutes(db, 15);
  age(db, 2 * kHour);
  EXPECT_EQ(show(db.history(query(400, 500))), "0:0/7/14");
  EXPECT_EQ(show(db.history(query(900, 1000))), "");
  EXPECT_EQ(show(db.history(query(-100, -1))), "");
  EXPECT_EQ(show(db.history(query(500, 400))), "");
}

TEST(SizeCap, OldDetailGoesFirstAndTheFileShrinks) {
  const TemporaryDirectory dir;
  Options options;
  options.path = dir.file("history.db");
  auto db = open_or_die(options);
  // Four days, a value a minute for 20 readings.
  for (std::int64_t minute = 0; minute < 4 * kDay / kMinute; ++minute) {
    Sample s = sample(60 * minute, {});
    for (std::size_t block = 0; block < 20; ++block)
      s.readings.push_back(
          {ras_reading(block, RasKind::Correctable), ReadingStatus::Valid, 0, static_cast<double>(minute) + 0.5});
    ASSERT_TRUE(db.add(s));
  }
  ASSERT_TRUE(db.flush());
  age(db, 4 * kDay);
  const auto full = db.size_bytes();
  ASSERT_GT(full, 4u << 20);

  const auto first = ras_reading(0, RasKind::Correctable);
  {
    Database closed = std::move(db);
  }
  options.size_cap_bytes = full * 2 / 3;
  auto capped = open_or_die(options);
  age(capped, 4 * kDay);
  EXPECT_LE(capped.size_bytes(), options.size_cap_bytes);
  HistoryQuery all = query(0, 4 * kDay, first);
  all.max_points = 1;
  EXPECT_EQ(show(capped.history(all)), "0:0.5/2880/5759.5");  // thinned, and all of it is there
  EXPECT_EQ(capped.history(query(4 * kDay - kHour, 4 * kDay, first))->size(), 60u);
}

TEST(SizeCap, ATinyCapLeavesADatabaseThatWorks) {
  const TemporaryDirectory dir;
  Options options;
  options.path = dir.file("history.db");
  options.size_cap_bytes = 128 << 10;
  auto db = open_or_die(options);
  for (std::int64_t minute = 0; minute < 3 * kDay / kMinute; ++minute)
    ASSERT_TRUE(db.add(sample(60 * minute, {{kEdge, static_cast<double>(minute) + 0.1},
                                            {ReadingId::PowerAverage, static_cast<double>(minute) + 0.2}})));
  for (int i = 0; i < 2000; ++i) ASSERT_TRUE(db.add(event(i, std::string(100, 'x'))));
  age(db, 3 * kDay);
  EXPECT_LE(db.size_bytes(), options.size_cap_bytes);
  EXPECT_GT(db.history(query(0, 3 * kDay))->size(), 0u);
  EXPECT_GT(db.events(at(0), at(5000), 5000)->size(), 0u);
}

// Two years of eight GPUs, two readings every two hours, maintenance once a day.
TEST(SizeCap, HoldsForTwoYearsOfEightGpus) {
  const TemporaryDirectory dir;
  Options options;
  options.path = dir.file("history.db");
  options.size_cap_bytes = 768 << 10;
  auto db = open_or_die(options);
  const std::vector<std::string> gpus = {"uid-0", "uid-1", "uid-2", "uid-3", "uid-4", "uid-5", "uid-6", "uid-7"};
  std::uint64_t largest = 0;
  for (std::int64_t day = 0; day < 730; ++day) {
    for (std::int64_t second = day * kDay; second < (day + 1) * kDay; second += 7200) {
      const auto temperature = static_cast<double>(40 + second / 7200 % 50);
      for (const auto& gpu : gpus)
        ASSERT_TRUE(db.add(sample(second, {{kEdge, temperature}, {ReadingId::PowerAverage, 100.25}}, gpu)));
    }
    age(db, (day + 1) * kDay);
    largest = std::max(largest, db.size_bytes());
  }
  EXPECT_LE(largest, options.size_cap_bytes);
  const auto last_day = db.history(query(729 * kDay, 730 * kDay, kEdge, "uid-7"));
  ASSERT_TRUE(last_day);
  EXPECT_EQ(last_day->size(), 12u);
  HistoryQuery all = query(0, 730 * kDay, kEdge, "uid-3");
  EXPECT_GT(db.history(all)->size(), 250u);
  all.max_points = 1;
  const auto one = db.history(all);
  ASSERT_EQ(one->size(), 1u);
  EXPECT_EQ(one->front().min, 40);
  EXPECT_EQ(one->front().max, 89);
}

}  // namespace
}  // namespace gpuhealth::store
