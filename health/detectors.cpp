// SPDX-License-Identifier: Apache-2.0
// The one table of detectors. gpu-missing and source-stuck are not here: they are told to the engine, not seen in
// samples.
#include <array>

#include "health/detector.hpp"
#include "health/detectors/all.hpp"

namespace gpuhealth::health {
namespace {

using T = Thresholds;
using C = ConditionType;

constexpr std::array kRows = std::to_array<DetectorRow>({
    {C::Overheating, make_overheating, &T::overheating_for_s, &T::overheating_clear_for_s, WhenAsleep::Ends, true},
    {C::ThermalThrottling, make_thermal_throttling, &T::thermal_throttling_for_s, &T::thermal_throttling_clear_for_s,
     WhenAsleep::Ends, true},
    // The driver keeps a lowered limit through a sleep.
    {C::PowerThrottling, make_power_throttling, &T::power_throttling_for_s, &T::power_throttling_clear_for_s,
     WhenAsleep::Wait, true},
    // The clock follows the load within milliseconds, averages within a second: one look may catch the moment between.
    {C::ClocksStuckLow, make_clocks_stuck_low, &T::clocks_for_s, &T::clocks_clear_for_s, WhenAsleep::Ends, false},
    {C::PcieDowngraded, make_pcie_downgraded, &T::pcie_for_s, &T::pcie_clear_for_s, WhenAsleep::Wait, true},
    // A rate, a move and "it worked before" need two looks.
    {C::PcieErrors, make_pcie_errors, &T::pcie_errors_for_s, &T::pcie_errors_clear_for_s, WhenAsleep::Wait, false},
    {C::VramEvicted, make_vram_evicted, &T::vram_for_s, &T::vram_clear_for_s, WhenAsleep::Wait, false},
    {C::SmuDead, make_smu_dead, &T::smu_dead_for_s, &T::smu_dead_clear_for_s, WhenAsleep::Wait, false},
    // The kernel calls a device without a driver "suspended".
    {C::DriverMissing, make_driver_missing, &T::driver_missing_for_s, &T::driver_missing_clear_for_s, WhenAsleep::Judge,
     true},
    // What the kernel says holds through a sleep.
    {C::GpuHang, make_gpu_hang, &T::gpu_hang_for_s, &T::gpu_hang_clear_for_s, WhenAsleep::Wait, false},
    {C::ResetLoop, make_reset_loop, &T::reset_loop_for_s, &T::reset_loop_clear_for_s, WhenAsleep::Judge, false},
    {C::DeviceLost, make_device_lost, &T::device_lost_for_s, &T::device_lost_clear_for_s, WhenAsleep::Wait, false},
    {C::FirmwareMissing, make_firmware_missing, &T::firmware_missing_for_s, &T::firmware_missing_clear_for_s,
     WhenAsleep::Judge, false},
    {C::RasUncorrectable, make_ras_uncorrectable, &T::ras_uncorrectable_for_s, &T::ras_uncorrectable_clear_for_s,
     WhenAsleep::Wait, true},
    {C::RasCorrectable, make_ras_correctable, &T::ras_correctable_for_s, &T::ras_correctable_clear_for_s,
     WhenAsleep::Wait, false},
    {C::BadPages, make_bad_pages, &T::bad_pages_for_s, &T::bad_pages_clear_for_s, WhenAsleep::Judge, true},
    // These follow programs and averages: one look says nothing.
    {C::JobStalled, make_job_stalled, &T::job_stalled_for_s, &T::job_stalled_clear_for_s, WhenAsleep::Ends, false},
    {C::JobFellBack, make_job_fell_back, &T::job_fell_back_for_s, &T::job_fell_back_clear_for_s, WhenAsleep::Judge,
     false},
    {C::VramLeak, make_vram_leak, &T::vram_leak_for_s, &T::vram_leak_clear_for_s, WhenAsleep::Wait, false},
    {C::ThrottleContradicted, make_throttle_contradicted, &T::throttle_contradicted_for_s,
     &T::throttle_contradicted_clear_for_s, WhenAsleep::Ends, false},
    {C::SourcesDisagree, make_sources_disagree, &T::sources_disagree_for_s, &T::sources_disagree_clear_for_s,
     WhenAsleep::Wait, false},
});

}  // namespace

std::span<const DetectorRow> all_detectors() {
  return kRows;
}

}  // namespace gpuhealth::health
