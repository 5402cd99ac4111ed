// SPDX-License-Identifier: Apache-2.0
#include "cli/kernel_ask.hpp"

#include <sys/utsname.h>

#include <chrono>
#include <thread>

#include "core/tree.hpp"
#include "dbus/kernel_client.hpp"
#include "grub/qualification.hpp"
#include "telemetry/discovery.hpp"

namespace gpuhealth::cli {
namespace {

using grub::QualificationState;

void show_verdict(const Context& context, const std::string& release, const grub::Qualification& known) {
  const std::string state(to_string(known.state));
  show(
      context,
      [&] {
        Page page;
        page.paragraph({release + " is " + state + (known.reason.empty() ? "" : ": " + known.reason)}, 0,
                       context.terminal.columns);
        return page;
      },
      [&] {
        return Json{{"release", release},
                    {"state", state},
                    {"reason", known.reason.empty() ? Json(nullptr) : Json(known.reason)}};
      });
}

}  // namespace

ExitCode ask_daemon(const Context& context, const dbus::KernelRequest& request, const std::string& done) {
  auto client = dbus::KernelClient::connect(context.bus);
  if (!client) return complain(context, client.error());
  if (const auto asked = client->ask(request); !asked) return complain(context, asked.error());
  const auto state = client->state();
  const std::string next = state ? state->next : std::string();
  show(
      context,
      [&] {
        Page page;
        page.line({{done}});
        if (!next.empty()) page.line({{"Boots next: " + next + ".", Tone::Heading}});
        return page;
      },
      [&] { return Json{{"done", done}, {"next", next.empty() ? Json(nullptr) : Json(next)}}; });
  return ExitCode::Ok;
}

ExitCode wait_for_verdict(const Context& context, const std::string& root, unsigned seconds) {
  const auto tree = Tree::open(root);
  if (!tree) return complain(context, tree.error());
  const std::string release = telemetry::kernel_release(root == "/" ? "" : root);
  if (release.empty()) return complain(context, {ErrorCode::NotFound, "which kernel runs is not known in " + root, 0});
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  for (;;) {
    const auto all = grub::read_qualifications(*tree);
    const auto known = all.kernels.find(release);
    if (known != all.kernels.end()) {
      const QualificationState state = known->second.state;
      const bool open = state == QualificationState::Installed || state == QualificationState::Held ||
                        state == QualificationState::TrialArmed || state == QualificationState::Booted ||
                        state == QualificationState::Qualifying;
      // The daemon has not seen yet that this is another build under the same name.
      utsname now{};
      const bool stale =
          tree->running() && ::uname(&now) == 0 && !known->second.build.empty() && known->second.build != now.version;
      if (!open && !stale) {
        show_verdict(context, release, known->second);
        return state == QualificationState::Blessed ? ExitCode::Ok : ExitCode::ConditionsPresent;
      }
    }
    if (std::chrono::steady_clock::now() >= end)
      return complain(context,
                      {ErrorCode::Unavailable,
                       release + " has no verdict yet" +
                           (known == all.kernels.end() ? "; is gpuhealthd running?"
                                                       : ", it is " + std::string(to_string(known->second.state)) +
                                                             "; look at: gpuhealthctl kernel status"),
                       0});
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
}

}  // namespace gpuhealth::cli
