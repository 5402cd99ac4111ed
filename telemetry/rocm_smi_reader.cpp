// SPDX-License-Identifier: Apache-2.0
#include "telemetry/rocm_smi_reader.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "telemetry/discovery.hpp"
#include "telemetry/parse.hpp"
#include "telemetry/sysfs.hpp"

namespace gpuhealth::telemetry {
namespace rsmi {

std::uint64_t current_frequency(const Buffer& buffer, bool newer) {
  // 5.x: u32 supported, u32 current, u64 frequency[32]. 6.x: bool, u32 supported, u32 current, u64 frequency[33].
  const std::size_t at = newer ? 4 : 0;
  std::uint32_t supported = 0, current = 0;
  std::memcpy(&supported, buffer.bytes + at, sizeof supported);
  std::memcpy(&current, buffer.bytes + at + 4, sizeof current);
  if (current >= supported || current >= 32) return 0;
  std::uint64_t hertz = 0;
  std::memcpy(&hertz, buffer.bytes + (newer ? 16 : 8) + current * sizeof hertz, sizeof hertz);
  return hertz;
}

}  // namespace rsmi

namespace {

using R = ReadingId;
using rsmi::Api;

constexpr std::uint32_t kNoFunction = rsmi::kNotSupported;

Reading failure(R id, std::uint32_t status) {
  switch (status) {
    case rsmi::kNotSupported:
    case rsmi::kNotYetImplemented:
    case rsmi::kInvalidArguments:
      return {id, ReadingStatus::Unsupported, 0, 0};
    case rsmi::kPermission:
      return {id, ReadingStatus::Unreadable, EACCES, 0};
    case rsmi::kBusy:
      return {id, ReadingStatus::Unreadable, EBUSY, 0};
    default:
      return {id, ReadingStatus::Unreadable, EIO, 0};
  }
}

class Out {
 public:
  explicit Out(std::vector<Reading>& readings) : readings_(readings) {}
  void put(R id, std::uint32_t status, double value) {
    readings_.push_back(status == rsmi::kSuccess ? Reading{id, ReadingStatus::Valid, 0, value} : failure(id, status));
  }

 private:
  std::vector<Reading>& readings_;
};

template <int kMetric, std::uint32_t kSensor>
void temperature(const Api& api, std::uint32_t gpu, R id, Out& out) {
  std::int64_t value = 0;
  const std::uint32_t status =
      api.temperature == nullptr ? kNoFunction : api.temperature(gpu, kSensor, kMetric, &value);
  out.put(id, status, static_cast<double>(value) * 1e-3);
}

void power_average(const Api& api, std::uint32_t gpu, R id, Out& out) {
  std::uint64_t value = 0;
  const std::uint32_t status = api.power_average == nullptr ? kNoFunction : api.power_average(gpu, 0, &value);
  out.put(id, status, static_cast<double>(value) * 1e-6);
}

void cap(const Api& api, std::uint32_t gpu, R id, Out& out) {
  std::uint64_t value = 0;
  const std::uint32_t status = api.cap == nullptr ? kNoFunction : api.cap(gpu, 0, &value);
  out.put(id, status, static_cast<double>(value) * 1e-6);
}

void cap_default(const Api& api, std::uint32_t gpu, R id, Out& out) {
  std::uint64_t value = 0;
  const std::uint32_t status = api.cap_default == nullptr ? kNoFunction : api.cap_default(gpu, &value);
  out.put(id, status, static_cast<double>(value) * 1e-6);
}

void cap_range(const Api& api, std::uint32_t gpu, R /*id*/, Out& out) {
  std::uint64_t most = 0, least = 0;
  const std::uint32_t status = api.cap_range == nullptr ? kNoFunction : api.cap_range(gpu, 0, &most, &least);
  out.put(R::PowerCapMin, status, static_cast<double>(least) * 1e-6);
  out.put(R::PowerCapMax, status, static_cast<double>(most) * 1e-6);
}

void fan(const Api& api, std::uint32_t gpu, R id, Out& out) {
  std::int64_t value = 0;
  const std::uint32_t status = api.fan_rpm == nullptr ? kNoFunction : api.fan_rpm(gpu, 0, &value);
  out.put(id, status, static_cast<double>(value));
}

template <int kType>
void memory_total(const Api& api, std::uint32_t gpu, R id, Out& out) {
  std::uint64_t value = 0;
  const std::uint32_t status = api.memory_total == nullptr ? kNoFunction : api.memory_total(gpu, kType, &value);
  out.put(id, status, static_cast<double>(value));
}

template <int kType>
void memory_used(const Api& api, std::uint32_t gpu, R id, Out& out) {
  std::uint64_t value = 0;
  const std::uint32_t status = api.memory_used == nullptr ? kNoFunction : api.memory_used(gpu, kType, &value);
  out.put(id, status, static_cast<double>(value));
}

void busy(const Api& api, std::uint32_t gpu, R id, Out& out) {
  std::uint32_t value = 0;
  const std::uint32_t status = api.busy == nullptr ? kNoFunction : api.busy(gpu, &value);
  out.put(id, status, value);
}

void replays(const Api& api, std::uint32_t gpu, R id, Out& out) {
  std::uint64_t value = 0;
  const std::uint32_t status = api.replays == nullptr ? kNoFunction : api.replays(gpu, &value);
  out.put(id, status, static_cast<double>(value));
}

void errors(const Api& api, std::uint32_t gpu, R /*id*/, Out& out) {
  rsmi::ErrorCount count{};
  const std::uint32_t status = api.errors == nullptr ? kNoFunction : api.errors(gpu, rsmi::kUmc, &count);
  out.put(ras_reading(0, RasKind::Correctable), status, static_cast<double>(count.correctable));
  out.put(ras_reading(0, RasKind::Uncorrectable), status, static_cast<double>(count.uncorrectable));
}

template <int kType>
void clock(const Api& api, std::uint32_t gpu, R id, Out& out) {
  rsmi::Buffer buffer{};
  std::uint32_t status = api.clock == nullptr ? kNoFunction : api.clock(gpu, kType, &buffer);
  const auto hertz = rsmi::current_frequency(buffer, api.newer());
  if (status == rsmi::kSuccess && hertz == 0) status = rsmi::kNotSupported;
  out.put(id, status, static_cast<double>(hertz) * 1e-6);
}

// Of the table only what lies at the same place in every generation: the header, then u16 temperatures.
void metrics(const Api& api, std::uint32_t gpu, R id, Out& out) {
  constexpr std::size_t kRegulatorAt = 10;
  rsmi::Buffer buffer{};
  std::uint32_t status = api.metrics == nullptr ? kNoFunction : api.metrics(gpu, &buffer);
  std::uint16_t celsius = 0;
  std::memcpy(&celsius, buffer.bytes + kRegulatorAt, sizeof celsius);
  if (status == rsmi::kSuccess && celsius == 0xffff) status = rsmi::kNotSupported;
  out.put(id, status, celsius);
}

void bad_pages(const Api& api, std::uint32_t gpu, R id, Out& out) {
  std::uint32_t pages = 0;
  const std::uint32_t status = api.reserved_pages == nullptr ? kNoFunction : api.reserved_pages(gpu, &pages, nullptr);
  out.put(id, status, pages);
}

struct Query {
  std::string_view name;  // of the function, and what it is asked for: at most 47 letters
  R id;
  void (*ask)(const Api&, std::uint32_t, R, Out&);
};
constexpr std::array kQueries = std::to_array<Query>({
    {"temp_metric_get edge", R::TemperatureEdge, temperature<rsmi::kCurrent, rsmi::kEdge>},
    {"temp_metric_get junction", R::TemperatureJunction, temperature<rsmi::kCurrent, rsmi::kJunction>},
    {"temp_metric_get memory", R::TemperatureMemory, temperature<rsmi::kCurrent, rsmi::kMemory>},
    {"temp_metric_get edge critical", R::TemperatureEdgeCritical, temperature<rsmi::kCritical, rsmi::kEdge>},
    {"temp_metric_get edge emergency", R::TemperatureEdgeEmergency, temperature<rsmi::kEmergency, rsmi::kEdge>},
    {"temp_metric_get junction critical", R::TemperatureJunctionCritical,
     temperature<rsmi::kCritical, rsmi::kJunction>},
    {"temp_metric_get junction emergency", R::TemperatureJunctionEmergency,
     temperature<rsmi::kEmergency, rsmi::kJunction>},
    {"temp_metric_get memory critical", R::TemperatureMemoryCritical, temperature<rsmi::kCritical, rsmi::kMemory>},
    {"temp_metric_get memory emergency", R::TemperatureMemoryEmergency, temperature<rsmi::kEmergency, rsmi::kMemory>},
    {"power_ave_get", R::PowerAverage, power_average},
    {"power_cap_get", R::PowerCap, cap},
    {"power_cap_default_get", R::PowerCapDefault, cap_default},
    {"power_cap_range_get", R::PowerCapMin, cap_range},
    {"fan_rpms_get", R::FanRpm, fan},
    {"memory_total_get VRAM", R::VramTotal, memory_total<rsmi::kVram>},
    {"memory_total_get visible VRAM", R::VramVisibleTotal, memory_total<rsmi::kVisibleVram>},
    {"memory_total_get GTT", R::GttTotal, memory_total<rsmi::kGtt>},
    {"memory_usage_get VRAM", R::VramUsed, memory_used<rsmi::kVram>},
    {"memory_usage_get GTT", R::GttUsed, memory_used<rsmi::kGtt>},
    {"busy_percent_get", R::UtilizationGfx, busy},
    {"gpu_clk_freq_get system", R::ClockGfx, clock<rsmi::kSystemClock>},
    {"gpu_clk_freq_get memory", R::ClockMemory, clock<rsmi::kMemoryClock>},
    {"pci_replay_counter_get", R::PcieReplays, replays},
    {"ecc_count_get UMC", ras_reading(0, RasKind::Correctable), errors},
    {"memory_reserved_pages_get", R::VramBadPages, bad_pages},
    {"gpu_metrics_info_get", R::TemperatureVrGfx, metrics},
});

bool awake(const PciAddress& gpu) {
  const auto status = read_text(device_dir("", gpu) + "/power/runtime_status");
  return !status || parse_runtime_status(*status) == PowerState::Active;
}

std::string_view why_no_start(std::uint32_t status) {
  const bool no_kfd = access("/sys/class/kfd", F_OK) != 0;
  if (status == rsmi::kInitError && no_kfd) return ": this kernel has no compute driver, /sys/class/kfd";
  if (status == rsmi::kBusy || status == rsmi::kInitError)
    return ": another program holds its lock, /dev/shm/rocm_smi_card*";
  return "";
}

}  // namespace

RocmSmiReader::RocmSmiReader(std::string library, std::vector<std::string> skip, Progress* progress)
    : library_(std::move(library)), skip_(std::move(skip)), progress_(progress) {}

RocmSmiReader::~RocmSmiReader() {
  if (usable_ && api_.shut_down != nullptr) api_.shut_down();
}

bool RocmSmiReader::start(std::uint64_t first_device, std::uint64_t tick, std::vector<std::uint8_t>& out) {
  if (std::exchange(tried_, true)) return usable_;
  DevicesFrame news;
  news.tick = tick;
  const auto refuse = [&](std::string why) {
    news.error = std::move(why);
    append_frame(out, news);
    return false;
  };
  if (progress_ != nullptr) progress_->at(first_device, "rsmi_init");
  void* loaded = dlopen(library_.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (loaded == nullptr) return refuse(library_ + " cannot be loaded: " + dlerror());
#define GPUHEALTH_RSMI_LOOK_UP(member, name, ...) \
  api_.member = reinterpret_cast<decltype(api_.member)>(dlsym(loaded, name));
  GPUHEALTH_RSMI_FUNCTIONS(GPUHEALTH_RSMI_LOOK_UP)
#undef GPUHEALTH_RSMI_LOOK_UP
  if (api_.init == nullptr || api_.count == nullptr || api_.pci_id == nullptr)
    return refuse(library_ + " has no rsmi_init: it is no ROCm SMI");
  if (const auto status = api_.init(0); status != rsmi::kSuccess)
    return refuse(library_ + ": rsmi_init failed with " + std::to_string(status) + std::string(why_no_start(status)));
  usable_ = true;
  std::uint32_t count = 0;
  api_.count(&count);
  for (std::uint32_t i = 0; i < count; ++i) {
    std::uint64_t id = 0;
    if (api_.pci_id(i, &id) != rsmi::kSuccess) continue;
    // domain<<32 | bus<<8 | device<<3 | function; partitions of a card have a number in bits 28 to 31 and the same
    // rest.
    const PciAddress address{static_cast<std::uint32_t>(id >> 32U), static_cast<std::uint8_t>(id >> 8U),
                             static_cast<std::uint8_t>(id >> 3U & 0x1fU), static_cast<std::uint8_t>(id & 7U)};
    index_of_.try_emplace(pack(address), i);
  }
  return true;
}

void RocmSmiReader::sample(std::uint64_t device, std::uint64_t tick, std::vector<std::uint8_t>& out) {
  const auto index = index_of_.find(device);
  const auto address = unpack(device);
  if (index == index_of_.end() || !awake(address)) return;
  SampleFrame frame;
  frame.tick = tick;
  frame.device = device;
  frame.sample.power = PowerState::Active;
  auto& readings = frame.sample.readings;
  Out into(readings);
  for (const auto& query : kQueries) {
    // What ended a reader in one use of a function does so in others: a missing hwmon, for all of its files.
    const auto function = to_string(address) + "/" + std::string(query.name.substr(0, query.name.find(' ')));
    if (std::ranges::find(skip_, function) != skip_.end()) continue;
    if (progress_ != nullptr) progress_->at(device, query.name);
    query.ask(api_, index->second, query.id, into);
  }
  std::ranges::sort(readings, {}, &Reading::id);  // one of each
  append_frame(out, frame);
}

void RocmSmiReader::answer(const Request& request, std::vector<std::uint8_t>& out) {
  if (request.kind == RequestKind::Sample && !request.devices.empty() &&
      start(request.devices.front(), request.tick, out)) {
    for (const auto device : request.devices) sample(device, request.tick, out);
  }
  if (progress_ != nullptr) progress_->idle();
  append_frame(out, DoneFrame{request.tick});
}

}  // namespace gpuhealth::telemetry
