// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/apart.hpp"
#include "cli/command.hpp"
#include "cli/render.hpp"
#include "health/engine.hpp"
#include "telemetry/inspect.hpp"
#include "telemetry/intel.hpp"

namespace gpuhealth::cli {
namespace {

Result<std::string> find_tree(std::string sysroot) {
  while (sysroot.size() > 1 && sysroot.ends_with('/')) sysroot.pop_back();
  std::error_code error;
  if (!std::filesystem::is_directory(sysroot, error)) return fail(ErrorCode::NotFound, "there is no folder " + sysroot);
  if (!std::filesystem::is_directory(sysroot + "/sys", error)) {
    return fail(ErrorCode::InvalidInput,
                sysroot + " has no folder sys: --sysroot takes the folder that holds sys/, as / does");
  }
  return sysroot == "/" ? "" : sysroot;
}

std::vector<Condition> judge(const telemetry::Inspected& one) {
  if (one.stuck_in.empty()) return health::judge_once(one.device, one.sample, health::Thresholds{});
  Condition stuck;
  stuck.type = ConditionType::SourceStuck;
  stuck.severity = info(stuck.type).severity;
  stuck.device = one.device.id();
  stuck.state = ConditionState::Confirmed;
  stuck.detail = "A read of " + one.stuck_in + " does not return.";
  stuck.evidence = {{"stuck in", one.stuck_in}};
  return {std::move(stuck)};
}

ExitCode inspect(const Context& context, const std::string& sysroot, std::uint16_t vendor) {
  const auto tree = find_tree(sysroot);
  if (!tree) return complain(context, tree.error());
  return look_apart([&](std::span<const telemetry::Unanswering> stuck, telemetry::Progress& progress) {
    const auto inspection = telemetry::inspect(*tree, stuck, &progress, vendor);
    if (!inspection) return complain(context, inspection.error());
    std::vector<std::vector<Condition>> conditions;
    for (const auto& one : inspection->devices) conditions.push_back(judge(one));
    show(
        context, [&] { return render_inspect(*inspection, conditions, context.terminal); },
        [&] { return json_inspect(*inspection, conditions); });
    return ExitCode::Ok;
  });
}

}  // namespace

Action set_up_inspect(CLI::App& app) {
  auto sysroot = std::make_shared<std::string>("/");
  app.add_option("--sysroot", *sysroot, "folder that holds sys/ (and proc/, dev/) of the machine to look at")
      ->type_name("DIR")
      ->capture_default_str();
  auto vendor = std::make_shared<std::string>("amd");
  app.add_option("--vendor", *vendor, "whose GPUs: amd, or intel's discrete ones")
      ->type_name("VENDOR")
      ->check(CLI::IsMember({"amd", "intel"}))
      ->capture_default_str();
  return [sysroot, vendor](const Context& context) {
    return inspect(context, *sysroot, *vendor == "amd" ? telemetry::kVendorAmd : telemetry::kVendorIntel);
  };
}

}  // namespace gpuhealth::cli
