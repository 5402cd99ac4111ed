// SPDX-License-Identifier: Apache-2.0
// Any bytes as a file of advisories; what is read is whole.
#include <cstdint>
#include <string>

#include "fuzz/require.hpp"
#include "grub/advisories.hpp"

using namespace gpuhealth::grub;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  AdvisorySet set;
  read_advisories(set, "file", std::string(reinterpret_cast<const char*>(data), size));
  AdvisoryQuestion question;
  question.kernel = {"ubuntu", "24.04", "linux", "7.0.0-28.28", true, Ordering::Dpkg, ""};
  for (const Advisory& advisory : set.advisories) {
    require(!advisory.id.empty() && !advisory.affected.empty() && !advisory.links.empty(), "an advisory is whole");
    question.vendors = {advisory.vendor};
    for (const auto& found : match(set.advisories, question)) require(found.range != nullptr, "a match has its range");
  }
  return 0;
}
