// SPDX-License-Identifier: Apache-2.0
// A kernel module as it is loaded: part of what "the software was" when something was measured.
#pragma once

#include <map>
#include <string>

namespace gpuhealth {

struct DriverModule {
  std::string version;                            // DKMS builds have one; empty in-tree
  std::string srcversion;                         // hash of its sources; empty when built in
  std::map<std::string, std::string> parameters;  // "runpm" -> "-1"; those that may be read
};

}  // namespace gpuhealth
