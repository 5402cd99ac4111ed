// SPDX-License-Identifier: Apache-2.0
#include "sim/metrics_table.hpp"

#include <cmath>
#include <cstddef>
#include <utility>

namespace gpuhealth::sim {
namespace {

constexpr std::uint64_t kAbsent = ~std::uint64_t{0};

// Appends little-endian fields at their natural alignment; padding holds 0xff, as the driver's memset leaves it.
class TableWriter {
 public:
  TableWriter(std::uint16_t size, std::uint8_t format, std::uint8_t content) {
    u16(size);
    put(format, 1);
    put(content, 1);
  }
  void u16(std::uint64_t value) { put(value, 2); }
  void u32(std::uint64_t value) { put(value, 4); }
  void u64(std::uint64_t value) { put(value, 8); }
  void u16s(std::size_t count, std::uint64_t value) {
    for (std::size_t i = 0; i < count; ++i) u16(value);
  }
  void u64s(std::size_t count, std::uint64_t value) {
    for (std::size_t i = 0; i < count; ++i) u64(value);
  }
  std::string take() {
    align(8);
    return std::move(bytes_);
  }

 private:
  void align(std::size_t size) {
    while (bytes_.size() % size != 0) bytes_.push_back('\xff');
  }
  void put(std::uint64_t value, std::size_t size) {
    align(size);
    for (std::size_t i = 0; i < size; ++i) bytes_.push_back(static_cast<char>(value >> (8 * i) & 0xff));
  }
  std::string bytes_;
};

std::uint64_t rounded(double value) {
  return static_cast<std::uint64_t>(std::lround(value));
}

// In 0.1 GT/s.
std::uint64_t table_speed(const Card& card) {
  const bool clamped = card.model.metrics_speed_stops_at_gen4 && card.state.link.speed_gts > 16.0;
  return clamped ? 25 : rounded(card.state.link.speed_gts * 10);
}

std::string table_v1_3(const Card& card) {
  const CardState& s = card.state;
  TableWriter t(120, 1, 3);
  t.u16(rounded(s.edge_c));
  t.u16(rounded(s.junction_c));
  t.u16(rounded(s.memory_c));
  t.u16(rounded(s.edge_c - 2));  // vrgfx
  t.u16(rounded(s.edge_c - 4));  // vrsoc
  t.u16(rounded(s.memory_c - 6));
  t.u16(s.busy_percent);
  t.u16(s.memory_busy_percent);
  t.u16(0);  // media
  t.u16(rounded(s.power_w));
  t.u64(0);  // energy_accumulator: not filled on Navi
  t.u64(s.uptime_ns);
  t.u16(s.gfx_mhz);
  t.u16(kAbsent);
  t.u16(s.memory_mhz);
  t.u16s(4, 0);  // vclk0, dclk0, vclk1, dclk1, average
  t.u16(s.gfx_mhz);
  t.u16(s.soc_mhz);
  t.u16(s.memory_mhz);
  t.u16s(4, 0);  // the same, current
  t.u32(card.model.idle_throttle_bits | s.throttle_bits);
  t.u16(s.fan_rpm);
  t.u16(s.link.width);
  t.u16(table_speed(card));
  t.u16(kAbsent);      // padding
  t.u32(kAbsent);      // gfx_activity_acc
  t.u32(kAbsent);      // mem_activity_acc
  t.u16s(4, kAbsent);  // temperature_hbm
  t.u64(kAbsent);      // firmware_timestamp
  t.u16(s.soc_mv);
  t.u16(s.gfx_mv);
  t.u16(1350);     // voltage_mem
  t.u16(kAbsent);  // padding1
  t.u64(card.model.idle_indep_throttle_bits | s.indep_throttle_bits);
  return t.take();
}

std::string table_v1_5(const Card& card) {
  const CardState& s = card.state;
  TableWriter t(360, 1, 5);
  t.u16(rounded(s.junction_c));
  t.u16(rounded(s.memory_c));
  t.u16(rounded(s.edge_c));  // vrsoc
  t.u16(rounded(s.power_w));
  t.u16(s.busy_percent);
  t.u16(s.memory_busy_percent);
  t.u16s(4, 0);   // vcn_activity
  t.u16s(32, 0);  // jpeg_activity
  t.u64(rounded(s.power_w * static_cast<double>(s.uptime_ns) / 1e9 / 15.259e-6));
  t.u64(s.uptime_ns);
  t.u32(0);  // throttle_status: a literal 0 on MI300
  t.u32(0);  // gfxclk_lock_status
  t.u16(s.link.width);
  t.u16(rounded(s.link.speed_gts * 10));
  t.u16(16);
  t.u16(32);  // xgmi width, speed
  t.u32(std::uint64_t{1000} * s.busy_percent);
  t.u32(std::uint64_t{1000} * s.memory_busy_percent);
  t.u64(0);
  t.u64(0);  // pcie bandwidth
  t.u64(0);  // l0_to_recov
  t.u64(s.replays);
  t.u64(0);
  t.u32(0);
  t.u32(0);       // naks
  t.u64s(16, 0);  // xgmi read, write
  t.u64(s.uptime_ns / 10);
  t.u16s(8, s.gfx_mhz);
  t.u16s(4, s.soc_mhz);
  t.u16s(4, 29);
  t.u16s(4, 22);  // vclk0, dclk0
  t.u16(s.memory_mhz);
  t.u16(kAbsent);
  return t.take();
}

std::string table_v2_1(const Card& card) {
  const CardState& s = card.state;
  TableWriter t(120, 2, 1);
  t.u16(rounded(s.edge_c * 100));
  t.u16(rounded(s.edge_c * 100));
  t.u16s(8, rounded(s.edge_c * 100));  // cores
  t.u16s(2, kAbsent);                  // l3
  t.u16(std::uint64_t{100} * s.busy_percent);
  t.u16(0);  // media
  t.u64(s.uptime_ns);
  t.u16(rounded(s.power_w * 1000));
  t.u16(kAbsent);                      // cpu power
  t.u16(rounded(s.power_w * 300));     // soc, mW
  t.u16(rounded(s.power_w * 500));     // gfx, mW
  t.u16s(8, rounded(s.power_w * 20));  // cores, mW
  t.u16(s.gfx_mhz);
  t.u16(s.soc_mhz);
  t.u16(s.memory_mhz);
  t.u16(s.fabric_mhz);
  t.u16s(2, 0);
  t.u16(s.gfx_mhz);
  t.u16(s.soc_mhz);
  t.u16(s.memory_mhz);
  t.u16(s.fabric_mhz);
  t.u16s(2, 0);
  t.u16s(8, 1400);     // coreclk
  t.u16s(2, kAbsent);  // l3clk
  t.u32(s.throttle_bits);
  t.u16(kAbsent);  // fan_pwm
  t.u16s(3, kAbsent);
  return t.take();
}

}  // namespace

std::string gpu_metrics_bytes(const Card& card) {
  switch (card.model.metrics) {
    case MetricsTable::None:
      return {};
    case MetricsTable::V1_3:
      return table_v1_3(card);
    case MetricsTable::V1_5:
      return table_v1_5(card);
    case MetricsTable::V2_1:
      return table_v2_1(card);
  }
  return {};
}

}  // namespace gpuhealth::sim
