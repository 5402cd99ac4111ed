// SPDX-License-Identifier: Apache-2.0
// Killed before each system call that changes something, then a new start: the value is the old or the new one, and the
// ledger says which. Each death is a real SIGKILL of a child process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "machine.hpp"

namespace gpuhealth::actions {
namespace {

using test::TestMachine;
using testing::AnyOf;

struct Case {
  std::string name;
  ActionKind kind{};
  std::map<std::string, std::string> params{};
  std::string file{};  // where the setting is; "" for the port's link
  void (*prepare)(TestMachine&) = nullptr;
  bool undo = false;  // what is killed is the way back
};

std::string setting(TestMachine& m, const Case& tested) {
  std::string file = tested.file;
  if (file.empty()) file = m.port() + "/config";
  if (file.front() != '/') file = m.device() + "/" + file;
  return m.exists(file) ? m.read(file) : "absent";
}

void clock_file(TestMachine& m) {
  m.write(m.device() + "/pp_od_clk_voltage",
          "OD_SCLK:\n0: 500Mhz\n1: 2526Mhz\nOD_MCLK:\n1: 1249MHz\nOD_RANGE:\nSCLK:     500Mhz       3000Mhz\n");
}
void locked_down(TestMachine& m) {
  m.write("/sys/kernel/security/lockdown", "none [integrity] confidentiality\n");
}
void qualified(TestMachine& m) {
  m.write("/run/gpuhealth/qualified", "yes\n");
}

// What the action does in a child that is killed before its `call`th changing call. False: it came to its end.
bool dies(TestMachine& m, const Case& tested, int call) {
  const pid_t child = ::fork();
  if (child == 0) {
    m.system.kill_at = m.system.calls + call;
    if (tested.undo) {
      (void)revert(m.machine(), m.last().id, true);
    } else {
      (void)m.run(tested.kind, tested.params);
    }
    ::_exit(0);
  }
  int status = 0;
  (void)::waitpid(child, &status, 0);
  return WIFSIGNALED(status);
}

class KilledAtEachCall : public testing::TestWithParam<Case> {};

TEST_P(KilledAtEachCall, IsResolvedAtTheNextStart) {
  const Case& tested = GetParam();
  int points = 0;
  for (int call = 1; call < 200; ++call) {
    TestMachine m;
    if (tested.prepare != nullptr) tested.prepare(m);
    const std::string before = setting(m, tested);
    if (tested.undo) {
      ASSERT_TRUE(m.run(tested.kind, tested.params));
    }
    const std::string changed = setting(m, tested);
    const bool died = dies(m, tested, call);
    const auto recovered = recover(m.machine());
    ASSERT_TRUE(recovered) << recovered.error().text;
    const auto entries = m.ledger();
    const std::string now = setting(m, tested);
    if (!died) {
      ASSERT_EQ(entries.size(), 1U);
      EXPECT_EQ(entries[0].state, tested.undo ? "reverted" : "applied");
      break;
    }
    ++points;
    if (tested.undo) {
      // Half taken back is taken back; not begun is still in force.
      EXPECT_THAT(entries.at(0).state, AnyOf("applied", "reverted")) << call;
      EXPECT_EQ(now, entries[0].state == "applied" ? changed : before) << call;
    } else if (entries.empty()) {
      EXPECT_EQ(now, before) << "call " << call << ": something was written before the ledger was";
    } else {
      EXPECT_THAT(entries[0].state, AnyOf("applied", "reverted")) << call;
      EXPECT_EQ(entries[0].state == "reverted", now == before) << call;
    }
    for (const LedgerEntry& entry : entries) EXPECT_NE(entry.state, "intended") << call;
    // Whatever it is now, it can be brought back and done again.
    if (!entries.empty() && entries[0].state == "applied") {
      EXPECT_TRUE(revert(m.machine(), entries[0].id, true));
    }
    EXPECT_EQ(setting(m, tested), before) << call;
  }
  EXPECT_GT(points, 10);
}

INSTANTIATE_TEST_SUITE_P(Actions, KilledAtEachCall,
                         testing::Values(Case{.name = "PowerCap",
                                              .kind = ActionKind::PowerCap,
                                              .params = {{"watts", "280"}},
                                              .file = "hwmon/hwmon2/power1_cap"},
                                         Case{.name = "PowerCapBack",
                                              .kind = ActionKind::PowerCap,
                                              .params = {{"watts", "280"}},
                                              .file = "hwmon/hwmon2/power1_cap",
                                              .undo = true},
                                         Case{.name = "PerformanceLevel",
                                              .kind = ActionKind::PerformanceLevel,
                                              .params = {{"level", "low"}},
                                              .file = "power_dpm_force_performance_level"},
                                         Case{.name = "PowerProfile",
                                              .kind = ActionKind::PowerProfile,
                                              .params = {{"profile", "COMPUTE"}},
                                              .file = "power_dpm_force_performance_level"},
                                         Case{.name = "PowerProfileBack",
                                              .kind = ActionKind::PowerProfile,
                                              .params = {{"profile", "COMPUTE"}},
                                              .file = "power_dpm_force_performance_level",
                                              .undo = true},
                                         Case{.name = "ClockCap",
                                              .kind = ActionKind::ClockCap,
                                              .params = {{"mhz", "2000"}},
                                              .file = "pp_od_clk_voltage",
                                              .prepare = clock_file},
                                         Case{.name = "PcieSpeed", .kind = ActionKind::PcieSpeed},
                                         Case{.name = "PcieSpeedBack", .kind = ActionKind::PcieSpeed, .undo = true},
                                         Case{.name = "PcieSpeedAtBoot",
                                              .kind = ActionKind::PcieSpeed,
                                              .file = "/etc/modprobe.d/gpuhealth-pcie.conf",
                                              .prepare = locked_down},
                                         Case{.name = "Drain",
                                              .kind = ActionKind::Drain,
                                              .file = "/run/gpuhealth/drain",
                                              .prepare = qualified},
                                         Case{.name = "DrainBack",
                                              .kind = ActionKind::Drain,
                                              .file = "/run/gpuhealth/qualified",
                                              .prepare = qualified,
                                              .undo = true}),
                         [](const auto& tested) { return tested.param.name; });

TEST(KilledRescan, IsFinishedAtTheNextStart) {
  int points = 0;
  for (int call = 1; call < 100; ++call) {
    TestMachine m;
    m.write(m.port() + "/rescan", "");
    m.write(m.port() + "/0000:01:00.0/remove", "");
    const bool died = dies(m, {.name = "", .kind = ActionKind::PciRescan}, call);
    ASSERT_TRUE(recover(m.machine()));
    if (!died) break;
    ++points;
    EXPECT_TRUE(m.exists(m.device())) << call;
    for (const LedgerEntry& entry : m.ledger()) EXPECT_THAT(entry.state, AnyOf("done")) << call;
  }
  EXPECT_GT(points, 10);
}

TEST(PowerCut, ANewBootFindsTheHardwareWithItsOwnValuesAndTheLedgerSaysSo) {
  for (int call = 1; call < 100; ++call) {
    TestMachine m;
    const bool died = dies(m, {.name = "", .kind = ActionKind::PowerCap, .params = {{"watts", "280"}}}, call);
    m.reboot("boot-2");
    m.system.writes.clear();
    ASSERT_TRUE(recover(m.machine()));
    EXPECT_EQ(m.read(m.cap()), "303000000");
    for (const LedgerEntry& entry : m.ledger()) EXPECT_EQ(entry.state, "lost") << call;
    EXPECT_TRUE(m.system.writes.empty()) << "nothing has to be brought back";
    if (!died) break;
  }
}

TEST(FailingDisk, NoLedgerNoAction) {
  for (int call = 1; call < 100; ++call) {
    TestMachine m;
    m.system.fail_at = call;
    const auto done = m.run(ActionKind::PowerCap, {{"watts", "280"}});
    const bool reached = m.system.calls >= call;
    m.system.fail_at = 0;
    if (!reached) break;
    ASSERT_TRUE(recover(m.machine()));
    const auto entries = m.ledger();
    if (done) continue;  // a call whose failure does no harm
    EXPECT_EQ(m.read(m.cap()), "303000000") << call << ": " << done.error().text;
    for (const LedgerEntry& entry : entries) EXPECT_EQ(entry.state, "reverted") << call;
  }
}

}  // namespace
}  // namespace gpuhealth::actions
