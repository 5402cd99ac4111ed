// SPDX-License-Identifier: Apache-2.0
// Runs a program of the distribution (grub-mkconfig, bootctl, dracut) in a machine's root, and waits for it.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/tree.hpp"

namespace gpuhealth::grub {

// A slow machine takes a quarter of an hour to make a menu, and names each kernel that it finds; os-prober in front of
// a broken disk says nothing any more.
struct ToolPatience {
  std::chrono::milliseconds silence{std::chrono::minutes(5)};
  std::chrono::milliseconds most{std::chrono::hours(1)};
};

// An operation runs the tool, and once more when it has to put back what was there before.
inline constexpr std::chrono::minutes kOperationMost{2 * 60 + 5};

// An error when it cannot be started, fails, or is ended for its silence, with its last lines. Below a root that is not
// the running one it runs in a chroot, which needs root.
Result<void> run_tool(const Tree& tree, const std::vector<std::string>& command, const ToolPatience& patience = {});

}  // namespace gpuhealth::grub
