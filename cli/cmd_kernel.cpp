// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <memory>

#include <CLI/CLI.hpp>

#include "cli/act.hpp"
#include "cli/command.hpp"
#include "cli/kernel.hpp"
#include "cli/kernel_ask.hpp"
#include "cli/pending_update.hpp"
#include "cli/render.hpp"
#include "telemetry/discovery.hpp"

namespace gpuhealth::cli {
namespace {

struct KernelOptions {
  std::string root = "/";
  std::string advisories;
  std::string release;
  std::string word;  // on or off; pin, trial, … of plan
  std::string expires;
  std::string reason;
  bool reboot = false;
  unsigned seconds = 900;
  std::function<ExitCode(const Context&)> chosen;
};
using Options = std::shared_ptr<KernelOptions>;

template <class Show>
ExitCode look(const Context& context, const KernelOptions& options, Show show_it) {
  KernelView view;
  if (auto looked = look_at_kernels(view, options.root, options.advisories); !looked)
    return complain(context, looked.error());
  return show_it(view);
}

ExitCode list(const Context& context, const KernelOptions& options) {
  return look(context, options, [&](const KernelView& view) {
    show(context, [&] { return render_kernel_list(view, context.terminal); }, [&] { return json_kernel_list(view); });
    return ExitCode::Ok;
  });
}

ExitCode status(const Context& context, const KernelOptions& options) {
  return look(context, options, [&](const KernelView& view) {
    show(
        context, [&] { return render_kernel_status(view, context.terminal); },
        [&] { return json_kernel_status(view); });
    return ExitCode::Ok;
  });
}

ExitCode advisories(const Context& context, const KernelOptions& options) {
  return look(context, options, [&](const KernelView& view) {
    show(
        context, [&] { return render_kernel_advisories(view, context.terminal); },
        [&] { return json_kernel_advisories(view); });
    return ExitCode::Ok;
  });
}

ExitCode safe(const Context& context, const KernelOptions& options) {
  return look(context, options, [&](const KernelView& view) {
    // What is installed and waits for its boot comes first, then what the package manager would bring.
    SafeToUpdate answer = safe_to_update(view, options.release);
    if (options.release.empty() && view.root == "/" && answer.candidate.empty()) {
      if (const auto pending = pending_kernel()) answer = safe_to_update(view, pending->release, &pending->package);
    }
    show(
        context, [&] { return render_safe_to_update(answer, context.terminal); },
        [&] { return json_safe_to_update(answer); });
    return answer.answer == "no" ? ExitCode::ConditionsPresent : ExitCode::Ok;
  });
}

ExitCode log(const Context& context, const KernelOptions& options) {
  const auto tree = Tree::open(options.root);
  if (!tree) return complain(context, tree.error());
  auto entries = read_ledger(*tree);
  std::erase_if(entries, [](const LedgerEntry& entry) { return entry.owner != "kernel"; });
  show(context, [&] { return render_kernel_log(entries, context.terminal); }, [&] { return json_kernel_log(entries); });
  return ExitCode::Ok;
}

ExitCode plan(const Context& context, const KernelOptions& options) {
  const auto operation = grub::operation_from(options.word);
  if (!operation)
    return complain(context, {ErrorCode::InvalidInput,
                              "plan takes pin, unpin, trial, bless, reject, hold-on, hold-off or protect", 0});
  const auto tree = Tree::open(options.root);
  if (!tree) return complain(context, tree.error());
  return look(context, options, [&](const KernelView& view) {
    System system;
    const auto made = grub::plan_operation(*tree, view.inventory, {*operation, options.release, options.expires},
                                           grub::real_surroundings(system));
    if (!made) return complain(context, made.error());
    show(
        context, [&] { return render_kernel_plan(*made, context.terminal); },
        [&] { return json_kernel_plan(view, *made, options.word); });
    return ExitCode::Ok;
  });
}

// --- changes: gpuhealth-act does them and prints what json.md says

Page render_change(const Json& json, const Terminal& terminal) {
  Page page;
  const auto lines = [&](const char* key, const char* mark, Tone tone) {
    if (!json.contains(key) || !json[key].is_array()) return;
    for (const Json& item : json[key])
      if (item.is_string()) page.paragraph({mark + item.get<std::string>(), tone}, 0, terminal.columns);
  };
  lines("undone", "put back first, it had not come to its end: ", Tone::Note);
  lines("steps", "done: ", Tone::Plain);
  lines("warnings", "note: ", Tone::Note);
  const auto word = [&](const char* key) {
    return json.contains(key) && json[key].is_string() ? json[key].get<std::string>() : std::string("not known");
  };
  page.line({{"Boots next: " + word("next") + ". From then on: " + word("default") + ".", Tone::Heading}});
  return page;
}

// Who is not root asks the daemon, and polkit decides.
std::optional<dbus::KernelRequest> request_for(const KernelOptions& options, const std::string& operation) {
  using V = dbus::KernelRequest::Verb;
  if (operation == "pin") return dbus::KernelRequest{V::Pin, options.release, options.expires, false};
  if (operation == "unpin") return dbus::KernelRequest{V::Unpin, {}, {}, false};
  if (operation == "trial") return dbus::KernelRequest{V::Trial, options.release, {}, false};
  if (operation == "hold-on" || operation == "hold-off")
    return dbus::KernelRequest{V::Hold, {}, {}, operation == "hold-on"};
  const auto tree = Tree::open("/");
  const std::string running = tree ? telemetry::kernel_release("") : std::string();
  if (operation == "bless" && options.release == running) return dbus::KernelRequest{V::Bless, {}, {}, false};
  if (operation == "reject" && options.release == running) return dbus::KernelRequest{V::Reject, {}, {}, false};
  return std::nullopt;
}

ExitCode change(const Context& context, const KernelOptions& options, const std::string& operation) {
  if (options.root == "/" && geteuid() != 0) {
    if (const auto request = request_for(options, operation))
      return ask_daemon(context, *request,
                        operation + (options.release.empty() ? "" : " " + options.release) + ": done.");
  }
  std::vector<std::string> words = {"kernel", operation};
  if (!options.release.empty()) words.push_back(options.release);
  words.insert(words.end(), {"--root", options.root});
  if (!options.expires.empty()) words.insert(words.end(), {"--expires", options.expires});
  if (!options.reason.empty()) words.insert(words.end(), {"--reason", options.reason});
  const ExitCode code =
      run_act(context, words, [&](const Json& json) { return render_change(json, context.terminal); });
  if (code != ExitCode::Ok || !options.reboot) return code;
  // Through logind, with its inhibitors; people are told a minute before.
  return run_act(context, {"device", "run", "reboot", "notice=1m", "--confirm"}, [](const Json& json) {
    Page page;
    page.line({{json.value("text", "the machine reboots")}});
    return page;
  });
}

ExitCode qualify(const Context& context, const KernelOptions& /*options*/) {
  return ask_daemon(context, {dbus::KernelRequest::Verb::Qualify, {}, {}, false},
                    "The canaries judge the running kernel; gpuhealthctl kernel wait tells what comes of it.");
}

ExitCode wait(const Context& context, const KernelOptions& options) {
  return wait_for_verdict(context, options.root, options.seconds);
}

CLI::App* add(CLI::App& app, const Options& options, const std::string& name, const std::string& text,
              ExitCode (*run)(const Context&, const KernelOptions&)) {
  CLI::App* sub = app.add_subcommand(name, text);
  sub->add_option("--root", options->root, "the machine's files: / or a folder that holds boot/, etc/, lib/")
      ->type_name("DIR")
      ->capture_default_str();
  if (run != nullptr)
    sub->callback(
        [options, run] { options->chosen = [run, own = options.get()](const Context& c) { return run(c, *own); }; });
  return sub;
}

void add_change(CLI::App& app, const Options& options, const std::string& name, const std::string& text, bool release) {
  CLI::App* sub = add(app, options, name, text, nullptr);
  if (release) sub->add_option("RELEASE", options->release, "a kernel's release, as uname -r prints it")->required();
  if (name == "pin")
    sub->add_option("--expires", options->expires, "last day (UTC); kernel status says when it is over")
        ->type_name("DAY");
  if (name == "trial" && release) sub->add_flag("--reboot", options->reboot, "and reboot now, through logind");
  if (name == "bless" || name == "reject")
    sub->add_option("--reason", options->reason, "why, for the log")->type_name("TEXT");
  if (name == "hold")
    sub->add_option("STATE", options->word, "on or off")->required()->check(CLI::IsMember({"on", "off"}));
  sub->callback([options, name] {
    options->chosen = [name, own = options.get()](const Context& c) {
      return change(c, *own, name == "hold" ? "hold-" + own->word : name);
    };
  });
}

}  // namespace

Action set_up_kernel(CLI::App& app) {
  const auto options = std::make_shared<KernelOptions>();
  app.require_subcommand(1);
  for (CLI::App* sub :
       {add(app, options, "list", "kernels, entries of the boot menu, what boots", list),
        add(app, options, "status", "what boots next and why, advisories, pins", status),
        add(app, options, "advisories", "what is known of the installed kernels", advisories),
        add(app, options, "safe-to-update", "would the waiting kernel be worse: yes, no, unknown", safe)}) {
    sub->add_option("--advisories", options->advisories, "folder of advisories instead of the installed ones")
        ->type_name("DIR");
    if (sub->get_name() == "safe-to-update") sub->add_option("RELEASE", options->release, "ask about this kernel");
  }
  (void)add(app, options, "qualify", "has the canaries judge the running kernel again", qualify);
  add(app, options, "wait", "waits until the running kernel has a verdict", wait)
      ->add_option("--timeout", options->seconds, "so many seconds at most")
      ->type_name("SECONDS")
      ->capture_default_str();
  (void)add(app, options, "log", "what was changed, from the ledger", log);
  CLI::App* planned = add(app, options, "plan", "what a change would do, without doing it", plan);
  planned->add_option("OPERATION", options->word, "pin, unpin, trial, bless, reject, hold-on, hold-off or protect")
      ->required();
  planned->add_option("RELEASE", options->release, "the kernel");
  add_change(app, options, "pin", "start this kernel from now on", true);
  add_change(app, options, "unpin", "give the distribution its own choice back", false);
  add_change(app, options, "trial", "start this kernel once, at the next boot", true);
  add_change(app, options, "bless", "this kernel is good", true);
  add_change(app, options, "reject", "this kernel is bad: it no longer starts by itself", true);
  add_change(app, options, "hold", "new kernels wait for a verdict", false);
  add_change(app, options, "protect", "keep this kernel from automatic removal", true);
  return [options](const Context& context) { return options->chosen(context); };
}

}  // namespace gpuhealth::cli
