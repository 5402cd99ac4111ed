// SPDX-License-Identifier: Apache-2.0
// The daemon's side of what tells by itself, the kernel log or the compute driver: one `gpuhealth-reader --source kmsg`
// (or kfd-events), started again when it ends. Where it was in the log goes to the next one, so that nothing is told
// twice.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/condition.hpp"
#include "telemetry/frame.hpp"

namespace boost::asio {
class io_context;
}

namespace gpuhealth::telemetry {

class LogReader {
 public:
  struct Options {
    std::string program;  // path of gpuhealth-reader
    std::string source = "kmsg";
    std::string what = "the kernel log";  // for people
    std::string sysroot;
    std::optional<std::uint64_t> after;  // the last record that was dealt with in this boot
    std::chrono::milliseconds first_retry{1000};
    std::chrono::milliseconds last_retry{300000};
  };
  struct Handlers {
    std::function<void(const KlogFrame&)> news;
    std::function<void(Severity, const std::string&)> log;
  };
  LogReader(boost::asio::io_context& io, Options options, Handlers handlers);
  ~LogReader();  // ends the reader, does not wait
  LogReader(const LogReader&) = delete;
  LogReader& operator=(const LogReader&) = delete;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace gpuhealth::telemetry
