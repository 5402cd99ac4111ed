// SPDX-License-Identifier: Apache-2.0
// Asking a running gpuhealthd to measure a GPU; beside Client, because it follows the job to its end.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "core/error.hpp"
#include "dbus/job.hpp"

namespace gpuhealth::dbus {

class CanaryClient {
 public:
  // As Client::connect; no daemon is started by asking.
  static Result<CanaryClient> connect(const std::string& address = "",
                                      std::chrono::milliseconds deadline = std::chrono::seconds(5));
  CanaryClient(CanaryClient&&) noexcept;
  CanaryClient& operator=(CanaryClient&&) noexcept;
  ~CanaryClient();  // a job that still runs is cancelled by the daemon

  // Why this daemon cannot run canaries; empty: it can. An error: there is none, or it is older than jobs.
  Result<std::string> problem();
  // The job's id. Errors: Unavailable without a daemon, NotFound from one that is older than jobs, and those of the
  // XML.
  Result<std::string> start(const JobRequest& request);
  // Until the job is over. `on_result` gets each line as it comes; the job that is returned has them all.
  Result<JobView> follow(const std::string& id, const std::function<void(const std::string& line)>& on_result);
  Result<void> cancel(const std::string& id);

 private:
  struct Impl;
  explicit CanaryClient(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace gpuhealth::dbus
