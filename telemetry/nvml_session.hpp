// SPDX-License-Identifier: Apache-2.0
// libnvidia-ml.so.1 in this process: loaded, initialised, closed. Any call may hang or end the process; only
// gpuhealth-reader makes them.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "core/error.hpp"
#include "core/pci.hpp"
#include "telemetry/nvml_api.hpp"

namespace gpuhealth::telemetry::nvml {

class Session {
 public:
  explicit Session(std::string library) : library_(std::move(library)) {}
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  Result<void> open();  // loads and initialises; done already: nothing
  void close();         // the driver may let the GPUs sleep then
  [[nodiscard]] bool is_open() const { return open_; }
  [[nodiscard]] const Api& api() const { return api_; }

  // The answer's code is NVML's; the handle is kept while the session is open.
  Return handle(const PciAddress& gpu, Device& out);
  [[nodiscard]] std::string words(int code) const;  // "GPU is lost"

 private:
  std::string library_;
  void* loaded_ = nullptr;
  bool open_ = false;
  Api api_;
  std::map<PciAddress, Device> handles_;
};

}  // namespace gpuhealth::telemetry::nvml
