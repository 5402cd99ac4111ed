// SPDX-License-Identifier: Apache-2.0
#include "daemon/act_runner.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>

#include "core/fd.hpp"
#include "core/spawn.hpp"
#include "daemon/act_unit.hpp"

namespace gpuhealth::daemon {
namespace {

using boost::asio::posix::stream_descriptor;
using boost::system::error_code;

constexpr std::size_t kMostSaid = std::size_t{1} << 20U;
constexpr auto kDeath = std::chrono::seconds(5);
constexpr auto kUnitGrace = std::chrono::seconds(20);  // systemd keeps the limit; this is for when it does not

// One run.
struct Child : std::enable_shared_from_this<Child> {
  explicit Child(boost::asio::io_context& io) : input(io), output(io), death(io), timer(io) {}

  pid_t pid = -1;
  pid_t helper = -1;  // that stops the unit
  stream_descriptor input;
  stream_descriptor output;
  stream_descriptor death;  // a pidfd
  boost::asio::steady_timer timer;
  std::array<char, 16384> buffer{};
  std::string request, said;
  std::vector<std::string> stop;
  ActRunner::Ended ended;

  void take(std::size_t n) {
    if (said.size() < kMostSaid) said.append(buffer.data(), std::min(n, kMostSaid - said.size()));
  }
  void give() {
    boost::asio::async_write(input, boost::asio::buffer(request), [self = shared_from_this()](error_code, std::size_t) {
      error_code ignored;
      self->input.close(ignored);
    });
  }
  void read() {
    output.async_read_some(boost::asio::buffer(buffer), [self = shared_from_this()](error_code error, std::size_t n) {
      if (error) return;
      self->take(n);
      self->read();
    });
  }
  void wait() {
    death.async_wait(stream_descriptor::wait_read, [self = shared_from_this()](error_code error) {
      if (error) return;
      siginfo_t info{};
      waitid(P_PID, static_cast<id_t>(self->pid), &info, WEXITED | WNOHANG);
      // What it wrote before it died may not have been read yet.
      for (ssize_t n = 0; (n = ::read(self->output.native_handle(), self->buffer.data(), self->buffer.size())) > 0;)
        self->take(static_cast<std::size_t>(n));
      self->finish(info.si_code == CLD_EXITED ? info.si_status : -1);
    });
  }
  void limit(std::chrono::steady_clock::duration after, bool killed) {
    timer.expires_after(after);
    timer.async_wait([self = shared_from_this(), killed](error_code error) {
      if (error || !self->death.is_open()) return;
      if (killed) {  // it hangs in the kernel; it is reaped when it dies
        if (const auto then = std::exchange(self->ended, {})) then(-1, std::move(self->said));
        return;
      }
      if (!self->stop.empty()) {
        SpawnFiles files;
        files.open(STDIN_FILENO, "/dev/null", O_RDONLY);
        self->helper = spawn(self->stop, files).value_or(-1);
      }
      ::kill(self->pid, SIGKILL);
      self->limit(kDeath, true);
    });
  }
  void finish(int code) {
    error_code ignored;
    if (helper > 0) waitpid(helper, nullptr, WNOHANG);
    timer.cancel();
    death.close(ignored);
    output.close(ignored);
    input.close(ignored);
    if (const auto then = std::exchange(ended, {})) then(code, std::move(said));
  }
};

Result<void> start(Child& child, std::vector<std::string> words) {
  std::array<int, 2> in{}, out{};
  if (pipe2(in.data(), O_CLOEXEC) != 0) return fail_errno("cannot make a pipe", errno);
  const Fd in_read(in[0]);
  Fd in_write(in[1]);
  if (pipe2(out.data(), O_CLOEXEC) != 0) return fail_errno("cannot make a pipe", errno);
  Fd out_read(out[0]);
  const Fd out_write(out[1]);
  SpawnFiles files;
  files.dup(in_read.get(), STDIN_FILENO).dup(out_write.get(), STDOUT_FILENO);
  const auto pid = spawn(std::move(words), files);
  if (!pid) return tl::unexpected<Error>(pid.error());
  child.pid = *pid;
  const int pidfd = static_cast<int>(syscall(SYS_pidfd_open, *pid, 0));
  if (pidfd < 0) {
    ::kill(*pid, SIGKILL);
    return fail_errno("cannot watch gpuhealth-act", errno);
  }
  fcntl(in_write.get(), F_SETFL, O_NONBLOCK);
  fcntl(out_read.get(), F_SETFL, O_NONBLOCK);
  child.input.assign(in_write.release());
  child.output.assign(out_read.release());
  child.death.assign(pidfd);
  return {};
}

}  // namespace

struct ActRunner::Impl {
  boost::asio::io_context& io;
  Options options;
};

ActRunner::ActRunner(boost::asio::io_context& io, Options options)
    : impl_(std::make_shared<Impl>(Impl{io, std::move(options)})) {}
ActRunner::~ActRunner() = default;

void ActRunner::run(std::vector<std::string> words, std::string input, Duration deadline, Ended ended) {
  const auto child = std::make_shared<Child>(impl_->io);
  // Nobody is told once the runner is gone.
  child->ended = [weak = std::weak_ptr(impl_), then = std::move(ended)](int code, std::string said) {
    if (!weak.expired()) then(code, std::move(said));
  };
  std::chrono::steady_clock::duration limit = deadline;
  if (impl_->options.units) {
    const std::string name = next_unit_name();
    const double seconds = std::chrono::duration<double>(deadline).count();
    auto unit = act_unit(name, impl_->options.program, words, room_of(words, input), seconds);
    words = std::move(unit.start);
    child->stop = std::move(unit.stop);
    limit += kUnitGrace;
  } else {
    words.insert(words.begin(), impl_->options.program);
  }
  child->request = std::move(input);
  if (const auto started = start(*child, std::move(words)); !started) {
    child->said = "{\"error\": {\"code\": \"unavailable\", \"text\": \"gpuhealth-act could not be started\"}}";
    boost::asio::post(impl_->io, [child] { child->finish(-1); });
    return;
  }
  child->give();
  child->read();
  child->wait();
  child->limit(limit, false);
}

}  // namespace gpuhealth::daemon
