// SPDX-License-Identifier: Apache-2.0
#include "canary/worker/host_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "canary/worker/bench.hpp"

namespace gpuhealth::canary {
namespace {

constexpr std::size_t kPage = 4096;
constexpr int kMostAttempts = 40;

void read_every_page(const void* data, std::size_t bytes) {
  const auto* at = static_cast<const volatile std::uint8_t*>(data);
  for (std::size_t i = 0; i < bytes; i += kPage) (void)at[i];
}

}  // namespace

Result<Fd> make_file(std::size_t bytes, std::uint32_t seed) {
  Fd file(memfd_create("gpuhealth-canary", MFD_CLOEXEC));
  if (!file) return fail_errno("cannot make a file in memory", errno);
  std::vector<std::uint32_t> words(bytes / sizeof(std::uint32_t));
  for (std::uint32_t i = 0; i < words.size(); ++i) words[i] = i ^ seed;
  const auto* content = reinterpret_cast<const std::uint8_t*>(words.data());
  std::size_t done = 0;
  while (done < bytes) {
    const ssize_t n = write(file.get(), content + done, bytes - done);
    if (n <= 0) return fail_errno("cannot write a file in memory", errno);
    done += static_cast<std::size_t>(n);
  }
  return file;
}

Result<HostMapping> HostMapping::make(Kind kind, int file, std::size_t bytes) {
  const std::size_t area_bytes = bytes + kSlotBytes;
  void* area = mmap(nullptr, area_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (area == MAP_FAILED) return fail_errno("cannot reserve addresses", errno);
  const auto first = (reinterpret_cast<std::uintptr_t>(area) + kSlotBytes - 1) / kSlotBytes * kSlotBytes;
  const int access = kind == Kind::FileReadOnly ? PROT_READ : PROT_READ | PROT_WRITE;
  const int flags = MAP_PRIVATE | MAP_FIXED | (kind == Kind::Anonymous ? MAP_ANONYMOUS : 0);
  void* slot = static_cast<char*>(area) + (first - reinterpret_cast<std::uintptr_t>(area));
  void* data = mmap(slot, bytes, access, flags, kind == Kind::Anonymous ? -1 : file, 0);
  if (data == MAP_FAILED) {
    const int error = errno;
    munmap(area, area_bytes);
    return fail_errno("cannot map memory", error);
  }
  // A huge page would be one page of another kind.
  madvise(data, bytes, MADV_NOHUGEPAGE);
  if (kind == Kind::Anonymous) {
    std::memset(data, 1, bytes);
  } else {
    read_every_page(data, bytes);
  }
  return HostMapping(kind, data, bytes, area, area_bytes);
}

HostMapping::HostMapping(HostMapping&& other) noexcept
    : kind_(other.kind_),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(other.bytes_),
      area_(std::exchange(other.area_, nullptr)),
      area_bytes_(other.area_bytes_) {}

HostMapping::~HostMapping() {
  if (area_ != nullptr) munmap(area_, area_bytes_);
}

std::string HostMapping::state_problem() const {
  const Fd pagemap(open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC));
  if (!pagemap) return "/proc/self/pagemap cannot be read: the state of the pages is not known";
  std::vector<std::uint64_t> entries(bytes_ / kPage);
  const auto at = static_cast<off_t>(reinterpret_cast<std::uintptr_t>(data_) / kPage * sizeof(std::uint64_t));
  const auto want = static_cast<ssize_t>(entries.size() * sizeof(std::uint64_t));
  if (pread(pagemap.get(), entries.data(), static_cast<std::size_t>(want), at) != want)
    return "/proc/self/pagemap cannot be read: the state of the pages is not known";
  std::size_t present = 0;
  std::size_t of_file = 0;
  for (const auto e : entries) {
    present += (e >> 63U) & 1U;
    of_file += (e >> 61U) & 1U;
  }
  if (present != entries.size())
    return std::to_string(entries.size() - present) + " of " + std::to_string(entries.size()) +
           " pages are not present";
  if (kind_ != Kind::Anonymous && of_file != entries.size())
    return std::to_string(entries.size() - of_file) + " of " + std::to_string(entries.size()) +
           " pages are no longer the file's (something locks or populates memory)";
  if (kind_ == Kind::Anonymous && of_file != 0) return "the control's pages are not its own";
  return {};
}

namespace {

struct Call {
  double ms = 0, system_ms = 0, worst_ms = 0;
  int retries = 0;
  int error = 0;
};

Call call(const Pin& pin, const HostMapping& mapping) {
  Call out;
  const auto cpu = cpu_time();
  const double began = wall_us();
  for (int i = 0; i < kMostAttempts; ++i) {
    const double at = wall_us();
    out.error = pin(mapping.data(), mapping.bytes());
    out.worst_ms = std::max(out.worst_ms, (wall_us() - at) / 1e3);
    if (out.error != EAGAIN && out.error != EINTR) break;
    ++out.retries;
  }
  out.ms = (wall_us() - began) / 1e3;
  out.system_ms = cpu_time().system_ms - cpu.system_ms;
  return out;
}

}  // namespace

PinProbe probe_pinning(const Pin& pin, int samples, std::size_t bytes) {
  PinProbe out;
  auto file = make_file(bytes);
  if (!file) {
    out.error = file.error().text;
    return out;
  }
  for (int i = 0; i < samples; ++i) {
    const auto control = HostMapping::make(HostMapping::Kind::Anonymous, -1, bytes);
    const auto probe = HostMapping::make(HostMapping::Kind::FileWritable, file->get(), bytes);
    if (!control || !probe) {
      out.error = control ? probe.error().text : control.error().text;
      return out;
    }
    for (const auto* mapping : {&*control, &*probe}) {
      out.inconclusive = mapping->state_problem();
      if (!out.inconclusive.empty()) return out;
    }
    const auto quick = call(pin, *control);
    const auto slow = call(pin, *probe);
    for (const auto& c : {quick, slow}) {
      if (c.error == 0) continue;
      out.error = "pinning failed: " + std::string(std::strerror(c.error));
      return out;
    }
    out.worst_call_ms = std::max(out.worst_call_ms, slow.worst_ms);
    out.retries += slow.retries;
    out.mappings.push_back({slow.ms, quick.ms, slow.system_ms, static_cast<int>(bytes / kSlotBytes)});
  }
  return out;
}

}  // namespace gpuhealth::canary
