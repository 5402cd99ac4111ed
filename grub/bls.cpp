// SPDX-License-Identifier: Apache-2.0
#include "grub/bls.hpp"

#include <algorithm>
#include <charconv>

#include "core/sorted.hpp"
#include "grub/version.hpp"

namespace gpuhealth::grub {
namespace {

constexpr std::string_view kBlanks = " \t\r";

std::string_view trim(std::string_view text) {
  const auto begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

void add(std::string& to, std::string_view value) {
  if (!to.empty()) to += ' ';
  to += value;
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> out;
  while (!(text = trim(text)).empty()) {
    const auto end = std::min(text.find_first_of(kBlanks), text.size());
    out.emplace_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return out;
}

void append(std::vector<std::string>& to, std::string_view text) {
  for (std::string& word : words_of(text)) to.push_back(std::move(word));
}

bool number(std::string_view text, int& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size() && !text.empty() && text.front() != '-';
}

// "name+LEFT-DONE" or "name+LEFT" (systemd.boot-counting).
void take_counter(BlsEntry& entry) {
  const auto plus = entry.name.rfind('+');
  if (plus == std::string::npos) return;
  const std::string_view counter = std::string_view(entry.name).substr(plus + 1);
  const auto dash = counter.find('-');
  int left = 0;
  int done = 0;
  if (!number(counter.substr(0, dash), left)) return;
  if (dash != std::string_view::npos && !number(counter.substr(dash + 1), done)) return;
  entry.tries_left = left;
  entry.tries_done = done;
  entry.name.resize(plus);
}

void take_key(BlsEntry& entry, std::string_view key, std::string_view value) {
  if (key == "title") entry.title = value;
  if (key == "version") entry.version = value;
  if (key == "machine-id") entry.machine_id = value;
  if (key == "sort-key") entry.sort_key = value;
  if (key == "architecture") entry.architecture = value;
  if (key == "linux") entry.linux_image = value;
  if (key == "efi" || key == "uki") entry.efi = value;
  if (key == "initrd") append(entry.initrds, value);
  if (key == "options") add(entry.options, value);
  if (key == "grub_arg") add(entry.grub_arguments, value);
  if (key == "grub_users") entry.grub_users = value;
  if (key == "grub_class") append(entry.grub_classes, value);
}

struct NameVersionRelease {
  std::string_view name, version, release;
};

NameVersionRelease split(std::string_view text) {
  NameVersionRelease out;
  bool has_version = false;
  bool has_release = false;
  auto dash = text.rfind('-');
  if (dash != std::string_view::npos) {
    out.release = text.substr(dash + 1);
    has_release = true;
    text = text.substr(0, dash);
  }
  dash = text.rfind('-');
  if (dash != std::string_view::npos) {
    out.version = text.substr(dash + 1);
    has_version = true;
    text = text.substr(0, dash);
  }
  out.name = text;
  if (!has_version && has_release) {
    out.version = out.release;
    out.release = {};
  }
  return out;
}

}  // namespace

BlsEntry parse_bls(std::string_view file_name, std::string_view text) {
  BlsEntry entry;
  if (file_name.ends_with(".conf")) file_name.remove_suffix(5);
  entry.name = file_name;
  take_counter(entry);
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    const std::string_view line = trim(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line.front() == '#') continue;
    const auto blank = std::min(line.find_first_of(kBlanks), line.size());
    take_key(entry, line.substr(0, blank), trim(line.substr(blank)));
  }
  return entry;
}

void sort_for_grub(std::vector<BlsEntry>& entries) {
  sort_stable(entries, [](const BlsEntry& a, const BlsEntry& b) {
    const auto x = split(a.name);
    const auto y = split(b.name);
    if (const int by = compare_rpm_segment(x.name, y.name)) return by > 0;
    if (const int by = compare_rpm_segment(x.version, y.version)) return by > 0;
    return compare_rpm_segment(x.release, y.release) > 0;
  });
}

void sort_for_systemd_boot(std::vector<BlsEntry>& entries) {
  sort_stable(entries, [](const BlsEntry& a, const BlsEntry& b) {
    if ((a.tries_left == 0) != (b.tries_left == 0)) return b.tries_left == 0;
    if (a.sort_key.empty() != b.sort_key.empty()) return b.sort_key.empty();
    if (!a.sort_key.empty()) {
      if (a.sort_key != b.sort_key) return a.sort_key < b.sort_key;
      if (a.machine_id != b.machine_id) return a.machine_id < b.machine_id;
      if (const int by = compare_systemd(a.version, b.version)) return by > 0;
    }
    if (const int by = compare_systemd(a.name, b.name)) return by > 0;
    return a.tries_left > b.tries_left;
  });
}

MenuEntry menu_entry(const BlsEntry& bls) {
  MenuEntry entry;
  entry.bls = true;
  entry.own_id = true;
  entry.id = bls.name;
  entry.title = bls.title.empty() ? bls.name : bls.title;
  entry.version = bls.version;
  return entry;
}

}  // namespace gpuhealth::grub
