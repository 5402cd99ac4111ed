// SPDX-License-Identifier: Apache-2.0
#include "core/action.hpp"

#include <algorithm>
#include <array>
#include <iterator>

namespace gpuhealth {
namespace {

constexpr auto kActions = std::to_array<ActionInfo>({
#define ACTION(id, name, risk, does, undo) {ActionKind::id, name, ActionRisk::risk, does, undo},
#define ACTION_PARAM(action, name, kind, required, standard, meaning)
#include "core/action.def"
#undef ACTION
#undef ACTION_PARAM
});
static_assert(kActions.size() == static_cast<std::size_t>(ActionKind::Count));

constexpr auto kParams = std::to_array<ActionParam>({
#define ACTION(id, name, risk, does, undo)
#define ACTION_PARAM(action, name, kind, required, standard, meaning) \
  {ActionKind::action, name, ParamKind::kind, required, standard, meaning},
#include "core/action.def"
#undef ACTION
#undef ACTION_PARAM
});

}  // namespace

std::span<const ActionInfo> all_actions() {
  return kActions;
}

const ActionInfo& info(ActionKind kind) {
  return kActions.at(static_cast<std::size_t>(kind));
}

std::string_view to_string(ActionKind kind) {
  return info(kind).name;
}

std::optional<ActionKind> action_kind_from(std::string_view name) {
  const auto* const at = std::ranges::find(kActions, name, &ActionInfo::name);
  return at == kActions.end() ? std::nullopt : std::optional(at->kind);
}

std::vector<ActionParam> params_of(ActionKind kind) {
  std::vector<ActionParam> out;
  std::ranges::copy_if(kParams, std::back_inserter(out), [kind](const ActionParam& p) { return p.action == kind; });
  return out;
}

}  // namespace gpuhealth
