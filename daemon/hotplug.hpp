// SPDX-License-Identifier: Apache-2.0
// Tells when PCI devices or DRM cards come, go or change their driver (uevents through libudev). Bursts become one
// call.
#pragma once

#include <functional>
#include <memory>

#include "core/error.hpp"

namespace boost::asio {
class io_context;
}

namespace gpuhealth::daemon {

class Hotplug {
 public:
  // `changed` is called once things have been quiet for 300 ms, and after lost events.
  static Result<std::unique_ptr<Hotplug>> start(boost::asio::io_context& io, std::function<void()> changed);
  ~Hotplug();
  Hotplug(const Hotplug&) = delete;
  Hotplug& operator=(const Hotplug&) = delete;

 private:
  struct Impl;
  explicit Hotplug(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace gpuhealth::daemon
