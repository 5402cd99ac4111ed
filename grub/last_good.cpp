// SPDX-License-Identifier: Apache-2.0
#include "grub/last_good.hpp"

#include <algorithm>

namespace gpuhealth::grub {
namespace {

// Another build under the same name is another kernel.
bool is_blessed(const Kernel& kernel, const Qualification& known) {
  const bool other = !kernel.build.empty() && !known.build.empty() && kernel.build != known.build;
  return known.state == QualificationState::Blessed && kernel.problems.empty() && !other;
}

bool with_these(const Qualification& known, std::span<const std::string> gpus) {
  return known.gpus.empty() || gpus.empty() || std::ranges::is_permutation(known.gpus, gpus);
}

}  // namespace

std::string last_known_good(const Inventory& inventory, const Qualifications& all, std::span<const std::string> gpus,
                            const std::string& not_this) {
  std::string with_others;
  for (const Kernel& kernel : inventory.kernels) {  // newest first
    const auto known = all.kernels.find(kernel.release);
    if (kernel.release == not_this || known == all.kernels.end() || !is_blessed(kernel, known->second)) continue;
    if (with_these(known->second, gpus)) return kernel.release;
    if (with_others.empty()) with_others = kernel.release;
  }
  return with_others;
}

}  // namespace gpuhealth::grub
