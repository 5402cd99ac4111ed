// SPDX-License-Identifier: Apache-2.0
#include "daemon/act_process.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <memory>

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include "core/fd.hpp"
#include "core/spawn.hpp"

namespace gpuhealth::daemon {
namespace {

using boost::asio::posix::stream_descriptor;
using boost::system::error_code;

constexpr std::size_t kMostSaid = 1U << 20U;

struct Run : std::enable_shared_from_this<Run> {
  explicit Run(boost::asio::io_context& io) : output(io), death(io), timer(io) {}

  pid_t pid = -1;
  stream_descriptor output;
  stream_descriptor death;  // a pidfd
  boost::asio::steady_timer timer;
  std::array<char, 16384> buffer{};
  std::string said;
  bool late = false;
  ActEnded ended;

  void keep(std::size_t n) {
    if (said.size() + n <= kMostSaid) said.append(buffer.data(), n);
  }
  void read() {
    output.async_read_some(boost::asio::buffer(buffer), [self = shared_from_this()](error_code error, std::size_t n) {
      if (error) return;
      self->keep(n);
      self->read();
    });
  }
  void wait() {
    death.async_wait(stream_descriptor::wait_read, [self = shared_from_this()](error_code error) {
      if (error) return;
      siginfo_t info{};
      (void)waitid(P_PID, static_cast<id_t>(self->pid), &info, WEXITED | WNOHANG);
      for (ssize_t n = 0; (n = ::read(self->output.native_handle(), self->buffer.data(), self->buffer.size())) > 0;)
        self->keep(static_cast<std::size_t>(n));
      self->timer.cancel();
      error_code ignored;
      self->death.close(ignored);
      self->output.close(ignored);
      self->ended(self->late || info.si_code != CLD_EXITED ? -1 : info.si_status, std::move(self->said));
    });
  }
  void limit(double limit_s) {
    timer.expires_after(std::chrono::milliseconds(std::llround(limit_s * 1000)));
    timer.async_wait([self = shared_from_this()](error_code error) {
      if (error) return;
      self->late = true;
      ::kill(self->pid, SIGKILL);
    });
  }
};

}  // namespace

void run_act(boost::asio::io_context& io, std::vector<std::string> words, double limit_s, ActEnded ended) {
  const auto cannot = [&] { boost::asio::post(io, [ended] { ended(-1, {}); }); };
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return cannot();
  Fd from(ends[0]);
  Fd to(ends[1]);
  SpawnFiles files;
  files.open(STDIN_FILENO, "/dev/null", O_RDONLY).dup(to.get(), STDOUT_FILENO);
  const auto pid = spawn(std::move(words), files);
  to.reset();
  if (!pid) return cannot();
  const int pidfd = static_cast<int>(syscall(SYS_pidfd_open, *pid, 0));
  if (pidfd < 0) {
    ::kill(*pid, SIGKILL);
    return cannot();
  }
  const auto run = std::make_shared<Run>(io);
  run->pid = *pid;
  run->ended = std::move(ended);
  fcntl(from.get(), F_SETFL, O_NONBLOCK);
  run->output.assign(from.release());
  run->death.assign(pidfd);
  run->read();
  run->wait();
  run->limit(limit_s);
}

std::vector<std::string> act_unit(const std::string& program, const std::vector<std::string>& words, double limit_s) {
  std::vector<std::string> out = {
      "/usr/bin/systemd-run", "--quiet", "--collect", "--wait", "--pipe", "--description=gpuhealth-act: the boot menu"};
  // A second one waits for the ledger's lock; what is stopped in the middle is put back at the next start.
  for (const char* property : {"Type=exec", "NoNewPrivileges=yes", "PrivateNetwork=yes", "LockPersonality=yes",
                               "LimitCORE=0", "LogLevelMax=notice", "KillMode=mixed", "TimeoutStopSec=30"})
    out.push_back(std::string("--property=") + property);
  out.push_back("--property=RuntimeMaxSec=" + std::to_string(std::lround(limit_s)));
  out.emplace_back("--");
  out.push_back(program);
  out.insert(out.end(), words.begin(), words.end());
  return out;
}

}  // namespace gpuhealth::daemon
