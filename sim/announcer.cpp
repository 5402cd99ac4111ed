// SPDX-License-Identifier: Apache-2.0
#include "sim/announcer.hpp"

#include <arpa/inet.h>
#include <linux/netlink.h>
#include <sys/socket.h>
#include <systemd/sd-bus.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string_view>
#include <thread>
#include <utility>

#include "core/fd.hpp"
#include "dbus/sd.hpp"

namespace gpuhealth::sim {
namespace {

constexpr const char* kLogin = "org.freedesktop.login1";
constexpr const char* kLoginPath = "/org/freedesktop/login1";
constexpr const char* kAuthority = "org.freedesktop.PolicyKit1";

// libudev's hash of a subsystem's name (MurmurHash2), by which its socket filters.
std::uint32_t hash(std::string_view text) {
  constexpr std::uint32_t m = 0x5bd1e995;
  auto h = static_cast<std::uint32_t>(text.size());
  for (; text.size() >= 4; text.remove_prefix(4)) {
    std::uint32_t k = 0;
    std::memcpy(&k, text.data(), 4);
    k *= m;
    k ^= k >> 24U;
    h = (h * m) ^ (k * m);
  }
  if (text.size() >= 3) h ^= static_cast<std::uint32_t>(static_cast<unsigned char>(text[2])) << 16U;
  if (text.size() >= 2) h ^= static_cast<std::uint32_t>(static_cast<unsigned char>(text[1])) << 8U;
  if (!text.empty()) h = (h ^ static_cast<unsigned char>(text[0])) * m;
  h ^= h >> 13U;
  h *= m;
  return h ^ h >> 15U;
}

// struct udev_monitor_netlink_header.
struct UdevHeader {
  std::array<char, 8> prefix{'l', 'i', 'b', 'u', 'd', 'e', 'v', '\0'};
  std::uint32_t magic = htonl(0xfeedcafe);
  std::uint32_t header_size = 40;
  std::uint32_t properties_off = 40;
  std::uint32_t properties_len = 0;
  std::uint32_t subsystem_hash = 0;
  std::uint32_t devtype_hash = 0;
  std::array<std::uint32_t, 2> tag_bloom{};
};
static_assert(sizeof(UdevHeader) == 40);

int check(sd_bus_message* call, void* userdata, sd_bus_error* /*error*/) {
  const auto allows = *static_cast<const Polkit*>(userdata) == Polkit::Allows ? 1 : 0;
  return sd_bus_reply_method_return(call, "(bba{ss})", allows, 0, 0);
}

constexpr sd_bus_vtable kAuthorityTable[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_METHOD("CheckAuthorization", "(sa{sv})sa{ss}us", "(bba{ss})", check, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_VTABLE_END,
};

constexpr int kMostAttempts = 500;
constexpr std::chrono::milliseconds kPause{10};

}  // namespace

struct Announcer::Impl {
  dbus::BusPtr bus;
  Polkit polkit = Polkit::Absent;
};

Announcer::Announcer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Announcer::~Announcer() = default;

Result<std::unique_ptr<Announcer>> Announcer::start(const std::string& bus_address, Polkit polkit) {
  auto impl = std::make_unique<Impl>();
  impl->polkit = polkit;
  int r = 0;
  // The bus's socket is there a moment before it listens.
  for (int i = 0; i < kMostAttempts; ++i) {
    r = dbus::open_bus(impl->bus, bus_address);
    if (r != -ECONNREFUSED && r != -ENOENT) break;
    std::this_thread::sleep_for(kPause);
  }
  sd_bus* raw = impl->bus.get();
  if (r >= 0) r = sd_bus_request_name(raw, kLogin, 0);
  if (r >= 0 && polkit != Polkit::Absent) {
    r = sd_bus_add_object_vtable(raw, nullptr, "/org/freedesktop/PolicyKit1/Authority",
                                 "org.freedesktop.PolicyKit1.Authority", kAuthorityTable, &impl->polkit);
    if (r >= 0) r = sd_bus_request_name(raw, kAuthority, 0);
  }
  if (r < 0) return fail_errno("cannot speak for logind on the simulated bus", -r);
  return std::unique_ptr<Announcer>(new Announcer(std::move(impl)));
}

void Announcer::tick() {
  constexpr int kMost = 64;
  for (int i = 0; i < kMost && sd_bus_process(impl_->bus.get(), nullptr) > 0; ++i) {
  }
}

Result<void> Announcer::prepare_for_sleep(bool sleeping) {
  auto* bus = impl_->bus.get();
  int r =
      sd_bus_emit_signal(bus, kLoginPath, "org.freedesktop.login1.Manager", "PrepareForSleep", "b", sleeping ? 1 : 0);
  if (r >= 0) r = sd_bus_flush(bus);
  if (r < 0) return fail_errno("cannot speak for logind on the simulated bus", -r);
  return {};
}

Result<void> send_uevent(const Uevent& event, const std::string& path) {
  static unsigned number = 0;
  std::string body = "ACTION=" + event.action + '\0' + "DEVPATH=" + path + '\0' + "SUBSYSTEM=" + event.subsystem +
                     '\0' + "SEQNUM=" + std::to_string(++number) + '\0';
  for (const auto& [name, value] : event.properties) body += name + "=" + value + '\0';
  UdevHeader header;
  header.properties_len = static_cast<std::uint32_t>(body.size());
  header.subsystem_hash = htonl(hash(event.subsystem));
  const std::string message = std::string(reinterpret_cast<const char*>(&header), sizeof header) + body;
  const Fd sender(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_KOBJECT_UEVENT));
  sockaddr_nl udev{};
  udev.nl_family = AF_NETLINK;
  udev.nl_groups = 2;
  if (!sender || sendto(sender.get(), message.data(), message.size(), 0, reinterpret_cast<const sockaddr*>(&udev),
                        sizeof udev) < 0) {
    // Nobody listens yet.
    return errno == ECONNREFUSED ? Result<void>() : fail_errno("cannot send a uevent", errno);
  }
  return {};
}

}  // namespace gpuhealth::sim
