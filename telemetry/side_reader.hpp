// SPDX-License-Identifier: Apache-2.0
// One gpuhealth-reader beside those that sample: asked now and then, watched while it answers. One that hangs or dies
// is left behind and named with the device and the read that it was in; the next question starts another one.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "telemetry/frame.hpp"

namespace boost::asio {
class io_context;
}

namespace gpuhealth::telemetry {

class SideReader {
 public:
  struct Options {
    std::string program;                       // path of gpuhealth-reader
    std::chrono::milliseconds deadline{5000};  // for one step of it
    std::chrono::milliseconds first_retry{5000};
    std::chrono::milliseconds last_retry{300000};
    std::size_t most_left_behind = 8;  // with so many stuck ones no more are started
  };
  struct Trouble {
    bool hung = false;         // it does not return; else it ended
    std::uint64_t device = 0;  // Progress::kNoDevice between devices
    std::string what;          // the read that it was in
    std::string how;           // "was ended by signal 6"
  };
  struct Handlers {
    std::function<void(Frame)> frame;  // the Done frame included
    std::function<void(const Trouble&)> trouble;
    // A process that hung in this device has gone: it may be touched again.
    std::function<void(std::uint64_t device)> left;
  };
  SideReader(boost::asio::io_context& io, Options options, Handlers handlers);
  ~SideReader();  // ends the reader, waits for none
  SideReader(const SideReader&) = delete;
  SideReader& operator=(const SideReader&) = delete;

  // False when it is still busy, or rests after a failure. `arguments` are those of a reader that has to be started.
  bool ask(const Request& request, const std::vector<std::string>& arguments);
  void stop();  // the running one; the next question starts another
  [[nodiscard]] std::size_t left_behind() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace gpuhealth::telemetry
