// SPDX-License-Identifier: Apache-2.0
// One physical GPU and what never changes while it is bound. Card and hwmon numbers are never identity.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/pci.hpp"

namespace gpuhealth {

// The ASIC generation: throttle maps, quirks and layouts hang on it. Apu* are the parts whose tables differ.
enum class AsicFamily : std::uint8_t {
  Unknown,
  SouthernIslands,  // SI: Tahiti, Pitcairn, Cape Verde, Oland, Hainan
  SeaIslands,       // CIK: Bonaire, Hawaii, Kaveri, Kabini, Mullins
  VolcanicIslands,  // VI: Topaz, Tonga, Fiji, Polaris, VegaM, Carrizo, Stoney
  Vega10,
  Vega12,
  Vega20,
  Arcturus,   // MI100
  Aldebaran,  // MI200
  Mi300,      // MI300, MI325
  Mi350,      // MI350, MI355
  Navi1x,
  Navi2x,
  Navi3x,
  Navi4x,
  ApuRaven,    // Raven, Picasso, Raven2
  ApuRenoir,   // Renoir, Lucienne, Cezanne, Barcelo
  ApuVangogh,  // Van Gogh
  ApuRdna2,    // Yellow Carp (Rembrandt), Raphael, Mendocino, Cyan Skillfish
  ApuRdna3,    // Phoenix, Hawk Point, Strix, Strix Halo, Krackan
};
// "navi31-class" names are for people: "Navi 3x", "MI300", "unknown".
std::string_view to_string(AsicFamily family);
bool is_apu(AsicFamily family);

// One node of the compute driver's topology (KFD), what ROCm calls an agent. A partitioned GPU has several.
struct ComputeNode {
  std::uint32_t node = 0;          // number of its folder; never identity
  std::uint64_t gpu_id = 0;        // KFD's own; 0 where the tree does not say
  std::uint32_t partition = 0;     // of a partitioned GPU, from 0
  std::string gfx;                 // "gfx942"
  std::int32_t render_minor = -1;  // renderD128 -> 128; -1: none
  std::uint32_t compute_units = 0;
  friend bool operator==(const ComputeNode&, const ComputeNode&) = default;
};

struct DeviceInfo {
  PciAddress pci;
  std::uint16_t vendor_id = 0;
  std::uint16_t device_id = 0;  // 0: a tree that does not say
  std::optional<std::uint16_t> subsystem_vendor;
  std::optional<std::uint16_t> subsystem_device;
  std::optional<std::uint8_t> revision;
  std::uint32_t pci_class = 0;  // 0x030000

  std::string driver;         // "amdgpu"; empty when none is bound
  std::string unique_id;      // 16 hex digits; empty where the part has none
  std::string serial;         // empty where the board has none
  std::string vbios_version;  // empty when unknown
  std::string vram_vendor;    // "samsung"; empty when unknown

  std::string name;                      // best marketing name; empty when nothing is known
  std::vector<std::string> other_names;  // when one id serves several products and the revision does not decide
  AsicFamily family = AsicFamily::Unknown;
  std::string gfx;  // "gfx1100"; empty when unknown

  std::string render_node;  // "renderD128", now; never identity
  std::string card_node;    // "card0", now; never identity

  std::vector<ComputeNode> compute_nodes;  // by node; empty where the compute driver does not know the GPU
  std::string compute_partition;           // "SPX", "CPX", …; empty where the part has no such modes
  std::string memory_partition;            // "NPS1", …
  std::vector<PciAddress> xgmi_peers;      // GPUs that it reaches through XGMI, by address

  std::map<std::string, std::string> firmware;  // "smc" -> "0x004e7e00"

  // The key under which history and conditions are kept: "uid-…", "serial-…" or "pci-…" in the order of the
  // architecture (unique_id, serial, else address + ids + subsystem + VBIOS).
  [[nodiscard]] std::string id() const;
};

}  // namespace gpuhealth
