// SPDX-License-Identifier: Apache-2.0
// Which ASIC a PCI id is, and what its products are called. libdrm's amdgpu.ids first (it knows revisions), then our
// own rows for newer parts; honest when one id serves several products.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/device.hpp"

namespace gpuhealth::telemetry {

struct AsicInfo {
  AsicFamily family = AsicFamily::Unknown;
  std::string_view chip;  // "Navi 31"; empty when unknown
  std::string_view gfx;   // "gfx1100"; empty when unknown
};
// Unknown family for ids outside the table.
AsicInfo find_asic(std::uint16_t device_id);

struct ProductNames {
  // The one name; or the chip's when id and revision do not decide ("Navi 31 (one of 4 products)", "Navi 33"); empty:
  // unknown.
  std::string name;
  std::vector<std::string> others;  // all candidates where they do not decide
};

class NameTable {
 public:
  // Reads libdrm's table ("ID,\tREV,\tNAME" a line; ROOT/usr/share/libdrm/amdgpu.ids) and adds our own rows for what it
  // lacks. Damaged rows are skipped, an absent file leaves our own rows.
  static NameTable load(const std::string& ids_path = "/usr/share/libdrm/amdgpu.ids");
  static NameTable parse(std::string_view ids);
  [[nodiscard]] ProductNames find(std::uint16_t device_id, std::optional<std::uint8_t> revision) const;

 private:
  struct Row {
    std::uint16_t device_id;
    std::uint8_t revision;
    std::string name;
  };
  void add(Row row);  // behind those of the same id and revision
  void add_own_rows();
  [[nodiscard]] bool has(std::uint16_t device_id, std::uint8_t revision) const;
  std::vector<Row> rows_;  // sorted by id, revision
};

}  // namespace gpuhealth::telemetry
