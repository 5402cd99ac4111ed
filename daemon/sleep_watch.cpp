// SPDX-License-Identifier: Apache-2.0
#include "daemon/sleep_watch.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "dbus/pump.hpp"
#include "dbus/sd.hpp"

namespace gpuhealth::daemon {
namespace {

constexpr std::chrono::seconds kFirstRetry{1};
constexpr std::chrono::seconds kLastRetry{60};

}  // namespace

struct SleepWatch::Impl : std::enable_shared_from_this<Impl> {
  Impl(boost::asio::io_context& context, std::string where, std::function<void(bool)> tell)
      : io(context), address(std::move(where)), told(std::move(tell)), retry(context) {}

  boost::asio::io_context& io;
  std::string address;
  std::function<void(bool)> told;
  boost::asio::steady_timer retry;
  std::chrono::seconds wait = kFirstRetry;
  dbus::BusPtr bus;
  dbus::SlotPtr slot;
  std::unique_ptr<dbus::Pump> pump;

  void connect();
  void again();
  int open();
  static int signalled(sd_bus_message* message, void* userdata, sd_bus_error* error) noexcept;
};

int SleepWatch::Impl::open() {
  int r = dbus::open_bus(bus, address);
  if (r < 0) return r;
  sd_bus_slot* raw_slot = nullptr;
  // Nobody waits for the bus's answer: a bus that does not greet would hold up the loop.
  r = sd_bus_match_signal_async(bus.get(), &raw_slot, "org.freedesktop.login1", "/org/freedesktop/login1",
                                "org.freedesktop.login1.Manager", "PrepareForSleep", signalled, nullptr, this);
  slot.reset(raw_slot);
  return r;
}

void SleepWatch::Impl::connect() {
  pump.reset();
  slot.reset();
  if (open() < 0) {
    slot.reset();
    bus.reset();
    return again();
  }
  pump = std::make_unique<dbus::Pump>(
      io, bus.get(), [] { return false; },
      [weak = weak_from_this()](int) {
        if (const auto self = weak.lock()) self->again();
      });
  pump->pump();
}

void SleepWatch::Impl::again() {
  retry.expires_after(wait);
  wait = std::min(wait * 2, kLastRetry);
  retry.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
    const auto self = weak.lock();
    if (self && !error) self->connect();
  });
}

int SleepWatch::Impl::signalled(sd_bus_message* message, void* userdata, sd_bus_error* /*error*/) noexcept {
  auto& self = *static_cast<Impl*>(userdata);
  self.wait = kFirstRetry;
  int sleeping = 0;
  if (sd_bus_message_read(message, "b", &sleeping) >= 0) self.told(sleeping != 0);
  return 0;
}

SleepWatch::SleepWatch(boost::asio::io_context& io, std::string address, std::function<void(bool)> told)
    : impl_(std::make_shared<Impl>(io, std::move(address), std::move(told))) {
  impl_->connect();
}

SleepWatch::~SleepWatch() {
  impl_->retry.cancel();
  impl_->pump.reset();
  impl_->slot.reset();
  impl_->bus.reset();
}

}  // namespace gpuhealth::daemon
