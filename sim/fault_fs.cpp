// SPDX-License-Identifier: Apache-2.0
#define FUSE_USE_VERSION 312
#include "sim/fault_fs.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <fuse_lowlevel.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <deque>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <tuple>

#include "core/fd.hpp"

namespace gpuhealth::sim {
namespace {

using Steady = std::chrono::steady_clock;

constexpr double kRemembered = 0.05;  // seconds that the kernel may believe a path that has gone

struct Rule {
  int number = 0;
  std::string pattern;
  Fault fault;
};

// A read that waits. `due` empty: until its rule goes.
struct Held {
  fuse_req_t request{};
  std::string path;
  std::size_t size = 0;
  off_t offset = 0;
  int rule = 0;
  std::optional<Steady::time_point> due;
};

}  // namespace

struct FaultFs::Impl {
  std::filesystem::path backing;
  std::filesystem::path mount_point;
  Fd root;
  Fd stop;  // an eventfd: the server's thread is to end
  fuse_session* session = nullptr;
  std::thread server;

  mutable std::mutex mutex;
  std::mutex writes;                         // around a write to the folder; never taken while `mutex` is held
  std::deque<std::string> paths{"", ""};     // by inode number; 1 is the root
  std::map<std::string, fuse_ino_t> inodes;  // a path keeps its number
  std::list<Rule> rules;
  std::list<Held> waiting;
  std::vector<AccessKind> remembered{AccessKind::Open, AccessKind::Read, AccessKind::Write};
  std::vector<Access> log;
  int last_rule = 0;

  ~Impl();
  static Impl& of(fuse_req_t request) { return *static_cast<Impl*>(fuse_req_userdata(request)); }

  std::string path_of(fuse_ino_t inode) const;
  fuse_ino_t inode_of(const std::string& path);
  std::optional<Rule> rule_for(const std::string& path, std::initializer_list<Fault::Kind> kinds) const;
  void note(AccessKind kind, std::string path);
  bool attributes(const std::string& path, fuse_ino_t inode, struct stat& out) const;
  void answer_read(fuse_req_t request, const std::string& path, std::size_t size, off_t offset) const;
  void read(fuse_req_t request, fuse_ino_t inode, std::size_t size, off_t offset);
  void write(fuse_req_t request, fuse_ino_t inode, std::string_view bytes);
  void open(fuse_req_t request, fuse_ino_t inode, fuse_file_info* info);
  void list(fuse_req_t request, fuse_ino_t inode, std::size_t size, off_t offset) const;
  void let_go(const auto& whether);
  void serve() const;
};

namespace {

const char* relative(const std::string& path) {
  return path.empty() ? "." : path.c_str();
}

// A driver that hangs does not look at signals.
void ignore_interrupt(fuse_req_t /*request*/, void* /*data*/) {}

void on_lookup(fuse_req_t request, fuse_ino_t parent, const char* name) {
  auto& fs = FaultFs::Impl::of(request);
  const std::string folder = fs.path_of(parent);
  const std::string path = folder.empty() ? std::string(name) : folder + "/" + name;
  fuse_entry_param entry{};
  entry.entry_timeout = kRemembered;  // opening sixty files walks the same folders sixty times
  entry.attr_timeout = kRemembered;
  entry.ino = fs.inode_of(path);
  if (!fs.attributes(path, entry.ino, entry.attr)) {
    fuse_reply_err(request, ENOENT);
    return;
  }
  fuse_reply_entry(request, &entry);
}

void on_getattr(fuse_req_t request, fuse_ino_t inode, fuse_file_info* /*info*/) {
  auto& fs = FaultFs::Impl::of(request);
  struct stat attributes{};
  if (!fs.attributes(fs.path_of(inode), inode, attributes)) {
    fuse_reply_err(request, ENOENT);
    return;
  }
  fuse_reply_attr(request, &attributes, 0);
}

// O_TRUNC asks for it; a sysfs file has no length to change.
void on_setattr(fuse_req_t request, fuse_ino_t inode, struct stat* /*wanted*/, int /*which*/, fuse_file_info* info) {
  on_getattr(request, inode, info);
}

void on_readlink(fuse_req_t request, fuse_ino_t inode) {
  auto& fs = FaultFs::Impl::of(request);
  std::array<char, 4096> target{};
  const ssize_t size = readlinkat(fs.root.get(), relative(fs.path_of(inode)), target.data(), target.size() - 1);
  if (size < 0) {
    fuse_reply_err(request, errno);
    return;
  }
  fuse_reply_readlink(request, target.data());
}

void on_open(fuse_req_t request, fuse_ino_t inode, fuse_file_info* info) {
  FaultFs::Impl::of(request).open(request, inode, info);
}

void on_read(fuse_req_t request, fuse_ino_t inode, std::size_t size, off_t offset, fuse_file_info* /*info*/) {
  FaultFs::Impl::of(request).read(request, inode, size, offset);
}

void on_write(fuse_req_t request, fuse_ino_t inode, const char* bytes, std::size_t size, off_t /*offset*/,
              fuse_file_info* /*info*/) {
  FaultFs::Impl::of(request).write(request, inode, {bytes, size});
}

void on_readdir(fuse_req_t request, fuse_ino_t inode, std::size_t size, off_t offset, fuse_file_info* /*info*/) {
  FaultFs::Impl::of(request).list(request, inode, size, offset);
}

constexpr fuse_lowlevel_ops operations() {
  fuse_lowlevel_ops ops{};
  ops.lookup = on_lookup;
  ops.getattr = on_getattr;
  ops.setattr = on_setattr;
  ops.readlink = on_readlink;
  ops.open = on_open;
  ops.read = on_read;
  ops.write = on_write;
  ops.readdir = on_readdir;
  return ops;
}
constexpr fuse_lowlevel_ops kOperations = operations();

}  // namespace

std::string FaultFs::Impl::path_of(fuse_ino_t inode) const {
  const std::lock_guard lock(mutex);
  return inode < paths.size() ? paths[inode] : std::string();
}

fuse_ino_t FaultFs::Impl::inode_of(const std::string& path) {
  const std::lock_guard lock(mutex);
  const auto [it, fresh] = inodes.emplace(path, paths.size());
  if (fresh) paths.push_back(path);
  return it->second;
}

// The caller holds the mutex.
std::optional<Rule> FaultFs::Impl::rule_for(const std::string& path, std::initializer_list<Fault::Kind> kinds) const {
  for (auto it = rules.rbegin(); it != rules.rend(); ++it) {
    if (std::ranges::find(kinds, it->fault.kind) != kinds.end() && fnmatch(it->pattern.c_str(), path.c_str(), 0) == 0)
      return *it;
  }
  return std::nullopt;
}

void FaultFs::Impl::note(AccessKind kind, std::string path) {
  if (std::ranges::find(remembered, kind) != remembered.end()) log.push_back({Steady::now(), kind, std::move(path)});
}

bool FaultFs::Impl::attributes(const std::string& path, fuse_ino_t inode, struct stat& out) const {
  if (fstatat(root.get(), relative(path), &out, AT_SYMLINK_NOFOLLOW) != 0) return false;
  out.st_ino = inode;
  if (S_ISREG(out.st_mode)) out.st_size = 4096;  // sysfs knows no lengths
  return true;
}

void FaultFs::Impl::answer_read(fuse_req_t request, const std::string& path, std::size_t size, off_t offset) const {
  const Fd file(openat(root.get(), relative(path), O_RDONLY | O_CLOEXEC));
  if (!file) {
    fuse_reply_err(request, ENODEV);  // open when its device left
    return;
  }
  std::vector<char> bytes(size);
  const ssize_t got = pread(file.get(), bytes.data(), size, offset);
  if (got < 0) {
    fuse_reply_err(request, errno);
    return;
  }
  fuse_reply_buf(request, bytes.data(), static_cast<std::size_t>(got));
}

void FaultFs::Impl::open(fuse_req_t request, fuse_ino_t inode, fuse_file_info* info) {
  const std::string path = path_of(inode);
  std::optional<Rule> rule;
  {
    const std::lock_guard lock(mutex);
    note(AccessKind::Open, path);
    rule = rule_for(path, {Fault::Kind::OpenError});
  }
  if (rule) {
    fuse_reply_err(request, rule->fault.value);
    return;
  }
  info->direct_io = 1;
  fuse_reply_open(request, info);
}

void FaultFs::Impl::read(fuse_req_t request, fuse_ino_t inode, std::size_t size, off_t offset) {
  const std::string path = path_of(inode);
  std::optional<Rule> rule;
  {
    const std::lock_guard lock(mutex);
    note(AccessKind::Read, path);
    rule = rule_for(path, {Fault::Kind::ReadError, Fault::Kind::Delay, Fault::Kind::Hang, Fault::Kind::Short});
    if (rule && (rule->fault.kind == Fault::Kind::Delay || rule->fault.kind == Fault::Kind::Hang)) {
      std::optional<Steady::time_point> due;
      if (rule->fault.kind == Fault::Kind::Delay) due = Steady::now() + std::chrono::milliseconds(rule->fault.value);
      waiting.push_back({request, path, size, offset, rule->number, due});
      fuse_req_interrupt_func(request, ignore_interrupt, nullptr);
      return;
    }
  }
  if (!rule) return answer_read(request, path, size, offset);
  if (rule->fault.kind == Fault::Kind::ReadError) {
    fuse_reply_err(request, rule->fault.value);
    return;
  }
  const auto most = static_cast<off_t>(rule->fault.value);
  if (offset >= most) {
    fuse_reply_buf(request, nullptr, 0);
    return;
  }
  answer_read(request, path, std::min(size, static_cast<std::size_t>(most - offset)), offset);
}

void FaultFs::Impl::write(fuse_req_t request, fuse_ino_t inode, std::string_view bytes) {
  const std::string path = path_of(inode);
  std::optional<Rule> rule;
  {
    const std::lock_guard lock(mutex);
    note(AccessKind::Write, path);
    rule = rule_for(path, {Fault::Kind::WriteError});
  }
  if (rule) {
    fuse_reply_err(request, rule->fault.value);
    return;
  }
  const std::lock_guard alone(writes);
  const Fd file(openat(root.get(), relative(path), O_WRONLY | O_TRUNC | O_CLOEXEC));
  if (!file || ::write(file.get(), bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) {
    fuse_reply_err(request, file ? EIO : ENODEV);
    return;
  }
  fuse_reply_write(request, bytes.size());
}

void FaultFs::Impl::list(fuse_req_t request, fuse_ino_t inode, std::size_t size, off_t offset) const {
  Fd folder(openat(root.get(), relative(path_of(inode)), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  DIR* dir = folder ? fdopendir(folder.get()) : nullptr;
  if (dir == nullptr) {
    fuse_reply_err(request, errno);
    return;
  }
  static_cast<void>(folder.release());
  std::vector<char> bytes(size);
  std::size_t used = 0;
  off_t place = 0;
  while (const dirent* entry = readdir(dir)) {
    if (++place <= offset) continue;
    struct stat attributes{};
    attributes.st_ino = entry->d_ino;
    attributes.st_mode = DTTOIF(entry->d_type);
    const std::size_t needed =
        fuse_add_direntry(request, bytes.data() + used, size - used, entry->d_name, &attributes, place);
    if (needed > size - used) break;
    used += needed;
  }
  closedir(dir);
  fuse_reply_buf(request, bytes.data(), used);
}

// Answers those that wait and for which `whether` holds.
void FaultFs::Impl::let_go(const auto& whether) {
  std::list<Held> free;
  {
    const std::lock_guard lock(mutex);
    for (auto it = waiting.begin(); it != waiting.end();) {
      const auto here = it++;
      if (whether(*here)) free.splice(free.end(), waiting, here);
    }
  }
  for (const Held& held : free) answer_read(held.request, held.path, held.size, held.offset);
}

// Not libfuse's own loop: that one ends only once every mount of it is gone.
void FaultFs::Impl::serve() const {
  fuse_buf buffer{};
  std::array<pollfd, 2> wait = {{{fuse_session_fd(session), POLLIN, 0}, {stop.get(), POLLIN, 0}}};
  while (fuse_session_exited(session) == 0) {
    if (poll(wait.data(), wait.size(), -1) < 0 && errno != EINTR) break;
    if (wait[1].revents != 0) break;
    const int got = fuse_session_receive_buf(session, &buffer);
    if (got == -EINTR || got == -EAGAIN) continue;
    if (got <= 0) break;
    fuse_session_process_buf(session, &buffer);
  }
  std::free(buffer.mem);
}

FaultFs::Impl::~Impl() {
  if (session == nullptr) return;
  let_go([](const Held&) { return true; });
  const std::uint64_t one = 1;
  std::ignore = ::write(stop.get(), &one, sizeof one);
  if (server.joinable()) server.join();
  fuse_session_unmount(session);
  fuse_session_destroy(session);
}

Result<std::unique_ptr<FaultFs>> FaultFs::mount(const std::filesystem::path& backing,
                                                const std::filesystem::path& mount_point) {
  auto impl = std::make_unique<Impl>();
  impl->backing = backing;
  impl->mount_point = mount_point;
  impl->root = Fd(::open(backing.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!impl->root) return fail_errno("cannot open " + backing.string(), errno);
  std::array<std::string, 3> words = {"gpuhealth-sim", "-o", "fsname=sysfs,subtype=simulated,allow_other"};
  std::array<char*, 3> argv = {words[0].data(), words[1].data(), words[2].data()};
  fuse_args arguments = FUSE_ARGS_INIT(static_cast<int>(argv.size()), argv.data());
  impl->session = fuse_session_new(&arguments, &kOperations, sizeof kOperations, impl.get());
  fuse_opt_free_args(&arguments);
  if (impl->session == nullptr) return fail(ErrorCode::Internal, "cannot use libfuse");
  if (fuse_session_mount(impl->session, mount_point.c_str()) != 0) {
    fuse_session_destroy(impl->session);
    impl->session = nullptr;
    return fail(ErrorCode::Unavailable, "cannot mount a FUSE file system: this needs root and /dev/fuse");
  }
  impl->stop = Fd(eventfd(0, EFD_CLOEXEC));
  impl->server = std::thread([served = impl.get()] { served->serve(); });
  return std::unique_ptr<FaultFs>(new FaultFs(std::move(impl)));
}

FaultFs::FaultFs(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
FaultFs::~FaultFs() = default;

std::unique_lock<std::mutex> FaultFs::hold_writes() {
  return std::unique_lock(impl_->writes);
}

int FaultFs::add(std::string pattern, Fault fault) {
  const std::lock_guard lock(impl_->mutex);
  impl_->rules.push_back({++impl_->last_rule, std::move(pattern), fault});
  return impl_->last_rule;
}

void FaultFs::remove(int number) {
  {
    const std::lock_guard lock(impl_->mutex);
    std::erase_if(impl_->rules, [&](const Rule& rule) { return rule.number == number; });
  }
  impl_->let_go([&](const Held& held) { return held.rule == number; });
}

void FaultFs::tick() {
  const auto now = Steady::now();
  impl_->let_go([&](const Held& held) { return held.due && *held.due <= now; });
}

void FaultFs::remember(std::vector<AccessKind> kinds) {
  const std::lock_guard lock(impl_->mutex);
  impl_->remembered = std::move(kinds);
}

std::vector<Access> FaultFs::accesses() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->log;
}

std::size_t FaultFs::held() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->waiting.size();
}

}  // namespace gpuhealth::sim
