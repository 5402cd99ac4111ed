// SPDX-License-Identifier: Apache-2.0
#include "sim/pci_files.hpp"

#include <fmt/format.h>

#include <cmath>
#include <numeric>
#include <span>

namespace gpuhealth::sim {
namespace {

struct AerRow {
  std::string_view name;
  std::uint64_t count = 0;
};

std::string aer_text(std::span<const AerRow> rows, std::string_view total_name) {
  std::string text;
  std::uint64_t total = 0;
  for (const AerRow& row : rows) {
    text += fmt::format("{} {}\n", row.name, row.count);
    total += row.count;
  }
  return text + fmt::format("{} {}\n", total_name, total);
}

std::string correctable_text(const AerCounts& aer) {
  const std::array<AerRow, 8> rows = {{{"RxErr", aer.receiver_errors},
                                       {"BadTLP", aer.bad_tlp},
                                       {"BadDLLP"},
                                       {"Rollover"},
                                       {"Timeout"},
                                       {"NonFatalErr"},
                                       {"CorrIntErr"},
                                       {"HeaderOF"}}};
  return aer_text(rows, "TOTAL_ERR_COR");
}

// Nonfatal errors are counted as completion time-outs, fatal ones as data link protocol errors.
std::string uncorrectable_text(std::uint64_t data_link, std::uint64_t timeouts, std::string_view total_name) {
  const std::array<AerRow, 18> rows = {{{"Undefined"},
                                        {"DLP", data_link},
                                        {"SDES"},
                                        {"TLP"},
                                        {"FCP"},
                                        {"CmpltTO", timeouts},
                                        {"CmpltAbrt"},
                                        {"UnxCmplt"},
                                        {"RxOF"},
                                        {"MalfTLP"},
                                        {"ECRC"},
                                        {"UnsupReq"},
                                        {"ACSViol"},
                                        {"UncorrIntErr"},
                                        {"BlockedTLP"},
                                        {"AtomicOpBlocked"},
                                        {"TLPBlockedErr"},
                                        {"PoisonTLPBlocked"}}};
  return aer_text(rows, total_name);
}

unsigned speed_code(double gts) {
  constexpr std::array<double, 6> kSpeeds = {2.5, 5.0, 8.0, 16.0, 32.0, 64.0};
  for (std::size_t i = 0; i < kSpeeds.size(); ++i)
    if (std::abs(kSpeeds[i] - gts) < 0.1) return static_cast<unsigned>(i + 1);
  return 15;
}

// 256 bytes: header type 0 or 1, and a PCI Express capability at 0x64 with the link's ability and state.
std::string config_bytes(const PciFunction& f) {
  std::string bytes(256, '\0');
  const auto put = [&bytes](std::size_t at, std::uint64_t value, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) bytes[at + i] = static_cast<char>(value >> (8 * i) & 0xff);
  };
  put(0x00, f.vendor, 2);
  put(0x02, f.device, 2);
  put(0x04, 0x0407, 2);  // command: memory, bus master
  put(0x06, 0x0010, 2);  // status: has capabilities
  put(0x08, f.revision, 1);
  put(0x09, f.pci_class, 3);
  const bool bridge = f.port != PciePort::Endpoint;
  put(0x0e, bridge ? 1 : 0, 1);
  if (!bridge) {
    put(0x2c, f.subsystem_vendor, 2);
    put(0x2e, f.subsystem_device, 2);
  }
  put(0x34, 0x64, 1);
  put(0x64, 0x10, 1);  // PCI Express, last in the list
  put(0x66, 2U | static_cast<unsigned>(f.port) << 4, 2);
  put(0x70, speed_code(f.link_max.speed_gts) | f.link_max.width << 4, 4);
  put(0x76, speed_code(f.link.speed_gts) | f.link.width << 4, 2);
  put(0x94, speed_code(f.link_max.speed_gts), 2);  // LNKCTL2: the target speed, as firmware leaves it
  return bytes;
}

std::string uevent_text(const PciFunction& f) {
  std::string text;
  if (!f.driver.empty()) text += fmt::format("DRIVER={}\n", f.driver);
  return text + fmt::format(
                    "PCI_CLASS={:X}\nPCI_ID={:04X}:{:04X}\nPCI_SUBSYS_ID={:04X}:{:04X}\nPCI_SLOT_NAME={}\n"
                    "MODALIAS=pci:v{:08X}d{:08X}sv{:08X}sd{:08X}bc{:02x}sc{:02x}i{:02x}\n",
                    f.pci_class, f.vendor, f.device, f.subsystem_vendor, f.subsystem_device, to_string(f.address),
                    f.vendor, f.device, f.subsystem_vendor, f.subsystem_device, f.pci_class >> 16,
                    f.pci_class >> 8 & 0xff, f.pci_class & 0xff);
}

}  // namespace

std::string link_speed_text(double gts) {
  return fmt::format("{:.1f} GT/s PCIe", gts);
}

std::vector<FileText> pci_identity_files(const PciFunction& f) {
  return {{"uevent", uevent_text(f)},
          {"vendor", fmt::format("0x{:04x}\n", f.vendor)},
          {"device", fmt::format("0x{:04x}\n", f.device)},
          {"subsystem_vendor", fmt::format("0x{:04x}\n", f.subsystem_vendor)},
          {"subsystem_device", fmt::format("0x{:04x}\n", f.subsystem_device)},
          {"revision", fmt::format("0x{:02x}\n", f.revision)},
          {"class", fmt::format("0x{:06x}\n", f.pci_class)},
          {"numa_node", "0\n"},
          {"local_cpulist", "0-15\n"},
          {"enable", "1\n"},
          {"power/control", "auto\n"},
          {"max_link_speed", link_speed_text(f.link_max.speed_gts) + "\n"},
          {"max_link_width", fmt::format("{}\n", f.link_max.width)}};
}

std::vector<FileText> pci_live_files(const PciFunction& f) {
  std::vector<FileText> files = {
      {"config", config_bytes(f)},
      {"current_link_speed", link_speed_text(f.link.speed_gts) + "\n"},
      {"current_link_width", fmt::format("{}\n", f.link.width)},
      {"aer_dev_correctable", correctable_text(f.aer)},
      {"aer_dev_nonfatal", uncorrectable_text(0, f.aer.nonfatal, "TOTAL_ERR_NONFATAL")},
      {"aer_dev_fatal", uncorrectable_text(f.aer.fatal, 0, "TOTAL_ERR_FATAL")},
  };
  if (f.port == PciePort::Root) {
    files.push_back({"aer_rootport_total_err_cor", fmt::format("{}\n", f.aer.receiver_errors + f.aer.bad_tlp)});
    files.push_back({"aer_rootport_total_err_nonfatal", fmt::format("{}\n", f.aer.nonfatal)});
    files.push_back({"aer_rootport_total_err_fatal", fmt::format("{}\n", f.aer.fatal)});
  }
  return files;
}

}  // namespace gpuhealth::sim
