// SPDX-License-Identifier: Apache-2.0
// What is taken from the daemon or done to it, and what it does then (docs/robustness.md).
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <thread>

#include "dbus/names.hpp"
#include "dbus/sd.hpp"
#include "sim/machine.hpp"
#include "tests/daemon/rig.hpp"
#include "tests/paths.hpp"

namespace gpuhealth {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using test::id_of;
using ::testing::HasSubstr;

#ifdef GPUHEALTH_SANITIZED
constexpr bool kSanitized = true;  // memory is the sanitizer's
#else
constexpr bool kSanitized = false;
#endif

class RobustnessTest : public ::testing::Test, protected test::Rig {
 protected:
  // A program in the place of gpuhealth-reader.
  void start_with_reader(const std::string& script) {
    const auto path = home.path() / "reader";
    std::ofstream(path) << "#!/bin/sh\n" << script;
    fs::permissions(path, fs::perms(0755));
    auto all = arguments();
    all.insert(all.end(), {"--reader", path.string()});
    test::Listener listener(bus.address());
    daemon = std::make_unique<test::Process>(all, std::vector<std::string>{});
    listener.wait_for_name();
  }
  [[nodiscard]] bool answers() const {
    auto c = client();
    return c.manager().has_value();
  }
  // A number of /proc/PID/status, in KiB.
  [[nodiscard]] long status(const std::string& name) const {
    std::ifstream file("/proc/" + std::to_string(daemon->pid()) + "/status");
    for (std::string line; std::getline(file, line);) {
      if (line.starts_with(name + ":")) return std::stol(line.substr(name.size() + 1));
    }
    return -1;
  }
  [[nodiscard]] long descriptors() const {
    return std::distance(fs::directory_iterator("/proc/" + std::to_string(daemon->pid()) + "/fd"),
                         fs::directory_iterator());
  }
  bool runs() const { return !daemon->wait(1ms).has_value(); }
  void limit(int resource, rlim_t soft) const {
    rlimit now{};
    ASSERT_EQ(prlimit(daemon->pid(), static_cast<__rlimit_resource>(resource), nullptr, &now), 0);
    now.rlim_cur = soft;
    ASSERT_EQ(prlimit(daemon->pid(), static_cast<__rlimit_resource>(resource), &now, nullptr), 0);
  }

  const sim::Card a_ = sim::idle_card(sim::rx7900xtx(), 0);
};

// --- children --------------------------------------------------------------------------------------------------------

TEST_F(RobustnessTest, AReaderThatWritesGarbageIsEndedAndStartedAgain) {
  plug(std::vector{a_});
  start_with_reader("head -c 65536 /dev/urandom; exec sleep 1000\n");
  ASSERT_TRUE(daemon->says("gpuhealth-reader:")) << daemon->said();
  EXPECT_TRUE(answers());
  EXPECT_EQ(stop(), 0);
}

TEST_F(RobustnessTest, AReaderThatWritesWithoutEndFillsNoMemory) {
  plug(std::vector{a_});
  // A frame's head that promises less than a payload may have, and then gigabytes.
  start_with_reader("exec cat /dev/zero\n");
  ASSERT_TRUE(daemon->says("gpuhealth-reader:")) << daemon->said();
  const auto before = status("VmRSS");
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(answers());
  if (!kSanitized) {
    EXPECT_LT(status("VmRSS"), before + 16384);
  }
  EXPECT_EQ(stop(), 0);
}

TEST_F(RobustnessTest, AReaderThatClosesItsPipesIsStartedAgain) {
  plug(std::vector{a_});
  start_with_reader("exec <&- >&-; exec sleep 1000\n");
  ASSERT_TRUE(daemon->says("gpuhealth-reader:")) << daemon->said();
  EXPECT_TRUE(answers());
  EXPECT_EQ(stop(), 0);
}

TEST_F(RobustnessTest, AReaderThatEndsAtOnceIsNotStartedWithoutEnd) {
  plug(std::vector{a_});
  const auto count = home.path() / "starts";
  start_with_reader("echo x >> " + count.string() + "\nexit 1\n");
  ASSERT_TRUE(daemon->says("gpuhealth-reader:")) << daemon->said();
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(answers());
    std::this_thread::sleep_for(20ms);  // a second in which a loop without rest would start hundreds
  }
  std::ifstream file(count);
  const auto starts = std::count(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>(), 'x');
  EXPECT_GE(starts, 1);
  EXPECT_LE(starts, 12);  // those for samples, for the processes and for the log, each with its rest
}

TEST_F(RobustnessTest, AReaderThatIgnoresEverythingDoesNotHoldUpTheEnd) {
  plug(std::vector{a_});
  start_with_reader("trap '' TERM INT HUP PIPE\nwhile :; do sleep 1; done\n");
  ASSERT_TRUE(answers());
  EXPECT_EQ(stop(), 0);
}

// --- signals at any moment -------------------------------------------------------------------------------------------

TEST_F(RobustnessTest, SigtermAtAnyMomentOfTheStartEndsItWell) {
  plug(std::vector{a_});
  for (int i = 0; i < 20; ++i) {
    launch();
    std::this_thread::sleep_for(std::chrono::milliseconds(5 * i));  // spread over the start
    daemon->send(SIGTERM);
    const auto ended = daemon->wait(kSanitized ? 10s : 2s);
    ASSERT_TRUE(ended) << "after " << 5 * i << " ms";
    // Before its handlers are in place the signal ends it the plain way.
    EXPECT_TRUE(*ended == 0 || *ended == 128 + SIGTERM) << *ended;
  }
  start();
  EXPECT_TRUE(await_samples(1));
  EXPECT_EQ(client().manager()->store_problem, "");
}

TEST_F(RobustnessTest, AHundredHangupsAreSurvived) {
  plug(std::vector{a_});
  start();
  for (int i = 0; i < 100; ++i) {
    configure(std::string(test::kFastConfig) + (i % 2 == 0 ? "nonsense: 1\n" : ""));
    daemon->send(SIGHUP);
  }
  configure(test::kFastConfig);
  daemon->send(SIGHUP);
  EXPECT_TRUE(await([](dbus::Client& c) { return c.manager()->config_problem.empty(); }));
  EXPECT_TRUE(await_samples(1));
  EXPECT_EQ(stop(), 0);
}

// --- what is taken away ----------------------------------------------------------------------------------------------

TEST_F(RobustnessTest, WithoutDescriptorsItGoesOnAndRecovers) {
  plug(std::vector{a_});
  start();
  ASSERT_TRUE(await_samples(1));
  limit(RLIMIT_NOFILE, static_cast<rlim_t>(descriptors()));
  for (const auto reader : daemon->children()) kill(reader, SIGKILL);  // a new one needs pipes
  ASSERT_TRUE(daemon->says("Too many open files")) << daemon->said();
  EXPECT_TRUE(runs());
  limit(RLIMIT_NOFILE, 4096);
  EXPECT_TRUE(await_samples(2)) << "it samples again";
  EXPECT_EQ(stop(), 0);
}

// An allocation that fails ends it, as systemd is told; what was written stays, and what was open goes on.
TEST_F(RobustnessTest, WhenMemoryFailsWhatWasKeptIsSoundAfterwards) {
  if (kSanitized) return;  // its memory is the sanitizer's
  const auto refuse = home.path() / "no-memory";
  plug(std::vector{a_});
  start({"LD_PRELOAD=" GPUHEALTH_BIN_DIR "/standin/libmemory.so", "STANDIN_MEMORY=" + refuse.string()});
  auto hot = a_;
  hot.state.junction_c = 112;
  ASSERT_TRUE(sim::update_card(tree.path(), hot));
  const auto before = await_confirmed(ConditionType::Overheating, id_of(a_));
  ASSERT_TRUE(before);
  // It is told a moment before it is kept; this answer comes after.
  ASSERT_TRUE(await([&](dbus::Client& c) {
    const auto past = c.past_conditions({}, 10);
    return past && test::find(*past, ConditionType::Overheating, id_of(a_));
  }));
  std::ofstream(refuse) << "";
  const auto ended = daemon->wait(10s);
  std::printf("without memory it %s\n", ended ? ("ended with " + std::to_string(*ended)).c_str() : "goes on");
  fs::remove(refuse);
  if (!ended) {  // it did without, and is itself again
    EXPECT_TRUE(await_samples(2));
    const auto open = client().conditions();
    ASSERT_TRUE(open);
    const auto still = test::find(*open, ConditionType::Overheating, id_of(a_));
    ASSERT_TRUE(still);
    EXPECT_EQ(still->id, before->id) << daemon->said();
    ASSERT_TRUE(await([](dbus::Client& c) { return c.manager()->store_problem.empty(); }));
    ASSERT_EQ(stop(), 0);
    daemon->says("nothing more");
    std::printf("it said:\n%s", daemon->said().c_str());
  }
  start();
  const auto after = await_confirmed(ConditionType::Overheating, id_of(a_));
  ASSERT_TRUE(after);
  EXPECT_EQ(after->id, before->id) << "the same condition, not a new one";
  EXPECT_EQ(client().manager()->store_problem, "");
  EXPECT_FALSE(fs::exists(state / "history.db.damaged-1"));
}

TEST_F(RobustnessTest, AHistoryOfANewerVersionIsLeftAloneAndSaid) {
  plug(std::vector{a_});
  start();
  ASSERT_TRUE(await_samples(1));
  ASSERT_EQ(stop(), 0);
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open((state / "history.db").c_str(), &db), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(db, "PRAGMA user_version = 9999", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(db);
  start();
  EXPECT_TRUE(await([](dbus::Client& c) { return !c.manager()->store_problem.empty(); }));
  EXPECT_THAT(client().manager()->store_problem, HasSubstr("newer"));
  EXPECT_TRUE(await_samples(2));
  EXPECT_FALSE(fs::exists(state / "history.db.damaged-1"));
}

// --- the clock -------------------------------------------------------------------------------------------------------

TEST_F(RobustnessTest, AClockThatIsSetByDaysChangesNoJudgement) {
  if (kSanitized) return;  // the stand-in clock must come before the sanitizer, which it does not bear
  const auto shift = home.path() / "clock";
  const auto set_clock = [&](long seconds) {
    std::ofstream(home.path() / "clock.new") << seconds;
    fs::rename(home.path() / "clock.new", shift);
  };
  set_clock(0);
  plug(std::vector{a_});
  start({"LD_PRELOAD=" GPUHEALTH_BIN_DIR "/standin/libclock.so", "STANDIN_CLOCK=" + shift.string()});
  auto hot = a_;
  hot.state.junction_c = 112;
  ASSERT_TRUE(sim::update_card(tree.path(), hot));
  const auto before = await_confirmed(ConditionType::Overheating, id_of(a_));
  ASSERT_TRUE(before);
  for (const long days : {3L, -10L, 400L, 0L}) {
    set_clock(days * 86400);
    ASSERT_TRUE(await_samples(3)) << days;
    const auto open = client().conditions();
    ASSERT_TRUE(open);
    const auto still = test::find(*open, ConditionType::Overheating, id_of(a_));
    ASSERT_TRUE(still) << days;
    EXPECT_EQ(still->id, before->id) << days;
    EXPECT_EQ(open->size(), 1u) << "nothing is stale, missing or new for a clock that was set by " << days << " days";
  }
  ASSERT_TRUE(sim::update_card(tree.path(), a_));
  EXPECT_TRUE(await([](dbus::Client& c) {
    const auto open = c.conditions();
    return open && open->empty();
  }));
}

// --- many clients ----------------------------------------------------------------------------------------------------

// A thousand connections ask each as fast as it may and read nothing; somebody else's questions are answered all the
// while.
TEST_F(RobustnessTest, AThousandClientsThatNeverReadDelayNobody) {
  const test::PrivateBus large(
      "<limit name=\"max_completed_connections\">4096</limit><limit name=\"max_incomplete_connections\">4096</limit>"
      "<limit name=\"max_connections_per_user\">4096</limit>");
  plug(std::vector{a_});
  auto all = arguments();
  std::ranges::replace(all, bus.address(), large.address());
  test::Listener listener(large.address());
  daemon = std::make_unique<test::Process>(all, std::vector<std::string>{});
  listener.wait_for_name();
  auto asker = dbus::Client::connect(large.address(), 20s);
  ASSERT_TRUE(asker);
  std::vector<std::chrono::milliseconds> waits;
  const auto ask = [&] {
    const auto began = std::chrono::steady_clock::now();
    const bool answered = asker->manager().has_value();
    waits.push_back(std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - began));
    return answered;
  };
  const auto memory = status("VmRSS");
  std::vector<dbus::BusPtr> rude;
  for (int i = 0; i < 1000; ++i) {
    ASSERT_GE(dbus::open_bus(rude.emplace_back(), large.address()), 0) << i;
  }
  int asked = 0;
  for (auto& one : rude) {
    for (int i = 0; i < 10; ++i) {
      sd_bus_message* raw = nullptr;
      ASSERT_GE(sd_bus_message_new_method_call(one.get(), &raw, dbus::kBusName, dbus::kRootPath,
                                               "org.freedesktop.DBus.ObjectManager", "GetManagedObjects"),
                0);
      std::uint64_t cookie = 0;
      sd_bus_send(one.get(), raw, &cookie);
      sd_bus_message_unref(raw);
    }
    sd_bus_flush(one.get());
    if (++asked % 25 == 0) {
      ASSERT_TRUE(ask()) << asked;  // in the midst of it
    }
  }
  ASSERT_TRUE(ask());
  const auto worst = *std::ranges::max_element(waits);
  RecordProperty("worst_ms", static_cast<int>(worst.count()));
  std::printf("worst answer beside 1000 clients: %d ms; memory %ld KiB, %ld before\n", static_cast<int>(worst.count()),
              status("VmRSS"), memory);
  if (!kSanitized) {
    EXPECT_LT(worst, 10s);
    EXPECT_LT(status("VmRSS"), memory + 32768);
  }
  daemon->send(SIGTERM);
  EXPECT_EQ(daemon->wait(kSanitized ? 10s : 2s), 0);
}

}  // namespace
}  // namespace gpuhealth
