// SPDX-License-Identifier: Apache-2.0
#include "daemon/hotplug.hpp"

#include <libudev.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <string_view>
#include <tuple>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

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

  void wait();
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

void Hotplug::Impl::drain() {
  bool relevant = false;
  for (;;) {
    errno = 0;
    const std::unique_ptr<udev_device, Unref> device(udev_monitor_receive_device(monitor.get()));
    if (!device) {
      relevant = relevant || errno == ENOBUFS;  // events were lost: look for ourselves
      break;
    }
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

Result<std::unique_ptr<Hotplug>> Hotplug::start(boost::asio::io_context& io, std::function<void()> changed) {
  auto impl = std::make_shared<Impl>(io);
  impl->changed = std::move(changed);
  impl->context.reset(udev_new());
  if (!impl->context) return fail_errno("cannot use libudev", errno);
  // udev's own group where udevd runs (its events come when links are in place), else the kernel's.
  const char* group = access("/run/udev/control", F_OK) == 0 ? "udev" : "kernel";
  impl->monitor.reset(udev_monitor_new_from_netlink(impl->context.get(), group));
  if (!impl->monitor) return fail_errno("cannot listen to device events", errno);
  udev_monitor_filter_add_match_subsystem_devtype(impl->monitor.get(), "pci", nullptr);
  udev_monitor_filter_add_match_subsystem_devtype(impl->monitor.get(), "drm", nullptr);
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
