// SPDX-License-Identifier: Apache-2.0
#include "telemetry/klog/line.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <tuple>

namespace gpuhealth::klog {
namespace {

constexpr std::int64_t kSecond = 1'000'000;
constexpr std::int64_t kDay = 86'400 * kSecond;
constexpr auto npos = std::string_view::npos;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_space(char c) {
  return c == ' ' || c == '\t';
}
void skip_spaces(std::string_view& text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
}

int two_digits(std::string_view text, std::size_t at) {
  return (text[at] - '0') * 10 + (text[at + 1] - '0');
}

// "14:37:38" at `at`, not part of a longer number.
bool clock_at(std::string_view text, std::size_t at) {
  if (at + 8 > text.size()) return false;
  for (const std::size_t i : {0U, 1U, 3U, 4U, 6U, 7U})
    if (!is_digit(text[at + i])) return false;
  if (text[at + 2] != ':' || text[at + 5] != ':') return false;
  return (at == 0 || !is_digit(text[at - 1])) && (at + 8 == text.size() || !is_digit(text[at + 8]));
}

std::size_t find_clock(std::string_view text) {
  for (auto colon = text.find(':'); colon != npos; colon = text.find(':', colon + 1))
    if (colon >= 2 && clock_at(text, colon - 2)) return colon - 2;
  return npos;
}

// The fraction behind a second, "." or "," and digits, in microseconds; `end` moves behind it.
std::int64_t fraction(std::string_view text, std::size_t& end) {
  if (end >= text.size() || (text[end] != '.' && text[end] != ',') || end + 1 >= text.size() ||
      !is_digit(text[end + 1]))
    return 0;
  std::int64_t us = 0;
  std::int64_t scale = kSecond / 10;
  for (++end; end < text.size() && is_digit(text[end]); ++end, scale /= 10) us += (text[end] - '0') * scale;
  return us;
}

Stamp clock_stamp(std::string_view text, std::size_t at, std::size_t& end) {
  const std::int64_t seconds =
      (two_digits(text, at) * 60LL + two_digits(text, at + 3)) * 60LL + two_digits(text, at + 6);
  end = at + 8;
  return {Stamp::Kind::TimeOfDay, seconds * kSecond + fraction(text, end)};
}

// "  649.968210": seconds since boot.
std::optional<Stamp> uptime(std::string_view text) {
  skip_spaces(text);
  std::int64_t seconds = 0;
  const auto* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, seconds);
  if (error != std::errc{} || seconds < 0 || seconds > 100'000'000'000) return std::nullopt;
  auto at = static_cast<std::size_t>(end - text.data());
  const bool dotted = at < text.size() && text[at] == '.';
  const std::int64_t us = fraction(text, at);
  if (!dotted || at != text.size()) return std::nullopt;
  return Stamp{Stamp::Kind::Uptime, seconds * kSecond + us};
}

// Printk's caller: "[  T291]", "[    C3]".
bool is_caller(std::string_view inside) {
  skip_spaces(inside);
  return inside.size() > 1 && (inside[0] == 'T' || inside[0] == 'C') && std::ranges::all_of(inside.substr(1), is_digit);
}

// dmesg -e and -H: "[  +0.000123]" since the line before, "[Jan 6 14:37]" at the first of a minute.
bool is_relative(std::string_view inside) {
  skip_spaces(inside);
  if (inside.starts_with('+')) return uptime(inside.substr(1)).has_value();
  if (inside.size() < 6 || inside.size() > 24) return false;
  const auto end = inside.substr(inside.size() - 6);
  return end[0] == ' ' && is_digit(end[1]) && is_digit(end[2]) && end[3] == ':' && is_digit(end[4]) && is_digit(end[5]);
}

// Takes "[...]" that is a time or a caller off the front. The message's own brackets stay.
bool take_bracket(std::string_view& rest, Line& line) {
  if (rest.empty() || rest.front() != '[') return false;
  const auto close = rest.find(']');
  if (close > 80) return false;
  auto inside = rest.substr(1, close - 1);
  if (const auto delta = inside.find(" <"); delta != npos) inside = inside.substr(0, delta);  // dmesg -d
  if (const auto stamp = uptime(inside)) {
    line.stamp = *stamp;
  } else if (const auto at = find_clock(inside); at != npos) {
    std::size_t end = 0;
    line.stamp = clock_stamp(inside, at, end);
  } else if (!is_caller(inside) && !is_relative(inside)) {
    return false;
  }
  if (!is_caller(inside)) {
    line.time = inside;
    skip_spaces(line.time);
  }
  rest.remove_prefix(close + 1);
  skip_spaces(rest);
  return true;
}

// "  356.920249] ": a time whose bracket was cut off.
bool take_cut_bracket(std::string_view& rest, Line& line) {
  const auto close = rest.find(']');
  if (close > 24 || rest.find('[') < close) return false;
  const auto stamp = uptime(rest.substr(0, close));
  if (!stamp) return false;
  line.stamp = *stamp;
  line.time = rest.substr(0, close);
  skip_spaces(line.time);
  rest.remove_prefix(close + 1);
  skip_spaces(rest);
  return true;
}

// "kern  :err   : " of dmesg -x. Another facility is another program's.
bool take_dmesg_level(std::string_view& rest, Line& line) {
  constexpr std::array<std::string_view, 9> kFacilities = {"kern",   "user", "mail",     "daemon", "auth",
                                                           "syslog", "lpr",  "authpriv", "local"};
  const auto first = rest.find(':');
  if (first > 8) return false;
  auto facility = rest.substr(0, first);
  while (!facility.empty() && is_space(facility.back())) facility.remove_suffix(1);
  const bool known =
      std::ranges::any_of(kFacilities, [&](std::string_view name) { return facility.starts_with(name); });
  if (!known) return false;
  const auto second = rest.find(':', first + 1);
  if (second == npos || second > first + 9) return false;
  const auto level = rest.substr(first + 1, second - first - 1);
  if (!std::ranges::all_of(level, [](char c) { return is_space(c) || (c >= 'a' && c <= 'z'); })) return false;
  line.kernel = facility == "kern";
  rest.remove_prefix(second + 1);
  skip_spaces(rest);
  return true;
}

// "6,1234,5678901,-;" of /dev/kmsg, or "<6>". Facility 0 is the kernel.
bool take_priority(std::string_view& rest, Line& line) {
  const bool angle = rest.starts_with('<');
  const auto digits = angle ? rest.substr(1) : rest;
  unsigned priority = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), priority);
  if (error != std::errc{}) return false;
  const auto at = static_cast<std::size_t>(end - digits.data());
  if (at >= digits.size()) return false;
  if (angle) {
    if (digits[at] != '>') return false;
    line.kernel = priority < 8;
    rest = digits.substr(at + 1);
    return true;
  }
  if (digits[at] != ',') return false;
  const auto semicolon = digits.find(';');
  const auto second = digits.find(',', at + 1);
  if (semicolon == npos || second == npos || second > semicolon || semicolon > 80) return false;
  const auto time = digits.substr(second + 1, semicolon - second - 1);
  std::int64_t us = 0;
  const auto parsed = std::from_chars(time.data(), time.data() + time.size(), us);
  if (parsed.ec != std::errc{} || us < 0) return false;
  line.kernel = priority < 8;
  line.stamp = {Stamp::Kind::Uptime, us};
  line.time = time.substr(0, static_cast<std::size_t>(parsed.ptr - time.data()));
  rest = digits.substr(semicolon + 1);
  return true;
}

// "2024-06-06T10:27:06.055474+08:00", "2024-06-06 10:27:06". Returns 0 for anything else.
std::size_t iso_length(std::string_view text) {
  if (text.size() < 19) return 0;
  for (const std::size_t i : {0U, 1U, 2U, 3U, 5U, 6U, 8U, 9U})
    if (!is_digit(text[i])) return 0;
  if (text[4] != '-' || text[7] != '-' || (text[10] != 'T' && text[10] != ' ') || !clock_at(text, 11)) return 0;
  std::size_t end = 19;
  std::ignore = fraction(text, end);
  while (end < text.size() && !is_space(text[end])) ++end;  // the zone
  return end;
}

constexpr std::array<std::string_view, 10> kGpuWords = {"amdgpu", "radeon", "nouveau", "i915",          "xe",
                                                        "NVRM",   "nvidia", "[drm",    "snd_hda_intel", "pcieport"};

bool starts_like_a_driver(std::string_view message) {
  return std::ranges::any_of(kGpuWords, [&](std::string_view word) {
    return message.starts_with(word) && message.size() > word.size() &&
           (word == "[drm" || message[word.size()] == ':' || message[word.size()] == ' ');
  });
}

// Where "kernel: " ends, when only a date and a host stand before it.
std::size_t behind_kernel_tag(std::string_view text) {
  constexpr std::string_view kTag = "kernel:";
  const auto at = text.substr(0, 160).find(kTag);
  if (at == npos || (at > 0 && !is_space(text[at - 1]))) return npos;
  const auto before = text.substr(0, at);
  if (before.find(": ") != npos || before.find("]:") != npos) return npos;  // another program quotes it
  return at + kTag.size();
}

// A date in front of "HOST IDENT:" without "kernel:": some program's line, or one whose host was cut out.
void decide_program(std::string_view rest, Line& line) {
  if (!starts_like_a_driver(rest)) line.kernel = false;
  line.message = rest;
}

// A printk of systemd and others through /dev/kmsg: "systemd[1]: …".
bool is_program(std::string_view message) {
  const auto bracket = message.find('[');
  if (bracket == npos || bracket == 0 || bracket > 32) return false;
  const auto close = message.find("]: ", bracket);
  if (close == npos || close > bracket + 10 || close == bracket + 1) return false;
  const auto name = message.substr(0, bracket);
  return name.find(' ') == npos && std::ranges::all_of(message.substr(bracket + 1, close - bracket - 1), is_digit);
}

bool is_command_line(std::string_view message) {
  return message.starts_with("Command line:") || message.starts_with("Kernel command line:") ||
         message.starts_with("Unknown kernel command line");
}

void take_message_times(std::string_view& rest, Line& line) {
  while (take_bracket(rest, line)) {
  }
}

void finish(std::string_view rest, Line& line) {
  while (!rest.empty() && (is_space(rest.back()) || rest.back() == '\r' || rest.back() == '\n')) rest.remove_suffix(1);
  line.message = rest;
  if (is_command_line(rest) || is_program(rest)) line.kernel = false;
}

// The time in a syslog head of any language: its time of day.
void head_time(std::string_view head, Line& line) {
  std::string_view rest = head;
  skip_spaces(rest);
  if (!rest.empty() && rest.front() == '[') {
    std::ignore = take_bracket(rest, line);
    return;
  }
  const auto at = find_clock(head);
  if (at == npos) {
    const auto space = rest.find(' ');
    if (const auto stamp = uptime(rest.substr(0, space))) {  // journalctl -o short-unix
      line.stamp = *stamp;
      line.time = rest.substr(0, space);
    }
    return;
  }
  std::size_t end = 0;
  line.stamp = clock_stamp(head, at, end);
  while (end < head.size() && !is_space(head[end])) ++end;
  line.time = head.substr(0, end);
  skip_spaces(line.time);
}

// "Jan 06 14:37:38 ", "6. Jan 14:37:38 ", "1月 06 14:37:38 ": words, then a time of day.
std::size_t syslog_date_length(std::string_view text) {
  const auto at = find_clock(text.substr(0, 48));
  if (at == npos || at == 0 || text.substr(0, at).find_first_of("[<:") != npos) return 0;
  if (std::ranges::count(text.substr(0, at), ' ') > 5) return 0;
  std::size_t end = at + 8;
  std::ignore = fraction(text, end);
  return end < text.size() && is_space(text[end]) ? end : 0;
}

}  // namespace

std::optional<std::int64_t> microseconds_between(const Stamp& earlier, const Stamp& later) {
  if (earlier.kind != later.kind || earlier.kind == Stamp::Kind::None) return std::nullopt;
  const auto us = later.us - earlier.us;
  if (us >= 0 || earlier.kind == Stamp::Kind::Uptime) return us;
  return us < -kDay / 2 ? us + kDay : us;
}

Line parse_line(std::string_view text) {
  Line line;
  std::string_view rest = text;
  std::ignore = take_dmesg_level(rest, line);
  if (const auto behind = behind_kernel_tag(rest); behind != npos) {
    head_time(rest.substr(0, behind), line);
    rest.remove_prefix(behind);
    skip_spaces(rest);
    take_message_times(rest, line);
    finish(rest, line);
    return line;
  }
  std::ignore = take_priority(rest, line);
  skip_spaces(rest);
  if (take_bracket(rest, line) || take_cut_bracket(rest, line)) {
    take_message_times(rest, line);
  } else if (const auto iso = iso_length(rest); iso != 0) {
    head_time(rest.substr(0, iso), line);
    const bool from_dmesg = rest.substr(0, iso).find(',') != npos;
    rest.remove_prefix(iso);
    skip_spaces(rest);
    take_message_times(rest, line);
    if (!from_dmesg) decide_program(rest, line);
  } else if (clock_at(rest, 0)) {
    head_time(rest.substr(0, 8), line);
    rest.remove_prefix(8);
    skip_spaces(rest);
  } else if (const auto date = syslog_date_length(rest); date != 0) {
    head_time(rest.substr(0, date), line);
    rest.remove_prefix(date);
    skip_spaces(rest);
    decide_program(rest, line);
  }
  finish(rest, line);
  return line;
}

bool has_escapes(std::string_view text) {
  return text.find_first_of("\x1b\r") != npos || text.find("\\x") != npos;
}

std::string strip_escapes(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  const auto hex = [](char c) { return is_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; };
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    std::size_t length = 1;
    if (c == '\\' && i + 3 < text.size() && text[i + 1] == 'x' && hex(text[i + 2]) >= 0 && hex(text[i + 3]) >= 0) {
      c = static_cast<char>(hex(text[i + 2]) * 16 + hex(text[i + 3]));
      length = 4;
    }
    if (c == '\x1b') {  // ESC [ parameters letter
      std::size_t at = i + length;
      if (at < text.size() && text[at] == '[') ++at;
      while (at < text.size() && (is_digit(text[at]) || text[at] == ';' || text[at] == '?')) ++at;
      if (at < text.size() && ((text[at] >= 'A' && text[at] <= 'Z') || (text[at] >= 'a' && text[at] <= 'z'))) ++at;
      i = at - 1;
      continue;
    }
    i += length - 1;
    if (c != '\r') out += c;
  }
  return out;
}

}  // namespace gpuhealth::klog
