// SPDX-License-Identifier: Apache-2.0
// A canary run that somebody asked for: org.gpuhealth1.Canary.xml and org.gpuhealth1.Job.xml are the contract.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/clock.hpp"
#include "core/error.hpp"

namespace gpuhealth::dbus {

struct JobView {
  std::string id;  // "run1"; counted from the daemon's start
  std::string device;
  std::string device_label;
  std::uint32_t tier = 0;
  std::vector<std::string> only;  // canaries; empty: all of the tier
  std::string state;              // "waiting", "running", "done", "failed", "cancelled"
  std::string reason;             // of what failed or was cancelled
  WallTime started;
  WallTime ended;                    // 0: it has not
  std::vector<std::string> results;  // result lines, as docs/json.md says
};
inline bool is_over(const JobView& job) {
  return job.state != "waiting" && job.state != "running";
}

struct JobRequest {
  std::string device;  // id or PCI address; empty: the only GPU
  std::uint32_t tier = 1;
  std::vector<std::string> only;
};
// polkit has said yes. The answer is the job's id.
using JobHandler = std::function<void(JobRequest, std::function<void(Result<std::string>)>)>;
using JobCancelHandler = std::function<Result<void>(const std::string& id, const std::string& why)>;

}  // namespace gpuhealth::dbus
