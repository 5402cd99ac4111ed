// SPDX-License-Identifier: Apache-2.0
#include "telemetry/kfd.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>
#include <tuple>
#include <utility>

#include "telemetry/discovery.hpp"
#include "telemetry/parse.hpp"
#include "telemetry/sysfs.hpp"

namespace gpuhealth::telemetry {
namespace fs = std::filesystem;
namespace {

constexpr std::uint64_t kLinkPcie = 2;  // CRAT_IOLINK_TYPE_*
constexpr std::uint64_t kLinkXgmi = 11;

// Calls `each` with key and number of every line that is that.
template <class Each>
void for_each_number(std::string_view text, Each each) {
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    const auto line = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    const auto blank = line.find(' ');
    if (blank == std::string_view::npos) continue;
    std::uint64_t value = 0;
    const auto number = line.substr(blank + 1);
    const auto [stop, error] = std::from_chars(number.data(), number.data() + number.size(), value);
    if (error == std::errc() && stop == number.data() + number.size()) each(line.substr(0, blank), value);
  }
}

using Field = void (*)(KfdNode&, std::uint64_t);
struct Row {
  std::string_view key;
  Field set;
};
template <auto Member>
void take(KfdNode& node, std::uint64_t value) {
  auto& field = node.*Member;
  field = static_cast<std::remove_reference_t<decltype(field)>>(value);
}
constexpr Row kRows[] = {{"simd_count", take<&KfdNode::simd_count>},
                         {"simd_per_cu", take<&KfdNode::simd_per_cu>},
                         {"gfx_target_version", take<&KfdNode::gfx_target_version>},
                         {"vendor_id", take<&KfdNode::vendor_id>},
                         {"device_id", take<&KfdNode::device_id>},
                         {"location_id", take<&KfdNode::location_id>},
                         {"domain", take<&KfdNode::domain>},
                         {"num_xcc", take<&KfdNode::num_xcc>},
                         {"drm_render_minor", take<&KfdNode::render_minor>},
                         {"hive_id", take<&KfdNode::hive_id>},
                         {"unique_id", take<&KfdNode::unique_id>}};

std::vector<std::uint32_t> numbered(const fs::path& folder) {
  std::vector<std::uint32_t> out;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const auto n = parse_integer(it->path().filename().string());
    if (n && *n >= 0 && *n < 1 << 20) out.push_back(static_cast<std::uint32_t>(*n));
  }
  std::ranges::sort(out);
  return out;
}

void read_links(const fs::path& node, KfdNode& out) {
  for (const auto* kind : {"io_links", "p2p_links"}) {
    for (const auto n : numbered(node / kind)) {
      const auto text = read_text(node / kind / std::to_string(n) / "properties");
      if (const auto link = text ? parse_kfd_link(*text) : std::nullopt) out.links.push_back(*link);
    }
  }
}

std::uint32_t partition_of(const KfdNode& node) {
  return std::max(node.location_id & 7U, node.location_id >> 28U);
}

ComputeNode compute_node(const KfdNode& n) {
  ComputeNode out;
  out.node = n.node;
  out.gpu_id = n.gpu_id;
  out.partition = partition_of(n);
  out.gfx = gfx_name(n.gfx_target_version);
  out.render_minor = n.render_minor;
  out.compute_units = n.simd_per_cu != 0 ? n.simd_count / n.simd_per_cu : 0;
  return out;
}

// A function of the bus (a virtual one, an APU's) is a card of its own; a number that is none is a partition's.
PciAddress card_place(const KfdNode& n, const std::vector<PciAddress>& known) {
  auto place = kfd_address(n);
  if (std::ranges::find(known, place) == known.end()) place.function = 0;
  return place;
}

}  // namespace

std::optional<KfdLink> parse_kfd_link(std::string_view text) {
  KfdLink link;
  bool from = false;
  bool to = false;
  for_each_number(text, [&](std::string_view key, std::uint64_t value) {
    if (key == "node_from") from = true, link.from = static_cast<std::uint32_t>(value);
    if (key == "node_to") to = true, link.to = static_cast<std::uint32_t>(value);
    if (key == "type") {
      link.type = value == kLinkXgmi ? KfdLinkType::Xgmi : value == kLinkPcie ? KfdLinkType::Pcie : KfdLinkType::Other;
    }
  });
  if (!from || !to) return std::nullopt;
  return link;
}

std::optional<KfdNode> parse_kfd_node(std::string_view text) {
  KfdNode node;
  bool any = false;
  for_each_number(text, [&](std::string_view key, std::uint64_t value) {
    const auto* const row = std::ranges::find(kRows, key, &Row::key);
    if (row == std::end(kRows)) return;
    any = true;
    row->set(node, value);
  });
  if (!any) return std::nullopt;
  if (node.render_minor <= 0) node.render_minor = -1;  // 0 is a primary node: a CPU's entry
  return node;
}

std::string gfx_name(std::uint32_t version) {
  if (version == 0) return {};
  constexpr std::string_view digits = "0123456789abcdef";
  const auto minor = version / 100 % 100;
  const auto step = version % 100;
  if (minor > 15 || step > 15) return {};
  return "gfx" + std::to_string(version / 10000) + digits[minor] + digits[step];
}

PciAddress kfd_address(const KfdNode& node) {
  PciAddress out;
  out.domain = node.domain;
  out.bus = static_cast<std::uint8_t>(node.location_id >> 8U);
  out.device = static_cast<std::uint8_t>(node.location_id >> 3U & 0x1fU);
  out.function = static_cast<std::uint8_t>(node.location_id & 7U);
  return out;
}

std::vector<KfdNode> read_kfd_topology(const std::string& sysroot) {
  std::vector<KfdNode> out;
  const fs::path nodes = sysroot + "/sys/class/kfd/kfd/topology/nodes";
  for (const auto n : numbered(nodes)) {
    const auto folder = nodes / std::to_string(n);
    const auto text = read_text(folder / "properties");
    auto node = text ? parse_kfd_node(*text) : std::nullopt;
    if (!node) continue;
    node->node = n;
    node->gpu_id = static_cast<std::uint64_t>(parse_integer(read_text_or_empty(folder / "gpu_id")).value_or(0));
    if (node->is_gpu()) read_links(folder, *node);
    out.push_back(std::move(*node));
  }
  return out;
}

std::vector<KfdCard> kfd_cards(const std::vector<KfdNode>& nodes, const std::vector<PciAddress>& known) {
  std::map<PciAddress, KfdCard> cards;
  std::map<std::uint32_t, PciAddress> place_of;  // node -> card
  for (const auto& n : nodes) {
    if (!n.is_gpu()) continue;
    const auto place = card_place(n, known);
    place_of[n.node] = place;
    auto& card = cards[place];
    card.pci = place;
    card.unique_id = n.unique_id;
    card.hive_id = n.hive_id;
    card.device_id = n.device_id;
    card.nodes.push_back(compute_node(n));
  }
  for (const auto& n : nodes) {
    for (const auto& link : n.links) {
      const auto other = place_of.find(link.to);
      if (link.type != KfdLinkType::Xgmi || other == place_of.end() || !place_of.contains(n.node)) continue;
      auto& card = cards[place_of[n.node]];
      if (other->second == card.pci) continue;  // between partitions of one card
      if (std::ranges::find(card.xgmi_peers, other->second) == card.xgmi_peers.end())
        card.xgmi_peers.push_back(other->second);
    }
  }
  std::vector<KfdCard> out;
  for (auto& [place, card] : cards) {
    std::ranges::sort(card.nodes, {}, [](const ComputeNode& c) { return std::pair(c.partition, c.node); });
    std::ranges::sort(card.xgmi_peers);
    out.push_back(std::move(card));
  }
  return out;
}

void attach_compute_nodes(const std::string& sysroot, std::vector<DeviceInfo>& devices) {
  for (auto& device : devices) {
    device.compute_partition = read_text_or_empty(device_dir(sysroot, device.pci) + "/current_compute_partition");
    device.memory_partition = read_text_or_empty(device_dir(sysroot, device.pci) + "/current_memory_partition");
  }
  std::vector<PciAddress> known;
  known.reserve(devices.size());
  for (const auto& device : devices) known.push_back(device.pci);
  for (const auto& card : kfd_cards(read_kfd_topology(sysroot), known)) {
    const auto device = std::ranges::find(devices, card.pci, &DeviceInfo::pci);
    if (device == devices.end()) continue;
    device->compute_nodes = card.nodes;
    device->xgmi_peers = card.xgmi_peers;
    if (device->gfx.empty()) device->gfx = card.nodes.front().gfx;
  }
}

}  // namespace gpuhealth::telemetry
