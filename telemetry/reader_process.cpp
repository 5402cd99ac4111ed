// SPDX-License-Identifier: Apache-2.0
#include "telemetry/reader_process.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <new>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include "core/fd.hpp"
#include "core/spawn.hpp"
#include "telemetry/sampler.hpp"

namespace gpuhealth::telemetry {
namespace {

using boost::asio::posix::stream_descriptor;
using boost::system::error_code;

constexpr int kProgressFd = 3;
constexpr int kFrameBytes = 1 << 18;  // a tick of 64 GPUs fits, so that the reader writes once

struct Pipe {
  Fd read, write;
};

Result<Pipe> make_pipe() {
  std::array<int, 2> fds{};
  if (pipe2(fds.data(), O_CLOEXEC) != 0) return fail_errno("cannot make a pipe", errno);
  return Pipe{Fd(fds[0]), Fd(fds[1])};
}

struct SharedProgress {
  Progress* progress = nullptr;
  Fd fd;
};

Result<SharedProgress> share_progress() {
  SharedProgress out;
  out.fd.reset(memfd_create("gpuhealth-reader-progress", MFD_CLOEXEC));
  if (!out.fd || ftruncate(out.fd.get(), sizeof(Progress)) != 0) return fail_errno("cannot make shared memory", errno);
  void* memory = mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED, out.fd.get(), 0);
  if (memory == MAP_FAILED) return fail_errno("cannot map shared memory", errno);
  out.progress = new (memory) Progress;
  return out;
}

// A descriptor above the ones that the child's own are laid onto.
Fd above_standard(Fd fd) {
  if (fd.get() > kProgressFd) return fd;
  return Fd(fcntl(fd.get(), F_DUPFD_CLOEXEC, kProgressFd + 1));
}

std::string describe(const siginfo_t& info) {
  if (info.si_code == CLD_EXITED) return "exited with " + std::to_string(info.si_status);
  return "was ended by signal " + std::to_string(info.si_status);
}

}  // namespace

struct ReaderProcess::Impl : std::enable_shared_from_this<Impl> {
  Impl(boost::asio::io_context& io, Handlers h) : handlers(std::move(h)), frames(io), death(io) {}
  ~Impl() {
    if (progress != nullptr) munmap(progress, sizeof(Progress));
  }

  Handlers handlers;
  std::function<void()> exited;
  pid_t pid = -1;
  Fd requests;
  stream_descriptor frames;
  stream_descriptor death;  // a pidfd: readable when the process is gone
  Progress* progress = nullptr;
  FrameParser parser;
  std::array<std::uint8_t, 65536> buffer{};
  std::vector<std::uint8_t> outgoing;
  bool silent = false;  // kill() was called

  void read_frames();
  void take_frames(std::size_t bytes);
  void wait_for_death();
  void broke(const std::string& how);
};

void ReaderProcess::Impl::read_frames() {
  frames.async_read_some(boost::asio::buffer(buffer), [weak = weak_from_this()](error_code error, std::size_t bytes) {
    const auto self = weak.lock();
    if (!self || self->silent) return;
    if (error) {
      self->broke("its output ended");
      return;
    }
    self->take_frames(bytes);
  });
}

void ReaderProcess::Impl::take_frames(std::size_t bytes) {
  parser.feed({buffer.data(), bytes});
  for (;;) {
    auto frame = parser.next();
    if (!frame) {
      broke(frame.error().text);
      return;
    }
    if (!*frame) break;
    handlers.frame(std::move(**frame));
    if (silent) return;  // the handler had enough of it
  }
  read_frames();
}

void ReaderProcess::Impl::broke(const std::string& how) {
  silent = true;
  ::kill(pid, SIGKILL);
  handlers.ended(how);
}

void ReaderProcess::Impl::wait_for_death() {
  // Holds itself: after the owner has gone the process is still to be reaped.
  death.async_wait(stream_descriptor::wait_read, [self = shared_from_this()](error_code error) {
    if (error) return;
    siginfo_t info{};
    waitid(P_PID, static_cast<id_t>(self->pid), &info, WEXITED | WNOHANG);
    error_code ignored;
    self->death.close(ignored);
    if (!self->silent) {
      self->silent = true;
      self->handlers.ended(describe(info));
    }
    if (self->exited) std::exchange(self->exited, nullptr)();
  });
}

Result<std::unique_ptr<ReaderProcess>> ReaderProcess::start(boost::asio::io_context& io, const std::string& program,
                                                            const std::string& sysroot, Handlers handlers) {
  if (sysroot.empty()) return start(io, program, std::vector<std::string>{}, std::move(handlers));
  return start(io, program, std::vector<std::string>{"--sysroot", sysroot}, std::move(handlers));
}

Result<std::unique_ptr<ReaderProcess>> ReaderProcess::start(boost::asio::io_context& io, const std::string& program,
                                                            std::vector<std::string> arguments, Handlers handlers) {
  auto requests = make_pipe();
  auto frames = make_pipe();
  auto progress = share_progress();
  if (!requests) return tl::unexpected(requests.error());
  if (!frames) return tl::unexpected(frames.error());
  if (!progress) return tl::unexpected(progress.error());
  auto impl = std::make_shared<Impl>(io, std::move(handlers));
  impl->progress = progress->progress;
  const Fd in = above_standard(std::move(requests->read));
  const Fd out = above_standard(std::move(frames->write));
  const Fd shared = above_standard(std::move(progress->fd));
  fcntl(out.get(), F_SETPIPE_SZ, kFrameBytes);  // best effort: a smaller pipe only costs more writes
  // dup2 onto 0, 1 and 3 clears close-on-exec; sources above 3 cannot be overwritten by an earlier step.
  SpawnFiles files;
  files.dup(in.get(), STDIN_FILENO).dup(out.get(), STDOUT_FILENO).dup(shared.get(), kProgressFd);
  arguments.insert(arguments.begin(), program);
  const auto pid = spawn(std::move(arguments), files);
  if (!pid) return tl::unexpected(pid.error());
  impl->pid = *pid;
  impl->requests = std::move(requests->write);
  fcntl(impl->requests.get(), F_SETFL, O_NONBLOCK);
  impl->frames.assign(frames->read.release());
  const int pidfd = static_cast<int>(syscall(SYS_pidfd_open, *pid, 0));
  if (pidfd < 0) {
    ::kill(*pid, SIGKILL);
    return fail_errno("cannot watch " + program, errno);
  }
  fcntl(pidfd, F_SETFD, FD_CLOEXEC);
  impl->death.assign(pidfd);
  impl->read_frames();
  impl->wait_for_death();
  return std::unique_ptr<ReaderProcess>(new ReaderProcess(std::move(impl)));
}

ReaderProcess::ReaderProcess(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

ReaderProcess::~ReaderProcess() {
  kill();
  impl_->exited = nullptr;  // the owner is gone; the process is reaped all the same
}

bool ReaderProcess::send(const Request& request) {
  impl_->outgoing.clear();
  append_request(impl_->outgoing, request);
  const auto n = ::write(impl_->requests.get(), impl_->outgoing.data(), impl_->outgoing.size());
  return n == static_cast<ssize_t>(impl_->outgoing.size());
}

void ReaderProcess::kill() {
  if (impl_->death.is_open()) ::kill(impl_->pid, SIGKILL);
  impl_->silent = true;
  error_code ignored;
  impl_->frames.close(ignored);
  impl_->requests.reset();
}

void ReaderProcess::on_exit(std::function<void()> exited) {
  impl_->exited = std::move(exited);
}

int ReaderProcess::pid() const {
  return impl_->pid;
}

ReaderProcess::Where ReaderProcess::where() const {
  const auto& p = *impl_->progress;
  return {p.step.load(std::memory_order_acquire), p.device.load(std::memory_order_relaxed), p.file()};
}

std::uint64_t ReaderProcess::step() const {
  return impl_->progress->step.load(std::memory_order_acquire);
}

}  // namespace gpuhealth::telemetry
