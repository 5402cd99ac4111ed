// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include <CLI/CLI.hpp>

#include "cli/ask.hpp"
#include "cli/command.hpp"

namespace gpuhealth::cli {
namespace {

ExitCode acknowledge(const Context& context, const std::string& wanted) {
  auto client = connect(context);
  if (!client) return complain(context, client.error());
  const auto open = client->conditions();
  if (!open) return complain(context, open.error());
  const auto condition = choose_condition(*open, wanted);
  if (!condition) return complain(context, condition.error());
  const Condition& c = **condition;
  if (const auto done = client->acknowledge(c.id); !done) return complain(context, done.error());
  show(
      context,
      [&] {
        Page page;
        page.line({{"Acknowledged: " + std::string(info(c.type).title) + ": " + c.device_label}});
        return page;
      },
      [&] { return Json{{"acknowledged", c.id}}; });
  return ExitCode::Ok;
}

}  // namespace

Action set_up_acknowledge(CLI::App& app) {
  auto wanted = std::make_shared<std::string>();
  app.add_option("ID", *wanted, "a condition's id, or a unique beginning of one")->required();
  return [wanted](const Context& context) { return acknowledge(context, *wanted); };
}

}  // namespace gpuhealth::cli
