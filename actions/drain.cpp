// SPDX-License-Identifier: Apache-2.0
// /run/gpuhealth/drain: as long as it is there, job starters leave this machine alone; /run/gpuhealth/qualified is
// the opposite, for those that want a yes. Both are gone after a boot, as is what was wrong with the machine then.
#include "actions/actuator.hpp"
#include "actions/text.hpp"

namespace gpuhealth::actions {
namespace {

Result<Plan> plan(const Asked& asked) {
  const Tree& files = asked.machine->files;
  const std::string drain(kDrainFile);
  const std::string qualified(kQualifiedFile);
  Plan out;
  LedgerEntry& entry = out.entry;
  const std::string reason = fill_template(asked, asked.params.text("reason"));
  const auto now = file_state(files, drain);
  if (!now) return tl::unexpected<Error>(now.error());
  const auto flag = file_state(files, qualified);
  if (!flag) return tl::unexpected<Error>(flag.error());
  if (now->exists) out.already = "the machine is marked already: " + now->bytes.substr(0, now->bytes.find('\n'));
  entry.before = now->exists ? "marked" : "not marked";
  entry.wanted = "marked";
  entry.prior[drain] = *now;
  entry.steps.push_back({"file", drain, 0, 0, reason + "\n"});
  if (flag->exists) {
    entry.prior[qualified] = *flag;
    entry.steps.push_back({"no-file", qualified, 0, 0, {}});
  }
  return out;
}

Result<std::string> observe(const Machine& machine, const LedgerEntry& entry) {
  const auto now = file_state(machine.files, std::string(kDrainFile));
  if (!now) return tl::unexpected<Error>(now.error());
  if (!now->exists) return std::string("not marked");
  const bool ours = !entry.steps.empty() && now->bytes == entry.steps.front().value;
  return std::string(ours ? "marked" : "marked by somebody else");
}

}  // namespace

const Actuator kDrain = {.kind = ActionKind::Drain, .spares_others = true, .plan = plan, .observe = observe};

}  // namespace gpuhealth::actions
