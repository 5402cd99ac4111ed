// SPDX-License-Identifier: Apache-2.0
// Runs gpuhealth-act without waiting for it: its request on its input, its answer (bounded) from its output, killed at
// the deadline. One that does not die then, because it hangs in the kernel, is left behind.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/clock.hpp"

namespace boost::asio {
class io_context;
}

namespace gpuhealth::daemon {

class ActRunner {
 public:
  struct Options {
    std::string program;
    bool units = false;  // as units of systemd, else as children
  };
  using Ended = std::function<void(int code, std::string said)>;  // -1: killed, or it could not be started

  ActRunner(boost::asio::io_context& io, Options options);
  ~ActRunner();  // what runs goes on to its end; nobody is told
  ActRunner(const ActRunner&) = delete;
  ActRunner& operator=(const ActRunner&) = delete;

  // `ended` is called once, never from inside this call.
  void run(std::vector<std::string> words, std::string input, Duration deadline, Ended ended);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace gpuhealth::daemon
