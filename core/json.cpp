// SPDX-License-Identifier: Apache-2.0
#include "core/json.hpp"

namespace gpuhealth {

template <class Json>
Json parse_json(std::string_view text) {
  return Json::parse(text, nullptr, false);
}

template nlohmann::json parse_json<nlohmann::json>(std::string_view);
template nlohmann::ordered_json parse_json<nlohmann::ordered_json>(std::string_view);

}  // namespace gpuhealth
