// SPDX-License-Identifier: Apache-2.0
// What the bus shows of a machine whose GPUs change: the whole way from a file in sysfs to a condition.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dbus/names.hpp"
#include "sim/machine.hpp"
#include "tests/daemon/rig.hpp"

namespace gpuhealth {
namespace {

using namespace std::chrono_literals;
using test::id_of;
using ::testing::HasSubstr;

class DaemonTest : public ::testing::Test, protected test::Rig {
 protected:
  // The value of a reading as the bus shows it; nothing while there is none.
  std::optional<double> reading(dbus::Client& c, const std::string& device, ReadingId id) const {
    const auto devices = c.devices();
    if (!devices) return std::nullopt;
    for (const auto& d : *devices) {
      if (d.id != device) continue;
      for (const auto& r : d.readings) {
        if (r.id == id && r.status == ReadingStatus::Valid) return r.value;
      }
    }
    return std::nullopt;
  }
  bool await_reading(const std::string& device, ReadingId id, double value) const {
    return await([&](dbus::Client& c) { return reading(c, device, id) == value; });
  }
  std::vector<std::string> device_ids() const {
    std::vector<std::string> out;
    auto c = client();
    const auto devices = c.devices();
    if (!devices) return {"no answer: " + devices.error().text};
    for (const auto& d : *devices) out.push_back(d.id);
    return out;
  }
  void heat(sim::Card card, double junction_c) const {
    card.state.junction_c = junction_c;
    ASSERT_TRUE(sim::update_card(tree.path(), card));
  }
  bool condition_is_open(ConditionType type, const std::string& device) const {
    auto c = client();
    const auto open = c.conditions();
    return open && test::find(*open, type, device).has_value();
  }

  const sim::Card a_ = sim::idle_card(sim::rx7900xtx(), 0);
  const sim::Card b_ = sim::idle_card(sim::rx6900xt(), 1);
  const sim::Card c_ = sim::idle_card(sim::rx9070(), 2);
};

TEST_F(DaemonTest, DevicesAndTheirReadingsAppear) {
  plug(std::vector{a_, b_});
  start();
  // A card at rest: sim/card.hpp.
  EXPECT_TRUE(await_reading(id_of(a_), ReadingId::TemperatureJunction, 44));
  EXPECT_TRUE(await_reading(id_of(b_), ReadingId::TemperatureEdge, 40));
  auto c = client();
  const auto devices = c.devices();
  ASSERT_TRUE(devices);
  ASSERT_EQ(devices->size(), 2u);
  EXPECT_EQ(devices->at(0).id, id_of(a_));
  EXPECT_EQ(devices->at(0).pci, to_string(a_.place.gpu));
  EXPECT_EQ(devices->at(0).driver, "amdgpu");
  EXPECT_EQ(devices->at(0).runtime_status, "active");
  EXPECT_EQ(devices->at(0).health, "ok");
  const auto manager = c.manager();
  ASSERT_TRUE(manager);
  EXPECT_EQ(manager->boot_id, "5ee05ee0-0000-4000-8000-000000000001");
  EXPECT_EQ(manager->health, "ok");
  EXPECT_EQ(manager->store_problem, "");
  EXPECT_EQ(manager->config_problem, "");
}

TEST_F(DaemonTest, ATooHotCardIsToldAndTheEndOfItToo) {
  plug(std::vector{a_, b_});
  start();
  ASSERT_TRUE(await_reading(id_of(a_), ReadingId::TemperatureJunction, 44));
  test::Listener listener(bus.address());
  listener.listen();

  heat(a_, 111);  // its critical limit is 110 C
  const auto object = next_object(listener, "InterfacesAdded", dbus::kConditionPrefix);
  const auto hot = next_condition(listener, "overheating", "confirmed");
  EXPECT_EQ(object, dbus::condition_path(hot.id));
  EXPECT_EQ(hot.device, id_of(a_));
  EXPECT_FALSE(hot.acknowledged);
  EXPECT_TRUE(condition_is_open(ConditionType::Overheating, id_of(a_)));
  EXPECT_FALSE(condition_is_open(ConditionType::Overheating, id_of(b_)));
  EXPECT_NE(client().manager()->health, "ok");

  heat(a_, 60);
  EXPECT_EQ(next_object(listener, "InterfacesRemoved", dbus::kConditionPrefix), object);
  EXPECT_EQ(next_condition(listener, "overheating", "cleared").id, hot.id);
  EXPECT_FALSE(condition_is_open(ConditionType::Overheating, id_of(a_)));
  EXPECT_EQ(client().manager()->health, "ok");

  const auto past = client().past_conditions(WallTime{}, 10);
  ASSERT_TRUE(past) << past.error().text;
  ASSERT_EQ(past->size(), 1u);
  EXPECT_EQ(past->at(0).id, hot.id);
  EXPECT_EQ(past->at(0).state, ConditionState::Cleared);
}

TEST_F(DaemonTest, ACardThatIsPulledOutIsMissedAndWelcomedBackUnderAnotherNumber) {
  plug(std::vector{a_, b_});
  start();
  ASSERT_TRUE(await_reading(id_of(a_), ReadingId::TemperatureJunction, 44));
  test::Listener listener(bus.address());
  listener.listen();

  ASSERT_TRUE(sim::remove_card(tree.path(), a_.place.gpu));
  EXPECT_EQ(next_object(listener, "InterfacesRemoved", dbus::kDevicePrefix), dbus::device_path(id_of(a_)));
  const auto missing = await_confirmed(ConditionType::GpuMissing, id_of(a_));
  ASSERT_TRUE(missing);
  EXPECT_EQ(missing->severity, Severity::Critical);
  EXPECT_THAT(device_ids(), ::testing::ElementsAre(id_of(b_)));

  ASSERT_TRUE(sim::add_card(tree.path(), c_));  // takes the free card number
  ASSERT_TRUE(sim::add_card(tree.path(), a_));
  EXPECT_EQ(next_condition(listener, "gpu-missing", "cleared").id, missing->id);
  ASSERT_TRUE(await([&](dbus::Client& c) { return reading(c, id_of(a_), ReadingId::TemperatureJunction) == 44; }));
  EXPECT_THAT(device_ids(), ::testing::UnorderedElementsAre(id_of(a_), id_of(b_), id_of(c_)));
}

TEST_F(DaemonTest, ACardTakenOutWhileTheMachineWasOffIsMissed) {
  plug(std::vector{a_, b_});
  start();
  ASSERT_TRUE(await_samples(2));
  ASSERT_EQ(stop(), 0);

  plug(std::vector{a_}, 2);
  start();
  const auto missing = await_confirmed(ConditionType::GpuMissing, id_of(b_));
  ASSERT_TRUE(missing);
  EXPECT_THAT(missing->detail, HasSubstr("was there at an earlier boot and is not there now"));
}

TEST_F(DaemonTest, AcknowledgingAMissingCardForgetsIt) {
  plug(std::vector{a_, b_, c_});
  start();
  ASSERT_TRUE(await_samples(3));
  ASSERT_EQ(stop(), 0);

  plug(std::vector{a_}, 2);
  start();
  const auto b = await_confirmed(ConditionType::GpuMissing, id_of(b_));
  const auto c = await_confirmed(ConditionType::GpuMissing, id_of(c_));
  ASSERT_TRUE(b && c);
  const auto done = client().acknowledge(b->id);
  ASSERT_TRUE(done) << done.error().text;
  EXPECT_FALSE(condition_is_open(ConditionType::GpuMissing, id_of(b_)));
  EXPECT_TRUE(condition_is_open(ConditionType::GpuMissing, id_of(c_)));
  ASSERT_EQ(stop(), 0);

  // Both would be raised in one turn: the one that comes shows that the other does not.
  plug(std::vector{a_}, 3);
  start();
  ASSERT_TRUE(await_confirmed(ConditionType::GpuMissing, id_of(c_)));
  ASSERT_TRUE(await_samples(2));
  EXPECT_FALSE(condition_is_open(ConditionType::GpuMissing, id_of(b_)));
}

TEST_F(DaemonTest, AcknowledgingACardThatLeftInThisRunForgetsItUntilItReturns) {
  plug(std::vector{a_, b_});
  start();
  ASSERT_TRUE(await_reading(id_of(b_), ReadingId::TemperatureEdge, 40));
  ASSERT_TRUE(sim::remove_card(tree.path(), b_.place.gpu));
  const auto missing = await_confirmed(ConditionType::GpuMissing, id_of(b_));
  ASSERT_TRUE(missing);
  ASSERT_TRUE(client().acknowledge(missing->id));
  EXPECT_FALSE(condition_is_open(ConditionType::GpuMissing, id_of(b_)));

  ASSERT_TRUE(sim::add_card(tree.path(), b_));
  ASSERT_TRUE(await_reading(id_of(b_), ReadingId::TemperatureEdge, 40));
  ASSERT_TRUE(sim::remove_card(tree.path(), b_.place.gpu));
  EXPECT_TRUE(await_confirmed(ConditionType::GpuMissing, id_of(b_))) << "it is expected again";
}

TEST_F(DaemonTest, AnAcknowledgedConditionStaysAndIsNoLongerCounted) {
  plug(std::vector{a_});
  start();
  heat(a_, 111);
  const auto hot = await_confirmed(ConditionType::Overheating, id_of(a_));
  ASSERT_TRUE(hot);
  ASSERT_TRUE(client().acknowledge(hot->id));
  const auto again = await_confirmed(ConditionType::Overheating, id_of(a_));
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->acknowledged);
  EXPECT_EQ(client().manager()->health, "ok");
}

TEST_F(DaemonTest, HistoryIsAnsweredAndSurvivesARestart) {
  plug(std::vector{a_});
  start();
  ASSERT_TRUE(await_samples(2));
  ASSERT_EQ(stop(), 0);
  start();
  ASSERT_TRUE(await_samples(1));
  const store::HistoryQuery query{id_of(a_), ReadingId::TemperatureJunction, SystemClock().now().wall - 1h,
                                  SystemClock().now().wall + 1h, 10};
  const auto points = client().history(query);
  ASSERT_TRUE(points) << points.error().text;
  ASSERT_FALSE(points->empty());
  EXPECT_EQ(points->front().min, 44);
  EXPECT_EQ(points->front().mean, 44);
  EXPECT_EQ(points->front().max, 44);
  const auto events = client().events(WallTime{}, SystemClock().now().wall + 1h, 100);
  ASSERT_TRUE(events);
  EXPECT_TRUE(
      std::ranges::any_of(*events, [&](const Event& e) { return e.type == "device.added" && e.device == id_of(a_); }));
}

TEST_F(DaemonTest, AConditionGoesOnThroughARestart) {
  plug(std::vector{a_});
  start();
  heat(a_, 111);
  const auto hot = await_confirmed(ConditionType::Overheating, id_of(a_));
  ASSERT_TRUE(hot);
  ASSERT_EQ(stop(), 0);
  start();
  const auto still = await_confirmed(ConditionType::Overheating, id_of(a_));
  ASSERT_TRUE(still);
  EXPECT_EQ(still->id, hot->id);
  EXPECT_EQ(still->since, hot->since);
}

}  // namespace
}  // namespace gpuhealth
