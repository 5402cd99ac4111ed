// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <random>
#include <set>

#include "support.hpp"

namespace gpuhealth::store {
namespace {

using namespace test;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

constexpr auto kEdge = ReadingId::TemperatureEdge;

std::set<std::string> names(const TemporaryDirectory& dir) {
  std::set<std::string> out;
  for (const auto& entry : fs::directory_iterator(dir.path())) out.insert(entry.path().filename().string());
  return out;
}

// A small, sound database of several pages in every table, closed.
void make_database(const std::string& path) {
  auto db = open_or_die(path);
  for (std::int64_t minute = 0; minute < 60; ++minute)
    ASSERT_TRUE(db.add(sample(60 * minute, {{kEdge, static_cast<double>(minute) + 0.5},
                                            {ReadingId::PowerAverage, static_cast<double>(minute) + 0.25}})));
  for (int i = 0; i < 60; ++i) ASSERT_TRUE(db.add(event(i, std::string(80, 'e'))));
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(db.put(condition("condition-" + std::to_string(i), i)));
  ASSERT_TRUE(db.seen(device("1"), "label", "boot", at(0)));
  ASSERT_TRUE(db.flush());
}

void expect_usable(Database& db) {
  ASSERT_TRUE(db.add(sample(7200, {{kEdge, 45}})));
  ASSERT_TRUE(db.flush());
  ASSERT_TRUE(db.add(event(7200, "works")));
  EXPECT_EQ(show(db.history(query(7200, 7200))), "7200:45/45/45");
}

void expect_set_aside(const TemporaryDirectory& dir, const std::string& content, const std::string& reason) {
  const auto path = dir.file("history.db");
  write_file(path, content);
  OpenReport report;
  auto db = open_or_die(path, &report);
  EXPECT_EQ(report.set_aside_as, path + ".damaged-1");
  EXPECT_THAT(report.reason, HasSubstr(reason));
  EXPECT_TRUE(report.created);
  EXPECT_TRUE(read_file(path + ".damaged-1") == content) << "the damaged file was changed";
  expect_usable(db);
}

TEST(Damage, AnEmptyFileIsANewDatabase) {
  const TemporaryDirectory dir;
  write_file(dir.file("history.db"), "");
  OpenReport report;
  auto db = open_or_die(dir.file("history.db"), &report);
  EXPECT_TRUE(report.created);
  EXPECT_EQ(report.set_aside_as, "");
  expect_usable(db);
}

TEST(Damage, RandomBytesAreSetAside) {
  const TemporaryDirectory dir;
  std::mt19937 random(1);
  std::string content(20000, '\0');
  for (char& c : content) c = static_cast<char>(random());
  expect_set_aside(dir, content, "cut off");
  const TemporaryDirectory whole_pages;
  expect_set_aside(whole_pages, content.substr(0, 16384), "not a database");
}

TEST(Damage, AFewBytesAreSetAside) {
  const TemporaryDirectory dir;
  expect_set_aside(dir, "x", "cut off");
}

TEST(Damage, ATextFileIsSetAside) {
  const TemporaryDirectory dir;
  expect_set_aside(dir, std::string(8192, '\n'), "not a database");
}

TEST(Damage, TruncatedFilesAreSetAside) {
  const TemporaryDirectory made;
  make_database(made.file("history.db"));
  const auto whole = read_file(made.file("history.db"));
  ASSERT_GT(whole.size(), 40960u);
  for (const std::size_t size :
       {std::size_t{16}, std::size_t{99}, std::size_t{100}, std::size_t{512}, std::size_t{4095}, std::size_t{4096},
        std::size_t{4097}, std::size_t{8192}, whole.size() / 2, whole.size() - 4096, whole.size() - 1}) {
    SCOPED_TRACE(size);
    const TemporaryDirectory dir;
    expect_set_aside(dir, whole.substr(0, size), "");
  }
}

TEST(Damage, APageOfGarbageIsFoundAtOpen) {
  const TemporaryDirectory made;
  make_database(made.file("history.db"));
  auto content = read_file(made.file("history.db"));
  const auto root = static_cast<std::size_t>(
      raw_number(made.file("history.db"), "SELECT rootpage FROM sqlite_schema WHERE name = 'bucket'"));
  std::fill_n(content.begin() + static_cast<std::ptrdiff_t>((root - 1) * 4096), 4096, '\xa5');
  const TemporaryDirectory dir;
  expect_set_aside(dir, content, "damaged");
}

TEST(Damage, AnotherProgramsDatabaseIsSetAside) {
  const TemporaryDirectory dir;
  const auto path = dir.file("history.db");
  raw_exec(path, "CREATE TABLE event(x); INSERT INTO event VALUES(1)");
  OpenReport report;
  auto db = open_or_die(path, &report);
  EXPECT_EQ(report.set_aside_as, path + ".damaged-1");
  EXPECT_EQ(raw_number(path + ".damaged-1", "SELECT x FROM event"), 1);
  expect_usable(db);
}

TEST(Damage, AMissingTableIsDamage) {
  const TemporaryDirectory dir;
  const auto path = dir.file("history.db");
  make_database(path);
  raw_exec(path, "DROP TABLE evidence");
  OpenReport report;
  auto db = open_or_die(path, &report);
  EXPECT_EQ(report.set_aside_as, path + ".damaged-1");
  expect_usable(db);
}

TEST(Damage, AGarbageLogIsIgnored) {
  const TemporaryDirectory dir;
  const auto path = dir.file("history.db");
  make_database(path);
  write_file(path + "-wal", std::string(50000, '\x5a'));
  OpenReport report;
  auto db = open_or_die(path, &report);
  EXPECT_EQ(report.set_aside_as, "");
  EXPECT_EQ(db.events(at(0), at(100), 100)->size(), 60u);
  expect_usable(db);
}

TEST(Damage, ALogCutAnywhereLosesOnlyItsEnd) {
  const TemporaryDirectory made;
  const auto path = made.file("history.db");
  {
    auto db = open_or_die(path);
  }
  auto db = open_or_die(path);
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(db.add(event(i, std::to_string(i))));
  const auto file = read_file(path);
  const auto log = read_file(path + "-wal");
  ASSERT_GT(log.size(), 20u * 4096);
  std::size_t before = 0;
  for (std::size_t size = 0; size <= log.size(); size += log.size() / 16) {
    const TemporaryDirectory dir;
    write_file(dir.file("history.db"), file);
    write_file(dir.file("history.db-wal"), log.substr(0, size));
    OpenReport report;
    auto cut = open_or_die(dir.file("history.db"), &report);
    EXPECT_EQ(report.set_aside_as, "");
    const auto events = cut.events(at(0), at(100), 100);
    ASSERT_TRUE(events);
    EXPECT_GE(events->size(), before);
    for (std::size_t i = 0; i < events->size(); ++i)
      EXPECT_EQ((*events)[events->size() - 1 - i].text, std::to_string(i));
    before = events->size();
  }
  EXPECT_GE(before, 18u);
}

TEST(Damage, ThreeDamagedFilesAreKeptAndNoneIsOverwritten) {
  const TemporaryDirectory dir;
  const auto path = dir.file("history.db");
  write_file(path + ".damaged-7", "older");
  write_file(path + ".damaged-x", "not ours");
  for (const std::string content : {"first", "second", "third"}) {
    write_file(path, content);
    const auto db = open_or_die(path);
  }
  EXPECT_EQ(names(dir), (std::set<std::string>{"history.db", "history.db.damaged-8", "history.db.damaged-9",
                                               "history.db.damaged-10", "history.db.damaged-x"}));
  EXPECT_EQ(read_file(path + ".damaged-8"), "first");
  EXPECT_EQ(read_file(path + ".damaged-10"), "third");
}

TEST(Damage, TheLogGoesAsideWithItsFile) {
  const TemporaryDirectory dir;
  const auto path = dir.file("history.db");
  write_file(path, "rubbish that is no database at all");
  write_file(path + "-wal", "its log");
  write_file(path + "-shm", "its index");
  {
    const auto db = open_or_die(path);
  }
  EXPECT_EQ(read_file(path + ".damaged-1-wal"), "its log");
  EXPECT_EQ(read_file(path + ".damaged-1-shm"), "its index");
}

TEST(Damage, MetWhileRunningIsSaidAndMendedWithWhatWasInMemory) {
  const TemporaryDirectory dir;
  const auto path = dir.file("history.db");
  make_database(path);
  auto db = open_or_die(path);
  ASSERT_TRUE(db.add(sample(7200, {{kEdge, 77}})));
  auto content = read_file(path);
  std::fill(content.begin() + 4096, content.end(), '\xa5');
  write_file(path, content);
  // The pages that quick_check read last may still be cached; a sweep over all of them meets the damage.
  for (int i = 0; i < 100 && !db.damaged(); ++i) {
    static_cast<void>(db.events(at(0), at(100), 100));
    static_cast<void>(db.conditions(at(0), 100));
    static_cast<void>(db.history(query(0, 3600)));
    for (int n = 0; n < 50; ++n) static_cast<void>(db.add(event(n, std::string(3000, 'x'))));
  }
  ASSERT_TRUE(db.damaged());
  OpenReport report;
  auto fresh = Database::replace(std::move(db), "damaged", report);
  ASSERT_TRUE(fresh) << fresh.error().text;
  EXPECT_EQ(report.set_aside_as, path + ".damaged-1");
  EXPECT_EQ(report.reason, "damaged");
  EXPECT_EQ(show(fresh->history(query(7200, 7200))), "7200:77/77/77");
  ASSERT_TRUE(fresh->flush());
  ASSERT_TRUE(fresh->add(event(1, "works")));
}

// Uses everything; what fails must say that the file is damaged.
void use_all(Database& db) {
  const auto judge = [&](const auto& result) {
    EXPECT_TRUE(result || db.damaged()) << (result ? "" : result.error().text);
  };
  judge(db.history(query(-1'000'000, 1'000'000)));
  judge(db.events(WallTime::min(), WallTime::max(), 1000));
  judge(db.conditions(WallTime::min(), 1000));
  judge(db.known_devices());
  judge(db.add(event(1, "one")));
  judge(db.put(condition("condition-3", 3)));
  judge(db.seen(device("1"), "label", "boot", at(9)));
  judge(db.add(sample(120, {{kEdge, 1}})));
  judge(db.flush());
  for (int i = 0; i < 20; ++i) {
    const auto more = db.maintain(at(864000));
    judge(more);
    if (!more || !*more) break;
  }
}

TEST(Damage, AnyFlippedBytesEndInAUsableDatabase) {
  const TemporaryDirectory made;
  make_database(made.file("history.db"));
  const auto whole = read_file(made.file("history.db"));
  std::mt19937 random(20261130);
  for (int round = 0; round < 150; ++round) {
    auto content = whole;
    const int flips = 1 + static_cast<int>(random() % 4);
    for (int i = 0; i < flips; ++i) {
      // Half of them in the first page, where the header and the tables' definitions are.
      const std::size_t range = random() % 2 == 0 ? 4096 : content.size();
      const std::size_t place = random() % range;
      if (place >= 60 && place < 64) continue;  // user_version: a newer program's file is left alone
      content[place] = static_cast<char>(random());
    }
    SCOPED_TRACE(round);
    const TemporaryDirectory dir;
    const auto path = dir.file("history.db");
    write_file(path, content);
    auto db = open_or_die(path);
    use_all(db);
    if (!db.damaged()) continue;
    OpenReport report;
    auto fresh = Database::replace(std::move(db), "damaged", report);
    ASSERT_TRUE(fresh) << fresh.error().text;
    expect_usable(*fresh);
  }
}

// A process that is killed while it writes; what it said was written is there.
TEST(Crash, KilledWhileWritingTheDatabaseIsSoundAndComplete) {
  for (int round = 0; round < 5; ++round) {
    const TemporaryDirectory dir;
    const auto path = dir.file("history.db");
    int pipe_ends[2];
    ASSERT_EQ(::pipe(pipe_ends), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      auto db = open_or_die(path);
      for (std::int32_t i = 0;; ++i) {
        if (!db.add(sample(std::int64_t{60} * i, {{kEdge, static_cast<double>(i)}})) || !db.flush()) ::_exit(1);
        if (!db.add(event(i, std::to_string(i)))) ::_exit(2);
        if (i % 50 == 49 && !db.maintain(at(std::int64_t{60} * i + 2592000))) ::_exit(3);
        if (::write(pipe_ends[1], &i, sizeof i) != sizeof i) ::_exit(4);
      }
    }
    ::close(pipe_ends[1]);
    std::int32_t last = -1;
    std::int32_t i = 0;
    while (last < 100 + 37 * round && ::read(pipe_ends[0], &i, sizeof i) == sizeof i) last = i;
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status));
    while (::read(pipe_ends[0], &i, sizeof i) == sizeof i) last = i;
    ::close(pipe_ends[0]);

    OpenReport report;
    auto db = open_or_die(path, &report);
    EXPECT_EQ(report.set_aside_as, "");
    EXPECT_GE(db.events(at(0), at(1'000'000), 1'000'000)->size(), static_cast<std::size_t>(last) + 1);
    HistoryQuery all = query(0, std::int64_t{60} * last);
    all.max_points = 1;
    const auto points = db.history(all);
    ASSERT_EQ(points->size(), 1u);
    EXPECT_EQ(points->front().min, 0);
    EXPECT_GE(points->front().max, last);
  }
}

}  // namespace
}  // namespace gpuhealth::store
