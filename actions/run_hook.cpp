// SPDX-License-Identifier: Apache-2.0
// A program of /etc/gpuhealthd/hooks.d. No shell, no path: a name in that folder, and only what no one but root could
// have put there.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "actions/actuator.hpp"
#include "actions/text.hpp"

namespace gpuhealth::actions {
namespace {

constexpr std::string_view kHooks = "/etc/gpuhealthd/hooks.d/";

Result<std::string> find_hook(const Machine& machine, const std::string& name) {
  if (name.starts_with('.') || name.find('/') != std::string::npos)
    return fail(ErrorCode::InvalidInput, "run-hook: program is a name in " + std::string(kHooks) + ", not " + name);
  const std::string path = std::string(kHooks) + name;
  const auto file = machine.files.stat(path);
  if (!file || !S_ISREG(file->st_mode)) return fail(ErrorCode::NotFound, "there is no program " + path);
  const auto folder = machine.files.stat(kHooks);
  for (const auto* one : {&*file, &*folder}) {
    if ((one->st_mode & (S_IWGRP | S_IWOTH)) != 0 || (one->st_uid != 0 && one->st_uid != ::geteuid()))
      return fail(ErrorCode::NotPermitted,
                  path + " is not run: it or its folder can be written by others than root; chmod go-w, chown root");
  }
  if ((file->st_mode & S_IXUSR) == 0) return fail(ErrorCode::NotPermitted, path + " is not executable");
  return sysroot_of(machine.files) + path;
}

std::string shorten(std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  if (text.size() > 500) text = text.substr(0, 500) + " …";
  return text;
}

Result<Report> perform(const Asked& asked) {
  const std::string name = asked.params.text("program");
  const auto path = find_hook(*asked.machine, name);
  if (!path) return tl::unexpected<Error>(path.error());
  ProgramRun run;
  run.words = {*path};
  run.input = event_json(asked) + "\n";
  run.deadline = asked.params.span("deadline");
  const ActionRequest& request = *asked.request;
  run.variables = {"GPUHEALTH_ACTION=" + std::string(to_string(request.kind)),
                   "GPUHEALTH_DEVICE=" + request.device,
                   "GPUHEALTH_PCI=" + (asked.target ? asked.target->pci : std::string()),
                   "GPUHEALTH_POLICY=" + request.policy,
                   "GPUHEALTH_RULE=" + request.rule,
                   "GPUHEALTH_CONDITION=" + request.condition,
                   "GPUHEALTH_REASON=" + fill_template(asked, "{reason}")};
  const auto end = asked.machine->outside.run(run);
  if (!end) return tl::unexpected<Error>(end.error());
  if (end->late)
    return fail(ErrorCode::Unavailable,
                name + " did not end by its deadline and was killed. It said: " + shorten(end->said));
  if (end->code != 0)
    return fail(ErrorCode::Unavailable,
                name + " failed with exit code " + std::to_string(end->code) + ". It said: " + shorten(end->said));
  Report out;
  out.text = name + " ran" + (end->said.empty() ? std::string() : ". It said: " + shorten(end->said));
  return out;
}

}  // namespace

const Actuator kRunHook = {.kind = ActionKind::RunHook, .recovery = Recovery::Note, .perform = perform};

}  // namespace gpuhealth::actions
