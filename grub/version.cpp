// SPDX-License-Identifier: Apache-2.0
#include "grub/version.hpp"

#include <algorithm>
#include <array>

namespace gpuhealth::grub {
namespace {

bool digit(char c) {
  return c >= '0' && c <= '9';
}
bool alpha(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
int sign(int value) {
  return value < 0 ? -1 : value > 0 ? 1 : 0;
}

// Numbers of any length: without leading zeros the longer is the greater.
int compare_numbers(std::string_view a, std::string_view b) {
  a.remove_prefix(std::min(a.find_first_not_of('0'), a.size()));
  b.remove_prefix(std::min(b.find_first_not_of('0'), b.size()));
  if (a.size() != b.size()) return a.size() < b.size() ? -1 : 1;
  return sign(a.compare(b));
}
std::string_view take_digits(std::string_view& text) {
  std::size_t n = 0;
  while (n < text.size() && digit(text[n])) ++n;
  const auto out = text.substr(0, n);
  text.remove_prefix(n);
  return out;
}
std::string_view take_letters(std::string_view& text) {
  std::size_t n = 0;
  while (n < text.size() && alpha(text[n])) ++n;
  const auto out = text.substr(0, n);
  text.remove_prefix(n);
  return out;
}
// "12:" in front, when it is a number.
std::string_view take_epoch(std::string_view& text) {
  const auto colon = text.find(':');
  if (colon == std::string_view::npos) return {};
  const auto head = text.substr(0, colon);
  if (!std::ranges::all_of(head, digit)) return {};
  text.remove_prefix(colon + 1);
  return head;
}

// ~ before the end, the end before letters, letters before all else.
int dpkg_order(std::string_view text) {
  if (text.empty() || digit(text.front())) return 0;
  if (alpha(text.front())) return static_cast<unsigned char>(text.front());
  return text.front() == '~' ? -1 : static_cast<unsigned char>(text.front()) + 256;
}

int compare_dpkg_part(std::string_view a, std::string_view b) {
  while (!a.empty() || !b.empty()) {
    while ((!a.empty() && !digit(a.front())) || (!b.empty() && !digit(b.front()))) {
      const int x = dpkg_order(a);
      const int y = dpkg_order(b);
      if (x != y) return sign(x - y);
      if (!a.empty()) a.remove_prefix(1);
      if (!b.empty()) b.remove_prefix(1);
    }
    if (const int by = compare_numbers(take_digits(a), take_digits(b))) return by;
  }
  return 0;
}

struct VersionRelease {
  std::string_view version, release;
  bool has_release = false;
};
VersionRelease split(std::string_view text) {
  const auto dash = text.rfind('-');
  if (dash == std::string_view::npos) return {text, {}, false};
  return {text.substr(0, dash), text.substr(dash + 1), true};
}

// libalpm's rpmvercmp() is an old one: no ~ and ^, and separators count.
int compare_pacman_segment(std::string_view a, std::string_view b) {
  if (a == b) return 0;
  std::string_view x = a;
  std::string_view y = b;
  while (!x.empty() && !y.empty()) {
    const std::size_t before_x = x.size();
    const std::size_t before_y = y.size();
    while (!x.empty() && !digit(x.front()) && !alpha(x.front())) x.remove_prefix(1);
    while (!y.empty() && !digit(y.front()) && !alpha(y.front())) y.remove_prefix(1);
    if (x.empty() || y.empty()) break;
    const std::size_t skipped_x = before_x - x.size();
    const std::size_t skipped_y = before_y - y.size();
    if (skipped_x != skipped_y) return skipped_x < skipped_y ? -1 : 1;
    const bool number = digit(x.front());
    const auto piece_x = number ? take_digits(x) : take_letters(x);
    const auto piece_y = number ? take_digits(y) : take_letters(y);
    if (piece_y.empty()) return number ? 1 : -1;
    const int by = number ? compare_numbers(piece_x, piece_y) : sign(piece_x.compare(piece_y));
    if (by != 0) return by;
  }
  if (x.empty() && y.empty()) return 0;
  // What is left decides: "1.5.1" > "1.5", and "1.5b" < "1.5".
  const bool x_is_older = (x.empty() && !alpha(y.front())) || (!x.empty() && alpha(x.front()));
  return x_is_older ? -1 : 1;
}

struct Upstream {
  std::array<std::string_view, 3> numbers;
  std::string_view candidate;  // digits of -rcN; empty for a release
};
Upstream split_upstream(std::string_view text) {
  Upstream out;
  for (std::size_t i = 0; i < out.numbers.size(); ++i) {
    out.numbers.at(i) = take_digits(text);
    if (text.size() < 2 || text.front() != '.' || !digit(text[1])) break;
    text.remove_prefix(1);
  }
  for (const std::string_view mark : {"-rc", "~rc", ".rc"}) {
    if (!text.starts_with(mark)) continue;
    text.remove_prefix(mark.size());
    out.candidate = take_digits(text);
  }
  return out;
}

}  // namespace

int compare_dpkg(std::string_view a, std::string_view b) {
  if (const int by = compare_numbers(take_epoch(a), take_epoch(b))) return by;
  const auto x = split(a);
  const auto y = split(b);
  if (const int by = compare_dpkg_part(x.version, y.version)) return by;
  return compare_dpkg_part(x.release, y.release);
}

int compare_rpm_segment(std::string_view a, std::string_view b) {
  if (a == b) return 0;
  const auto separator = [](char c) { return !digit(c) && !alpha(c) && c != '~' && c != '^'; };
  while (!a.empty() || !b.empty()) {
    while (!a.empty() && separator(a.front())) a.remove_prefix(1);
    while (!b.empty() && separator(b.front())) b.remove_prefix(1);
    if (a.starts_with('~') || b.starts_with('~')) {
      if (!a.starts_with('~')) return 1;
      if (!b.starts_with('~')) return -1;
      a.remove_prefix(1);
      b.remove_prefix(1);
      continue;
    }
    if (a.starts_with('^') || b.starts_with('^')) {
      if (a.empty()) return -1;
      if (b.empty()) return 1;
      if (!a.starts_with('^')) return 1;
      if (!b.starts_with('^')) return -1;
      a.remove_prefix(1);
      b.remove_prefix(1);
      continue;
    }
    if (a.empty() || b.empty()) break;
    const bool number = digit(a.front());
    const auto x = number ? take_digits(a) : take_letters(a);
    const auto y = number ? take_digits(b) : take_letters(b);
    if (y.empty()) return number ? 1 : -1;
    const int by = number ? compare_numbers(x, y) : sign(x.compare(y));
    if (by != 0) return by;
  }
  if (a.empty() && b.empty()) return 0;
  return a.empty() ? -1 : 1;
}

int compare_rpm(std::string_view a, std::string_view b) {
  if (const int by = compare_numbers(take_epoch(a), take_epoch(b))) return by;
  const auto x = split(a);
  const auto y = split(b);
  if (const int by = compare_rpm_segment(x.version, y.version)) return by;
  if (x.has_release != y.has_release) return x.has_release ? 1 : -1;
  return compare_rpm_segment(x.release, y.release);
}

int compare_pacman(std::string_view a, std::string_view b) {
  if (a == b) return 0;
  if (const int by = compare_numbers(take_epoch(a), take_epoch(b))) return by;
  const auto x = split(a);
  const auto y = split(b);
  if (const int by = compare_pacman_segment(x.version, y.version)) return by;
  return x.has_release && y.has_release ? compare_pacman_segment(x.release, y.release) : 0;
}

int compare_systemd(std::string_view a, std::string_view b) {
  const auto separator = [](char c) { return !digit(c) && !alpha(c) && c != '~' && c != '-' && c != '^' && c != '.'; };
  while (true) {
    while (!a.empty() && separator(a.front())) a.remove_prefix(1);
    while (!b.empty() && separator(b.front())) b.remove_prefix(1);
    for (const char mark : {'~', '\0', '-', '^', '.'}) {
      if (mark == '\0') {
        if (a.empty() || b.empty()) return a.empty() && b.empty() ? 0 : a.empty() ? -1 : 1;
        continue;
      }
      const bool x = a.starts_with(mark);
      const bool y = b.starts_with(mark);
      if (x != y) return x ? -1 : 1;
      if (!x) continue;
      a.remove_prefix(1);
      b.remove_prefix(1);
    }
    if (a.empty() && b.empty()) return 0;
    const bool number_a = !a.empty() && digit(a.front());
    const bool number_b = !b.empty() && digit(b.front());
    if (number_a || number_b) {
      const auto x = take_digits(a);
      const auto y = take_digits(b);
      if (x.empty() != y.empty()) return x.empty() ? -1 : 1;
      if (const int by = compare_numbers(x, y)) return by;
    } else {
      const auto x = take_letters(a);
      const auto y = take_letters(b);
      if (const int by =
              sign(x.substr(0, std::min(x.size(), y.size())).compare(y.substr(0, std::min(x.size(), y.size())))))
        return by;
      if (x.size() != y.size()) return x.size() < y.size() ? -1 : 1;
    }
  }
}

int compare_upstream(std::string_view a, std::string_view b) {
  const Upstream x = split_upstream(a);
  const Upstream y = split_upstream(b);
  for (std::size_t i = 0; i < x.numbers.size(); ++i) {
    if (const int by = compare_numbers(x.numbers.at(i), y.numbers.at(i))) return by;
  }
  if (x.candidate.empty() != y.candidate.empty()) return x.candidate.empty() ? 1 : -1;
  return compare_numbers(x.candidate, y.candidate);
}

std::string_view to_string(Ordering ordering) {
  static constexpr std::array<std::string_view, 4> kNames = {"dpkg", "rpm", "pacman", "upstream"};
  return kNames.at(static_cast<std::size_t>(ordering));
}
std::optional<Ordering> ordering_from(std::string_view name) {
  for (const Ordering o : {Ordering::Dpkg, Ordering::Rpm, Ordering::Pacman, Ordering::Upstream}) {
    if (to_string(o) == name) return o;
  }
  return std::nullopt;
}

int compare(Ordering ordering, std::string_view a, std::string_view b) {
  switch (ordering) {
    case Ordering::Dpkg:
      return compare_dpkg(a, b);
    case Ordering::Rpm:
      return compare_rpm(a, b);
    case Ordering::Pacman:
      return compare_pacman(a, b);
    case Ordering::Upstream:
      return compare_upstream(a, b);
  }
  return 0;
}

}  // namespace gpuhealth::grub
