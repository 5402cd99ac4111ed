// SPDX-License-Identifier: Apache-2.0
// Tells when the machine is about to sleep and when it is awake again (logind's PrepareForSleep). Without logind, or
// without a bus, it says nothing; the loop's own clock shows a long sleep all the same.
#pragma once

#include <functional>
#include <memory>
#include <string>

namespace boost::asio {
class io_context;
}

namespace gpuhealth::daemon {

class SleepWatch {
 public:
  // `address`: of the bus; empty: the system bus. `told(true)` before a sleep, `told(false)` after it.
  SleepWatch(boost::asio::io_context& io, std::string address, std::function<void(bool sleeping)> told);
  ~SleepWatch();
  SleepWatch(const SleepWatch&) = delete;
  SleepWatch& operator=(const SleepWatch&) = delete;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace gpuhealth::daemon
