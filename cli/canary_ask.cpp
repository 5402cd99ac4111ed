// SPDX-License-Identifier: Apache-2.0
#include "cli/canary_ask.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

#include "dbus/canary_client.hpp"
#include "dbus/client.hpp"

namespace gpuhealth::cli {

namespace {

Result<WorkerOutcome> measure_one(dbus::CanaryClient& client, const dbus::JobRequest& request,
                                  const std::function<void(const std::string&)>& progress) {
  const auto id = client.start(request);
  if (!id) {
    auto error = id.error();
    if (error.code == ErrorCode::NotPermitted || error.code == ErrorCode::Exhausted)
      error.text += "; --local measures without the daemon";
    return tl::unexpected(error);
  }
  progress(*id + ": the daemon measures");
  std::size_t count = 0;
  const auto job = client.follow(*id, [&](const std::string& line) {
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

// A GPU that sleeps is not woken for this, unless it is named.
Result<std::vector<std::string>> awake_gpus(const std::string& bus) {
  auto client = dbus::Client::connect(bus);
  if (!client) return tl::unexpected(client.error());
  const auto devices = client->devices();
  if (!devices) return tl::unexpected(devices.error());
  std::vector<std::string> out;
  for (const auto& device : *devices)
    if (device.runtime_status != "suspended") out.push_back(device.pci);
  return out;
}

}  // namespace

std::optional<Result<WorkerOutcome>> measure_by_daemon(const std::string& bus, const dbus::JobRequest& request,
                                                       bool each_gpu,
                                                       const std::function<void(const std::string&)>& progress) {
  auto client = dbus::CanaryClient::connect(bus);
  if (!client) return std::nullopt;
  const auto problem = client->problem();
  if (!problem || !problem->empty()) return std::nullopt;
  if (!each_gpu || !request.device.empty()) return measure_one(*client, request, progress);
  const auto gpus = awake_gpus(bus);
  if (!gpus) return tl::unexpected(gpus.error());
  if (gpus->empty()) return fail(ErrorCode::NotFound, "the daemon knows no GPU that is awake; name one with --device");
  WorkerOutcome all;
  for (const auto& gpu : *gpus) {
    auto one = measure_one(*client, {gpu, request.tier, request.only}, progress);
    if (!one) return one;
    std::ranges::move(one->lines, std::back_inserter(all.lines));
  }
  return all;
}

}  // namespace gpuhealth::cli
