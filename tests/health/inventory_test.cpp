// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "machine.hpp"

namespace gpuhealth::health {
namespace {

using namespace std::chrono_literals;
using enum ChangeKind;
constexpr auto kMissing = ConditionType::GpuMissing;
constexpr auto kStuck = ConditionType::SourceStuck;
using Changes = std::vector<Seen>;

RememberedDevice remembered(const DeviceInfo& device, const std::string& boot = "boot-before") {
  return {device.id(), label_of(device), boot};
}

void inventory(Machine& machine, const std::vector<DeviceInfo>& present, const std::vector<RememberedDevice>& known) {
  machine.take(machine.engine.on_inventory(present, known, machine.clock.now()));
}

TEST(GpuMissing, AGpuOfTheLastBootThatIsGoneIsConfirmedAtOnce) {
  Machine machine;
  inventory(machine, {}, {remembered(navi31())});
  ASSERT_EQ(machine.seen(), (Changes{{Confirmed, kMissing}}));
  const auto& condition = machine.changes[0].condition;
  EXPECT_EQ(condition.severity, Severity::Critical);
  EXPECT_EQ(condition.device, "uid-49afc8b43a8a6d30");
  EXPECT_EQ(condition.detail, "Radeon RX 7900 XTX at 0000:03:00.0 was there at an earlier boot and is not there now.");
  EXPECT_EQ(condition.boot_id, "boot-now");
}

TEST(GpuMissing, GpusThatAreThereOrWereNeverKnownAreNotMissing) {
  Machine machine;
  inventory(machine, {navi31()}, {remembered(navi31())});
  inventory(machine, {navi31()}, {});
  inventory(machine, {}, {});
  EXPECT_TRUE(machine.changes.empty());
}

TEST(GpuMissing, ACardThatMovedToAnotherSlotIsNotMissing) {
  auto moved = navi31();
  moved.pci = {0, 0x0b, 0, 0};
  Machine machine;
  inventory(machine, {moved}, {remembered(navi31())});
  EXPECT_TRUE(machine.changes.empty());
}

TEST(GpuMissing, ACardWithoutItsDriverIsNotMissing) {
  auto bare = navi31();  // without the driver its unique id cannot be read
  bare.driver.clear();
  bare.unique_id.clear();
  Machine machine;
  inventory(machine, {bare}, {remembered(navi31())});
  EXPECT_TRUE(machine.changes.empty());
}

TEST(GpuMissing, ACardWithANewVbiosIsNotMissing) {
  auto before = navi31();
  before.unique_id.clear();
  before.vbios_version = "113-D70401-00";
  auto after = before;
  after.vbios_version = "113-D70401-01";
  Machine machine;
  inventory(machine, {after}, {remembered(before)});
  EXPECT_TRUE(machine.changes.empty());
}

TEST(GpuMissing, AnotherCardInTheSameSlotDoesNotReplaceIt) {
  auto other = navi31();
  other.unique_id = "1111222233334444";
  Machine machine;
  inventory(machine, {other}, {remembered(navi31())});
  EXPECT_EQ(machine.seen(), (Changes{{Confirmed, kMissing}}));
}

TEST(GpuMissing, IsSaidOnceAndEndsWhenTheGpuIsBack) {
  Machine machine;
  inventory(machine, {}, {remembered(navi31())});
  inventory(machine, {}, {remembered(navi31())});
  EXPECT_EQ(machine.changes.size(), 1U);
  inventory(machine, {navi31()}, {remembered(navi31())});
  EXPECT_EQ(machine.seen(), (Changes{{Confirmed, kMissing}, {Cleared, kMissing}}));
  EXPECT_EQ(evidence(machine.changes.back().condition, "cleared because"), "the GPU is back");
}

TEST(GpuMissing, ASampleProvesThatTheGpuIsBack) {
  Machine machine;
  inventory(machine, {}, {remembered(navi31())});
  machine.run(2s);
  EXPECT_EQ(machine.seen(), (Changes{{Confirmed, kMissing}, {Cleared, kMissing}}));
}

TEST(GpuMissing, SurvivesReboots) {
  Machine before;
  inventory(before, {}, {remembered(navi31())});
  auto condition = *before.open(kMissing);
  condition.boot_id = "boot-before";
  condition.acknowledged = true;
  Machine after;
  after.take(after.engine.restore({condition}, after.clock.now()));
  inventory(after, {}, {remembered(navi31())});
  EXPECT_TRUE(after.changes.empty());
  EXPECT_TRUE(after.open(kMissing)->acknowledged);
  inventory(after, {}, {});  // forgotten
  EXPECT_EQ(after.seen(), (Changes{{Cleared, kMissing}}));
}

TEST(GpuMissing, IsNotForgottenUnlessAcknowledged) {
  Machine machine;
  inventory(machine, {}, {remembered(navi31())});
  inventory(machine, {}, {});  // the history was set aside
  EXPECT_TRUE(machine.confirmed(kMissing));
}

TEST(Removal, AnUnexpectedOneEndsWhatWasMeasuredAndRaisesGpuMissing) {
  Machine machine;
  set(machine.sample, ReadingId::TemperatureEdge, 101);
  machine.run(20s);
  machine.forget();
  machine.take(machine.engine.on_removed(machine.device.id(), "", false, machine.clock.now()));
  EXPECT_EQ(machine.seen(), (Changes{{Cleared, ConditionType::Overheating}, {Confirmed, kMissing}}));
  EXPECT_EQ(machine.changes.back().condition.detail,
            "Radeon RX 7900 XTX at 0000:03:00.0 vanished while the machine was running.");
}

TEST(Removal, AnExpectedOneRaisesNothing) {
  Machine machine;
  machine.run(2s);
  machine.take(machine.engine.on_removed(machine.device.id(), "eGPU", true, machine.clock.now()));
  machine.take(machine.engine.on_removed("", "", false, machine.clock.now()));
  EXPECT_TRUE(machine.changes.empty());
}

TEST(Removal, ADeviceThatReturnsStartsAnew) {
  Machine machine;
  machine.run(10s);
  machine.take(machine.engine.on_removed(machine.device.id(), "", true, machine.clock.now()));
  set(machine.sample, ReadingId::AerFatal, 9);  // counted by whatever it was plugged into meanwhile
  machine.run(10s);
  EXPECT_TRUE(machine.changes.empty());
}

TEST(SourceStuck, IsConfirmedAtOnceAndEndsWhenReadsReturn) {
  Machine machine;
  machine.take(machine.engine.on_stuck(machine.device, true, "gpu_metrics", machine.clock.now()));
  ASSERT_EQ(machine.seen(), (Changes{{Confirmed, kStuck}}));
  EXPECT_EQ(machine.changes[0].condition.severity, Severity::Critical);
  EXPECT_EQ(machine.changes[0].condition.detail, "A read of gpu_metrics does not return.");
  machine.take(machine.engine.on_stuck(machine.device, true, "gpu_metrics", machine.clock.now()));
  EXPECT_EQ(machine.changes.size(), 1U);
  machine.take(machine.engine.on_stuck(machine.device, false, "", machine.clock.now()));
  EXPECT_EQ(machine.seen(), (Changes{{Confirmed, kStuck}, {Cleared, kStuck}}));
}

TEST(SourceStuck, ReadingsThatDoNotComeDoNotClearOtherConditions) {
  Machine machine;
  set(machine.sample, ReadingId::TemperatureEdge, 101);
  machine.run(20s);
  for (auto& reading : machine.sample.readings) reading.status = ReadingStatus::Stuck;
  machine.run(1h);
  EXPECT_TRUE(machine.confirmed(ConditionType::Overheating));
}

TEST(SourceStuck, AfterARestartOfTheDaemonItIsFoundOutAnew) {
  Machine before;
  before.take(before.engine.on_stuck(before.device, true, "hwmon", before.clock.now()));
  const auto condition = *before.open(kStuck);
  Machine after;
  after.take(after.engine.restore({condition}, after.clock.now()));
  EXPECT_EQ(after.seen(), (Changes{{Cleared, kStuck}}));
  after.take(after.engine.on_stuck(after.device, true, "hwmon", after.clock.now()));
  EXPECT_EQ(after.open(kStuck)->id, condition.id);
}

}  // namespace
}  // namespace gpuhealth::health
