// SPDX-License-Identifier: Apache-2.0
#include "telemetry/log_reader.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "telemetry/reader_process.hpp"

namespace gpuhealth::telemetry {

using boost::system::error_code;

struct LogReader::Impl : std::enable_shared_from_this<Impl> {
  Impl(boost::asio::io_context& context, Options o, Handlers h)
      : io(context), options(std::move(o)), handlers(std::move(h)), restart(context) {}

  boost::asio::io_context& io;
  Options options;
  Handlers handlers;
  std::unique_ptr<ReaderProcess> process;
  boost::asio::steady_timer restart;
  std::chrono::milliseconds delay{0};
  bool complained = false;

  void start();
  void ended(const std::string& how);
  void again();
};

void LogReader::Impl::start() {
  std::vector<std::string> arguments = {"--source", options.source};
  if (!options.sysroot.empty()) arguments.insert(arguments.end(), {"--sysroot", options.sysroot});
  if (options.after) arguments.insert(arguments.end(), {"--after", std::to_string(*options.after)});
  ReaderProcess::Handlers on;
  on.frame = [weak = weak_from_this()](Frame frame) {
    const auto self = weak.lock();
    const auto* news = std::get_if<KlogFrame>(&frame);
    if (!self || news == nullptr) return;
    if (self->options.source == "kmsg") self->options.after = news->sequence;
    self->delay = {};
    self->complained = false;
    self->handlers.news(*news);
  };
  on.ended = [weak = weak_from_this()](const std::string& how) {
    if (const auto self = weak.lock()) self->ended(how);
  };
  auto started = ReaderProcess::start(io, options.program, std::move(arguments), std::move(on));
  if (started) {
    process = std::move(*started);
    return;
  }
  handlers.log(Severity::Warning, started.error().text + "; " + options.what + " is not read");
  again();
}

void LogReader::Impl::ended(const std::string& how) {
  if (!std::exchange(complained, true))
    handlers.log(Severity::Warning, "the reader of " + options.what + " " + how + "; it is started again");
  again();
}

void LogReader::Impl::again() {
  delay = std::min(std::max(delay * 2, options.first_retry), options.last_retry);
  restart.expires_after(delay);
  restart.async_wait([weak = weak_from_this()](error_code error) {
    const auto self = weak.lock();
    if (error || !self) return;
    self->process.reset();
    self->start();
  });
}

LogReader::LogReader(boost::asio::io_context& io, Options options, Handlers handlers)
    : impl_(std::make_shared<Impl>(io, std::move(options), std::move(handlers))) {
  impl_->start();
}

LogReader::~LogReader() {
  impl_->restart.cancel();
  impl_->process.reset();
}

}  // namespace gpuhealth::telemetry
