// SPDX-License-Identifier: Apache-2.0
// The three ways to a slower link, each confirmed from LNKSTA at the slot's own port. The PCI Express capability of the
// synthetic ports lies at 0x64: LNKCTL at 116, LNKCTL2 at 148.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actions/pci_config.hpp"
#include "machine.hpp"

namespace gpuhealth::actions {
namespace {

using test::TestMachine;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string kModuleFile = "/etc/modprobe.d/gpuhealth-pcie.conf";

unsigned slot_speed(TestMachine& m) {
  return read_link(m.machine(), m.port() + "/config")->generation;
}

TEST(PcieSpeed, SetsTheSlotsTargetTrainsAndBringsBothBack) {
  TestMachine m;
  const auto done = m.run(ActionKind::PcieSpeed);
  ASSERT_TRUE(done) << done.error().text;
  const std::string config = m.port() + "/config";
  // Target speed 3, then Retrain Link (bit 5).
  EXPECT_THAT(m.system.writes, ElementsAre(config + "@148 0300", config + "@116 2000"));
  EXPECT_EQ(done->before, "Gen4");
  EXPECT_EQ(done->after, "Gen3");
  EXPECT_EQ(slot_speed(m), 3U);
  m.system.writes.clear();
  ASSERT_TRUE(revert(m.machine(), done->ledger, false));
  EXPECT_THAT(m.system.writes, ElementsAre(config + "@148 0400", config + "@116 2000"));
  EXPECT_EQ(slot_speed(m), 4U);
}

TEST(PcieSpeed, OtherBitsOfTheRegisterStayAsTheyAre) {
  TestMachine m;
  (void)m.react_config(m.port() + "/config", 0x94, std::string("\x24\x01", 2));  // 0x0124: target 4 and two others
  ASSERT_TRUE(m.run(ActionKind::PcieSpeed));
  EXPECT_EQ(m.system.writes.front(), m.port() + "/config@148 2301");
}

TEST(PcieSpeed, TheBandwidthControllerComesFirstWhereTheKernelHasIt) {
  TestMachine m;
  m.write("/sys/class/thermal/cooling_device3/type", "Processor\n");
  m.write("/sys/class/thermal/cooling_device7/type", "PCIe_Port_Link_Speed_0000:00:01.1\n");
  m.write("/sys/class/thermal/cooling_device7/max_state", "3\n");
  m.write("/sys/class/thermal/cooling_device7/cur_state", "3\n");  // idle: the speed of the moment is Gen1
  const auto done = m.run(ActionKind::PcieSpeed, {{"generation", "3"}});
  ASSERT_TRUE(done) << done.error().text;
  EXPECT_THAT(m.system.writes, ElementsAre("/sys/class/thermal/cooling_device7/cur_state 1"));
  ASSERT_TRUE(revert(m.machine(), done->ledger, false));
  EXPECT_EQ(m.system.writes.back(), "/sys/class/thermal/cooling_device7/cur_state 0");
}

TEST(PcieSpeed, TrainedAtAnotherSpeedIsJudgedByTheLink) {
  TestMachine m;
  m.write("/sys/class/thermal/cooling_device0/type", "PCIe_Port_Link_Speed_0000:00:01.1\n");
  m.write("/sys/class/thermal/cooling_device0/max_state", "3\n");
  m.write("/sys/class/thermal/cooling_device0/cur_state", "0\n");
  m.system.faults["cur_state"] = {.error = EAGAIN};
  const auto refused = m.run(ActionKind::PcieSpeed);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().text, HasSubstr("it still is Gen4"));
  EXPECT_EQ(m.last().state, "reverted");
}

TEST(PcieSpeed, UnderLockdownTheModuleOptionIsWrittenForTheNextBoot) {
  TestMachine m;
  m.write("/sys/kernel/security/lockdown", "none [integrity] confidentiality\n");
  m.write("/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c",
          std::string("\x06\x00\x00\x00\x01", 5));
  const auto done = m.run(ActionKind::PcieSpeed);
  ASSERT_TRUE(done) << done.error().text;
  EXPECT_THAT(m.system.writes, IsEmpty());
  EXPECT_EQ(m.read(kModuleFile), "# written by gpuhealthd\noptions amdgpu pcie_gen_cap=0x00070007");
  EXPECT_THAT(done->warnings, testing::Contains(HasSubstr("locked down (integrity, secure boot is on)")));
  EXPECT_EQ(done->confirm_by, "");
  m.reboot("boot-2");
  ASSERT_TRUE(recover(m.machine()));
  EXPECT_EQ(m.last().state, "applied");
  ASSERT_TRUE(revert(m.machine(), done->ledger, false));
  EXPECT_FALSE(m.exists(kModuleFile));
}

TEST(PcieSpeed, TheModuleOptionIsOneForAllGpusOfTheDriver) {
  TestMachine m({sim::idle_card(sim::rx7900xtx(), 0), sim::idle_card(sim::rx7900xtx(), 1)});
  m.write("/sys/kernel/security/lockdown", "none [integrity] confidentiality\n");
  Order first = m.order(ActionKind::PcieSpeed, {{"generation", "4"}, {"floor", "1"}});
  Order second = m.order(ActionKind::PcieSpeed, {{"generation", "3"}, {"floor", "1"}});
  first.request.device = m.pci(0);
  second.request.device = m.pci(1);
  first.request.params["generation"] = "3";
  second.request.params["generation"] = "2";
  const auto one = m.run(first);
  ASSERT_TRUE(one) << one.error().text;
  Order same = first;
  same.request.device = m.pci(1);
  const auto nothing = m.run(same);
  ASSERT_TRUE(nothing) << nothing.error().text;
  EXPECT_EQ(nothing->state, "nothing-to-do");
  EXPECT_EQ(
      nothing->text,
      "/etc/modprobe.d/gpuhealth-pcie.conf holds every GPU of this driver to Gen3 already, from the next boot on");
  const auto two = m.run(second);
  ASSERT_TRUE(two) << two.error().text;
  EXPECT_EQ(two->before, "Gen3 by the module's option");
  // The first one's end leaves the second one's file there; the second one's end leaves nothing.
  ASSERT_TRUE(revert(m.machine(), one->ledger, false));
  EXPECT_EQ(m.read(kModuleFile), "# written by gpuhealthd\noptions amdgpu pcie_gen_cap=0x00030003");
  ASSERT_TRUE(revert(m.machine(), two->ledger, false));
  EXPECT_FALSE(m.exists(kModuleFile));
  for (const LedgerEntry& entry : m.ledger()) EXPECT_EQ(entry.state, "reverted") << entry.id;
}

TEST(PcieSpeed, AnOptionOfSomebodyElseIsNotOverruled) {
  TestMachine m;
  m.write("/sys/kernel/security/lockdown", "none integrity [confidentiality]\n");
  m.write("/etc/modprobe.d/mine.conf", "options amdgpu pcie_gen_cap=0x000f000f\n");
  const auto refused = m.run(ActionKind::PcieSpeed);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().text, HasSubstr("/etc/modprobe.d/mine.conf sets pcie_gen_cap already"));
}

TEST(PcieSpeed, NeverBelowTheFloorNorASecondStepIntoALoop) {
  TestMachine m;
  ASSERT_TRUE(m.run(ActionKind::PcieSpeed));
  const auto again = m.run(ActionKind::PcieSpeed);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ErrorCode::InvalidInput);
  EXPECT_THAT(again.error().text, HasSubstr("Gen2 is below the floor of Gen3"));
  EXPECT_FALSE(m.run(ActionKind::PcieSpeed, {{"generation", "5"}}));
  EXPECT_FALSE(m.run(ActionKind::PcieSpeed, {{"generation", "3.5"}}));
  EXPECT_EQ(m.run(ActionKind::PcieSpeed, {{"generation", "3"}})->state, "nothing-to-do");
}

TEST(PcieSpeed, AcceptedWithoutEffectIsTakenBack) {
  TestMachine m;
  // The target is taken, the link does not follow.
  m.system.faults["/config"] = {.no_effect = true, .only_call = 2};
  const auto refused = m.run(ActionKind::PcieSpeed);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().text, HasSubstr("LNKSTA at " + m.port() + " still says Gen4"));
  EXPECT_EQ(m.last().state, "reverted");
  EXPECT_EQ(read_link(m.machine(), m.port() + "/config")->target, 4U);
}

TEST(PcieSpeed, ACardThatFallsOffWhileItTrainsIsReported) {
  TestMachine m;
  m.system.faults["/config"] = {.then_gone = true, .only_call = 2};
  const auto refused = m.run(ActionKind::PcieSpeed);
  ASSERT_FALSE(refused);
  EXPECT_NE(m.last().state, "applied");
  EXPECT_NE(m.last().state, "intended");
  // The port is still there: its target is what it was.
  EXPECT_EQ(read_link(m.machine(), m.port() + "/config")->target, 4U);
}

TEST(PcieSpeed, NeverTouchesPpDpmPcie) {
  TestMachine m;
  ASSERT_TRUE(m.run(ActionKind::PcieSpeed));
  for (const std::string& write : m.system.writes) EXPECT_THAT(write, testing::Not(HasSubstr("pp_dpm_pcie")));
}

TEST(PcieSpeed, ACardWithoutASwitchIsTheLinksOtherEnd) {
  TestMachine m({sim::idle_card(sim::rx580(), 0)});
  const auto done = m.run(ActionKind::PcieSpeed, {{"generation", "2"}, {"floor", "1"}});
  ASSERT_TRUE(done) << done.error().text;
  EXPECT_EQ(done->before, "Gen3");
  EXPECT_EQ(slot_speed(m), 2U);
}

}  // namespace
}  // namespace gpuhealth::actions
