// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include <CLI/CLI.hpp>

#include "cli/command.hpp"
#include "cli/json_canary.hpp"
#include "cli/policy.hpp"

namespace gpuhealth::cli {
namespace {

struct Options {
  std::string file;
  std::string gate = "strong";
  std::vector<std::string> policies;
};

ExitCode run_replay(const Context& context, const Options& options) {
  const auto file = read_results(options.file, canary::gate_from(options.gate).value_or(canary::Gate::Strong));
  if (!file) return complain(context, file.error());
  std::optional<PolicyReplay> decided;
  if (!options.policies.empty()) {
    const auto loaded = policy::load_named(options.policies);
    if (!loaded) return complain(context, loaded.error());
    if (!loaded->sound()) return complain(context, {ErrorCode::InvalidInput, loaded->problem()});
    decided = replay_policies(*file, loaded->set);
  }
  const auto result = replay(*file);
  show(
      context,
      [&] {
        Page page = render_replay(result, context.terminal);
        if (decided) page.append(render_policy_replay(*decided, context.terminal));
        return page;
      },
      [&] {
        Json json = json_replay(result);
        if (decided) json["decisions"] = json_policy_replay(*decided);
        return json;
      });
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
  app.add_option("--policy", options->policies, "also say what these policies would have done: a file or a folder")
      ->type_name("DIR")
      ->allow_extra_args(false);
  return [options](const Context& context) { return run_replay(context, *options); };
}

}  // namespace gpuhealth::cli
