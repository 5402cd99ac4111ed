// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "dbus/client.hpp"
#include "dbus/server.hpp"
#include "tests/dbus/fixtures.hpp"
#include "tests/dbus/harness.hpp"
#include "tests/support/private_bus.hpp"

namespace gpuhealth::dbus {
namespace {

using test::Host;
using test::Listener;
using test::PrivateBus;

void fill(Server& s) {
  s.set_manager(test::manager_state());
  s.set_device(test::card());
  s.set_sample(test::sample());
  s.set_condition(test::overheating());
}

TEST(Reconnect, AfterTheBusDiedEverythingIsThereAgain) {
  PrivateBus bus;
  Host host(bus.address());
  host.on_loop(fill);
  host.start();
  Listener(bus.address()).wait_for_name();
  bus.stop();
  const Error problem = host.wait_for_problem();
  EXPECT_EQ(problem.code, ErrorCode::Unavailable);
  host.on_loop([](Server& s) {
    EXPECT_FALSE(s.connected());
    auto another = test::overheating();
    another.id = "raised-while-there-was-no-bus";
    s.set_condition(another);
  });
  bus.start();
  Listener(bus.address()).wait_for_name();
  auto client = Client::connect(bus.address());
  ASSERT_TRUE(client) << client.error().text;
  EXPECT_EQ(client->devices()->size(), 1u);
  EXPECT_EQ(client->conditions()->size(), 2u);
  EXPECT_EQ(client->manager()->version, "0.1.0");
  // And changes are told again.
  Listener listener(bus.address());
  listener.listen();
  host.on_loop([](Server& s) { s.remove_condition("raised-while-there-was-no-bus"); });
  EXPECT_TRUE(listener.wait_for("InterfacesRemoved"));
}

TEST(Reconnect, WithoutABusItSaysSoAndGoesOnTrying) {
  PrivateBus bus;
  bus.stop();
  Host host(bus.address());
  host.on_loop(fill);
  host.start();
  const Error problem = host.wait_for_problem();
  EXPECT_EQ(problem.code, ErrorCode::Unavailable);
  EXPECT_NE(problem.text.find(bus.address()), std::string::npos) << problem.text;
  bus.start();
  Listener(bus.address()).wait_for_name();
}

TEST(Reconnect, ANameOwnedBySomebodyElseIsReportedAndTakenWhenItIsFree) {
  const PrivateBus bus;
  auto other = std::make_unique<Listener>(bus.address());
  ASSERT_TRUE(other->own("org.gpuhealth1"));
  Host host(bus.address());
  host.on_loop(fill);
  host.start();
  const Error problem = host.wait_for_problem();
  EXPECT_EQ(problem.code, ErrorCode::Unavailable);
  EXPECT_NE(problem.text.find("another process owns the name org.gpuhealth1"), std::string::npos) << problem.text;
  host.on_loop([](Server& s) { EXPECT_FALSE(s.connected()); });
  Listener watcher(bus.address());
  other.reset();
  watcher.wait_for_name();
  EXPECT_TRUE(Client::connect(bus.address()));
}

TEST(Reconnect, ABusThatRefusesTheNameIsReported) {
  const PrivateBus bus("<policy context=\"mandatory\"><deny own=\"org.gpuhealth1\"/></policy>");
  Host host(bus.address());
  host.start();
  const Error problem = host.wait_for_problem();
  EXPECT_EQ(problem.code, ErrorCode::NotPermitted);
}

TEST(Reconnect, AServerThatStopsAnswersWhatIsOpen) {
  const PrivateBus bus;
  Listener listener(bus.address());
  std::function<void(Result<std::vector<Event>>)> kept;  // answered after the server is gone
  {
    Requests requests;
    requests.events = [&](WallTime, WallTime, std::uint32_t, auto then) { kept = std::move(then); };
    Host host(bus.address(), std::move(requests));
    host.start();
    listener.wait_for_name();
    sd_bus_call_method_async(listener.bus(), nullptr, "org.gpuhealth1", "/org/gpuhealth1", "org.gpuhealth1.Manager",
                             "GetEvents", nullptr, nullptr, "ttu", std::uint64_t{0}, std::uint64_t{10}, 10u);
    listener.drain();
    host.on_loop([&](Server&) { EXPECT_TRUE(kept); });
  }
  kept(std::vector<Event>{});
}

}  // namespace
}  // namespace gpuhealth::dbus
