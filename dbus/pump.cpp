// SPDX-License-Identifier: Apache-2.0
#include "dbus/pump.hpp"

#include <poll.h>
#include <systemd/sd-bus.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

namespace asio = boost::asio;

namespace gpuhealth::dbus {
namespace {

// Messages handled before the rest of the loop gets its turn: a client that floods us delays nothing else.
constexpr int kMessagesPerTurn = 64;

}  // namespace

struct Pump::Impl : std::enable_shared_from_this<Pump::Impl> {
  Impl(asio::io_context& context, sd_bus* b, std::function<bool()> more, std::function<void(int)> lost)
      : io(context), bus(b), refill(std::move(more)), on_lost(std::move(lost)), fd(context), timer(context) {}

  void turn();
  void wait();
  void wait_for(asio::posix::stream_descriptor::wait_type what, bool& waiting);
  void wait_timeout();
  void lose(int error);
  void later();

  asio::io_context& io;
  sd_bus* bus;
  std::function<bool()> refill;
  std::function<void(int)> on_lost;
  asio::posix::stream_descriptor fd;
  asio::steady_timer timer;
  bool closed = false;  // lost, or the owner is gone
  bool working = false;
  bool posted = false;
  bool reading = false;
  bool writing = false;
};

void Pump::Impl::later() {
  if (std::exchange(posted, true)) return;
  asio::post(io, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self || self->closed) return;
    self->posted = false;
    self->turn();
  });
}

void Pump::Impl::turn() {
  if (closed) return;
  if (working) return later();
  working = true;
  bool more = false;
  for (int handled = 0; !closed; ++handled) {
    const int r = sd_bus_process(bus, nullptr);
    if (r < 0) {
      lose(r);
      break;
    }
    if (r > 0 && handled >= kMessagesPerTurn) {
      more = true;
      break;
    }
    if (r == 0 && !refill()) break;
  }
  working = false;
  if (closed) return;
  if (more) return later();
  wait();
}

void Pump::Impl::wait() {
  const int events = sd_bus_get_events(bus);
  if (events < 0) return lose(events);
  if ((events & POLLIN) != 0) wait_for(asio::posix::stream_descriptor::wait_read, reading);
  if ((events & POLLOUT) != 0) wait_for(asio::posix::stream_descriptor::wait_write, writing);
  wait_timeout();
}

void Pump::Impl::wait_for(asio::posix::stream_descriptor::wait_type what, bool& waiting) {
  if (std::exchange(waiting, true)) return;
  fd.async_wait(what, [weak = weak_from_this(), &waiting](const boost::system::error_code& error) {
    const auto self = weak.lock();
    if (!self || self->closed) return;
    waiting = false;
    if (!error) self->turn();
  });
}

void Pump::Impl::wait_timeout() {
  std::uint64_t us = 0;
  if (sd_bus_get_timeout(bus, &us) < 0 || us == UINT64_MAX) {
    timer.cancel();
    return;
  }
  // sd-bus states an absolute CLOCK_MONOTONIC time, which is what steady_clock counts.
  timer.expires_at(std::chrono::steady_clock::time_point(std::chrono::microseconds(us)));
  timer.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
    const auto self = weak.lock();
    if (self && !self->closed && !error) self->turn();
  });
}

void Pump::Impl::lose(int error) {
  if (std::exchange(closed, true)) return;
  fd.release();
  timer.cancel();
  asio::post(io, [weak = weak_from_this(), error] {
    const auto self = weak.lock();
    if (!self || !self->on_lost) return;
    const auto call = std::move(self->on_lost);  // it may destroy the pump
    call(error);
  });
}

Pump::Pump(asio::io_context& io, sd_bus* bus, std::function<bool()> refill, std::function<void(int)> on_lost)
    : impl_(std::make_shared<Impl>(io, bus, std::move(refill), std::move(on_lost))) {
  const int fd = sd_bus_get_fd(bus);
  boost::system::error_code error;
  if (fd >= 0) impl_->fd.assign(fd, error);
  if (fd < 0 || error) impl_->lose(fd < 0 ? fd : -error.value());
}

Pump::~Pump() {
  // The descriptor belongs to sd-bus.
  if (!std::exchange(impl_->closed, true) && impl_->fd.is_open()) impl_->fd.release();
  impl_->on_lost = nullptr;
}

void Pump::pump() noexcept {
  impl_->turn();
}

}  // namespace gpuhealth::dbus
