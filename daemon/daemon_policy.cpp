// SPDX-License-Identifier: Apache-2.0
// What the daemon tells the policies of its devices, and what they tell the bus.
#include <fmt/format.h>

#include <filesystem>

#include "actions/state.hpp"
#include "core/units.hpp"
#include "daemon/daemon_impl.hpp"
#include "grub/advisories.hpp"
#include "grub/kernels.hpp"

namespace gpuhealth::daemon {
namespace {

constexpr double kBusyPercent = 2;

std::optional<bool> is_busy(const std::optional<ClientLook>& look) {
  if (!look) return std::nullopt;
  const auto works = [](const GpuClient& c) { return c.queues || c.engine_percent.value_or(0) >= kBusyPercent; };
  if (std::ranges::any_of(look->clients, works)) return true;
  return look->complete ? std::optional(false) : std::nullopt;
}

// What targets may ask of a GPU.
policy::DeviceState identity(const std::string& id, const DeviceInfo& info) {
  policy::DeviceState out;
  out.id = id;
  out.vendor = policy::vendor_name(info.vendor_id);
  out.gfx = info.gfx;
  if (!info.name.empty()) out.skus.push_back(info.name);
  out.skus.insert(out.skus.end(), info.other_names.begin(), info.other_names.end());
  out.skus.push_back(fmt::format("{:04x}:{:04x}", info.vendor_id, info.device_id));
  return out;
}

// The root's own, or those installed with this program.
std::string find_advisories(const std::string& root) {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  for (const std::filesystem::path& place : {std::filesystem::path(root) / "etc/gpuhealthd/advisories.d",
                                             std::filesystem::path(root) / "usr/share/gpuhealthd/advisories.d",
                                             self.parent_path() / "share/gpuhealthd/advisories.d"})
    if (std::filesystem::is_directory(place, error)) return place.string();
  return {};
}

}  // namespace

void Daemon::Impl::start_policies() {
  PolicyService::Options to;
  to.root = !options.root.empty() ? options.root : options.sysroot.empty() ? "/" : options.sysroot;
  to.sysroot = options.sysroot;
  if (options.config_dir != Options().config_dir) to.config_dir = options.config_dir;
  to.state_file = options.state_dir + "/policy-state.json";
  to.boot_id = boot_id;
  to.kernel = manager.kernel_release;
  to.act = options.act;
  to.speed = options.speed;
  to.longest_step = std::max<Duration>(4 * milliseconds(config.settings.sampling_interval), std::chrono::seconds(30));
  PolicyService::Handlers on;
  on.devices = [this] { return policy_devices(); };
  on.label = [this](const std::string& id) {
    const auto it = devices.find(id);
    return it == devices.end() ? std::string() : it->second.label;
  };
  on.advisories = [this] { return running_advisories(); };
  on.run_canary = [this](const ActionRequest& request) { run_canary(request); };
  on.event = [this](Severity severity, std::string type, const std::string& device, std::string text) {
    event(severity, std::move(type), device, std::move(text));
  };
  on.log = [](Severity severity, const std::string& text) { log_line(severity, text); };
  on.standing = [this](const PolicyService::Standing& now) {
    manager.policy_mode = now.mode;
    manager.safe_mode = now.safe_mode;
    manager.policy_problem = now.problem;
    manager.breaker_open = now.breaker_open;
    manager.policy_files = now.files;
    bus.set_manager(manager);
  };
  on.show = [this](const dbus::ActionView& view) {
    bus.set_action(view);
    if (view.kind == to_string(ActionKind::PowerCap) && !view.device.empty()) note_own_cap(view);
  };
  on.hide = [this](const std::string& id) { bus.remove_action(id); };
  on.want_events = [this](WallTime since) {
    constexpr std::uint32_t kMost = 4096;
    store.events(since, clock.now().wall, kMost, [this](const Result<std::vector<Event>>& events) {
      if (events) policies->old_events(*events);
    });
  };
  policies = std::make_unique<PolicyService>(io, clock, std::move(to), std::move(on));
  policies->start();
}

std::vector<policy::DeviceState> Daemon::Impl::policy_devices() const {
  std::vector<policy::DeviceState> out;
  for (const auto& [id, device] : devices) {
    policy::DeviceState state = identity(id, device.info);
    state.label = device.label;
    state.vram = device.sample.value(ReadingId::VramTotal);
    state.asleep =
        device.has_sample && device.sample.power != PowerState::Active && device.sample.power != PowerState::Unknown;
    state.busy = is_busy(device.used_by);
    state.readings = device.sample.readings;
    if (const auto facts = canary_facts.find(id); facts != canary_facts.end())
      for (const auto& [what, fact] : facts->second) state.canaries.push_back(fact);
    out.push_back(std::move(state));
  }
  for (auto& condition : engine.open()) {
    auto at = std::ranges::find(out, condition.device, &policy::DeviceState::id);
    if (at == out.end()) {  // it is gone, and that is what is wrong
      policy::DeviceState gone;
      if (const auto was = departed.find(condition.device); was != departed.end())
        gone = identity(condition.device, was->second);
      gone.id = condition.device;
      gone.label = condition.device_label;
      out.push_back(std::move(gone));
      at = out.end() - 1;
    }
    at->conditions.push_back(std::move(condition));
  }
  return out;
}

// Where there is no kernel service the tree is somebody's, and small.
std::vector<std::string> Daemon::Impl::running_advisories() const {
  if (kernel) return kernel->state().advisories;
  const std::string root = !options.root.empty() ? options.root : options.sysroot.empty() ? "/" : options.sysroot;
  const auto tree = Tree::open(root);
  const auto inventory = tree ? grub::take_inventory(*tree) : tl::unexpected<Error>(tree.error());
  std::vector<std::string> out;
  if (!inventory) return out;
  const auto set = grub::load_advisories(find_advisories(root));
  grub::Kernel running;
  running.release = manager.kernel_release;
  if (const auto at = std::ranges::find(inventory->kernels, manager.kernel_release, &grub::Kernel::release);
      at != inventory->kernels.end())
    running = *at;
  grub::AdvisoryQuestion question;
  question.kernel = grub::identify(running, inventory->distribution, inventory->version_id);
  question.module_version = manager.amdgpu.version;
  for (const auto& [id, device] : devices)
    if (!device.info.gfx.empty()) question.gfx.push_back(device.info.gfx);
  for (const auto& match : grub::match(set.advisories, question))
    if (match.applies == grub::Tri::Yes) out.push_back(match.advisory->id);
  return out;
}

void Daemon::Impl::note_canary(const std::string& device, const health::CanaryFinding& finding) {
  const auto& f = finding.finding;
  const std::string key = f.canary + " " + std::string(to_string(f.kind));
  if (f.level == canary::stats::Level::Confirmed) {
    canary_facts[device][key] = {f.canary, f.kind, f.ratio, f.detail};
  } else {
    canary_facts[device].erase(key);
  }
  if (policies) policies->changed();
}

// The limit that an action of ours has in force is no finding.
void Daemon::Impl::note_own_cap(const dbus::ActionView& view) {
  using S = actions::ActionState;
  const bool in_force = view.state == to_string(S::Applied) || view.state == to_string(S::Confirmed);
  const std::string_view after = view.after;  // "231 W"
  const auto watts = in_force ? units::parse_number(after.substr(0, after.find(' '))) : std::nullopt;
  auto& own = own_caps[view.device];
  if (watts)
    own[view.id] = *watts;
  else
    own.erase(view.id);
  // Of several the newest is in force; ledger ids sort by time.
  engine.on_own_power_cap(view.device, own.empty() ? std::nullopt : std::optional(own.rbegin()->second));
}

// A rule asks for canaries, or an action was done: then those that showed the fault, else whatever runs next.
void Daemon::Impl::run_canary(const ActionRequest& request) {
  const auto it = devices.find(request.device);
  if (it == devices.end() || !canaries) return;
  const std::string pci = to_string(it->second.info.pci);
  if (request.kind == ActionKind::RunCanary) {
    const auto tier = request.params.find("tier");
    canaries->ask_now(pci, tier == request.params.end() ? 1 : std::clamp(std::atoi(tier->second.c_str()), 0, 2));
    return;
  }
  auto& wanted = to_verify[request.device];
  wanted.clear();
  for (const auto& [what, fact] : canary_facts[request.device]) wanted.insert(fact.canary);
  for (const auto& canary : wanted) canaries->want(pci, canary);
  if (wanted.empty()) canaries->ask_now(pci, 1);
}

void Daemon::Impl::on_good_canary(const std::string& pci, const std::string& canary) {
  const auto address = parse_pci_address(pci);
  const auto* device = address ? device_at(*address) : nullptr;
  if (device == nullptr || !policies) return;
  const std::string id = device->info.id();
  const auto waits = to_verify.find(id);
  if (waits == to_verify.end() || (!waits->second.empty() && !waits->second.contains(canary))) return;
  const auto found = canary_facts.find(id);
  const bool still = found != canary_facts.end() &&
                     std::ranges::any_of(found->second, [&](const auto& item) { return item.second.canary == canary; });
  if (still) return;
  waits->second.erase(canary);
  if (!waits->second.empty()) return;
  to_verify.erase(waits);
  policies->canary_passed(id);
}

}  // namespace gpuhealth::daemon
