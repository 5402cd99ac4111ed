// SPDX-License-Identifier: Apache-2.0
// scontrol(1): the node is drained with our reason, and resumed only while the reason still is ours.
#include <algorithm>

#include "actions/actuator.hpp"
#include "actions/text.hpp"

namespace gpuhealth::actions {
namespace {

constexpr std::string_view kMark = "gpuhealth: ";

// KEY=VALUE of one line of `scontrol --oneliner show node`; a Reason has blanks and ends at " [who@when]".
std::string field(const std::string& line, const std::string& key) {
  const auto at = (" " + line).find(" " + key + "=");
  if (at == std::string::npos) return {};
  const auto begin = at + key.size() + 1;
  const auto end = key == "Reason" ? line.find(" [", begin) : line.find(' ', begin);
  std::string value = line.substr(begin, std::min(end, line.size()) - begin);
  while (!value.empty() && (value.back() == '\n' || value.back() == ' ')) value.pop_back();
  return value;
}

Result<std::string> show(const Machine& machine, const std::string& program, const std::string& node) {
  ProgramRun run;
  run.words = {program, "--oneliner", "show", "node", node};
  const auto end = machine.outside.run(run);
  if (!end) return tl::unexpected<Error>(end.error());
  if (end->late) return fail(ErrorCode::Unavailable, program + " did not answer in time");
  if (end->code != 0 || field(end->said, "NodeName") != node)
    return fail(ErrorCode::Unavailable, program + " does not know the node " + node + ": " + end->said);
  return end->said;
}

// "drained for gpuhealth: …", "drained by others", "in use".
std::string state_in_words(const std::string& shown) {
  const std::string state = field(shown, "State");
  if (state.find("DRAIN") == std::string::npos) return "not drained";
  return field(shown, "Reason").starts_with(kMark) ? "drained by us" : "drained by somebody else";
}

Result<Plan> plan(const Asked& asked) {
  const Machine& machine = *asked.machine;
  const std::string program = find_program(machine, "scontrol");
  if (program.empty()) return fail(ErrorCode::NotFound, "there is no scontrol: this machine is no node of Slurm");
  const std::string node = machine.outside.host;
  const auto shown = show(machine, program, node);
  if (!shown) return tl::unexpected<Error>(shown.error());
  Plan out;
  LedgerEntry& entry = out.entry;
  entry.before = state_in_words(*shown);
  entry.wanted = "drained by us";
  entry.lasting = true;  // slurmctld remembers it
  entry.facts = {{"program", program}, {"node", node}};
  if (entry.before != "not drained") out.already = node + " is " + entry.before + " already";
  const std::string reason = std::string(kMark) + fill_template(asked, asked.params.text("reason"));
  entry.steps = {program_step({program, "update", "NodeName=" + node, "State=DRAIN", "Reason=" + reason})};
  entry.back = {program_step({program, "update", "NodeName=" + node, "State=RESUME"})};
  return out;
}

Result<std::string> observe(const Machine& machine, const LedgerEntry& entry) {
  const auto shown = show(machine, entry.facts.at("program"), entry.facts.at("node"));
  if (!shown) return tl::unexpected<Error>(shown.error());
  return state_in_words(*shown);
}

}  // namespace

const Actuator kSlurmDrain = {.kind = ActionKind::SlurmDrain, .plan = plan, .observe = observe};

}  // namespace gpuhealth::actions
