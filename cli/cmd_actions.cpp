// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <optional>

#include <CLI/CLI.hpp>

#include "actions/carry_out.hpp"
#include "actions/interlocks.hpp"
#include "actions/state.hpp"
#include "cli/act.hpp"
#include "cli/actions.hpp"
#include "cli/command.hpp"
#include "core/nearest.hpp"
#include "dbus/client.hpp"

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

bool is_over(const std::string& state) {
  return std::ranges::any_of(actions::all_action_states(), [&](const actions::ActionStateInfo& row) {
    return row.name == state && !row.open && state != "confirmed";
  });
}

// The daemon of this machine, if it runs; of another tree there is none.
std::optional<dbus::Client> daemon_of(const Context& context, const ActionOptions& options) {
  if (options.root != "/") return std::nullopt;
  auto client = dbus::Client::connect(context.bus);
  return client ? std::optional(std::move(*client)) : std::nullopt;
}

// What is only decided is nowhere written down; and who may not read the ledger still sees what the bus tells.
void ask_daemon(const Context& context, const ActionOptions& options, ActionsView& view) {
  auto client = daemon_of(context, options);
  const auto told = client ? client->actions() : tl::unexpected(Error{});
  if (!told) return;
  for (const dbus::ActionView& action : *told) {
    const auto known = std::ranges::find(view.entries, action.id, &LedgerEntry::id);
    if (known == view.entries.end() && !(options.open && is_over(action.state))) view.told.push_back(action);
  }
}

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
  ask_daemon(context, options, view);
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

// Through the daemon, which asks polkit, where it runs; else at once.
ExitCode confirm_or_revert(const Context& context, const ActionOptions& options, const char* verb,
                           Result<void> (dbus::Client::*ask)(const std::string&)) {
  auto client = daemon_of(context, options);
  if (!client) return act(context, options, {verb, options.id});
  // The number and a beginning of an id do as well, where the ledger may be read.
  std::string id = options.id;
  if (const auto files = Tree::open(options.root))
    if (const auto entry = actions::find_entry(*files, options.id)) id = entry->id;
  const auto done = (*client.*ask)(id);
  // One that is older, or is being stopped.
  if (!done && done.error().code == ErrorCode::Unavailable) return act(context, options, {verb, options.id});
  if (!done) return complain(context, done.error());
  std::string state = std::string(verb) == "confirm" ? "confirmed" : "reverted";
  if (const auto told = client->actions())
    if (const auto at = std::ranges::find(*told, id, &dbus::ActionView::id); at != told->end()) state = at->state;
  const std::string text = id + " is " + state;
  show(
      context,
      [&] {
        Page page;
        page.line({{text}});
        return page;
      },
      [&] { return Json{{"ledger", id}, {"state", state}, {"text", text}}; });
  return ExitCode::Ok;
}

ExitCode confirm(const Context& context, const ActionOptions& options) {
  return confirm_or_revert(context, options, "confirm", &dbus::Client::confirm_action);
}
ExitCode revert(const Context& context, const ActionOptions& options) {
  return confirm_or_revert(context, options, "revert", &dbus::Client::revert_action);
}
ExitCode resume(const Context& context, const ActionOptions& options) {
  // The daemon has a breaker of its own.
  if (auto client = daemon_of(context, options))
    if (const auto done = client->reset_breaker(); !done && done.error().code != ErrorCode::Unavailable)
      return complain(context, done.error());
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
