// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <memory>

#include <CLI/CLI.hpp>

#include "cli/command.hpp"
#include "cli/policy.hpp"
#include "policy/files.hpp"
#include "policy/schema.hpp"

namespace gpuhealth::cli {
namespace {

struct PolicyOptions {
  std::vector<std::string> paths;
  std::string root = "/";
  std::string folder, file, output, key, why;
  policy::BundleHeader header;
  bool effective = false, decisions = false, is_unsigned = false;
  std::function<ExitCode(const Context&)> chosen;
};
using Options = std::shared_ptr<PolicyOptions>;

// 0: all met. 1: an expectation is not. 3: a file is not what it must be.
ExitCode test(const Context& context, const PolicyOptions& options) {
  const auto files = find_tests(options.paths);
  if (!files) return complain(context, files.error());
  std::vector<policy::TestResult> results;
  for (const auto& file : *files) results.push_back(policy::run_test(file));
  show(
      context, [&] { return render_tests(results, options.decisions, context.terminal); },
      [&] { return json_tests(results); });
  ExitCode code = ExitCode::Ok;
  for (const auto& r : results) {
    if (!r.mistakes.empty() || !r.policy_mistakes.empty()) return ExitCode::InvalidInput;
    if (!r.passed()) code = ExitCode::ConditionsPresent;
  }
  return code;
}

ExitCode check(const Context& context, const PolicyOptions& options) {
  const auto files = check_policies(options.paths);
  if (!files) return complain(context, files.error());
  show(context, [&] { return render_check(*files, context.terminal); }, [&] { return json_check(*files); });
  return all_valid(*files) ? ExitCode::Ok : ExitCode::InvalidInput;
}

ExitCode show_policies(const Context& context, const PolicyOptions& options) {
  ShownPolicies shown;
  std::vector<std::string> notes;
  shown.facts = policy::read_facts(options.root, notes);
  auto loaded = policy::load_layers(options.root, shown.facts, wall_now());
  if (!loaded) return complain(context, loaded.error());
  shown.loaded = std::move(*loaded);
  shown.loaded.notes.insert(shown.loaded.notes.begin(), notes.begin(), notes.end());
  show(
      context, [&] { return render_policies(shown, options.effective, context.terminal); },
      [&] { return json_policies(shown); });
  return shown.loaded.sound() ? ExitCode::Ok : ExitCode::InvalidInput;
}

ExitCode schema(const Context& context, const PolicyOptions& /*options*/) {
  if (!context.quiet) std::fputs((policy::json_schema() + "\n").c_str(), stdout);
  return ExitCode::Ok;
}

ExitCode refused(const Context& context, const policy::Refusal& refusal) {
  show(context, [&] { return render_refusal(refusal, context.terminal); }, [&] { return json_refusal(refusal); });
  if (context.quiet) std::fputs(("gpuhealthctl: " + refusal.text + "\n").c_str(), stderr);
  if (refusal.code == "unsigned" || refusal.code == "untrusted") return ExitCode::NotPermitted;
  if (refusal.code == "unreadable") return ExitCode::NotFound;
  return refusal.code == "failed" ? ExitCode::Failed : ExitCode::InvalidInput;
}

// A new file, 0600 for what is secret.
Result<void> write_output(const std::string& path, std::string_view bytes, mode_t mode) {
  const std::filesystem::path file(path);
  const auto folder = file.has_parent_path() ? file.parent_path().string() : std::string(".");
  const Fd fd(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return fail_errno("cannot open " + folder, errno);
  return policy::write_file(fd.get(), file.filename().string(), bytes, mode);
}

ExitCode bundle(const Context& context, const PolicyOptions& options) {
  policy::BundleHeader header = options.header;
  header.created = policy::text_of(wall_now());
  const auto collected = policy::collect_bundle(options.folder, header);
  if (!collected) return refused(context, collected.error());
  auto payload = policy::make_payload(*collected);
  if (!payload) return complain(context, payload.error());
  std::string bytes = std::move(*payload);
  if (!options.key.empty()) {
    const auto text = policy::read_named_file(options.key, 4096, true);
    const auto key = text ? policy::parse_secret_key(*text) : tl::unexpected<Error>(text.error());
    if (!key)
      return complain(context, {key.error().code, text ? options.key + ": " + key.error().text : key.error().text,
                                key.error().sys_errno});
    const auto comment =
        "gpuhealth policies " + header.name + " serial " + std::to_string(header.serial) + " made " + header.created;
    const auto signature = policy::sign(bytes, *key, comment);
    if (!signature) return complain(context, signature.error());
    bytes.insert(0, *signature);
  }
  if (const auto done = write_output(options.output, bytes, 0644); !done) return complain(context, done.error());
  const policy::Verified made{*collected, "", ""};
  show(
      context,
      [&] {
        Page page;
        page.line(
            {{options.output + ": " + header.name + ", serial " + std::to_string(header.serial) + ", " +
              std::to_string(collected->files.size()) + " files, " + (options.key.empty() ? "not signed" : "signed")}});
        return page;
      },
      [&] {
        Json json = json_bundle(made);
        json["file"] = options.output;
        json["signed"] = !options.key.empty();
        return json;
      });
  return ExitCode::Ok;
}

ExitCode verify(const Context& context, const PolicyOptions& options) {
  std::vector<std::string> notes;
  const auto keys = policy::trusted_keys(options.root, notes);
  const auto verified = policy::verify_bundle(options.file, keys, wall_now(), options.is_unsigned);
  if (!context.json && !context.quiet)
    for (const auto& note : notes) std::fputs(("gpuhealthctl: " + note + "\n").c_str(), stderr);
  if (!verified) return refused(context, verified.error());
  show(context, [&] { return render_bundle(*verified, context.terminal); }, [&] { return json_bundle(*verified); });
  return ExitCode::Ok;
}

std::string who() {
  const char* sudo = std::getenv("SUDO_USER");  // NOLINT(concurrency-mt-unsafe): one thread
  return sudo == nullptr ? "" : sudo;
}

ExitCode installed(const Context& context, const policy::Accepted<policy::Installed>& done) {
  if (!done) return refused(context, done.error());
  show(
      context,
      [&] {
        Page page;
        page.paragraph({done->text}, 0, context.terminal.columns);
        return page;
      },
      [&] { return json_installed(*done); });
  return ExitCode::Ok;
}

ExitCode install(const Context& context, const PolicyOptions& options) {
  if (options.is_unsigned && ::geteuid() != 0)
    return complain(context, {ErrorCode::NotPermitted, "only root may install a bundle that is not signed"});
  return installed(context,
                   policy::install_bundle(options.file, {options.root, options.is_unsigned, who()}, wall_now()));
}

ExitCode roll_back(const Context& context, const PolicyOptions& options) {
  return installed(context, policy::roll_back(options.root, options.why, who(), wall_now()));
}

// The files count from the daemon's next reading of them on; it looks by itself, and this says what came of it.
ExitCode reload(const Context& context, const PolicyOptions&) {
  auto client = connect(context);
  if (!client) return complain(context, client.error());
  if (const auto done = client->reload_policy(); !done) return complain(context, done.error());
  const auto manager = client->manager();
  if (!manager) return complain(context, manager.error());
  show(
      context,
      [&] {
        Page page;
        page.line({{"Policies read again: " + std::to_string(manager->policy_files.size()) + " files in force, mode " +
                    manager->policy_mode + (manager->safe_mode.empty() ? "." : ", in safe mode.")}});
        return page;
      },
      [&] {
        Json out = {{"mode", manager->policy_mode}, {"files", Json::array()}};
        out["safe_mode"] = manager->safe_mode.empty() ? Json(nullptr) : Json(manager->safe_mode);
        for (const auto& file : manager->policy_files) out["files"].push_back(file);
        return out;
      });
  return ExitCode::Ok;
}

ExitCode make_keys(const Context& context, const PolicyOptions& options) {
  const auto keys = policy::make_keys("for policy bundles");
  if (!keys) return complain(context, keys.error());
  const std::string secret = options.output + ".key", pub = options.output + ".pub";
  std::error_code error;
  if (std::filesystem::exists(secret, error) || std::filesystem::exists(pub, error))
    return complain(context,
                    {ErrorCode::InvalidInput, secret + " or " + pub + " exists already; a key is not overwritten"});
  for (const auto& [path, text, mode] :
       {std::tuple(secret, keys->secret_text, mode_t{0600}), {pub, keys->public_text, mode_t{0644}}})
    if (const auto done = write_output(path, text, mode); !done) return complain(context, done.error());
  show(
      context,
      [&] {
        Page page;
        page.line({{secret + ": keep it secret, and off the machines that it signs for"}});
        page.line({{pub + ": goes into /etc/gpuhealthd/trusted.d of every machine"}});
        return page;
      },
      [&] { return Json{{"secret", secret}, {"public", pub}}; });
  return ExitCode::Ok;
}

CLI::App* add(CLI::App& app, const Options& options, const std::string& name, const std::string& text,
              ExitCode (*run)(const Context&, const PolicyOptions&)) {
  CLI::App* sub = app.add_subcommand(name, text);
  sub->callback(
      [options, run] { options->chosen = [run, own = options.get()](const Context& c) { return run(c, *own); }; });
  return sub;
}

void add_root(CLI::App* sub, const Options& options) {
  sub->add_option("--root", options->root, "the machine's files: / or a folder that holds etc/, usr/ and var/")
      ->type_name("DIR")
      ->capture_default_str();
}

}  // namespace

Action set_up_policy(CLI::App& app) {
  const auto options = std::make_shared<PolicyOptions>();
  app.require_subcommand(1);
  add(app, options, "check", "every mistake in policies and policy tests", check)
      ->add_option("FILE", options->paths, "files, or folders with *.yaml")
      ->required();
  CLI::App* tested = add(app, options, "test", "play policy tests and compare the decisions", test);
  tested->add_option("SCENARIO", options->paths, "files, or folders with *.yaml")->required();
  tested->add_flag("--decisions", options->decisions, "also print what was decided, and when");
  CLI::App* shown = add(app, options, "show", "which files count, and which rules are in force", show_policies);
  shown->add_flag("--effective", options->effective, "the rules in force, each with its file");
  add_root(shown, options);
  (void)add(app, options, "reload", "have the running daemon read the policies again", reload);
  (void)add(app, options, "schema", "JSON Schema of policy files, for editors", schema);

  CLI::App* made = add(app, options, "bundle", "put the policies of a folder into one file, signed with --key", bundle);
  made->add_option("DIR", options->folder, "folder with *.yaml")->required();
  made->add_option("-o,--output", options->output, "the bundle")->type_name("FILE")->required();
  made->add_option("--name", options->header.name, "the fleet's name")->type_name("NAME")->required();
  made->add_option("--serial", options->header.serial, "higher than that of the bundle before")
      ->type_name("N")
      ->required();
  made->add_option("--expires", options->header.expires, "last day (UTC)")->type_name("DAY");
  made->add_option("--rollout", options->header.percent, "for so many percent of the machines")
      ->type_name("PERCENT")
      ->check(CLI::Range(0, 100));
  made->add_option("--key", options->key, "secret key to sign with (policy keygen, or minisign -G -W)")
      ->type_name("FILE");
  for (CLI::App* sub :
       {add(app, options, "verify", "is this bundle signed by a trusted key, sound, and not expired", verify),
        add(app, options, "install", "put a bundle in force, when all is well with it", install)}) {
    sub->add_option("FILE", options->file, "the bundle")->required();
    sub->add_flag("--unsigned", options->is_unsigned, "take one that is not signed (root only)");
    add_root(sub, options);
  }
  CLI::App* back = add(app, options, "rollback", "back to the bundle before", roll_back);
  back->add_option("--why", options->why, "for the audit")->type_name("TEXT")->required();
  add_root(back, options);
  CLI::App* keys = add(app, options, "keygen", "make a pair of keys for bundles", make_keys);
  keys->add_option("-o,--output", options->output, "NAME.key and NAME.pub")->type_name("NAME")->required();
  return [options](const Context& context) { return options->chosen(context); };
}

}  // namespace gpuhealth::cli
