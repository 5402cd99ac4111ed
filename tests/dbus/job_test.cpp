// SPDX-License-Identifier: Apache-2.0
// A canary run that is asked for over the bus: by a client that follows it, and by one that leaves.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <ctime>
#include <future>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "dbus/canary_client.hpp"
#include "dbus/names.hpp"
#include "tests/dbus/fixtures.hpp"
#include "tests/dbus/harness.hpp"
#include "tests/support/private_bus.hpp"

namespace gpuhealth::dbus {
namespace {

class Jobs : public ::testing::Test {
 protected:
  // A daemon that takes every job as run1. `asked` and `cancelled` are its words.
  void serve() {
    Requests requests;
    requests.run_canary = [this](const JobRequest& request, const auto& then) {
      asked = request;
      server->set_job(test::running());
      then(std::string("run1"));
    };
    requests.cancel_canary = [this](const std::string& id, const std::string& why) -> Result<void> {
      auto job = test::running();
      job.id = id;
      job.state = "cancelled";
      job.reason = why;
      job.ended = wall_from_microseconds(1'764'515'090'000'000);
      server->set_job(job);
      cancelled.set_value(why);
      return {};
    };
    host = std::make_unique<test::Host>(bus.address(), std::move(requests));
    host->on_loop([this](Server& s) {
      server = &s;
      s.set_canary_problem({});
      s.set_device(test::card());
    });
    host->start();
    host->wait_connected();
  }
  void show(const std::string& state, const std::vector<std::string>& results) {
    host->on_loop([&](Server& s) {
      auto job = test::running();
      job.state = state;
      job.results = results;
      s.set_job(job);
    });
  }
  // When the daemon was told to cancel; empty: it was not.
  std::string why_cancelled() {
    auto told = cancelled.get_future();
    return told.wait_for(test::kPatience) == std::future_status::ready ? told.get() : "";
  }

  test::PrivateBus bus;
  Server* server = nullptr;
  std::optional<JobRequest> asked;
  std::promise<std::string> cancelled;
  std::unique_ptr<test::Host> host;
};

TEST_F(Jobs, TheAskerSeesEachResultAndTheEnd) {
  serve();
  auto client = CanaryClient::connect(bus.address());
  ASSERT_TRUE(client);
  EXPECT_EQ(*client->problem(), "");
  const auto id = client->start({"0000:03:00.0", 2, {"triad", "fma32"}});
  ASSERT_TRUE(id) << id.error().text;
  EXPECT_EQ(*id, "run1");
  ASSERT_TRUE(asked);
  EXPECT_EQ(asked->device, "0000:03:00.0");
  EXPECT_EQ(asked->tier, 2U);
  EXPECT_EQ(asked->only, (std::vector<std::string>{"triad", "fma32"}));
  show("running", {"one"});
  std::vector<std::string> seen;
  const auto job = client->follow(*id, [&](const std::string& line) {
    seen.push_back(line);
    if (seen.size() == 1) show("running", {"one", "two", "three"});
    if (seen.size() == 3) show("done", {"one", "two", "three"});
  });
  ASSERT_TRUE(job) << job.error().text;
  EXPECT_EQ(job->state, "done");
  EXPECT_EQ(seen, (std::vector<std::string>{"one", "two", "three"}));
  EXPECT_EQ(job->results, seen);
  EXPECT_EQ(job->device, test::kCardId);
  EXPECT_EQ(job->tier, 1U) << "as the daemon shows it";
}

TEST_F(Jobs, WhoLeavesTheBusEndsTheJobThatWasAskedFor) {
  serve();
  {
    auto client = CanaryClient::connect(bus.address());
    ASSERT_TRUE(client);
    ASSERT_TRUE(client->start({}));
  }
  EXPECT_EQ(why_cancelled(), "its asker left the bus");
  // The loop goes on, and is idle: who has left is not told again and again.
  auto other = CanaryClient::connect(bus.address());
  ASSERT_TRUE(other);
  const auto cpu = std::clock();
  const auto problem = other->problem();
  ASSERT_TRUE(problem) << problem.error().text;
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  EXPECT_LT(std::clock() - cpu, CLOCKS_PER_SEC / 4);
}

TEST_F(Jobs, AnotherMayCancelIt) {
  serve();
  auto asker = CanaryClient::connect(bus.address());
  ASSERT_TRUE(asker->start({}));
  auto other = CanaryClient::connect(bus.address());
  const auto done = other->cancel("run1");
  ASSERT_TRUE(done) << done.error().text;
  EXPECT_EQ(why_cancelled(), "cancelled");
  const auto job = asker->follow("run1", {});
  ASSERT_TRUE(job);
  EXPECT_EQ(job->state, "cancelled");
  EXPECT_EQ(job->reason, "cancelled");
}

TEST_F(Jobs, AFourthTierIsRefusedAndTheDaemonIsNotAsked) {
  serve();
  auto client = CanaryClient::connect(bus.address());
  const auto id = client->start({"", 4, {}});
  ASSERT_FALSE(id);
  EXPECT_EQ(id.error().code, ErrorCode::InvalidInput);
  EXPECT_FALSE(asked);
}

TEST_F(Jobs, ADaemonWithoutCanariesSaysSo) {
  host = std::make_unique<test::Host>(bus.address(), Requests{});
  host->start();
  host->wait_connected();
  auto client = CanaryClient::connect(bus.address());
  EXPECT_EQ(*client->problem(), "this daemon runs no canaries");
  const auto id = client->start({});
  ASSERT_FALSE(id);
  EXPECT_EQ(id.error().code, ErrorCode::Unavailable);
}

TEST_F(Jobs, NoDaemonIsAnErrorAndNotAWait) {
  auto client = CanaryClient::connect(bus.address());
  ASSERT_TRUE(client);
  const auto problem = client->problem();
  ASSERT_FALSE(problem);
  EXPECT_EQ(problem.error().code, ErrorCode::Unavailable);
}

}  // namespace
}  // namespace gpuhealth::dbus
