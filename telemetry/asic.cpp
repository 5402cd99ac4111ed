// SPDX-License-Identifier: Apache-2.0
#include "telemetry/asic.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <iterator>
#include <optional>
#include <utility>

namespace gpuhealth::telemetry {
namespace {

struct ChipRow {
  AsicInfo info;
  std::uint16_t ids[24];  // 0 behind the last
};
#define CHIP(name, family, gfx, ...) {{AsicFamily::family, name, gfx}, {__VA_ARGS__}},
constexpr ChipRow kChips[] = {
#include "telemetry/asic.def"
};
#undef CHIP

constexpr std::int16_t kNoRevision = -1;
struct ProductRow {
  std::string_view name;
  std::uint16_t device_id;
  std::int16_t revisions[40];  // ends with kNoRevision
};
#define PRODUCT(name, device_id, ...) {name, device_id, {__VA_ARGS__, kNoRevision}},
constexpr ProductRow kProducts[] = {
#include "telemetry/product_names.def"
};
#undef PRODUCT

constexpr std::size_t kLongestName = 128;
constexpr std::size_t kLargestFile = 1 << 20;  // libdrm's is 25 KB

std::string_view trim(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

template <class T>
std::optional<T> parse_hex(std::string_view text) {
  T value{};
  const auto* end = text.data() + text.size();
  const auto [ptr, ec] = std::from_chars(text.data(), end, value, 16);
  if (text.empty() || ec != std::errc{} || ptr != end) return std::nullopt;
  return value;
}

// Names go to terminals and buses: a row with anything but printable ASCII is damage.
bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= kLongestName &&
         std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; });
}

std::string one_of_text(std::string_view chip, std::size_t products) {
  std::string out(chip.empty() ? "AMD GPU" : chip);
  return out + " (one of " + std::to_string(products) + " products)";
}

template <class Rows>
std::vector<std::string> distinct_names(const Rows& rows) {
  std::vector<std::string> out;
  for (const auto& row : rows) {
    if (std::ranges::find(out, row.name) == out.end()) out.push_back(row.name);
  }
  return out;
}

}  // namespace

AsicInfo find_asic(std::uint16_t device_id) {
  if (device_id == 0) return {};
  for (const auto& chip : kChips) {
    if (std::ranges::find(chip.ids, device_id) != std::end(chip.ids)) return chip.info;
  }
  return {};
}

NameTable NameTable::load(const std::string& ids_path) {
  std::string text;
  std::ifstream file(ids_path, std::ios::binary);
  std::array<char, 4096> chunk{};
  while (text.size() < kLargestFile && (file.read(chunk.data(), chunk.size()) || file.gcount() > 0))
    text.append(chunk.data(), static_cast<std::size_t>(file.gcount()));
  return parse(text);
}

NameTable NameTable::parse(std::string_view ids) {
  NameTable table;
  while (!ids.empty()) {
    const auto line = ids.substr(0, ids.find('\n'));
    ids.remove_prefix(std::min(line.size() + 1, ids.size()));
    const auto first = line.find(',');
    const auto second = first == std::string_view::npos ? first : line.find(',', first + 1);
    if (line.starts_with('#') || second == std::string_view::npos) continue;
    const auto id = parse_hex<std::uint16_t>(trim(line.substr(0, first)));
    const auto revision = parse_hex<std::uint8_t>(trim(line.substr(first + 1, second - first - 1)));
    const auto name = trim(line.substr(second + 1));
    if (id && revision && is_name(name)) table.add({*id, *revision, std::string(name)});
  }
  table.add_own_rows();
  return table;
}

void NameTable::add(Row row) {
  const auto by_key = [](const Row& r) { return std::pair(r.device_id, r.revision); };
  const auto at = std::ranges::upper_bound(rows_, by_key(row), {}, by_key);
  rows_.insert(at, std::move(row));
}

void NameTable::add_own_rows() {
  const NameTable installed = *this;
  for (const auto& product : kProducts) {
    for (const auto* at = product.revisions; *at != kNoRevision; ++at) {
      const auto revision = static_cast<std::uint8_t>(*at);
      if (!installed.has(product.device_id, revision)) add({product.device_id, revision, std::string(product.name)});
    }
  }
}

bool NameTable::has(std::uint16_t device_id, std::uint8_t revision) const {
  return std::ranges::binary_search(rows_, std::pair(device_id, revision), {},
                                    [](const Row& r) { return std::pair(r.device_id, r.revision); });
}

ProductNames NameTable::find(std::uint16_t device_id, std::optional<std::uint8_t> revision) const {
  const auto chip = find_asic(device_id).chip;
  const auto of_id = std::ranges::equal_range(rows_, device_id, {}, &Row::device_id);
  auto names = distinct_names(of_id);
  bool revision_known = false;
  if (revision) {
    const auto exact = distinct_names(std::ranges::equal_range(of_id, *revision, {}, &Row::revision));
    revision_known = !exact.empty();
    if (revision_known) names = exact;
  }
  if (names.empty()) return {std::string(chip), {}};
  const bool sure = names.size() == 1 && (revision_known || !revision);
  if (sure) return {names.front(), {}};
  // A revision that nobody listed may be a product that nobody listed.
  if (names.size() == 1) return {std::string(chip.empty() ? std::string_view("AMD GPU") : chip), std::move(names)};
  auto text = one_of_text(chip, names.size());
  return {std::move(text), std::move(names)};
}

}  // namespace gpuhealth::telemetry
