// SPDX-License-Identifier: Apache-2.0
// Fault traces of each kind, made with noise and with neighbours, against the table of causes.
#include "health/cause.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <map>
#include <random>

#include "health/canary_watch.hpp"

namespace gpuhealth::health {
namespace {

using canary::Better;
using canary::Measurement;
using canary::Status;

enum class Fault { Thermal, Power, Stuck, Link, Neighbour, Software, Hardware };
const std::map<Fault, std::string> kNames = {{Fault::Thermal, "thermal"},      {Fault::Power, "power-cap"},
                                             {Fault::Stuck, "clocks-stuck"},   {Fault::Link, "pcie"},
                                             {Fault::Neighbour, "contention"}, {Fault::Software, "software-regression"},
                                             {Fault::Hardware, "hardware"}};

// A card of 2000 MHz, 60 TFLOP/s, 900 GB/s and a x16 Gen4 link, as it looks while something is wrong.
struct Card {
  double clock = 2000, compute_per_clock = 30, memory = 900, link = 31.5, copy_share = 0.85;
  std::string throttle = "0x0";
  double busy = 0;
  std::string kernel = "6.12.1";
};

class Traces {
 public:
  explicit Traces(unsigned seed) : random_(seed) {}
  std::vector<Measurement> record(const Card& card, int runs) {
    std::vector<Measurement> out;
    for (int i = 0; i < runs; ++i) {
      const bool busy = uniform_(random_) < card.busy;
      const double neighbour = busy ? 1 + uniform_(random_) : 1;
      const double clock = card.clock * noise(0.01);
      add(out, card, "fma32", clock * card.compute_per_clock * noise(0.01) / neighbour, busy, clock);
      add(out, card, "triad", card.memory * noise(0.01) / neighbour, busy, clock);
      add(out, card, "h2d_pin", card.link * card.copy_share * noise(0.02) / neighbour, busy, clock);
      add(out, card, "d2h_pin", card.link * card.copy_share * noise(0.02) / neighbour, busy, clock);
    }
    return out;
  }
  Card with(Fault fault) {
    Card c;
    const double by = 1.12 + uniform_(random_);
    c.busy = fault == Fault::Neighbour ? 0.9 : 0.1 * uniform_(random_);  // a gate that is seldom shut
    switch (fault) {
      case Fault::Thermal:
        c.clock /= by;
        c.throttle = uniform_(random_) < 0.5 ? "0x20" : "thermal-junction";
        break;
      case Fault::Power:
        c.clock /= by;
        c.throttle = uniform_(random_) < 0.5 ? "0x4" : "power-ppt0";
        break;
      case Fault::Stuck:
        c.clock /= by + 0.5;
        break;
      case Fault::Link:
        c.link /= uniform_(random_) < 0.5 ? 2 : 4;
        break;
      case Fault::Neighbour:
        break;
      case Fault::Software:
        c.kernel = "6.12.2";
        (uniform_(random_) < 0.5 ? c.compute_per_clock : c.memory) /= by;
        break;
      case Fault::Hardware:
        (uniform_(random_) < 0.5 ? c.compute_per_clock : c.memory) /= by;
        break;
    }
    return c;
  }

 private:
  double noise(double sigma) { return std::exp(sigma * normal_(random_)); }
  static void add(std::vector<Measurement>& out, const Card& card, const char* name, double value, bool busy,
                  double clock) {
    Measurement m;
    m.canary = name;
    m.better = Better::Higher;
    m.value = value;
    m.status = busy ? Status::Busy : Status::Ok;
    m.epoch = card.kernel;
    m.software = {{"kernel", card.kernel}};
    m.notes = {{"clock_gfx_mhz", std::to_string(clock)},
               {"clock_memory_mhz", "1250"},
               {"throttle_reasons", card.throttle},
               {"link_negotiated_gb_s", std::to_string(card.link)}};
    out.push_back(std::move(m));
  }
  std::mt19937 random_;
  std::normal_distribution<double> normal_{0, 1};
  std::uniform_real_distribution<double> uniform_{0, 1};
};

TEST(Cause, OfTwoHundredAndTenTracesTheTopCauseIsRight) {
  Traces traces(20261130);
  std::map<std::pair<std::string, std::string>, int> matrix;
  int right = 0;
  int wrong = 0;
  int all = 0;
  for (int i = 0; i < 30; ++i) {
    for (const auto& [fault, name] : kNames) {
      const auto before = traces.record(Card{}, 12);
      const auto after = traces.record(traces.with(fault), 6);
      const auto verdict = find_cause({before, after, std::nullopt});
      ++matrix[{name, verdict.name}];
      ++all;
      right += verdict.name == name ? 1 : 0;
      wrong += verdict.name != name && verdict.name != "unknown" ? 1 : 0;
    }
  }
  for (const auto& [key, n] : matrix) std::printf("%-20s -> %-20s %d\n", key.first.c_str(), key.second.c_str(), n);
  EXPECT_EQ(all, 210);
  EXPECT_GE(right, 0.90 * all);
  EXPECT_LE(wrong, 0.02 * all);
}

TEST(Cause, NothingWrongHasNoCause) {
  Traces traces(7);
  for (int i = 0; i < 50; ++i) {
    const auto before = traces.record(Card{}, 12);
    const auto after = traces.record(Card{}, 6);
    EXPECT_EQ(find_cause({before, after, std::nullopt}).name, "unknown");
  }
}

std::vector<Measurement> stalled(const std::string& kernel, double ms) {
  Measurement m;
  m.canary = "h2d_file_rw";
  m.value = ms;
  m.epoch = kernel;
  m.software = {{"kernel", kernel}};
  m.mappings = {{ms, 2, ms * 0.98, 2}, {ms, 2, ms * 0.98, 2}, {ms, 2, ms * 0.98, 2}};
  return {m};
}

TEST(Cause, TheHostCopyStallNamesThePathAndTheKernelThatChanged) {
  const auto before = stalled("7.0.11", 12);
  const auto after = stalled("7.0.12", 2010);
  const auto verdict = find_cause({before, after, std::nullopt});
  EXPECT_EQ(verdict.name, "host-memory-mapping");
  EXPECT_EQ(verdict.text, "software regression: host-memory mapping path");
  ASSERT_EQ(verdict.changed.size(), 1U);
  EXPECT_EQ(verdict.changed[0].second, "7.0.11 -> 7.0.12");
  EXPECT_FALSE(verdict.against.empty());
}

TEST(Cause, OnALoadedMachineTheSpinningGetsAPartOfAProcessor) {
  auto after = stalled("7.0.12", 2040);
  for (auto& mapping : after[0].mappings) mapping.system_ms = 620;
  EXPECT_EQ(find_cause({{}, after, std::nullopt}).name, "host-memory-mapping");
}

// The probe without a runtime knows a part of the software only; it runs before every run of the others.
TEST(CanaryWatch, ProbeAndRuntimeOfOneKernelAreOneSoftware) {
  CanaryWatch watch;
  CanaryOutcome last;
  double time = 0;
  const auto probe = [&](const std::string& kernel, double ms) {
    auto m = stalled(kernel, ms)[0];
    m.canary = "userptr_cow";
    m.backend = "ioctl";
    m.device = "0000:03:00.0";
    m.epoch = kernel + " without a runtime";
    m.time = time += 20;
    m.environment = {{"HSA_XNACK", "1"}};
    last = watch.observe(m);
  };
  const auto copy = [&](const std::string& kernel, double pinned) {
    Measurement m;
    m.canary = "h2d_pin";
    m.metric = "bandwidth";
    m.better = canary::Better::Higher;
    m.value = pinned;
    m.backend = "hip";
    m.device = "0000:03:00.0";
    m.epoch = kernel + " with one";
    m.software = {{"kernel", kernel}, {"runtime", "hip 6.4"}};
    m.time = time += 20;
    watch.observe(m);
  };
  for (int i = 0; i < 3; ++i) {
    probe("7.0.11", 12);
    copy("7.0.11", 25);
  }
  // Were the runtime's measurements forgotten at each probe, nobody could say that pinned copies lost speed as well.
  copy("7.0.12", 10);
  for (int i = 0; i < 2; ++i) {
    probe("7.0.12", 2010);
    copy("7.0.12", 10);
  }
  probe("7.0.12", 2010);
  const auto open = watch.open();
  ASSERT_EQ(open.size(), 1U);
  EXPECT_EQ(open[0].finding.kind, canary::stats::FindingKind::Stall);
  EXPECT_EQ(open[0].environment.at("HSA_XNACK"), "1");
  ASSERT_EQ(open[0].cause.changed.size(), 1U);
  EXPECT_EQ(open[0].cause.changed[0].second, "7.0.11 -> 7.0.12");
  EXPECT_EQ(open[0].cause.name, "unknown") << "the controls are not fine: pinned copies are slower too";
}

TEST(Cause, AlsoOnAMachineThatWasNeverSeenWell) {
  const auto after = stalled("7.0.12", 2010);
  EXPECT_EQ(find_cause({{}, after, std::nullopt}).name, "host-memory-mapping");
}

TEST(Cause, TheSameChangeOnOtherMachinesMakesItTheFleets) {
  Traces traces(3);
  const auto before = traces.record(Card{}, 12);
  Card slower;
  slower.kernel = "6.12.2";
  slower.compute_per_clock = 25;
  const auto after = traces.record(slower, 6);
  EXPECT_EQ(find_cause({before, after, true}).name, "software-regression-fleet");
  EXPECT_EQ(find_cause({before, after, false}).name, "software-regression");
}

TEST(Cause, WhatIsNotKnownIsNoEvidence) {
  Symptoms signs;
  EXPECT_EQ(attribute(signs).name, "unknown");
  signs.at(static_cast<std::size_t>(Symptom::LessPerClock)) = true;
  EXPECT_EQ(attribute(signs).name, "unknown") << "whether the software changed is not known";
}

}  // namespace
}  // namespace gpuhealth::health
