// SPDX-License-Identifier: Apache-2.0
#include "daemon/folder_watch.hpp"

#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <map>
#include <set>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

namespace gpuhealth::daemon {
namespace {

using boost::asio::posix::stream_descriptor;
using boost::system::error_code;

constexpr std::uint32_t kEvents = IN_CREATE | IN_DELETE | IN_MOVED_TO | IN_MOVED_FROM | IN_CLOSE_WRITE | IN_ATTRIB |
                                  IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;

}  // namespace

struct FolderWatch::Impl : std::enable_shared_from_this<Impl> {
  Impl(boost::asio::io_context& io, std::chrono::milliseconds q, std::function<void()> c)
      : quiet(q), changed(std::move(c)), events(io), timer(io) {}

  std::chrono::milliseconds quiet;
  std::function<void()> changed;
  stream_descriptor events;
  boost::asio::steady_timer timer;
  std::map<std::string, int> watches;

  void read() {
    events.async_wait(stream_descriptor::wait_read, [weak = weak_from_this()](error_code error) {
      const auto self = weak.lock();
      if (!self || error) return;
      alignas(inotify_event) std::array<char, 16384> buffer{};
      while (::read(self->events.native_handle(), buffer.data(), buffer.size()) > 0) {
      }
      self->soon();
      self->read();
    });
  }
  void soon() {
    timer.expires_after(quiet);
    timer.async_wait([weak = weak_from_this()](error_code error) {
      const auto self = weak.lock();
      if (self && !error) self->changed();
    });
  }
};

FolderWatch::FolderWatch(boost::asio::io_context& io, std::chrono::milliseconds quiet, std::function<void()> changed)
    : impl_(std::make_shared<Impl>(io, quiet, std::move(changed))) {
  const int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  if (fd < 0) return;
  impl_->events.assign(fd);
  impl_->read();
}

FolderWatch::~FolderWatch() = default;

void FolderWatch::watch(const std::vector<std::string>& folders) {
  if (!impl_->events.is_open()) return;
  const int fd = impl_->events.native_handle();
  const std::set<std::string> wanted(folders.begin(), folders.end());
  std::erase_if(impl_->watches, [&](const auto& item) {
    if (wanted.contains(item.first)) return false;
    inotify_rm_watch(fd, item.second);
    return true;
  });
  for (const std::string& folder : wanted) {
    // The same folder again gives the same number; another one of that name a new one.
    const int number = inotify_add_watch(fd, folder.c_str(), kEvents);
    if (number >= 0) impl_->watches[folder] = number;
  }
}

}  // namespace gpuhealth::daemon
