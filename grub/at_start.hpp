// SPDX-License-Identifier: Apache-2.0
// What is done once at every start of the daemon: changes that were cut off are put back, what became of a trial is
// found out and written down, a one-shot that was forgotten is cleared.
#pragma once

#include <string>
#include <vector>

#include "grub/operations.hpp"

namespace gpuhealth::grub {

struct StartReport {
  std::string running;
  QualificationState state = QualificationState::Installed;  // of the running kernel
  bool on_trial = false;                                     // likewise
  std::vector<std::string> undone;                           // changes that had not come to their end
  std::vector<Became> became;
  bool cleared = false;  // a one-shot of ours was taken back
  std::vector<std::string> warnings;
};

// `ended_in_order`: boot id of the last boot at whose end the daemon was told to stop; empty: none is known. Fails when
// nothing could be written down; what the loader refuses is a warning.
Result<StartReport> at_start(const Tree& tree, const Surroundings& surroundings, const std::string& ended_in_order);

// What the loader and the trial's own entry have left behind.
BootSigns signs_of(const Inventory& inventory, const std::string& boot_id);

}  // namespace gpuhealth::grub
