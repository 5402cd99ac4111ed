// SPDX-License-Identifier: Apache-2.0
#include "dbus/wire.hpp"

#include <gtest/gtest.h>

namespace gpuhealth::dbus {
namespace {

using namespace std::string_view_literals;

TEST(BusText, KeepsUtf8AndReplacesWhatTheBusWouldRefuse) {
  EXPECT_EQ(bus_text("Radeon™ Pro, 45 °C, 😀"), "Radeon™ Pro, 45 °C, 😀");
  EXPECT_EQ(bus_text(""), "");
  EXPECT_EQ(bus_text("a\xff"
                     "b"),
            "a?b");
  EXPECT_EQ(bus_text("cut\xe2\x84"), "cut??");      // a sequence that ends too early
  EXPECT_EQ(bus_text("\xc0\xaf"), "??");            // an overlong '/'
  EXPECT_EQ(bus_text("\xed\xa0\x80"), "???");       // a surrogate
  EXPECT_EQ(bus_text("\xf4\x90\x80\x80"), "????");  // beyond U+10FFFF
  EXPECT_EQ(bus_text("nul\0inside"sv), "nul?inside");
}

TEST(BusTime, IsClampedToWhatSumsDoNotOverflow) {
  EXPECT_EQ(to_microseconds(time_from_bus(0)), 0);
  EXPECT_EQ(to_microseconds(time_from_bus(1'764'515'000'250'000)), 1'764'515'000'250'000);
  EXPECT_EQ(to_microseconds(time_from_bus(UINT64_MAX)), 9'000'000'000'000'000);
  EXPECT_EQ(time_to_bus(wall_from_microseconds(-5)), 0u);
  EXPECT_EQ(time_to_bus(WallTime::max()), 9'000'000'000'000'000u);
}

}  // namespace
}  // namespace gpuhealth::dbus
