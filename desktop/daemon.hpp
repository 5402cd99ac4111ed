// SPDX-License-Identifier: Apache-2.0
// The daemon on the system bus, from threads of their own: one looks, one a request waits for polkit's dialogue. What
// they have to say waits in a mailbox.
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "core/fd.hpp"
#include "desktop/notices.hpp"

namespace gpuhealth::desktop {

// Work for the main thread; fd() is readable while there is any.
class Mailbox {
 public:
  Mailbox();
  void post(std::function<void()> work);
  void run();  // all that is there
  [[nodiscard]] int fd() const { return fd_.get(); }

 private:
  Fd fd_;
  std::mutex mutex_;
  std::vector<std::function<void()>> waiting_;
};

// Never returns. `seen` gets each answer after a signal, and nothing when the daemon is gone; it is called in this
// thread.
void look_for_ever(const std::string& bus, const std::function<void(std::optional<dbus::Snapshot>)>& seen);

// What the wish asks of the daemon: two minutes at most, for a password.
Result<void> ask(const std::string& bus, const Wish& wish);

}  // namespace gpuhealth::desktop
