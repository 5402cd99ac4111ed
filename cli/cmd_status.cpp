// SPDX-License-Identifier: Apache-2.0
#include "cli/command.hpp"
#include "cli/render.hpp"

namespace gpuhealth::cli {
namespace {

ExitCode status(const Context& context) {
  auto client = connect(context);
  if (!client) return complain(context, client.error());
  const auto machine = look(*client);
  if (!machine) return complain(context, machine.error());
  show(context, [&] { return render_status(*machine, context.terminal); }, [&] { return json_status(*machine); });
  return needs_attention(*machine) ? ExitCode::ConditionsPresent : ExitCode::Ok;
}

}  // namespace

Action set_up_status(CLI::App& /*app*/) {
  return status;
}

}  // namespace gpuhealth::cli
