// SPDX-License-Identifier: Apache-2.0
// What /org/gpuhealth1/kernel shows, and what may be asked of it: org.gpuhealth1.Kernel.xml is the contract.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/error.hpp"

namespace gpuhealth::dbus {

struct KernelState {
  std::string running;  // release
  std::string next;     // that boots next; empty: not known
  std::string next_reason;
  std::string last_known_good;  // empty: none was found good yet
  std::string pinned;
  std::string trial;  // that boots once, or runs without a verdict
  bool hold = false;
  std::string state;                    // of the running one, as grub::to_string
  std::vector<std::string> advisories;  // ids, that apply to the running one
  friend bool operator==(const KernelState&, const KernelState&) = default;
};

struct KernelRequest {
  enum class Verb : std::uint8_t { Pin, Unpin, Trial, Hold, Bless, Reject, Qualify };
  Verb verb{};
  std::string release;  // pin, trial
  std::string expires;  // pin; empty: never
  bool on = false;      // hold
};
using KernelHandler = std::function<void(KernelRequest, std::function<void(Result<void>)>)>;  // polkit has said yes

}  // namespace gpuhealth::dbus
