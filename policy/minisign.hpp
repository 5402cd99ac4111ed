// SPDX-License-Identifier: Apache-2.0
// Signatures and keys in minisign's formats (Ed25519 over BLAKE2b-512; https://jedisct1.github.io/minisign), so that
// the tool of that name can make and check them too. Secret keys are without a password here.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"

namespace gpuhealth::policy {

using KeyId = std::array<std::uint8_t, 8>;

struct PublicKey {
  KeyId id{};
  std::array<std::uint8_t, 32> key{};
  std::string file;  // where it was read
};
struct SecretKey {
  KeyId id{};
  std::array<std::uint8_t, 64> key{};
};

Result<PublicKey> parse_public_key(std::string_view text);
Result<SecretKey> parse_secret_key(std::string_view text);
struct KeyPair {
  std::string secret_text;
  std::string public_text;
};
Result<KeyPair> make_keys(std::string_view comment);

// The four lines of a signature file.
Result<std::string> sign(std::string_view payload, const SecretKey& key, std::string_view trusted_comment);

struct Signature {
  KeyId id{};
  bool prehashed = false;
  std::array<std::uint8_t, 64> signature{};
  std::array<std::uint8_t, 64> global{};
  std::string trusted_comment;
};
Result<Signature> parse_signature(std::string_view text);
bool verify(const Signature& signature, std::string_view payload, const PublicKey& key);

std::string text_of(const KeyId& id);  // as minisign prints it: 16 hex digits, capital
std::array<std::uint8_t, 64> blake2b(std::string_view bytes);

}  // namespace gpuhealth::policy
