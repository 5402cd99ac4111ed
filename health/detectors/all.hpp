// SPDX-License-Identifier: Apache-2.0
// The detectors, one a file of the same name in this folder.
#pragma once

#include <memory>

namespace gpuhealth::health {

class Detector;

std::unique_ptr<Detector> make_overheating();
std::unique_ptr<Detector> make_thermal_throttling();
std::unique_ptr<Detector> make_power_throttling();
std::unique_ptr<Detector> make_clocks_stuck_low();
std::unique_ptr<Detector> make_pcie_downgraded();
std::unique_ptr<Detector> make_pcie_errors();
std::unique_ptr<Detector> make_vram_evicted();
std::unique_ptr<Detector> make_smu_dead();
std::unique_ptr<Detector> make_driver_missing();

}  // namespace gpuhealth::health
