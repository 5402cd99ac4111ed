// SPDX-License-Identifier: Apache-2.0
#include "daemon/hotplug.hpp"

#include <libudev.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <string_view>
#include <tuple>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

#include "core/pci.hpp"

namespace gpuhealth::daemon {
namespace {

using boost::asio::posix::stream_descriptor;
using boost::system::error_code;

constexpr std::chrono::milliseconds kQuiet{300};
constexpr int kReceiveBytes = 1 << 20;  // a rescan of a large machine is a burst of thousands of events

struct Unref {
  void operator()(udev* u) const { udev_unref(u); }
  void operator()(udev_monitor* m) const { udev_monitor_unref(m); }
  void operator()(udev_device* d) const { udev_device_unref(d); }
};

}  // namespace

struct Hotplug::Impl : std::enable_shared_from_this<Impl> {
  explicit Impl(boost::asio::io_context& io) : socket(io), quiet(io) {}
  ~Impl() { std::ignore = socket.is_open() ? socket.release() : -1; }  // the monitor owns the descriptor

  std::unique_ptr<udev, Unref> context;
  std::unique_ptr<udev_monitor, Unref> monitor;
  stream_descriptor socket;
  boost::asio::steady_timer quiet;
  std::function<void()> changed;
  std::function<void(const Notice&)> noticed;

  void wait();
  bool notice(udev_device* device) const;
  void drain();
};

void Hotplug::Impl::wait() {
  socket.async_wait(stream_descriptor::wait_read, [weak = weak_from_this()](error_code error) {
    const auto self = weak.lock();
    if (error || !self) return;
    self->drain();
    self->wait();
  });
}

namespace {

std::string_view property(udev_device* device, const char* name) {
  const char* value = udev_device_get_property_value(device, name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

// The last PCI address in a device path: "/devices/pci0000:00/0000:00:01.0/0000:03:00.0/drm/card1".
std::string pci_of(std::string_view path) {
  std::string last;
  while (!path.empty()) {
    const auto slash = path.find('/');
    const auto part = path.substr(0, slash);
    if (const auto address = parse_pci_address(part); address && to_string(*address) == part) last = part;
    path.remove_prefix(slash == std::string_view::npos ? path.size() : slash + 1);
  }
  return last;
}

// A core dump's own path names no device; its link does.
std::string failing_device(udev_device* device) {
  const char* folder = udev_device_get_syspath(device);
  if (folder == nullptr) return {};
  std::error_code error;
  const auto real = std::filesystem::canonical(std::filesystem::path(folder) / "failing_device", error);
  return error ? std::string() : pci_of(real.string());
}

}  // namespace

std::string meaning_of_wedged(std::string_view methods) {
  struct Row {
    std::string_view method, meaning;
  };
  static constexpr std::array kRows = std::to_array<Row>({
      {"none", "it was reset and works again"},
      {"rebind", "its driver must be unbound and bound again"},
      {"bus-reset", "it needs a reset of its bus"},
      {"vendor-specific", "it needs its maker's own recovery"},
      {"cold-reset", "the machine must be powered off and on"},
      {"unknown", "the driver does not know what would bring it back"},
  });
  std::string out;
  while (!methods.empty()) {
    const auto comma = methods.find(',');
    const auto method = methods.substr(0, comma);
    methods.remove_prefix(comma == std::string_view::npos ? methods.size() : comma + 1);
    const auto* const row = std::ranges::find(kRows, method, &Row::method);
    if (!out.empty()) out += ", or ";
    out += row == kRows.end() ? "recovery \"" + std::string(method.substr(0, 32)) + "\"" : std::string(row->meaning);
  }
  return out.empty() ? "the driver says nothing more" : out;
}

// True when the event was a driver's notice and nothing else.
bool Hotplug::Impl::notice(udev_device* device) const {
  const auto subsystem = property(device, "SUBSYSTEM");
  const char* action = udev_device_get_action(device);
  if (action == nullptr) return false;
  Notice out;
  if (const auto wedged = property(device, "WEDGED"); subsystem == "drm" && !wedged.empty()) {
    out.kind = Notice::Kind::Wedged;
    out.methods = wedged;
    out.device = pci_of(property(device, "DEVPATH"));
    out.task = property(device, "TASK");
    const auto pid = property(device, "PID");
    std::from_chars(pid.data(), pid.data() + pid.size(), out.pid);
  } else if (subsystem == "devcoredump" && std::string_view(action) == "add") {
    out.kind = Notice::Kind::Coredump;
    out.device = failing_device(device);
  } else {
    return subsystem == "devcoredump" || property(device, "HOTPLUG") == "1";  // a display came or went
  }
  if (noticed) noticed(out);
  return true;
}

void Hotplug::Impl::drain() {
  bool relevant = false;
  for (;;) {
    errno = 0;
    const std::unique_ptr<udev_device, Unref> device(udev_monitor_receive_device(monitor.get()));
    if (!device) {
      relevant = relevant || errno == ENOBUFS;  // events were lost: look for ourselves
      break;
    }
    if (notice(device.get())) continue;
    const char* subsystem = udev_device_get_subsystem(device.get());
    relevant = relevant ||
               (subsystem != nullptr && (std::string_view(subsystem) == "pci" || std::string_view(subsystem) == "drm"));
  }
  if (!relevant) return;
  quiet.expires_after(kQuiet);
  quiet.async_wait([weak = weak_from_this()](error_code error) {
    const auto self = weak.lock();
    if (!error && self) self->changed();
  });
}

Result<std::unique_ptr<Hotplug>> Hotplug::start(boost::asio::io_context& io, std::function<void()> changed,
                                                std::function<void(const Notice&)> noticed) {
  auto impl = std::make_shared<Impl>(io);
  impl->changed = std::move(changed);
  impl->noticed = std::move(noticed);
  impl->context.reset(udev_new());
  if (!impl->context) return fail_errno("cannot use libudev", errno);
  // udev's own group where udevd runs (its events come when links are in place), else the kernel's.
  const char* group = access("/run/udev/control", F_OK) == 0 ? "udev" : "kernel";
  impl->monitor.reset(udev_monitor_new_from_netlink(impl->context.get(), group));
  if (!impl->monitor) return fail_errno("cannot listen to device events", errno);
  udev_monitor_filter_add_match_subsystem_devtype(impl->monitor.get(), "pci", nullptr);
  udev_monitor_filter_add_match_subsystem_devtype(impl->monitor.get(), "drm", nullptr);
  udev_monitor_filter_add_match_subsystem_devtype(impl->monitor.get(), "devcoredump", nullptr);
  udev_monitor_set_receive_buffer_size(impl->monitor.get(), kReceiveBytes);
  if (const int r = udev_monitor_enable_receiving(impl->monitor.get()); r < 0)
    return fail_errno("cannot listen to device events", -r);
  impl->socket.assign(udev_monitor_get_fd(impl->monitor.get()));
  impl->wait();
  return std::unique_ptr<Hotplug>(new Hotplug(std::move(impl)));
}

Hotplug::Hotplug(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
Hotplug::~Hotplug() = default;

}  // namespace gpuhealth::daemon
