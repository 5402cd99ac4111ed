// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>

#include "support.hpp"

namespace gpuhealth::store {
namespace {

using namespace test;
using ::testing::HasSubstr;

TEST(Events, ComeBackNewestFirstWithAllTheirFields) {
  auto db = open_or_die(":memory:");
  ASSERT_TRUE(db.add(Event{at(10), "device.stuck", Severity::Warning, "uid-9", "It does not answer.", "boot-a"}));
  ASSERT_TRUE(db.add(event(20, "second")));
  ASSERT_TRUE(db.add(event(20, "third")));
  const auto events = db.events(at(10), at(20), 10);
  ASSERT_TRUE(events);
  ASSERT_EQ(events->size(), 3u);
  EXPECT_EQ((*events)[0].text, "third");
  EXPECT_EQ((*events)[1].text, "second");
  const Event& first = (*events)[2];
  EXPECT_EQ(first.time, at(10));
  EXPECT_EQ(first.type, "device.stuck");
  EXPECT_EQ(first.severity, Severity::Warning);
  EXPECT_EQ(first.device, "uid-9");
  EXPECT_EQ(first.text, "It does not answer.");
  EXPECT_EQ(first.boot_id, "boot-a");
}

TEST(Events, AreLimitedByTimeAndNumber) {
  auto db = open_or_die(":memory:");
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(db.add(event(i, std::to_string(i))));
  const auto middle = db.events(at(1), at(3), 10);
  ASSERT_TRUE(middle);
  ASSERT_EQ(middle->size(), 3u);
  EXPECT_EQ(middle->front().text, "3");
  EXPECT_EQ(middle->back().text, "1");
  EXPECT_EQ(db.events(at(0), at(9), 2)->size(), 2u);
  EXPECT_EQ(db.events(WallTime::min(), WallTime::max(), 9)->size(), 5u);
}

TEST(Conditions, RoundTripToTheLastByte) {
  auto db = open_or_die(":memory:");
  Condition c = condition("overheating-uid-1-1", 100);
  c.acknowledged = true;
  c.cleared = wall_from_microseconds(1'767'225'600'123'456);
  using std::string_literals::operator""s;
  c.detail = "a\0b \xff\xfe \"'; DROP TABLE condition; \xc3\xa4"s;
  c.evidence = {{"", ""}, {"temperature.junction", "112 C"}, {"temperature.junction", "113 C"}, {"\xff", "x\"\n"}};
  ASSERT_TRUE(db.put(c));
  const auto all = db.conditions(at(0), 10);
  ASSERT_TRUE(all);
  ASSERT_EQ(all->size(), 1u);
  const Condition& back = all->front();
  EXPECT_EQ(back.id, "overheating-uid-1-1");
  EXPECT_EQ(back.type, ConditionType::Overheating);
  EXPECT_EQ(back.severity, Severity::Critical);
  EXPECT_EQ(back.state, ConditionState::Confirmed);
  EXPECT_TRUE(back.acknowledged);
  EXPECT_EQ(back.device, "uid-1");
  EXPECT_EQ(back.device_label, "Radeon RX 7900 XTX at 0000:03:00.0");
  EXPECT_EQ(back.since, at(100));
  EXPECT_EQ(back.last_seen, at(105));
  EXPECT_EQ(to_microseconds(back.cleared), 1'767'225'600'123'456);
  EXPECT_EQ(back.boot_id, "boot");
  EXPECT_EQ(back.detail, c.detail);
  EXPECT_EQ(back.evidence, c.evidence);
}

TEST(Conditions, EveryTypeSeverityAndStateRoundTrips) {
  auto db = open_or_die(":memory:");
  int i = 0;
  for (const auto& row : all_conditions()) {
    Condition c = condition("c" + std::to_string(i), i);
    c.type = row.type;
    c.severity = static_cast<Severity>(i % 3);
    c.state = static_cast<ConditionState>(i % 3);
    ASSERT_TRUE(db.put(c));
    const auto back = db.conditions(WallTime::min(), 1);
    ASSERT_TRUE(back);
    EXPECT_EQ(back->front().type, row.type);
    EXPECT_EQ(back->front().severity, c.severity);
    EXPECT_EQ(back->front().state, c.state);
    ++i;
  }
}

TEST(Conditions, ANewerStateReplacesTheOldOneWholly) {
  auto db = open_or_die(":memory:");
  ASSERT_TRUE(db.put(condition("one", 0)));
  Condition later = condition("one", 0);
  later.state = ConditionState::Cleared;
  later.cleared = at(60);
  later.evidence = {{"limit", "105 C"}};
  ASSERT_TRUE(db.put(later));
  const auto all = db.conditions(at(0), 10);
  ASSERT_EQ(all->size(), 1u);
  EXPECT_EQ(all->front().state, ConditionState::Cleared);
  EXPECT_EQ(all->front().evidence, (std::vector<Evidence>{{"limit", "105 C"}}));
}

TEST(Conditions, OpenOnesAreThoseNotCleared) {
  auto db = open_or_die(":memory:");
  ASSERT_TRUE(db.put(condition("open", 0)));
  Condition raised = condition("raised", 10);
  raised.state = ConditionState::Raised;
  ASSERT_TRUE(db.put(raised));
  Condition cleared = condition("cleared", 20);
  cleared.state = ConditionState::Cleared;
  cleared.cleared = at(30);
  ASSERT_TRUE(db.put(cleared));
  const auto open = db.open_conditions();
  ASSERT_TRUE(open);
  ASSERT_EQ(open->size(), 2u);
  EXPECT_EQ((*open)[0].id, "raised");
  EXPECT_EQ((*open)[1].id, "open");
  EXPECT_EQ((*open)[1].evidence.size(), 2u);
}

TEST(Conditions, SinceKeepsOpenOnesAndHidesThoseClearedBefore) {
  auto db = open_or_die(":memory:");
  ASSERT_TRUE(db.put(condition("open for long", 0)));
  Condition cleared = condition("cleared", 100);
  cleared.state = ConditionState::Cleared;
  cleared.cleared = at(200);
  ASSERT_TRUE(db.put(cleared));
  EXPECT_EQ(db.conditions(at(200), 10)->size(), 2u);
  const auto later = db.conditions(at(201), 10);
  ASSERT_EQ(later->size(), 1u);
  EXPECT_EQ(later->front().id, "open for long");
  const auto one = db.conditions(at(0), 1);
  ASSERT_EQ(one->size(), 1u);
  EXPECT_EQ(one->front().id, "cleared");
}

TEST(Devices, KeepWhenTheyWereFirstSeen) {
  auto db = open_or_die(":memory:");
  ASSERT_TRUE(db.seen(device("b7e6"), "old label", "boot-1", at(0)));
  DeviceInfo moved = device("b7e6");
  moved.pci = {0, 0x43, 0, 0};
  ASSERT_TRUE(db.seen(moved, "new label", "boot-2", at(1000)));
  const auto known = db.known_devices();
  ASSERT_TRUE(known);
  ASSERT_EQ(known->size(), 1u);
  EXPECT_EQ(known->front().id, "uid-b7e6");
  EXPECT_EQ(known->front().label, "new label");
  EXPECT_EQ(known->front().pci, "0000:43:00.0");
  EXPECT_EQ(known->front().last_boot_id, "boot-2");
  EXPECT_EQ(known->front().first_seen, at(0));
  EXPECT_EQ(known->front().last_seen, at(1000));
}

TEST(Devices, ForgottenOnesAreGoneAndTheirHistoryStays) {
  auto db = open_or_die(":memory:");
  ASSERT_TRUE(db.seen(device("1"), "one", "boot", at(0)));
  ASSERT_TRUE(db.seen(device("2"), "two", "boot", at(0)));
  ASSERT_TRUE(db.add(sample(0, {{ReadingId::TemperatureEdge, 45}})));
  ASSERT_TRUE(db.forget_device("uid-1"));
  ASSERT_TRUE(db.forget_device("uid-none"));
  const auto known = db.known_devices();
  ASSERT_EQ(known->size(), 1u);
  EXPECT_EQ(known->front().id, "uid-2");
  EXPECT_EQ(show(db.history(query(0, 60))), "0:45/45/45");
}

TEST(Records, OutliveTheProcess) {
  const TemporaryDirectory dir;
  const auto path = dir.file("history.db");
  {
    auto db = open_or_die(path);
    ASSERT_TRUE(db.add(event(1, "kept")));
    ASSERT_TRUE(db.put(condition("kept", 1)));
    ASSERT_TRUE(db.seen(device("1"), "kept", "boot", at(1)));
  }
  OpenReport report;
  auto db = open_or_die(path, &report);
  EXPECT_FALSE(report.created);
  EXPECT_EQ(report.set_aside_as, "");
  EXPECT_EQ(db.events(at(0), at(9), 9)->size(), 1u);
  EXPECT_EQ(db.open_conditions()->size(), 1u);
  EXPECT_EQ(db.known_devices()->size(), 1u);
}

TEST(Files, AreForTheOwnerAndItsGroupOnly) {
  const TemporaryDirectory dir;
  const auto path = dir.file("new/deep/history.db");
  auto db = open_or_die(path);
  ASSERT_TRUE(db.add(event(1, "makes the write-ahead log")));
  struct stat info{};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0640u);
  ASSERT_EQ(::stat((path + "-wal").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0640u);
  ASSERT_EQ(::stat(dir.file("new/deep").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0750u);
  EXPECT_FALSE(std::filesystem::exists(path + "-shm"));
}

TEST(Files, ThatOthersCouldReadAreClosedToThem) {
  const TemporaryDirectory dir;
  const auto path = dir.file("history.db");
  write_file(path, "");
  std::filesystem::permissions(path, std::filesystem::perms::all);
  const auto db = open_or_die(path);
  struct stat info{};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0640u);
}

TEST(Files, ASecondProgramIsToldThatTheDatabaseIsInUse) {
  const TemporaryDirectory dir;
  const auto path = dir.file("history.db");
  const auto db = open_or_die(path);
  OpenReport report;
  Options options;
  options.path = path;
  const auto second = Database::open(options, report);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::Unavailable);
  EXPECT_THAT(second.error().text, HasSubstr("in use"));
  EXPECT_EQ(report.set_aside_as, "");
}

TEST(Files, WhatIsNoRegularFileIsLeftAlone) {
  const TemporaryDirectory dir;
  OpenReport report;
  Options options;
  options.path = dir.path().string();
  EXPECT_FALSE(Database::open(options, report));
  options.path = dir.file("fifo");
  ASSERT_EQ(::mkfifo(options.path.c_str(), 0600), 0);
  const auto fifo = Database::open(options, report);
  ASSERT_FALSE(fifo);
  EXPECT_THAT(fifo.error().text, HasSubstr("not a regular file"));
  options.path = dir.file("fifo/history.db");
  EXPECT_FALSE(Database::open(options, report));
}

TEST(Files, OfANewerVersionAreAnErrorAndLeftAlone) {
  const TemporaryDirectory dir;
  const auto path = dir.file("history.db");
  {
    auto db = open_or_die(path);
  }
  raw_exec(path, "PRAGMA user_version = 2");
  const auto before = read_file(path);
  OpenReport report;
  Options options;
  options.path = path;
  const auto db = Database::open(options, report);
  ASSERT_FALSE(db);
  EXPECT_EQ(db.error().code, ErrorCode::InvalidInput);
  EXPECT_THAT(db.error().text, HasSubstr("newer"));
  EXPECT_EQ(report.set_aside_as, "");
  EXPECT_TRUE(read_file(path) == before);
}

}  // namespace
}  // namespace gpuhealth::store
