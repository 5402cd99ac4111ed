// SPDX-License-Identifier: Apache-2.0
// NVIDIA: libcuda.so.1 alone; the kernels are PTX of an old version, which every driver compiles.
#include <dlfcn.h>

#include <array>
#include <chrono>
#include <string>

#include "canary/worker/driver_api.hpp"

namespace gpuhealth::canary {
namespace {

enum Attribute : int {
  kMultiprocessors = 16,
  kMemoryClockKhz = 36,
  kMemoryBusBits = 37,
  kL2Bytes = 38,
  kMajor = 75,
  kMinor = 76,
};

class Cuda final : public Driver {
 public:
  Code (*attribute)(int*, int, int) = nullptr;
  Code (*version)(int*) = nullptr;
  Code (*context_create)(Handle*, unsigned, int) = nullptr;
  Code (*context_current)(Handle) = nullptr;
  Code (*pin_memory)(void**, std::size_t) = nullptr;
  Code (*error_name)(Code, const char**) = nullptr;
  Code (*priorities)(int*, int*) = nullptr;
  Code (*copy_peer)(DevicePtr, Handle, DevicePtr, Handle, std::size_t) = nullptr;
  Handle context = nullptr;

  Result<void> load(const Library& library);
  Code enter(int device) override { return context_create(&context, 0, device); }
  Code pin(void** memory, std::size_t bytes) override { return pin_memory(memory, bytes); }
  std::string error_text(Code code) override {
    const char* text = nullptr;
    if (error_name(code, &text) != 0 || text == nullptr) return "CUDA error " + std::to_string(code);
    return text;
  }
  int lowest_priority() override {
    int lowest = 0;
    int highest = 0;
    return priorities(&lowest, &highest) == 0 ? lowest : 0;
  }
  Result<Handle> kernels(const Facts& /*facts*/) override {
    Handle module = nullptr;
    if (const Code code = api.module_load(&module, kKernelPtx); code != 0)
      return fail(ErrorCode::Unavailable, "the driver refuses the kernels (PTX 6.0): " + error_text(code));
    return module;
  }
  bool build(unsigned nonce) override;
  Handle mma() override;
  std::optional<double> peer_copy(int device, std::size_t bytes) override;
};

Result<void> Cuda::load(const Library& library) {
  auto loaded = load_driver_api(library, Vendor::Cuda);
  if (!loaded) return tl::unexpected(loaded.error());
  api = *loaded;
  const auto bind = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library.handle, name));
    return function != nullptr;
  };
  bind(copy_peer, "cuMemcpyPeer");
  if (bind(attribute, "cuDeviceGetAttribute") && bind(version, "cuDriverGetVersion") &&
      bind(context_create, "cuCtxCreate_v2") && bind(context_current, "cuCtxSetCurrent") &&
      bind(pin_memory, "cuMemAllocHost_v2") && bind(error_name, "cuGetErrorName") &&
      bind(priorities, "cuCtxGetStreamPriorityRange"))
    return {};
  return fail(ErrorCode::Unavailable, library.name + " is too old: a function of the driver API is missing");
}

bool Cuda::build(unsigned nonce) {
  const auto n = std::to_string(nonce);
  // A constant that no cache has seen; a loop, so that there is something to compile.
  const std::string ptx =
      ".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry gh_jit_" + n +
      "(.param .u64 p) {\n.reg .u64 %a;\n.reg .u32 %x, %i;\n.reg .pred %q;\nld.param.u64 %a, [p];\ncvta.to.global.u64 "
      "%a, %a;\n"
      "ld.global.u32 %x, [%a];\nmov.u32 %i, 0;\nAGAIN:\nmad.lo.u32 %x, %x, " +
      n + ", %i;\nadd.u32 %i, %i, 1;\nsetp.lt.u32 %q, %i, 1000;\n@%q bra AGAIN;\nst.global.u32 [%a], %x;\nret;\n}\n";
  Handle module = nullptr;
  if (api.module_load(&module, ptx.c_str()) != 0) return false;
  api.module_unload(module);
  return true;
}

Handle Cuda::mma() {
  Handle module = nullptr;
  Handle function = nullptr;
  if (api.module_load(&module, kMmaPtx) != 0) return nullptr;  // older than sm_80
  return api.module_function(&function, module, "gh_mma") == 0 ? function : nullptr;
}

std::optional<double> Cuda::peer_copy(int device, std::size_t bytes) {
  int count = 0;
  if (copy_peer == nullptr || api.device_count(&count) != 0 || count < 2) return std::nullopt;
  Handle other = nullptr;
  DevicePtr here = 0;
  DevicePtr there = 0;
  double best = 0;
  if (context_create(&other, 0, (device + 1) % count) != 0) return std::nullopt;
  const bool made =
      api.allocate(&there, bytes) == 0 && context_current(context) == 0 && api.allocate(&here, bytes) == 0;
  for (int i = 0; made && i < 5; ++i) {
    const auto began = std::chrono::steady_clock::now();
    if (copy_peer(there, other, here, context, bytes) != 0) break;
    const double s = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    if (i > 0) best = std::max(best, static_cast<double>(bytes) / s / 1e9);
  }
  if (here != 0) api.release(here);
  if (there != 0) api.release(there);
  context_current(context);
  return best > 0 ? std::optional(best) : std::nullopt;
}

}  // namespace

Result<std::unique_ptr<Gpu>> open_cuda(const Selection& selection) {
  const auto began = std::chrono::steady_clock::now();
  auto library = load_library({"libcuda.so.1"});
  if (!library) return fail(ErrorCode::Unavailable, "no NVIDIA driver library: " + library.error().text);
  auto driver = std::make_unique<Cuda>();
  if (auto loaded = driver->load(*library); !loaded) return tl::unexpected(loaded.error());
  if (const Code code = driver->api.init(0); code != 0)
    return fail(ErrorCode::NotFound, "no device: cuInit says " + driver->error_text(code));
  Facts facts;
  facts.backend = "cuda";
  const auto device = choose_device(driver->api, selection, facts, "CUDA");
  if (!device) return tl::unexpected(device.error());
  const auto number = [&](int what) {
    int value = 0;
    return driver->attribute(&value, what, *device) == 0 ? value : 0;
  };
  facts.units = static_cast<std::uint32_t>(std::max(1, number(kMultiprocessors)));
  facts.last_cache = static_cast<std::uint64_t>(std::max(0, number(kL2Bytes)));
  // Two transfers a clock.
  facts.memory_gb_s = 2.0 * number(kMemoryClockKhz) * 1e3 * number(kMemoryBusBits) / 8 / 1e9;
  facts.arch = "sm_" + std::to_string(number(kMajor)) + std::to_string(number(kMinor));
  int version = 0;
  driver->version(&version);
  facts.runtime = "CUDA " + std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
  if (const Code code = driver->enter(*device); code != 0)
    return fail(ErrorCode::Unavailable, "no context on " + facts.name + ": " + driver->error_text(code));
  auto gpu = make_driver_gpu(std::move(driver), std::move(facts), *device);
  if (!gpu->ok()) return fail(ErrorCode::Unavailable, gpu->error());
  gpu->facts.start_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - began).count();
  return gpu;
}

}  // namespace gpuhealth::canary
