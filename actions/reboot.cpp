// SPDX-License-Identifier: Apache-2.0
// Through logind alone: it tells people, waits, and stops services in order. Within the window, and never against an
// inhibitor.
#include "actions/actuator.hpp"
#include "actions/text.hpp"

namespace gpuhealth::actions {
namespace {

Result<Report> perform(const Asked& asked) {
  const Machine& machine = *asked.machine;
  const auto window = asked.params.window("window");
  if (window && !units::within(*window, machine.outside.now, machine.outside.utc_offset_s))
    return fail(ErrorCode::Unavailable, "it is not the time for a reboot: the window is " + units::text_of(*window));
  const auto inhibitors = machine.outside.inhibitors();
  if (!inhibitors) return tl::unexpected<Error>(inhibitors.error());
  if (!inhibitors->empty())
    return fail(ErrorCode::Unavailable, "the machine is kept from going down by " + inhibitors->front());
  RebootWish wish;
  wish.notice = std::chrono::duration_cast<std::chrono::seconds>(asked.params.span("notice"));
  wish.message = "gpuhealthd reboots this machine: " + fill_template(asked, "{reason}");
  if (auto done = machine.outside.reboot(wish); !done) return tl::unexpected<Error>(done.error());
  Report out;
  out.text = "logind reboots the machine in " + std::to_string(wish.notice.count()) +
             " s; until then shutdown -c takes it back";
  return out;
}

}  // namespace

const Actuator kReboot = {
    .kind = ActionKind::Reboot, .recovery = Recovery::Note, .needs_idle = true, .perform = perform};

}  // namespace gpuhealth::actions
