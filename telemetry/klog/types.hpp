// SPDX-License-Identifier: Apache-2.0
// What the kernel log says of GPUs, as types (types.def), and one classified event.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/condition.hpp"
#include "core/pci.hpp"

namespace gpuhealth::klog {

enum class Type : std::uint8_t {
#define KLOG_TYPE(id, name, severity, fold, meaning) id,
#include "telemetry/klog/types.def"
#undef KLOG_TYPE
  Count,
};

struct TypeInfo {
  Type type{};
  std::string_view name;  // "gpu.reset.failed"
  Severity severity = Severity::Warning;
  unsigned fold_s = 0;
  std::string_view meaning;
};
std::span<const TypeInfo> all_types();
const TypeInfo& info(Type type);
std::optional<Type> type_from(std::string_view name);

struct Event {
  std::uint64_t line = 0;  // of the log, from 1; 0 for a live one
  Type type{};
  Severity severity = Severity::Warning;
  std::optional<PciAddress> device;  // nothing when the line does not say, nor the log elsewhere
  std::uint64_t count = 1;           // lines folded into it
  std::string text;                  // the message, without time and host
  std::string time;                  // as the log writes it; empty when it does not
  std::string process;               // of the program concerned, where the log names one
  std::uint32_t pid = 0;             // 0: not named
  std::uint16_t from = 0;            // who says it, bits of klog::From
  std::string subject;               // ring, RAS block, Xid number …; empty when the type has none
};

}  // namespace gpuhealth::klog
