// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include "cli/command.hpp"
#include "cli/render.hpp"

namespace gpuhealth::cli {
namespace {

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
  const auto results = examine(patient);
  show(context, [&] { return render_doctor(results, context.terminal); }, [&] { return json_doctor(results); });
  return ExitCode::Ok;
}

}  // namespace

Action set_up_doctor(CLI::App& /*app*/) {
  return doctor;
}

}  // namespace gpuhealth::cli
