// SPDX-License-Identifier: Apache-2.0
// The highest clock through pp_od_clk_voltage: "s LEVEL MHZ", then "c" to commit. The file is there with overdrive
// alone (bit 0x4000 of amdgpu.ppfeaturemask), which is off unless somebody switched it on.
#include <cmath>

#include "actions/actuator.hpp"
#include "actions/profile_table.hpp"

namespace gpuhealth::actions {
namespace {

constexpr int kOwnFloorPercent = 50;

Result<ClockTable> read_table(const Machine& machine, const std::string& file) {
  const auto text = machine.hardware.read(file, std::size_t{1} << 16);
  if (!text) {
    if (text.error().code != ErrorCode::NotFound) return tl::unexpected<Error>(text.error());
    return fail(ErrorCode::NotFound,
                "the driver lets nobody set clocks here: there is no " + file +
                    " (overdrive is off; amdgpu.ppfeaturemask would switch it on); power-cap works without");
  }
  if (const auto table = parse_clock_table(*text)) return *table;
  return fail(ErrorCode::Unavailable,
              file + " names no highest clock (RDNA4 has offsets alone); power-cap works on this GPU");
}

std::string mhz(int value) {
  return std::to_string(value) + " MHz";
}

Result<Plan> plan(const Asked& asked) {
  const Machine& machine = *asked.machine;
  if (auto awake = must_be_awake(machine, *asked.target); !awake) return tl::unexpected<Error>(awake.error());
  const std::string file = asked.target->dir + "/pp_od_clk_voltage";
  const auto table = read_table(machine, file);
  if (!table) return tl::unexpected<Error>(table.error());
  const double asked_mhz = asked.params.number("mhz").value_or(0);
  if (asked_mhz < 1 || asked_mhz > 100'000) return fail(ErrorCode::InvalidInput, "clock-cap: mhz is no clock of a GPU");
  int wanted = static_cast<int>(std::floor(asked_mhz));
  Plan out;
  const int top = table->high_mhz.value_or(table->highest_mhz);
  const int low = std::max(table->low_mhz.value_or(0), top * kOwnFloorPercent / 100);
  if (wanted < low) {
    out.entry.warnings.push_back(mhz(wanted) + " is below the floor; " + mhz(low) + " is taken");
    wanted = low;
  }
  if (wanted >= table->highest_mhz) out.already = "the highest clock is " + mhz(table->highest_mhz) + " already";
  out.entry.before = mhz(table->highest_mhz);
  out.entry.wanted = mhz(wanted);
  const std::string set = "s " + std::to_string(table->level) + " ";
  out.entry.steps = {value_step(file, set + std::to_string(wanted)), value_step(file, "c")};
  out.entry.back = {value_step(file, set + std::to_string(table->highest_mhz)), value_step(file, "c")};
  return out;
}

Result<std::string> observe(const Machine& machine, const LedgerEntry& entry) {
  const auto table = read_table(machine, entry.steps.front().path);
  if (!table) return tl::unexpected<Error>(table.error());
  return mhz(table->highest_mhz);
}

}  // namespace

const Actuator kClockCap = {.kind = ActionKind::ClockCap, .on_device = true, .plan = plan, .observe = observe};

}  // namespace gpuhealth::actions
