// SPDX-License-Identifier: Apache-2.0
// Tells when PCI devices or DRM cards come, go or change their driver (uevents through libudev). Bursts become one
// call. Also what drivers announce of a GPU that hangs: drm's WEDGED and device core dumps.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "core/error.hpp"

namespace boost::asio {
class io_context;
}

namespace gpuhealth::daemon {

// A uevent that a driver sends when it recovers a GPU, or gives it up.
struct Notice {
  enum class Kind : std::uint8_t { Wedged, Coredump };
  Kind kind{};
  std::string device;   // PCI address as sysfs writes it; empty when its path has none
  std::string methods;  // WEDGED: "none" (recovered), else what brings it back: "rebind,bus-reset", "vendor-specific"
  std::string task;     // WEDGED: the program that hung it, where the kernel says so
  std::uint32_t pid = 0;
};
// "none" -> "it was reset and works again", "rebind" -> "…": what an item of WEDGED means (drm_drv.c, since
// Linux 6.15).
std::string meaning_of_wedged(std::string_view methods);

class Hotplug {
 public:
  // `changed` is called once things have been quiet for 300 ms, and after lost events.
  static Result<std::unique_ptr<Hotplug>> start(boost::asio::io_context& io, std::function<void()> changed,
                                                std::function<void(const Notice&)> noticed = {});
  ~Hotplug();
  Hotplug(const Hotplug&) = delete;
  Hotplug& operator=(const Hotplug&) = delete;

 private:
  struct Impl;
  explicit Hotplug(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace gpuhealth::daemon
