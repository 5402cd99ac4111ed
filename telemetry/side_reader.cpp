// SPDX-License-Identifier: Apache-2.0
#include "telemetry/side_reader.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "telemetry/reader_process.hpp"
#include "telemetry/sampler.hpp"

namespace gpuhealth::telemetry {

using boost::system::error_code;
using Time = std::chrono::steady_clock::time_point;

struct SideReader::Impl : std::enable_shared_from_this<Impl> {
  Impl(boost::asio::io_context& context, Options o, Handlers h)
      : io(context), options(std::move(o)), handlers(std::move(h)), watch(context) {}

  boost::asio::io_context& io;
  Options options;
  Handlers handlers;
  std::unique_ptr<ReaderProcess> process;
  std::map<std::uint64_t, std::unique_ptr<ReaderProcess>> stuck;  // by a number of their own
  std::uint64_t next_stuck = 0;
  boost::asio::steady_timer watch;
  bool asked = false;
  std::uint64_t tick = 0;
  std::uint64_t step = 0;
  Time moved;
  Time not_before{};
  std::chrono::milliseconds delay{0};

  bool start(const std::vector<std::string>& arguments);
  void arm();
  void check();
  void failed(bool hung, std::string how);
  void leave_behind(std::uint64_t device);
  void on_frame(Frame frame);
};

bool SideReader::Impl::start(const std::vector<std::string>& arguments) {
  ReaderProcess::Handlers on;
  on.frame = [weak = weak_from_this()](Frame frame) {
    if (const auto self = weak.lock()) self->on_frame(std::move(frame));
  };
  on.ended = [weak = weak_from_this()](const std::string& how) {
    if (const auto self = weak.lock()) self->failed(false, how);
  };
  auto started = ReaderProcess::start(io, options.program, arguments, std::move(on));
  if (!started) return false;
  process = std::move(*started);
  return true;
}

void SideReader::Impl::arm() {
  watch.expires_after(std::max(options.deadline / 4, std::chrono::milliseconds(20)));
  watch.async_wait([weak = weak_from_this()](error_code error) {
    const auto self = weak.lock();
    if (!error && self) self->check();
  });
}

void SideReader::Impl::check() {
  if (!asked || !process) return;
  const auto now = std::chrono::steady_clock::now();
  if (const auto at = process->step(); at != step) {
    step = at;
    moved = now;
  }
  // Outside any read it starts, or the machine is too busy to run it.
  const bool reads = process->where().device != Progress::kNoDevice;
  if (now - moved >= (reads ? options.deadline : 10 * options.deadline)) return failed(true, "it does not answer");
  arm();
}

void SideReader::Impl::failed(bool hung, std::string how) {
  Trouble trouble{hung, Progress::kNoDevice, {}, std::move(how)};
  if (process) {
    const auto where = process->where();
    trouble.device = where.device;
    trouble.what = where.file;
  }
  asked = false;
  watch.cancel();
  delay = std::min(std::max(delay * 2, options.first_retry), options.last_retry);
  not_before = std::chrono::steady_clock::now() + delay;
  leave_behind(trouble.device);
  handlers.trouble(trouble);
}

void SideReader::Impl::leave_behind(std::uint64_t device) {
  if (!process) return;
  const auto number = next_stuck++;
  auto& left = stuck[number] = std::move(process);
  left->on_exit([weak = weak_from_this(), number, device] {
    const auto self = weak.lock();
    if (!self) return;
    // Not from inside its own handler.
    const auto gone = std::make_shared<std::unique_ptr<ReaderProcess>>(std::move(self->stuck[number]));
    self->stuck.erase(number);
    if (self->handlers.left) self->handlers.left(device);
  });
  left->kill();
}

void SideReader::Impl::on_frame(Frame frame) {
  moved = std::chrono::steady_clock::now();
  if (const auto* done = std::get_if<DoneFrame>(&frame); done != nullptr && done->tick == tick) {
    asked = false;
    delay = {};
    watch.cancel();
  }
  handlers.frame(std::move(frame));
}

SideReader::SideReader(boost::asio::io_context& io, Options options, Handlers handlers)
    : impl_(std::make_shared<Impl>(io, std::move(options), std::move(handlers))) {}

SideReader::~SideReader() {
  impl_->watch.cancel();
  impl_->process.reset();
  impl_->stuck.clear();
}

bool SideReader::ask(const Request& request, const std::vector<std::string>& arguments) {
  auto& self = *impl_;
  const auto now = std::chrono::steady_clock::now();
  if (self.asked || now < self.not_before || self.stuck.size() >= self.options.most_left_behind) return false;
  if (!self.process && !self.start(arguments)) return false;
  if (!self.process->send(request)) return false;
  self.asked = true;
  self.tick = request.tick;
  self.step = self.process->step();
  self.moved = now;
  self.arm();
  return true;
}

void SideReader::stop() {
  impl_->asked = false;
  impl_->watch.cancel();
  impl_->process.reset();
}

std::size_t SideReader::left_behind() const {
  return impl_->stuck.size();
}

}  // namespace gpuhealth::telemetry
