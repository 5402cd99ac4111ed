// SPDX-License-Identifier: Apache-2.0
#include "cli/apart.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "core/fd.hpp"

namespace gpuhealth::cli {
namespace {

// Both sides see it; it outlives the parent's interest, because a child in a read cannot be ended.
telemetry::Progress* shared_progress() {
  void* memory = mmap(nullptr, sizeof(telemetry::Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : new (memory) telemetry::Progress();
}

struct Child {
  pid_t pid = -1;
  Fd ended;  // readable when it has
  Fd out, err;
  telemetry::Progress* progress = nullptr;
};

// A child that hangs must not hold the caller's pipes open: it prints into memory.
[[noreturn]] void be_child(const Child& child, const Look& look, std::span<const telemetry::Unanswering> stuck) {
  const Fd nothing(open("/dev/null", O_RDONLY | O_CLOEXEC));
  dup2(nothing.get(), STDIN_FILENO);
  dup2(child.out.get(), STDOUT_FILENO);
  dup2(child.err.get(), STDERR_FILENO);
  const auto code = look(stuck, *child.progress);
  (void)std::fflush(nullptr);
  _exit(static_cast<int>(code));
}

std::optional<Child> start(const Look& look, std::span<const telemetry::Unanswering> stuck) {
  Child child;
  child.out = Fd(memfd_create("out", MFD_CLOEXEC));
  child.err = Fd(memfd_create("err", MFD_CLOEXEC));
  child.progress = shared_progress();
  if (!child.out || !child.err || child.progress == nullptr) return std::nullopt;
  (void)std::fflush(nullptr);
  child.pid = fork();
  if (child.pid < 0) return std::nullopt;
  if (child.pid == 0) be_child(child, look, stuck);
  child.ended = Fd(static_cast<int>(syscall(SYS_pidfd_open, child.pid, 0)));
  if (!child.ended) {
    kill(child.pid, SIGKILL);
    return std::nullopt;
  }
  return child;
}

// False when `patience` went by without a step.
bool ends(const Child& child, std::chrono::milliseconds patience) {
  constexpr int kLooks = 10;  // within the patience
  pollfd watched = {child.ended.get(), POLLIN, 0};
  auto step = child.progress->step.load();
  for (int quiet = 0; quiet < kLooks;) {
    const int n = poll(&watched, 1, static_cast<int>(patience.count() / kLooks));
    if (n > 0) return true;
    if (n < 0 && errno != EINTR) return false;
    const auto before = std::exchange(step, child.progress->step.load());
    quiet = step == before ? quiet + 1 : 0;
  }
  return false;
}

void pass_on(int from, int to) {
  std::vector<char> bytes(65536);
  off_t at = 0;
  for (ssize_t n = 0; (n = pread(from, bytes.data(), bytes.size(), at)) > 0; at += n) {
    for (ssize_t done = 0; done < n;) {
      const auto put = write(to, bytes.data() + done, static_cast<std::size_t>(n - done));
      if (put < 0 && errno == EINTR) continue;
      if (put <= 0) return;
      done += put;
    }
  }
}

ExitCode failed(const char* why) {
  (void)std::fprintf(stderr, "gpuhealthctl: %s\n", why);
  return ExitCode::Failed;
}

ExitCode finish(const Child& child) {
  int status = 0;
  while (waitpid(child.pid, &status, 0) < 0 && errno == EINTR) {
  }
  pass_on(child.err.get(), STDERR_FILENO);
  if (!WIFEXITED(status)) return failed("the look at the hardware ended by itself; this is a fault of gpuhealthctl");
  pass_on(child.out.get(), STDOUT_FILENO);
  return static_cast<ExitCode>(WEXITSTATUS(status));
}

}  // namespace

ExitCode look_apart(const Look& look, std::chrono::milliseconds patience) {
  std::vector<telemetry::Unanswering> stuck;
  for (;;) {
    const auto child = start(look, stuck);
    if (!child) return failed("cannot start a process that looks at the hardware");
    if (ends(*child, patience)) return finish(*child);
    kill(child->pid, SIGKILL);
    const auto device = child->progress->device.load();
    // One that hangs even when only its identity is asked for is named again, with that.
    const auto again = std::erase_if(stuck, [&](const auto& one) { return one.device == device; });
    if (again != 0 && device == telemetry::Progress::kNoDevice)
      return failed("the kernel does not answer when asked which devices there are; see the kernel log");
    stuck.push_back({device, child->progress->file()});
  }
}

}  // namespace gpuhealth::cli
