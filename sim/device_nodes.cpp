// SPDX-License-Identifier: Apache-2.0
#include "sim/device_nodes.hpp"

#include <amdgpu_drm.h>
#include <drm.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "core/fd.hpp"
#include "core/pci.hpp"
#include "sim/drm_answers.hpp"

namespace gpuhealth::sim {
namespace fs = std::filesystem;
namespace {

// Nodes of the text console's memory (vcs, vcsa): they open, have no ioctls of their own, and their minors tell a
// primary node (below 64) from a render node (from 128) as DRM's do.
constexpr unsigned kMajor = 7;
constexpr unsigned kFirstRender = 128;
constexpr unsigned kMostNodes = 64;
constexpr std::uint32_t kKfdGetVersion = 0x01, kKfdSmiEvents = 0x1f;

#if defined(__x86_64__)
constexpr std::uint32_t kArch = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t kArch = AUDIT_ARCH_AARCH64;
#else
constexpr std::uint32_t kArch = 0;
#endif

unsigned char type_of(std::uint32_t request) {
  return static_cast<unsigned char>(request >> 8U & 0xffU);
}

// Only ioctls of DRM ('d') and KFD ('K') are told; everything else runs at full speed.
Result<Fd> listen_to_ioctls() {
  const auto load = [](std::size_t offset) {
    return sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset));
  };
  const auto is = [](std::uint32_t value, std::uint8_t yes, std::uint8_t no) {
    return sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, yes, no);
  };
  std::array<sock_filter, 10> code = {
      {load(offsetof(seccomp_data, arch)), is(kArch, 0, 6), load(offsetof(seccomp_data, nr)), is(SYS_ioctl, 0, 4),
       load(offsetof(seccomp_data, args) + sizeof(std::uint64_t)), BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xff00),
       is('d' << 8U, 2, 0), is('K' << 8U, 1, 0), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
       BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF)}};
  const sock_fprog program{code.size(), code.data()};
  const long fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
  if (fd < 0) return fail_errno("cannot answer ioctls by seccomp user notification", errno);
  fcntl(static_cast<int>(fd), F_SETFD, FD_CLOEXEC);
  return Fd(static_cast<int>(fd));
}

// What every program expects in /dev, from the one around.
Result<void> fill_dev(const fs::path& dev) {
  if (mount("tmpfs", dev.c_str(), "tmpfs", MS_NOSUID | MS_NOEXEC, "mode=755") != 0)
    return fail_errno("cannot mount on " + dev.string(), errno);
  std::error_code error;
  for (const char* name :
       {"null", "zero", "full", "random", "urandom", "tty", "fuse", "kmsg", "pts", "mqueue", "log"}) {
    const fs::path from = fs::path("/dev") / name;
    if (!fs::exists(from, error)) continue;
    if (fs::is_directory(from, error)) {
      fs::create_directory(dev / name);
    } else {
      const Fd made(open((dev / name).c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    }
    if (mount(from.c_str(), (dev / name).c_str(), nullptr, MS_BIND | MS_REC, nullptr) != 0)
      return fail_errno("cannot mount " + from.string(), errno);
  }
  for (const auto& [name, target] :
       {std::pair{"fd", "/proc/self/fd"}, std::pair{"stdin", "/proc/self/fd/0"}, std::pair{"stdout", "/proc/self/fd/1"},
        std::pair{"stderr", "/proc/self/fd/2"}, std::pair{"ptmx", "pts/ptmx"}})
    fs::create_symlink(target, dev / name, error);
  for (const char* folder : {"shm", "dri"}) fs::create_directory(dev / folder, error);
  fs::permissions(dev / "shm", fs::perms::all | fs::perms::sticky_bit, error);
  return {};
}

// A character device that opens; 0 when this one does not.
bool make_node(const fs::path& path, unsigned minor_number) {
  unlink(path.c_str());
  if (mknod(path.c_str(), S_IFCHR | 0666, makedev(kMajor, minor_number)) != 0) return false;
  chmod(path.c_str(), 0666);
  const Fd opened(open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOCTTY));
  if (!opened) unlink(path.c_str());
  return static_cast<bool>(opened);
}

}  // namespace

struct DeviceNodes::Impl {
  fs::path dev;
  fs::path machine;
  Fd listener;
  Fd end;
  std::thread answers;

  std::mutex mutex;  // of what follows
  struct Node {
    PciAddress pci;
    unsigned minor_number = 0;
  };
  std::map<std::string, Node> nodes;  // "card0", "renderD128"
  std::map<PciAddress, Card> cards;
  UserptrPath userptr;
  std::uint32_t next_handle = 1;
  struct Events {  // one of KFD's event descriptors that were handed out
    std::uint32_t gpu_id = 0;
    Fd ours, theirs;
    std::uint64_t mask = 0;
  };
  std::vector<Events> events;
  std::vector<std::thread> pinning;

  [[nodiscard]] std::map<std::string, fs::path> drm_nodes() const;
  Result<void> add(const std::string& name, const PciAddress& pci);
  void serve();
  void answer(const seccomp_notif& call);
  void respond(std::uint64_t id, int error, bool pass_on = false) const;
  int kfd(const Caller& caller, const seccomp_notif& call);
  void start_pinning(const seccomp_notif& call);
  [[nodiscard]] bool still_waits(std::uint64_t id) const {
    return ioctl(listener.get(), SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0;
  }
};

void DeviceNodes::Impl::respond(std::uint64_t id, int error, bool pass_on) const {
  seccomp_notif_resp response{};
  response.id = id;
  response.error = -error;
  if (pass_on) response.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
  ioctl(listener.get(), SECCOMP_IOCTL_NOTIF_SEND, &response);
}

void DeviceNodes::Impl::serve() {
  for (;;) {
    std::array<pollfd, 2> fds = {{{listener.get(), POLLIN, 0}, {end.get(), POLLIN, 0}}};
    if (poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) return;
    if (fds[1].revents != 0) return;
    if ((fds[0].revents & POLLHUP) != 0) return;
    if ((fds[0].revents & POLLIN) == 0) continue;
    seccomp_notif call{};
    if (ioctl(listener.get(), SECCOMP_IOCTL_NOTIF_RECV, &call) == 0) answer(call);
  }
}

void DeviceNodes::Impl::answer(const seccomp_notif& call) {
  const Caller caller(static_cast<pid_t>(call.pid));
  const auto request = static_cast<std::uint32_t>(call.data.args[1]);
  const auto path = caller.path_of(static_cast<int>(call.data.args[0]));
  if (path == "/dev/kfd" && type_of(request) == 'K') return respond(call.id, kfd(caller, call));
  constexpr std::string_view folder = "/dev/dri/";
  // Console ioctls are of type 'K' as well.
  if (!path.starts_with(folder) || type_of(request) != 'd') return respond(call.id, 0, true);
  std::unique_lock lock(mutex);
  const auto node = nodes.find(path.substr(folder.size()));
  const auto card = node == nodes.end() ? cards.end() : cards.find(node->second.pci);
  if (card == cards.end()) return respond(call.id, ENODEV);
  if (request == DRM_IOCTL_AMDGPU_GEM_USERPTR) return start_pinning(call);
  respond(call.id, answer_drm(caller, request, call.data.args[2], {card->second, next_handle}));
}

// On a thread of its own: it may take seconds, and other calls are not to wait for it.
void DeviceNodes::Impl::start_pinning(const seccomp_notif& call) {
  const auto path = userptr;
  const auto handle = next_handle++;
  pinning.emplace_back([this, call, path, handle] {
    const Caller caller(static_cast<pid_t>(call.pid));
    drm_amdgpu_gem_userptr request{};
    if (!caller.read(call.data.args[2], &request, sizeof request) || !still_waits(call.id))
      return respond(call.id, EFAULT);
    const auto outcome = pin(caller, request.addr, request.size, request.flags, path);
    if (outcome.spin_ms > 0) {
      if (caller.spin(outcome.spin_ms / 1000, outcome.error) != Caller::Spin::NotPossible) return;
      std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(outcome.spin_ms));
    }
    if (outcome.wait_ms > 0) std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(outcome.wait_ms));
    request.handle = handle;
    const bool told = outcome.error != 0 || caller.write(call.data.args[2], &request, sizeof request);
    respond(call.id, told ? outcome.error : EFAULT);
  });
}

int DeviceNodes::Impl::kfd(const Caller& caller, const seccomp_notif& call) {
  const auto number = static_cast<std::uint32_t>(call.data.args[1]) & 0xffU;
  if (number == kKfdGetVersion) {
    const std::array<std::uint32_t, 2> version = {1, 17};
    return caller.write(call.data.args[2], version.data(), sizeof version) ? 0 : EFAULT;
  }
  if (number != kKfdSmiEvents) return EINVAL;
  std::array<std::uint32_t, 2> args{};  // gpu id, descriptor
  std::array<int, 2> ends{};
  if (!caller.read(call.data.args[2], args.data(), sizeof args)) return EFAULT;
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()) != 0) return errno;
  Events made;
  made.gpu_id = args[0];
  made.ours.reset(ends[0]);
  made.theirs.reset(ends[1]);
  seccomp_notif_addfd give{};
  give.id = call.id;
  give.srcfd = static_cast<std::uint32_t>(made.theirs.get());
  const int fd = ioctl(listener.get(), SECCOMP_IOCTL_NOTIF_ADDFD, &give);
  if (fd < 0) return errno;
  const std::scoped_lock lock(mutex);
  events.push_back(std::move(made));
  args[1] = static_cast<std::uint32_t>(fd);
  return caller.write(call.data.args[2], args.data(), sizeof args) ? 0 : EFAULT;
}

DeviceNodes::DeviceNodes(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

DeviceNodes::~DeviceNodes() {
  const std::uint64_t one = 1;
  if (impl_->answers.joinable()) {
    std::ignore = ::write(impl_->end.get(), &one, sizeof one);
    impl_->answers.join();
  }
  for (auto& thread : impl_->pinning) thread.join();
}

Result<std::unique_ptr<DeviceNodes>> DeviceNodes::set_up(const fs::path& dev, const fs::path& machine) {
  auto impl = std::make_unique<Impl>();
  impl->dev = dev;
  impl->machine = machine;
  if (auto done = fill_dev(dev); !done) return tl::unexpected<Error>(done.error());
  if (!make_node(dev / "kfd", 0))
    return fail(ErrorCode::Unavailable,
                "no device nodes can be made: root, and a kernel with text consoles, is needed");
  if (mount(dev.c_str(), "/dev", nullptr, MS_BIND | MS_REC, nullptr) != 0)
    return fail_errno("cannot mount on /dev", errno);
  impl->end.reset(eventfd(0, EFD_CLOEXEC));
  auto listener = listen_to_ioctls();
  if (!listener) return tl::unexpected<Error>(listener.error());
  impl->listener = std::move(*listener);
  std::unique_ptr<DeviceNodes> out(new DeviceNodes(std::move(impl)));
  if (auto done = out->sync(); !done) return tl::unexpected<Error>(done.error());
  out->impl_->answers = std::thread([impl = out->impl_.get()] { impl->serve(); });
  return out;
}

// The names of the machine's DRM nodes, and the function that each belongs to.
std::map<std::string, fs::path> DeviceNodes::Impl::drm_nodes() const {
  std::map<std::string, fs::path> out;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(machine / "sys/class/drm", error)) {
    const auto name = entry.path().filename().string();
    if (name.starts_with("renderD") || name.starts_with("card")) out[name] = fs::canonical(entry.path(), error);
  }
  return out;
}

Result<void> DeviceNodes::Impl::add(const std::string& name, const PciAddress& pci) {
  const unsigned first = name.starts_with("renderD") ? kFirstRender : 0;
  for (unsigned minor_number = first; minor_number < first + kMostNodes; ++minor_number) {
    const bool taken = std::ranges::any_of(nodes, [&](const auto& n) { return n.second.minor_number == minor_number; });
    if (taken || !make_node(dev / "dri" / name, minor_number)) continue;
    nodes[name] = {pci, minor_number};
    return {};
  }
  return fail(ErrorCode::Unavailable, "no character device opens as " + name);
}

Result<void> DeviceNodes::sync() {
  const fs::path sys = impl_->machine / "sys";
  std::error_code error;
  const auto wanted = impl_->drm_nodes();
  const std::scoped_lock lock(impl_->mutex);
  const auto pci_of = [](const fs::path& target) {  // …/0000:03:00.0/drm/card0
    return parse_pci_address(target.parent_path().parent_path().filename().string());
  };
  std::erase_if(impl_->nodes, [&](const auto& node) {
    const auto it = wanted.find(node.first);
    if (it != wanted.end() && pci_of(it->second) == node.second.pci) return false;
    fs::remove(impl_->dev / "dri" / node.first, error);
    return true;
  });
  fs::create_directories(sys / "dev/char", error);
  for (const auto& [name, target] : wanted) {
    const auto pci = pci_of(target);
    if (!pci) continue;
    if (!impl_->nodes.contains(name)) {
      if (auto done = impl_->add(name, *pci); !done) return done;
    }
    // How programs find the device of a node: by its number.
    const auto link =
        sys / "dev/char" / (std::to_string(kMajor) + ":" + std::to_string(impl_->nodes.at(name).minor_number));
    fs::remove(link, error);
    fs::create_symlink(fs::path("../..") / target.lexically_relative(fs::canonical(sys, error)), link, error);
    if (error) return fail_errno("cannot create " + link.string(), error.value());
  }
  return {};
}

void DeviceNodes::show(const Card& card) {
  const std::scoped_lock lock(impl_->mutex);
  impl_->cards[card.place.gpu] = card;
}

// As kfd_smi_events.c: what was not asked for is not told, and what the queue has no room for is dropped without a
// word.
void DeviceNodes::tell_kfd(std::uint32_t gpu_id, std::string_view record) {
  constexpr int kQueueBytes = 1024;
  const std::string line = std::string(record) + "\n";
  const auto id = std::strtoul(line.c_str(), nullptr, 16);
  const std::scoped_lock lock(impl_->mutex);
  for (auto& client : impl_->events) {
    std::uint64_t mask = 0;
    while (::read(client.ours.get(), &mask, sizeof mask) == sizeof mask) client.mask = mask;
    int unread = 0;
    ioctl(client.theirs.get(), FIONREAD, &unread);
    const bool wanted = id >= 1 && id <= 64 && (client.mask >> (id - 1) & 1U) != 0;
    if (client.gpu_id == gpu_id && wanted && unread + static_cast<int>(line.size()) <= kQueueBytes)
      std::ignore = ::write(client.ours.get(), line.data(), line.size());
  }
}

void DeviceNodes::set_userptr(const UserptrPath& path) {
  const std::scoped_lock lock(impl_->mutex);
  impl_->userptr = path;
}

}  // namespace gpuhealth::sim
