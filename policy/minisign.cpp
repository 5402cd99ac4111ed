// SPDX-License-Identifier: Apache-2.0
#include "policy/minisign.hpp"

#include <sodium.h>

#include <algorithm>
#include <cstring>
#include <optional>

namespace gpuhealth::policy {
namespace {

constexpr std::string_view kUntrusted = "untrusted comment: ";
constexpr std::string_view kTrusted = "trusted comment: ";
constexpr std::size_t kMostComment = 1024;

bool ready() {
  static const bool fine = sodium_init() >= 0;
  return fine;
}

std::string_view take_line(std::string_view& text) {
  const auto end = text.find('\n');
  auto line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

template <std::size_t N>
std::optional<std::array<std::uint8_t, N>> decode(std::string_view text) {
  std::array<std::uint8_t, N> out{};
  std::size_t size = 0;
  const char* end = nullptr;
  if (sodium_base642bin(out.data(), out.size(), text.data(), text.size(), nullptr, &size, &end,
                        sodium_base64_VARIANT_ORIGINAL) != 0)
    return std::nullopt;
  if (size != N || end != text.data() + text.size()) return std::nullopt;
  return out;
}

template <std::size_t N>
std::string encode(const std::array<std::uint8_t, N>& bytes) {
  std::string out(sodium_base64_ENCODED_LEN(N, sodium_base64_VARIANT_ORIGINAL), '\0');
  sodium_bin2base64(out.data(), out.size(), bytes.data(), bytes.size(), sodium_base64_VARIANT_ORIGINAL);
  out.resize(std::strlen(out.c_str()));
  return out;
}

const std::uint8_t* bytes_of(std::string_view text) {
  return reinterpret_cast<const std::uint8_t*>(text.data());
}

// What minisign keeps of a secret key: algorithms, salt and limits of the password, then id, key and checksum.
constexpr std::size_t kSecretSize = 2 + 2 + 2 + 32 + 8 + 8 + 8 + 64 + 32;
constexpr std::size_t kKeyPart = 54;  // where id, key and checksum begin

std::array<std::uint8_t, 32> checksum(const std::uint8_t* id_and_key) {
  std::array<std::uint8_t, 32> out{};
  crypto_generichash_state state;
  crypto_generichash_init(&state, nullptr, 0, out.size());
  crypto_generichash_update(&state, bytes_of("Ed"), 2);
  crypto_generichash_update(&state, id_and_key, 8 + 64);
  crypto_generichash_final(&state, out.data(), out.size());
  return out;
}

}  // namespace

std::array<std::uint8_t, 64> blake2b(std::string_view bytes) {
  std::array<std::uint8_t, 64> out{};
  (void)ready();
  crypto_generichash(out.data(), out.size(), bytes_of(bytes), bytes.size(), nullptr, 0);
  return out;
}

std::string text_of(const KeyId& id) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::string out;
  for (auto it = id.rbegin(); it != id.rend(); ++it) out += digits[*it >> 4U], out += digits[*it & 15U];
  return out;
}

Result<PublicKey> parse_public_key(std::string_view text) {
  auto line = take_line(text);
  if (line.starts_with(kUntrusted.substr(0, 18))) line = take_line(text);
  const auto raw = decode<42>(line);
  if (!raw || (*raw)[0] != 'E' || (*raw)[1] != 'd')
    return fail(ErrorCode::InvalidInput, "is no public key of minisign");
  PublicKey out;
  std::copy_n(raw->begin() + 2, 8, out.id.begin());
  std::copy_n(raw->begin() + 10, 32, out.key.begin());
  return out;
}

Result<SecretKey> parse_secret_key(std::string_view text) {
  auto line = take_line(text);
  if (line.starts_with(kUntrusted.substr(0, 18))) line = take_line(text);
  const auto raw = decode<kSecretSize>(line);
  if (!raw || (*raw)[0] != 'E' || (*raw)[1] != 'd' || (*raw)[4] != 'B' || (*raw)[5] != '2')
    return fail(ErrorCode::InvalidInput, "is no secret key of minisign");
  if ((*raw)[2] != 0 || (*raw)[3] != 0)
    return fail(ErrorCode::InvalidInput,
                "has a password; sign the bundle with minisign -S, then put signature and bundle into one file");
  const auto sum = checksum(raw->data() + kKeyPart);
  if (!std::equal(sum.begin(), sum.end(), raw->begin() + kKeyPart + 72))
    return fail(ErrorCode::InvalidInput, "is a damaged secret key");
  SecretKey out;
  std::copy_n(raw->begin() + kKeyPart, 8, out.id.begin());
  std::copy_n(raw->begin() + kKeyPart + 8, 64, out.key.begin());
  return out;
}

Result<KeyPair> make_keys(std::string_view comment) {
  if (!ready()) return fail(ErrorCode::Unavailable, "libsodium does not start");
  std::array<std::uint8_t, 32> pub{};
  std::array<std::uint8_t, 64> secret{};
  std::array<std::uint8_t, 8> id{};
  crypto_sign_ed25519_keypair(pub.data(), secret.data());
  randombytes_buf(id.data(), id.size());
  std::array<std::uint8_t, 42> public_raw{'E', 'd'};
  std::copy_n(id.begin(), 8, public_raw.begin() + 2);
  std::copy_n(pub.begin(), 32, public_raw.begin() + 10);
  std::array<std::uint8_t, kSecretSize> secret_raw{'E', 'd', 0, 0, 'B', '2'};
  std::copy_n(id.begin(), 8, secret_raw.begin() + kKeyPart);
  std::copy_n(secret.begin(), 64, secret_raw.begin() + kKeyPart + 8);
  const auto sum = checksum(secret_raw.data() + kKeyPart);
  std::copy_n(sum.begin(), 32, secret_raw.begin() + kKeyPart + 72);
  KeyPair out;
  out.public_text = std::string(kUntrusted) + "gpuhealth public key " + text_of(id) + " " + std::string(comment) +
                    "\n" + encode(public_raw) + "\n";
  out.secret_text = std::string(kUntrusted) + "gpuhealth secret key " + text_of(id) + ", without a password\n" +
                    encode(secret_raw) + "\n";
  return out;
}

Result<std::string> sign(std::string_view payload, const SecretKey& key, std::string_view trusted_comment) {
  if (!ready()) return fail(ErrorCode::Unavailable, "libsodium does not start");
  const auto hash = blake2b(payload);
  std::array<std::uint8_t, 74> raw{'E', 'D'};
  std::copy_n(key.id.begin(), 8, raw.begin() + 2);
  crypto_sign_ed25519_detached(raw.data() + 10, nullptr, hash.data(), hash.size(), key.key.data());
  std::string global_message(reinterpret_cast<const char*>(raw.data() + 10), 64);
  global_message += trusted_comment;
  std::array<std::uint8_t, 64> global{};
  crypto_sign_ed25519_detached(global.data(), nullptr, bytes_of(global_message), global_message.size(), key.key.data());
  return std::string(kUntrusted) + "signature from gpuhealth secret key " + text_of(key.id) + "\n" + encode(raw) +
         "\n" + std::string(kTrusted) + std::string(trusted_comment) + "\n" + encode(global) + "\n";
}

Result<Signature> parse_signature(std::string_view text) {
  const auto bad = [] { return fail(ErrorCode::InvalidInput, "the signature is not in minisign's form"); };
  if (!take_line(text).starts_with(kUntrusted.substr(0, 18))) return bad();
  const auto raw = decode<74>(take_line(text));
  if (!raw || (*raw)[0] != 'E' || ((*raw)[1] != 'D' && (*raw)[1] != 'd')) return bad();
  const auto comment = take_line(text);
  if (!comment.starts_with(kTrusted) || comment.size() > kMostComment) return bad();
  const auto global = decode<64>(take_line(text));
  if (!global) return bad();
  Signature out;
  out.prehashed = (*raw)[1] == 'D';
  std::copy_n(raw->begin() + 2, 8, out.id.begin());
  std::copy_n(raw->begin() + 10, 64, out.signature.begin());
  out.global = *global;
  out.trusted_comment = comment.substr(kTrusted.size());
  return out;
}

bool verify(const Signature& signature, std::string_view payload, const PublicKey& key) {
  if (!ready() || signature.id != key.id) return false;
  const auto hash = blake2b(payload);
  const bool fits = signature.prehashed
                        ? crypto_sign_ed25519_verify_detached(signature.signature.data(), hash.data(), hash.size(),
                                                              key.key.data()) == 0
                        : crypto_sign_ed25519_verify_detached(signature.signature.data(), bytes_of(payload),
                                                              payload.size(), key.key.data()) == 0;
  std::string global_message(reinterpret_cast<const char*>(signature.signature.data()), signature.signature.size());
  global_message += signature.trusted_comment;
  return fits && crypto_sign_ed25519_verify_detached(signature.global.data(), bytes_of(global_message),
                                                     global_message.size(), key.key.data()) == 0;
}

}  // namespace gpuhealth::policy
