// SPDX-License-Identifier: Apache-2.0
#include "cli/acceptance.hpp"

#include <gtest/gtest.h>

#include "core/json.hpp"

namespace gpuhealth::cli {
namespace {

constexpr const char* kPci = "0000:03:00.0";

RunRow row(const std::string& canary, const std::string& verdict, bool ideal = false) {
  RunRow r;
  r.measurement.canary = canary;
  r.measurement.status = verdict == "unsupported" ? canary::Status::Unsupported : canary::Status::Ok;
  if (ideal) r.measurement.notes["ideal"] = "960";
  r.verdict = verdict;
  return r;
}

Json card(const std::string& readings, const std::string& conditions = "") {
  return parse_json<Json>(R"({"devices":[{"pci":"0000:03:00.0","readings":{)" + readings + R"(},"conditions":[)" +
                          conditions + "]}]}");
}

const char* const kQuiet =
    R"("ras.umc.uncorrectable":{"value":0},"ras.umc.correctable":{"value":9},"aer.nonfatal":{"value":0},"aer.fatal":{"value":0})";

std::string verdict(const Json& inspection, const std::vector<RunRow>& rows) {
  return acceptance_verdict(rows, check_hardware(inspection, kPci, rows));
}

TEST(Accept, ACardThatCountsNoErrorAndReachesItsSpeedIsCleared) {
  EXPECT_EQ(verdict(card(kQuiet), {row("triad", "ok", true), row("mma16", "unsupported")}), "hardware cleared");
}

TEST(Accept, AnUncorrectedErrorOfMemoryOrOfTheBusIsNotCleared) {
  const std::vector<RunRow> good = {row("triad", "ok", true)};
  EXPECT_EQ(verdict(card(R"("ras.umc.uncorrectable":{"value":2},"aer.nonfatal":{"value":0})"), good), "not cleared");
  EXPECT_EQ(verdict(card(R"("ras.umc.uncorrectable":{"value":0},"aer.fatal":{"value":1})"), good), "not cleared");
}

TEST(Accept, WhatOneLookFindsIsNotCleared) {
  const std::vector<RunRow> good = {row("triad", "ok", true)};
  EXPECT_EQ(verdict(card(kQuiet, R"({"severity":"warning","title":"PCIe link slow","detail":"x4 of x16"})"), good),
            "not cleared");
  EXPECT_EQ(verdict(card(kQuiet, R"({"severity":"info","title":"t","detail":"d"})"), good), "hardware cleared");
}

TEST(Accept, WhatCannotBeReadClearsNothing) {
  const std::vector<RunRow> good = {row("triad", "ok", true)};
  EXPECT_EQ(verdict(Json(), good), "incomplete");
  EXPECT_EQ(verdict(parse_json<Json>("[1,{}]"), good), "incomplete");
  EXPECT_EQ(verdict(card(R"("ras.umc.uncorrectable":{"value":null},"aer.fatal":{"value":0})"), good), "incomplete");
  EXPECT_EQ(verdict(card(kQuiet), {row("triad", "ok")}), "incomplete") << "its clocks were not compared";
}

TEST(Accept, PatternsStandForACardWithoutCounters) {
  const std::vector<RunRow> good = {row("triad", "ok", true), row("vram_pattern", "ok")};
  EXPECT_EQ(verdict(card(R"("aer.fatal":{"value":0})"), good), "hardware cleared");
}

TEST(Accept, ResultsCountFirst) {
  EXPECT_EQ(verdict(card(kQuiet), {row("triad", "slower", true)}), "not cleared");
  EXPECT_EQ(verdict(card(kQuiet), {row("triad", "ok", true), row("fma32", "busy")}), "busy");
  EXPECT_EQ(verdict(card(kQuiet), {row("mma16", "unsupported")}), "unsupported");
}

}  // namespace
}  // namespace gpuhealth::cli
