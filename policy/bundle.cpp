// SPDX-License-Identifier: Apache-2.0
// The file: signature (four lines of minisign), magic line, header line of JSON, the files behind each other.
#include "policy/bundle.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include <nlohmann/json.hpp>

#include "core/json.hpp"
#include "policy/files.hpp"

namespace gpuhealth::policy {
namespace {

using Json = nlohmann::ordered_json;
constexpr std::string_view kMagic = "gpuhealth-policy-bundle 1\n";
constexpr std::string_view kSignatureStart = "untrusted comment:";
constexpr std::size_t kMostHeader = 64U << 10U;

tl::unexpected<Refusal> refuse(std::string code, std::string text) {
  return tl::unexpected<Refusal>(Refusal{std::move(code), std::move(text)});
}

bool is_word(std::string_view text) {
  return !text.empty() && text.size() <= 64 && text.front() != '.' && std::ranges::all_of(text, [](unsigned char c) {
    return (c < 0x80 && std::isalnum(c) != 0) || c == '.' || c == '_' || c == '-';
  });
}
bool is_file_name(std::string_view name) {
  return is_word(name) && name.ends_with(".yaml");
}

Accepted<BundleHeader> check_header(BundleHeader header) {
  if (!is_word(header.name))
    return refuse("malformed", "the bundle's name must be letters, digits, . _ and -, at most 64");
  if (header.serial < 1 || header.serial > 999'999'999'999)
    return refuse("malformed", "the bundle's serial must be a whole number from 1 on");
  if (!header.expires.empty() && !parse_last_day(header.expires))
    return refuse("malformed", "the bundle's expiry must be a day such as 2027-03-31");
  if (header.percent < 0 || header.percent > 100) return refuse("malformed", "the roll-out must be 0 to 100 percent");
  return header;
}

// Each as a policy, and their names against each other.
Accepted<Bundle> check_files(Bundle bundle) {
  std::set<std::string> names;
  std::string problem;
  for (const BundleFile& file : bundle.files) {
    const auto parsed = parse_policy(file.name, file.text);
    for (const auto& mistake : parsed.mistakes)
      problem += (problem.empty() ? "" : "\n") + yaml::line_of(file.name, mistake);
    if (parsed.policy && !names.insert(parsed.policy->name).second)
      problem +=
          (problem.empty() ? "" : "\n") + file.name + ": there are two policies " + yaml::shown(parsed.policy->name);
  }
  if (!problem.empty()) return refuse("invalid-policy", problem);
  return bundle;
}

Accepted<Bundle> read_header(std::string_view line, std::vector<std::size_t>& sizes) {
  const Json json = parse_json<Json>(line);
  if (!json.is_object()) return refuse("malformed", "the bundle's header is not JSON");
  Bundle out;
  try {
    json.at("name").get_to(out.header.name);
    out.header.serial = json.at("serial").is_number_integer() ? json.at("serial").get<std::int64_t>() : 0;
    out.header.created = json.value("created", "");
    if (json.contains("expires") && !json.at("expires").is_null()) json.at("expires").get_to(out.header.expires);
    if (json.contains("rollout")) out.header.percent = json.at("rollout").at("percent").get<int>();
    for (const Json& file : json.at("files")) {
      out.files.push_back({file.at("name").get<std::string>(), ""});
      sizes.push_back(file.at("size").is_number_unsigned() ? file.at("size").get<std::size_t>() : kMostBundleBytes + 1);
    }
  } catch (const Json::exception& error) {
    return refuse("malformed", std::string("the bundle's header: ") + error.what());
  }
  auto header = check_header(out.header);
  if (!header) return tl::unexpected<Refusal>(header.error());
  return out;
}

}  // namespace

Result<std::string> make_payload(const Bundle& bundle) {
  Json files = Json::array();
  for (const auto& file : bundle.files) files.push_back({{"name", file.name}, {"size", file.text.size()}});
  Json header = {{"name", bundle.header.name}, {"serial", bundle.header.serial}, {"created", bundle.header.created}};
  if (bundle.header.expires.empty()) {
    header["expires"] = nullptr;
  } else {
    header["expires"] = bundle.header.expires;
  }
  header["rollout"] = {{"percent", bundle.header.percent}};
  header["files"] = std::move(files);
  std::string out = std::string(kMagic) + header.dump(-1, ' ', true) + "\n";
  for (const auto& file : bundle.files) out += file.text;
  // What is made must be what is read.
  if (const auto read = parse_payload(out); !read) return fail(ErrorCode::InvalidInput, read.error().text);
  if (out.size() > kMostBundleBytes / 2) return fail(ErrorCode::Exhausted, "the bundle would be larger than 2 MiB");
  return out;
}

Accepted<Bundle> parse_payload(std::string_view payload) {
  if (!payload.starts_with(kMagic)) return refuse("malformed", "this is no policy bundle (or one of a newer form)");
  payload.remove_prefix(kMagic.size());
  const auto end = payload.find('\n');
  if (end > kMostHeader) return refuse("malformed", "the bundle's header has no end");
  std::vector<std::size_t> sizes;
  auto out = read_header(payload.substr(0, end), sizes);
  if (!out) return out;
  payload.remove_prefix(end + 1);
  if (out->files.empty()) return refuse("malformed", "the bundle holds no policy");
  if (out->files.size() > kMostBundleFiles) return refuse("oversized", "the bundle holds more than 64 policies");
  std::set<std::string> names;
  for (std::size_t i = 0; i < out->files.size(); ++i) {
    BundleFile& file = out->files[i];
    if (!is_file_name(file.name)) return refuse("malformed", yaml::shown(file.name) + " is no name of a policy file");
    if (!names.insert(file.name).second) return refuse("malformed", yaml::shown(file.name) + " is in the bundle twice");
    if (sizes[i] > kMostPolicyBytes) return refuse("oversized", file.name + " is larger than 256 KiB");
    if (sizes[i] > payload.size()) return refuse("malformed", "the bundle ends within " + file.name);
    file.text = payload.substr(0, sizes[i]);
    payload.remove_prefix(sizes[i]);
  }
  if (!payload.empty()) return refuse("malformed", "the bundle goes on behind its last file");
  return out;
}

Accepted<Bundle> collect_bundle(const std::string& folder, BundleHeader header) {
  auto checked = check_header(std::move(header));
  if (!checked) return tl::unexpected<Refusal>(checked.error());
  Bundle out{std::move(*checked), {}};
  const auto root = Root::open(folder);
  const auto names = root ? root->list(".", kMostPolicyFiles) : tl::unexpected<Error>(root.error());
  if (!names) return refuse("unreadable", names.error().text);
  for (const auto& name : *names) {
    if (!name.ends_with(".yaml") || name.ends_with(".test.yaml") || name.starts_with('.')) continue;
    if (!is_file_name(name)) return refuse("malformed", yaml::shown(name) + " is no name of a policy file");
    if (root->read_link(name)) return refuse("link", name + " is a link; a bundle takes files only");
    auto text = root->read(name, kMostPolicyBytes);
    if (!text) return refuse("unreadable", text.error().text);
    out.files.push_back({name, std::move(*text)});
  }
  if (out.files.empty()) return refuse("malformed", folder + " holds no file *.yaml");
  return check_files(std::move(out));
}

Accepted<SignedBundle> split_bundle(std::string_view bytes) {
  if (bytes.size() > kMostBundleBytes) return refuse("oversized", "the bundle is larger than 4 MiB");
  SignedBundle out;
  if (!bytes.starts_with(kSignatureStart)) {
    out.payload = bytes;
    return out;
  }
  std::size_t end = 0;
  for (int line = 0; line < 4; ++line) {
    end = bytes.find('\n', end);
    if (end == std::string_view::npos) return refuse("malformed", "the bundle ends within its signature");
    ++end;
  }
  auto signature = parse_signature(bytes.substr(0, end));
  if (!signature) return refuse("malformed", signature.error().text);
  out.signature = std::move(*signature);
  out.payload = bytes.substr(end);
  return out;
}

std::vector<PublicKey> trusted_keys(const std::string& root_path, std::vector<std::string>& notes) {
  std::vector<PublicKey> out;
  const auto root = Root::open(root_path);
  const auto names = root ? root->list(std::string(kTrustedFolder), 256) : tl::unexpected<Error>(root.error());
  if (!names) {
    notes.push_back(names.error().text);
    return out;
  }
  // Who may put a file there may add a key.
  if (const auto fits = root->writable_by_owner_only(std::string(kTrustedFolder)); !fits && !names->empty()) {
    notes.push_back(root->shown(std::string(kTrustedFolder)) + ": " + fits.error().text + "; none of its keys counts");
    return out;
  }
  for (const auto& name : *names) {
    if (!name.ends_with(".pub")) continue;
    const std::string path = std::string(kTrustedFolder) + "/" + name;
    const auto fits = root->writable_by_owner_only(path);
    const auto text = fits ? root->read(path, 4096) : tl::unexpected<Error>(fits.error());
    auto key = text ? parse_public_key(*text) : tl::unexpected<Error>(text.error());
    if (!key) {
      notes.push_back(root->shown(path) + ": " + key.error().text);
      continue;
    }
    key->file = root->shown(path);
    out.push_back(std::move(*key));
  }
  return out;
}

Accepted<Verified> verify_bundle(const std::string& path, const std::vector<PublicKey>& keys, WallTime now,
                                 bool allow_unsigned) {
  const auto bytes = read_named_file(path, kMostBundleBytes, false);
  if (!bytes) {
    const auto& text = bytes.error().text;
    const char* code = text.find("larger than") != std::string::npos ? "oversized"
                       : text.find("is a link") != std::string::npos ? "link"
                                                                     : "unreadable";
    return refuse(code, text);
  }
  auto split = split_bundle(*bytes);
  if (!split) return tl::unexpected<Refusal>(split.error());
  Verified out;
  if (!split->signature && !allow_unsigned)
    return refuse("unsigned",
                  "the bundle is not signed; only root on the machine itself may install such a one, with --unsigned");
  if (split->signature) {
    out.key = text_of(split->signature->id);
    const auto key = std::ranges::find(keys, split->signature->id, &PublicKey::id);
    if (key == keys.end())
      return refuse("untrusted",
                    "the bundle is signed with key " + out.key + ", which is not in " + std::string(kTrustedFolder));
    if (!verify(*split->signature, split->payload, *key))
      return refuse("tampered", "the signature does not fit: the bundle was changed after it was signed");
    out.key_file = key->file;
  }
  auto parsed = parse_payload(split->payload);
  auto bundle = parsed ? check_files(std::move(*parsed)) : std::move(parsed);
  if (!bundle) return tl::unexpected<Refusal>(bundle.error());
  out.bundle = std::move(*bundle);
  const auto& expires = out.bundle.header.expires;
  if (!expires.empty() && now >= *parse_last_day(expires))
    return refuse("expired", "the bundle was good until " + expires);
  return out;
}

int rollout_place(std::string_view machine_id, std::string_view name) {
  const auto hash = blake2b(std::string(machine_id) + "\n" + std::string(name));
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < 8; ++i) number = number << 8U | hash.at(i);
  return static_cast<int>(number % 100);
}

}  // namespace gpuhealth::policy
