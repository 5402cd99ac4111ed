// SPDX-License-Identifier: Apache-2.0
// What the log (or, live, sysfs) tells of the machine: which PCI functions are GPUs, what lies below which port, which
// DRM minor is which device, which programs use a GPU. All sets are bounded: a log may hold anything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "core/pci.hpp"
#include "telemetry/klog/origin.hpp"

namespace gpuhealth::klog {

enum class Relation : std::uint8_t { Gpu, NotGpu, Unknown };

class Facts {
 public:
  void add_gpu(const PciAddress& address);
  // As the kernel enumerates it; `gpu`: a display controller or accelerator.
  void add_function(const PciAddress& address, bool gpu);
  void add_bridge(const PciAddress& address, std::uint8_t first_bus, std::uint8_t last_bus);
  void add_port_ids(const PciAddress& address, std::uint32_t vendor, std::uint32_t device);
  void add_minor(unsigned minor, const PciAddress& address);
  void add_program(std::string_view name, std::uint32_t pid);
  // A port above a GPU. Once sysfs has told all of them, a port that is not among them has none below.
  void add_gpu_port(const PciAddress& port, const PciAddress& gpu);
  void know_all_ports() { all_ports_known_ = true; }
  void saw_gpu_driver() { gpu_driver_ = true; }
  void saw_foreign_error() { foreign_error_ = true; }

  [[nodiscard]] bool gpu_slot(const PciAddress& address) const;  // a GPU's function, or its audio and USB beside it
  [[nodiscard]] Relation relation(const PciAddress& address, std::uint16_t from) const;
  // The GPU that a line about `address` concerns: its own slot, or the only one below that port.
  [[nodiscard]] std::optional<PciAddress> gpu_of(const PciAddress& address) const;
  [[nodiscard]] std::optional<PciAddress> minor(unsigned number) const;
  [[nodiscard]] bool uses_gpu(std::string_view program, std::uint32_t pid) const;

 private:
  [[nodiscard]] Relation port(const PciAddress& address) const;

  std::set<PciAddress> gpu_slots_;  // function 0 of each
  std::map<PciAddress, bool> functions_;
  struct Buses {
    std::uint8_t first, last;
  };
  std::map<PciAddress, Buses> bridges_;
  std::set<PciAddress> gpu_switches_;
  std::multimap<PciAddress, PciAddress> gpu_ports_;
  std::map<unsigned, PciAddress> minors_;
  std::set<std::string, std::less<>> programs_;
  std::set<std::uint32_t> pids_;
  bool gpu_driver_ = false;
  bool foreign_error_ = false;
  bool all_ports_known_ = false;
};

}  // namespace gpuhealth::klog
