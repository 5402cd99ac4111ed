// SPDX-License-Identifier: Apache-2.0
// The text of every file in a PCI function's folder, as the kernel prints it. Pure: nothing is written here.
// Paths are relative to the function's folder; "hwmon/" stands for its hwmon/hwmonN/.
#pragma once

#include <string>
#include <vector>

#include "sim/card.hpp"

namespace gpuhealth::sim {

struct FileText {
  std::string path;
  std::string bytes;
};

// What does not change while the card is there.
std::vector<FileText> fixed_files(const Card& card);
// What follows the card's state.
std::vector<FileText> live_files(const Card& card);

enum class PortKind : std::uint8_t { Root, SwitchUp, SwitchDown };
std::vector<FileText> fixed_port_files(const Card& card, PortKind kind);
std::vector<FileText> live_port_files(const Card& card, PortKind kind);

}  // namespace gpuhealth::sim
