// SPDX-License-Identifier: Apache-2.0
#include "grub/systemd_boot.hpp"

#include <algorithm>

#include "grub/image.hpp"
#include "grub/version.hpp"

namespace gpuhealth::grub {
namespace {

constexpr std::string_view kVendor = "4a67b082-0a4c-41cf-b6c7-440b29bb8c4f";
constexpr std::string_view kVariables = "/sys/firmware/efi/efivars";

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
}

// "[a-c]" of a pattern against c. `pattern` begins behind the '['; null: no closing bracket, so it is a plain '['.
std::optional<bool> in_class(std::string_view& pattern, char c) {
  const auto close = pattern.find(']', 1);
  if (close == std::string_view::npos) return std::nullopt;
  std::string_view set = pattern.substr(0, close);
  pattern.remove_prefix(close + 1);
  const bool inverted = set.starts_with('!') || set.starts_with('^');
  if (inverted) set.remove_prefix(1);
  bool hit = false;
  for (std::size_t i = 0; i < set.size(); ++i) {
    if (i + 2 < set.size() && set[i + 1] == '-') {
      hit = hit || (lower(set[i]) <= c && c <= lower(set[i + 2]));
      i += 2;
    } else {
      hit = hit || lower(set[i]) == c;
    }
  }
  return hit != inverted;
}

std::string utf8_of(std::string_view utf16) {
  std::string out;
  for (std::size_t i = 0; i + 1 < utf16.size(); i += 2) {
    const unsigned code =
        static_cast<unsigned char>(utf16[i]) | static_cast<unsigned>(static_cast<unsigned char>(utf16[i + 1])) << 8U;
    if (code == 0) break;
    if (code < 0x80) {
      out += static_cast<char>(code);
    } else if (code < 0x800) {
      out += static_cast<char>(0xc0U | code >> 6U);
      out += static_cast<char>(0x80U | (code & 0x3fU));
    } else {
      out += static_cast<char>(0xe0U | code >> 12U);
      out += static_cast<char>(0x80U | (code >> 6U & 0x3fU));
      out += static_cast<char>(0x80U | (code & 0x3fU));
    }
  }
  return out;
}

std::optional<std::size_t> first_match(const Menu& menu, std::string_view pattern) {
  for (std::size_t i = 0; i < menu.size(); ++i) {
    std::string_view id = menu[i].id;
    if (matches_pattern(pattern, id)) return i;
    if (id.ends_with(".conf")) id.remove_suffix(5);  // accepted without the suffix since systemd 247
    if (matches_pattern(pattern, id)) return i;
  }
  return std::nullopt;
}

}  // namespace

LoaderConf parse_loader_conf(std::string_view text) {
  LoaderConf conf;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const auto begin = line.find_first_not_of(" \t\r");
    if (begin == std::string_view::npos || line[begin] == '#') continue;
    line.remove_prefix(begin);
    const auto blank = line.find_first_of(" \t");
    if (blank == std::string_view::npos) continue;
    const auto value_begin = line.find_first_not_of(" \t", blank);
    if (value_begin == std::string_view::npos) continue;
    std::string_view value = line.substr(value_begin);
    while (!value.empty() && (value.back() == '\r' || value.back() == ' ' || value.back() == '\t'))
      value.remove_suffix(1);
    const std::string_view key = line.substr(0, blank);
    if (key == "default") conf.default_pattern = value;
    if (key == "timeout") conf.timeout = value;
  }
  return conf;
}

bool matches_pattern(std::string_view pattern, std::string_view text) {
  std::optional<std::pair<std::string_view, std::string_view>> star;  // where to go back to
  while (true) {
    if (pattern.starts_with('*')) {
      pattern.remove_prefix(1);
      star = {pattern, text};
      continue;
    }
    if (text.empty() && pattern.empty()) return true;
    bool hit = false;
    if (!text.empty() && !pattern.empty()) {
      const char p = pattern.front();
      const char c = lower(text.front());
      pattern.remove_prefix(1);
      if (p == '?') {
        hit = true;
      } else if (p == '[') {
        const auto in = in_class(pattern, c);
        hit = in.value_or(c == '[');
      } else if (p == '\\' && !pattern.empty()) {
        hit = lower(pattern.front()) == c;
        pattern.remove_prefix(1);
      } else {
        hit = lower(p) == c;
      }
    }
    if (hit) {
      text.remove_prefix(1);
      continue;
    }
    if (!star || star->second.empty()) return false;
    star->second.remove_prefix(1);
    pattern = star->first;
    text = star->second;
  }
}

bool has_efi_variables(const Tree& tree) {
  return !tree.list(kVariables).empty();
}

std::optional<std::string> loader_variable(const Tree& tree, std::string_view name) {
  const auto bytes =
      tree.read(std::string(kVariables) + "/" + std::string(name) + "-" + std::string(kVendor), std::size_t{64} << 10);
  if (!bytes || bytes->size() < 4) return std::nullopt;
  return utf8_of(std::string_view(*bytes).substr(4));  // attributes come first
}

Menu systemd_boot_menu(const std::vector<BlsEntry>& entries, const Tree& tree, const std::vector<std::string>& places) {
  std::vector<BlsEntry> all = entries;
  for (BlsEntry& entry : all) entry.name += ".conf";
  for (const std::string& place : places) {
    for (const std::string& file : tree.list(place + "/EFI/Linux")) {
      if (!file.ends_with(".efi")) continue;
      const auto image = read_image(tree, place + "/EFI/Linux/" + file);
      if (!image || !image->uki) continue;
      BlsEntry entry = parse_bls(file.substr(0, file.size() - 4), "");
      entry.name += ".efi";
      entry.efi = "/EFI/Linux/" + file;
      entry.title = image->title;
      entry.version = image->release;
      entry.options = image->arguments;
      if (std::ranges::none_of(all, [&](const BlsEntry& other) { return other.name == entry.name; }))
        all.push_back(std::move(entry));
    }
  }
  sort_for_systemd_boot(all);
  Menu menu;
  for (const BlsEntry& bls : all) {
    if (bls.linux_image.empty() && bls.efi.empty()) continue;
    MenuEntry entry = menu_entry(bls);
    entry.steps.linux_image = !bls.linux_image.empty() || bls.name.ends_with(".conf") ? bls.linux_image : bls.efi;
    entry.steps.chainloader = bls.linux_image.empty() && bls.name.ends_with(".conf") ? bls.efi : std::string();
    entry.steps.arguments = bls.options;
    entry.steps.initrds = bls.initrds;
    menu.push_back(std::move(entry));
  }
  return menu;
}

SystemdBootChoice choose_systemd_boot(const Menu& menu, const LoaderConf& conf, const Tree& tree) {
  SystemdBootChoice out;
  if (menu.empty()) {
    out.lasting.reason = out.next.reason = "there are no entries";
    return out;
  }
  const std::string unseen = has_efi_variables(tree) ? "" : "; no EFI variables are here, which could name another";
  const auto take = [&](Choice& choice, std::string_view pattern, const std::string& who) {
    const auto index = first_match(menu, pattern);
    if (!index) return false;
    choice = {true, {*index}, who + " '" + std::string(pattern) + "'" + unseen};
    return true;
  };
  const auto variable = loader_variable(tree, "LoaderEntryDefault");
  const std::string pattern = variable && !variable->empty() ? *variable : conf.default_pattern;
  const std::string who =
      variable && !variable->empty() ? "the EFI variable LoaderEntryDefault names" : "loader.conf names";
  if (pattern == "@saved") {
    const auto last = loader_variable(tree, "LoaderEntryLastBooted");
    if (!last) {
      out.lasting.reason = who + " '@saved': the entry that was booted last, which EFI variables know";
    } else if (!take(out.lasting, *last, "the entry that was booted last is")) {
      out.lasting = {true, {0}, "the entry that was booted last is gone; the first one is taken"};
    }
  } else if (pattern.empty()) {
    out.lasting = {true, {0}, "no default is set; systemd-boot takes the first entry" + unseen};
  } else if (!take(out.lasting, pattern, who)) {
    out.lasting = {
        true, {0}, who + " '" + pattern + "', which is not there; systemd-boot takes the first entry" + unseen};
  }
  out.next = out.lasting;
  const auto once = loader_variable(tree, "LoaderEntryOneShot");
  if (once && !once->empty()) (void)take(out.next, *once, "the EFI variable LoaderEntryOneShot asks once for");
  return out;
}

}  // namespace gpuhealth::grub
