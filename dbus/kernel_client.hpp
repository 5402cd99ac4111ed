// SPDX-License-Identifier: Apache-2.0
// What a program sees of /org/gpuhealth1/kernel; beside Client, with calls that may take minutes.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "core/error.hpp"
#include "dbus/kernel.hpp"

namespace gpuhealth::dbus {

class KernelClient {
 public:
  // As Client::connect.
  static Result<KernelClient> connect(const std::string& address = "",
                                      std::chrono::milliseconds deadline = std::chrono::seconds(5));
  KernelClient(KernelClient&&) noexcept;
  KernelClient& operator=(KernelClient&&) noexcept;
  ~KernelClient();

  Result<KernelState> state();  // NotFound: an older daemon, that knows nothing of kernels
  // Up to twenty minutes: the distribution's tool writes the menu, and polkit may ask for a password before it.
  Result<void> ask(const KernelRequest& request);

 private:
  struct Impl;
  explicit KernelClient(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace gpuhealth::dbus
