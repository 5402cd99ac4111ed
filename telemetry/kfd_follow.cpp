// SPDX-License-Identifier: Apache-2.0
// The descriptors of the compute driver's events. A process that has opened /dev/kfd is one of its processes until it
// ends; so a child opens it, hands the events' descriptors over and ends: nobody takes the reader for a user of a GPU,
// and the driver can be unloaded. Neither wakes a GPU.
#include <fcntl.h>
#include <linux/ioctl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <system_error>
#include <utility>
#include <vector>

#include "core/exit_codes.hpp"
#include "core/fd.hpp"
#include "telemetry/discovery.hpp"
#include "telemetry/kfd.hpp"
#include "telemetry/kfd_events.hpp"
#include "telemetry/sysfs.hpp"

namespace gpuhealth::telemetry {
namespace {

// kfd_ioctl.h: struct kfd_ioctl_smi_events_args, AMDKFD_IOC_SMI_EVENTS.
struct SmiEventsArgs {
  std::uint32_t gpu_id = 0;
  std::uint32_t descriptor = 0;
};
constexpr unsigned long kSmiEvents = _IOWR('K', 0x1F, SmiEventsArgs);

constexpr int kTopologyMs = 10000;  // between two looks at whether GPUs came or went
constexpr int kWaitMs = 1000;       // while something may become an event
constexpr int kOpenMs = 10000;      // that the child may take; the driver is locked while a GPU is reset

struct Watched {
  PciAddress gpu;
  std::uint32_t gpu_id = 0;
  Fd events;
};

std::int64_t now_us() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000 + now.tv_nsec / 1000;
}

// One message a GPU: its place in the list, with the descriptor; at the end, or instead, an errno.
struct Note {
  std::uint32_t index = 0;
  int sys_errno = 0;
};

void send_note(int socket, const Note& note, int fd) {
  iovec data{const_cast<Note*>(&note), sizeof note};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  if (fd >= 0) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    auto* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  }
  sendmsg(socket, &message, MSG_NOSIGNAL);
}

bool receive_note(int socket, Note& note, Fd& fd) {
  iovec data{&note, sizeof note};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != static_cast<ssize_t>(sizeof note)) return false;
  const auto* header = CMSG_FIRSTHDR(&message);
  if (header != nullptr && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
    int received = -1;
    std::memcpy(&received, CMSG_DATA(header), sizeof received);
    fd.reset(received);
  }
  return true;
}

// The child's part: nothing here allocates.
void hand_over(const char* path, const std::vector<Watched>& gpus, int socket) {
  const int kfd = open(path, O_RDWR | O_CLOEXEC);
  if (kfd < 0) return send_note(socket, {0, errno}, -1);
  for (std::uint32_t i = 0; i < gpus.size(); ++i) {
    SmiEventsArgs args;
    args.gpu_id = gpus[i].gpu_id;
    if (ioctl(kfd, kSmiEvents, &args) != 0) {
      send_note(socket, {i, errno}, -1);
      continue;
    }
    const auto fd = static_cast<int>(args.descriptor);
    const bool asked = write(fd, &kKfdEventMask, sizeof kKfdEventMask) == sizeof kKfdEventMask;
    send_note(socket, {i, asked ? 0 : errno}, asked ? fd : -1);
    close(fd);
  }
}

// An errno, or 0 when at least one GPU tells its events.
int subscribe(const std::string& sysroot, std::vector<Watched>& gpus) {
  const std::string path = sysroot + "/dev/kfd";
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) return errno;
  const Fd ours(ends[0]);
  Fd theirs(ends[1]);
  const pid_t child = fork();
  if (child < 0) return errno;
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    hand_over(path.c_str(), gpus, theirs.get());
    _exit(0);
  }
  theirs.reset();
  int problem = ENODEV;
  bool any = false;
  for (;;) {
    pollfd wait{ours.get(), POLLIN, 0};
    if (poll(&wait, 1, kOpenMs) <= 0) {
      problem = ETIMEDOUT;
      kill(child, SIGKILL);
      break;
    }
    Note note;
    Fd fd;
    if (!receive_note(ours.get(), note, fd)) break;
    if (note.sys_errno != 0) problem = note.sys_errno;
    if (!fd || note.index >= gpus.size()) continue;
    fcntl(fd.get(), F_SETFL, O_NONBLOCK);
    gpus[note.index].events = std::move(fd);
    any = true;
  }
  // One that hangs in the driver is not waited for; it is init's when we end.
  for (int i = 0; i < 100 && waitpid(child, nullptr, WNOHANG) == 0; ++i) usleep(1000);
  return any ? 0 : problem;
}

std::vector<Watched> gpus_of(const std::string& sysroot) {
  std::vector<std::string> notes;
  const auto addresses = list_gpus(sysroot, notes);
  std::vector<Watched> out;
  if (!addresses) return out;
  for (const auto& card : kfd_cards(read_kfd_topology(sysroot), *addresses)) {
    for (const auto& node : card.nodes) {
      if (node.gpu_id == 0 || node.gpu_id > 0xffffffffU) continue;
      Watched watched;
      watched.gpu = card.pci;
      watched.gpu_id = static_cast<std::uint32_t>(node.gpu_id);
      out.push_back(std::move(watched));
    }
  }
  return out;
}

std::string generation(const std::string& sysroot) {
  return read_text_or_empty(sysroot + "/sys/class/kfd/kfd/topology/generation_id");
}

// Until there is nothing more, but for one that never ends.
void drain(const Watched& watched, KfdEventLog& log) {
  constexpr int kMostReads = 1024;
  std::array<char, 1024> buffer{};
  for (int i = 0; i < kMostReads; ++i) {
    const auto n = read(watched.events.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    log.take(watched.gpu, {buffer.data(), static_cast<std::size_t>(n)}, now_us());
  }
}

}  // namespace

int follow_kfd_events(const std::string& sysroot, int in, int out) {
  KfdEventLog log(
      [&](std::uint32_t pid) { return access((sysroot + "/proc/" + std::to_string(pid)).c_str(), F_OK) == 0; });
  std::vector<Watched> gpus;
  std::string seen;
  std::vector<std::uint8_t> bytes;
  for (;;) {
    if (const auto now = generation(sysroot); now != seen || gpus.empty()) {
      seen = now;
      gpus = gpus_of(sysroot);  // those from before are closed: a driver that was loaded anew tells them nothing
      const int problem = gpus.empty() ? 0 : subscribe(sysroot, gpus);
      if (problem != 0) {
        std::fprintf(stderr, "gpuhealth-reader: no events from %s/dev/kfd: %s\n", sysroot.c_str(),
                     std::generic_category().message(problem).c_str());
        return static_cast<int>(ExitCode::Unavailable);
      }
    }
    std::vector<pollfd> wait = {{in, POLLIN, 0}};
    for (const auto& watched : gpus) wait.push_back({watched.events ? watched.events.get() : -1, POLLIN, 0});
    if (poll(wait.data(), wait.size(), log.waits() ? kWaitMs : kTopologyMs) < 0 && errno != EINTR) return 1;
    if (wait[0].revents != 0) {
      std::array<char, 64> ignored{};
      if (read(in, ignored.data(), ignored.size()) <= 0) return 0;  // gpuhealthd has gone
    }
    for (std::size_t i = 0; i < gpus.size(); ++i) {
      if ((wait[i + 1].revents & POLLIN) != 0) drain(gpus[i], log);
      if ((wait[i + 1].revents & (POLLHUP | POLLERR | POLLNVAL)) != 0) gpus[i].events.reset();
    }
    if (const auto frame = log.news(now_us())) {
      bytes.clear();
      append_frame(bytes, *frame);
      if (!write_frames(out, bytes)) return 0;
    }
  }
}

}  // namespace gpuhealth::telemetry
