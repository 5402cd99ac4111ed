// SPDX-License-Identifier: Apache-2.0
// The kernels that are installed in a tree, and what stands against booting each.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "grub/boot.hpp"
#include "grub/packages.hpp"

namespace gpuhealth::grub {

enum class AmdgpuModule : std::uint8_t { Unknown, InTree, Dkms, BuiltIn, Missing };
std::string_view to_string(AmdgpuModule module);  // "unknown", "in-tree", "dkms", "built-in", "missing"

struct Kernel {
  std::string release;  // as `uname -r` prints it
  std::string build;    // as `uname -v`, from the image; empty: not known
  std::optional<Package> package;
  std::string image;  // path in the tree; empty: none found
  bool image_signed = false;
  std::string initramfs;         // empty: none found
  bool initramfs_whole = false;  // it is not empty
  bool modules = false;          // modules.dep is there and not empty
  AmdgpuModule amdgpu = AmdgpuModule::Unknown;
  std::string dkms_version;   // of amdgpu, where DKMS has it in the tree
  bool dkms_lacking = false;  // DKMS has amdgpu for other kernels and not for this one
  bool running = false;
  bool next = false;                  // boots next
  bool lasting = false;               // the default
  std::int64_t installed = 0;         // when its image was written, seconds since 1970; 0: not known
  std::vector<std::string> entries;   // paths of the menu's entries that start it, plain ones first
  std::vector<std::string> problems;  // why it must not be chosen
};

struct Inventory {
  Boot boot;
  Packages packages;
  std::string distribution;     // ID of os-release, "ubuntu"
  std::string version_id;       // "24.04"
  std::vector<Kernel> kernels;  // newest first
  std::string running;          // release that runs; empty: the tree does not say
};
Result<Inventory> take_inventory(const Tree& tree);

const Kernel* find_kernel(const Inventory& inventory, std::string_view release);

// The entry of the menu to start a kernel with: a plain one of this system, not for recovery. Null: there is none.
std::optional<FlatEntry> entry_for(const Inventory& inventory, const Tree& tree, std::string_view release);

}  // namespace gpuhealth::grub
