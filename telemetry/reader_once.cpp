// SPDX-License-Identifier: Apache-2.0
#include "telemetry/reader_once.hpp"

#include <string>

#include "telemetry/sampler.hpp"

namespace gpuhealth::telemetry {
namespace {

std::vector<Frame> frames_of(const std::vector<std::uint8_t>& bytes) {
  FrameParser parser;
  parser.feed(bytes);
  std::vector<Frame> out;
  for (auto frame = parser.next(); frame && *frame; frame = parser.next()) out.push_back(std::move(**frame));
  return out;
}

void print(const SampleFrame& frame, std::FILE* out) {
  const auto gpu = to_string(unpack(frame.device));
  for (const auto& r : frame.sample.readings) {
    const auto* row = find_reading(r.id);
    if (row == nullptr) continue;
    std::fprintf(out, "%s %s %.10g %s %s\n", gpu.c_str(), std::string(row->name).c_str(), r.value,
                 std::string(to_string(row->unit)).c_str(), std::string(to_string(r.status)).c_str());
  }
  for (const auto& row : all_throttle_reasons()) {
    if (frame.sample.throttle.contains(row.reason))
      std::fprintf(out, "%s throttle %s\n", gpu.c_str(), std::string(row.name).c_str());
  }
  std::fprintf(out, "%s level %s\n", gpu.c_str(), frame.sample.performance_level.c_str());
}

void print(const ClientsFrame& frame, std::FILE* out) {
  for (const auto& c : frame.look.clients) {
    std::fprintf(out, "%s client %u %lld\n", to_string(unpack(frame.device)).c_str(), c.pid,
                 c.vram_bytes ? static_cast<long long>(*c.vram_bytes) : -1LL);
  }
}

}  // namespace

int print_once(const std::function<void(const Request&, std::vector<std::uint8_t>&)>& answer, std::FILE* out) {
  Request request;
  request.kind = RequestKind::Discover;
  std::vector<std::uint8_t> bytes;
  answer(request, bytes);
  request.kind = RequestKind::Sample;
  request.slow = true;
  for (const auto& frame : frames_of(bytes)) {
    const auto* found = std::get_if<DevicesFrame>(&frame);
    if (found == nullptr) continue;
    for (const auto& note : found->notes) std::fprintf(out, "note %s\n", note.c_str());
    if (!found->error.empty()) std::fprintf(out, "note %s\n", found->error.c_str());
    for (const auto& d : found->devices) {
      request.devices.push_back(pack(d.pci));
      std::fprintf(out, "%s name %s\n", to_string(d.pci).c_str(), d.name.c_str());
      std::fprintf(out, "%s id %s\n", to_string(d.pci).c_str(), d.id().c_str());
      std::fprintf(out, "%s vbios %s\n", to_string(d.pci).c_str(), d.vbios_version.c_str());
    }
  }
  if (request.devices.empty()) return 1;
  bytes.clear();
  answer(request, bytes);
  for (const auto& frame : frames_of(bytes)) {
    if (const auto* sample = std::get_if<SampleFrame>(&frame)) print(*sample, out);
    if (const auto* users = std::get_if<ClientsFrame>(&frame)) print(*users, out);
  }
  return 0;
}

}  // namespace gpuhealth::telemetry
