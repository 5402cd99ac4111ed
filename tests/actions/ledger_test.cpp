// SPDX-License-Identifier: Apache-2.0
// The ledger's file format, old and new, and how entries are found, confirmed and left to time.
#include "store/ledger.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actions/request.hpp"
#include "machine.hpp"

namespace gpuhealth::actions {
namespace {

using test::TestMachine;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

TEST(Names, ALineEndInAnIdIsNotPrintedAsOne) {
  TestMachine m;
  const auto none = find_entry(m.machine().files, "x\ny");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().text.find('\n'), std::string::npos) << none.error().text;
}

TEST(Confirm, SaysNothingOfWritesThatWereDoneBefore) {
  TestMachine m;
  const auto done = m.run(ActionKind::PowerCap, {{"watts", "280"}});
  ASSERT_TRUE(done);
  EXPECT_EQ(done->steps.size(), 1U);
  EXPECT_TRUE(confirm(m.machine(), done->ledger)->steps.empty());
}

TEST(Params, AreGivenOnce) {
  ActionRequest request;
  ASSERT_TRUE(add_param(request, "watts=280"));
  const auto again = add_param(request, "watts=250");
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().text, "watts is given twice: 280 and 250");
}

TEST(Ledger, WhatAPowerCutLeftBesideIsTakenAway) {
  TestMachine m;
  m.write("/var/lib/gpuhealthd/ledger/000009-power-cap.json.gpuhealth-new", "{");
  ASSERT_TRUE(m.run(ActionKind::PowerCap, {{"watts", "280"}}));
  EXPECT_FALSE(m.exists("/var/lib/gpuhealthd/ledger/000009-power-cap.json.gpuhealth-new"));
}

TEST(LedgerFormat, ReadsWhatTheFirstVersionWrote) {
  TestMachine m;
  m.write("/var/lib/gpuhealthd/ledger/000001-kernel-pin.json",
          R"({"id":"000001-kernel-pin","action":"kernel-pin","target":"6.1.0-55-amd64","state":"done",
             "started":"2026-10-01T10:00:00Z","boot_id":"b","note":"","prior":{"/boot/grub/grub.cfg":null,
             "/etc/default/grub":{"mode":420,"hex":"6162"}}})");
  const auto entries = m.ledger();
  ASSERT_THAT(entries, SizeIs(1));
  EXPECT_EQ(entries[0].format, 1);
  EXPECT_EQ(entries[0].owner, "kernel");
  EXPECT_EQ(entries[0].prior.at("/etc/default/grub").bytes, "ab");
  EXPECT_FALSE(entries[0].prior.at("/boot/grub/grub.cfg").exists);
}

TEST(LedgerFormat, WhatANewerVersionWroteIsSaidAndNotTouched) {
  TestMachine m;
  const std::string file = "/var/lib/gpuhealthd/ledger/000009-power-cap.json";
  m.write(file, R"({"format":3,"id":"000009-power-cap","state":"intended"})");
  std::vector<std::string> notes;
  EXPECT_THAT(read_ledger(m.machine().files, &notes), IsEmpty());
  EXPECT_THAT(notes, ElementsAre(HasSubstr("000009-power-cap.json cannot be read")));
  ASSERT_TRUE(m.run(ActionKind::PowerCap, {{"watts", "280"}}));
  EXPECT_EQ(m.last().id, "000010-power-cap");
  EXPECT_THAT(m.read(file), HasSubstr("\"format\":3"));
}

TEST(LedgerFormat, DamagedFilesAreNamedAndDoNoHarm) {
  TestMachine m;
  for (const char* text : {"", "{", "[]", R"({"format":"x"})", R"({"format":2,"id":1})"}) {
    m.write("/var/lib/gpuhealthd/ledger/000001-x.json", text);
    EXPECT_THAT(m.ledger(), IsEmpty()) << text;
  }
}

TEST(LedgerFormat, EveryFieldComesBack) {
  TestMachine m;
  Order order = m.order(ActionKind::PcieSpeed, {{"generation", "3"}});
  order.request.policy = "lab";
  order.request.rule = "gen5";
  order.request.condition = "device-lost-x-1";
  order.request.reason = "two losses\tin a \"day\" \xc3\xa4 \xff";
  order.times = {{"fault", "2026-11-30T00:50:00Z"}, {"detected", "2026-11-30T00:51:00Z"}};
  ASSERT_TRUE(m.run(order));
  const LedgerEntry entry = m.last();
  EXPECT_EQ(entry.format, 2);
  EXPECT_EQ(entry.owner, "actions");
  EXPECT_EQ(entry.policy + entry.rule + entry.condition, "labgen5device-lost-x-1");
  EXPECT_THAT(entry.reason, HasSubstr("two losses\tin a \"day\" \xc3\xa4"));
  EXPECT_THAT(entry.steps, SizeIs(2));
  EXPECT_EQ(entry.steps[0], (LedgerStep{"bits", m.port() + "/config", 0x94, 0xf, "3"}));
  EXPECT_EQ(entry.back[0], (LedgerStep{"bits", m.port() + "/config", 0x94, 0xf, "4"}));
  EXPECT_EQ(entry.facts.at("way"), "config-space");
  EXPECT_EQ(entry.times.at("detected"), "2026-11-30T00:51:00Z");
  EXPECT_EQ(entry.times.at("applied"), "2026-11-30T00:53:20Z");
  EXPECT_EQ(entry.boot_id, "boot-1");
  EXPECT_EQ(entry.target, m.pci());
}

TEST(Entries, AreFoundByIdNumberAndBeginning) {
  TestMachine m;
  ASSERT_TRUE(m.run(ActionKind::PowerCap, {{"watts", "280"}}));
  for (const char* name : {"000001-power-cap", "1", "000001", "000001-pow"})
    EXPECT_TRUE(find_entry(m.machine().files, name)) << name;
  EXPECT_EQ(find_entry(m.machine().files, "2").error().code, ErrorCode::NotFound);
}

TEST(Probation, ConfirmedByAPersonItStays) {
  TestMachine m;
  const auto done = m.run(ActionKind::PowerCap, {{"watts", "280"}});
  ASSERT_TRUE(confirm(m.machine(), done->ledger));
  m.later(std::chrono::hours(24));
  ASSERT_TRUE(recover(m.machine()));
  EXPECT_EQ(m.last().state, "confirmed");
  EXPECT_EQ(m.read(m.cap()), "280000000");
  EXPECT_FALSE(confirm(m.machine(), done->ledger));
}

TEST(Probation, FoundGoodByNobodyItIsTakenBack) {
  TestMachine m;
  ASSERT_TRUE(m.run(ActionKind::PowerCap, {{"watts", "280"}}));
  m.later(std::chrono::minutes(14));
  ASSERT_TRUE(recover(m.machine()));
  EXPECT_EQ(m.read(m.cap()), "280000000");
  m.later(std::chrono::minutes(1));
  ASSERT_TRUE(recover(m.machine()));
  EXPECT_EQ(m.read(m.cap()), "303000000");
  EXPECT_THAT(m.last().note, HasSubstr("nobody found it good by 2026-11-30T01:08:20Z"));
}

TEST(ApplyAgain, AfterAResumeThatForgotTheLimitItIsWrittenAgain) {
  TestMachine m;
  const auto done = m.run(ActionKind::PowerCap, {{"watts", "280"}});
  ASSERT_TRUE(confirm(m.machine(), done->ledger));
  m.write(m.cap(), "303000000\n");
  m.system.writes.clear();
  const auto again = apply_again(m.machine(), m.pci());
  ASSERT_TRUE(again) << again.error().text;
  EXPECT_THAT(m.system.writes, ElementsAre(m.cap() + " 280000000"));
  EXPECT_THAT(again->resolved, ElementsAre("000001-power-cap: 280 W again"));
  m.system.writes.clear();
  ASSERT_TRUE(apply_again(m.machine(), m.pci()));
  EXPECT_THAT(m.system.writes, IsEmpty());
}

TEST(ApplyAgain, OfTwoOnOneLimitTheLaterOneHolds) {
  TestMachine m;
  ASSERT_TRUE(m.run(ActionKind::PowerCap, {{"watts", "290"}}));
  ASSERT_TRUE(m.run(ActionKind::PowerCap, {{"watts", "280"}}));
  m.system.writes.clear();
  ASSERT_TRUE(apply_again(m.machine(), m.pci()));
  EXPECT_THAT(m.system.writes, IsEmpty());
  m.write(m.cap(), "303000000\n");
  ASSERT_TRUE(apply_again(m.machine(), m.pci()));
  EXPECT_THAT(m.system.writes, ElementsAre(m.cap() + " 280000000"));
  for (const LedgerEntry& entry : m.ledger()) EXPECT_EQ(entry.state, "applied");
}

TEST(ApplyAgain, WhatSomebodyElseHasSetStays) {
  TestMachine m;
  ASSERT_TRUE(m.run(ActionKind::PowerCap, {{"watts", "280"}}));
  m.write(m.cap(), "299000000\n");
  m.system.writes.clear();
  ASSERT_TRUE(apply_again(m.machine(), m.pci()));
  EXPECT_THAT(m.system.writes, IsEmpty());
  EXPECT_EQ(m.last().state, "overtaken");
}

TEST(Requests, ComeBackFromTheirJson) {
  Order order;
  order.request.kind = ActionKind::PowerCap;
  order.request.device = "uid-1";
  order.request.params = {{"watts", "250"}};
  order.request.rule = "r";
  order.event = R"({"a":1})";
  order.times = {{"fault", "2026-11-30T00:50:00Z"}};
  order.probation = std::chrono::seconds(60);
  const auto back = order_from(order_json(order).dump());
  ASSERT_TRUE(back) << back.error().text;
  EXPECT_EQ(back->request.params, order.request.params);
  EXPECT_EQ(back->request.rule, "r");
  EXPECT_EQ(back->event, R"({"a":1})");
  EXPECT_EQ(back->probation, std::chrono::seconds(60));
  EXPECT_EQ(order_from(R"({"action":"power-cap","params":{"watts":250,"above_default":true}})")->request.params,
            (std::map<std::string, std::string>{{"watts", "250"}, {"above_default", "true"}}));
  for (const char* bad : {"", "[]", "{}", R"({"action":"fly"})", R"({"action":1})", R"({"action":"drain","params":[]})",
                          R"({"action":"drain","params":{"a":{}}})", R"({"action":"drain","probation_s":-1})"})
    EXPECT_FALSE(order_from(bad)) << bad;
}

}  // namespace
}  // namespace gpuhealth::actions
