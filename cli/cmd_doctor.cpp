// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>

#include "cli/canary_run.hpp"
#include "cli/command.hpp"
#include "cli/render.hpp"
#include "core/fd.hpp"
#include "telemetry/kmsg.hpp"

namespace gpuhealth::cli {
namespace {

// The worker loads each runtime in a child of its own and gives up on one that hangs.
void ask_runtimes(Patient& patient) {
  for (const char* backend : {"hip", "opencl", "cuda"}) {
    const auto said = worker_says({"--devices", "--backend", backend, "--deadline", "10"});
    if (!said) continue;
    for (const auto& line : *said) {
      if (auto seen = parse_runtime_line(line)) patient.runtimes.push_back(std::move(*seen));
    }
  }
}

std::vector<unsigned> own_groups() {
  std::vector<gid_t> list(static_cast<std::size_t>(std::max(getgroups(0, nullptr), 0)));
  const int n = getgroups(static_cast<int>(list.size()), list.data());
  list.resize(static_cast<std::size_t>(std::max(n, 0)));
  list.push_back(getegid());
  return {list.begin(), list.end()};
}

// Of this boot's kernel log, where the caller may read it.
std::string missing_firmware() {
  const Fd log(open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!log) return {};
  constexpr int kMostRecords = 100000;
  telemetry::KmsgFollower follower(telemetry::facts_of_machine(""));
  std::array<char, 16384> buffer{};
  for (int i = 0; i < kMostRecords; ++i) {
    const auto n = read(log.get(), buffer.data(), buffer.size());
    if (n < 0 && (errno == EPIPE || errno == EINTR)) continue;
    if (n <= 0) break;
    follower.take({buffer.data(), static_cast<std::size_t>(n)});
  }
  constexpr std::int64_t kLater = 1'000'000'000'000'000;
  follower.advance(kLater);
  const auto news = follower.news(kLater);
  if (!news) return {};
  const auto found = std::ranges::find_if(news->items, [](const auto& item) {
    return item.event.type == klog::Type::FirmwareMissing && item.event.severity != Severity::Info;
  });
  return found == news->items.end() ? std::string() : found->event.text;
}

ExitCode doctor(const Context& context) {
  Patient patient;
  patient.may_use = [](const std::string& path) { return access(path.c_str(), R_OK | W_OK) == 0; };
  auto client = dbus::Client::connect(context.bus);
  if (client) {
    if (auto manager = client->manager()) {
      patient.manager = std::move(*manager);
    } else {
      patient.daemon_problem = manager.error().text;
    }
  } else {
    patient.daemon_problem = client.error().text;
  }
  ask_runtimes(patient);
  patient.groups = own_groups();
  patient.firmware_missing = missing_firmware();
  patient.variable = [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  };
  const auto results = examine(patient);
  show(context, [&] { return render_doctor(results, context.terminal); }, [&] { return json_doctor(results); });
  return ExitCode::Ok;
}

}  // namespace

Action set_up_doctor(CLI::App& /*app*/) {
  return doctor;
}

}  // namespace gpuhealth::cli
