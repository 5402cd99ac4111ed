// SPDX-License-Identifier: Apache-2.0
// Pages for people, one function a command; pure.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "cli/doctor.hpp"
#include "cli/machine.hpp"
#include "cli/page.hpp"
#include "cli/plot.hpp"
#include "telemetry/inspect.hpp"
#include "telemetry/klog/types.hpp"

namespace gpuhealth::cli {

// One screen: what is wrong first and what to do, one line a GPU, the daemon's own state.
Page render_status(const Machine& machine, const Terminal& terminal);

Page render_device(const dbus::DeviceView& device, WallTime now, const Terminal& terminal);

Page render_conditions(const std::vector<Condition>& conditions, WallTime now, const Terminal& terminal);
// What a condition means, its evidence, and what to do.
Page render_explain(const Condition& condition, WallTime now, const Terminal& terminal);
// The same of a type, with those of it that are there.
Page render_explain(ConditionType type, std::span<const Condition> conditions, WallTime now, const Terminal& terminal);

Page render_history(std::span<const Series> series, const Terminal& terminal, PlotSize size);

Page render_doctor(std::span<const CheckResult> results, const Terminal& terminal);

// `conditions` holds one list a device of the inspection.
Page render_inspect(const telemetry::Inspection& inspection, std::span<const std::vector<Condition>> conditions,
                    const Terminal& terminal);

Page render_metrics(const telemetry::GpuMetrics& metrics, const Terminal& terminal);

// One line an event, the worst said first in a summary.
Page render_log(std::span<const klog::Event> events, const Terminal& terminal);

// Readings in groups (temperature, power, …), those that the part does not have left out. Shared by devices and
// inspect.
void add_readings(Page& page, std::span<const Reading> readings, std::size_t indent);
// Partitions and XGMI links, where there are any.
void add_compute(Page& page, std::span<const ComputeNode> nodes, std::span<const std::string> peers,
                 const std::string& compute_partition, const std::string& memory_partition, const Terminal& terminal,
                 std::size_t indent);
// One line a process.
void add_clients(Page& page, std::span<const GpuClient> clients, const std::map<std::uint32_t, std::string>& names,
                 const Terminal& terminal, std::size_t indent);
// "PPT0: package power limit, slow", one a line.
void add_throttle_reasons(Page& page, std::span<const std::string> names, const Terminal& terminal, std::size_t indent);

}  // namespace gpuhealth::cli
