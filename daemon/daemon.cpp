// SPDX-License-Identifier: Apache-2.0
#include "daemon/daemon_impl.hpp"

namespace gpuhealth::daemon {
namespace {

// A value that is not of this moment says so: readings that were valid take `status`, and keep their value.
void age(Sample& sample, ReadingStatus status) {
  for (auto& r : sample.readings) {
    if (r.status == ReadingStatus::Valid || r.status == ReadingStatus::Stale) r.status = status;
  }
  sample.throttle = {};
  sample.throttle_gated = {};
}

}  // namespace

Daemon::Impl::Impl(asio::io_context& context, const Clock& c, Options o, Config cfg)
    : io(context),
      clock(c),
      options(std::move(o)),
      config(std::move(cfg)),
      boot_id(read_boot_id(options.sysroot).value_or(read_boot_id().value_or("unknown"))),
      store(
          store_options(options, config.settings),
          [&context](std::function<void()> f) { asio::post(context, std::move(f)); },
          [this](const store::Health& h) { on_store_health(h); },
          [this](const store::OpenReport& r) { on_store_open(r); }),
      engine(config.thresholds, boot_id),
      bus(context, {options.bus}, requests()),
      readers(context, pool_options(options, config.settings), reader_handlers(false)),
      tick(context),
      watchdog(context) {}

telemetry::ReaderPool::Handlers Daemon::Impl::reader_handlers(bool by_nvml) {
  telemetry::ReaderPool::Handlers on;
  on.devices = [this, by_nvml](const telemetry::DevicesFrame& frame) { on_devices(frame, by_nvml); };
  on.sample = [this](const PciAddress& address, Sample& sample) { on_sample(address, sample); };
  on.clients = [this](const PciAddress& address, const ClientLook& look) {
    if (auto* device = device_at(address)) device->nvml_clients = look;
  };
  on.gone = [this](const PciAddress&) { discover(); };
  on.stuck = [this](const PciAddress& address, bool stuck, const std::string& what) { on_stuck(address, stuck, what); };
  on.log = [](Severity severity, const std::string& text) { log_line(severity, text); };
  return on;
}

dbus::Requests Daemon::Impl::requests() {
  dbus::Requests on;
  on.history = [this](store::HistoryQuery query, auto then) { store.history(std::move(query), std::move(then)); };
  on.events = [this](WallTime since, WallTime until, std::uint32_t limit, auto then) {
    store.events(since, until, limit, std::move(then));
  };
  on.past_conditions = [this](WallTime since, std::uint32_t limit, auto then) {
    store.conditions(since, limit, std::move(then));
  };
  on.acknowledge = [this](const std::string& id, const auto& then) { then(acknowledge(id)); };
  on.reload = [this](const auto& then) { then(reload()); };
  on.kernel = [this](const dbus::KernelRequest& request, const auto& then) {
    if (kernel) return kernel->asked(request, then);
    then(fail(
        ErrorCode::Unavailable,
        "this daemon was not started by systemd as root, or looks at another tree: it does not look after kernels"));
  };
  on.run_canary = [this](const dbus::JobRequest& request, const auto& then) { ask_canary(request, then); };
  on.cancel_canary = [this](const std::string& id, const std::string& why) -> Result<void> {
    if (jobs) return jobs->cancel(id, why);
    return fail(ErrorCode::NotFound, "no canary runs");
  };
  on.reload_policy = [this](const auto& then) { then(policies->reload()); };
  on.reset_breaker = [this](auto then) { policies->reset_breaker(std::move(then)); };
  on.confirm_action = [this](const std::string& id, auto then) { policies->confirm(id, std::move(then)); };
  on.revert_action = [this](const std::string& id, auto then) { policies->revert(id, std::move(then)); };
  return on;
}

void Daemon::Impl::start() {
  manager.version = kVersion;
  manager.boot_id = boot_id;
  manager.kernel_release = telemetry::kernel_release(options.sysroot);
  manager.started = clock.now().wall;
  manager.config_problem = config.problem;
  bus.set_manager(manager);
  bus.start([](const Error& error) { log_line(Severity::Warning, error.text); });
  restore_history();
  if (options.sysroot.empty()) {
    auto started = Hotplug::start(io, [this] { discover(); }, [this](const Notice& notice) { on_notice(notice); });
    if (started) {
      hotplug = std::move(*started);
    } else {
      log_line(Severity::Warning, started.error().text + "; devices that come or go are noticed within a minute");
    }
  }
  start_kernel_log();
  start_sleep_watch();
  start_clients();
  discover();
  start_rocm_smi();
  next_discovery = clock.now().steady + milliseconds(config.settings.sampling_rediscover);
  tick.expires_after(milliseconds(0));
  tick.async_wait([this](error_code error) {
    if (!error) on_tick();
  });
  start_watchdog();
  start_canaries();
  start_kernel();
  start_policies();
}

void Daemon::Impl::restore_history() {
  store.open_conditions([this](const Result<std::vector<Condition>>& open) {
    if (!open || history_restored) return;
    history_restored = true;
    publish(engine.restore(*open, clock.now()));
    // Those that go on are no change; the bus has not seen them.
    for (const auto& condition : engine.open()) {
      if (condition.state == ConditionState::Confirmed) bus.set_condition(condition);
    }
  });
  store.known_devices([this](const Result<std::vector<store::KnownDevice>>& known) {
    remembered_known = true;
    if (!known || !remembered.empty()) return;
    for (const auto& d : *known) remembered.push_back({d.id, d.label, d.last_boot_id});
    take_inventory();
  });
}

// --- the clockwork ---------------------------------------------------------------------------------------------------

void Daemon::Impl::schedule_tick() {
  // From the time it was due, so that samples do not drift; after a pause (suspend, a stopped machine) from now.
  const auto interval = real(options, config.settings.sampling_interval);
  const auto due = tick.expiry() + interval;
  const auto now = std::chrono::steady_clock::now();
  tick.expires_at(due < now ? now + interval : due);
  tick.async_wait([this](error_code error) {
    if (!error) on_tick();
  });
}

void Daemon::Impl::on_tick() {
  const auto now = clock.now();
  if (now.steady >= next_discovery) {
    next_discovery = now.steady + milliseconds(config.settings.sampling_rediscover);
    discover();
  }
  const auto slow_every = static_cast<std::uint64_t>(config.settings.sampling_slow_every);
  // After the machine has slept nothing that was read before holds.
  const bool slept = now.steady - last_tick > 4 * milliseconds(config.settings.sampling_interval);
  last_tick = now.steady;
  const bool slow = ticks++ % slow_every == 0 || slept;
  if (!machine_sleeps(now.steady)) {
    readers.sample(slow);
    if (nvml) nvml->sample(slow);
    look_at_clients(now.steady);
    ask_rocm_smi(now.steady);
    look_at_canaries();
    if (kernel) kernel->tick();
  }
  settle_resets(now.steady);
  mark_stale();
  refresh_bus();
  if (policies && discovered && (!nvml || nvml_known) && !sleeping_since) {
    for (const auto& [id, device] : devices)
      if (slept && ticks > 1) policies->device_came_back(id);
    policies->look();
  }
  schedule_tick();
}

void Daemon::Impl::mark_stale() {
  const auto limit =
      3 * milliseconds(config.settings.sampling_interval) + milliseconds(config.settings.sampling_deadline);
  const auto now = clock.now().steady;
  for (auto& [id, device] : devices) {
    if (!device.has_sample || device.stuck || device.stale || now - device.sampled < limit) continue;
    device.stale = true;
    age(device.sample, ReadingStatus::Stale);
    bus.set_sample(device.sample);
  }
}

// What changes all the time and is worth no signal.
void Daemon::Impl::refresh_bus() {
  bus.set_manager(manager);
  for (const auto& condition : engine.open()) {
    if (condition.state == ConditionState::Confirmed) bus.set_condition(condition);
  }
}

void Daemon::Impl::start_watchdog() {
  std::uint64_t microseconds = 0;
  if (sd_watchdog_enabled(0, &microseconds) <= 0) return;
  watchdog_period = std::chrono::duration_cast<milliseconds>(std::chrono::microseconds(microseconds)) / 3;
  schedule_watchdog();
}

void Daemon::Impl::schedule_watchdog() {
  // Fed by the loop that does the work: a loop that stands still is restarted.
  watchdog.expires_after(watchdog_period);
  watchdog.async_wait([this](error_code error) {
    if (error) return;
    sd_notify(0, "WATCHDOG=1");
    schedule_watchdog();
  });
}

// --- canaries --------------------------------------------------------------------------------------------------------

// By themselves they run as units of their own. A daemon that cannot start such units runs them as children, and only
// when it is asked to.
void Daemon::Impl::start_canaries() {
  if (config.settings.canary_interval == 0 || !options.sysroot.empty()) return;
  const auto owner = owner_of_canary_units();
  if (!owner && !config.given.contains("canary.interval") && !config.given.contains("canary.tier")) return;
  CanaryService::Options to;
  to.program = options.canary;
  to.results = options.state_dir + "/canary/results.jsonl";
  to.schedule.fast_every_s = static_cast<double>(config.settings.canary_interval) / 1e3;
  to.schedule.most_tier = static_cast<int>(config.settings.canary_tier);
  if (owner) {
    constexpr double kGraceSeconds = 20;  // systemd ends the unit at its limit; this is for when it does not
    to.launch = [unit = *owner, program = options.canary](const std::string& device,
                                                          const std::vector<std::string>& arguments, double limit_s) {
      auto words = canary_unit(unit, program, arguments, device, device_nodes("", device), limit_s);
      const auto first = words.start.front();
      words.start.erase(words.start.begin());
      return CanaryService::Launch{first, std::move(words.start), std::move(words.stop), kGraceSeconds};
    };
  }
  CanaryService::Handlers on;
  on.measured = [this](const canary::Measurement& m, const health::CanaryOutcome& outcome) {
    if (m.status == canary::Status::Ok) on_good_canary(m.device, m.canary);
    if (kernel) kernel->measured(m, outcome);
    if (jobs) jobs->measured(m);
  };
  on.run_ended = [this](const std::string& device, const std::string& problem) {
    if (jobs) jobs->run_ended(device, problem);
    if (kernel) kernel->run_ended(device);
  };
  on.devices = [this] { return canary_situations(); };
  on.finding = [this](const health::CanaryFinding& finding) { on_canary(finding); };
  on.log = [](Severity severity, const std::string& text) { log_line(severity, text); };
  canaries = std::make_unique<CanaryService>(io, clock, std::move(to), std::move(on));
  canaries->start();
  start_jobs();
}

std::vector<canary::DeviceSituation> Daemon::Impl::canary_situations() const {
  constexpr double kBusyPercent = 20;
  constexpr double kMemoryBytes = 2.0 * (3ULL << 29U);  // twice what triad takes
  std::vector<canary::DeviceSituation> out;
  for (const auto& [id, device] : devices) {
    if (!device.has_sample) continue;
    canary::DeviceSituation d;
    d.device = to_string(device.info.pci);
    d.asleep = device.sample.power != PowerState::Active;
    d.in_a_guest = device.info.driver.starts_with("vfio");
    d.stuck = device.stuck;
    d.amdgpu = device.info.driver == "amdgpu";
    d.busy = device.sample.value(ReadingId::UtilizationGfx).value_or(0) >= kBusyPercent;
    const auto total = device.sample.value(ReadingId::VramTotal);
    const auto used = device.sample.value(ReadingId::VramUsed);
    d.little_memory = total && used && *total - *used < std::min(kMemoryBytes, 0.5 * *total);
    out.push_back(std::move(d));
  }
  return out;
}

// Only what is confirmed is told; what is suspected stays in the results and the journal.
void Daemon::Impl::on_canary(const health::CanaryFinding& finding) {
  using canary::stats::Level;
  const auto& f = finding.finding;
  log_line(Severity::Info, "canary " + f.canary + " on " + f.device + ": " + std::string(to_string(f.level)) + " " +
                               std::string(to_string(f.kind)) + ": " + f.detail);
  const auto address = parse_pci_address(f.device);
  const auto* device = address ? device_at(*address) : nullptr;
  if (device == nullptr || f.level == Level::Suspect) return;
  note_canary(device->info.id(), finding);
  const auto as = health::condition_of(f.kind);
  publish(engine.on_verdict(device->info, as.type, f.level == Level::Confirmed, as.severity,
                            f.detail + ". Cause: " + finding.cause.text + ".", evidence_of(finding), clock.now()));
}

// --- devices ---------------------------------------------------------------------------------------------------------

Device* Daemon::Impl::device_at(const PciAddress& address) {
  const auto it = by_address.find(address);
  if (it == by_address.end()) return nullptr;
  return &devices.at(it->second);
}

void Daemon::Impl::discover() {
  readers.discover();
  if (nvml) nvml->discover();
}

void Daemon::Impl::on_devices(const telemetry::DevicesFrame& frame, bool by_nvml) {
  if (!frame.error.empty()) {
    log_line(Severity::Warning, frame.error);
    announce_ready();
    return;
  }
  const auto known_before = devices.size();
  std::vector<std::string> present;
  present.reserve(frame.devices.size() + frame.untouched.size());
  for (const auto& info : frame.devices) present.push_back(info.id());
  for (const auto packed : frame.untouched) {
    if (const auto* d = device_at(telemetry::unpack(packed))) present.push_back(d->info.id());
  }
  std::vector<std::string> left;
  for (const auto& [id, device] : devices) {
    if (device.by_nvml == by_nvml && std::ranges::find(present, id) == present.end()) left.push_back(id);
  }
  for (const auto& id : left) {
    // Without its driver a card has no id of its own: it is at the same place under another name, and not lost.
    const auto& was = devices.at(id).info;
    const bool renamed = std::ranges::any_of(frame.devices, [&](const DeviceInfo& now) {
      return now.pci == was.pci && now.vendor_id == was.vendor_id && now.device_id == was.device_id;
    });
    drop_device(id, renamed);
  }
  for (const auto& info : frame.devices) add_device(info, by_nvml);
  manager.amdgpu = telemetry::read_driver_module(options.sysroot).value_or(DriverModule{});
  bool& known = by_nvml ? nvml_known : discovered;
  if (!known) {
    for (const auto& note : frame.notes) log_line(Severity::Info, note);
  }
  known = true;
  if (frame.nvidia) start_nvml();
  start_kfd_events();
  take_inventory();
  if (policies && known_before != devices.size()) policies->devices_changed();
  for (const auto& early : std::exchange(early_log, {})) on_kernel_log(early);
  announce_ready();
}

void Daemon::Impl::add_device(const DeviceInfo& info, bool by_nvml) {
  const auto id = info.id();
  const auto it = devices.find(id);
  const bool fresh = it == devices.end();
  if (!fresh && to_string(it->second.info.pci) != to_string(info.pci)) by_address.erase(it->second.info.pci);
  auto& device = devices[id];
  const bool driver_changed = !fresh && device.info.driver != info.driver;
  device.info = info;
  device.by_nvml = by_nvml;
  device.label = health::label_of(info);
  by_address[info.pci] = id;
  bus.set_device(info);
  if (fresh || driver_changed) store.seen(info, device.label, boot_id, clock.now().wall);
  const auto driver = info.driver.empty() ? std::string("no driver") : "driver " + info.driver;
  if (fresh) event(Severity::Info, "device.added", id, device.label + ": found, " + driver);
  if (driver_changed) event(Severity::Info, "device.driver-changed", id, device.label + ": now " + driver);
}

void Daemon::Impl::drop_device(const std::string& id, bool renamed) {
  const auto node = devices.extract(id);
  const auto& device = node.mapped();
  by_address.erase(device.info.pci);
  publish(engine.on_removed(id, device.label, renamed, clock.now()));
  bus.remove_device(id);
  if (renamed) return;
  departed[id] = device.info;
  event(Severity::Warning, "device.removed", id, device.label + ": no longer on the bus");
}

void Daemon::Impl::take_inventory() {
  if (!discovered || !remembered_known || (nvml && !nvml_known)) return;
  std::vector<DeviceInfo> present;
  present.reserve(devices.size());
  for (const auto& [id, device] : devices) present.push_back(device.info);
  publish(engine.on_inventory(present, remembered, clock.now()));
}

void Daemon::Impl::on_sample(const PciAddress& address, Sample& sample) {
  auto* device = device_at(address);
  if (device == nullptr) return;
  sample.device = device->info.id();
  sample.time = clock.now();
  prefer_rocm_smi(*device, sample);
  device->sampled = sample.time.steady;
  device->has_sample = true;
  device->stale = false;
  ++manager.samples;
  // What it was told may be forgotten while it was off.
  const bool woke = device->has_sample && device->sample.power != PowerState::Active &&
                    device->sample.power != PowerState::Unknown && sample.power == PowerState::Active;
  if (woke && policies) policies->device_came_back(sample.device);
  publish(engine.on_sample(device->info, sample));
  store.add(sample);
  bus.set_sample(sample);
  compare_vram_losses(*device, sample);
  device->sample = std::move(sample);
  compare_with_before_sleep(*device);
}

void Daemon::Impl::on_stuck(const PciAddress& address, bool stuck, const std::string& what) {
  auto* device = device_at(address);
  if (device == nullptr) return;
  device->stuck = stuck;
  const auto id = device->info.id();
  if (stuck) {
    age(device->sample, ReadingStatus::Stuck);
    device->sample.device = id;
    device->sample.time = clock.now();
    bus.set_sample(device->sample);
    event(Severity::Warning, "device.stuck", id, device->label + ": the read of " + what + " does not return");
  } else {
    event(Severity::Info, "device.answers", id, device->label + ": answers again");
  }
  publish(engine.on_stuck(device->info, stuck, what, clock.now()));
}

// --- telling ---------------------------------------------------------------------------------------------------------

void Daemon::Impl::publish(const std::vector<health::Change>& changes) {
  for (const auto& change : changes) publish(change);
}

void Daemon::Impl::publish(const health::Change& change) {
  using Kind = health::ChangeKind;
  const auto& c = change.condition;
  const bool was_told = change.kind != Kind::Cleared || change.was_confirmed;
  const bool is_sure =
      change.kind != Kind::Raised && (change.kind != Kind::Updated || c.state == ConditionState::Confirmed);
  if (!is_sure) return;  // nobody is told yet
  // Kept first: whoever hears of it finds it in history.
  if (was_told) store.put(c);
  const std::string title = c.device_label + ": " + std::string(info(c.type).title);
  switch (change.kind) {
    case Kind::Confirmed:
      if (kernel) kernel->confirmed(c);
      event(c.severity, "condition.confirmed", c.device, title + ". " + c.detail);
      break;
    case Kind::Acknowledged:
      event(Severity::Info, "condition.acknowledged", c.device, title + ": acknowledged");
      break;
    case Kind::Cleared:
      bus.remove_condition(c.id);
      if (!was_told) return;
      event(Severity::Info, "condition.cleared", c.device, title + ": cleared");
      if (policies) policies->condition_cleared(c.id);
      return;
    case Kind::Raised:
    case Kind::Updated:
      break;
  }
  if (policies) policies->changed();
  bus.set_condition(c);
}

void Daemon::Impl::event(Severity severity, std::string type, const std::string& device, std::string text) {
  log_line(severity, text);
  happened(Event{clock.now().wall, std::move(type), severity, device, std::move(text), boot_id});
}

void Daemon::Impl::happened(Event event) {
  bus.tell(event);
  if (policies) policies->happened(event);
  store.add(std::move(event));
}

void Daemon::Impl::announce_ready() {
  const auto n = devices.size();
  const std::string status = "STATUS=watching " + std::to_string(n) + (n == 1 ? " GPU" : " GPUs");
  sd_notify(0, ready ? status.c_str() : ("READY=1\n" + status).c_str());
  ready = true;
}

void Daemon::Impl::on_store_health(const store::Health& h) {
  const auto before = std::exchange(manager.store_problem, h.working ? std::string() : h.problem);
  if (before == manager.store_problem) return;  // its size changed, or what was dropped
  log_line(
      h.working ? Severity::Info : Severity::Warning,
      h.working ? std::string("history is kept again") : "history is not kept: " + h.problem + "; going on without");
  bus.set_manager(manager);
}

void Daemon::Impl::on_store_open(const store::OpenReport& report) {
  if (!history_restored) restore_history();  // it could not be read at the start
  if (report.set_aside_as.empty()) return;
  event(Severity::Warning, "store.set-aside", {},
        "history was damaged (" + report.reason + ") and is set aside as " + report.set_aside_as);
}

Result<void> Daemon::Impl::acknowledge(const std::string& id) {
  const auto change = engine.acknowledge(id, clock.now());
  if (!change) return tl::unexpected(change.error());
  publish(*change);
  if (change->condition.type == ConditionType::GpuMissing) forget(change->condition.device);
  return {};
}

// Somebody took it out for good: it is no longer expected, now and at the next start. Its history stays.
void Daemon::Impl::forget(const std::string& device) {
  std::erase_if(remembered, [&](const health::RememberedDevice& d) { return d.id == device; });
  store.forget_device(device);
  take_inventory();
}

Result<void> Daemon::Impl::reload() {
  auto fresh = load_config(options.config_dir);
  if (!fresh) {
    manager.config_problem = fresh.error().text;
    log_line(Severity::Warning, "configuration not changed: " + fresh.error().text);
    bus.set_manager(manager);
    return tl::unexpected(fresh.error());
  }
  config = std::move(*fresh);
  manager.config_problem.clear();
  engine.set_thresholds(config.thresholds);
  bus.set_manager(manager);
  log_line(Severity::Info, "configuration read again");
  if (policies) (void)policies->reload();
  return {};
}

Daemon::Daemon(asio::io_context& io, const Clock& clock, Options options, Config config)
    : impl_(std::make_unique<Impl>(io, clock, std::move(options), std::move(config))) {}
Daemon::~Daemon() = default;

void Daemon::start() {
  impl_->start();
}

void Daemon::stopped() {
  if (impl_->kernel) impl_->kernel->stopped();
}

void Daemon::reload() {
  std::ignore = impl_->reload();
}

}  // namespace gpuhealth::daemon
