// SPDX-License-Identifier: Apache-2.0
#include "telemetry/nvml_queries.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace gpuhealth::telemetry::nvml {
namespace {

using R = ReadingId;

// A function of one number.
template <class T>
void number(Answers& out, R id, double scale, double low, double high, int (*function)(Device, T*), Device device) {
  T value{};
  const int code = function == nullptr ? static_cast<int>(kFunctionNotFound) : function(device, &value);
  if (code == kSuccess)
    out.value(id, static_cast<double>(value) * scale, low, high);
  else
    out.failed(id, code);
}

// The same with what is asked for: a sensor, a clock.
void number(Answers& out, R id, double low, double high, int (*function)(Device, int, unsigned*), Device device,
            int which) {
  unsigned value = 0;
  const int code = function == nullptr ? static_cast<int>(kFunctionNotFound) : function(device, which, &value);
  if (code == kSuccess)
    out.value(id, value, low, high);
  else
    out.failed(id, code);
}

double as_number(const Field& field) {
  switch (field.type) {
    case kDouble:
      return field.value.d;
    case kUnsigned:
      return field.value.u;
    case kSigned:
      return field.value.i;
    case kSignedLongLong:
      return static_cast<double>(field.value.ll);
    default:
      return static_cast<double>(field.value.ull);
  }
}

int one_field(const Api& api, Device device, unsigned id, double& value) {
  if (api.fields == nullptr) return kFunctionNotFound;
  Field field{};
  field.field = id;
  const int code = api.fields(device, 1, &field);
  if (code != kSuccess) return code;
  if (field.result == kSuccess) value = as_number(field);
  return field.result;
}

void field(const Api& api, Device device, Answers& out, unsigned id, R reading, double scale, double low, double high) {
  double value = 0;
  const int code = one_field(api, device, id, value);
  if (code == kSuccess)
    out.value(reading, value * scale, low, high);
  else
    out.failed(reading, code);
}

void temperatures(const Api& api, Device device, Answers& out) {
  number(out, R::TemperatureEdge, -40, 150, api.temperature, device, kGpu);
  field(api, device, out, kFieldMemoryTemperature, R::TemperatureMemory, 1, 1, 150);
}

// Two fields on newer drivers; before, one number, which is an average of a second from Ampere on.
void power(const Api& api, Device device, Answers& out) {
  double watts = 0;
  const int instant = one_field(api, device, kFieldPowerInstant, watts);
  if (instant == kSuccess)
    out.value(R::PowerInput, watts * 1e-3, 0, 3000);
  else
    out.failed(R::PowerInput, instant);
  const int average = one_field(api, device, kFieldPowerAverage, watts);
  if (average == kSuccess)
    out.value(R::PowerAverage, watts * 1e-3, 0, 3000);
  else
    number(out, R::PowerAverage, 1e-3, 0, 3000, api.power, device);
}

void clocks(const Api& api, Device device, Answers& out) {
  number(out, R::ClockGfx, 0, 10000, api.clock, device, kSm);
  number(out, R::ClockMemory, 0, 20000, api.clock, device, kMemory);
}

void activity(const Api& api, Device device, Answers& out) {
  Utilization rates{};
  const int code = api.utilization == nullptr ? kFunctionNotFound : api.utilization(device, &rates);
  if (code == kSuccess) {
    out.value(R::UtilizationGfx, rates.gpu, 0, 100);
    out.value(R::UtilizationMemory, rates.memory, 0, 100);
  } else {  // a GPU in MIG mode has none
    out.failed(R::UtilizationGfx, code);
    out.failed(R::UtilizationMemory, code);
  }
}

void media(const Api& api, Device device, Answers& out) {
  unsigned decoder = 0, encoder = 0, period = 0;
  const int a = api.decoder == nullptr ? kFunctionNotFound : api.decoder(device, &decoder, &period);
  const int b = api.encoder == nullptr ? kFunctionNotFound : api.encoder(device, &encoder, &period);
  if (a != kSuccess && b != kSuccess) return out.failed(R::UtilizationMedia, a);
  out.value(R::UtilizationMedia, std::max(decoder, encoder), 0, 100);
}

void memory(const Api& api, Device device, Answers& out) {
  Memory2 newer{};
  newer.version = kMemory2Version;
  if (api.memory2 != nullptr && api.memory2(device, &newer) == kSuccess) {
    out.value(R::VramTotal, static_cast<double>(newer.total), 0, 1e15);
    out.value(R::VramUsed, static_cast<double>(newer.used), 0, 1e15);
    return;
  }
  Memory older{};
  const int code = api.memory == nullptr ? kFunctionNotFound : api.memory(device, &older);
  if (code == kSuccess) {
    out.value(R::VramTotal, static_cast<double>(older.total), 0, 1e15);
    out.value(R::VramUsed, static_cast<double>(older.used), 0, 1e15);
  } else {
    out.failed(R::VramTotal, code);
    out.failed(R::VramUsed, code);
  }
}

void bar1(const Api& api, Device device, Answers& out) {
  Bar1 info{};
  const int code = api.bar1 == nullptr ? kFunctionNotFound : api.bar1(device, &info);
  if (code != kSuccess) return out.failed(R::VramVisibleTotal, code), out.failed(R::VramVisibleUsed, code);
  out.value(R::VramVisibleTotal, static_cast<double>(info.total), 0, 1e15);
  out.value(R::VramVisibleUsed, static_cast<double>(info.used), 0, 1e15);
}

void generation(Answers& out, R id, int (*function)(Device, unsigned*), Device device) {
  constexpr std::array<double, 8> kSpeeds = {0, 2.5, 5, 8, 16, 32, 64, 128};  // GT/s of each generation
  unsigned n = 0;
  const int code = function == nullptr ? kFunctionNotFound : function(device, &n);
  if (code != kSuccess) return out.failed(id, code);
  out.value(id, n < kSpeeds.size() ? kSpeeds.at(n) : 0, 1, 256);
}

void link(const Api& api, Device device, Answers& out) {
  generation(out, R::PcieSpeed, api.link_generation, device);
  number(out, R::PcieWidth, 1, 1, 32, api.link_width, device);
}

void limits(const Api& api, Device device, Answers& out) {
  number(out, R::PowerCap, 1e-3, 1, 3000, api.enforced_limit, device);
  number(out, R::PowerCapDefault, 1e-3, 1, 3000, api.default_limit, device);
  unsigned low = 0, high = 0;
  const int code = api.limit_range == nullptr ? kFunctionNotFound : api.limit_range(device, &low, &high);
  if (code != kSuccess) return out.failed(R::PowerCapMin, code), out.failed(R::PowerCapMax, code);
  out.value(R::PowerCapMin, low * 1e-3, 0, 3000);
  out.value(R::PowerCapMax, high * 1e-3, 1, 3000);
}

// Newer parts state margins instead, and say that they have no thresholds.
void thresholds(const Api& api, Device device, Answers& out) {
  number(out, R::TemperatureEdgeCritical, 1, 150, api.threshold, device, kSlowdown);
  number(out, R::TemperatureEdgeEmergency, 1, 150, api.threshold, device, kShutdown);
  number(out, R::TemperatureMemoryCritical, 1, 150, api.threshold, device, kMemoryMax);
}

void clock_limits(const Api& api, Device device, Answers& out) {
  number(out, R::ClockGfxMax, 1, 10000, api.max_clock, device, kSm);
  number(out, R::ClockMemoryMax, 1, 20000, api.max_clock, device, kMemory);
}

void fan(const Api& api, Device device, Answers& out) {
  number(out, R::FanPercent, 1, 0, 200, api.fan, device);
}

void link_limits(const Api& api, Device device, Answers& out) {
  generation(out, R::PcieSpeedMax, api.link_generation_max, device);
  number(out, R::PcieWidthMax, 1, 1, 32, api.link_width_max, device);
  number(out, R::PcieReplays, 1, 0, 4294967295.0, api.replays, device);
}

constexpr std::size_t kUmc = 0;  // of kRasBlocks: the memory
constexpr std::size_t kGfx = 2;  // caches and registers

void errors_of(const Api& api, Device device, Answers& out, std::size_t block, int location) {
  for (const auto kind : {kCorrected, kUncorrected}) {
    const auto id = ras_reading(block, kind == kCorrected ? RasKind::Correctable : RasKind::Uncorrectable);
    unsigned long long count = 0;
    const int code =
        api.memory_errors == nullptr ? kFunctionNotFound : api.memory_errors(device, kind, kVolatile, location, &count);
    if (code == kSuccess)
      out.value(id, static_cast<double>(count), 0, 1e18);
    else
      out.failed(id, code);
  }
}

// Counts since the driver was loaded, as AMD's. Parts that do not tell the place tell the sum: it is the memory's then.
void errors(const Api& api, Device device, Answers& out) {
  int current = 0, pending = 0;
  if (api.ecc_mode == nullptr || api.ecc_mode(device, &current, &pending) != kSuccess || current != 1) return;
  errors_of(api, device, out, kUmc, kDeviceMemory);
  errors_of(api, device, out, kGfx, kSram);
  unsigned long long probe = 0;
  const bool placed = api.memory_errors != nullptr &&
                      api.memory_errors(device, kUncorrected, kVolatile, kDeviceMemory, &probe) == kSuccess;
  if (placed) return;
  for (const auto kind : {kCorrected, kUncorrected}) {
    const auto id = ras_reading(kUmc, kind == kCorrected ? RasKind::Correctable : RasKind::Uncorrectable);
    unsigned long long count = 0;
    const int code =
        api.total_errors == nullptr ? kFunctionNotFound : api.total_errors(device, kind, kVolatile, &count);
    if (code == kSuccess)
      out.value(id, static_cast<double>(count), 0, 1e18);
    else
      out.failed(id, code);
  }
}

int retired_pages(const Api& api, Device device, int cause, unsigned& count) {
  count = 0;
  const int code = api.retired == nullptr ? kFunctionNotFound : api.retired(device, cause, &count, nullptr);
  return code == kInsufficientSize ? kSuccess : code;  // it was asked how many there are
}

// Rows of memory that were replaced (Ampere and newer), else pages that were given up.
void worn_memory(const Api& api, Device device, Answers& out) {
  unsigned corrected = 0, uncorrected = 0, pending = 0, failure = 0;
  int code =
      api.remapped == nullptr ? kFunctionNotFound : api.remapped(device, &corrected, &uncorrected, &pending, &failure);
  if (code == kSuccess) {
    out.value(R::VramBadPages, corrected + uncorrected, 0, 1e9);
    out.value(R::VramRetirePending, pending != 0 ? 1 : 0, 0, 1);
    out.value(R::VramRemapFailed, failure != 0 ? 1 : 0, 0, 1);
    return;
  }
  unsigned single = 0, twofold = 0;
  code = retired_pages(api, device, kManySingleBit, single);
  if (code == kSuccess) code = retired_pages(api, device, kDoubleBit, twofold);
  if (code != kSuccess) return out.failed(R::VramBadPages, code);
  out.value(R::VramBadPages, single + twofold, 0, 1e9);
  number(out, R::VramRetirePending, 1, 0, 1, api.retired_pending, device);
}

void partitions(const Api& api, Device device, Answers& out) {
  unsigned current = 0, pending = 0;
  const int code = api.mig_mode == nullptr ? kFunctionNotFound : api.mig_mode(device, &current, &pending);
  if (code != kSuccess) return out.failed(R::MigMode, code);
  out.value(R::MigMode, current, 0, 1);
}

constexpr std::array kQueries = std::to_array<Query>({
    {"nvml temperature", Pace::Fast, temperatures},
    {"nvml power", Pace::Fast, power},
    {"nvml clocks", Pace::Fast, clocks},
    {"nvml utilization", Pace::Fast, activity},
    {"nvml memory", Pace::Fast, memory},
    {"nvml link", Pace::Fast, link},
    {"nvml media utilization", Pace::Slow, media},
    {"nvml BAR1 memory", Pace::Slow, bar1},
    {"nvml power limits", Pace::Slow, limits},
    {"nvml temperature thresholds", Pace::Slow, thresholds},
    {"nvml clock limits", Pace::Slow, clock_limits},
    {"nvml fan", Pace::Slow, fan},
    {"nvml link limits", Pace::Slow, link_limits},
    {"nvml ECC errors", Pace::Slow, errors},
    {"nvml retired memory", Pace::Slow, worn_memory},
    {"nvml MIG mode", Pace::Slow, partitions},
});

constexpr std::array<std::pair<unsigned long long, ThrottleReason>, 7> kReasons = {
    {{kReasonAppClocks, ThrottleReason::AppClocks},
     {kReasonSwPowerCap, ThrottleReason::SwPowerCap},
     {kReasonHwSlowdown, ThrottleReason::HwSlowdown},
     {kReasonSyncBoost, ThrottleReason::SyncBoost},
     {kReasonSwThermal, ThrottleReason::SwThermal},
     {kReasonHwThermal, ThrottleReason::HwThermal},
     {kReasonHwPowerBrake, ThrottleReason::HwPowerBrake}}};

}  // namespace

std::span<const Query> all_queries() {
  return kQueries;
}

std::optional<ThrottleSet> throttle_reasons(const Api& api, Device device) {
  const auto ask = api.event_reasons != nullptr ? api.event_reasons : api.reasons;
  unsigned long long bits = 0;
  if (ask == nullptr || ask(device, &bits) != kSuccess) return std::nullopt;
  ThrottleSet out;
  for (const auto& [bit, reason] : kReasons) {
    if ((bits & bit) != 0) out.insert(reason);
  }
  return out;
}

}  // namespace gpuhealth::telemetry::nvml
