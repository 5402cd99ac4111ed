// SPDX-License-Identifier: Apache-2.0
#include "telemetry/driver_module.hpp"

#include <filesystem>
#include <system_error>

#include "telemetry/sysfs.hpp"

namespace gpuhealth::telemetry {

std::optional<DriverModule> read_driver_module(const std::string& sysroot) {
  namespace fs = std::filesystem;
  const std::string dir = sysroot + "/sys/module/amdgpu";
  std::error_code error;
  if (!fs::is_directory(dir, error)) return std::nullopt;
  DriverModule module;
  module.version = read_text_or_empty(dir + "/version");
  module.srcversion = read_text_or_empty(dir + "/srcversion");
  for (fs::directory_iterator it(dir + "/parameters", error), end; !error && it != end; it.increment(error)) {
    if (auto value = read_text(it->path().string()))
      module.parameters[it->path().filename().string()] = std::move(*value);
  }
  return module;
}

}  // namespace gpuhealth::telemetry
