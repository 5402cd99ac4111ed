// SPDX-License-Identifier: Apache-2.0
// Which entry GRUB starts by itself (normal/menu.c: get_entry_number, menuentry_eq, grub_menu_execute_entry).
#include <algorithm>
#include <cstdint>

#include "grub/interpreter.hpp"

namespace gpuhealth::grub {
namespace {

constexpr int kNumberTooLarge = -2;

// grub_strtoul with base 0, trailing text allowed; null: no number, -2: out of range, which names nothing.
std::optional<int> leading_number(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  int base = 10;
  if (text.size() > 1 && text[0] == '0') {
    base = text[1] == 'x' || text[1] == 'X' ? 16 : 8;
    if (base == 16) text.remove_prefix(2);
  }
  std::int64_t value = 0;
  bool any = false;
  for (const char c : text) {
    const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : 99;
    if (digit >= base) break;
    any = true;
    value = value * base + digit;
    if (value > 1'000'000) return kNumberTooLarge;
  }
  if (!any) return std::nullopt;
  return static_cast<int>(value);
}

// `wanted` up to its first single '>' is `name`, a double '>>' standing for one.
bool names(std::string_view wanted, std::string_view name) {
  std::size_t i = 0;
  std::size_t j = 0;
  while (true) {
    const bool end = i == wanted.size() || (wanted[i] == '>' && (i + 1 == wanted.size() || wanted[i + 1] != '>'));
    if (end) return j == name.size();
    if (wanted[i] == '>') ++i;
    if (j == name.size() || wanted[i] != name[j]) return false;
    ++i;
    ++j;
  }
}

// Could `wanted` be this name, part of which only GRUB knows?
bool may_name(std::string_view wanted, std::string_view name) {
  return wanted.starts_with(name.substr(0, name.find("${")));
}

std::string_view behind_first(std::string_view wanted) {
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] != '>') continue;
    if (i + 1 < wanted.size() && wanted[i + 1] == '>') {
      ++i;
    } else {
      return wanted.substr(i + 1);
    }
  }
  return {};
}

std::optional<int> by_name(const Menu& menu, std::string_view wanted, bool ids, bool titles) {
  for (std::size_t i = 0; i < menu.size(); ++i) {
    const MenuEntry& entry = menu[i];
    const bool hit = (ids && names(wanted, entry.id)) || (titles && names(wanted, entry.title));
    if (hit) return entry.certain ? std::optional<int>(static_cast<int>(i)) : std::nullopt;
    if (!entry.known && ((ids && may_name(wanted, entry.id)) || (titles && may_name(wanted, entry.title))))
      return std::nullopt;
  }
  return -1;
}

// Counting is possible only over entries that are there for sure.
std::optional<int> by_number(const Menu& menu, int number) {
  if (number < 0) return -1;
  const auto upto = std::min<std::size_t>(static_cast<std::size_t>(number) + 1, menu.size());
  for (std::size_t i = 0; i < upto; ++i)
    if (!menu[i].certain) return std::nullopt;
  return static_cast<std::size_t>(number) < menu.size() ? number : -1;
}

}  // namespace

std::optional<int> find_entry(const Menu& menu, std::string_view wanted, Matching matching) {
  if (wanted.empty()) return -1;
  const auto number = leading_number(wanted);
  if (matching == Matching::NumberFirst) return number ? by_number(menu, *number) : by_name(menu, wanted, true, true);
  for (const bool ids : {true, false}) {
    const auto found = by_name(menu, wanted, ids, !ids);
    if (!found || *found >= 0) return found;
  }
  return number ? by_number(menu, *number) : std::optional<int>(-1);
}

namespace {

std::string first_reason(const Value& wanted, const Machine& machine) {
  if (wanted.text.empty()) {
    if (wanted.origin != "saved_entry") return "no default is set";
    return machine.grubenv ? "grubenv has no saved_entry" : "saved_entry is wanted and there is no readable grubenv";
  }
  const std::string text = "'" + wanted.text + "'";
  if (wanted.origin == "next_entry") return "next_entry in grubenv asks for " + text + " once";
  if (wanted.origin == "saved_entry") return "saved_entry in grubenv names " + text;
  if (!wanted.origin.empty()) return wanted.origin + " names " + text;
  return "the configuration names " + text;
}

}  // namespace

Choice Interpreter::choose(Matching matching) const {
  Choice out;
  if (const auto why = obscured()) {
    out.reason = *why;
    return out;
  }
  const Value wanted = look_up("default");
  if (!wanted.known) {
    out.reason = "the default is " + wanted.text + ", which only GRUB knows at boot";
    return out;
  }
  out.reason = first_reason(wanted, machine_);
  std::string_view rest = wanted.text;
  const Menu* menu = &menu_;
  while (true) {
    const std::string where = out.path.empty() ? "the menu" : "that submenu";
    const auto unknown = [&](const std::string& why) { return Choice{false, {}, out.reason + "; " + why}; };
    if (menu->empty()) return unknown(where + " is empty");
    const auto found = find_entry(*menu, rest, matching);
    if (!found) return unknown("whether an entry before it is in " + where + " depends on what only GRUB knows");
    std::size_t index = 0;
    if (*found >= 0) {
      index = static_cast<std::size_t>(*found);
    } else {
      if (!menu->front().certain) return unknown("what comes first in " + where + " depends on what only GRUB knows");
      if (!rest.empty()) out.reason += "; " + where + " has no such entry";
      if (out.path.empty() || !rest.empty()) out.reason += "; GRUB takes the first one of " + where;
    }
    out.path.push_back(index);
    const MenuEntry& entry = (*menu)[index];
    if (!entry.submenu) break;
    rest = behind_first(rest);
    menu = &entry.children;
  }
  out.known = true;
  const Value timeout = look_up("timeout");
  if (timeout.known && (timeout.text.empty() || timeout.text.starts_with('-')))
    out.reason += "; GRUB waits for a person (no timeout)";
  return out;
}

}  // namespace gpuhealth::grub
