// SPDX-License-Identifier: Apache-2.0
#include "actions/state.hpp"

#include <array>

namespace gpuhealth::actions {
namespace {

constexpr auto kStates = std::to_array<ActionStateInfo>({
#define ACTION_STATE(id, name, open, meaning) {ActionState::id, name, open, meaning},
#include "actions/states.def"
#undef ACTION_STATE
});

}  // namespace

std::span<const ActionStateInfo> all_action_states() {
  return kStates;
}

std::string_view to_string(ActionState state) {
  return kStates.at(static_cast<std::size_t>(state)).name;
}

}  // namespace gpuhealth::actions
