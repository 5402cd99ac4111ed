// SPDX-License-Identifier: Apache-2.0
// Text to JSON in one place: the parser is compiled once, not in every file that reads some.
#pragma once

#include <string_view>

#include <nlohmann/json.hpp>

namespace gpuhealth {

// Json is nlohmann::json or nlohmann::ordered_json. What is no JSON becomes a discarded value; nothing is thrown.
template <class Json>
Json parse_json(std::string_view text);

extern template nlohmann::json parse_json<nlohmann::json>(std::string_view);
extern template nlohmann::ordered_json parse_json<nlohmann::ordered_json>(std::string_view);

}  // namespace gpuhealth
