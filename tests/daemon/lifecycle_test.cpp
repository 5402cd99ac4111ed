// SPDX-License-Identifier: Apache-2.0
// Starting, stopping, and going on while something that the daemon needs is broken.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>

#include "dbus/names.hpp"
#include "dbus/sd.hpp"
#include "sim/machine.hpp"
#include "tests/daemon/rig.hpp"

namespace gpuhealth {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using test::id_of;
using ::testing::HasSubstr;

// The socket that systemd would give it.
class NotifySocket {
 public:
  explicit NotifySocket(const fs::path& path) : fd_(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.string().copy(address.sun_path, sizeof address.sun_path - 1);
    const timeval patience{30, 0};
    setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (bind(fd_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
      throw std::runtime_error("bind");
  }
  // Whether a message that holds `text` comes.
  bool gets(const std::string& text) {
    for (;;) {
      char bytes[4096];
      const auto n = recv(fd_.get(), bytes, sizeof bytes, 0);
      if (n < 0) return false;
      last_.assign(bytes, static_cast<std::size_t>(n));
      if (last_.find(text) != std::string::npos) return true;
    }
  }
  [[nodiscard]] const std::string& last() const { return last_; }

 private:
  Fd fd_;
  std::string last_;
};

class LifecycleTest : public ::testing::Test, protected test::Rig {
 protected:
  void hang(const sim::Card& card) const {
    const auto dir = sim::function_dir(tree.path(), card.place.gpu);
    ASSERT_TRUE(dir);
    fs::remove(*dir / "gpu_busy_percent");
    ASSERT_EQ(mkfifo((*dir / "gpu_busy_percent").c_str(), 0600), 0);
  }
  [[nodiscard]] pid_t owner() const {
    const test::Listener listener(bus.address());
    sd_bus_creds* creds = nullptr;
    pid_t pid = -1;
    if (sd_bus_get_name_creds(listener.bus(), dbus::kBusName, SD_BUS_CREDS_PID, &creds) >= 0)
      sd_bus_creds_get_pid(creds, &pid);
    sd_bus_creds_unref(creds);
    return pid;
  }
  [[nodiscard]] std::string config_problem() const { return client().manager()->config_problem; }

  const sim::Card a_ = sim::idle_card(sim::rx7900xtx(), 0);
  const sim::Card b_ = sim::idle_card(sim::rx6900xt(), 1);
};

TEST_F(LifecycleTest, SystemdIsToldWhenItWatchesAndWhenItStops) {
  plug(std::vector{a_});
  const auto path = home.path() / "notify";
  NotifySocket systemd(path);
  launch({"NOTIFY_SOCKET=" + path.string()});
  ASSERT_TRUE(systemd.gets("READY=1"));
  EXPECT_THAT(systemd.last(), HasSubstr("STATUS=watching 1 GPU"));
  ASSERT_TRUE(sim::add_card(tree.path(), b_));
  EXPECT_TRUE(systemd.gets("STATUS=watching 2 GPUs"));
  EXPECT_EQ(stop(), 0);
  EXPECT_TRUE(systemd.gets("STOPPING=1"));
}

TEST_F(LifecycleTest, AMachineWithoutGpusIsReadyToo) {
  plug({});
  const auto path = home.path() / "notify";
  NotifySocket systemd(path);
  launch({"NOTIFY_SOCKET=" + path.string()});
  ASSERT_TRUE(systemd.gets("READY=1"));
  EXPECT_THAT(systemd.last(), HasSubstr("STATUS=watching 0 GPUs"));
}

TEST_F(LifecycleTest, TheWatchdogIsFedWhileAReaderHangs) {
  plug(std::vector{a_});
  hang(a_);
  const auto path = home.path() / "notify";
  NotifySocket systemd(path);
  launch({"NOTIFY_SOCKET=" + path.string(), "WATCHDOG_USEC=900000"});
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(systemd.gets("WATCHDOG=1")) << i;
}

TEST_F(LifecycleTest, SigtermEndsItWithin2Seconds) {
  plug(std::vector{a_});
  start();
  ASSERT_TRUE(await_samples(1));
  EXPECT_EQ(stop(), 0);
}

TEST_F(LifecycleTest, SigtermEndsItWhileAReaderHangs) {
  plug(std::vector{a_, b_});
  hang(a_);
  start();
  const auto stuck = await_confirmed(ConditionType::SourceStuck, id_of(a_));
  ASSERT_TRUE(stuck);
  EXPECT_EQ(stuck->detail, "A read of its sensor files (opening them) does not return.");
  EXPECT_TRUE(await_samples(2)) << "the other card is read";
  EXPECT_FALSE(daemon->children().empty());
  EXPECT_EQ(stop(), 0);
}

TEST_F(LifecycleTest, SigtermEndsItWithoutABus) {
  plug(std::vector{a_});
  bus.stop();
  launch();
  ASSERT_TRUE(daemon->says("cannot connect to the bus")) << daemon->said();
  EXPECT_EQ(stop(), 0);
}

TEST_F(LifecycleTest, SigtermEndsItWhileTheBusReadsNothing) {
  plug(std::vector{a_});
  start();
  ASSERT_TRUE(await_samples(1));
  bus.pause();
  EXPECT_EQ(stop(), 0);
  bus.resume();
}

TEST_F(LifecycleTest, ABadConfigurationLeavesTheOldOneInForceAndIsSaid) {
  configure(std::string(test::kFastConfig) + "    margin: 10\n");
  plug(std::vector{a_});
  start();
  ASSERT_EQ(config_problem(), "");
  test::Listener listener(bus.address());
  listener.listen();

  configure(std::string(test::kFastConfig) + "    margin: 0\nnonsense: 1\n");
  daemon->send(SIGHUP);
  ASSERT_TRUE(listener.wait_for("PropertiesChanged", "/org/gpuhealth1"));
  EXPECT_THAT(config_problem(), HasSubstr("gpuhealthd.yaml:15:1: unknown key \"nonsense\""));
  // 5 C below its critical limit: too hot by the old margin, not by the new one.
  auto hot = a_;
  hot.state.junction_c = 105;
  ASSERT_TRUE(sim::update_card(tree.path(), hot));
  EXPECT_TRUE(await_confirmed(ConditionType::Overheating, id_of(a_)));

  configure(test::kFastConfig);
  daemon->send(SIGHUP);
  EXPECT_TRUE(await([](dbus::Client& c) { return c.manager()->config_problem.empty(); }));
}

TEST_F(LifecycleTest, ABadConfigurationAtStartIsSaidAndTheDefaultsAreInForce) {
  configure("nonsense: 1\n");
  plug(std::vector{a_});
  start();
  EXPECT_THAT(config_problem(), HasSubstr("gpuhealthd.yaml:1:1: unknown key \"nonsense\""));
  EXPECT_TRUE(await_samples(1));
  configure(test::kFastConfig);
  ASSERT_TRUE(client().reload());
  EXPECT_EQ(config_problem(), "");
}

TEST_F(LifecycleTest, CheckConfigSaysWhatIsWrongAndEnds) {
  configure("nonsense: 1\n");
  auto check = arguments();
  check.emplace_back("--check-config");
  test::Process bad(check, {});
  EXPECT_TRUE(bad.says("gpuhealthd.yaml:1:1: unknown key \"nonsense\"\n")) << bad.said();
  EXPECT_EQ(bad.wait(10s), 3);
  configure("");
  test::Process good(check, {});
  EXPECT_EQ(good.wait(10s), 0);
  std::ranges::replace(check, config.string(), (config / "absent").string());
  test::Process absent(check, {});
  EXPECT_TRUE(absent.says("there is no folder " + (config / "absent").string())) << absent.said();
  EXPECT_EQ(absent.wait(10s), 5);
}

TEST_F(LifecycleTest, ADamagedHistoryIsSetAsideAndSaid) {
  std::ofstream(state / "history.db") << std::string(8192, 'x');
  plug(std::vector{a_});
  start();
  EXPECT_TRUE(await_samples(1));
  const auto is_event = [](const Event& e) {
    return e.type == "store.set-aside" && e.severity == Severity::Warning &&
           e.text.find("history.db.damaged-1") != std::string::npos;
  };
  EXPECT_TRUE(await([&](dbus::Client& c) {
    const auto events = c.events(WallTime{}, SystemClock().now().wall + 1h, 100);
    return events && std::ranges::any_of(*events, is_event);
  }));
  EXPECT_TRUE(fs::exists(state / "history.db.damaged-1"));
  EXPECT_EQ(client().manager()->store_problem, "");
}

TEST_F(LifecycleTest, AHistoryThatCannotBeWrittenIsSaidAndSamplingGoesOn) {
  fs::remove(state);
  std::ofstream(state) << "a file where a folder belongs";
  plug(std::vector{a_});
  start();
  EXPECT_TRUE(await([](dbus::Client& c) { return !c.manager()->store_problem.empty(); }));
  EXPECT_THAT(client().manager()->store_problem, HasSubstr("history.db"));
  EXPECT_TRUE(await_samples(2));
  EXPECT_FALSE(client().events(WallTime{}, SystemClock().now().wall, 10));
  EXPECT_EQ(stop(), 0);
}

TEST_F(LifecycleTest, HistoryComesBackWhenItsPlaceDoes) {
  fs::remove(state);
  std::ofstream(state) << "a file where a folder belongs";
  plug(std::vector{a_});
  start();
  ASSERT_TRUE(await([](dbus::Client& c) { return !c.manager()->store_problem.empty(); }));
  fs::remove(state);
  fs::create_directory(state);
  EXPECT_TRUE(await([](dbus::Client& c) { return c.manager()->store_problem.empty(); }));
}

TEST_F(LifecycleTest, AfterABusThatDiedAllObjectsAreBack) {
  plug(std::vector{a_, b_});
  start();
  ASSERT_TRUE(await_samples(2));
  bus.stop();
  bus.start();
  test::Listener(bus.address()).wait_for_name();
  auto c = client();
  const auto devices = c.devices();
  ASSERT_TRUE(devices) << devices.error().text;
  EXPECT_EQ(devices->size(), 2u);
  EXPECT_TRUE(await_samples(2));
}

TEST_F(LifecycleTest, ASecondDaemonSaysSoAndDoesNotTakeOver) {
  plug(std::vector{a_});
  start();
  auto second_arguments = arguments();
  const auto elsewhere = home.path() / "second";
  fs::create_directory(elsewhere);
  std::ranges::replace(second_arguments, state.string(), elsewhere.string());
  test::Process second(second_arguments, {});
  EXPECT_TRUE(second.says("another process owns the name org.gpuhealth1")) << second.said();
  EXPECT_EQ(owner(), daemon->pid());
  EXPECT_TRUE(await_samples(1));
  second.send(SIGTERM);
  EXPECT_EQ(second.wait(2s), 0);
}

TEST_F(LifecycleTest, ASecondDaemonOnTheSameHistoryIsRefusedAndToldWhoHasIt) {
  plug(std::vector{a_});
  start();
  test::Process second(arguments(), {});
  EXPECT_TRUE(second.says("another gpuhealthd (pid " + std::to_string(daemon->pid()) + ") uses " + state.string()))
      << second.said();
  EXPECT_EQ(second.wait(5s), 7);
  EXPECT_TRUE(await_samples(1));
  // One that was killed leaves nothing that is in the way.
  daemon->send(SIGKILL);
  ASSERT_EQ(daemon->wait(5s), 128 + SIGKILL);
  start();
  EXPECT_TRUE(await_samples(1));
}

TEST_F(LifecycleTest, WhatHistoryKnewIsRememberedWhenItComesBackLate) {
  plug(std::vector{a_, b_});
  start();
  ASSERT_TRUE(await_samples(2));
  ASSERT_EQ(stop(), 0);
  // The next boot: one card is gone, and history's folder is not there yet.
  plug(std::vector{a_}, 2);
  const auto away = home.path() / "away";
  fs::rename(state, away);
  std::ofstream(state) << "a file where a folder belongs";
  start();
  ASSERT_TRUE(await([](dbus::Client& c) { return !c.manager()->store_problem.empty(); }));
  fs::remove(state);
  fs::rename(away, state);
  EXPECT_TRUE(await_confirmed(ConditionType::GpuMissing, id_of(b_)));
}

TEST_F(LifecycleTest, AReaderThatIsKilledIsStartedAgain) {
  plug(std::vector{a_});
  start();
  ASSERT_TRUE(await_samples(1));
  const auto readers = daemon->children();
  ASSERT_EQ(readers.size(), 1u);
  kill(readers.front(), SIGKILL);
  EXPECT_TRUE(await_samples(2));
  EXPECT_NE(daemon->children(), readers);
}

}  // namespace
}  // namespace gpuhealth
