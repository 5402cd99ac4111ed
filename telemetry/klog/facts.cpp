// SPDX-License-Identifier: Apache-2.0
#include "telemetry/klog/facts.hpp"

#include <algorithm>
#include <array>

namespace gpuhealth::klog {
namespace {

constexpr std::size_t kMost = 4096;

// Programs that do nothing without a GPU, by their names as the kernel cuts them (15 bytes).
constexpr std::array<std::string_view, 14> kGpuPrograms = {
    "llama-server",    "llama-cli",           "llama-bench", "ollama",
    "ollama_llama_se", "ollama_llama_server", "koboldcpp",   "sd-server",
    "VLLM::EngineCor", "VLLM::Worker",        "vllm",        "hashcat",
    "gpu_burn",        "text-generation"};

PciAddress slot_of(PciAddress address) {
  address.function = 0;
  return address;
}

}  // namespace

void Facts::add_gpu(const PciAddress& address) {
  if (gpu_slots_.size() < kMost) gpu_slots_.insert(slot_of(address));
}

void Facts::add_function(const PciAddress& address, bool gpu) {
  if (functions_.size() < kMost) functions_.insert_or_assign(address, gpu);
  if (gpu) add_gpu(address);
}

void Facts::add_bridge(const PciAddress& address, std::uint8_t first_bus, std::uint8_t last_bus) {
  if (bridges_.size() < kMost) bridges_.insert_or_assign(address, Buses{first_bus, last_bus});
}

void Facts::add_port_ids(const PciAddress& address, std::uint32_t vendor, std::uint32_t device) {
  // The switch on AMD's own cards since Navi 10: upstream and downstream port (pci.ids).
  if (vendor == 0x1002 && (device == 0x1478 || device == 0x1479) && gpu_switches_.size() < kMost)
    gpu_switches_.insert(address);
}

void Facts::add_gpu_port(const PciAddress& port, const PciAddress& gpu) {
  if (gpu_ports_.size() < kMost) gpu_ports_.emplace(port, slot_of(gpu));
}

std::optional<PciAddress> Facts::gpu_of(const PciAddress& address) const {
  if (gpu_slot(address)) return slot_of(address);
  const auto [first, last] = gpu_ports_.equal_range(address);
  if (first == last || std::next(first) != last) return std::nullopt;
  return first->second;
}

void Facts::add_minor(unsigned minor, const PciAddress& address) {
  if (minors_.size() < kMost) minors_.insert_or_assign(minor, address);
}

void Facts::add_program(std::string_view name, std::uint32_t pid) {
  if (pid == 0) return;
  if (pids_.size() < kMost) pids_.insert(pid);
  if (!name.empty() && programs_.size() < kMost) programs_.insert(std::string(name));
}

bool Facts::gpu_slot(const PciAddress& address) const {
  return gpu_slots_.contains(slot_of(address));
}

Relation Facts::port(const PciAddress& address) const {
  if (gpu_switches_.contains(address) || gpu_ports_.contains(address)) return Relation::Gpu;
  const auto range = bridges_.find(address);
  if (range != bridges_.end()) {
    const auto below = [&](const PciAddress& a) {
      return a.domain == address.domain && a.bus >= range->second.first && a.bus <= range->second.last;
    };
    if (std::ranges::any_of(gpu_slots_, below)) return Relation::Gpu;
    if (std::ranges::any_of(functions_, [&](const auto& f) { return below(f.first); })) return Relation::NotGpu;
  }
  if (all_ports_known_) return Relation::NotGpu;
  // Nothing tells what lies below it: not a GPU, when only other devices complain and no GPU's driver is in the log.
  return foreign_error_ && !gpu_driver_ && gpu_slots_.empty() ? Relation::NotGpu : Relation::Unknown;
}

Relation Facts::relation(const PciAddress& address, std::uint16_t from) const {
  if ((from & kGpuDrivers) != 0 || gpu_slot(address)) return Relation::Gpu;
  if ((from & Port) != 0) return port(address);
  if ((from & Other) != 0) return Relation::NotGpu;
  const auto function = functions_.find(address);
  if (function != functions_.end() && !bridges_.contains(address)) return Relation::NotGpu;
  return port(address);
}

std::optional<PciAddress> Facts::minor(unsigned number) const {
  const auto it = minors_.find(number);
  return it == minors_.end() ? std::nullopt : std::optional(it->second);
}

bool Facts::uses_gpu(std::string_view program, std::uint32_t pid) const {
  return pids_.contains(pid) || programs_.contains(program) ||
         std::ranges::find(kGpuPrograms, program) != kGpuPrograms.end();
}

}  // namespace gpuhealth::klog
