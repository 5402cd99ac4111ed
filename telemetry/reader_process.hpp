// SPDX-License-Identifier: Apache-2.0
// One running gpuhealth-reader, seen from the daemon. Nothing here blocks: a reader that does not die is left behind.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "telemetry/frame.hpp"

namespace boost::asio {
class io_context;
}

namespace gpuhealth::telemetry {

class ReaderProcess {
 public:
  struct Handlers {
    std::function<void(Frame)> frame;
    std::function<void(std::string)> ended;  // it died, its output ended or made no sense; in words
  };
  static Result<std::unique_ptr<ReaderProcess>> start(boost::asio::io_context& io, const std::string& program,
                                                      const std::string& sysroot, Handlers handlers);
  // With other arguments: another source.
  static Result<std::unique_ptr<ReaderProcess>> start(boost::asio::io_context& io, const std::string& program,
                                                      std::vector<std::string> arguments, Handlers handlers);
  ~ReaderProcess();  // kills, does not wait
  ReaderProcess(const ReaderProcess&) = delete;
  ReaderProcess& operator=(const ReaderProcess&) = delete;

  // False when its input is full: it has not taken earlier requests.
  bool send(const Request& request);
  // After this no handler is called but that of on_exit(). A process inside a read dies when the read returns.
  void kill();
  void on_exit(std::function<void()> exited);
  [[nodiscard]] int pid() const;

  struct Where {
    std::uint64_t step = 0;
    std::uint64_t device = 0;  // Progress::kNoDevice between devices
    std::string file;
  };
  [[nodiscard]] Where where() const;
  [[nodiscard]] std::uint64_t step() const;

 private:
  struct Impl;
  explicit ReaderProcess(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;  // handlers in flight hold it weakly
};

}  // namespace gpuhealth::telemetry
