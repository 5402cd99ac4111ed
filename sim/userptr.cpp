// SPDX-License-Identifier: Apache-2.0
#include "sim/userptr.hpp"

#include <amdgpu_drm.h>

#include <cerrno>

namespace gpuhealth::sim {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kSlot = 2U << 20U;
constexpr double kWindowMs = 1000;  // HMM_RANGE_DEFAULT_TIMEOUT
constexpr std::uint32_t kKnownFlags = AMDGPU_GEM_USERPTR_READONLY | AMDGPU_GEM_USERPTR_ANONONLY |
                                      AMDGPU_GEM_USERPTR_VALIDATE | AMDGPU_GEM_USERPTR_REGISTER;

bool bit(std::uint64_t entry, unsigned n) {
  return (entry >> n & 1U) != 0;
}

// Documentation/admin-guide/mm/pagemap.rst: 63 present, 61 of a file or shared anonymous, 56 mapped once.
bool is_copied_on_write(std::uint64_t entry) {
  return bit(entry, 63) && (bit(entry, 61) || !bit(entry, 56));
}

}  // namespace

std::vector<std::vector<std::uint64_t>> copied_on_write(const std::vector<std::uint64_t>& pagemap,
                                                        std::uint64_t address) {
  std::vector<std::vector<std::uint64_t>> slots;
  std::uint64_t last = ~std::uint64_t{0};
  for (std::size_t i = 0; i < pagemap.size(); ++i) {
    if (!is_copied_on_write(pagemap[i])) continue;
    const std::uint64_t page = address + i * kPage;
    if (page / kSlot != last) slots.emplace_back();
    last = page / kSlot;
    slots.back().push_back(page);
  }
  return slots;
}

Pinning pin(const Caller& caller, std::uint64_t address, std::uint64_t bytes, std::uint32_t flags,
            const UserptrPath& path) {
  const bool read_only = (flags & AMDGPU_GEM_USERPTR_READONLY) != 0;
  // amdgpu_gem_userptr_ioctl(), in its order.
  if (address % kPage != 0 || bytes % kPage != 0 || (flags & ~kKnownFlags) != 0 || bytes == 0) return {.error = EINVAL};
  if (!read_only && (flags & AMDGPU_GEM_USERPTR_REGISTER) == 0) return {.error = EACCES};
  if ((flags & AMDGPU_GEM_USERPTR_VALIDATE) == 0) return {};
  const auto mapping = caller.mapping(address, bytes);
  if (!mapping.whole) return {.error = EFAULT};
  if ((flags & AMDGPU_GEM_USERPTR_ANONONLY) != 0 && mapping.file) return {.error = EPERM};
  if (!read_only && !mapping.writable) return {.error = EFAULT};
  const std::uint64_t slots_all = (bytes + kSlot - 1) / kSlot;
  const double all_ms = path.slot_ms * static_cast<double>(slots_all);
  if (read_only || mapping.shared) return {.wait_ms = all_ms};

  const auto pagemap = caller.pages(address, bytes);
  if (pagemap.empty()) return {.error = EFAULT};
  const auto slots = copied_on_write(pagemap, address);
  if (slots.empty()) return {.wait_ms = all_ms};
  if (path.form == UserptrForm::Healthy) {
    for (const auto& slot : slots) {
      if (!caller.fault_in(slot)) return {.error = EFAULT};
    }
    return {.wait_ms = all_ms + (path.cow_slot_ms - path.slot_ms) * static_cast<double>(slots.size())};
  }
  // The write fault moves the notifier on; the attempt fails, and the next one finds this slot done.
  if (!caller.fault_in(slots.front())) return {.error = EFAULT};
  if (path.form == UserptrForm::Fixed) return {.error = EAGAIN, .wait_ms = path.cow_slot_ms};
  return {.error = EAGAIN, .spin_ms = kWindowMs};
}

}  // namespace gpuhealth::sim
