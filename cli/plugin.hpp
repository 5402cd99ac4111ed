// SPDX-License-Identifier: Apache-2.0
// The verdict as a monitoring plug-in says it (Monitoring Plugins Development Guidelines): one line with performance
// data, and 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN. Also what node-problem-detector and Slurm read.
#pragma once

#include <string>

#include "cli/json.hpp"
#include "cli/machine.hpp"

namespace gpuhealth::cli {

enum class PluginState : int { Ok = 0, Warning = 1, Critical = 2, Unknown = 3 };
std::string_view to_string(PluginState state);  // "OK", …

struct PluginResult {
  PluginState state = PluginState::Unknown;
  std::string text;               // one line, without state and data; no '|'
  std::vector<std::string> more;  // a line a condition
  std::vector<std::string> data;  // "'03:00.0 temperature.edge'=45C;;110"
};
// `device`: an id; empty: all, and what concerns the machine.
PluginResult plugin_result(const Machine& machine, const std::string& device);

// Node-problem-detector takes 80 characters of the first line, 0 for well, 1 for a problem, 2 for unknown.
enum class PluginForm : std::uint8_t { Nagios, Npd };
std::string plugin_text(const PluginResult& result, PluginForm form);
int plugin_code(PluginState state, PluginForm form);

Json json_plugin(const PluginResult& result);

}  // namespace gpuhealth::cli
