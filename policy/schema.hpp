// SPDX-License-Identifier: Apache-2.0
// The JSON Schema (2020-12) of a policy file for editors, from the same table as the parser.
#pragma once

#include <string>

namespace gpuhealth::policy {

std::string json_schema();

}  // namespace gpuhealth::policy
