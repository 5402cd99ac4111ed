// SPDX-License-Identifier: Apache-2.0
#include "cli/render.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "samples.hpp"

namespace gpuhealth::cli {
namespace {

using samples::noon;
using samples::pipe;
using testing::HasSubstr;
using testing::Not;

TEST(Devices, ReadingsAreGroupedWithUnitsAndAbsentOnesLeftOut) {
  const std::string text = render(render_device(samples::radeon(), noon(), pipe()), pipe());
  EXPECT_THAT(text, HasSubstr("  Temperature\n    edge          45 C  GPU temperature at the edge of the die\n"
                              "    junction      62 C  hottest point of the die (hotspot)\n"));
  EXPECT_THAT(text, HasSubstr("cannot be read (Input/output error)"));
  EXPECT_THAT(text, Not(HasSubstr("replays")));
  EXPECT_THAT(text, HasSubstr("    smc  0x004e7e00\n"));
}

TEST(Devices, ThrottleReasonsHaveTheirText) {
  dbus::DeviceView d = samples::radeon();
  EXPECT_THAT(render(render_device(d, noon(), pipe()), pipe()), HasSubstr("  Slowed by\n    nothing\n"));
  d.throttle_reasons = {"PPT0", "NEW_ONE"};
  EXPECT_THAT(render(render_device(d, noon(), pipe()), pipe()),
              HasSubstr("    PPT0     package power limit, slow\n    NEW_ONE\n"));
  d.throttle_known = false;
  EXPECT_THAT(render(render_device(d, noon(), pipe()), pipe()), HasSubstr("this part does not report reasons"));
}

TEST(Devices, ProcessesHaveTheirNameWhereTheCallerMaySeeIt) {
  dbus::DeviceView d = samples::radeon();
  GpuClient other;
  other.pid = 900;
  d.clients.push_back(other);
  const auto text = render(render_device(d, noon(), pipe()), pipe());
  EXPECT_THAT(text, HasSubstr("  Used by\n"));
  EXPECT_THAT(text, HasSubstr("    pid 4242  python3         8 GiB     12%       101%\n"));
  EXPECT_THAT(text, HasSubstr("    pid 900                       -       -          -\n"));
}

TEST(Devices, PartitionsAndLinksAreShownWhereThereAreAny) {
  dbus::DeviceView d = samples::radeon();
  EXPECT_THAT(render(render_device(d, noon(), pipe()), pipe()), Not(HasSubstr("partitions")));
  d.compute_partition = "CPX";
  d.memory_partition = "NPS4";
  d.xgmi_peers = {"0000:26:00.0"};
  const auto text = render(render_device(d, noon(), pipe()), pipe());
  EXPECT_THAT(text, HasSubstr("  partitions  CPX, NPS4: 1 compute node\n"));
  EXPECT_THAT(text, HasSubstr("  XGMI to     0000:26:00.0\n"));
}

TEST(Devices, ASleepingGpuSaysThatItIsNotWoken) {
  EXPECT_THAT(render(render_device(samples::sleeping(), noon(), pipe()), pipe()),
              HasSubstr("asleep; it is not woken to be looked at"));
}

TEST(Devices, AHostileNameReachesThePageHarmless) {
  dbus::DeviceView d = samples::radeon();
  d.name = "\x1b[2Jevil";
  d.vbios_version = "113\x1b]0;x\x07";
  d.firmware = {{"\x1b[1m", "\x9b"}};
  d.throttle_reasons = {"\x1b[5m"};
  Machine machine = samples::overheating();
  machine.devices[0] = d;
  machine.conditions[0].detail = "\x1b[2J";
  machine.conditions[0].device_label = "\x1b[2J";
  machine.conditions[0].evidence = {{"\x1b[2J", "\x1b[2J"}};
  machine.manager.store_problem = "\x1b[2J";
  for (const auto& page :
       {render_device(d, noon(), pipe()), render_status(machine, pipe()),
        render_conditions(machine.conditions, noon(), pipe()), render_explain(machine.conditions[0], noon(), pipe())}) {
    EXPECT_THAT(render(page, pipe()), Not(HasSubstr("\x1b")));
  }
}

TEST(Conditions, EachHasItsIdForTheNextCommand) {
  const auto machine = samples::overheating();
  const std::string text = render(render_conditions(machine.conditions, noon(), pipe()), pipe());
  EXPECT_THAT(text,
              HasSubstr("critical  GPU is overheating\n  AMD Radeon RX 7900 XTX at 0000:03:00.0: confirmed, since "));
  EXPECT_THAT(text, HasSubstr("\n  overheating-uid-49afc8b43a8a6d30-1796039820\n"));
  EXPECT_EQ(render(render_conditions({}, noon(), pipe()), pipe()), "No condition.\n");
}

TEST(Conditions, ClearedOnesSayHowLongTheyLasted) {
  Condition c = samples::condition(ConditionType::SmuDead, samples::radeon(), "");
  c.state = ConditionState::Cleared;
  c.cleared = c.since + std::chrono::minutes(2);
  EXPECT_THAT(render(render_conditions({c}, noon(), pipe()), pipe()), HasSubstr(" for 2 min\n"));
}

TEST(Explain, TellsMeaningEvidenceAndAdvice) {
  const auto machine = samples::overheating();
  const std::string text = render(render_explain(machine.conditions[1], noon(), pipe()), pipe());
  EXPECT_THAT(text, HasSubstr("What it means\n  A temperature has reached the limit that the card itself states."));
  EXPECT_THAT(text, HasSubstr("Evidence\n  temperature.junction  112 C\n  limit                 110 C\n"));
  EXPECT_THAT(text, HasSubstr("What to do\n  Stop the load"));
  EXPECT_THAT(text, HasSubstr("gpuhealthctl acknowledge overheating-uid-49afc8b43a8a6d30-1796039820"));
}

TEST(Explain, ATypeNeedsNoCondition) {
  const std::string text = render(render_explain(ConditionType::PcieErrors, {}, noon(), pipe()), pipe());
  EXPECT_THAT(text, HasSubstr("warning  PCIe link makes errors\n"));
  EXPECT_THAT(text, HasSubstr("There is none now.\n"));
}

TEST(Inspect, ShowsBelievedAndUnbelievedThrottleReasonsApart) {
  const auto inspection = samples::inspection();
  const std::string text = render(render_inspect(inspection, {}, pipe()), pipe());
  EXPECT_THAT(text, HasSubstr("Slowed by\n    PPT0  package power limit, slow\n"));
  EXPECT_THAT(text, HasSubstr("Reported and not believed\n    TEMP_HOTSPOT  hotspot (junction) temperature\n"));
  EXPECT_THAT(text, HasSubstr("gpu_metrics  revision 1.3, the file ends after 60 of 120 bytes\n"));
  EXPECT_THAT(text, HasSubstr("GPU 10de:2684 at 0000:0b:00.0\n"));
  EXPECT_THAT(text, HasSubstr("note: one note\n"));
}

TEST(Metrics, ShowsExactNumbersAndADashForWhatIsNotFilled) {
  const std::string text = render(render_metrics(samples::metrics(), pipe()), pipe());
  EXPECT_THAT(text, HasSubstr("revision 1.3, 120 bytes stated: truncated\nthe file ends after 60 of 120 bytes\n"));
  EXPECT_THAT(text, HasSubstr("temperature_edge      45                    C\n"));
  EXPECT_THAT(text, HasSubstr("system_clock_counter  18446744073709551614  ns\n"));
  EXPECT_THAT(text, HasSubstr("temperature_hbm       - 51                  C\n"));
}

}  // namespace
}  // namespace gpuhealth::cli
