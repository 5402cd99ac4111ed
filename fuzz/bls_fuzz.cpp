// SPDX-License-Identifier: Apache-2.0
// Any bytes as BLS entries (cut at NUL bytes) and as loader.conf; sorting keeps them all.
#include <cstdint>
#include <string_view>
#include <vector>

#include "fuzz/require.hpp"
#include "grub/bls.hpp"
#include "grub/systemd_boot.hpp"
#include "grub/version.hpp"

using namespace gpuhealth::grub;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  std::vector<BlsEntry> entries;
  while (!rest.empty() && entries.size() < 64) {
    const auto end = std::min(rest.find('\0'), rest.size());
    const std::string_view one = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    entries.push_back(parse_bls(one.substr(0, one.find('\n')), one));
    (void)parse_loader_conf(one);
  }
  const std::size_t count = entries.size();
  sort_for_grub(entries);
  sort_for_systemd_boot(entries);
  require(entries.size() == count, "none is lost");
  for (std::size_t i = 1; i < entries.size(); ++i) {
    const std::string& a = entries[i - 1].name;
    const std::string& b = entries[i].name;
    for (auto* compare : {compare_dpkg, compare_rpm, compare_pacman, compare_systemd, compare_upstream}) {
      require(compare(a, a) == 0, "a version is itself");
      require((compare(a, b) < 0) == (compare(b, a) > 0), "both ways say the same");
    }
    (void)matches_pattern(a, b);
  }
  return 0;
}
