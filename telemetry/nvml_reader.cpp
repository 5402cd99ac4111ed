// SPDX-License-Identifier: Apache-2.0
#include "telemetry/nvml_reader.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "telemetry/discovery.hpp"
#include "telemetry/nvml_queries.hpp"
#include "telemetry/parse.hpp"
#include "telemetry/proc.hpp"
#include "telemetry/sysfs.hpp"

namespace gpuhealth::telemetry {
namespace {

using nvml::Device;

constexpr double kIdlePercent = 2;
constexpr Duration kRest = std::chrono::seconds(30);  // longer than the driver's own delay before a GPU sleeps

// What a code says of a reading. What is not there at all is unsupported; the rest failed, each with the errno nearest
// to it.
Reading failure(ReadingId id, int code) {
  switch (code) {
    case nvml::kNotSupported:
    case nvml::kFunctionNotFound:
    case nvml::kInvalidArgument:
      return {id, ReadingStatus::Unsupported, 0, 0};
    case nvml::kNoPermission:
      return {id, ReadingStatus::Unreadable, EACCES, 0};
    case nvml::kGpuIsLost:
      return {id, ReadingStatus::Unreadable, ENODEV, 0};
    case nvml::kTimeout:
      return {id, ReadingStatus::Unreadable, ETIME, 0};
    case nvml::kResetRequired:
      return {id, ReadingStatus::InReset, 0, 0};
    default:
      return {id, ReadingStatus::Unreadable, EIO, 0};
  }
}

std::string text_of(int (*function)(Device, char*, unsigned), Device device) {
  std::array<char, 128> text{};
  if (function == nullptr || function(device, text.data(), text.size() - 1) != nvml::kSuccess) return {};
  return std::string(trimmed({text.data(), text.size()}));
}

std::string driver_of(const std::string& dir) {
  std::error_code error;
  const auto target = std::filesystem::read_symlink(dir + "/driver", error);
  return error ? std::string() : target.filename().string();
}

// Both forms of the list; the newest function that is there is asked.
template <class Process>
int list(int (*function)(Device, unsigned*, Process*), Device device, std::map<std::uint32_t, GpuClient>& into,
         bool compute) {
  constexpr unsigned kMost = 1024;
  std::vector<Process> processes(kMost);
  unsigned count = kMost;
  const int code = function(device, &count, processes.data());
  if (code != nvml::kSuccess) return code;
  for (unsigned i = 0; i < std::min(count, kMost); ++i) {
    const auto& p = processes[i];
    auto& client = into[p.pid];
    client.pid = p.pid;
    client.open = true;
    client.queues = client.queues || compute;
    // One that is in both lists has the same memory in both; one in several partitions is there once for each.
    if (p.used != nvml::kNotAvailable)
      client.vram_bytes = compute ? client.vram_bytes.value_or(0) + p.used
                                  : std::max<std::uint64_t>(client.vram_bytes.value_or(0), p.used);
  }
  return code;
}

int list_any(const nvml::Api& api, Device device, std::map<std::uint32_t, GpuClient>& into, bool compute) {
  const auto newer = compute ? (api.compute_v3 != nullptr ? api.compute_v3 : api.compute_v2)
                             : (api.graphics_v3 != nullptr ? api.graphics_v3 : api.graphics_v2);
  if (newer != nullptr) return list(newer, device, into, compute);
  const auto older = compute ? api.compute_v1 : api.graphics_v1;
  return older != nullptr ? list(older, device, into, compute) : static_cast<int>(nvml::kFunctionNotFound);
}

// Takes answers into the slots of a GPU.
template <class Slots>
class Into final : public nvml::Answers {
 public:
  explicit Into(Slots& slots) : slots_(slots) {}
  void value(ReadingId id, double value, double low, double high) override {
    auto& slot = slots_[id];
    const bool plausible = value >= low && value <= high;
    slot.reading = {id, plausible ? ReadingStatus::Valid : ReadingStatus::Implausible, 0, plausible ? value : 0};
    slot.worked = slot.worked || plausible;
  }
  void failed(ReadingId id, int code) override {
    auto& slot = slots_[id];
    slot.reading = failure(id, code);
    // What worked and is now "not supported" has not changed its mind: the driver has lost the GPU.
    if (slot.worked && slot.reading.status == ReadingStatus::Unsupported)
      slot.reading = {id, ReadingStatus::Unreadable, EIO, 0};
  }

 private:
  Slots& slots_;
};

}  // namespace

NvmlReader::NvmlReader(std::string sysroot, std::string library, const Clock& clock, Progress* progress)
    : sysroot_(std::move(sysroot)), clock_(clock), progress_(progress), session_(std::move(library)) {}

void NvmlReader::note(const PciAddress& gpu, std::string_view what) const {
  if (progress_ != nullptr) progress_->at(pack(gpu), what);
}

void NvmlReader::answer(const Request& request, std::vector<std::uint8_t>& out) {
  if (request.reopen) session_.close();
  if (request.kind == RequestKind::Discover) discover(request, out);
  if (request.kind == RequestKind::Sample) sample(request, out);
  if (progress_ != nullptr) progress_->idle();
  append_frame(out, DoneFrame{request.tick});
}

namespace {

bool sleeps(const std::string& dir) {
  const auto status = read_text(dir + "/power/runtime_status");
  return status && parse_runtime_status(*status) != PowerState::Active;
}

DeviceInfo identity_of(const std::string& dir, const PciAddress& address) {
  const auto hex = [&](const char* file) { return parse_hex(read_text_or_empty(dir + "/" + file)); };
  DeviceInfo device;
  device.pci = address;
  device.vendor_id = kVendorNvidia;
  device.device_id = static_cast<std::uint16_t>(hex("device").value_or(0));
  if (const auto id = hex("subsystem_vendor")) device.subsystem_vendor = static_cast<std::uint16_t>(*id);
  if (const auto id = hex("subsystem_device")) device.subsystem_device = static_cast<std::uint16_t>(*id);
  if (const auto id = hex("revision")) device.revision = static_cast<std::uint8_t>(*id);
  device.pci_class = hex("class").value_or(0);
  device.driver = driver_of(dir);
  return device;
}

}  // namespace

// Names and numbers of the card itself; of a sleeping one they are not asked.
void NvmlReader::identify(DeviceInfo& device) {
  note(device.pci, "nvmlInit_v2");
  if (!session_.open()) return;
  note(device.pci, "nvml identity");
  Device handle = nullptr;
  if (session_.handle(device.pci, handle) != nvml::kSuccess) return;
  const auto& api = session_.api();
  device.name = text_of(api.name, handle);
  device.unique_id = text_of(api.uuid, handle);
  device.serial = text_of(api.serial, handle);
  device.vbios_version = text_of(api.vbios, handle);
}

void NvmlReader::discover(const Request& request, std::vector<std::uint8_t>& out) {
  DevicesFrame frame;
  frame.tick = request.tick;
  const auto may_touch = [&](const PciAddress& address) {
    const auto packed = pack(address);
    if (std::ranges::find(request.devices, packed) != request.devices.end()) {
      frame.untouched.push_back(packed);
      return false;
    }
    note(address, "its PCI identity");
    return true;
  };
  std::vector<std::string> others;
  const auto addresses = list_gpus(sysroot_, others, may_touch, kVendorNvidia);
  if (!addresses) {
    frame.error = addresses.error().text;
    append_frame(out, frame);
    return;
  }
  for (const auto& address : *addresses) {
    const auto dir = device_dir(sysroot_, address);
    auto device = identity_of(dir, address);
    if (device.driver != "nvidia") {  // nouveau's, a guest's, or nobody's: NVML does not know it
      frame.notes.push_back(to_string(address) + ": NVIDIA GPU, " +
                            (device.driver.empty() ? "no driver" : "driver " + device.driver) + "; not watched");
      continue;
    }
    if (const auto known = known_.find(address); known != known_.end() && sleeps(dir)) {
      frame.devices.push_back(known->second);
      continue;
    }
    if (!sleeps(dir)) identify(device);
    if (!session_.is_open() && !sleeps(dir)) {
      const auto opened = session_.open();
      if (!opened && frame.notes.empty()) frame.notes.push_back(opened.error().text + "; NVIDIA GPUs cannot be read");
    }
    known_[address] = device;
    frame.devices.push_back(std::move(device));
  }
  append_frame(out, frame);
}

NvmlReader::Gpu& NvmlReader::gpu_of(const PciAddress& address) {
  auto& gpu = gpus_[address];
  gpu.pci = address;
  return gpu;
}

void NvmlReader::ask(Gpu& gpu, bool slow) {
  const auto& api = session_.api();
  Into into(gpu.slots);
  Device device = nullptr;
  note(gpu.pci, "nvml handle");
  const auto found = session_.handle(gpu.pci, device);
  for (const auto& query : nvml::all_queries()) {
    if (query.pace == nvml::Pace::Slow && !slow) continue;
    note(gpu.pci, query.name);
    if (found == nvml::kSuccess) query.ask(api, device, into);
  }
  if (found != nvml::kSuccess) {
    for (auto& [id, slot] : gpu.slots) slot.reading = failure(id, found);
    // Nothing is known of it yet: that it does not answer is said of what every GPU has.
    if (gpu.slots.empty()) {
      for (const auto id : {ReadingId::TemperatureEdge, ReadingId::PowerAverage, ReadingId::ClockGfx})
        gpu.slots[id].reading = failure(id, found);
    }
    gpu.throttle_known = false;
    session_.close();  // the driver may have been loaded anew
    return;
  }
  note(gpu.pci, "nvml throttle reasons");
  const auto reasons = nvml::throttle_reasons(api, device);
  gpu.throttle_known = reasons.has_value();
  gpu.throttle = reasons.value_or(ThrottleSet{});
  int state = 32;  // unknown
  if (slow && api.performance_state != nullptr && api.performance_state(device, &state) == nvml::kSuccess && state < 16)
    gpu.performance_level = "P" + std::to_string(state);
}

void NvmlReader::sample_one(Gpu& gpu, bool slow, Sample& out) {
  const auto dir = device_dir(sysroot_, gpu.pci);
  note(gpu.pci, "power/runtime_status");
  const auto status = read_text(dir + "/power/runtime_status");
  out.power = status ? parse_runtime_status(*status) : PowerState::Active;
  const auto now = clock_.now().steady;
  const bool awake = out.power == PowerState::Active;
  if (!awake) {
    session_.close();
    for (auto& [id, slot] : gpu.slots) slot.reading = {id, ReadingStatus::Asleep, 0, 0};
  } else if (now >= gpu.hold_until) {
    note(gpu.pci, "nvmlInit_v2");
    const auto opened = session_.open();
    if (opened) {
      ask(gpu, slow || !gpu.asked);
      gpu.asked = true;
    } else {
      for (auto& [id, slot] : gpu.slots) slot.reading = {id, ReadingStatus::Unreadable, EIO, 0};
    }
    note(gpu.pci, "config");
    read_answers(dir, gpu);
    rest(gpu, dir, now);
  }
  for (const auto& [id, slot] : gpu.slots) out.readings.push_back(slot.reading);
  out.throttle = awake ? gpu.throttle : ThrottleSet{};
  out.throttle_known = awake && gpu.throttle_known;
  out.performance_level = gpu.performance_level;
}

// The kernel's own look at the bus, beside NVML's word.
void NvmlReader::read_answers(const std::string& dir, Gpu& gpu) {
  std::array<char, 4> ids{};
  const auto file = open_attribute(dir + "/config");
  if (!file) return;
  const auto got = read_attribute(file->get(), ids);
  auto& slot = gpu.slots[ReadingId::PcieAnswers];
  if (got.sys_errno != 0 || got.text.size() < ids.size()) {
    slot.reading = {ReadingId::PcieAnswers, ReadingStatus::Unreadable, static_cast<std::int16_t>(got.sys_errno), 0};
    return;
  }
  const bool all_ones = std::ranges::all_of(ids, [](char c) { return static_cast<unsigned char>(c) == 0xff; });
  slot.reading = {ReadingId::PcieAnswers, ReadingStatus::Valid, 0, all_ones ? 0.0 : 1.0};
}

void NvmlReader::rest(Gpu& gpu, const std::string& dir, SteadyTime now) {
  gpu.hold_until = {};
  if (read_text_or_empty(dir + "/power/control") != "auto") return;
  const auto busy = gpu.slots.find(ReadingId::UtilizationGfx);
  const bool idle = busy != gpu.slots.end() && busy->second.reading.status == ReadingStatus::Valid &&
                    busy->second.reading.value <= kIdlePercent;
  if (!idle) return;
  session_.close();
  gpu.hold_until = now + kRest;
}

ClientLook NvmlReader::clients(const Gpu& gpu) {
  ClientLook look;
  look.time = clock_.now().steady;
  Device device = nullptr;
  if (!session_.is_open() || session_.handle(gpu.pci, device) != nvml::kSuccess) return look;
  note(gpu.pci, "nvml processes");
  std::map<std::uint32_t, GpuClient> found;
  const int compute = list_any(session_.api(), device, found, true);
  const int graphics = list_any(session_.api(), device, found, false);
  look.complete = compute == nvml::kSuccess && (graphics == nvml::kSuccess || graphics == nvml::kNotSupported);
  for (auto& [pid, client] : found) {
    const auto stat = parse_proc_stat(read_text_or_empty(sysroot_ + "/proc/" + std::to_string(pid) + "/stat"));
    if (stat) client.started = stat->started;
    look.clients.push_back(client);
  }
  return look;
}

void NvmlReader::sample(const Request& request, std::vector<std::uint8_t>& out) {
  for (const auto packed : request.devices) {
    SampleFrame frame;
    frame.tick = request.tick;
    frame.device = packed;
    const auto address = unpack(packed);
    std::error_code error;
    frame.present = std::filesystem::exists(device_dir(sysroot_, address), error);
    auto& gpu = gpu_of(address);
    if (frame.present) sample_one(gpu, request.slow, frame.sample);
    append_frame(out, frame);
    if (!frame.present) {
      gpus_.erase(address);
      continue;
    }
    if (request.slow && session_.is_open()) append_frame(out, ClientsFrame{request.tick, packed, clients(gpu)});
  }
}

}  // namespace gpuhealth::telemetry
