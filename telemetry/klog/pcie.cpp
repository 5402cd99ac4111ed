// SPDX-License-Identifier: Apache-2.0
#include "telemetry/klog/pcie.hpp"

#include <charconv>

namespace gpuhealth::klog {
namespace {

constexpr auto npos = std::string_view::npos;

// "Corrected", "Correctable", "Uncorrected (Non-Fatal)", "Uncorrectable (Fatal)", APEI's "recoverable", "fatal".
std::optional<Type> aer_type(std::string_view text) {
  if (text.find("Non-Fatal") != npos || text.starts_with("recoverable")) return Type::AerNonfatal;
  if (text.find("Fatal") != npos || text.starts_with("fatal")) return Type::AerFatal;
  if (text.find("Uncorrect") != npos) return Type::AerNonfatal;
  if (text.find("orrect") != npos) return Type::AerCorrectable;
  return std::nullopt;
}

std::uint32_t hex_at(std::string_view text) {
  std::uint32_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return value;
}

// "id=0700", "id=00e4(Receiver ID)" until 4.17: bus, device and function in 16 bits, in the port's domain.
std::optional<PciAddress> requester(std::string_view text, const PciAddress& port) {
  const auto at = text.find("id=");
  if (at == npos) return std::nullopt;
  const auto id = hex_at(text.substr(at + 3, 4));
  PciAddress out;
  out.domain = port.domain;
  out.bus = static_cast<std::uint8_t>(id >> 8U);
  out.device = static_cast<std::uint8_t>(id >> 3U & 0x1fU);
  out.function = static_cast<std::uint8_t>(id & 7U);
  return out;
}

// The device that an "error received" line of a root port names.
std::optional<PciAddress> source_of(std::string_view text, const PciAddress& port) {
  for (const std::string_view before : {"received from ", "received: "}) {
    const auto at = text.find(before);
    if (at == npos) continue;
    std::size_t length = 0;
    if (const auto address = address_at(text.substr(at + before.size()), length)) return address;
  }
  return requester(text, port);
}

void set_type(Event& event, Type type) {
  event.type = type;
  event.severity = info(type).severity;
}

std::string_view without_tag(std::string_view text) {
  for (const std::string_view tag : {"AER: ", "DPC: ", "pciehp: "})
    if (text.starts_with(tag)) return text.substr(tag.size());
  // "pciehp 0000:00:01.1:pcie004: Slot(0): …" until 5.0: the port's service.
  if (text.starts_with("pcie") && text.size() > 9 && text.substr(7, 2) == ": ") return text.substr(9);
  return text;
}

}  // namespace

std::optional<PcieFinding> read_pcie(Event base, const Origin& origin, const Facts& facts,
                                     const Folding::Place& place) {
  if (!origin.device) return std::nullopt;
  const auto text = without_tag(origin.text);
  auto device = *origin.device;
  Weight weight = Weight::Line;
  bool link_only = false;
  if (text.starts_with("PCIe Bus Error: severity=")) {
    const auto type = aer_type(text.substr(25, text.find(',') - 25));
    if (!type) return std::nullopt;
    set_type(base, *type);
  } else if (text.find(" error received") != npos || text.find(" error message received") != npos) {
    const auto type = aer_type(text);
    const auto source = source_of(text, device);
    if (!type || !source) return std::nullopt;
    set_type(base, *type);
    device = *source;
    weight = Weight::Echo;
  } else if (text.starts_with("device recovery failed") || text.starts_with("Device recovery failed") ||
             text.starts_with("can't recover (")) {
    set_type(base, Type::PcieRecoveryFailed);
  } else if (text.starts_with("containment event")) {
    set_type(base, Type::PcieDpc);
  } else if (text.starts_with("Slot(") && (text.find("Link Down") != npos || text.find("Card not present") != npos)) {
    if (text.find("ignored") != npos) return std::nullopt;
    set_type(base, Type::PcieLinkDown);
    link_only = true;
  } else {
    return std::nullopt;
  }
  const auto from = device == *origin.device ? origin.from : static_cast<std::uint16_t>(Bare);
  const auto relation = facts.relation(device, from);
  if (relation == Relation::NotGpu) return std::nullopt;
  // Docks and disks come and go: a slot is a GPU's only when the log shows one in it.
  if (link_only && relation == Relation::Unknown) base.severity = Severity::Info;
  base.device = device;
  return PcieFinding{std::move(base), weight, place};
}

void learn_pcie(const Origin& origin, Facts& facts) {
  if (!origin.device) return;
  if ((origin.from & Other) != 0 && !facts.gpu_slot(*origin.device)) facts.saw_foreign_error();
  // "device [1002:1478] error status/mask=00000040/00002000"
  const auto at = origin.text.find("device [");
  if (at == npos || origin.text.size() < at + 17) return;
  facts.add_port_ids(*origin.device, hex_at(origin.text.substr(at + 8, 4)), hex_at(origin.text.substr(at + 13, 4)));
}

void GhesRecord::begin() {
  pcie_ = false;
  device_.reset();
  port_of_gpu_ = false;
}

std::optional<PcieFinding> GhesRecord::finish(const Facts& facts) {
  if (!device_) return std::nullopt;
  auto [event, place] = std::move(*device_);
  device_.reset();
  const auto relation = port_of_gpu_ ? Relation::Gpu : facts.relation(*event.device, Bare);
  if (relation == Relation::NotGpu) return std::nullopt;
  return PcieFinding{std::move(event), Weight::Line, place};
}

std::optional<PcieFinding> GhesRecord::line(Event base, std::string_view text, const Facts& facts,
                                            const Folding::Place& place) {
  constexpr std::string_view kTag = "[Hardware Error]:";
  if (!text.starts_with(kTag)) return std::nullopt;
  text.remove_prefix(kTag.size());
  while (text.starts_with(' ')) text.remove_prefix(1);
  const auto value = [&](std::string_view key) {
    return text.starts_with(key) ? std::optional(text.substr(key.size())) : std::nullopt;
  };
  if (text.starts_with("Hardware error from APEI")) {
    auto done = finish(facts);
    begin();
    severity_.clear();
    return done;
  }
  if (const auto severity = value("event severity: ")) {
    severity_ = *severity;
  } else if (text.starts_with("Error ")) {
    auto done = finish(facts);
    begin();
    if (const auto type = text.find("type: "); type != npos) severity_ = text.substr(type + 6);
    return done;
  } else if (const auto section = value("section_type: ")) {
    pcie_ = section->starts_with("PCIe error");
  } else if (const auto device = value("device_id: "); device && pcie_) {
    std::size_t length = 0;
    base.device = address_at(*device, length);
    const auto type = aer_type(severity_);
    if (!base.device || !type) return std::nullopt;
    set_type(base, *type);
    device_.emplace(std::move(base), place);
  } else if (const auto vendor = value("vendor_id: 0x"); vendor && device_) {
    const auto id = vendor->find("device_id: 0x");
    if (id != npos) {
      const auto number = hex_at(vendor->substr(id + 13, 4));
      port_of_gpu_ = hex_at(vendor->substr(0, 4)) == 0x1002 && (number == 0x1478 || number == 0x1479);
    }
  } else if (const auto pci_class = value("class_code: "); pci_class && device_) {
    const auto base_class = hex_at(pci_class->substr(0, 2));
    if (base_class == 0x03 || base_class == 0x12) port_of_gpu_ = true;
    if (base_class != 0x03 && base_class != 0x12 && base_class != 0x06) device_.reset();
    return finish(facts);
  }
  return std::nullopt;
}

}  // namespace gpuhealth::klog
