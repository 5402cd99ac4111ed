// SPDX-License-Identifier: Apache-2.0
#include "sim/pm_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <string_view>

namespace gpuhealth::sim {
namespace {

std::string number(std::uint64_t value) {
  return fmt::format("{}\n", value);
}
std::string milli(double value) {
  return fmt::format("{}\n", std::lround(value * 1000));
}
std::string micro(double value) {
  return fmt::format("{}\n", std::llround(value * 1e6));
}

void add_sensor(std::vector<FileText>& files, int index, std::string_view label,
                const std::optional<TemperatureLimits>& limits) {
  const std::string prefix = fmt::format("hwmon/temp{}_", index);
  files.push_back({prefix + "label", fmt::format("{}\n", label)});
  if (!limits) return;
  files.push_back({prefix + "crit", milli(limits->critical_c)});
  files.push_back({prefix + "crit_hyst", "-273150\n"});  // absolute zero: not set
  if (limits->emergency_c != 0) files.push_back({prefix + "emergency", milli(limits->emergency_c)});
}

// "0: 96Mhz \n1: 1000Mhz *\n": the star stands at the level nearest to the clock.
std::string level_table(const std::vector<unsigned>& levels, unsigned now_mhz) {
  const auto distance = [now_mhz](unsigned a, unsigned b) {
    return std::abs(static_cast<int>(a) - static_cast<int>(now_mhz)) <
           std::abs(static_cast<int>(b) - static_cast<int>(now_mhz));
  };
  const auto nearest = std::min_element(levels.begin(), levels.end(), distance);
  std::string text;
  for (auto level = levels.begin(); level != levels.end(); ++level)
    text += fmt::format("{}: {}Mhz {}\n", level - levels.begin(), *level, level == nearest ? "*" : "");
  return text;
}

// RDNA2 and newer print lowest, current, highest; two lines when the clock is at one end.
std::string three_level_table(const std::vector<unsigned>& levels, unsigned now_mhz) {
  const unsigned low = levels.front();
  const unsigned high = levels.back();
  if (now_mhz == low || now_mhz == high) return level_table({low, high}, now_mhz);
  return fmt::format("0: {}Mhz \n1: {}Mhz *\n2: {}Mhz \n", low, now_mhz, high);
}

// The star stands only where speed and width both match (amdgpu_pm.c): a degraded link has none.
std::string pcie_table(const std::vector<std::string>& levels, const Link& link) {
  const std::string now = fmt::format("{:.1f}GT/s, x{} ", link.speed_gts, link.width);
  std::string text;
  for (std::size_t i = 0; i < levels.size(); ++i)
    text += fmt::format("{}: {}{}\n", i, levels[i], levels[i].starts_with(now) ? "*" : "");
  return text;
}

}  // namespace

std::vector<FileText> hwmon_fixed_files(const Card& card) {
  const CardModel& m = card.model;
  std::vector<FileText> files = {
      {"hwmon/name", "amdgpu\n"}, {"hwmon/power1_label", "PPT\n"}, {"hwmon/freq1_label", "sclk\n"}};
  if (m.has_edge_sensor) add_sensor(files, 1, "edge", m.edge);
  if (m.junction) add_sensor(files, 2, "junction", m.junction);
  if (m.memory) add_sensor(files, 3, "mem", m.memory);
  if (m.has_power_cap) {
    files.push_back({"hwmon/power1_cap_default", micro(m.cap_default_w)});
    files.push_back({"hwmon/power1_cap_min", micro(m.cap_min_w)});
    files.push_back({"hwmon/power1_cap_max", micro(m.cap_max_w)});
  }
  if (m.fan_max_rpm != 0) {
    files.push_back({"hwmon/fan1_min", "0\n"});
    files.push_back({"hwmon/fan1_max", number(m.fan_max_rpm)});
    files.push_back({"hwmon/pwm1_min", "0\n"});
    files.push_back({"hwmon/pwm1_max", "255\n"});
  }
  if (m.has_gfx_voltage) files.push_back({"hwmon/in0_label", "vddgfx\n"});
  if (m.is_apu) files.push_back({"hwmon/in1_label", "vddnb\n"});
  if (!m.is_apu) files.push_back({"hwmon/freq2_label", "mclk\n"});
  return files;
}

std::vector<FileText> hwmon_live_files(const Card& card) {
  const CardModel& m = card.model;
  const CardState& s = card.state;
  std::vector<FileText> files = {{"hwmon/freq1_input", number(std::uint64_t{s.gfx_mhz} * 1'000'000)}};
  if (m.has_edge_sensor) files.push_back({"hwmon/temp1_input", milli(s.edge_c)});
  if (m.junction) files.push_back({"hwmon/temp2_input", milli(s.junction_c)});
  if (m.memory) files.push_back({"hwmon/temp3_input", milli(s.memory_c)});
  if (m.power_files != PowerFiles::Input) files.push_back({"hwmon/power1_average", micro(s.power_w)});
  if (m.power_files != PowerFiles::Average) files.push_back({"hwmon/power1_input", micro(s.power_w)});
  if (m.has_power_cap) files.push_back({"hwmon/power1_cap", micro(s.cap_w)});
  if (m.fan_max_rpm != 0) {
    files.push_back({"hwmon/fan1_input", number(s.fan_rpm)});
    files.push_back({"hwmon/fan1_target", number(s.fan_rpm)});
    files.push_back({"hwmon/pwm1", number(s.fan_rpm * 255 / m.fan_max_rpm)});
    if (m.has_fan_mode) {
      files.push_back({"hwmon/fan1_enable", "0\n"});  // 0 is automatic
      files.push_back({"hwmon/pwm1_enable", "2\n"});  // 2 is automatic
    }
  }
  if (m.has_gfx_voltage) files.push_back({"hwmon/in0_input", number(s.gfx_mv)});
  if (m.is_apu) files.push_back({"hwmon/in1_input", number(s.soc_mv)});
  if (!m.is_apu) files.push_back({"hwmon/freq2_input", number(std::uint64_t{s.memory_mhz} * 1'000'000)});
  return files;
}

std::vector<FileText> clock_files(const Card& card) {
  const CardModel& m = card.model;
  const CardState& s = card.state;
  std::vector<FileText> files;
  files.push_back({"pp_dpm_sclk", m.three_level_gfx ? three_level_table(m.gfx_levels_mhz, s.gfx_mhz)
                                                    : level_table(m.gfx_levels_mhz, s.gfx_mhz)});
  files.push_back({"pp_dpm_mclk", level_table(m.memory_levels_mhz, s.memory_mhz)});
  if (!m.soc_levels_mhz.empty()) files.push_back({"pp_dpm_socclk", level_table(m.soc_levels_mhz, s.soc_mhz)});
  if (!m.fabric_levels_mhz.empty()) files.push_back({"pp_dpm_fclk", level_table(m.fabric_levels_mhz, s.fabric_mhz)});
  if (!m.pcie_levels.empty()) files.push_back({"pp_dpm_pcie", pcie_table(m.pcie_levels, s.link)});
  return files;
}

std::vector<FileText> ras_files(const Card& card) {
  if (!card.model.has_ras) return {};
  constexpr std::array<std::string_view, 8> kBlocks = {"umc",   "sdma",     "gfx", "mmhub",
                                                       "athub", "pcie_bif", "hdp", "xgmi_wafl"};
  std::vector<FileText> files = {
      {"ras/features", "feature mask: 0x5fff\n"},
      {"ras/version", "table version: 0x10000\n"},
      {"ras/schema", "schema: 0x2\n"},
      {"ras/event_state",
       "current seqno: 0\nFatal Error: count:0, last_seqno:0\n"
       "Poison Creation: count:0, last_seqno:0\nPoison Consumption: count:0, last_seqno:0\n"},
      {"ras/gpu_vram_bad_pages", ""}};
  for (const std::string_view block : kBlocks) {
    const auto row = std::find_if(card.state.ras.begin(), card.state.ras.end(),
                                  [block](const RasCount& count) { return count.block == block; });
    RasCount count;
    if (row != card.state.ras.end()) count = *row;
    std::string text = fmt::format("ue: {}\nce: {}\n", count.uncorrectable, count.correctable);
    if (block == "umc") text += fmt::format("de: {}\n", count.deferred.value_or(0));
    files.push_back({fmt::format("ras/{}_err_count", block), text});
  }
  return files;
}

}  // namespace gpuhealth::sim
