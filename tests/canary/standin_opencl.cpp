// SPDX-License-Identifier: Apache-2.0
// A stand-in libOpenCL.so.1 for tests: forwards to the real loader, and does wrong what the file "orders" beside it
// says: wrong-bit, slow FACTOR, hang, abort, heap, serialize, stall. Simulated: no driver of a real GPU is involved.
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>

#include "canary/worker/opencl_api.hpp"

namespace cl = gpuhealth::canary::cl;
namespace {

struct Orders {
  std::string what;
  double factor = 1;
};

const Orders& orders() {
  static const Orders known = [] {
    Orders o;
    Dl_info self{};
    dladdr(reinterpret_cast<void*>(&orders), &self);
    std::string folder = self.dli_fname == nullptr ? "" : self.dli_fname;
    folder.erase(folder.rfind('/') + 1);
    std::ifstream in(folder + "orders");
    in >> o.what >> o.factor;
    return o;
  }();
  return known;
}

void* real(const char* name) {
  static void* library = [] {
    for (const char* path : {"/usr/lib/x86_64-linux-gnu/libOpenCL.so.1", "/usr/lib64/libOpenCL.so.1",
                             "/usr/lib/aarch64-linux-gnu/libOpenCL.so.1"}) {
      if (void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL)) return handle;
    }
    return static_cast<void*>(nullptr);
  }();
  void* function = library == nullptr ? nullptr : dlsym(library, name);
  if (function == nullptr) std::_Exit(99);
  return function;
}

template <class Function>
Function* forward(Function*, const char* name) {
  return reinterpret_cast<Function*>(real(name));
}

// Kernel time, as the spinning kernel of the real fault uses it.
void spin_in_kernel(double seconds) {
  const int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
  static char buffer[1 << 20];
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (std::chrono::steady_clock::now() < until) {
    if (read(zero, buffer, sizeof buffer) <= 0) break;
  }
  close(zero);
}

bool mapped_writable(std::uintptr_t address) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    unsigned long first = 0;
    unsigned long last = 0;
    char access[8] = {};
    if (std::sscanf(line.c_str(), "%lx-%lx %7s", &first, &last, access) == 3 && address >= first && address < last)
      return access[1] == 'w';
  }
  return false;
}

// The state in which the real fault shows: writable, private, and the page is still the file's.
bool stalls(const void* memory) {
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  std::uint64_t entry = 0;
  const int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  const bool read_it = pread(pagemap, &entry, sizeof entry, static_cast<off_t>(address / 4096 * 8)) == sizeof entry;
  close(pagemap);
  return read_it && (entry >> 61U & 1U) != 0 && mapped_writable(address);
}

int launches = 0;

}  // namespace

extern "C" {

#define FORWARD(result, name, parameters, arguments)              \
  __attribute__((visibility("default"))) result name parameters { \
    return forward<result parameters>(nullptr, #name) arguments;  \
  }

FORWARD(cl::Int, clGetPlatformIDs, (cl::UInt a, cl::Platform* b, cl::UInt* c), (a, b, c))
FORWARD(cl::Int, clGetPlatformInfo, (cl::Platform a, cl::UInt b, std::size_t c, void* d, std::size_t* e),
        (a, b, c, d, e))
FORWARD(cl::Int, clGetDeviceIDs, (cl::Platform a, cl::ULong b, cl::UInt c, cl::Device* d, cl::UInt* e), (a, b, c, d, e))
FORWARD(cl::Int, clGetDeviceInfo, (cl::Device a, cl::UInt b, std::size_t c, void* d, std::size_t* e), (a, b, c, d, e))
FORWARD(cl::Context, clCreateContext,
        (const std::intptr_t* a, cl::UInt b, const cl::Device* c, void* d, void* e, cl::Int* f), (a, b, c, d, e, f))
FORWARD(cl::Queue, clCreateCommandQueue, (cl::Context a, cl::Device b, cl::ULong c, cl::Int* d), (a, b, c, d))
FORWARD(cl::Program, clCreateProgramWithSource,
        (cl::Context a, cl::UInt b, const char** c, const std::size_t* d, cl::Int* e), (a, b, c, d, e))
FORWARD(cl::Int, clBuildProgram, (cl::Program a, cl::UInt b, const cl::Device* c, const char* d, void* e, void* f),
        (a, b, c, d, e, f))
FORWARD(cl::Int, clGetProgramBuildInfo,
        (cl::Program a, cl::Device b, cl::UInt c, std::size_t d, void* e, std::size_t* f), (a, b, c, d, e, f))
FORWARD(cl::KernelId, clCreateKernel, (cl::Program a, const char* b, cl::Int* c), (a, b, c))
FORWARD(cl::Int, clSetKernelArg, (cl::KernelId a, cl::UInt b, std::size_t c, const void* d), (a, b, c, d))
FORWARD(cl::Mem, clCreateBuffer, (cl::Context a, cl::ULong b, std::size_t c, void* d, cl::Int* e), (a, b, c, d, e))
FORWARD(void*, clEnqueueMapBuffer,
        (cl::Queue a, cl::Mem b, cl::UInt c, cl::ULong d, std::size_t e, std::size_t f, cl::UInt g,
         const cl::EventId* h, cl::EventId* i, cl::Int* j),
        (a, b, c, d, e, f, g, h, i, j))
FORWARD(cl::Int, clEnqueueUnmapMemObject,
        (cl::Queue a, cl::Mem b, void* c, cl::UInt d, const cl::EventId* e, cl::EventId* f), (a, b, c, d, e, f))
FORWARD(cl::Int, clFlush, (cl::Queue a), (a))
FORWARD(cl::Int, clFinish, (cl::Queue a), (a))
FORWARD(cl::Int, clReleaseEvent, (cl::EventId a), (a))
FORWARD(cl::Int, clReleaseMemObject, (cl::Mem a), (a))
FORWARD(cl::Int, clReleaseKernel, (cl::KernelId a), (a))
FORWARD(cl::Int, clReleaseProgram, (cl::Program a), (a))
FORWARD(cl::Int, clReleaseCommandQueue, (cl::Queue a), (a))
FORWARD(cl::Int, clReleaseContext, (cl::Context a), (a))

__attribute__((visibility("default"))) cl::Int clEnqueueWriteBuffer(cl::Queue a, cl::Mem b, cl::UInt c, std::size_t d,
                                                                    std::size_t e, const void* f, cl::UInt g,
                                                                    const cl::EventId* h, cl::EventId* i) {
  if (orders().what == "stall" && c != 0 && stalls(f)) spin_in_kernel(1.002 * static_cast<double>(e) / (2 << 20));
  return forward<cl::Int(cl::Queue, cl::Mem, cl::UInt, std::size_t, std::size_t, const void*, cl::UInt,
                         const cl::EventId*, cl::EventId*)>(nullptr, "clEnqueueWriteBuffer")(a, b, c, d, e, f, g, h, i);
}

__attribute__((visibility("default"))) cl::Int clEnqueueReadBuffer(cl::Queue a, cl::Mem b, cl::UInt c, std::size_t d,
                                                                   std::size_t e, void* f, cl::UInt g,
                                                                   const cl::EventId* h, cl::EventId* i) {
  const cl::Int code =
      forward<cl::Int(cl::Queue, cl::Mem, cl::UInt, std::size_t, std::size_t, void*, cl::UInt, const cl::EventId*,
                      cl::EventId*)>(nullptr, "clEnqueueReadBuffer")(a, b, c, d, e, f, g, h, i);
  if (orders().what == "wrong-bit" && e == 65536 * 4) static_cast<unsigned char*>(f)[1000] ^= 4U;
  return code;
}

__attribute__((visibility("default"))) cl::Int clEnqueueNDRangeKernel(cl::Queue a, cl::KernelId b, cl::UInt c,
                                                                      const std::size_t* d, const std::size_t* e,
                                                                      const std::size_t* f, cl::UInt g,
                                                                      const cl::EventId* h, cl::EventId* i) {
  // Past the start and the warm-up, in the first canary.
  const bool now = ++launches > 200;
  if (orders().what == "hang" && now) std::this_thread::sleep_for(std::chrono::hours(1));
  if (orders().what == "abort" && now) {
    std::fputs("standin: HSA_STATUS_ERROR_EXCEPTION\n", stderr);
    std::abort();
  }
  if (orders().what == "heap" && now) {
    // NOLINTBEGIN: what a runtime does wrong.
    char* volatile block = static_cast<char*>(std::malloc(64));
    for (int k = 1; k <= 8; ++k) static_cast<volatile char*>(block)[-k] = 0x41;
    std::free(block);
    // NOLINTEND
  }
  const cl::Int code = forward<cl::Int(cl::Queue, cl::KernelId, cl::UInt, const std::size_t*, const std::size_t*,
                                       const std::size_t*, cl::UInt, const cl::EventId*, cl::EventId*)>(
      nullptr, "clEnqueueNDRangeKernel")(a, b, c, d, e, f, g, h, i);
  if (orders().what == "serialize") clFinish(a);
  return code;
}

__attribute__((visibility("default"))) cl::Int clGetEventProfilingInfo(cl::EventId a, cl::UInt b, std::size_t c,
                                                                       void* d, std::size_t* e) {
  const auto get =
      forward<cl::Int(cl::EventId, cl::UInt, std::size_t, void*, std::size_t*)>(nullptr, "clGetEventProfilingInfo");
  const cl::Int code = get(a, b, c, d, e);
  if (orders().what != "slow" || b != cl::kProfilingEnd || code != cl::kSuccess) return code;
  cl::ULong start = 0;
  get(a, cl::kProfilingStart, sizeof start, &start, nullptr);
  auto& end = *static_cast<cl::ULong*>(d);
  end = start + static_cast<cl::ULong>(static_cast<double>(end - start) * orders().factor);
  return code;
}

}  // extern "C"
