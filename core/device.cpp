// SPDX-License-Identifier: Apache-2.0
#include "core/device.hpp"

#include <array>
#include <cctype>
#include <cstdio>

namespace gpuhealth {
namespace {

struct FamilyRow {
  std::string_view name;
  bool apu;
};
constexpr std::array<FamilyRow, 20> kFamilies = {{
    {"unknown", false},     {"Southern Islands", false},
    {"Sea Islands", false}, {"Volcanic Islands", false},
    {"Vega 10", false},     {"Vega 12", false},
    {"Vega 20", false},     {"MI100", false},
    {"MI200", false},       {"MI300", false},
    {"MI350", false},       {"Navi 1x", false},
    {"Navi 2x", false},     {"Navi 3x", false},
    {"Navi 4x", false},     {"Raven APU", true},
    {"Renoir APU", true},   {"Van Gogh APU", true},
    {"RDNA2 APU", true},    {"RDNA3 APU", true},
}};

// Identity goes into file names and object paths: anything but letters, digits, '.', ':' and '-' becomes '_'.
std::string clean(std::string_view text) {
  std::string out;
  for (const char c : text)
    out += std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == ':' || c == '-' ? c : '_';
  return out;
}

}  // namespace

std::string_view to_string(AsicFamily family) {
  return kFamilies.at(static_cast<std::size_t>(family)).name;
}

bool is_apu(AsicFamily family) {
  return kFamilies.at(static_cast<std::size_t>(family)).apu;
}

std::string DeviceInfo::id() const {
  if (!unique_id.empty()) return "uid-" + clean(unique_id);
  if (!serial.empty()) return "serial-" + clean(serial);
  char ids[64];
  std::snprintf(ids, sizeof ids, "-%04x:%04x-%04x:%04x", vendor_id, device_id, subsystem_vendor.value_or(0),
                subsystem_device.value_or(0));
  std::string out = "pci-" + to_string(pci) + ids;
  if (!vbios_version.empty()) out += "-" + clean(vbios_version);
  return out;
}

}  // namespace gpuhealth
