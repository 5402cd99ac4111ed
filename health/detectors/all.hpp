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
std::unique_ptr<Detector> make_gpu_hang();
std::unique_ptr<Detector> make_reset_loop();
std::unique_ptr<Detector> make_device_lost();
std::unique_ptr<Detector> make_firmware_missing();
std::unique_ptr<Detector> make_ras_uncorrectable();
std::unique_ptr<Detector> make_ras_correctable();
std::unique_ptr<Detector> make_bad_pages();
std::unique_ptr<Detector> make_job_stalled();
std::unique_ptr<Detector> make_job_fell_back();
std::unique_ptr<Detector> make_vram_leak();
std::unique_ptr<Detector> make_throttle_contradicted();
std::unique_ptr<Detector> make_sources_disagree();

}  // namespace gpuhealth::health
