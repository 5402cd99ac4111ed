// SPDX-License-Identifier: Apache-2.0
#include "actions/pci_config.hpp"

#include <fcntl.h>

#include <array>
#include <cerrno>

namespace gpuhealth::actions {

Result<unsigned> read_config(const Machine& machine, const std::string& config, unsigned offset) {
  const auto fd = machine.hardware.open_file(config, O_RDONLY);
  if (!fd) return tl::unexpected<Error>(fd.error());
  std::array<unsigned char, 4> bytes{};
  // Aligned and four bytes long, as every chipset takes it.
  const unsigned base = offset & ~3U;
  const ssize_t n = ::pread(fd->get(), bytes.data(), bytes.size(), static_cast<off_t>(base));
  if (n < 0) return fail_errno("cannot read " + config, errno);
  if (n < 4)
    return fail(ErrorCode::NotPermitted, config + " ends at byte " + std::to_string(base) + ": reading more needs root",
                EPERM);
  if (bytes == std::array<unsigned char, 4>{0xff, 0xff, 0xff, 0xff})
    return fail(ErrorCode::NotFound, config + " answers with all ones: the device is gone from the bus", ENODEV);
  const unsigned at = offset - base;
  return bytes.at(at) | static_cast<unsigned>(bytes.at(at + 1)) << 8U;
}

Result<void> write_config(const Machine& machine, const std::string& config, unsigned offset, unsigned value) {
  const std::string bytes = {static_cast<char>(value & 0xffU), static_cast<char>(value >> 8U & 0xffU)};
  return machine.outside.system->write_at(machine.hardware, config, offset, bytes);
}

Result<unsigned> find_express(const Machine& machine, const std::string& config) {
  auto status = read_config(machine, config, 0x06);
  if (!status) return status;
  if ((*status & 0x10U) == 0) return fail(ErrorCode::NotFound, config + " lists no capabilities");
  auto at = read_config(machine, config, 0x34);
  for (int seen = 0; at && seen < 48; ++seen) {
    const unsigned place = *at & 0xfcU;
    if (place < 0x40) break;
    auto head = read_config(machine, config, place);
    if (!head) return head;
    if ((*head & 0xffU) == 0x10) return place;
    at = *head >> 8U;
  }
  if (!at) return at;
  return fail(ErrorCode::NotFound, config + " has no PCI Express capability");
}

Result<LinkNow> read_link(const Machine& machine, const std::string& config) {
  const auto express = find_express(machine, config);
  if (!express) return tl::unexpected<Error>(express.error());
  const auto version = read_config(machine, config, *express + 2);
  const auto able = read_config(machine, config, *express + kLinkCapabilities);
  const auto status = read_config(machine, config, *express + kLinkStatus);
  for (const auto* one : {&version, &able, &status})
    if (!*one) return tl::unexpected<Error>(one->error());
  LinkNow out;
  out.generation = *status & 0xfU;
  out.width = *status >> 4U & 0x3fU;
  out.highest = *able & 0xfU;
  if ((*version & 0xfU) >= 2) {
    const auto target = read_config(machine, config, *express + kLinkControl2);
    if (!target) return tl::unexpected<Error>(target.error());
    out.target = *target & kTargetSpeed;
  }
  return out;
}

std::string lockdown(const Machine& machine) {
  const std::string text = value_of(machine, "/sys/kernel/security/lockdown");  // "none [integrity] confidentiality"
  const auto open = text.find('[');
  const auto close = text.find(']', open == std::string::npos ? 0 : open);
  if (open == std::string::npos || close == std::string::npos) return {};
  return text.substr(open + 1, close - open - 1);
}

bool secure_boot(const Machine& machine) {
  const auto bytes = machine.hardware.read("/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c",
                                           std::size_t{4096});
  return bytes && bytes->size() == 5 && bytes->at(4) == 1;
}

}  // namespace gpuhealth::actions
