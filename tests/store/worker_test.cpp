// SPDX-License-Identifier: Apache-2.0
#include "store/worker.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <fstream>
#include <functional>
#include <mutex>
#include <optional>

#include "store/queue.hpp"
#include "support.hpp"

namespace gpuhealth::store {
namespace {

using namespace test;
using std::chrono::seconds;
using std::chrono::steady_clock;
using ::testing::HasSubstr;

constexpr auto kEdge = ReadingId::TemperatureEdge;

// The owner's thread: runs what is delivered until a thing has come true.
class Owner {
 public:
  Worker::Deliver deliver() {
    return [this](std::function<void()> what) {
      const std::lock_guard lock(mutex_);
      delivered_.push_back(std::move(what));
      changed_.notify_all();
    };
  }
  bool run_until(const std::function<bool()>& reached) {
    const auto deadline = steady_clock::now() + seconds(60);
    while (!reached()) {
      std::unique_lock lock(mutex_);
      if (!changed_.wait_until(lock, deadline, [this] { return !delivered_.empty(); })) return false;
      auto what = std::move(delivered_.front());
      delivered_.pop_front();
      lock.unlock();
      what();
    }
    return true;
  }
  void run_all() {
    while (!delivered_.empty()) {
      delivered_.front()();
      delivered_.pop_front();
    }
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> delivered_;
};

// A worker, its owner, and what it said last.
struct Stage {
  explicit Stage(const std::string& path) {
    Options options;
    options.path = path;
    worker.emplace(
        options, owner.deliver(), [this](Health h) { health = std::move(h); },
        [this](OpenReport r) { opened.push_back(std::move(r)); });
  }
  template <class T>
  Result<T> wait_for(const std::function<void(std::function<void(Result<T>)>)>& ask) {
    std::optional<Result<T>> answer;
    ask([&](Result<T> result) { answer = std::move(result); });
    if (!owner.run_until([&] { return answer.has_value(); })) return fail(ErrorCode::Internal, "no answer");
    return *answer;
  }
  Result<std::vector<Event>> events() {
    return wait_for<std::vector<Event>>(
        [&](const auto& then) { worker->events(at(-1000), at(1'000'000), 10000, then); });
  }
  Result<std::vector<HistoryPoint>> history(const HistoryQuery& q) {
    return wait_for<std::vector<HistoryPoint>>([&](const auto& then) { worker->history(q, then); });
  }
  bool until_working(bool working) {
    return owner.run_until([&] { return health && health->working == working; });
  }

  Owner owner;
  std::optional<Health> health;
  std::vector<OpenReport> opened;
  std::optional<Worker> worker;
};

TEST(Worker, AnswersEveryQuestionFromWhatWasPostedBefore) {
  const TemporaryDirectory dir;
  Stage stage(dir.file("history.db"));
  Worker& worker = *stage.worker;
  worker.add(sample(0, {{kEdge, 45}}));
  worker.add(event(1, "one"));
  worker.put(condition("open", 1));
  Condition cleared = condition("cleared", 2);
  cleared.state = ConditionState::Cleared;
  cleared.cleared = SystemClock().now().wall;
  worker.put(cleared);
  worker.seen(device("1"), "one", "boot", at(1));
  worker.seen(device("2"), "two", "boot", at(1));
  worker.forget_device("uid-2");
  EXPECT_EQ(show(stage.history(query(0, 60))), "0:45/45/45");
  EXPECT_EQ(stage.events()->size(), 1u);
  const auto open = stage.wait_for<std::vector<Condition>>([&](const auto& then) { worker.open_conditions(then); });
  ASSERT_EQ(open->size(), 1u);
  EXPECT_EQ(open->front().id, "open");
  EXPECT_EQ(
      stage.wait_for<std::vector<Condition>>([&](const auto& then) { worker.conditions(at(0), 9, then); })->size(), 2u);
  const auto known = stage.wait_for<std::vector<KnownDevice>>([&](const auto& then) { worker.known_devices(then); });
  ASSERT_EQ(known->size(), 1u);
  EXPECT_EQ(known->front().label, "one");
  ASSERT_EQ(stage.opened.size(), 1u);
  EXPECT_TRUE(stage.opened.front().created);
  ASSERT_TRUE(stage.until_working(true));
  EXPECT_EQ(stage.health->problem, "");
  EXPECT_EQ(stage.health->dropped, 0u);
}

TEST(Worker, AnAnswerCoversWhatWasPostedJustBefore) {
  const TemporaryDirectory dir;
  Stage stage(dir.file("history.db"));
  for (std::size_t i = 1; i <= 300; ++i) {
    stage.worker->add(event(static_cast<std::int64_t>(i), "event"));
    ASSERT_EQ(stage.events()->size(), i);
  }
}

TEST(Worker, FinishesItsWorkBeforeItEnds) {
  const TemporaryDirectory dir;
  const auto path = dir.file("history.db");
  {
    Stage stage(path);
    stage.worker->add(sample(0, {{kEdge, 45}}));
    for (int i = 0; i < 500; ++i) stage.worker->add(event(i, "event"));
  }
  auto db = open_or_die(path);
  EXPECT_EQ(db.events(at(0), at(1000), 1000)->size(), 500u);
  EXPECT_EQ(show(db.history(query(0, 60))), "0:45/45/45");
}

TEST(Worker, CallsNobodyAfterItsEnd) {
  const TemporaryDirectory dir;
  std::atomic<int> calls = 0;
  Owner owner;
  {
    Options options;
    options.path = dir.file("history.db");
    Worker worker(options, owner.deliver(), [&](const Health&) { ++calls; }, [&](const OpenReport&) { ++calls; });
    for (int i = 0; i < 100; ++i) worker.events(at(0), at(1), 1, [&](const Result<std::vector<Event>>&) { ++calls; });
  }
  owner.run_all();
  EXPECT_EQ(calls, 0);
}

TEST(Worker, ADamagedFileIsSetAsideAndSaid) {
  const TemporaryDirectory dir;
  const auto path = dir.file("history.db");
  write_file(path, "rubbish that is no database at all");
  Stage stage(path);
  ASSERT_TRUE(stage.owner.run_until([&] { return !stage.opened.empty(); }));
  EXPECT_EQ(stage.opened.front().set_aside_as, path + ".damaged-1");
  EXPECT_THAT(stage.opened.front().reason, HasSubstr("cut off"));
  stage.worker->add(event(1, "works"));
  EXPECT_EQ(stage.events()->size(), 1u);
}

TEST(Worker, DamageMetWhileRunningIsMended) {
  const TemporaryDirectory dir;
  const auto path = dir.file("history.db");
  {
    auto db = open_or_die(path);
    for (int i = 0; i < 3000; ++i) ASSERT_TRUE(db.add(event(i, std::string(500, 'x'))));
  }
  Stage stage(path);
  ASSERT_TRUE(stage.until_working(true));
  auto content = read_file(path);
  std::fill(content.begin() + 4096, content.end(), '\xa5');
  write_file(path, content);
  // More than the page cache holds: the sweep meets the damage.
  EXPECT_FALSE(stage.events());
  ASSERT_TRUE(stage.owner.run_until([&] { return stage.opened.size() == 2; }));
  EXPECT_EQ(stage.opened.back().set_aside_as, path + ".damaged-1");
  stage.worker->add(event(1, "works"));
  const auto events = stage.events();
  ASSERT_TRUE(events) << events.error().text;
  EXPECT_EQ(events->size(), 1u);
}

TEST(Worker, WithoutADirectoryToWriteToItSaysSoAndRecovers) {
  const TemporaryDirectory dir;
  write_file(dir.file("state"), "a file where the directory should be");
  Stage stage(dir.file("state/history.db"));
  stage.worker->add(event(1, "kept until it can be written"));
  ASSERT_TRUE(stage.until_working(false));
  EXPECT_THAT(stage.health->problem, HasSubstr("state"));
  const auto events = stage.events();
  ASSERT_FALSE(events);
  EXPECT_EQ(events.error().code, ErrorCode::Unavailable);
  std::filesystem::remove(dir.file("state"));
  ASSERT_TRUE(stage.until_working(true));
  EXPECT_EQ(stage.events()->size(), 1u);
}

// Runs `body` in a process of its own; it returns 0 when all held, else the number of the step that did not.
int in_child(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  int status = 0;
  if (::waitpid(child, &status, 0) != child || !WIFEXITED(status)) return -1;
  return WEXITSTATUS(status);
}

// A private file system of `size` over `directory`; gone with the process.
bool mount_small(const std::string& directory, const char* size) {
  return ::unshare(CLONE_NEWNS) == 0 && ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         ::mount("tmpfs", directory.c_str(), "tmpfs", 0, size) == 0;
}

void fill_disk(const std::string& file) {
  std::ofstream out(file, std::ios::binary);
  const std::string block(4096, 'f');
  while (out.write(block.data(), static_cast<std::streamsize>(block.size())).flush()) {
  }
}

TEST(Worker, AFullDiskIsSaidAndSurvivedUntilThereIsSpace) {
  const TemporaryDirectory dir;
  EXPECT_EQ(in_child([&] {
              if (!mount_small(dir.path().string(), "size=6m")) return 1;
              Stage stage(dir.file("history.db"));
              if (!stage.until_working(true)) return 2;
              fill_disk(dir.file("filler"));
              int posted = 0;
              for (; posted < 200; ++posted) stage.worker->add(event(posted, std::string(3000, 'x')));
              if (!stage.until_working(false)) return 3;
              if (stage.health->problem.find("full") == std::string::npos) return 4;
              if (!stage.events()) return 5;  // what is there can be read all the time
              std::filesystem::remove(dir.file("filler"));
              if (!stage.until_working(true)) return 6;
              const auto events = stage.events();
              if (!events || events->size() != 200 || stage.health->dropped != 0) return 7;
              return stage.opened.size() == 1 && stage.opened.front().set_aside_as.empty() ? 0 : 8;
            }),
            0);
}

TEST(Worker, AReadOnlyFileSystemIsSaidAndSurvived) {
  const TemporaryDirectory dir;
  EXPECT_EQ(in_child([&] {
              const auto path = dir.path().string();
              if (!mount_small(path, "size=4m")) return 1;
              {
                auto db = open_or_die(dir.file("history.db"));
              }
              if (::mount("none", path.c_str(), nullptr, MS_REMOUNT | MS_RDONLY, "size=4m") != 0) return 2;
              Stage stage(dir.file("history.db"));
              stage.worker->add(event(1, "kept"));
              if (!stage.until_working(false)) return 3;
              if (stage.health->problem.find("Read-only") == std::string::npos) return 4;
              if (::mount("none", path.c_str(), nullptr, MS_REMOUNT, "size=4m") != 0) return 5;
              if (!stage.until_working(true)) return 6;
              return stage.events()->size() == 1 ? 0 : 7;
            }),
            0);
}

TEST(Worker, AFileThatMayNotGrowIsSurvived) {
  const TemporaryDirectory dir;
  EXPECT_EQ(in_child([&] {
              const auto path = dir.file("history.db");
              {
                auto db = open_or_die(path);
              }
              const rlimit small{100'000, RLIM_INFINITY};
              if (::setrlimit(RLIMIT_FSIZE, &small) != 0) return 1;
              ::signal(SIGXFSZ, SIG_DFL);
              Stage stage(path);
              for (int i = 0; i < 100; ++i) stage.worker->add(event(i, std::string(3000, 'x')));
              if (!stage.until_working(false)) return 2;
              const rlimit large{RLIM_INFINITY, RLIM_INFINITY};
              if (::setrlimit(RLIMIT_FSIZE, &large) != 0) return 3;
              if (!stage.until_working(true)) return 4;
              return stage.events()->size() == 100 ? 0 : 5;
            }),
            0);
}

TEST(DiskFull, SamplesStayInMemoryAndAreWrittenLater) {
  const TemporaryDirectory dir;
  EXPECT_EQ(in_child([&] {
              if (!mount_small(dir.path().string(), "size=512k")) return 1;
              auto db = open_or_die(dir.file("history.db"));
              fill_disk(dir.file("filler"));
              bool refused = false;
              for (int i = 0; i < 500 && !refused; ++i) {
                const auto added = db.add(event(i, std::string(3000, 'x')));
                refused = !added && added.error().code == ErrorCode::Exhausted;
              }
              if (!refused) return 2;
              std::int64_t minute = 0;
              for (; minute < 10; ++minute)
                static_cast<void>(db.add(sample(60 * minute, {{kEdge, 1.0 + static_cast<double>(minute)}})));
              if (show(db.history(query(0, 60))) != "0:1/1/1 60:2/2/2") return 3;
              for (; minute < 40; ++minute)
                static_cast<void>(db.add(sample(60 * minute, {{kEdge, 1.0 + static_cast<double>(minute)}})));
              std::filesystem::remove(dir.file("filler"));
              if (!db.add(sample(60 * minute, {{kEdge, 1.0 + static_cast<double>(minute)}})) || !db.flush()) return 4;
              if (db.damaged()) return 5;
              // Each of the 41 minutes is stored, or was counted as lost.
              return db.history(query(0, 3600))->size() + db.dropped() == 41 ? 0 : 6;
            }),
            0);
}

TEST(Queue, DropsTheOldestSamplesFirstAndCounts) {
  Queue queue;
  queue.push(event(0, "stays"));
  for (int i = 0; i < static_cast<int>(Queue::kMostSamples) + 10; ++i) queue.push(sample(i, {{kEdge, 1}}));
  EXPECT_EQ(queue.dropped(), 10u);
  EXPECT_EQ(queue.samples(), Queue::kMostSamples);
  EXPECT_TRUE(std::holds_alternative<Event>(*queue.pop()));
  EXPECT_EQ(std::get<Sample>(*queue.pop()).time.wall, at(10));
}

TEST(Queue, DropsEventsBeyondItsBoundAndNeverTheConditions) {
  Queue queue;
  queue.push(condition("stays", 0));
  for (int i = 0; i < static_cast<int>(Queue::kMostRecords) + 5; ++i) queue.push(event(i, "event"));
  EXPECT_EQ(queue.dropped(), 6u);
  EXPECT_EQ(std::get<Condition>(*queue.pop()).id, "stays");
  EXPECT_EQ(std::get<Event>(*queue.pop()).time, at(6));
}

TEST(Queue, KeepsTheNewestStateOfACondition) {
  Queue queue;
  queue.push(condition("one", 0));
  queue.push(condition("two", 0));
  Condition later = condition("one", 0);
  later.detail = "later";
  queue.push(later);
  EXPECT_EQ(std::get<Condition>(*queue.pop()).detail, "later");
  EXPECT_EQ(std::get<Condition>(*queue.pop()).id, "two");
  EXPECT_FALSE(queue.pop());
}

TEST(Queue, RefusesTooManyQuestions) {
  Queue queue;
  for (std::size_t i = 0; i < Queue::kMostQueries; ++i) EXPECT_TRUE(queue.push(Query([](Database*) {})));
  EXPECT_FALSE(queue.push(Query([](Database*) {})));
}

}  // namespace
}  // namespace gpuhealth::store
