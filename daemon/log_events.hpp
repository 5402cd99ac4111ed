// SPDX-License-Identifier: Apache-2.0
// The kernel log's events as the house keeps them, and the place up to which the log was dealt with.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/event.hpp"
#include "daemon/hotplug.hpp"
#include "health/signs.hpp"
#include "telemetry/frame.hpp"

namespace gpuhealth::daemon {

// Without `device`. "the reset did not bring the GPU back: amdgpu 0000:03:00.0: GPU reset(2) failed".
Event event_of(const telemetry::KlogFrame::Item& item, WallTime now, const std::string& boot_id);
Event event_of(const Notice& notice, WallTime now, const std::string& boot_id);
Event lost_records(std::uint64_t lost, WallTime now, const std::string& boot_id);

// What the line is a sign of, for health; nothing for most.
std::optional<health::Sign> sign_of(const klog::Event& event);

// One small file of the state folder: the boot's id and a record's number. Nothing for another boot.
std::optional<std::uint64_t> read_log_place(const std::string& state_dir, const std::string& boot_id);
// Best effort: without it a restart of the daemon tells this boot's events again.
void write_log_place(const std::string& state_dir, const std::string& boot_id, std::uint64_t sequence);

}  // namespace gpuhealth::daemon
