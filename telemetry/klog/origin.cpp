// SPDX-License-Identifier: Apache-2.0
#include "telemetry/klog/origin.hpp"

#include <algorithm>
#include <array>

namespace gpuhealth::klog {
namespace {

constexpr auto npos = std::string_view::npos;

struct DriverRow {
  std::string_view name;
  std::uint16_t from;
};
constexpr std::array kDrivers = std::to_array<DriverRow>({
    {"amdgpu", Amd},
    {"kfd", Amd},
    {"amdkfd", Amd},
    {"kfd2kgd", Amd},
    {"amdgpu_xcp", Amd},
    {"radeon", Radeon},
    {"nvidia", Nvidia},
    {"NVRM", Nvidia},
    {"nouveau", Nouveau},
    {"i915", I915},
    {"xe", Xe},
    {"pcieport", Port},
    {"pciehp", Port},
    {"pcie_bus", Port},
    {"nvidia-modeset", Nvidia},
    {"nvidia-gpu", Other},  // the card's USB-C controller
});

// Functions that only one driver has, for lines that name no module ("[drm:amdgpu_job_timedout] *ERROR* …").
struct FunctionRow {
  std::string_view prefix;
  std::uint16_t from;
};
constexpr std::array kFunctions = std::to_array<FunctionRow>({
    {"amdgpu", Amd},      {"gfx_v", Amd},         {"gmc_v", Amd},
    {"sdma_v", Amd},      {"psp_", Amd},          {"smu_", Amd},
    {"vcn_v", Amd},       {"uvd_v", Amd},         {"vce_v", Amd},
    {"dc_", Amd},         {"dm_", Amd},           {"dmub_", Amd},
    {"vi_", Amd},         {"soc15_", Amd},        {"radeon", Radeon},
    {"r600_", Radeon},    {"evergreen_", Radeon}, {"atom_execute", Radeon},
    {"i915", I915},       {"intel_", I915},       {"xe_", Xe},
    {"nouveau", Nouveau}, {"nv50_", Nouveau},
});

bool word_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
}
bool hex_char(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}
int hex_value(char c) {
  return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
}

// "0000:03:00.0" by its shape only: "0000:de:ad.0" is no address and takes the same place.
std::size_t address_shape(std::string_view text) {
  std::size_t i = 0;
  while (i < text.size() && i < 8 && hex_char(text[i])) ++i;
  if (i < 4 || i + 8 > text.size() || text[i] != ':' || !hex_char(text[i + 1]) || !hex_char(text[i + 2]) ||
      text[i + 3] != ':' || !hex_char(text[i + 4]) || !hex_char(text[i + 5]) || text[i + 6] != '.' ||
      !hex_char(text[i + 7]))
    return 0;
  return i + 8;
}

void skip_spaces(std::string_view& text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
}

std::string_view word_at(std::string_view text) {
  std::size_t n = 0;
  while (n < text.size() && word_char(text[n])) ++n;
  return text.substr(0, n);
}

void name_driver(Origin& out, std::uint16_t from, std::string_view name) {
  if (out.from != Bare && (out.from & Other) == 0) return;
  out.from = from;
  out.driver = name;
}

std::uint16_t from_function(std::string_view function) {
  if (function.starts_with('.')) function.remove_prefix(1);
  for (const auto& row : kFunctions)
    if (function.starts_with(row.prefix)) return row.from;
  return Bare;
}

// "[drm:function [module]]", "[drm:function]", "[drm]", FreeBSD's "[drm ERROR :function]".
bool take_drm(Origin& out) {
  auto& text = out.text;
  if (!text.starts_with("[drm")) return false;
  const auto close = text.find(']');
  if (close == npos) return false;
  const auto inside = text.substr(1, close - 1);
  std::size_t end = close + 1;
  if (const auto colon = inside.find(':'); colon != npos) {
    const auto bracket = inside.find('[');
    const auto function = inside.substr(colon + 1, (bracket == npos ? inside.size() : bracket) - colon - 1);
    std::uint16_t from = Bare;
    std::string_view name = function;
    if (bracket != npos) {
      name = inside.substr(bracket + 1);
      from = from_driver(name);
      if (end < text.size() && text[end] == ']') ++end;
      if (name == "amdttm" || name == "amddrm") from = Amd;
    }
    if (from == Bare || from == Other) from = from_function(function);
    if (from != Bare) name_driver(out, from, name);
  }
  text.remove_prefix(end);
  return true;
}

// "{14}": the number of a RAS event; "[powerplay]"; "*ERROR*".
bool take_mark(Origin& out) {
  auto& text = out.text;
  for (const std::string_view mark : {"*ERROR*", "[powerplay]", "[amdgpu]"}) {
    if (!text.starts_with(mark)) continue;
    text.remove_prefix(mark.size());
    return true;
  }
  if (!text.starts_with('{')) return false;
  const auto close = text.find('}');
  if (close > 12 || close == 1 ||
      !std::ranges::all_of(text.substr(1, close - 1), [](char c) { return c >= '0' && c <= '9'; }))
    return false;
  text.remove_prefix(close + 1);
  return true;
}

// "Tile0: ", "GT1: ": parts of an Intel GPU.
bool take_part(Origin& out) {
  if ((out.from & (I915 | Xe)) == 0) return false;
  auto& text = out.text;
  for (const std::string_view part : {"Tile", "GT"}) {
    if (!text.starts_with(part) || part.size() + 2 > text.size()) continue;
    if (text[part.size()] < '0' || text[part.size()] > '9' || text[part.size() + 1] != ':') continue;
    text.remove_prefix(part.size() + 2);
    return true;
  }
  return false;
}

bool take_named_device(Origin& out, std::string_view word) {
  auto& text = out.text;
  if (word.size() + 1 >= text.size() || text[word.size()] != ' ') return false;
  const auto behind = text.substr(word.size() + 1);
  const auto shape = address_shape(behind);
  if (shape == 0 || shape >= behind.size() || behind[shape] != ':') {
    // "kfd kfd: amdgpu: …", "pcieport-like pcie001: …"
    const auto second = word_at(behind);
    if (word != "kfd" || second != word || second.size() >= behind.size() || behind[second.size()] != ':') return false;
    name_driver(out, Amd, word);
    text = behind.substr(second.size() + 1);
    return true;
  }
  const auto from = from_driver(word);
  name_driver(out, from == Bare ? std::uint16_t{Other} : from, word);
  std::size_t length = 0;
  if (!out.device) out.device = address_at(behind, length);
  text = behind.substr(shape + 1);
  return true;
}

bool take_driver(Origin& out) {
  auto& text = out.text;
  const auto word = word_at(text);
  if (word.empty() || word.size() >= text.size()) return false;
  if (take_named_device(out, word)) return true;
  if (text[word.size()] != ':') return false;
  const auto from = from_driver(word);
  if (from == Bare) return false;
  name_driver(out, from, word);
  text.remove_prefix(word.size() + 1);
  return true;
}

// FreeBSD: "drmn0: …".
bool take_drmn(Origin& out) {
  auto& text = out.text;
  if (!text.starts_with("drmn")) return false;
  std::size_t n = 4;
  while (n < text.size() && text[n] >= '0' && text[n] <= '9') ++n;
  if (n == 4 || n >= text.size() || text[n] != ':') return false;
  text.remove_prefix(n + 1);
  return true;
}

}  // namespace

std::uint16_t from_driver(std::string_view name) {
  for (const auto& row : kDrivers)
    if (row.name == name) return row.from;
  return Bare;
}

std::optional<PciAddress> address_at(std::string_view text, std::size_t& length) {
  const auto shape = address_shape(text);
  if (shape == 0) return std::nullopt;
  PciAddress out;
  std::size_t i = 0;
  for (; text[i] != ':'; ++i) out.domain = out.domain * 16 + static_cast<std::uint32_t>(hex_value(text[i]));
  const auto pair = [&](std::size_t at) { return hex_value(text[at]) * 16 + hex_value(text[at + 1]); };
  const int device = pair(i + 4);
  const int function = hex_value(text[i + 7]);
  if (device > 31 || function > 7) return std::nullopt;
  out.bus = static_cast<std::uint8_t>(pair(i + 1));
  out.device = static_cast<std::uint8_t>(device);
  out.function = static_cast<std::uint8_t>(function);
  length = shape;
  return out;
}

Origin parse_origin(std::string_view message) {
  Origin out;
  out.text = message;
  skip_spaces(out.text);
  while (take_drm(out) || take_mark(out) || take_part(out) || take_driver(out) || take_drmn(out)) skip_spaces(out.text);
  return out;
}

}  // namespace gpuhealth::klog
