// SPDX-License-Identifier: Apache-2.0
// What other programs of the simulated machine would say: logind before and after a sleep, polkit when it is asked,
// udev of devices. Only inside run_isolated().
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "core/error.hpp"

namespace gpuhealth::sim {

enum class Polkit : std::uint8_t { Absent, Allows, Refuses };

class Announcer {
 public:
  // On the bus as org.freedesktop.login1, and as org.freedesktop.PolicyKit1 unless that is absent.
  static Result<std::unique_ptr<Announcer>> start(const std::string& bus_address, Polkit polkit);
  ~Announcer();
  Announcer(const Announcer&) = delete;
  Announcer& operator=(const Announcer&) = delete;

  void tick();  // answers what was asked
  Result<void> prepare_for_sleep(bool sleeping);

 private:
  struct Impl;
  explicit Announcer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

struct Uevent {
  std::string action = "change";
  std::string subsystem = "drm";
  std::map<std::string, std::string> properties;
};
// As udevd multicasts it; `path`: "/devices/pci0000:00/…".
Result<void> send_uevent(const Uevent& event, const std::string& path);

}  // namespace gpuhealth::sim
