// SPDX-License-Identifier: Apache-2.0
#include "core/boot_id.hpp"

#include <cerrno>
#include <fstream>

namespace gpuhealth {

Result<std::string> read_boot_id(const std::string& root) {
  const std::string path = root + "/proc/sys/kernel/random/boot_id";
  std::ifstream file(path);
  if (!file) return fail_errno("cannot read " + path, errno);
  std::string id;
  std::getline(file, id);
  if (id.size() != 36)
    return fail(ErrorCode::InvalidInput, path + ": expected a 36-character boot id, found \"" + id + "\"");
  return id;
}

}  // namespace gpuhealth
