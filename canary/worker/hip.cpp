// SPDX-License-Identifier: Apache-2.0
// AMD: libamdhip64 and hiprtc of whatever ROCm is installed. Only the installed compiler knows all cards, so the
// kernels are compiled for the architecture that the runtime reports, and kept.
#include <dlfcn.h>
#include <fcntl.h>
#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <fstream>
#include <map>
#include <sstream>

#include "canary/measurement.hpp"
#include "canary/worker/driver_api.hpp"

namespace gpuhealth::canary {
namespace {

// From the loader's path, then from where AMD's packages put them; newest first.
std::vector<std::string> candidates(const std::string& stem) {
  std::vector<std::string> out;
  const std::array<const char*, 3> versions = {".so.7", ".so.6", ".so.5"};
  out.reserve(versions.size());
  for (const char* version : versions) out.push_back(stem + version);
  for (const char* pattern : {"/opt/rocm/lib/", "/opt/rocm-*/lib/", "/usr/lib64/rocm/lib/"}) {
    for (const char* version : versions) {
      glob_t found{};
      if (glob((pattern + stem + version).c_str(), 0, nullptr, &found) == 0) {
        for (std::size_t i = found.gl_pathc; i-- > 0;) out.emplace_back(found.gl_pathv[i]);
      }
      globfree(&found);
    }
  }
  return out;
}

// hipDeviceProp_t differs by release, in size and layout; gcnArchName is found by its text in either.
std::string arch_in(const std::vector<char>& properties) {
  const std::string_view all(properties.data(), properties.size());
  for (auto at = all.find("gfx"); at != std::string_view::npos; at = all.find("gfx", at + 1)) {
    std::string name(all.substr(at, 64).data());
    if (name.size() > 4 && name.size() < 64) return name;
  }
  return {};
}

struct Rtc {
  Code (*create)(Handle*, const char*, const char*, int, const char**, const char**) = nullptr;
  Code (*compile)(Handle, int, const char**) = nullptr;
  Code (*code_size)(Handle, std::size_t*) = nullptr;
  Code (*code)(Handle, char*) = nullptr;
  Code (*log_size)(Handle, std::size_t*) = nullptr;
  Code (*log)(Handle, char*) = nullptr;
  Code (*destroy)(Handle*) = nullptr;
};

template <class Function>
bool bind(void* library, Function& function, const char* name) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

bool bind_rtc(void* library, Rtc& rtc) {
  return bind(library, rtc.create, "hiprtcCreateProgram") && bind(library, rtc.compile, "hiprtcCompileProgram") &&
         bind(library, rtc.code_size, "hiprtcGetCodeSize") && bind(library, rtc.code, "hiprtcGetCode") &&
         bind(library, rtc.log_size, "hiprtcGetProgramLogSize") && bind(library, rtc.log, "hiprtcGetProgramLog") &&
         bind(library, rtc.destroy, "hiprtcDestroyProgram");
}

// hiprtc is inside libamdhip64 up to ROCm 5, and a library of its own after.
Result<Rtc> load_rtc(const Library& hip) {
  Rtc rtc;
  const auto apart = load_library(candidates("libhiprtc"));
  if (apart && bind_rtc(apart->handle, rtc)) return rtc;
  if (bind_rtc(hip.handle, rtc)) return rtc;
  return fail(ErrorCode::Unavailable,
              "no hiprtc to compile the kernels with: " + (apart ? apart->name : apart.error().text));
}

Result<std::string> compile(const Rtc& rtc, const std::string& source, const std::string& arch) {
  Handle program = nullptr;
  if (rtc.create(&program, source.c_str(), "gh.hip", 0, nullptr, nullptr) != 0)
    return fail(ErrorCode::Unavailable, "hiprtcCreateProgram failed");
  const std::string option = "--offload-arch=" + arch;
  std::array<const char*, 2> options = {option.c_str(), "-O3"};
  std::string code;
  std::size_t size = 0;
  if (rtc.compile(program, options.size(), options.data()) == 0 && rtc.code_size(program, &size) == 0) {
    code.resize(size);
    if (rtc.code(program, code.data()) != 0) code.clear();
  }
  std::string log;
  if (code.empty() && rtc.log_size(program, &size) == 0 && size < 1U << 20U) {
    log.resize(size);
    rtc.log(program, log.data());
  }
  rtc.destroy(&program);
  if (code.empty())
    return fail(ErrorCode::Unavailable, "the kernels do not compile for " + arch + ": " + log.substr(0, 2000));
  return code;
}

// $CACHE_DIRECTORY of the unit, else the user's own.
std::string cache_file(const std::map<std::string, std::string>& key) {
  const auto from = [](const char* name) { return std::string(std::getenv(name) == nullptr ? "" : std::getenv(name)); };
  std::string folder = from("CACHE_DIRECTORY");
  if (folder.empty()) {
    folder = from("XDG_CACHE_HOME");
    if (folder.empty() && !from("HOME").empty()) folder = from("HOME") + "/.cache";
    if (folder.empty()) return {};
    mkdir(folder.c_str(), 0700);
    folder += "/gpuhealth";
  }
  mkdir(folder.c_str(), 0700);
  return folder + "/canary-" + epoch_of(key) + ".co";
}

std::string read_all(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

void keep(const std::string& path, const std::string& code) {
  const std::string fresh = path + "." + std::to_string(getpid());
  std::ofstream out(fresh, std::ios::binary);
  out << code;
  out.close();
  if (!out || rename(fresh.c_str(), path.c_str()) != 0) unlink(fresh.c_str());
}

class Hip final : public Driver {
 public:
  Code (*set_device)(int) = nullptr;
  Code (*version)(int*) = nullptr;
  Code (*properties)(void*, int) = nullptr;
  Code (*attribute)(int*, int, int) = nullptr;
  Code (*pin_memory)(void**, std::size_t, unsigned) = nullptr;
  const char* (*error_name)(Code) = nullptr;
  Code (*priorities)(int*, int*) = nullptr;
  Rtc rtc;
  std::string arch;
  std::string runtime;

  Result<void> load(const Library& library);
  Code enter(int device) override { return set_device(device); }
  Code pin(void** memory, std::size_t bytes) override { return pin_memory(memory, bytes, 0); }
  std::string error_text(Code code) override {
    const char* text = error_name(code);
    return text == nullptr ? "HIP error " + std::to_string(code) : std::string(text);
  }
  int lowest_priority() override {
    int lowest = 0;
    int highest = 0;
    return priorities(&lowest, &highest) == 0 ? lowest : 0;
  }
  Result<Handle> kernels(const Facts& facts) override;
  bool build(unsigned nonce) override {
    const auto n = std::to_string(nonce);
    return compile(rtc,
                   "extern \"C\" __global__ void gh_jit_" + n +
                       "(unsigned* p) { unsigned x = p[0]; for (unsigned i = 0; i < 1000u; ++i) x = x * " + n +
                       "u + i; p[0] = x; }",
                   arch)
        .has_value();
  }
};

Result<void> Hip::load(const Library& library) {
  auto loaded = load_driver_api(library, Vendor::Hip);
  if (!loaded) return tl::unexpected(loaded.error());
  api = *loaded;
  if (!bind(library.handle, properties, "hipGetDevicePropertiesR0600") &&
      !bind(library.handle, properties, "hipGetDeviceProperties"))
    return fail(ErrorCode::Unavailable, library.name + " has no hipGetDeviceProperties");
  bind(library.handle, attribute, "hipDeviceGetAttribute");
  if (bind(library.handle, set_device, "hipSetDevice") && bind(library.handle, version, "hipRuntimeGetVersion") &&
      bind(library.handle, pin_memory, "hipHostMalloc") && bind(library.handle, error_name, "hipGetErrorName") &&
      bind(library.handle, priorities, "hipDeviceGetStreamPriorityRange"))
    return {};
  return fail(ErrorCode::Unavailable, library.name + " is too old: a function is missing");
}

Result<Handle> Hip::kernels(const Facts& facts) {
  const auto path =
      cache_file({{"arch", arch}, {"runtime", facts.runtime}, {"source", epoch_of({{"", kKernelSource}})}});
  Handle module = nullptr;
  if (const auto kept = path.empty() ? std::string() : read_all(path); !kept.empty()) {
    if (api.module_load(&module, kept.data()) == 0) return module;
    unlink(path.c_str());
  }
  auto code = compile(rtc, kKernelSource, arch);
  if (!code) return tl::unexpected(code.error());
  if (const Code failed = api.module_load(&module, code->data()); failed != 0)
    return fail(ErrorCode::Unavailable, "the runtime refuses the kernels for " + arch + ": " + error_text(failed));
  if (!path.empty()) keep(path, *code);
  return module;
}

// From the kernel's own list: the last cache of an AMD card may be the Infinity Cache, which HIP does not tell of.
constexpr std::uint64_t kLikelyInfinityCache = 128ULL << 20U;

}  // namespace

Result<std::unique_ptr<Gpu>> open_hip(const Selection& selection) {
  const auto began = std::chrono::steady_clock::now();
  auto library = load_library(candidates("libamdhip64"));
  if (!library) return fail(ErrorCode::Unavailable, "no HIP runtime: " + library.error().text);
  auto driver = std::make_unique<Hip>();
  if (auto loaded = driver->load(*library); !loaded) return tl::unexpected(loaded.error());
  // The first call may say that there is no device, and the rest work all the same; the count decides.
  driver->api.init(0);
  Facts facts;
  facts.backend = "hip";
  const auto device = choose_device(driver->api, selection, facts, "HIP");
  if (!device) return tl::unexpected(device.error());
  auto rtc = load_rtc(*library);
  if (!rtc) return tl::unexpected(rtc.error());
  driver->rtc = *rtc;
  std::vector<char> properties(65536);
  if (driver->properties(properties.data(), *device) != 0)
    return fail(ErrorCode::Unavailable, "hipGetDeviceProperties failed on " + facts.device);
  driver->arch = facts.arch = arch_in(properties);
  if (facts.arch.empty())
    return fail(ErrorCode::Unavailable, "the runtime does not say what architecture " + facts.name + " is");
  int version = 0;
  driver->version(&version);
  facts.runtime = "HIP " + std::to_string(version) + " (" + library->name + ")";
  constexpr int kMultiprocessors = 63;  // hipDeviceAttributeMultiprocessorCount of HIP 5 and newer
  int units = 0;
  if (driver->attribute != nullptr) driver->attribute(&units, kMultiprocessors, *device);
  facts.units = units > 0 && units < 4096 ? static_cast<std::uint32_t>(units) : 64;
  facts.last_cache = kLikelyInfinityCache;
  if (const Code code = driver->enter(*device); code != 0)
    return fail(ErrorCode::Unavailable, "hipSetDevice failed on " + facts.name + ": " + driver->error_text(code));
  auto gpu = make_driver_gpu(std::move(driver), std::move(facts), *device);
  if (!gpu->ok()) return fail(ErrorCode::Unavailable, gpu->error());
  gpu->facts.start_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - began).count();
  return gpu;
}

}  // namespace gpuhealth::canary
