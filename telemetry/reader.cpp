// SPDX-License-Identifier: Apache-2.0
#include "telemetry/reader.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "telemetry/discovery.hpp"
#include "telemetry/drm_nodes.hpp"
#include "telemetry/intel.hpp"
#include "telemetry/kfd.hpp"

namespace gpuhealth::telemetry {

Reader::Reader(std::string sysroot, const Clock& clock, Progress* progress)
    : sysroot_(std::move(sysroot)),
      clock_(clock),
      progress_(progress),
      names_(NameTable::load()),
      // The daemon, with all that it runs, is no client.
      scanner_(sysroot_, static_cast<std::uint32_t>(getppid()), progress_) {}

void Reader::answer(const Request& request, std::vector<std::uint8_t>& out) {
  if (request.reopen) samplers_.clear();
  if (request.kind == RequestKind::Discover) discover(request, out);
  if (request.kind == RequestKind::Sample) sample(request, out);
  if (request.kind == RequestKind::Clients) clients(request, out);
  if (progress_ != nullptr) progress_->idle();
  append_frame(out, DoneFrame{request.tick});
}

void Reader::discover(const Request& request, std::vector<std::uint8_t>& out) {
  DevicesFrame frame;
  frame.tick = request.tick;
  // What must not be touched is not even asked for its class; that it is on the bus is all that is known of it.
  const auto may_touch = [&](const PciAddress& address) {
    const auto packed = pack(address);
    if (std::ranges::find(request.devices, packed) != request.devices.end()) {
      frame.untouched.push_back(packed);
      return false;
    }
    if (progress_ != nullptr) progress_->at(packed, "its PCI identity");
    return true;
  };
  auto addresses = list_gpus(sysroot_, frame.notes, may_touch);
  if (!addresses) {
    frame.error = addresses.error().text;
    append_frame(out, frame);
    return;
  }
  std::vector<std::string> ignored;
  const auto not_stuck = [&](const PciAddress& a) {
    return std::ranges::find(request.devices, pack(a)) == request.devices.end();
  };
  const auto nvidia = list_gpus(sysroot_, ignored, not_stuck, kVendorNvidia);
  frame.nvidia = nvidia && !nvidia->empty();
  if (const auto intel = list_gpus(sysroot_, ignored, not_stuck, kVendorIntel)) {
    for (const auto& address : *intel) {
      std::erase_if(frame.notes, [&](const std::string& note) { return note.starts_with(to_string(address) + ":"); });
      addresses->push_back(address);
    }
    std::ranges::sort(*addresses);
  }
  for (const auto& address : *addresses) {
    const auto packed = pack(address);
    if (progress_ != nullptr) progress_->at(packed, "identity files");
    if (auto device = identify(sysroot_, address, names_)) frame.devices.push_back(std::move(*device));
  }
  attach_drm_nodes(sysroot_, frame.devices);
  attach_compute_nodes(sysroot_, frame.devices);
  append_frame(out, frame);
}

Sampler* Reader::sampler_of(std::uint64_t device) {
  const auto it = samplers_.find(device);
  if (it != samplers_.end()) return &it->second;
  if (progress_ != nullptr) progress_->at(device, "identity files");
  const auto info = identify(sysroot_, unpack(device), names_);
  if (!info) return nullptr;
  if (progress_ != nullptr) progress_->at(device, "its sensor files (opening them)");
  return &samplers_.emplace(device, Sampler(sysroot_, *info, progress_)).first->second;
}

void Reader::sample(const Request& request, std::vector<std::uint8_t>& out) {
  for (const auto device : request.devices) {
    frame_.tick = request.tick;
    frame_.device = device;
    const bool fresh = !samplers_.contains(device);
    Sampler* sampler = sampler_of(device);
    if (sampler == nullptr) {
      frame_.present = false;
      frame_.sample = {};
    } else {
      // Fast samples repeat what a slow one found, so the first is slow.
      sampler->sample(request.slow || fresh, clock_.now().steady, frame_.sample);
      frame_.present = sampler->present();
    }
    append_frame(out, frame_);
    if (!frame_.present) samplers_.erase(device);  // its descriptors are of a device or driver that is gone
  }
}

void Reader::clients(const Request& request, std::vector<std::uint8_t>& out) {
  std::vector<PciAddress> gpus;
  gpus.reserve(request.devices.size());
  for (const auto device : request.devices) gpus.push_back(unpack(device));
  for (auto& of : scanner_.look(gpus, clock_.now().steady))
    append_frame(out, ClientsFrame{request.tick, pack(of.gpu), std::move(of.look)});
}

int serve(const std::function<void(const Request&, std::vector<std::uint8_t>&)>& answer_to, int in, int out) {
  std::vector<std::uint8_t> pending;
  std::vector<std::uint8_t> answer;
  std::array<std::uint8_t, 4096> buffer;
  for (;;) {
    const auto n = ::read(in, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return 0;
    pending.insert(pending.end(), buffer.begin(), buffer.begin() + n);
    for (;;) {
      const auto request = take_request(pending);
      if (!request) return 1;
      if (!*request) break;
      answer.clear();
      answer_to(**request, answer);
      if (!write_frames(out, answer)) return 0;
    }
  }
}

}  // namespace gpuhealth::telemetry
