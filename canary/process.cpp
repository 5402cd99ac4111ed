// SPDX-License-Identifier: Apache-2.0
#include "canary/process.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <utility>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

#include "core/fd.hpp"
#include "core/spawn.hpp"

namespace gpuhealth::canary {
namespace {

using boost::asio::posix::stream_descriptor;
using boost::system::error_code;

constexpr std::size_t kMostLine = 1U << 16U;
constexpr auto kDeath = std::chrono::seconds(5);

// A command whose end interests nobody.
void run_and_forget(const boost::asio::any_io_executor& io, const std::vector<std::string>& words) {
  SpawnFiles files;
  files.open(STDIN_FILENO, "/dev/null", O_RDONLY);
  const auto pid = spawn(words, files);
  if (!pid) return;
  const int pidfd = static_cast<int>(syscall(SYS_pidfd_open, *pid, 0));
  if (pidfd < 0) return;
  const auto death = std::make_shared<stream_descriptor>(io, pidfd);
  death->async_wait(stream_descriptor::wait_read, [death, child = *pid](error_code error) {
    siginfo_t info{};
    if (!error) waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG);
  });
}

}  // namespace

std::vector<std::string> LineBuffer::feed(std::string_view bytes) {
  std::vector<std::string> out;
  while (!bytes.empty()) {
    const auto end = bytes.find('\n');
    partial_.append(bytes.substr(0, end));
    if (partial_.size() > kMostLine) {
      partial_.clear();
      too_long_ = true;
    }
    if (end == std::string_view::npos) break;
    if (!too_long_) out.push_back(std::move(partial_));
    partial_.clear();
    too_long_ = false;
    bytes.remove_prefix(end + 1);
  }
  return out;
}

struct WorkerProcess::Impl : std::enable_shared_from_this<Impl> {
  Impl(boost::asio::io_context& io, Handlers h) : handlers(std::move(h)), output(io), death(io), timer(io) {}

  Handlers handlers;
  pid_t pid = -1;
  stream_descriptor output;
  stream_descriptor death;  // a pidfd
  boost::asio::steady_timer timer;
  std::array<char, 16384> buffer{};
  LineBuffer lines;
  bool silent = false;
  std::vector<std::string> stop_command;

  void read() {
    output.async_read_some(boost::asio::buffer(buffer), [self = shared_from_this()](error_code error, std::size_t n) {
      if (error) return;
      for (const auto& line : self->lines.feed({self->buffer.data(), n})) {
        const auto m = parse_measurement(line);
        if (m && !self->silent) self->handlers.measured(*m, line);
      }
      self->read();
    });
  }
  void wait() {
    death.async_wait(stream_descriptor::wait_read, [self = shared_from_this()](error_code error) {
      if (error) return;
      siginfo_t info{};
      waitid(P_PID, static_cast<id_t>(self->pid), &info, WEXITED | WNOHANG);
      self->drain();
      self->timer.cancel();
      error_code ignored;
      self->death.close(ignored);
      self->output.close(ignored);
      if (!std::exchange(self->silent, true)) self->handlers.ended();
    });
  }
  // What it wrote before it died may not have been read yet.
  void drain() {
    for (;;) {
      const ssize_t n = ::read(output.native_handle(), buffer.data(), buffer.size());
      if (n <= 0) return;
      for (const auto& line : lines.feed({buffer.data(), static_cast<std::size_t>(n)})) {
        const auto m = parse_measurement(line);
        if (m && !silent) handlers.measured(*m, line);
      }
    }
  }
  void limit(std::chrono::milliseconds after, bool killed) {
    timer.expires_after(after);
    timer.async_wait([self = shared_from_this(), killed](error_code error) {
      if (error || !self->death.is_open()) return;
      if (killed) {
        if (!self->silent && self->handlers.left) self->handlers.left(self->pid);
        return;
      }
      ::kill(self->pid, SIGKILL);
      self->limit(kDeath, true);
    });
  }
};

Result<std::unique_ptr<WorkerProcess>> WorkerProcess::start(boost::asio::io_context& io, const std::string& program,
                                                            const std::vector<std::string>& arguments, double limit_s,
                                                            Handlers handlers, std::vector<std::string> stop_command) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return fail_errno("cannot make a pipe", errno);
  Fd from(ends[0]);
  const Fd to(ends[1]);
  SpawnFiles files;
  files.open(STDIN_FILENO, "/dev/null", O_RDONLY).dup(to.get(), STDOUT_FILENO);
  std::vector<std::string> words = {program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  const auto pid = spawn(std::move(words), files);
  if (!pid) return tl::unexpected(pid.error());
  auto impl = std::make_shared<Impl>(io, std::move(handlers));
  impl->pid = *pid;
  impl->stop_command = std::move(stop_command);
  const int pidfd = static_cast<int>(syscall(SYS_pidfd_open, *pid, 0));
  if (pidfd < 0) {
    ::kill(*pid, SIGKILL);
    return fail_errno("cannot watch " + program, errno);
  }
  fcntl(from.get(), F_SETFL, O_NONBLOCK);
  impl->output.assign(from.release());
  impl->death.assign(pidfd);
  impl->read();
  impl->wait();
  impl->limit(std::chrono::milliseconds(static_cast<std::int64_t>(limit_s * 1000)), false);
  return std::unique_ptr<WorkerProcess>(new WorkerProcess(std::move(impl)));
}

ProcessId process_id(pid_t pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(in, text);
  ProcessId out{pid, 0};
  // The name in parentheses may hold anything; the start is the twentieth field behind it.
  const auto name_end = text.rfind(')');
  if (name_end == std::string::npos) return out;
  std::istringstream fields(text.substr(name_end + 1));
  std::string field;
  for (int i = 0; i < 20; ++i) fields >> field;
  out.started = std::strtoull(field.c_str(), nullptr, 10);
  return out;
}

// EPERM: it is there, and another user's.
bool is_there(const ProcessId& process) {
  if (::kill(process.pid, 0) != 0 && errno == ESRCH) return false;
  const auto now = process_id(process.pid).started;
  return process.started == 0 || now == 0 || now == process.started;
}

WorkerProcess::WorkerProcess(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

WorkerProcess::~WorkerProcess() {
  stop();
  impl_->silent = true;
}

void WorkerProcess::stop() {
  if (!impl_->death.is_open()) return;
  if (impl_->stop_command.empty()) {
    ::kill(impl_->pid, SIGTERM);
  } else {
    run_and_forget(impl_->death.get_executor(), impl_->stop_command);
  }
}

}  // namespace gpuhealth::canary
