// SPDX-License-Identifier: Apache-2.0
#include "telemetry/klog/types.hpp"

#include <array>

namespace gpuhealth::klog {
namespace {

constexpr std::array kTypes = std::to_array<TypeInfo>({
#define KLOG_TYPE(id, name, severity, fold, meaning) {Type::id, name, Severity::severity, fold, meaning},
#include "telemetry/klog/types.def"
#undef KLOG_TYPE
});

}  // namespace

std::span<const TypeInfo> all_types() {
  return kTypes;
}

const TypeInfo& info(Type type) {
  return kTypes.at(static_cast<std::size_t>(type));
}

std::optional<Type> type_from(std::string_view name) {
  for (const auto& row : kTypes)
    if (row.name == name) return row.type;
  return std::nullopt;
}

}  // namespace gpuhealth::klog
