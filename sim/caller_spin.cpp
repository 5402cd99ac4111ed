// SPDX-License-Identifier: Apache-2.0
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <optional>

#include "sim/caller.hpp"

namespace gpuhealth::sim {

#ifdef __x86_64__
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t kBuffer = 4U << 20U;  // getrandom fills it in about ten milliseconds, all of them in the kernel
constexpr long kRestart = -512;             // ERESTARTSYS: how an interrupted wait leaves the call
constexpr std::uint64_t kNoCall = ~std::uint64_t{0};

// Attached to one thread that waits in a trapped call. ptrace belongs to the thread that makes this object.
class Guest {
 public:
  explicit Guest(pid_t tid) : tid_(tid) {}
  ~Guest() { leave(); }
  Guest(const Guest&) = delete;
  Guest& operator=(const Guest&) = delete;

  // Takes it out of its call; false: it is as it was.
  bool enter() {
    if (ptrace(PTRACE_SEIZE, tid_, nullptr, PTRACE_O_TRACESYSGOOD) != 0) return false;
    attached_ = true;
    if (ptrace(PTRACE_INTERRUPT, tid_, nullptr, nullptr) != 0 || !stopped()) return false;
    if (ptrace(PTRACE_GETREGS, tid_, nullptr, &at_call_) != 0) return false;
    return at_call_.orig_rax == SYS_ioctl && static_cast<long>(at_call_.rax) == kRestart;
  }

  // One system call in the place of its own; nothing when a signal came, or its end.
  std::optional<long> call(long number, std::array<std::uint64_t, 6> arguments) {
    auto regs = at_call_;
    regs.rip -= 2;  // the instruction `syscall`
    regs.rax = static_cast<std::uint64_t>(number);
    regs.orig_rax = kNoCall;
    regs.rdi = arguments[0];
    regs.rsi = arguments[1];
    regs.rdx = arguments[2];
    regs.r10 = arguments[3];
    regs.r8 = arguments[4];
    regs.r9 = arguments[5];
    if (ptrace(PTRACE_SETREGS, tid_, nullptr, &regs) != 0) return std::nullopt;
    for (int edge = 0; edge < 2; ++edge) {  // its beginning and its end
      if (ptrace(PTRACE_SYSCALL, tid_, nullptr, nullptr) != 0 || !stopped()) return std::nullopt;
    }
    if (ptrace(PTRACE_GETREGS, tid_, nullptr, &regs) != 0) return std::nullopt;
    return static_cast<long>(regs.rax);
  }

  // The ioctl returns.
  void answer(int error) {
    auto regs = at_call_;
    regs.rax = static_cast<std::uint64_t>(-static_cast<long>(error));
    regs.orig_rax = kNoCall;
    if (!gone_) ptrace(PTRACE_SETREGS, tid_, nullptr, &regs);
  }
  [[nodiscard]] bool gone() const { return gone_; }
  [[nodiscard]] bool told() const { return signal_ != 0; }

 private:
  // Waits for a stop at a system call; false at its end, or when a signal is on its way.
  bool stopped() {
    for (;;) {
      int status = 0;
      if (waitpid(tid_, &status, __WALL) != tid_) {
        if (errno == EINTR) continue;
        gone_ = true;
        return false;
      }
      if (!WIFSTOPPED(status)) {
        gone_ = true;
        return false;
      }
      const int signal = WSTOPSIG(status);
      if (signal == (SIGTRAP | 0x80) || status >> 16 == PTRACE_EVENT_STOP) return true;
      signal_ = signal;
      return false;
    }
  }
  void leave() {
    if (!attached_ || gone_) return;
    // A signal that was seen is delivered now.
    ptrace(PTRACE_DETACH, tid_, nullptr, static_cast<long>(signal_));
  }

  pid_t tid_;
  bool attached_ = false;
  bool gone_ = false;
  int signal_ = 0;
  user_regs_struct at_call_{};
};

}  // namespace

Caller::Spin Caller::spin(double seconds, int error) const {
  const auto until = Clock::now() + std::chrono::duration<double>(seconds);
  Guest guest(tid_);
  if (!guest.enter()) return guest.gone() ? Spin::Gone : Spin::NotPossible;
  const auto buffer = guest.call(
      SYS_mmap, {0, kBuffer, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, ~std::uint64_t{0} /* no file */, 0});
  const bool mapped = buffer && *buffer > 0;
  while (mapped && Clock::now() < until) {
    if (!guest.call(SYS_getrandom, {static_cast<std::uint64_t>(*buffer), kBuffer, 0, 0, 0, 0})) break;
  }
  if (mapped && !guest.told() && !guest.gone())
    guest.call(SYS_munmap, {static_cast<std::uint64_t>(*buffer), kBuffer, 0, 0, 0, 0});
  guest.answer(guest.told() ? EINTR : error);
  return guest.gone() ? Spin::Gone : Spin::Done;
}
#else
Caller::Spin Caller::spin(double, int) const {
  return Spin::NotPossible;
}
#endif

}  // namespace gpuhealth::sim
