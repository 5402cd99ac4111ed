// SPDX-License-Identifier: Apache-2.0
// The states of actions/states.def.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace gpuhealth::actions {

enum class ActionState : std::uint8_t {
#define ACTION_STATE(id, name, open, meaning) id,
#include "actions/states.def"
#undef ACTION_STATE
};
struct ActionStateInfo {
  ActionState state;
  std::string_view name;
  bool open;
  std::string_view meaning;
};
std::span<const ActionStateInfo> all_action_states();
std::string_view to_string(ActionState state);

}  // namespace gpuhealth::actions
