// SPDX-License-Identifier: Apache-2.0
// The simulated machine's /dev: its own folder with dri/card*, dri/renderD* and kfd, whose ioctls are answered here by
// seccomp user notification. Programs need not be prepared in any way. Only inside run_isolated(), as root.
#pragma once

#include <filesystem>
#include <memory>
#include <string_view>

#include "core/error.hpp"
#include "sim/card.hpp"
#include "sim/userptr.hpp"

namespace gpuhealth::sim {

class DeviceNodes {
 public:
  // `dev`: an empty folder that becomes /dev. `machine`: where the simulated /sys is written. From now on ioctls of
  // this thread and of what it starts go through here.
  static Result<std::unique_ptr<DeviceNodes>> set_up(const std::filesystem::path& dev,
                                                     const std::filesystem::path& machine);
  ~DeviceNodes();
  DeviceNodes(const DeviceNodes&) = delete;
  DeviceNodes& operator=(const DeviceNodes&) = delete;

  // Nodes as /sys/class/drm of the machine has them: after each change of what is plugged in.
  Result<void> sync();
  void show(const Card& card);  // what its ioctls say from now on
  void set_userptr(const UserptrPath& path);
  // A record of the compute driver's events, as "3 1 job hang", to all who asked for those of this GPU.
  void tell_kfd(std::uint32_t gpu_id, std::string_view record);

 private:
  struct Impl;
  explicit DeviceNodes(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace gpuhealth::sim
