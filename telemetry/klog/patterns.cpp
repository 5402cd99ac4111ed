// SPDX-License-Identifier: Apache-2.0
#include "telemetry/klog/patterns.hpp"

#include <algorithm>
#include <array>
#include <tuple>

#include "telemetry/klog/automaton.hpp"

namespace gpuhealth::klog {
namespace {

constexpr auto npos = std::string_view::npos;
constexpr Severity usual(Type type) {
  constexpr std::array kSeverities = std::to_array<Severity>({
#define KLOG_TYPE(id, name, severity, fold, meaning) Severity::severity,
#include "telemetry/klog/types.def"
#undef KLOG_TYPE
  });
  return kSeverities.at(static_cast<std::size_t>(type));
}

enum class Given : std::uint8_t { Usual, Info, Warning, Critical };
constexpr Severity resolve(Given given, Type type) {
  switch (given) {
    case Given::Info:
      return Severity::Info;
    case Given::Warning:
      return Severity::Warning;
    case Given::Critical:
      return Severity::Critical;
    case Given::Usual:
      break;
  }
  return usual(type);
}

constexpr std::array kRows = std::to_array<PatternRow>({
#define KLOG(type, severity, from, weight, pattern, source) \
  {Type::type, resolve(Given::severity, Type::type), from, Weight::weight, pattern, source},
#define KLOG_TENTATIVE(type, severity, from, pattern, source) \
  {Type::type, resolve(Given::severity, Type::type), from, Weight::Tentative, pattern, source},
#define KLOG_QUIET(from, pattern, source) {Type::Count, Severity::Info, from, Weight::Quiet, pattern, source},
#include "telemetry/klog/patterns.def"
#undef KLOG
#undef KLOG_TENTATIVE
#undef KLOG_QUIET
});

constexpr std::array kXids = std::to_array<XidInfo>({
#define XID(number, severity, text) {number, Severity::severity, text},
#include "telemetry/klog/xids.def"
#undef XID
});

struct HookRow {
  Hook hook;
  std::string_view word;  // anywhere in the line
};
constexpr std::array kHooks = std::to_array<HookRow>({
    {Hook::Process, "process "},
    {Hook::Minor, " on minor "},
    {Hook::Enumerated, "] type 0"},
    {Hook::Bridge, "pci bridge to [bus "},
    {Hook::Driver, "kernel modesetting ("},
    {Hook::Driver, ": enabling device ("},
    {Hook::Driver, "vram memory ready"},
    {Hook::Aer, "pcie bus error"},
    {Hook::Aer, " error received"},
    {Hook::Aer, " error message received"},
    {Hook::Aer, "error status/mask="},
    {Hook::Aer, "device recovery failed"},
    {Hook::Aer, "can't recover ("},
    {Hook::Aer, "containment event"},
    {Hook::Aer, ":    ["},  // "   [12] Timeout": the kinds of error of the line before
    {Hook::Aer, "card not present"},
    {Hook::Aer, "link down"},
    {Hook::Ghes, "[hardware error]:"},
    {Hook::Xid, "xid ("},
    {Hook::Xid, "gsp: rc "},
    {Hook::Trace, " blocked for more than "},
    {Hook::Trace, "soft lockup"},
    {Hook::Trace, "hard lockup"},
    {Hook::Trace, "detected stall"},
    {Hook::Trace, "null pointer dereference"},
    {Hook::Trace, "unable to handle "},
    {Hook::Trace, "general protection fault"},
    {Hook::Trace, "kernel bug at"},
    {Hook::Trace, "oops: "},
    {Hook::Trace, "invalid opcode: 0000"},
    {Hook::Trace, "warning: "},
    {Hook::Frame, "[amdgpu"},
    {Hook::Frame, "[radeon"},
    {Hook::Frame, "[nouveau"},
    {Hook::Frame, "[nvidia"},
    {Hook::Frame, "[i915"},
    {Hook::Frame, "[xe]"},
    {Hook::Frame, "[xe "},
    {Hook::Frame, "[gpu_sched"},
    {Hook::Frame, "[amd-sched"},
    {Hook::Frame, "[amdttm"},
    {Hook::Frame, "amdgpu_"},
    {Hook::Frame, "drm_sched_"},
    {Hook::TraceEnd, "end trace"},
    {Hook::Oom, "invoked oom-killer"},
    {Hook::Oom, "out of memory: kill"},
    {Hook::Oom, "oom-kill:"},
});

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
}

bool same(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) { return lower(x) == lower(y); });
}

std::size_t find_from(std::string_view text, std::string_view piece, std::size_t from) {
  for (std::size_t at = from; at + piece.size() <= text.size(); ++at)
    if (lower(text[at]) == lower(piece[0]) && same(text.substr(at, piece.size()), piece)) return at;
  return npos;
}

enum class Gap : std::uint8_t { None, Any, Subject, Address };

// Takes the gap at the front of `pattern`, and the literal behind it.
Gap take_gap(std::string_view& pattern) {
  if (pattern.starts_with('*')) return pattern.remove_prefix(1), Gap::Any;
  if (pattern.starts_with("{}")) return pattern.remove_prefix(2), Gap::Subject;
  if (pattern.starts_with("{pci}")) return pattern.remove_prefix(5), Gap::Address;
  return Gap::None;
}
std::string_view take_literal(std::string_view& pattern) {
  std::size_t n = 0;
  while (n < pattern.size() && pattern[n] != '*' && pattern.substr(n, 2) != "{}" && pattern.substr(n, 5) != "{pci}")
    ++n;
  const auto out = pattern.substr(0, n);
  pattern.remove_prefix(n);
  return out;
}

std::string_view longest_literal(std::string_view pattern) {
  std::string_view best;
  while (!pattern.empty()) {
    const auto literal = take_literal(pattern);
    if (literal.size() > best.size()) best = literal;
    std::ignore = take_gap(pattern);
  }
  return best;
}

Automaton build() {
  Automaton automaton;
  for (std::size_t i = 0; i < kRows.size(); ++i)
    automaton.add(longest_literal(kRows.at(i).pattern), static_cast<std::uint16_t>(i));
  for (std::size_t i = 0; i < kHooks.size(); ++i)
    automaton.add(kHooks.at(i).word, static_cast<std::uint16_t>(kRows.size() + i));
  automaton.finish();
  return automaton;
}

const Automaton& automaton() {
  static const Automaton built = build();
  return built;
}

}  // namespace

std::span<const PatternRow> all_patterns() {
  return kRows;
}

std::span<const XidInfo> all_xids() {
  return kXids;
}

Severity xid_severity(unsigned number) {
  const auto* const row = std::ranges::find(kXids, number, &XidInfo::number);
  return row == kXids.end() ? Severity::Warning : row->severity;
}

bool fits(std::string_view pattern, std::string_view text, Match& match) {
  std::size_t at = 0;
  while (!pattern.empty()) {
    const auto gap = take_gap(pattern);
    if (gap == Gap::Address) {
      std::size_t length = 0;
      match.device = address_at(text.substr(at), length);
      if (!match.device) return false;
      at += length;
      continue;
    }
    const auto literal = take_literal(pattern);
    if (literal.empty()) {
      if (gap == Gap::Subject) match.subject = text.substr(at, std::min(text.find(' ', at), text.size()) - at);
      continue;
    }
    const auto found =
        gap == Gap::None ? (same(text.substr(at, literal.size()), literal) ? at : npos) : find_from(text, literal, at);
    if (found == npos) return false;
    if (gap == Gap::Subject) match.subject = text.substr(at, found - at);
    at = found + literal.size();
  }
  return true;
}

void find_candidates(std::string_view line, Candidates& out) {
  out.rows.clear();
  out.hooks = 0;
  automaton().run(line, [&](std::uint16_t id) {
    if (id < kRows.size())
      out.rows.push_back(id);
    else
      out.hooks |= 1U << static_cast<unsigned>(kHooks[id - kRows.size()].hook);
  });
  if (out.rows.size() < 2) return;
  std::ranges::sort(out.rows);
  out.rows.erase(std::ranges::unique(out.rows).begin(), out.rows.end());
}

}  // namespace gpuhealth::klog
