// SPDX-License-Identifier: Apache-2.0
// What the client makes of a real server on a real bus.
#include "dbus/client.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <utility>

#include "dbus/names.hpp"
#include "tests/dbus/fixtures.hpp"
#include "tests/dbus/harness.hpp"
#include "tests/support/private_bus.hpp"
#include "tests/support/temp_dir.hpp"

namespace gpuhealth::dbus {
namespace {

using test::card;
using test::Host;
using test::kCardId;
using test::kHotId;
using test::Listener;
using test::overheating;
using test::PrivateBus;
using test::sample;

Requests answers() {
  Requests r;
  r.history = [](const store::HistoryQuery& q, const auto& then) {
    std::vector<store::HistoryPoint> points;
    const bool known = q.device == kCardId || q.device == "uid-gone";
    for (std::uint32_t i = 0; known && i < q.max_points; ++i)
      points.push_back({q.since + std::chrono::minutes(i), 1.0 + i, 2.0 + i, 3.0 + i});
    then(points);
  };
  r.events = [](WallTime since, WallTime, std::uint32_t, const auto& then) {
    then(std::vector<Event>{{since, "device.added", Severity::Info, kCardId, "a card came", "boot"}});
  };
  r.past_conditions = [](WallTime, std::uint32_t, const auto& then) {
    auto c = overheating();
    c.state = ConditionState::Cleared;
    c.cleared = wall_from_microseconds(1'764'515'900'000'000);
    then(std::vector<Condition>{c});
  };
  const auto by_id = [](const std::string& id, const std::function<void(Result<void>)>& then) {
    then(id == test::kCapId ? Result<void>() : fail(ErrorCode::NotFound, "there is no action"));
  };
  r.confirm_action = by_id;
  r.revert_action = by_id;
  r.reload_policy = [](const std::function<void(Result<void>)>& then) { then({}); };
  return r;
}

class ClientTest : public ::testing::Test {
 protected:
  ClientTest() {
    Listener listener(bus.address());
    host.on_loop([](Server& s) {
      s.set_manager(test::manager_state());
      s.set_device(card());
      s.set_sample(sample());
      s.set_condition(overheating());
    });
    host.start();
    listener.wait_for_name();
  }
  Client client() {
    auto c = Client::connect(bus.address());
    if (!c) throw std::runtime_error(c.error().text);
    return std::move(*c);
  }

  PrivateBus bus;
  Host host{bus.address(), answers()};
};

TEST_F(ClientTest, ASnapshotHoldsAllOfOneMoment) {
  const auto s = client().snapshot();
  ASSERT_TRUE(s) << s.error().text;
  EXPECT_EQ(s->manager.version, "0.1.0");
  ASSERT_EQ(s->devices.size(), 1U);
  EXPECT_EQ(s->devices[0].id, kCardId);
  ASSERT_EQ(s->conditions.size(), 1U);
  EXPECT_EQ(s->conditions[0].id, kHotId);
  EXPECT_EQ(text(s->manager_properties, "Version"), "0.1.0");
  EXPECT_DOUBLE_EQ(number(s->manager_properties, "Samples"), 42);
  EXPECT_FALSE(has(s->manager_properties, "NoSuchProperty"));
  EXPECT_EQ(text(s->manager_properties, "Samples"), "");         // of another type
  EXPECT_FALSE(has(s->manager_properties, "AmdgpuParameters"));  // of a type that is not kept
}

TEST(ClientWithoutDaemon, AProgramThatLooksAllDayStartsNone) {
  const test::TempDir folder;
  const auto mark = folder.path() / "started";
  std::ofstream(folder.path() / "org.gpuhealth1.service")
      << "[D-BUS Service]\nName=org.gpuhealth1\nExec=/usr/bin/touch " << mark.string() << "\n";
  const PrivateBus bus("<servicedir>" + folder.string() + "</servicedir>");
  const auto never = Client::connect(bus.address(), std::chrono::seconds(5), Activation::Never);
  ASSERT_FALSE(never);
  EXPECT_EQ(never.error().code, ErrorCode::Unavailable);
  EXPECT_FALSE(std::filesystem::exists(mark));
  EXPECT_FALSE(Client::connect(bus.address(), std::chrono::seconds(5)));
  EXPECT_TRUE(std::filesystem::exists(mark));
}

TEST_F(ClientTest, SeesTheManager) {
  const auto m = client().manager();
  ASSERT_TRUE(m) << m.error().text;
  EXPECT_EQ(m->version, "0.1.0");
  EXPECT_EQ(m->boot_id, "b00710ad-0000-4000-8000-000000000001");
  EXPECT_EQ(m->kernel_release, "6.12.57-amd64");
  EXPECT_EQ(m->amdgpu.version, "6.12.12");
  EXPECT_EQ(m->amdgpu.srcversion, "9B3E1A0C5D7F");
  EXPECT_EQ(m->amdgpu.parameters,
            (std::map<std::string, std::string>{{"ppfeaturemask", "0xfff7bfff"}, {"runpm", "-1"}}));
  EXPECT_EQ(to_microseconds(m->started), 1'764'514'000'000'000);
  EXPECT_EQ(m->samples, 42u);
  EXPECT_EQ(m->health, "critical");
  EXPECT_EQ(m->policy_mode, "enforce");
  EXPECT_EQ(m->safe_mode, "/etc/gpuhealthd/observe is there");
  EXPECT_EQ(m->policy_problem, "50-a.yaml:3:1: there is no \"rulez\"");
  EXPECT_TRUE(m->breaker_open);
  EXPECT_EQ(m->policy_files, std::vector<std::string>{"/etc/gpuhealthd/policy.d/50-a.yaml"});
}

TEST_F(ClientTest, SeesActionsWithAllThatIsKnown) {
  host.on_loop([](Server& s) { s.set_action(test::power_cap()); });
  const auto actions = client().actions();
  ASSERT_TRUE(actions) << actions.error().text;
  EXPECT_EQ(*actions, std::vector<ActionView>{test::power_cap()});
  host.on_loop([](Server& s) { s.remove_action(test::kCapId); });
  EXPECT_EQ(client().actions().value(), std::vector<ActionView>{});
}

TEST_F(ClientTest, IsToldWhatBecomesOfAnAction) {
  Listener listener(bus.address());
  listener.listen();
  host.wait_connected();
  host.on_loop([](Server& s) { s.set_action(test::power_cap()); });
  ASSERT_NE(listener.wait_for("InterfacesAdded", "/org/gpuhealth1"), nullptr);
  host.on_loop([](Server& s) {
    auto reverted = test::power_cap();
    reverted.state = "reverted";
    s.set_action(reverted);
  });
  EXPECT_NE(listener.wait_for("PropertiesChanged", test::kCapPath), nullptr);
  host.on_loop([](Server& s) { s.remove_action(test::kCapId); });
  EXPECT_NE(listener.wait_for("InterfacesRemoved", "/org/gpuhealth1"), nullptr);
}

TEST_F(ClientTest, ConfirmsAndTakesBackByIdAndLearnsWhatWasWrong) {
  auto asking = client();
  EXPECT_TRUE(asking.confirm_action("000003-power-cap"));
  EXPECT_TRUE(asking.revert_action("000003-power-cap"));
  const auto none = asking.revert_action("000099-power-cap");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::NotFound);
  EXPECT_EQ(none.error().text, "there is no action");
  EXPECT_TRUE(asking.reload_policy());
  const auto refused = asking.reset_breaker();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::Unavailable) << "this daemon has none";
}

TEST_F(ClientTest, SeesADeviceWithAllThatIsKnown) {
  const auto devices = client().devices();
  ASSERT_TRUE(devices) << devices.error().text;
  ASSERT_EQ(devices->size(), 1u);
  const auto& d = devices->front();
  EXPECT_EQ(d.id, kCardId);
  EXPECT_EQ(d.path, test::kCardPath);
  EXPECT_EQ(d.pci, "0000:03:00.0");
  EXPECT_EQ(d.name, "Radeon RX 7900 XTX");
  EXPECT_EQ(d.other_names, (std::vector<std::string>{"Radeon RX 7900 XT", "Radeon RX 7900M"}));
  EXPECT_EQ(d.vendor_id, "0x1002");
  EXPECT_EQ(d.device_id, "0x744c");
  EXPECT_EQ(d.subsystem_id, "0x1da2:0xe471");
  EXPECT_EQ(d.driver, "amdgpu");
  EXPECT_EQ(d.unique_id, "49afc8b43a8a6d30");
  EXPECT_EQ(d.vbios_version, "113-EXT800241");
  EXPECT_EQ(d.family, "Navi 3x");
  EXPECT_EQ(d.gfx, "gfx1100");
  EXPECT_EQ(d.firmware, (std::map<std::string, std::string>{{"smc", "0x004e7e00"}, {"vcn", "0x0811f000"}}));
  EXPECT_EQ(d.runtime_status, "active");
  EXPECT_EQ(d.health, "critical");
  EXPECT_EQ(d.performance_level, "auto");
  EXPECT_EQ(d.power_profile, "BOOTUP_DEFAULT");
  EXPECT_EQ(d.throttle_reasons, std::vector<std::string>{"PPT0"});
  EXPECT_TRUE(d.throttle_known);
  EXPECT_EQ(to_microseconds(d.sampled), 1'764'515'000'250'000);
  const std::vector<Reading> readings = {{ReadingId::TemperatureEdge, ReadingStatus::Valid, 0, 45.0},
                                         {ReadingId::PowerAverage, ReadingStatus::Unreadable, 16, 0},
                                         {ReadingId::FanRpm, ReadingStatus::Valid, 0, 0},
                                         {ras_reading(0, RasKind::Correctable), ReadingStatus::Valid, 0, 7}};
  EXPECT_EQ(d.readings, readings);
  EXPECT_EQ(d.compute_nodes, (std::vector<ComputeNode>{{1, 4711, 0, "gfx1100", 128, 96}}));
  EXPECT_EQ(d.compute_partition, "SPX");
  EXPECT_EQ(d.memory_partition, "NPS1");
  EXPECT_EQ(d.xgmi_peers, std::vector<std::string>{"0000:43:00.0"});
  EXPECT_TRUE(d.clients.empty());
}

TEST_F(ClientTest, SeesWhoUsesADeviceByNumberAndNotByName) {
  GpuClient known;
  known.pid = 4242;
  known.started = 777;
  known.vram_bytes = 1ULL << 33U;
  known.gtt_bytes = 4096;
  known.engine_percent = 12.5;
  known.cpu_percent = 101;
  known.queues = true;
  GpuClient bare;
  bare.pid = 4343;
  host.on_loop([&](Server& s) { s.set_clients(kCardId, {known, bare}); });
  const auto devices = client().devices();
  ASSERT_TRUE(devices) << devices.error().text;
  EXPECT_EQ(devices->front().clients, (std::vector<GpuClient>{known, bare}));
  EXPECT_TRUE(devices->front().client_names.empty());
}

TEST_F(ClientTest, SeesOpenConditionsWorstFirst) {
  auto slow = overheating();
  slow.id = "a-warning-that-stood-longer";
  slow.type = ConditionType::PcieDowngraded;
  slow.severity = Severity::Warning;
  slow.since = wall_from_microseconds(1'000'000);
  host.on_loop([&](Server& s) { s.set_condition(slow); });
  const auto conditions = client().conditions();
  ASSERT_TRUE(conditions) << conditions.error().text;
  ASSERT_EQ(conditions->size(), 2u);
  const auto& c = conditions->front();
  EXPECT_EQ(c.id, kHotId);
  EXPECT_EQ(c.type, ConditionType::Overheating);
  EXPECT_EQ(c.severity, Severity::Critical);
  EXPECT_EQ(c.state, ConditionState::Confirmed);
  EXPECT_FALSE(c.acknowledged);
  EXPECT_EQ(c.device, kCardId);
  EXPECT_EQ(c.device_label, "Radeon RX 7900 XTX at 0000:03:00.0");
  EXPECT_EQ(c.detail, "junction is at 112 C; its limit is 110 C");
  EXPECT_EQ(c.evidence, (std::vector<Evidence>{{"temperature.junction", "112 C"}, {"limit", "110 C"}}));
  EXPECT_EQ(to_microseconds(c.since), 1'764'515'000'250'000);
  EXPECT_EQ(to_microseconds(c.last_seen), 1'764'515'060'250'000);
  EXPECT_EQ(c.boot_id, "b00710ad-0000-4000-8000-000000000001");
  EXPECT_EQ(conditions->back().id, "a-warning-that-stood-longer");
}

TEST_F(ClientTest, GetsHistoryOfAtMost4096Points) {
  store::HistoryQuery q{kCardId, ReadingId::TemperatureEdge, wall_from_microseconds(60'000'000), WallTime::max(), 3};
  const auto three = client().history(q);
  ASSERT_TRUE(three) << three.error().text;
  ASSERT_EQ(three->size(), 3u);
  EXPECT_EQ(to_microseconds((*three)[1].time), 120'000'000);
  EXPECT_EQ((*three)[1].min, 2.0);
  EXPECT_EQ((*three)[1].mean, 3.0);
  EXPECT_EQ((*three)[1].max, 4.0);
  q.max_points = 1'000'000;
  EXPECT_EQ(client().history(q)->size(), 4096u);
}

TEST_F(ClientTest, GetsEventsAndPastConditions) {
  const auto events = client().events(wall_from_microseconds(5), wall_from_microseconds(10), 100);
  ASSERT_TRUE(events) << events.error().text;
  ASSERT_EQ(events->size(), 1u);
  EXPECT_EQ(to_microseconds(events->front().time), 5);
  EXPECT_EQ(events->front().type, "device.added");
  EXPECT_EQ(events->front().severity, Severity::Info);
  EXPECT_EQ(events->front().device, kCardId);
  EXPECT_EQ(events->front().text, "a card came");
  EXPECT_EQ(events->front().boot_id, "boot");
  const auto past = client().past_conditions({}, 10);
  ASSERT_TRUE(past) << past.error().text;
  ASSERT_EQ(past->size(), 1u);
  EXPECT_EQ(past->front().state, ConditionState::Cleared);
  EXPECT_EQ(to_microseconds(past->front().cleared), 1'764'515'900'000'000);
  EXPECT_EQ(past->front().evidence.size(), 2u);
}

TEST_F(ClientTest, SeesTheHistoryOfACardThatHasLeft) {
  const auto points = client().history({"uid-gone", ReadingId::TemperatureEdge, {}, WallTime::max(), 3});
  ASSERT_TRUE(points) << points.error().text;
  EXPECT_EQ(points->size(), 3u);
}

TEST_F(ClientTest, LearnsWhatWasWrongWithAQuestion) {
  auto c = client();
  store::HistoryQuery q{"uid-nobody", ReadingId::TemperatureEdge, {}, WallTime::max(), 3};
  EXPECT_EQ(c.history(q).error().code, ErrorCode::NotFound);
  q.device = kCardId;
  q.reading = ReadingId::PowerCapMax;  // only its last value is kept
  EXPECT_EQ(c.history(q).error().code, ErrorCode::InvalidInput);
  q.reading = ReadingId::TemperatureEdge;
  q.max_points = 0;
  EXPECT_EQ(c.history(q).error().code, ErrorCode::InvalidInput);
  q.max_points = 3;
  q.since = WallTime::max();
  EXPECT_EQ(c.history(q).error().code, ErrorCode::InvalidInput);
  EXPECT_EQ(c.events({}, {}, 10).error().code, ErrorCode::InvalidInput);
  EXPECT_EQ(c.past_conditions({}, 0).error().code, ErrorCode::InvalidInput);
  EXPECT_EQ(c.acknowledge("no-such-condition").error().code, ErrorCode::NotFound);
  EXPECT_EQ(c.reload().error().code, ErrorCode::Unavailable);  // this server has no reload
}

TEST_F(ClientTest, WatchesUntilToldToStopAndTicksMeanwhile) {
  auto c = client();
  int calls = 0;
  const auto watched = c.watch(std::chrono::milliseconds(1), [&] { return ++calls < 3; });
  EXPECT_TRUE(watched);
  EXPECT_EQ(calls, 3);
}

TEST_F(ClientTest, IsToldOfAChangeLongBeforeTheTick) {
  auto c = client();
  bool pushed = false;
  // The first change makes the second: both arrive although the tick is an hour away.
  int calls = 0;
  ASSERT_TRUE(c.watch(std::chrono::milliseconds(1), [&] { return false; }));  // subscribed from here on
  host.on_loop([](Server& s) { s.remove_condition(kHotId); });
  const auto watched = c.watch(std::chrono::hours(1), [&] {
    ++calls;
    if (c.conditions()->empty() && !std::exchange(pushed, true)) {
      host.on_loop([](Server& s) { s.set_condition(overheating()); });
      return true;
    }
    return c.conditions()->empty();
  });
  EXPECT_TRUE(watched);
  EXPECT_TRUE(pushed);
  EXPECT_GE(calls, 2);
}

TEST_F(ClientTest, SaysThatTheBusIsGone) {
  auto c = client();
  const auto watched = c.watch(std::chrono::milliseconds(1), [&] {
    bus.stop();
    return true;
  });
  ASSERT_FALSE(watched);
  EXPECT_EQ(watched.error().code, ErrorCode::Unavailable);
  const auto devices = c.devices();
  ASSERT_FALSE(devices);
  EXPECT_EQ(devices.error().code, ErrorCode::Unavailable);
  EXPECT_NE(devices.error().text.find("the bus is gone"), std::string::npos) << devices.error().text;
}

TEST_F(ClientTest, TakesTheBusFromTheEnvironment) {
  setenv("GPUHEALTH_BUS_ADDRESS", bus.address().c_str(), 1);
  const auto c = Client::connect();
  unsetenv("GPUHEALTH_BUS_ADDRESS");
  EXPECT_TRUE(c);
}

TEST(ClientAlone, SaysThatThereIsNoBus) {
  const auto c = Client::connect("unix:path=/nonexistent/socket");
  ASSERT_FALSE(c);
  EXPECT_EQ(c.error().code, ErrorCode::Unavailable);
  EXPECT_NE(c.error().text.find("is dbus-daemon running?"), std::string::npos) << c.error().text;
}

TEST(ClientAlone, SaysThatTheDaemonIsNotRunning) {
  const PrivateBus bus;
  const auto c = Client::connect(bus.address());
  ASSERT_FALSE(c);
  EXPECT_EQ(c.error().code, ErrorCode::Unavailable);
  EXPECT_NE(c.error().text.find("systemctl start gpuhealthd"), std::string::npos) << c.error().text;
}

TEST(ClientAlone, GivesUpOnABusThatDoesNotGreet) {
  const PrivateBus bus;
  bus.pause();
  const auto c = Client::connect(bus.address(), std::chrono::milliseconds(50));
  ASSERT_FALSE(c);
  EXPECT_EQ(c.error().code, ErrorCode::Unavailable);
}

TEST(ClientAlone, RefusesAnAddressThatIsNone) {
  EXPECT_FALSE(Client::connect("not an address"));
}

}  // namespace
}  // namespace gpuhealth::dbus
