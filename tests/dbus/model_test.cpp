// SPDX-License-Identifier: Apache-2.0
#include "dbus/model.hpp"

#include <gtest/gtest.h>

#include "tests/dbus/fixtures.hpp"

namespace gpuhealth::dbus {
namespace {

using test::card;
using test::kCardId;
using test::overheating;
using test::sample;

// A card that the bus knows already.
Model told() {
  Model model;
  model.set_device(card());
  model.set_sample(sample());
  model.mark_all_told();
  return model;
}

TEST(BusModel, NumbersThatFluctuateAreNothingToTell) {
  auto model = told();
  model.set_sample(sample(99.5));
  EXPECT_FALSE(model.anything_to_tell());
  EXPECT_EQ(model.device(kCardId)->sample->value(ReadingId::TemperatureEdge), 99.5);
}

TEST(BusModel, ThrottlingIsToldOnceWhenItChanges) {
  auto model = told();
  auto hot = sample();
  hot.throttle.insert(ThrottleReason::TempHotspot);
  model.set_sample(hot);
  model.set_sample(hot);
  const auto& changed = model.device(kCardId)->changed;
  EXPECT_EQ(changed.count(), 1u);
  EXPECT_TRUE(changed[device_property::ThrottleReasons]);
}

TEST(BusModel, HealthIsTheWorstConfirmedConditionThatNobodyAcknowledged) {
  auto model = told();
  auto hot = overheating();
  hot.state = ConditionState::Raised;
  model.set_condition(hot);
  EXPECT_EQ(model.health, "ok");  // not yet for long enough
  hot.state = ConditionState::Confirmed;
  model.set_condition(hot);
  EXPECT_EQ(model.health, "critical");
  EXPECT_EQ(model.device(kCardId)->health, "critical");
  auto slow = overheating();
  slow.id = "pcie-downgraded-x";
  slow.type = ConditionType::PcieDowngraded;
  slow.severity = Severity::Warning;
  model.set_condition(slow);
  EXPECT_EQ(model.health, "critical");
  hot.acknowledged = true;
  model.set_condition(hot);
  EXPECT_EQ(model.health, "warning");
  model.remove_condition("pcie-downgraded-x");
  EXPECT_EQ(model.health, "ok");
  EXPECT_EQ(model.device(kCardId)->health, "ok");
}

TEST(BusModel, HealthIsUnknownBeforeTheFirstSample) {
  Model model;
  model.set_device(card());
  EXPECT_EQ(model.device(kCardId)->health, "unknown");
  model.set_sample(sample());
  EXPECT_EQ(model.device(kCardId)->health, "ok");
}

TEST(BusModel, AConditionOfAnotherDeviceLeavesThisOneWell) {
  auto model = told();
  auto gone = overheating();
  gone.type = ConditionType::GpuMissing;
  gone.device = "uid-0000000000000001";
  model.set_condition(gone);
  EXPECT_EQ(model.health, "critical");
  EXPECT_EQ(model.device(kCardId)->health, "ok");
}

TEST(BusModel, WhatCameAndWentUnseenLeavesNoTrace) {
  auto model = told();
  for (int i = 0; i < 10'000; ++i) {
    auto c = overheating();
    c.id += std::to_string(i);
    model.set_condition(c);
    model.remove_condition(c.id);
  }
  EXPECT_TRUE(model.removals.empty());
  EXPECT_TRUE(model.conditions.empty());
}

TEST(BusModel, ADeviceWhoseIdentityChangesIsAnnouncedAnew) {
  auto model = told();
  auto rebound = card();
  rebound.driver = "vfio-pci";
  model.set_device(rebound);
  ASSERT_EQ(model.removals.size(), 1u);
  EXPECT_EQ(model.removals[0].path, test::kCardPath);
  EXPECT_FALSE(model.device(kCardId)->announced);
  EXPECT_TRUE(model.device(kCardId)->sample);
}

TEST(BusModel, ACardNumberIsNotIdentity) {
  auto model = told();
  auto renumbered = card();
  renumbered.card_node = "card1";
  model.set_device(renumbered);
  EXPECT_FALSE(model.anything_to_tell());
}

TEST(BusModel, AClearedConditionIsRemovedAndASampleOfNoDeviceIgnored) {
  auto model = told();
  model.set_condition(overheating());
  model.mark_all_told();
  auto cleared = overheating();
  cleared.state = ConditionState::Cleared;
  model.set_condition(cleared);
  ASSERT_EQ(model.removals.size(), 1u);
  EXPECT_EQ(model.removals[0].condition->state, ConditionState::Cleared);
  auto other = sample();
  other.device = "uid-nobody";
  model.set_sample(other);
  EXPECT_EQ(model.devices.size(), 1u);
}

}  // namespace
}  // namespace gpuhealth::dbus
