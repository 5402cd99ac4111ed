// SPDX-License-Identifier: Apache-2.0
#include "cli/canary_ask.hpp"

#include <cstddef>

#include "dbus/canary_client.hpp"

namespace gpuhealth::cli {

std::optional<Result<WorkerOutcome>> measure_by_daemon(const std::string& bus, const dbus::JobRequest& request,
                                                       const std::function<void(const std::string&)>& progress) {
  auto client = dbus::CanaryClient::connect(bus);
  if (!client) return std::nullopt;
  const auto problem = client->problem();
  if (!problem || !problem->empty()) return std::nullopt;
  const auto id = client->start(request);
  if (!id) {
    auto error = id.error();
    if (error.code == ErrorCode::NotPermitted || error.code == ErrorCode::Exhausted)
      error.text += "; --local measures without the daemon";
    return tl::unexpected(error);
  }
  progress(*id + ": the daemon measures");
  std::size_t count = 0;
  const auto job = client->follow(*id, [&](const std::string& line) {
    ++count;
    if (const auto m = canary::parse_measurement(line))
      progress(std::to_string(count) + " results, the last: " + m->canary + " " + m->metric);
  });
  if (!job) return tl::unexpected(job.error());
  WorkerOutcome out;
  for (const auto& line : job->results) {
    if (auto m = canary::parse_measurement(line)) out.lines.push_back(std::move(*m));
  }
  if (job->state == "cancelled") return fail(ErrorCode::Unavailable, "the run was cancelled: " + job->reason);
  if (job->state != "done" || out.lines.empty())
    return fail(ErrorCode::Unavailable,
                "the daemon could not measure: " + (job->reason.empty() ? "it has no result" : job->reason));
  return out;
}

}  // namespace gpuhealth::cli
