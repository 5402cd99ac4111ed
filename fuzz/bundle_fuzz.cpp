// SPDX-License-Identifier: Apache-2.0
// Any bytes as a policy bundle, a signature, a key, or the evaluator's state: what is taken is within its bounds.
#include <cstdint>
#include <string_view>

#include "fuzz/require.hpp"
#include "policy/bundle.hpp"

using namespace gpuhealth;
using namespace gpuhealth::policy;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto split = split_bundle(text)) {
    if (split->signature) {
      static const PublicKey nobody{};
      require(!verify(*split->signature, split->payload, nobody) || split->signature->id == nobody.id,
              "nobody's key signs nothing");
    }
    if (const auto bundle = parse_payload(split->payload)) {
      require(bundle->header.serial > 0 && bundle->header.percent >= 0 && bundle->header.percent <= 100,
              "a header within its ranges");
      require(!bundle->files.empty() && bundle->files.size() <= kMostBundleFiles, "not too many files");
      for (const auto& file : bundle->files) {
        require(file.name.find('/') == std::string::npos && file.name.front() != '.',
                "a name that stays in its folder");
        require(file.text.size() <= kMostPolicyBytes, "a file within its size");
      }
    } else {
      require(!bundle.error().code.empty() && !bundle.error().text.empty(), "a refusal has a reason");
    }
  }
  (void)parse_public_key(text);
  (void)parse_secret_key(text);
  if (const auto state = load_state(text)) (void)save(*state);
  return 0;
}
