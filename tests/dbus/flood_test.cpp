// SPDX-License-Identifier: Apache-2.0
// Nobody makes the daemon grow: neither a bus that reads nothing, nor clients that ask and do not listen.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "dbus/announce.hpp"
#include "dbus/calls.hpp"
#include "dbus/client.hpp"
#include "dbus/names.hpp"
#include "dbus/server.hpp"
#include "tests/dbus/fixtures.hpp"
#include "tests/dbus/harness.hpp"
#include "tests/support/private_bus.hpp"

namespace gpuhealth::dbus {
namespace {

using test::Host;
using test::kHotId;
using test::Listener;
using test::PrivateBus;

TEST(Flood, TenThousandChangesToABusThatDoesNotReadStayMarks) {
  const PrivateBus bus;
  Host host(bus.address());
  host.on_loop([](Server& s) {
    s.set_device(test::card());
    s.set_sample(test::sample());
  });
  host.start();
  Listener listener(bus.address());
  listener.wait_for_name();
  listener.listen();
  bus.pause();
  std::size_t most = 0;
  host.on_loop([&](Server& s) {
    auto state = test::manager_state();
    for (int i = 0; i < 10'000; ++i) {
      state.store_problem = std::string(8192, 'x') + std::to_string(i);  // 80 MB, were they all kept
      s.set_manager(state);
      auto c = test::overheating();
      c.id += std::to_string(i % 50);
      i % 2 == 0 ? s.set_condition(c) : s.remove_condition(c.id);
      most = std::max(most, s.queued());
    }
    s.set_condition(test::overheating());
  });
  EXPECT_GE(most, kMaxQueuedMessages);  // else the bus was read, and this test shows nothing
  EXPECT_LE(most, kMaxQueuedMessages + 4);
  bus.resume();
  // The last state is told once there is room.
  for (bool seen = false; !seen;) {
    const auto added = listener.wait_for("InterfacesAdded");
    const char* path = nullptr;
    sd_bus_message_read(added.get(), "o", &path);
    seen = std::string(path) == test::kHotPath;
  }
  const auto m = Client::connect(bus.address())->manager();
  EXPECT_EQ(m->store_problem, std::string(8192, 'x') + "9999");
  host.on_loop([](Server& s) { EXPECT_EQ(s.queued(), 0u); });
}

TEST(Flood, AClientThatAsksAndDoesNotReadCostsAFewMessages) {
  // The bus keeps a megabyte for a client and then reads no more of ours; nor does it refuse the client's calls, as it
  // does by default beyond 128 open ones.
  const PrivateBus bus(
      "<limit name=\"max_outgoing_bytes\">1000000000</limit><limit name=\"max_incoming_bytes\">1000000</limit>"
      "<limit name=\"max_replies_per_connection\">50000</limit>");
  Requests requests;
  requests.history = [](const store::HistoryQuery& q, const auto& then) {
    then(std::vector<store::HistoryPoint>(q.max_points));  // 32 KiB
  };
  Host host(bus.address(), std::move(requests));
  host.on_loop([](Server& s) { s.set_device(test::card()); });
  host.start();
  Listener rude(bus.address());
  rude.wait_for_name();
  for (int i = 0; i < 1500; ++i) {
    sd_bus_message* raw = nullptr;
    sd_bus_message_new_method_call(rude.bus(), &raw, kBusName, kRootPath, kManagerInterface, "GetHistory");
    sd_bus_message_append(raw, "ssttu", test::kCardId, "temperature.edge", std::uint64_t{0}, std::uint64_t{10}, 1024u);
    std::uint64_t cookie = 0;  // without it sd-bus says that no answer is wanted
    sd_bus_send(rude.bus(), raw, &cookie);
    sd_bus_message_unref(raw);
  }
  sd_bus_flush(rude.bus());  // all asked, none read
  std::size_t most = 0;
  const auto look = [&] { host.on_loop([&](Server& s) { most = std::max(most, s.queued()); }); };
  const auto end = std::chrono::steady_clock::now() + test::kPatience;
  while (most < kMaxQueuedMessages && std::chrono::steady_clock::now() < end) look();
  ASSERT_GE(most, kMaxQueuedMessages);   // else the bus took all, and this test shows nothing
  for (int i = 0; i < 500; ++i) look();  // the loop takes up to 64 calls a turn: all that were sent have come
  EXPECT_LE(most, kMaxQueuedMessages + 4);
}

TEST(Flood, TooManyOpenQuestionsAreRefused) {
  const PrivateBus bus;
  std::vector<std::function<void(Result<std::vector<Event>>)>> open;
  Requests requests;
  requests.events = [&](WallTime, WallTime, std::uint32_t, auto then) { open.push_back(std::move(then)); };
  Host host(bus.address(), std::move(requests));
  host.start();
  Listener one(bus.address());
  one.wait_for_name();
  const auto ask = [](Listener& from) {
    sd_bus_call_method_async(from.bus(), nullptr, kBusName, kRootPath, kManagerInterface, "GetEvents", nullptr, nullptr,
                             "ttu", std::uint64_t{0}, std::uint64_t{10}, 10u);
  };
  for (std::size_t i = 0; i < kMaxOpenCallsOfOneClient; ++i) ask(one);
  EXPECT_EQ(one.error_of(kRootPath, kManagerInterface, "GetEvents", "ttu", std::uint64_t{0}, std::uint64_t{10}, 10u),
            "org.gpuhealth1.Error.Exhausted");
  host.on_loop([&](Server&) {
    EXPECT_EQ(open.size(), kMaxOpenCallsOfOneClient);
    for (auto& then : open) then(std::vector<Event>{});
    open.clear();
  });
  ask(one);
  one.drain();
  host.on_loop([&](Server&) {
    EXPECT_EQ(open.size(), 1u);  // there is room again
    open.clear();
  });
}

}  // namespace
}  // namespace gpuhealth::dbus
