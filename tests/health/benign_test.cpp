// SPDX-License-Identifier: Apache-2.0
// Weeks of ordinary life, made up with seeded noise: nothing may be raised. Each runs well under a second.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "machine.hpp"

namespace gpuhealth::health {
namespace {

using namespace std::chrono_literals;
using R = ReadingId;

class Noise {
 public:
  explicit Noise(unsigned seed) : generator_(seed) {}
  double around(double mean, double spread) { return mean + spread * (2 * uniform_(generator_) - 1); }
  bool chance(double probability) { return uniform_(generator_) < probability; }

 private:
  std::mt19937 generator_;
  std::uniform_real_distribution<double> uniform_{0, 1};
};

void idle(Sample& sample, Noise& noise) {
  set(sample, R::TemperatureEdge, noise.around(42, 4));
  set(sample, R::TemperatureJunction, noise.around(48, 5));
  set(sample, R::TemperatureMemory, noise.around(55, 5));
  set(sample, R::PowerAverage, noise.around(30, 12));
  set(sample, R::ClockGfx, noise.chance(0.5) ? 31 : noise.around(300, 290));
  set(sample, R::ClockMemory, noise.chance(0.2) ? 456 : 96);
  set(sample, R::UtilizationGfx, noise.chance(0.02) ? noise.around(60, 40) : noise.around(3, 3));
  set(sample, R::UtilizationMemory, noise.around(8, 8));
  set(sample, R::PcieSpeed, noise.chance(0.1) ? 16 : 2.5);
  set(sample, R::PcieWidth, noise.chance(0.3) ? 1 : 16);
  set(sample, R::FanRpm, 0);
  sample.throttle = {};
}

void play(Sample& sample, Noise& noise) {
  put_under_load(sample);
  const double busy = std::clamp(noise.around(80, 40), 0.0, 100.0);
  set(sample, R::UtilizationGfx, busy);
  set(sample, R::TemperatureJunction, noise.around(92, 10));
  set(sample, R::PowerAverage, std::clamp(busy * 3.3, 60.0, 303.0));
  set(sample, R::ClockGfx, busy < 50 ? noise.around(900, 400) : noise.around(2300, 200));
  set(sample, R::PcieSpeed, busy < 50 ? 2.5 : 16);
  sample.throttle = {};
  if (noise.chance(0.3)) sample.throttle.insert(ThrottleReason::Ppt0);          // at its default limit
  if (noise.chance(0.02)) sample.throttle.insert(ThrottleReason::TempHotspot);  // a moment
  sample.throttle_gated.insert(ThrottleReason::TempHotspot);
}

void compute(Sample& sample, Noise& noise) {
  put_under_load(sample);
  set(sample, R::UtilizationGfx, noise.chance(0.05) ? noise.around(10, 10) : 100);
  set(sample, R::PowerAverage, noise.around(298, 5));
  set(sample, R::TemperatureJunction, noise.around(100, 6));
  set(sample, R::TemperatureMemory, noise.around(96, 6));
  set(sample, R::ClockGfx, noise.around(1900, 500));
  set(sample, R::GttUsed, noise.around(8e9, 8e9));
  sample.throttle = {};
  sample.throttle.insert(ThrottleReason::Ppt0);
}

void age(Sample& sample, Noise& noise) {
  if (noise.chance(0.001)) set(sample, R::AerCorrectable, sample.value(R::AerCorrectable).value_or(0) + 1);
  if (noise.chance(0.005)) set(sample, R::PcieReplays, sample.value(R::PcieReplays).value_or(0) + 1);
}

void expect_nothing(Machine& machine) {
  for (const auto& change : machine.changes) {
    ADD_FAILURE() << info(change.condition.type).name << ": " << change.condition.detail;
    break;
  }
}

TEST(BenignWeek, OfAnIdleDesktop) {
  Machine machine;
  Noise noise(1);
  machine.run(24h * 7, 10s, [&](Sample& sample) { idle(sample, noise), age(sample, noise); });
  expect_nothing(machine);
}

TEST(BenignWeek, OfGamingEveningsAndSuspendedNights) {
  Machine machine;
  Noise noise(2);
  for (int day = 0; day < 7; ++day) {
    machine.run(4h, 10s, [&](Sample& sample) { idle(sample, noise), age(sample, noise); });
    machine.run(4h, 10s, [&](Sample& sample) { play(sample, noise), age(sample, noise); });
    machine.pass(16h);
    machine.clock.step_wall(day % 2 == 0 ? Duration(3s) : Duration(-3s));
  }
  expect_nothing(machine);
}

TEST(BenignWeek, OfComputeJobsAtTheDefaultPowerLimit) {
  Machine machine;
  Noise noise(3);
  for (int job = 0; job < 7 * 8; ++job) {
    machine.run(2h, 10s, [&](Sample& sample) { compute(sample, noise), age(sample, noise); });
    machine.run(1h, 10s, [&](Sample& sample) { idle(sample, noise), age(sample, noise); });
  }
  expect_nothing(machine);
}

TEST(BenignWeek, OfALaptopGpuThatSleepsMostOfTheTime) {
  Machine machine;
  Noise noise(4);
  for (int nap = 0; nap < 7 * 24; ++nap) {
    machine.sample.power = PowerState::Active;
    machine.run(10min, 5s, [&](Sample& sample) {
      idle(sample, noise);
      if (noise.chance(0.1)) set(sample, R::UtilizationGfx, 100);  // what the SMU reports after a wake-up
    });
    machine.sample.power = PowerState::Suspended;
    for (auto& reading : machine.sample.readings)
      if (reading.id != R::GttUsed && reading.id != R::VramUsed) reading.status = ReadingStatus::Asleep;
    machine.run(50min, 60s);
    machine.sample = idle_desktop();
  }
  expect_nothing(machine);
}

TEST(BenignWeek, OfReadingsThatComeAndGo) {
  Machine machine;
  Noise noise(5);
  constexpr std::array statuses = {ReadingStatus::Unreadable, ReadingStatus::InReset, ReadingStatus::Stale,
                                   ReadingStatus::Implausible, ReadingStatus::Stuck};
  machine.run(24h * 7, 20s, [&](Sample& sample) {
    sample.throttle_known = noise.chance(0.9);
    if (noise.chance(0.5))
      play(sample, noise);
    else
      idle(sample, noise);
    for (auto& reading : sample.readings)
      if (noise.chance(0.1)) reading.status = statuses.at(static_cast<std::size_t>(noise.around(2.5, 2.4)));
  });
  expect_nothing(machine);
}

}  // namespace
}  // namespace gpuhealth::health
