// SPDX-License-Identifier: Apache-2.0
// Writes a synthetic machine's /sys and /proc below a folder, as a --sysroot or a bind mount takes it. Files keep their
// inode when they change, so a reader that holds them open sees new values, as in the real sysfs.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "sim/card.hpp"

namespace gpuhealth::sim {

struct MachineFacts {
  std::string kernel_release = "6.12.48+deb13-amd64";
  std::string boot_id = "5ee05ee0-0000-4000-8000-000000000001";
  std::string dkms_version;  // /sys/module/amdgpu/version, which only the DKMS driver has; empty: in-tree
};

// `dir` becomes the root: dir/sys, dir/proc. What was there of an earlier machine is removed.
Result<void> write_machine(const std::filesystem::path& dir, std::span<const Card> cards,
                           const MachineFacts& facts = {});

// Hot-plug: takes the lowest free card number.
Result<void> add_card(const std::filesystem::path& dir, const Card& card);
// Surprise removal of the GPU at `gpu`, with the switch of its own card: folders, links, KFD node.
Result<void> remove_card(const std::filesystem::path& dir, const PciAddress& gpu);

// Writes all that follows the card's state again.
Result<void> update_card(const std::filesystem::path& dir, const Card& card);

// The folder of a PCI function (GPU or port) below dir/sys/devices.
Result<std::filesystem::path> function_dir(const std::filesystem::path& dir, const PciAddress& function);

// One file of a PCI function, `file` as in its folder, "hwmon/temp2_input" for hwmon/hwmonN/temp2_input.
// set() adds the line end that sysfs prints; write_file() writes the bytes as they are.
Result<void> set(const std::filesystem::path& dir, const PciAddress& function, std::string_view file,
                 std::string_view value);
Result<void> write_file(const std::filesystem::path& dir, const PciAddress& function, std::string_view file,
                        std::string_view bytes);

}  // namespace gpuhealth::sim
