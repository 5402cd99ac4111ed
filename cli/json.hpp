// SPDX-License-Identifier: Apache-2.0
// The JSON that programs read; docs/json.md is its contract, and tests check one against the other. Times are UTC,
// "2026-11-30T14:02:07Z"; what is not known is null; integral numbers are written as integers.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "cli/doctor.hpp"
#include "cli/machine.hpp"
#include "cli/plot.hpp"
#include "core/error.hpp"
#include "telemetry/inspect.hpp"
#include "telemetry/klog/types.hpp"

namespace gpuhealth::cli {

using Json = nlohmann::ordered_json;

Json json_status(const Machine& machine);
Json json_devices(std::span<const dbus::DeviceView> devices);
Json json_conditions(std::span<const Condition> conditions);
Json json_condition(const Condition& condition);
Json json_explain(ConditionType type, std::span<const Condition> conditions);
Json json_history(const ReadingInfo& metric, WallTime since, WallTime until, std::span<const Series> series);
Json json_doctor(std::span<const CheckResult> results);
Json json_change(const MachineChange& change, WallTime now);
Json json_error(const Error& error);

Json json_inspect(const telemetry::Inspection& inspection, std::span<const std::vector<Condition>> conditions);
Json json_metrics(const telemetry::GpuMetrics& metrics);
Json json_log(std::span<const klog::Event> events);

// The building blocks.
Json number(double value);  // null for infinities and NaN
Json time_or_null(WallTime time);
Json text_or_null(const std::string& text);
Json json_client(const GpuClient& client, const std::string& name);
Json json_compute_nodes(std::span<const ComputeNode> nodes);
Json json_reading(const Reading& reading);
// Element `index` exactly: a 64-bit counter does not go through a double.
Json metrics_number(const telemetry::MetricsField& field, std::size_t index);

// ASCII only, so that no byte of it can act on a terminal. `pretty`: indented; else one line.
std::string dump(const Json& json, bool pretty = true);

}  // namespace gpuhealth::cli
