// SPDX-License-Identifier: Apache-2.0
// What goes between gpuhealthd and a reader: requests on its standard input, frames on its standard output. Both are
// this machine's own programs of one build, so that numbers are native; the daemon still trusts no length and no
// number.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "core/client.hpp"
#include "core/device.hpp"
#include "core/error.hpp"
#include "core/sample.hpp"
#include "telemetry/klog/types.hpp"

namespace gpuhealth::telemetry {

enum class RequestKind : std::uint16_t { Discover = 1, Sample = 2, Clients = 3 };

struct Request {
  RequestKind kind{};
  bool slow = false;    // also limits, tables and counters
  bool reopen = false;  // forget kept descriptors first: devices came, went or changed their driver
  std::uint64_t tick = 0;
  std::vector<std::uint64_t> devices;  // packed addresses, to read; of Discover: not to touch
};
void append_request(std::vector<std::uint8_t>& out, const Request& request);
// Takes one request from the front of `bytes`; null when it is not complete yet. Error on what is no request.
Result<std::optional<Request>> take_request(std::vector<std::uint8_t>& bytes);

struct DevicesFrame {
  std::uint64_t tick = 0;
  std::vector<DeviceInfo> devices;
  std::vector<std::uint64_t> untouched;  // listed by the bus, not looked at because the request said so
  std::vector<std::string> notes;
  bool nvidia = false;  // the bus has an NVIDIA GPU as well: another reader's
  std::string error;    // not empty: the tree could not be read
};
struct SampleFrame {
  std::uint64_t tick = 0;
  std::uint64_t device = 0;
  bool present = true;  // false: a read said ENODEV, or the device's folder is gone
  Sample sample;        // `device` and `time` are not set
};
struct DoneFrame {
  std::uint64_t tick = 0;
};
// What the kernel log says, from `gpuhealth-reader --source kmsg`.
struct KlogFrame {
  struct Item {
    klog::Event event;
    std::optional<PciAddress> gpu;  // the GPU concerned, where one is: `event.device` may be a port above it
    std::uint64_t age_us = 0;       // since the kernel printed it
  };
  std::uint64_t sequence = 0;  // of the last record that was dealt with
  std::uint64_t lost = 0;      // records overwritten before they could be read, since the last frame
  std::vector<Item> items;
};
// Who uses one GPU.
struct ClientsFrame {
  std::uint64_t tick = 0;
  std::uint64_t device = 0;
  ClientLook look;  // its time is the reader's
};
using Frame = std::variant<DevicesFrame, SampleFrame, DoneFrame, KlogFrame, ClientsFrame>;

void append_frame(std::vector<std::uint8_t>& out, const DevicesFrame& frame);
void append_frame(std::vector<std::uint8_t>& out, const SampleFrame& frame);
void append_frame(std::vector<std::uint8_t>& out, const DoneFrame& frame);
void append_frame(std::vector<std::uint8_t>& out, const KlogFrame& frame);
void append_frame(std::vector<std::uint8_t>& out, const ClientsFrame& frame);

// All of it, however long the pipe is full; false when nobody reads any more.
bool write_frames(int fd, const std::vector<std::uint8_t>& bytes);

// Collects bytes and gives whole frames. After an error it gives no more.
class FrameParser {
 public:
  void feed(std::span<const std::uint8_t> bytes) { pending_.insert(pending_.end(), bytes.begin(), bytes.end()); }
  Result<std::optional<Frame>> next();

 private:
  std::vector<std::uint8_t> pending_;
  std::size_t begin_ = 0;  // of what has not been taken yet
  bool broken_ = false;
};

}  // namespace gpuhealth::telemetry
