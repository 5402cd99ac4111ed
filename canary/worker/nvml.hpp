// SPDX-License-Identifier: Apache-2.0
// NVIDIA's management library, where it is there: the card's state, and who computes on it. Only in the worker's child.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace gpuhealth::canary {

class Nvml {
 public:
  explicit Nvml(const std::string& pci);  // usable or not: ask ok()
  [[nodiscard]] bool ok() const { return device_ != nullptr; }
  [[nodiscard]] std::map<std::string, std::string> state() const;
  [[nodiscard]] std::vector<int> compute_pids() const;
  [[nodiscard]] bool partitioned() const;  // MIG

 private:
  void* library_ = nullptr;
  void* device_ = nullptr;
};

}  // namespace gpuhealth::canary
