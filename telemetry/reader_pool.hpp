// SPDX-License-Identifier: Apache-2.0
// Readers as the daemon uses them: one process reads all devices; when a read is late, new ones read the other devices
// at once; when it does not return, its device is stuck and its process left behind. A stuck device is tried again when
// that process has gone. docs/readers.md draws the states.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "core/condition.hpp"
#include "telemetry/frame.hpp"

namespace boost::asio {
class io_context;
}

namespace gpuhealth::telemetry {

class ReaderPool {
 public:
  struct Options {
    std::string program;                      // path of gpuhealth-reader
    std::string sysroot;                      // empty: this machine
    std::vector<std::string> arguments;       // of gpuhealth-reader, beside it: another source
    std::chrono::milliseconds patience{250};  // a single file that takes longer no longer holds up other devices
    std::chrono::milliseconds deadline{
        3000};  // a single file that takes longer is stuck; slow firmware answers within 2 s
    std::chrono::milliseconds first_retry{5000};
    std::chrono::milliseconds last_retry{300000};
    std::chrono::milliseconds calm{60000};  // after this long without trouble one process reads all again
  };
  struct Handlers {
    std::function<void(const DevicesFrame&)> devices;
    std::function<void(const PciAddress&, Sample&)> sample;             // `device` and `time` not set
    std::function<void(const PciAddress&, const ClientLook&)> clients;  // where the source tells them; may be null
    std::function<void(const PciAddress&)> gone;                        // it, or its driver, has left: discover again
    std::function<void(const PciAddress&, bool stuck, const std::string& what)> stuck;  // in the read of what
    std::function<void(Severity, const std::string&)> log;
  };

  ReaderPool(boost::asio::io_context& io, Options options, Handlers handlers);
  ~ReaderPool();  // ends the readers, waits for none
  ReaderPool(const ReaderPool&) = delete;
  ReaderPool& operator=(const ReaderPool&) = delete;

  // Asks which devices there are; stuck ones are not touched. The devices found are read from the next sample() on.
  void discover();
  // Asks for one sample of each device that is not stuck. A reader that is still busy is not asked again.
  void sample(bool slow);

  [[nodiscard]] std::size_t processes() const;  // those that live, left-behind ones included

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace gpuhealth::telemetry
