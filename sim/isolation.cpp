// SPDX-License-Identifier: Apache-2.0
#include "sim/isolation.hpp"

#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>

#include "core/fd.hpp"

namespace gpuhealth::sim {
namespace {

constexpr int kFailed = 125;  // the stage could not be set up; it has been said

int complain(const char* what) {
  std::fprintf(stderr, "gpuhealth-sim: cannot %s: %s\n", what, std::strerror(errno));
  return kFailed;
}

bool write_file(const char* path, const std::string& text) {
  const Fd file(open(path, O_WRONLY | O_CLOEXEC));
  return file && write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

void raise_loopback() {
  const Fd socket_fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  std::memcpy(request.ifr_name, "lo", sizeof "lo");
  request.ifr_flags = IFF_UP;
  if (socket_fd) ioctl(socket_fd.get(), SIOCSIFFLAGS, &request);
}

// Dies with its parent, also with one that died before the call.
bool die_with(pid_t parent) {
  return prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent;
}

int as_init(const std::function<int()>& inside) {
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return complain("tie itself to its parent");
  if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return complain("make mounts private");
  if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NOEXEC | MS_NODEV, nullptr) != 0) return complain("mount /proc");
  raise_loopback();
  // Who loses his parent here comes to this process; it does nothing but see them off.
  const pid_t self = getpid();
  const pid_t player = fork();
  if (player < 0) return complain("fork");
  if (player == 0) {
    if (!die_with(self)) _exit(kFailed);
    const int status = inside();
    std::fflush(nullptr);
    _exit(status);
  }
  for (;;) {
    int status = 0;
    const pid_t ended = waitpid(-1, &status, 0);
    if (ended == player) return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (ended < 0 && errno != EINTR) return complain("wait");
  }
}

int unshare_and_run(pid_t parent, const std::function<int()>& inside) {
  if (!die_with(parent)) return kFailed;
  const auto uid = geteuid();
  const auto gid = getegid();
  const int user = uid == 0 ? 0 : CLONE_NEWUSER;
  if (unshare(user | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS) != 0)
    return complain("make namespaces (root, or a kernel that allows user namespaces, is needed)");
  if (user != 0) {
    const bool mapped = write_file("/proc/self/setgroups", "deny") &&
                        write_file("/proc/self/uid_map", "0 " + std::to_string(uid) + " 1") &&
                        write_file("/proc/self/gid_map", "0 " + std::to_string(gid) + " 1");
    if (!mapped) return complain("map the user");
  }
  const pid_t init = fork();
  if (init < 0) return complain("fork");
  if (init == 0) _exit(as_init(inside));
  int status = 0;
  while (waitpid(init, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

Result<int> run_isolated(const std::function<int()>& inside) {
  std::fflush(nullptr);
  const pid_t self = getpid();
  const pid_t child = fork();
  if (child < 0) return fail_errno("cannot fork", errno);
  if (child == 0) _exit(unshare_and_run(self, inside));
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status)) return 128 + WTERMSIG(status);
  if (WEXITSTATUS(status) == kFailed) return fail(ErrorCode::Unavailable, "the simulated machine could not be set up");
  return WEXITSTATUS(status);
}

}  // namespace gpuhealth::sim
