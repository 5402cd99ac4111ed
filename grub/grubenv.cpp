// SPDX-License-Identifier: Apache-2.0
#include "grub/grubenv.hpp"

#include <algorithm>

namespace gpuhealth::grub {
namespace {

constexpr std::string_view kSignature = "# GRUB Environment Block\n";

// Where the line that begins at `at` ends: behind its newline. A backslash takes the next byte with it.
std::size_t line_end(std::string_view bytes, std::size_t at) {
  while (at < bytes.size() && bytes[at] != '\n') at += bytes[at] == '\\' ? 2 : 1;
  return std::min(at + 1, bytes.size());
}

std::string unescape(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size()) ++i;
    out += text[i];
  }
  return out;
}

std::string escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '\n') out += '\\';
    out += c;
  }
  return out;
}

struct Line {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::string_view name;
  std::string_view raw;  // the value, escaped
};

// GRUB skips lines that begin with '#': grub-editenv itself writes a warning into one. What runs to the end of the
// block without a newline is the padding.
std::vector<Line> lines_of(std::string_view bytes) {
  std::vector<Line> out;
  std::size_t at = kSignature.size();
  while (at < bytes.size()) {
    const std::size_t end = line_end(bytes, at);
    const std::string_view line = bytes.substr(at, end - at);
    const std::size_t equals = line.find('=');
    if (line.front() != '#' && equals != std::string_view::npos && line.ends_with('\n'))
      out.push_back({at, end, line.substr(0, equals), line.substr(equals + 1, line.size() - equals - 2)});
    at = end;
  }
  return out;
}

bool padding_begins(std::string_view bytes, std::size_t at) {
  return bytes[at] == '#' && bytes.find('\n', at) == std::string_view::npos;
}

void find_damage(std::string_view bytes, GrubEnv& env) {
  const auto add = [&](std::string text) { env.damage.push_back(std::move(text)); };
  if (bytes.empty()) return add("it is empty");
  if (!env.usable) add("it does not begin with \"# GRUB Environment Block\"");
  if (bytes.size() != kGrubEnvSize)
    add("it has " + std::to_string(bytes.size()) + " bytes instead of " + std::to_string(kGrubEnvSize));
  if (bytes.find('\0') != std::string_view::npos) add("it has NUL bytes");
  if (!env.usable) return;
  std::size_t at = kSignature.size();
  while (at < bytes.size() && !padding_begins(bytes, at)) {
    const std::size_t end = bytes[at] == '#' ? bytes.find('\n', at) + 1 : line_end(bytes, at);
    const std::string_view line = bytes.substr(at, end - at);
    at = end;
    if (line.starts_with("##") && bytes.size() <= kGrubEnvSize)
      return add("something other than padding follows the padding's begin");
    if (line.starts_with('#')) continue;
    if (!line.ends_with('\n') || line.find('=') == std::string_view::npos) return add("a line is cut or has no '='");
  }
  if (bytes.substr(at).find_first_not_of('#') != std::string_view::npos && bytes.size() <= kGrubEnvSize)
    add("something other than padding follows the padding's begin");
}

}  // namespace

GrubEnv parse_grubenv(std::string_view bytes) {
  GrubEnv env;
  env.usable = bytes.starts_with(kSignature);
  find_damage(bytes, env);
  if (!env.usable) return env;
  for (const Line& line : lines_of(bytes)) env.values[std::string(line.name)] = unescape(line.raw);
  env.external = env.values.contains("env_block");
  return env;
}

Result<std::string> with_value(std::string_view bytes, std::string_view name, std::optional<std::string_view> value) {
  const GrubEnv env = parse_grubenv(bytes);
  if (!env.damage.empty())
    return fail(ErrorCode::InvalidInput,
                "grubenv is damaged (" + env.damage.front() + "); make a new one with grub-editenv GRUBENV create");
  if (name.empty() || name.find_first_of("=#\n") != std::string_view::npos)
    return fail(ErrorCode::InvalidInput, "not a name that grubenv can hold: " + std::string(name));
  const std::string line = value ? std::string(name) + "=" + escape(*value) + "\n" : std::string();
  std::string out(kSignature);
  bool placed = false;
  std::size_t at = kSignature.size();
  while (at < bytes.size() && !padding_begins(bytes, at)) {
    const std::size_t end = bytes[at] == '#' ? bytes.find('\n', at) + 1 : line_end(bytes, at);
    const std::string_view old = bytes.substr(at, end - at);
    if (old.starts_with('#') || old.substr(0, old.find('=')) != name) {
      out += old;
    } else if (!placed) {
      out += line;
      placed = true;
    }
    at = end;
  }
  if (!placed) out += line;
  if (out.size() > kGrubEnvSize)
    return fail(ErrorCode::Exhausted, "grubenv has no room for " + std::string(name) + ": its " +
                                          std::to_string(kGrubEnvSize) + " bytes are in use");
  out.resize(kGrubEnvSize, '#');
  return out;
}

}  // namespace gpuhealth::grub
