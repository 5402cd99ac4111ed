// SPDX-License-Identifier: Apache-2.0
// An sd-bus connection in an Asio loop: waits for its descriptor and its timeouts, and lets sd-bus work. Whoever puts a
// message into the connection calls pump() after it.
#pragma once

#include <functional>
#include <memory>

namespace boost::asio {
class io_context;
}
struct sd_bus;

namespace gpuhealth::dbus {

class Pump {
 public:
  // `refill` is asked for more to send after each turn, and says whether it sent something. `on_lost` is called once,
  // from the loop, with a negative errno; never after the destructor.
  Pump(boost::asio::io_context& io, sd_bus* bus, std::function<bool()> refill, std::function<void(int)> on_lost);
  ~Pump();
  Pump(const Pump&) = delete;
  Pump& operator=(const Pump&) = delete;

  // Does not throw, does not block; a call from inside a handler only takes note.
  void pump() noexcept;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;  // handlers of the loop hold a weak reference and outlive nobody
};

}  // namespace gpuhealth::dbus
