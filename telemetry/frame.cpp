// SPDX-License-Identifier: Apache-2.0
#include "telemetry/frame.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <type_traits>

namespace gpuhealth::telemetry {
namespace {

constexpr std::uint32_t kMagic = 0x31484767;  // "gGH1"
constexpr std::uint32_t kMaxPayload = 4u << 20;
constexpr std::uint32_t kMaxListed = 4096;
enum class FrameKind : std::uint16_t { Devices = 1, Sample = 2, Done = 3, Klog = 4, Clients = 5 };

struct Header {
  std::uint32_t magic;
  std::uint16_t kind;
  std::uint16_t flags;
  std::uint32_t size;  // of the payload
  std::uint32_t reserved;
  std::uint64_t tick;
};
static_assert(sizeof(Header) == 24);

struct WireReading {
  std::uint16_t id;
  std::uint8_t status;
  std::uint8_t reserved;
  std::int16_t sys_errno;
  std::uint16_t reserved2;
  double value;
};
static_assert(sizeof(WireReading) == 16);

// Numbers that are not known have their bit in `known` clear.
struct WireClient {
  std::uint32_t pid;
  std::uint8_t flags;
  std::uint8_t known;
  std::uint16_t reserved;
  std::uint64_t started;
  std::uint64_t vram, gtt, evicted;
  double engine, cpu, thread_system, thread_user, read;
};
static_assert(sizeof(WireClient) == 80);

constexpr std::uint16_t kSlow = 1;
constexpr std::uint16_t kReopen = 2;

class Out {
 public:
  explicit Out(std::vector<std::uint8_t>& bytes) : bytes_(bytes) {}
  template <class T>
  void put(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    const auto* p = reinterpret_cast<const std::uint8_t*>(&value);
    bytes_.insert(bytes_.end(), p, p + sizeof value);
  }
  // Room for `n` of T at the end, to be filled by memcpy.
  template <class T>
  std::uint8_t* grow(std::size_t n) {
    const auto old = bytes_.size();
    bytes_.resize(old + n * sizeof(T));
    return bytes_.data() + old;
  }
  void text(std::string_view s) {
    const auto size = static_cast<std::uint16_t>(std::min<std::size_t>(s.size(), 0xffff));
    put(size);
    bytes_.insert(bytes_.end(), s.begin(), s.begin() + size);
  }
  void texts(const std::vector<std::string>& list) {
    put(static_cast<std::uint32_t>(list.size()));
    for (const auto& s : list) text(s);
  }

 private:
  std::vector<std::uint8_t>& bytes_;
};

// Reads past the end give zeros and make `sound` false.
class In {
 public:
  explicit In(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
  template <class T>
  T get() {
    T value{};
    if (bytes_.size() < sizeof value) {
      fail();
      return value;
    }
    std::memcpy(&value, bytes_.data(), sizeof value);
    bytes_ = bytes_.subspan(sizeof value);
    return value;
  }
  std::string text() {
    const auto size = get<std::uint16_t>();
    if (bytes_.size() < size) {
      fail();
      return {};
    }
    std::string s(reinterpret_cast<const char*>(bytes_.data()), size);
    bytes_ = bytes_.subspan(size);
    return s;
  }
  std::uint32_t count() {
    const auto n = get<std::uint32_t>();
    if (n > kMaxListed) fail();
    return sound_ ? n : 0;
  }
  std::vector<std::string> texts() {
    std::vector<std::string> list(count());
    for (auto& s : list) s = text();
    return list;
  }
  std::span<const std::uint8_t> take(std::size_t n) {
    if (bytes_.size() < n) {
      fail();
      return {};
    }
    const auto out = bytes_.first(n);
    bytes_ = bytes_.subspan(n);
    return out;
  }
  [[nodiscard]] bool whole() const { return sound_ && bytes_.empty(); }

 private:
  void fail() {
    sound_ = false;
    bytes_ = {};
  }
  std::span<const std::uint8_t> bytes_;
  bool sound_ = true;
};

// Writes the header, then the payload through `body`, then the payload's size into the header.
template <class Body>
void framed(std::vector<std::uint8_t>& bytes, FrameKind kind, std::uint16_t flags, std::uint64_t tick, Body body) {
  const std::size_t start = bytes.size();
  Out out(bytes);
  out.put(Header{kMagic, static_cast<std::uint16_t>(kind), flags, 0, 0, tick});
  body(out);
  const auto size = static_cast<std::uint32_t>(bytes.size() - start - sizeof(Header));
  std::memcpy(bytes.data() + start + offsetof(Header, size), &size, sizeof size);
}

constexpr std::uint64_t kNoAddress = ~std::uint64_t{0};

void put_address(Out& out, const std::optional<PciAddress>& address) {
  out.put(address ? std::uint64_t{address->domain} << 32U | std::uint64_t{address->bus} << 16U |
                        std::uint64_t{address->device} << 8U | address->function
                  : kNoAddress);
}

std::optional<PciAddress> get_address(In& in) {
  const auto packed = in.get<std::uint64_t>();
  if (packed == kNoAddress) return std::nullopt;
  PciAddress out;
  out.domain = static_cast<std::uint32_t>(packed >> 32U);
  out.bus = static_cast<std::uint8_t>(packed >> 16U);
  out.device = static_cast<std::uint8_t>(packed >> 8U & 0x1fU);
  out.function = static_cast<std::uint8_t>(packed & 7U);
  return out;
}

void put_compute(Out& out, const DeviceInfo& d) {
  out.put(static_cast<std::uint32_t>(d.compute_nodes.size()));
  for (const auto& n : d.compute_nodes) {
    out.put(n.node);
    out.put(n.gpu_id);
    out.put(n.partition);
    out.text(n.gfx);
    out.put(n.render_minor);
    out.put(n.compute_units);
  }
  out.text(d.compute_partition);
  out.text(d.memory_partition);
  out.put(static_cast<std::uint32_t>(d.xgmi_peers.size()));
  for (const auto& peer : d.xgmi_peers) put_address(out, peer);
}

void get_compute(In& in, DeviceInfo& d) {
  d.compute_nodes.resize(in.count());
  for (auto& n : d.compute_nodes) {
    n.node = in.get<std::uint32_t>();
    n.gpu_id = in.get<std::uint64_t>();
    n.partition = in.get<std::uint32_t>();
    n.gfx = in.text();
    n.render_minor = in.get<std::int32_t>();
    n.compute_units = in.get<std::uint32_t>();
  }
  d.compute_partition = in.text();
  d.memory_partition = in.text();
  d.xgmi_peers.resize(in.count());
  for (auto& peer : d.xgmi_peers) peer = get_address(in).value_or(PciAddress{});
}

void put_device(Out& out, const DeviceInfo& d) {
  out.put(d.pci);
  out.put(d.vendor_id);
  out.put(d.device_id);
  out.put<std::int32_t>(d.subsystem_vendor ? *d.subsystem_vendor : -1);
  out.put<std::int32_t>(d.subsystem_device ? *d.subsystem_device : -1);
  out.put<std::int32_t>(d.revision ? *d.revision : -1);
  out.put(d.pci_class);
  out.put(static_cast<std::uint8_t>(d.family));
  for (const auto* s : {&d.driver, &d.unique_id, &d.serial, &d.vbios_version, &d.vram_vendor, &d.name, &d.gfx,
                        &d.render_node, &d.card_node})
    out.text(*s);
  out.texts(d.other_names);
  put_compute(out, d);
  out.put(static_cast<std::uint32_t>(d.firmware.size()));
  for (const auto& [block, version] : d.firmware) {
    out.text(block);
    out.text(version);
  }
}

DeviceInfo get_device(In& in) {
  DeviceInfo d;
  d.pci = in.get<PciAddress>();
  d.vendor_id = in.get<std::uint16_t>();
  d.device_id = in.get<std::uint16_t>();
  if (const auto v = in.get<std::int32_t>(); v >= 0) d.subsystem_vendor = static_cast<std::uint16_t>(v);
  if (const auto v = in.get<std::int32_t>(); v >= 0) d.subsystem_device = static_cast<std::uint16_t>(v);
  if (const auto v = in.get<std::int32_t>(); v >= 0) d.revision = static_cast<std::uint8_t>(v);
  d.pci_class = in.get<std::uint32_t>();
  const auto family = in.get<std::uint8_t>();
  d.family =
      family <= static_cast<std::uint8_t>(AsicFamily::ApuRdna3) ? static_cast<AsicFamily>(family) : AsicFamily::Unknown;
  for (auto* s : {&d.driver, &d.unique_id, &d.serial, &d.vbios_version, &d.vram_vendor, &d.name, &d.gfx, &d.render_node,
                  &d.card_node})
    *s = in.text();
  d.other_names = in.texts();
  get_compute(in, d);
  const auto parts = in.count();
  for (std::uint32_t i = 0; i < parts; ++i) {
    auto block = in.text();
    d.firmware[std::move(block)] = in.text();
  }
  return d;
}

std::optional<DevicesFrame> get_devices(std::uint64_t tick, In in) {
  DevicesFrame frame;
  frame.tick = tick;
  const auto devices = in.count();
  for (std::uint32_t i = 0; i < devices; ++i) frame.devices.push_back(get_device(in));
  frame.untouched.resize(in.count());
  for (auto& d : frame.untouched) d = in.get<std::uint64_t>();
  frame.notes = in.texts();
  frame.nvidia = in.get<std::uint8_t>() != 0;
  frame.error = in.text();
  if (!in.whole()) return std::nullopt;
  return frame;
}

std::optional<SampleFrame> get_sample(std::uint64_t tick, In in) {
  SampleFrame frame;
  frame.tick = tick;
  frame.device = in.get<std::uint64_t>();
  frame.present = in.get<std::uint8_t>() != 0;
  auto& s = frame.sample;
  const auto power = in.get<std::uint8_t>();
  s.power =
      power <= static_cast<std::uint8_t>(PowerState::Unknown) ? static_cast<PowerState>(power) : PowerState::Unknown;
  s.throttle_known = in.get<std::uint8_t>() != 0;
  s.throttle = ThrottleSet(in.get<std::uint64_t>());
  s.throttle_gated = ThrottleSet(in.get<std::uint64_t>());
  s.performance_level = in.text();
  s.power_profile = in.text();
  const auto n = in.count();
  s.readings.reserve(n);
  for (std::uint32_t i = 0; i < n; ++i) {
    const auto w = in.get<WireReading>();
    const auto id = static_cast<ReadingId>(w.id);
    const bool rising = s.readings.empty() || s.readings.back().id < id;
    if (find_reading(id) == nullptr || w.status > static_cast<std::uint8_t>(ReadingStatus::Implausible) || !rising)
      return std::nullopt;
    s.readings.push_back({id, static_cast<ReadingStatus>(w.status), w.sys_errno, w.value});
  }
  if (!in.whole()) return std::nullopt;
  return frame;
}

std::optional<KlogFrame> get_klog(std::uint64_t tick, In in) {
  KlogFrame frame;
  frame.sequence = tick;
  frame.lost = in.get<std::uint64_t>();
  frame.items.resize(in.count());
  for (auto& item : frame.items) {
    auto& event = item.event;
    const auto type = in.get<std::uint8_t>();
    const auto severity = in.get<std::uint8_t>();
    if (type >= static_cast<std::uint8_t>(klog::Type::Count) ||
        severity > static_cast<std::uint8_t>(Severity::Critical))
      return std::nullopt;
    event.type = static_cast<klog::Type>(type);
    event.severity = static_cast<Severity>(severity);
    event.from = in.get<std::uint16_t>();
    event.device = get_address(in);
    item.gpu = get_address(in);
    event.count = in.get<std::uint64_t>();
    item.age_us = in.get<std::uint64_t>();
    event.pid = in.get<std::uint32_t>();
    event.text = in.text();
    event.process = in.text();
    event.subject = in.text();
  }
  if (!in.whole()) return std::nullopt;
  return frame;
}

using Number = std::optional<double> GpuClient::*;
struct WireNumber {
  double WireClient::* wire;
  Number client;
};
constexpr WireNumber kClientNumbers[] = {{&WireClient::engine, &GpuClient::engine_percent},
                                         {&WireClient::cpu, &GpuClient::cpu_percent},
                                         {&WireClient::thread_system, &GpuClient::thread_system_percent},
                                         {&WireClient::thread_user, &GpuClient::thread_user_percent},
                                         {&WireClient::read, &GpuClient::read_bytes_per_s}};
constexpr std::uint8_t kKnowsVram = 1U << 7U;

WireClient to_wire(const GpuClient& c) {
  WireClient w{};
  w.pid = c.pid;
  w.flags = static_cast<std::uint8_t>((c.open ? 1 : 0) | (c.queues ? 2 : 0) | (c.library ? 4 : 0));
  w.started = c.started;
  w.vram = c.vram_bytes.value_or(0);
  w.gtt = c.gtt_bytes;
  w.evicted = c.evicted_bytes;
  if (c.vram_bytes) w.known |= kKnowsVram;
  for (std::size_t i = 0; i < std::size(kClientNumbers); ++i) {
    const auto& value = c.*kClientNumbers[i].client;
    w.*kClientNumbers[i].wire = value.value_or(0);
    if (value) w.known = static_cast<std::uint8_t>(w.known | 1U << i);
  }
  return w;
}

GpuClient from_wire(const WireClient& w) {
  GpuClient c;
  c.pid = w.pid;
  c.open = (w.flags & 1) != 0;
  c.queues = (w.flags & 2) != 0;
  c.library = (w.flags & 4) != 0;
  c.started = w.started;
  if ((w.known & kKnowsVram) != 0) c.vram_bytes = w.vram;
  c.gtt_bytes = w.gtt;
  c.evicted_bytes = w.evicted;
  for (std::size_t i = 0; i < std::size(kClientNumbers); ++i) {
    const double value = w.*kClientNumbers[i].wire;
    if ((w.known >> i & 1) != 0 && std::isfinite(value)) c.*kClientNumbers[i].client = value;
  }
  return c;
}

std::optional<ClientsFrame> get_clients(std::uint64_t tick, In in) {
  ClientsFrame frame;
  frame.tick = tick;
  frame.device = in.get<std::uint64_t>();
  frame.look.time = {in.get<std::int64_t>()};
  frame.look.complete = in.get<std::uint8_t>() != 0;
  frame.look.processors = in.get<std::uint32_t>();
  frame.look.clients.resize(in.count());
  for (auto& client : frame.look.clients) client = from_wire(in.get<WireClient>());
  if (!in.whole()) return std::nullopt;
  return frame;
}

}  // namespace

void append_request(std::vector<std::uint8_t>& bytes, const Request& request) {
  const auto flags = static_cast<std::uint16_t>((request.slow ? kSlow : 0) | (request.reopen ? kReopen : 0));
  Out out(bytes);
  out.put(Header{kMagic, static_cast<std::uint16_t>(request.kind), flags,
                 static_cast<std::uint32_t>(request.devices.size() * sizeof(std::uint64_t)), 0, request.tick});
  for (const auto d : request.devices) out.put(d);
}

Result<std::optional<Request>> take_request(std::vector<std::uint8_t>& bytes) {
  if (bytes.size() < sizeof(Header)) return std::nullopt;
  In in(bytes);
  const auto header = in.get<Header>();
  const bool known = header.kind == static_cast<std::uint16_t>(RequestKind::Discover) ||
                     header.kind == static_cast<std::uint16_t>(RequestKind::Sample) ||
                     header.kind == static_cast<std::uint16_t>(RequestKind::Clients);
  if (header.magic != kMagic || !known || header.size > kMaxListed * sizeof(std::uint64_t) ||
      header.size % sizeof(std::uint64_t) != 0)
    return fail(ErrorCode::InvalidInput, "request: not what gpuhealthd sends");
  if (bytes.size() < sizeof(Header) + header.size) return std::nullopt;
  Request request;
  request.kind = static_cast<RequestKind>(header.kind);
  request.slow = (header.flags & kSlow) != 0;
  request.reopen = (header.flags & kReopen) != 0;
  request.tick = header.tick;
  request.devices.resize(header.size / sizeof(std::uint64_t));
  for (auto& d : request.devices) d = in.get<std::uint64_t>();
  bytes.erase(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(sizeof(Header) + header.size));
  return request;
}

void append_frame(std::vector<std::uint8_t>& bytes, const DevicesFrame& frame) {
  framed(bytes, FrameKind::Devices, 0, frame.tick, [&](Out& out) {
    out.put(static_cast<std::uint32_t>(frame.devices.size()));
    for (const auto& d : frame.devices) put_device(out, d);
    out.put(static_cast<std::uint32_t>(frame.untouched.size()));
    for (const auto d : frame.untouched) out.put(d);
    out.texts(frame.notes);
    out.put<std::uint8_t>(frame.nvidia ? 1 : 0);
    out.text(frame.error);
  });
}

void append_frame(std::vector<std::uint8_t>& bytes, const SampleFrame& frame) {
  framed(bytes, FrameKind::Sample, 0, frame.tick, [&](Out& out) {
    const auto& s = frame.sample;
    out.put(frame.device);
    out.put<std::uint8_t>(frame.present ? 1 : 0);
    out.put(static_cast<std::uint8_t>(s.power));
    out.put<std::uint8_t>(s.throttle_known ? 1 : 0);
    out.put(s.throttle.bits());
    out.put(s.throttle_gated.bits());
    out.text(s.performance_level);
    out.text(s.power_profile);
    out.put(static_cast<std::uint32_t>(s.readings.size()));
    auto* wire = out.grow<WireReading>(s.readings.size());
    for (const auto& r : s.readings) {
      const WireReading w{
          static_cast<std::uint16_t>(r.id), static_cast<std::uint8_t>(r.status), 0, r.sys_errno, 0, r.value};
      std::memcpy(wire, &w, sizeof w);
      wire += sizeof w;
    }
  });
}

void append_frame(std::vector<std::uint8_t>& bytes, const DoneFrame& frame) {
  framed(bytes, FrameKind::Done, 0, frame.tick, [](Out&) {});
}

void append_frame(std::vector<std::uint8_t>& bytes, const KlogFrame& frame) {
  framed(bytes, FrameKind::Klog, 0, frame.sequence, [&](Out& out) {
    out.put(frame.lost);
    out.put(static_cast<std::uint32_t>(frame.items.size()));
    for (const auto& item : frame.items) {
      const auto& event = item.event;
      out.put(static_cast<std::uint8_t>(event.type));
      out.put(static_cast<std::uint8_t>(event.severity));
      out.put(event.from);
      put_address(out, event.device);
      put_address(out, item.gpu);
      out.put(event.count);
      out.put(item.age_us);
      out.put(event.pid);
      out.text(event.text);
      out.text(event.process);
      out.text(event.subject);
    }
  });
}

void append_frame(std::vector<std::uint8_t>& bytes, const ClientsFrame& frame) {
  framed(bytes, FrameKind::Clients, 0, frame.tick, [&](Out& out) {
    out.put(frame.device);
    out.put<std::int64_t>(frame.look.time.us);
    out.put<std::uint8_t>(frame.look.complete ? 1 : 0);
    out.put<std::uint32_t>(frame.look.processors);
    const auto n = std::min<std::size_t>(frame.look.clients.size(), kMaxListed);
    out.put(static_cast<std::uint32_t>(n));
    for (std::size_t i = 0; i < n; ++i) out.put(to_wire(frame.look.clients[i]));
  });
}

Result<std::optional<Frame>> FrameParser::next() {
  const auto damaged = [this] {
    broken_ = true;
    return fail(ErrorCode::InvalidInput, "reader: a frame is damaged");
  };
  if (broken_) return damaged();
  const std::span<const std::uint8_t> rest(pending_.data() + begin_, pending_.size() - begin_);
  In in(rest);
  const auto header = rest.size() < sizeof(Header) ? Header{} : in.get<Header>();
  if (rest.size() >= sizeof(Header) && (header.magic != kMagic || header.size > kMaxPayload)) return damaged();
  if (rest.size() < sizeof(Header) + header.size) {
    pending_.erase(pending_.begin(), pending_.begin() + static_cast<std::ptrdiff_t>(begin_));
    begin_ = 0;
    return std::nullopt;
  }
  const In payload(in.take(header.size));
  begin_ += sizeof(Header) + header.size;
  switch (static_cast<FrameKind>(header.kind)) {
    case FrameKind::Devices:
      if (auto frame = get_devices(header.tick, payload)) return Frame(std::move(*frame));
      break;
    case FrameKind::Sample:
      if (auto frame = get_sample(header.tick, payload)) return Frame(std::move(*frame));
      break;
    case FrameKind::Klog:
      if (auto frame = get_klog(header.tick, payload)) return Frame(std::move(*frame));
      break;
    case FrameKind::Clients:
      if (auto frame = get_clients(header.tick, payload)) return Frame(std::move(*frame));
      break;
    case FrameKind::Done:
      if (header.size == 0) return Frame(DoneFrame{header.tick});
      break;
  }
  return damaged();
}

bool write_frames(int fd, const std::vector<std::uint8_t>& bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const auto n = ::write(fd, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += static_cast<std::size_t>(n);
  }
  return true;
}

}  // namespace gpuhealth::telemetry
