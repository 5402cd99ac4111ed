// SPDX-License-Identifier: Apache-2.0
#include "telemetry/nvml_session.hpp"

#include <dlfcn.h>

#include <array>
#include <cstdio>

namespace gpuhealth::telemetry::nvml {

Session::~Session() {
  close();
  // Not unloaded: the library keeps threads and handlers of its own.
}

Result<void> Session::open() {
  if (open_) return {};
  if (loaded_ == nullptr) {
    loaded_ = dlopen(library_.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (loaded_ == nullptr) return fail(ErrorCode::Unavailable, library_ + " cannot be loaded: " + dlerror());
#define GPUHEALTH_NVML_LOOK_UP(member, name, ...) \
  api_.member = reinterpret_cast<decltype(api_.member)>(dlsym(loaded_, name));
    GPUHEALTH_NVML_FUNCTIONS(GPUHEALTH_NVML_LOOK_UP)
#undef GPUHEALTH_NVML_LOOK_UP
  }
  if (api_.init == nullptr || api_.handle == nullptr)
    return fail(ErrorCode::Unavailable, library_ + " has no nvmlInit_v2; it is too old or no NVML");
  const int code = api_.init();
  if (code != kSuccess) return fail(ErrorCode::Unavailable, library_ + ": nvmlInit_v2: " + words(code));
  open_ = true;
  return {};
}

void Session::close() {
  handles_.clear();
  if (open_ && api_.shutdown != nullptr) api_.shutdown();
  open_ = false;
}

Return Session::handle(const PciAddress& gpu, Device& out) {
  const auto kept = handles_.find(gpu);
  if (kept != handles_.end()) {
    out = kept->second;
    return kSuccess;
  }
  // NVML's own form, with eight digits of domain.
  std::array<char, 32> name{};
  std::snprintf(name.data(), name.size(), "%08x:%02x:%02x.%x", gpu.domain, gpu.bus, gpu.device, gpu.function);
  const auto code = static_cast<Return>(api_.handle(name.data(), &out));
  if (code == kSuccess) handles_[gpu] = out;
  return code;
}

std::string Session::words(int code) const {
  const char* text = api_.error_string != nullptr ? api_.error_string(code) : nullptr;
  return text != nullptr ? std::string(text) : "code " + std::to_string(code);
}

}  // namespace gpuhealth::telemetry::nvml
