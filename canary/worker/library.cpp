// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>

#include "canary/worker/gpu.hpp"

namespace gpuhealth::canary {

Result<Library> load_library(const std::vector<std::string>& names) {
  std::string tried;
  for (const auto& name : names) {
    if (void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) return Library{handle, name};
    const char* why = dlerror();
    tried += (tried.empty() ? "" : "; ") + std::string(why == nullptr ? name : why);
  }
  return fail(ErrorCode::Unavailable, tried);
}

}  // namespace gpuhealth::canary
