// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include <CLI/CLI.hpp>

#include "cli/command.hpp"
#include "cli/json_canary.hpp"

namespace gpuhealth::cli {
namespace {

struct Options {
  std::string file;
  std::string gate = "strong";
};

ExitCode run_replay(const Context& context, const Options& options) {
  const auto file = read_results(options.file, canary::gate_from(options.gate).value_or(canary::Gate::Strong));
  if (!file) return complain(context, file.error());
  const auto result = replay(*file);
  show(context, [&] { return render_replay(result, context.terminal); }, [&] { return json_replay(result); });
  if (file->entries.empty() && file->lines > 0) return ExitCode::InvalidInput;
  return anything_confirmed(result) ? ExitCode::ConditionsPresent : ExitCode::Ok;
}

}  // namespace

Action set_up_replay(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("FILE", options->file, "result lines, oldest first; - is standard input")->required();
  app.add_option("--gate", options->gate, "of lines that do not say: strong (nobody else was there; default) or weak")
      ->type_name("GATE")
      ->check(CLI::IsMember({"strong", "weak"}).description(""));
  return [options](const Context& context) { return run_replay(context, *options); };
}

}  // namespace gpuhealth::cli
