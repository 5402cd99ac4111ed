// SPDX-License-Identifier: Apache-2.0
// Fleet bundles: the policies of a fleet in one signed file (docs/policy.md has the format), checked, and put in force
// at once or not at all. Every refusal has a reason and is written to the audit file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policy/layers.hpp"
#include "policy/minisign.hpp"

namespace gpuhealth::policy {

inline constexpr std::size_t kMostBundleBytes = 4U << 20U;
inline constexpr std::size_t kMostBundleFiles = 64;
inline constexpr std::string_view kTrustedFolder = "/etc/gpuhealthd/trusted.d";
inline constexpr std::string_view kBundleFolder = "/var/lib/gpuhealthd/policy";

struct BundleHeader {
  std::string name;
  std::int64_t serial = 0;
  std::string created;  // UTC
  std::string expires;  // a day; empty: never
  int percent = 100;    // of the machines
};
struct BundleFile {
  std::string name, text;
};
struct Bundle {
  BundleHeader header;
  std::vector<BundleFile> files;
};

// Why a bundle is not taken: a stable word, and a sentence. Words: oversized, link, unreadable, unsigned, untrusted,
// tampered, malformed, invalid-policy, expired, replayed, downgraded, failed.
struct Refusal {
  std::string code;
  std::string text;
};
template <class T>
using Accepted = tl::expected<T, Refusal>;

// Header, files; without a signature.
Result<std::string> make_payload(const Bundle& bundle);
Accepted<Bundle> parse_payload(std::string_view payload);
// The policies of a folder, each checked. `header` names the bundle.
Accepted<Bundle> collect_bundle(const std::string& folder, BundleHeader header);

struct SignedBundle {
  std::optional<Signature> signature;  // nothing: unsigned
  std::string payload;
};
Accepted<SignedBundle> split_bundle(std::string_view bytes);
// Keys of trusted.d; what is no key, or can be written by others than its owner, is left out and named in `notes`.
std::vector<PublicKey> trusted_keys(const std::string& root, std::vector<std::string>& notes);

struct Verified {
  Bundle bundle;
  std::string key;       // id of the key that signed it; empty: unsigned
  std::string key_file;  // where that key is trusted
};
// All that the file itself can tell: signature, form, policies, expiry.
Accepted<Verified> verify_bundle(const std::string& path, const std::vector<PublicKey>& keys, WallTime now,
                                 bool allow_unsigned);

// Is this machine among the first PERCENT of the fleet? Stable for a bundle's name: 0 to 99.
int rollout_place(std::string_view machine_id, std::string_view name);

struct InstallOptions {
  std::string root = "/";
  bool allow_unsigned = false;  // the caller has made sure that root asks
  std::string who;              // for the audit
};
struct Installed {
  bool active = false;  // false: held back by the roll-out
  BundleHeader header;
  std::string key;
  std::string text;  // one sentence
};
Accepted<Installed> install_bundle(const std::string& path, const InstallOptions& options, WallTime now);
// Back to the bundle before; its serial stays used.
Accepted<Installed> roll_back(const std::string& root, const std::string& why, const std::string& who, WallTime now);

}  // namespace gpuhealth::policy
