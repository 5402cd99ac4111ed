// SPDX-License-Identifier: Apache-2.0
// One running gpuhealth-canary, seen from the daemon. Nothing here blocks and nothing is waited for: a worker that does
// not end by its limit is killed, and one that does not die is left behind.
#pragma once

#include <sys/types.h>

#include <compare>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "canary/measurement.hpp"
#include "core/error.hpp"

namespace boost::asio {
class io_context;
}

namespace gpuhealth::canary {

class WorkerProcess {
 public:
  struct Handlers {
    std::function<void(const Measurement&, const std::string& line)> measured;
    std::function<void()> ended;      // once; no handler is called after it
    std::function<void(pid_t)> left;  // killed, and still there: it hangs in the kernel. `ended` follows when it dies
  };
  // `stop_command`: what asks it to end where a signal does not reach it (a unit of its own).
  static Result<std::unique_ptr<WorkerProcess>> start(boost::asio::io_context& io, const std::string& program,
                                                      const std::vector<std::string>& arguments, double limit_s,
                                                      Handlers handlers, std::vector<std::string> stop_command = {});
  ~WorkerProcess();  // asks it to end, does not wait
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;
  void stop();  // asks it to end: a job needs the GPU

 private:
  struct Impl;
  explicit WorkerProcess(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

// A process by its number and start (clock ticks after boot, /proc/PID/stat): numbers are used again. 0: not known.
struct ProcessId {
  pid_t pid = -1;
  unsigned long long started = 0;
  friend auto operator<=>(const ProcessId&, const ProcessId&) = default;
};
ProcessId process_id(pid_t pid);
bool is_there(const ProcessId& process);

// Whole lines out of pieces; a line that is too long is dropped.
class LineBuffer {
 public:
  std::vector<std::string> feed(std::string_view bytes);

 private:
  std::string partial_;
  bool too_long_ = false;
};

}  // namespace gpuhealth::canary
