// SPDX-License-Identifier: Apache-2.0
// The parts of gpuhealth-act. All print one JSON object and return the exit code.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/error.hpp"

namespace gpuhealth::actions {

using Json = nlohmann::ordered_json;

int act_kernel(const std::vector<std::string>& arguments);
int act_device(const std::vector<std::string>& arguments);
int act_policy(const std::vector<std::string>& arguments);

void print(const Json& json);
int complain(const Error& error);
int usage();

}  // namespace gpuhealth::actions
