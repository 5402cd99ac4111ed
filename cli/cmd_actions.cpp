// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>

#include <CLI/CLI.hpp>

#include "actions/carry_out.hpp"
#include "actions/interlocks.hpp"
#include "cli/act.hpp"
#include "cli/actions.hpp"
#include "cli/command.hpp"
#include "core/nearest.hpp"

namespace gpuhealth::cli {
namespace {

struct ActionOptions {
  std::string root = "/";
  std::string id;
  std::string action;
  std::vector<std::string> params;
  std::string device;
  bool open = false, dry_run = false, confirm = false;
  std::function<ExitCode(const Context&)> chosen;
};
using Options = std::shared_ptr<ActionOptions>;

ExitCode list(const Context& context, const ActionOptions& options) {
  auto files = Tree::open(options.root);
  if (!files) return complain(context, files.error());
  auto hardware = Tree::open(options.root);
  if (!hardware) return complain(context, hardware.error());
  ActionsView view;
  view.entries = read_ledger(*files, &view.problems);
  if (options.open)
    std::erase_if(view.entries, [](const LedgerEntry& e) { return !actions::is_open(e) && !actions::in_force(e); });
  view.safe_mode = actions::safe_mode({std::move(*files), std::move(*hardware), {}});
  show(context, [&] { return render_actions(view, context.terminal); }, [&] { return json_actions(view); });
  return ExitCode::Ok;
}

ExitCode show_one(const Context& context, const ActionOptions& options) {
  const auto files = Tree::open(options.root);
  if (!files) return complain(context, files.error());
  const auto entry = actions::find_entry(*files, options.id);
  if (!entry) return complain(context, entry.error());
  show(context, [&] { return render_action(*entry, context.terminal); }, [&] { return json_action(*entry); });
  return ExitCode::Ok;
}

ExitCode act(const Context& context, const ActionOptions& options, std::vector<std::string> words) {
  words.insert(words.begin(), "device");
  words.insert(words.end(), {"--root", options.root});
  return run_act(context, words, [&](const Json& json) { return render_action_outcome(json, context.terminal); });
}

ExitCode confirm(const Context& context, const ActionOptions& options) {
  return act(context, options, {"confirm", options.id});
}
ExitCode revert(const Context& context, const ActionOptions& options) {
  return act(context, options, {"revert", options.id});
}
ExitCode resume(const Context& context, const ActionOptions& options) {
  return act(context, options, {"resume"});
}

ExitCode run_one(const Context& context, const ActionOptions& options) {
  if (!action_kind_from(options.action)) {
    std::vector<std::string_view> names;
    for (const ActionInfo& row : all_actions()) names.push_back(row.name);
    const std::string near = nearest(options.action, names);
    return complain(context, {ErrorCode::NotFound,
                              "there is no action " + options.action +
                                  (near.empty() ? "; docs/actions.md lists them" : "; did you mean " + near + "?"),
                              0});
  }
  std::vector<std::string> words = {"run", options.action};
  words.insert(words.end(), options.params.begin(), options.params.end());
  if (!options.device.empty()) words.insert(words.end(), {"--device", options.device});
  if (options.dry_run) words.emplace_back("--dry-run");
  if (options.confirm) words.emplace_back("--confirm");
  return act(context, options, std::move(words));
}

CLI::App* add(CLI::App& app, const Options& options, const std::string& name, const std::string& text,
              ExitCode (*run)(const Context&, const ActionOptions&)) {
  CLI::App* sub = app.add_subcommand(name, text);
  sub->add_option("--root", options->root, "the machine's files: / or a folder that holds sys/, proc/, etc/, var/")
      ->type_name("DIR")
      ->capture_default_str();
  sub->callback(
      [options, run] { options->chosen = [run, own = options.get()](const Context& c) { return run(c, *own); }; });
  return sub;
}

}  // namespace

Action set_up_actions(CLI::App& app) {
  const auto options = std::make_shared<ActionOptions>();
  app.require_subcommand(1);
  add(app, options, "list", "what was changed on this machine, from the ledger", list)
      ->add_flag("--open", options->open, "only what is in force or not decided yet");
  add(app, options, "resume", "end a safe mode that the daemon fell into by itself", resume);
  for (CLI::App* sub : {add(app, options, "show", "one action: why, what, when, and the way back", show_one),
                        add(app, options, "confirm", "this action is good and stays", confirm),
                        add(app, options, "revert", "bring back what was there before", revert)})
    sub->add_option("ID", options->id, "an action's id, its number, or a unique beginning")->required();
  CLI::App* run = add(app, options, "run", "carry out an action now", run_one);
  run->add_option("ACTION", options->action, "its name, see docs/actions.md")->required();
  run->add_option("PARAM", options->params, "NAME=VALUE, as many as it takes");
  run->add_option("--device", options->device, "the GPU's PCI address or id")->type_name("DEVICE");
  run->add_flag("--dry-run", options->dry_run, "say what would be written, and write nothing");
  run->add_flag("--confirm", options->confirm, "it is good: do not take it back by itself");
  return [options](const Context& context) { return options->chosen(context); };
}

}  // namespace gpuhealth::cli
