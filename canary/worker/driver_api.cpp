// SPDX-License-Identifier: Apache-2.0
#include "canary/worker/driver_api.hpp"

#include <dlfcn.h>

#include <array>
#include <utility>

namespace gpuhealth::canary {
namespace {

constexpr unsigned kNonBlocking = 1;  // CU_STREAM_NON_BLOCKING, hipStreamNonBlocking

class DriverGpu final : public Gpu {
 public:
  DriverGpu(std::unique_ptr<Driver> driver, Facts a_facts, int device) : driver_(std::move(driver)), device_(device) {
    facts = std::move(a_facts);
  }
  ~DriverGpu() override;
  DriverGpu(const DriverGpu&) = delete;
  DriverGpu& operator=(const DriverGpu&) = delete;
  void start();

  Buffer allocate(std::size_t bytes) override;
  void release(Buffer buffer) override {
    if (buffer != 0) api().release(buffer);
  }
  void* pin(std::size_t bytes) override;
  void unpin(void* memory) override {
    if (memory != nullptr) api().unpin(memory);
  }
  void write(Buffer to, const void* from, std::size_t bytes) override {
    if (ok()) call(api().write(to, from, bytes), "copy to the device");
  }
  void read(void* to, Buffer from, std::size_t bytes) override {
    if (!ok()) return;
    for (auto* stream : streams_) call(api().stream_wait(stream), "waiting for a stream");
    call(api().read(to, from, bytes), "copy from the device");
  }
  void write_async(int queue, Buffer to, const void* from, std::size_t bytes, Ticket* ticket) override;
  void read_async(int queue, void* to, Buffer from, std::size_t bytes, Ticket* ticket) override;
  void launch(int queue, Kernel kernel, std::size_t groups, std::size_t size, std::initializer_list<Arg> args,
              Ticket* ticket) override;
  void flush(int /*queue*/) override {}
  void finish(int queue) override {
    if (ok()) call(api().stream_wait(stream(queue)), "waiting for a stream");
  }
  Interval interval(Ticket ticket) override;
  void forget_tickets() override { used_ = 0; }
  void create_queue() override;
  bool build(unsigned nonce) override { return check(driver_->build(nonce), "the kernel does not build"); }
  bool has_mma() override { return mma() != nullptr; }
  void launch_mma(std::size_t groups, Buffer out, std::uint32_t rounds, Ticket* ticket) override;
  std::optional<double> peer_copy(std::size_t bytes) override { return driver_->peer_copy(device_, bytes); }
  std::uint64_t free_memory() override;

 private:
  DriverApi& api() { return driver_->api; }
  Handle stream(int queue) { return streams_.at(static_cast<std::size_t>(queue)); }
  bool call(Code code, const char* what) {
    return check(code == 0, std::string(what) + " failed: " + (code == 0 ? "" : driver_->error_text(code)));
  }
  void begin(Ticket* ticket, int queue);
  void end(const Ticket* ticket, int queue);
  void launch_function(Handle function, int queue, std::size_t groups, std::size_t size,
                       std::initializer_list<Arg> args, Ticket* ticket);
  Handle mma();

  std::unique_ptr<Driver> driver_;
  int device_;
  std::array<Handle, kQueues> streams_{};
  std::array<Handle, kKernelNames.size()> kernels_{};
  Handle module_ = nullptr;
  Handle base_ = nullptr;                          // the event from which all are counted
  std::vector<std::pair<Handle, Handle>> events_;  // kept: making one costs as much as a launch
  std::size_t used_ = 0;
  std::optional<Handle> mma_;
};

void DriverGpu::start() {
  for (auto& s : streams_) call(api().stream_create(&s, kNonBlocking, driver_->lowest_priority()), "making a stream");
  if (!ok()) return;
  const auto module = driver_->kernels(facts);
  if (!check(module.has_value(), module ? "" : module.error().text)) return;
  module_ = *module;
  for (std::size_t k = 0; k < kKernelNames.size(); ++k)
    call(api().module_function(&kernels_.at(k), module_, kKernelNames.at(k)), kKernelNames.at(k));
  call(api().event_create(&base_, 0), "making an event");
  call(api().event_record(base_, streams_[0]), "recording an event");
  finish(0);
  facts.memory_free = free_memory();
}

DriverGpu::~DriverGpu() {
  for (const auto& [first, last] : events_) {
    api().event_destroy(first);
    api().event_destroy(last);
  }
  if (base_ != nullptr) api().event_destroy(base_);
  if (module_ != nullptr) api().module_unload(module_);
  for (auto* s : streams_) {
    if (s != nullptr) api().stream_destroy(s);
  }
}

std::uint64_t DriverGpu::free_memory() {
  std::size_t free = 0;
  std::size_t total = 0;
  if (api().memory_info(&free, &total) != 0) return 0;
  facts.memory = total;
  return free;
}

Gpu::Buffer DriverGpu::allocate(std::size_t bytes) {
  if (!ok()) return 0;
  DevicePtr memory = 0;
  call(api().allocate(&memory, bytes), "allocating device memory");
  return memory;
}

void* DriverGpu::pin(std::size_t bytes) {
  if (!ok()) return nullptr;
  void* memory = nullptr;
  call(driver_->pin(&memory, bytes), "allocating pinned memory");
  return memory;
}

void DriverGpu::begin(Ticket* ticket, int queue) {
  if (ticket == nullptr) return;
  if (used_ == events_.size()) {
    events_.emplace_back();
    call(api().event_create(&events_.back().first, 0), "making an event");
    call(api().event_create(&events_.back().second, 0), "making an event");
    if (!ok()) return;
  }
  *ticket = used_++;
  call(api().event_record(events_[*ticket].first, stream(queue)), "recording an event");
}

void DriverGpu::end(const Ticket* ticket, int queue) {
  if (ticket != nullptr && ok()) call(api().event_record(events_[*ticket].second, stream(queue)), "recording an event");
}

void DriverGpu::write_async(int queue, Buffer to, const void* from, std::size_t bytes, Ticket* ticket) {
  if (!ok()) return;
  begin(ticket, queue);
  call(api().write_async(to, from, bytes, stream(queue)), "copy to the device");
  end(ticket, queue);
}

void DriverGpu::read_async(int queue, void* to, Buffer from, std::size_t bytes, Ticket* ticket) {
  if (!ok()) return;
  begin(ticket, queue);
  call(api().read_async(to, from, bytes, stream(queue)), "copy from the device");
  end(ticket, queue);
}

void DriverGpu::launch_function(Handle function, int queue, std::size_t groups, std::size_t size,
                                std::initializer_list<Arg> args, Ticket* ticket) {
  if (!ok()) return;
  std::array<std::uint64_t, 8> values{};
  std::array<void*, 8> pointers{};
  std::size_t n = 0;
  for (const Arg& arg : args) {
    values.at(n) = arg.bytes;
    pointers.at(n) = &values.at(n);
    ++n;
  }
  begin(ticket, queue);
  call(api().launch(function, static_cast<unsigned>(groups), 1, 1, static_cast<unsigned>(size), 1, 1, 0, stream(queue),
                    pointers.data(), nullptr),
       "launching a kernel");
  end(ticket, queue);
}

void DriverGpu::launch(int queue, Kernel kernel, std::size_t groups, std::size_t size, std::initializer_list<Arg> args,
                       Ticket* ticket) {
  launch_function(kernels_.at(static_cast<std::size_t>(kernel)), queue, groups, size, args, ticket);
}

Handle DriverGpu::mma() {
  if (!mma_) mma_ = driver_->mma();
  return *mma_;
}

void DriverGpu::launch_mma(std::size_t groups, Buffer out, std::uint32_t rounds, Ticket* ticket) {
  launch_function(mma(), 0, groups, 256, {Arg::buffer(out), rounds}, ticket);
}

Interval DriverGpu::interval(Ticket ticket) {
  if (!ok() || ticket >= used_) return {};
  float start_ms = 0;
  float length_ms = 0;
  // From the base with the grain of a float: the length is asked for apart.
  call(api().event_elapsed(&start_ms, base_, events_[ticket].first), "reading an event");
  call(api().event_elapsed(&length_ms, events_[ticket].first, events_[ticket].second), "reading an event");
  return {start_ms * 1e3, start_ms * 1e3 + length_ms * 1e3};
}

void DriverGpu::create_queue() {
  if (!ok()) return;
  Handle one = nullptr;
  if (call(api().stream_create(&one, kNonBlocking, driver_->lowest_priority()), "making a stream"))
    call(api().stream_destroy(one), "destroying a stream");
}

}  // namespace

Result<DriverApi> load_driver_api(const Library& library, Vendor vendor) {
  DriverApi api;
  std::string missing;
#define GH_DRIVER_LOAD(member, cuda, hip, parameters)                                 \
  {                                                                                   \
    const char* name = vendor == Vendor::Cuda ? cuda : hip;                           \
    api.member = reinterpret_cast<decltype(api.member)>(dlsym(library.handle, name)); \
    if (api.member == nullptr) missing += std::string(" ") + name;                    \
  }
  GH_DRIVER_FUNCTIONS(GH_DRIVER_LOAD)
#undef GH_DRIVER_LOAD
  if (!missing.empty()) return fail(ErrorCode::Unavailable, library.name + " lacks" + missing);
  return api;
}

std::unique_ptr<Gpu> make_driver_gpu(std::unique_ptr<Driver> driver, Facts facts, int device) {
  auto gpu = std::make_unique<DriverGpu>(std::move(driver), std::move(facts), device);
  gpu->start();
  return gpu;
}

Result<int> choose_device(const DriverApi& api, const Selection& selection, Facts& facts, const char* runtime) {
  int count = 0;
  const Code code = api.device_count(&count);
  if (code != 0 || count < 1)
    return fail(ErrorCode::NotFound,
                "no device: " + std::string(runtime) + " finds no GPU (code " + std::to_string(code) + ")");
  std::string seen;
  for (int i = 0; i < count; ++i) {
    int device = 0;
    std::array<char, 64> pci{};
    std::array<char, 256> name{};
    if (api.device_get(&device, i) != 0 || api.device_pci(pci.data(), pci.size() - 1, device) != 0) continue;
    const auto address = parse_pci_address(pci.data());
    seen += (seen.empty() ? "" : ", ") + std::string(pci.data());
    if (selection.device && address != selection.device) continue;
    api.device_name(name.data(), name.size() - 1, device);
    facts.device = address ? to_string(*address) : std::string(pci.data());
    facts.name = name.data();
    return device;
  }
  return fail(ErrorCode::NotFound, "no device at " + (selection.device ? to_string(*selection.device) : "any address") +
                                       "; " + runtime + " offers " + seen);
}

}  // namespace gpuhealth::canary
