// SPDX-License-Identifier: Apache-2.0
// OpenCL through its ICD loader: pocl, NVIDIA, rocm-opencl, rusticl.
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <utility>

#include "canary/worker/devices.hpp"
#include "canary/worker/gpu.hpp"
#include "canary/worker/opencl_api.hpp"

namespace gpuhealth::canary {
namespace {

// A buffer's number is the runtime's own handle.
cl::Mem mem_of(Gpu::Buffer buffer) {
  return reinterpret_cast<cl::Mem>(buffer);  // NOLINT(performance-no-int-to-ptr)
}

using Clock = std::chrono::steady_clock;

double now_us() {
  return std::chrono::duration<double, std::micro>(Clock::now().time_since_epoch()).count();
}

Result<cl::Api> load_api() {
  auto library = load_library({"libOpenCL.so.1"});
  if (!library) return fail(ErrorCode::Unavailable, "no OpenCL loader: " + library.error().text);
  cl::Api api;
  std::string missing;
#define GH_CL_LOAD(result, name, parameters)                                      \
  api.name = reinterpret_cast<decltype(api.name)>(dlsym(library->handle, #name)); \
  if (api.name == nullptr) missing += " " #name;
  GH_CL_FUNCTIONS(GH_CL_LOAD)
#undef GH_CL_LOAD
  api.clCreateCommandQueueWithProperties =
      reinterpret_cast<cl::Queue (*)(cl::Context, cl::Device, const cl::ULong*, cl::Int*)>(
          dlsym(library->handle, "clCreateCommandQueueWithProperties"));
  if (!missing.empty()) return fail(ErrorCode::Unavailable, library->name + " lacks" + missing);
  return api;
}

template <class T>
std::optional<T> info(const cl::Api& api, cl::Device device, cl::UInt what) {
  T value{};
  if (api.clGetDeviceInfo(device, what, sizeof value, &value, nullptr) != cl::kSuccess) return std::nullopt;
  return value;
}

std::string text_info(const cl::Api& api, cl::Device device, cl::UInt what) {
  std::size_t size = 0;
  if (api.clGetDeviceInfo(device, what, 0, nullptr, &size) != cl::kSuccess || size == 0 || size > 65536) return {};
  std::string text(size, '\0');
  if (api.clGetDeviceInfo(device, what, size, text.data(), nullptr) != cl::kSuccess) return {};
  text.resize(std::min(text.find('\0'), text.size()));
  return text;
}

std::optional<PciAddress> pci_of(const cl::Api& api, cl::Device device) {
  const auto extensions = text_info(api, device, cl::kDeviceExtensions);
  const auto has = [&](const char* name) { return extensions.find(name) != std::string::npos; };
  if (has("cl_khr_pci_bus_info")) {
    if (const auto v = info<std::array<cl::UInt, 4>>(api, device, cl::kDevicePciBusInfoKhr))
      return PciAddress{(*v)[0], static_cast<std::uint8_t>((*v)[1]), static_cast<std::uint8_t>((*v)[2]),
                        static_cast<std::uint8_t>((*v)[3])};
  }
  if (has("cl_nv_device_attribute_query")) {
    const auto bus = info<cl::UInt>(api, device, cl::kDevicePciBusIdNv);
    const auto slot = info<cl::UInt>(api, device, cl::kDevicePciSlotIdNv);
    if (bus && slot)
      return PciAddress{info<cl::UInt>(api, device, cl::kDevicePciDomainIdNv).value_or(0),
                        static_cast<std::uint8_t>(*bus), static_cast<std::uint8_t>(*slot >> 3U),
                        static_cast<std::uint8_t>(*slot & 7U)};
  }
  if (has("cl_amd_device_attribute_query")) {
    if (const auto v = info<std::array<std::uint8_t, 24>>(api, device, cl::kDeviceTopologyAmd))
      return PciAddress{0, (*v)[21], (*v)[22], (*v)[23]};
  }
  return std::nullopt;
}

struct Found {
  cl::Device device = nullptr;
  std::string platform;
  bool cpu = false;
  std::optional<PciAddress> pci;
  int index = 0;
};

std::vector<Found> list_devices(const cl::Api& api) {
  std::vector<Found> out;
  std::array<cl::Platform, 32> platforms{};
  cl::UInt n = 0;
  if (api.clGetPlatformIDs(platforms.size(), platforms.data(), &n) != cl::kSuccess) return out;
  for (cl::UInt p = 0; p < std::min<cl::UInt>(n, platforms.size()); ++p) {
    std::array<char, 256> name{};
    api.clGetPlatformInfo(platforms.at(p), cl::kPlatformName, name.size() - 1, name.data(), nullptr);
    std::array<cl::Device, 64> devices{};
    cl::UInt count = 0;
    if (api.clGetDeviceIDs(platforms.at(p), cl::kDeviceTypeAll, devices.size(), devices.data(), &count) != cl::kSuccess)
      continue;
    for (cl::UInt d = 0; d < std::min<cl::UInt>(count, devices.size()); ++d) {
      Found f;
      f.device = devices.at(d);
      f.platform = name.data();
      const auto text = text_info(api, f.device, cl::kDeviceName);
      // rusticl on llvmpipe calls itself a CPU or not, by version.
      f.cpu = (info<cl::ULong>(api, f.device, cl::kDeviceType).value_or(0) & cl::kDeviceTypeCpu) != 0 ||
              text.find("llvmpipe") != std::string::npos;
      f.pci = f.cpu ? std::nullopt : pci_of(api, f.device);
      f.index = static_cast<int>(out.size());
      out.push_back(std::move(f));
    }
  }
  return out;
}

Result<Found> choose(const std::vector<Found>& devices, const Selection& selection) {
  std::string seen;
  for (const auto& f : devices) {
    seen += (seen.empty() ? "" : ", ") + (f.cpu ? "CPU (" + f.platform + ")" : f.pci ? to_string(*f.pci) : f.platform);
    if (f.cpu) continue;
    if (!selection.device || f.pci == selection.device) return f;
  }
  if (!selection.device && selection.allow_cpu) {
    for (const auto& f : devices) {
      if (f.cpu) return f;
    }
  }
  if (devices.empty()) return fail(ErrorCode::NotFound, "no device: the OpenCL loader knows no platform with a device");
  return fail(ErrorCode::NotFound,
              (selection.device ? "no device at " + to_string(*selection.device) : std::string("no device: no GPU")) +
                  "; OpenCL offers " + seen + (selection.allow_cpu ? "" : " (a CPU is taken only with --allow-cpu)"));
}

class OpenCl final : public Gpu {
 public:
  explicit OpenCl(const cl::Api& api) : api_(api) {}
  ~OpenCl() override;
  OpenCl(const OpenCl&) = delete;
  OpenCl& operator=(const OpenCl&) = delete;
  Result<void> start(const Found& found);

  Buffer allocate(std::size_t bytes) override;
  void release(Buffer buffer) override;
  void* pin(std::size_t bytes) override;
  void unpin(void* memory) override;
  void write(Buffer to, const void* from, std::size_t bytes) override;
  void read(void* to, Buffer from, std::size_t bytes) override;
  void write_async(int queue, Buffer to, const void* from, std::size_t bytes, Ticket* ticket) override;
  void read_async(int queue, void* to, Buffer from, std::size_t bytes, Ticket* ticket) override;
  void launch(int queue, Kernel kernel, std::size_t groups, std::size_t size, std::initializer_list<Arg> args,
              Ticket* ticket) override;
  void flush(int queue) override;
  void finish(int queue) override;
  Interval interval(Ticket ticket) override;
  void forget_tickets() override;
  void create_queue() override;
  bool build(unsigned nonce) override;

 private:
  bool call(cl::Int code, const char* what) {
    return check(code == cl::kSuccess, std::string(what) + " failed with OpenCL error " + std::to_string(code));
  }
  cl::Queue make_queue(cl::Int* code);
  Result<cl::Program> compile(const std::string& source);
  void find_host_clock();
  // Remembers the event of a command, or only when the host began it.
  struct Stamp {
    cl::EventId event = nullptr;
    double began_us = 0;
    double ended_us = 0;
    int queue = 0;
  };
  cl::EventId* stamp(Ticket* ticket, int queue);
  void sync_after(Ticket* ticket);

  cl::Api api_;
  cl::Device device_ = nullptr;
  cl::Context context_ = nullptr;
  std::array<cl::Queue, kQueues> queues_{};
  cl::Program program_ = nullptr;
  // A kernel object holds its arguments: one a queue, so that they do not mix.
  std::array<std::array<cl::KernelId, kQueues>, kKernelNames.size()> kernels_{};
  std::vector<Stamp> stamps_;
  std::map<void*, cl::Mem> pinned_;
  bool low_priority_ = false;
};

cl::Queue OpenCl::make_queue(cl::Int* code) {
  if (low_priority_) {
    const std::array<cl::ULong, 5> properties = {cl::kQueueProperties, cl::kQueueProfiling, cl::kQueuePriorityKhr,
                                                 cl::kQueuePriorityLowKhr, 0};
    if (cl::Queue queue = api_.clCreateCommandQueueWithProperties(context_, device_, properties.data(), code))
      return queue;
  }
  return api_.clCreateCommandQueue(context_, device_, cl::kQueueProfiling, code);
}

Result<cl::Program> OpenCl::compile(const std::string& source) {
  cl::Int code = 0;
  const char* text = source.c_str();
  cl::Program program = api_.clCreateProgramWithSource(context_, 1, &text, nullptr, &code);
  if (program == nullptr)
    return fail(ErrorCode::Unavailable, "clCreateProgramWithSource failed with OpenCL error " + std::to_string(code));
  code = api_.clBuildProgram(program, 1, &device_, "-cl-std=CL1.2", nullptr, nullptr);
  if (code == cl::kSuccess) return program;
  std::string log(4096, '\0');
  api_.clGetProgramBuildInfo(program, device_, cl::kProgramBuildLog, log.size() - 1, log.data(), nullptr);
  log.resize(std::min(log.find('\0'), log.size()));
  api_.clReleaseProgram(program);
  return fail(ErrorCode::Unavailable, "the kernels do not build (OpenCL error " + std::to_string(code) + "): " + log);
}

Result<void> OpenCl::start(const Found& found) {
  device_ = found.device;
  facts.backend = "opencl";
  facts.cpu = found.cpu;
  facts.device = found.cpu ? "cpu" : found.pci ? to_string(*found.pci) : "opencl-" + std::to_string(found.index);
  facts.name = text_info(api_, device_, cl::kDeviceName);
  facts.runtime = found.platform + " " + text_info(api_, device_, cl::kDriverVersion);
  facts.units = std::max<cl::UInt>(1, info<cl::UInt>(api_, device_, cl::kDeviceMaxComputeUnits).value_or(1));
  facts.memory = info<cl::ULong>(api_, device_, cl::kDeviceGlobalMemSize).value_or(0);
  facts.last_cache = info<cl::ULong>(api_, device_, cl::kDeviceGlobalMemCacheSize).value_or(0);
  const auto extensions = text_info(api_, device_, cl::kDeviceExtensions);
  if (extensions.find("cl_amd_device_attribute_query") != std::string::npos) {
    if (const auto kib = info<std::size_t>(api_, device_, cl::kDeviceGlobalFreeMemoryAmd))
      facts.memory_free = *kib * 1024;
  }
  low_priority_ = api_.clCreateCommandQueueWithProperties != nullptr &&
                  extensions.find("cl_khr_priority_hints") != std::string::npos;
  cl::Int code = 0;
  context_ = api_.clCreateContext(nullptr, 1, &device_, nullptr, nullptr, &code);
  if (context_ == nullptr)
    return fail(ErrorCode::Unavailable, "no context on " + facts.name + ": OpenCL error " + std::to_string(code));
  for (auto& queue : queues_) {
    queue = make_queue(&code);
    if (queue == nullptr)
      return fail(ErrorCode::Unavailable, "no queue on " + facts.name + ": OpenCL error " + std::to_string(code));
  }
  auto program = compile(kKernelSource);
  if (!program) return tl::unexpected(program.error());
  program_ = *program;
  for (std::size_t k = 0; k < kKernelNames.size(); ++k) {
    for (auto& kernel : kernels_.at(k)) {
      kernel = api_.clCreateKernel(program_, kKernelNames.at(k), &code);
      if (kernel == nullptr)
        return fail(ErrorCode::Unavailable,
                    std::string(kKernelNames.at(k)) + " is not in the program: OpenCL error " + std::to_string(code));
    }
  }
  find_host_clock();
  return {};
}

// Mesa 22.3's rusticl returns 0 for every time stamp.
void OpenCl::find_host_clock() {
  const Buffer buffer = allocate(4096);
  Ticket ticket = 0;
  launch(0, Kernel::Nop, 1, 64, {Arg::buffer(buffer)}, nullptr);
  finish(0);
  launch(0, Kernel::Nop, 1, 64, {Arg::buffer(buffer)}, &ticket);
  finish(0);
  const auto seen = interval(ticket);
  facts.host_clock = seen.start_us <= 0 || seen.end_us <= seen.start_us || seen.us() >= 1e7;
  forget_tickets();
  release(buffer);
}

OpenCl::~OpenCl() {
  forget_tickets();
  for (auto& row : kernels_) {
    for (auto* kernel : row) {
      if (kernel != nullptr) api_.clReleaseKernel(kernel);
    }
  }
  if (program_ != nullptr) api_.clReleaseProgram(program_);
  for (auto* queue : queues_) {
    if (queue != nullptr) api_.clReleaseCommandQueue(queue);
  }
  if (context_ != nullptr) api_.clReleaseContext(context_);
}

Gpu::Buffer OpenCl::allocate(std::size_t bytes) {
  if (!ok()) return 0;
  cl::Int code = 0;
  cl::Mem mem = api_.clCreateBuffer(context_, cl::kMemReadWrite, bytes, nullptr, &code);
  call(mem == nullptr && code == cl::kSuccess ? -4 : code, "clCreateBuffer");
  return reinterpret_cast<Buffer>(mem);
}

void OpenCl::release(Buffer buffer) {
  if (buffer != 0) api_.clReleaseMemObject(mem_of(buffer));
}

void* OpenCl::pin(std::size_t bytes) {
  if (!ok()) return nullptr;
  cl::Int code = 0;
  cl::Mem mem = api_.clCreateBuffer(context_, cl::kMemReadWrite | cl::kMemAllocHostPtr, bytes, nullptr, &code);
  if (!call(code, "clCreateBuffer of host memory")) return nullptr;
  void* memory = api_.clEnqueueMapBuffer(queues_[0], mem, 1, cl::kMapReadWrite, 0, bytes, 0, nullptr, nullptr, &code);
  if (!call(code, "clEnqueueMapBuffer")) return nullptr;
  pinned_[memory] = mem;
  return memory;
}

void OpenCl::unpin(void* memory) {
  const auto node = pinned_.extract(memory);
  if (node.empty()) return;
  api_.clEnqueueUnmapMemObject(queues_[0], node.mapped(), memory, 0, nullptr, nullptr);
  api_.clFinish(queues_[0]);
  api_.clReleaseMemObject(node.mapped());
}

cl::EventId* OpenCl::stamp(Ticket* ticket, int queue) {
  if (ticket == nullptr) return nullptr;
  *ticket = stamps_.size();
  stamps_.push_back({nullptr, now_us(), 0, queue});
  return &stamps_.back().event;
}

// Without time stamps the host's clock must do: the command is waited for, so that it is alone.
void OpenCl::sync_after(Ticket* ticket) {
  if (ticket == nullptr || !facts.host_clock) return;
  api_.clFinish(queues_.at(static_cast<std::size_t>(stamps_.back().queue)));
  stamps_.back().ended_us = now_us();
}

void OpenCl::write(Buffer to, const void* from, std::size_t bytes) {
  if (!ok()) return;
  call(api_.clEnqueueWriteBuffer(queues_[0], mem_of(to), 1, 0, bytes, from, 0, nullptr, nullptr),
       "clEnqueueWriteBuffer");
}

void OpenCl::read(void* to, Buffer from, std::size_t bytes) {
  if (!ok()) return;
  call(api_.clEnqueueReadBuffer(queues_[0], mem_of(from), 1, 0, bytes, to, 0, nullptr, nullptr), "clEnqueueReadBuffer");
}

void OpenCl::write_async(int queue, Buffer to, const void* from, std::size_t bytes, Ticket* ticket) {
  if (!ok()) return;
  auto* event = stamp(ticket, queue);
  call(api_.clEnqueueWriteBuffer(queues_.at(static_cast<std::size_t>(queue)), mem_of(to), 0, 0, bytes, from, 0, nullptr,
                                 event),
       "clEnqueueWriteBuffer");
  sync_after(ticket);
}

void OpenCl::read_async(int queue, void* to, Buffer from, std::size_t bytes, Ticket* ticket) {
  if (!ok()) return;
  auto* event = stamp(ticket, queue);
  call(api_.clEnqueueReadBuffer(queues_.at(static_cast<std::size_t>(queue)), mem_of(from), 0, 0, bytes, to, 0, nullptr,
                                event),
       "clEnqueueReadBuffer");
  sync_after(ticket);
}

void OpenCl::launch(int queue, Kernel kernel, std::size_t groups, std::size_t size, std::initializer_list<Arg> args,
                    Ticket* ticket) {
  if (!ok()) return;
  cl::KernelId id = kernels_.at(static_cast<std::size_t>(kernel)).at(static_cast<std::size_t>(queue));
  cl::UInt index = 0;
  for (const Arg& arg : args) {
    if (!call(api_.clSetKernelArg(id, index++, arg.size, &arg.bytes), "clSetKernelArg")) return;
  }
  const std::size_t global = groups * size;
  auto* event = stamp(ticket, queue);
  call(api_.clEnqueueNDRangeKernel(queues_.at(static_cast<std::size_t>(queue)), id, 1, nullptr, &global, &size, 0,
                                   nullptr, event),
       "clEnqueueNDRangeKernel");
  sync_after(ticket);
}

void OpenCl::flush(int queue) {
  if (ok()) call(api_.clFlush(queues_.at(static_cast<std::size_t>(queue))), "clFlush");
}

void OpenCl::finish(int queue) {
  if (ok()) call(api_.clFinish(queues_.at(static_cast<std::size_t>(queue))), "clFinish");
}

Interval OpenCl::interval(Ticket ticket) {
  if (!ok() || ticket >= stamps_.size()) return {};
  const auto& s = stamps_[ticket];
  if (facts.host_clock) return {s.began_us, s.ended_us};
  cl::ULong start = 0;
  cl::ULong end = 0;
  if (!call(api_.clGetEventProfilingInfo(s.event, cl::kProfilingStart, sizeof start, &start, nullptr),
            "clGetEventProfilingInfo") ||
      !call(api_.clGetEventProfilingInfo(s.event, cl::kProfilingEnd, sizeof end, &end, nullptr),
            "clGetEventProfilingInfo"))
    return {};
  return {static_cast<double>(start) / 1e3, static_cast<double>(end) / 1e3};
}

void OpenCl::forget_tickets() {
  for (auto& s : stamps_) {
    if (s.event != nullptr) api_.clReleaseEvent(s.event);
  }
  stamps_.clear();
}

void OpenCl::create_queue() {
  if (!ok()) return;
  cl::Int code = 0;
  cl::Queue queue = make_queue(&code);
  if (call(code, "clCreateCommandQueue")) api_.clReleaseCommandQueue(queue);
}

bool OpenCl::build(unsigned nonce) {
  const auto n = std::to_string(nonce);
  const std::string source =
      "__kernel void gh_jit_" + n + "(__global uint* p) { uint x = p[get_global_id(0)]; for (uint i = 0; i < " +
      std::to_string(1000 + nonce % 1000) + "u; ++i) x = x * " + n + "u + i; p[get_global_id(0)] = x; }";
  auto program = compile(source);
  if (!program) return check(false, program.error().text);
  cl::Int code = 0;
  cl::KernelId kernel = api_.clCreateKernel(*program, ("gh_jit_" + n).c_str(), &code);
  if (kernel != nullptr) api_.clReleaseKernel(kernel);
  api_.clReleaseProgram(*program);
  return call(code, "clCreateKernel");
}

}  // namespace

Result<std::vector<RuntimeDevice>> list_opencl_devices() {
  const auto api = load_api();
  if (!api) return fail(ErrorCode::Unavailable, "not installed: " + api.error().text);
  std::vector<RuntimeDevice> out;
  for (const auto& found : list_devices(*api))
    out.push_back({found.index, found.pci, text_info(*api, found.device, cl::kDeviceName)});
  return out;
}

Result<std::unique_ptr<Gpu>> open_opencl(const Selection& selection) {
  const double began = now_us();
  const auto api = load_api();
  if (!api) return tl::unexpected(api.error());
  const auto devices = list_devices(*api);
  const auto found = choose(devices, selection);
  if (!found) return tl::unexpected(found.error());
  auto gpu = std::make_unique<OpenCl>(*api);
  if (auto started = gpu->start(*found); !started) return tl::unexpected(started.error());
  if (!gpu->ok()) return fail(ErrorCode::Unavailable, gpu->error());
  gpu->facts.start_ms = (now_us() - began) / 1e3;
  return gpu;
}

}  // namespace gpuhealth::canary
