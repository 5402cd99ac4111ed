// SPDX-License-Identifier: Apache-2.0
#include "daemon/policy_service.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <ranges>
#include <sstream>

#include "actions/interlocks.hpp"
#include "actions/request.hpp"
#include "daemon/act_unit.hpp"
#include "daemon/policy_impl.hpp"
#include "policy/bundle.hpp"

namespace gpuhealth::daemon {
namespace {

constexpr auto kQuiet = std::chrono::milliseconds(500);
constexpr auto kSafeModeEvery = std::chrono::minutes(5);
constexpr auto kSaveEvery = std::chrono::minutes(1);

std::string join(const std::string& root, std::string_view path) {
  return (root == "/" ? std::string() : root) + std::string(path);
}

std::string config_folder(const PolicyService::Options& options) {
  return options.config_dir.empty() ? join(options.root, "/etc/gpuhealthd") : options.config_dir;
}

bool uses(const policy::When& when, bool (*is)(const policy::When&)) {
  if (is(when)) return true;
  const auto* group = std::get_if<policy::Group>(&when.what);
  return group != nullptr &&
         std::ranges::any_of(group->parts, [&](const policy::When& part) { return uses(part, is); });
}

bool is_advisory(const policy::When& when) {
  return std::holds_alternative<policy::AdvisoryMatch>(when.what);
}

}  // namespace

actions::ActionService::Handlers PolicyService::Impl::handlers(Impl& self) {
  actions::ActionService::Handlers out;
  out.act = [&self](std::vector<std::string> words, std::string input, Duration deadline,
                    actions::ActionService::Ended ended) {
    words.insert(words.end(), {"--root", self.options.root});
    words.insert(words.end(), {"--sysroot", self.options.sysroot.empty() ? "/" : self.options.sysroot});
    if (self.options.speed != 1) words.insert(words.end(), {"--now", utc_text(self.clock.now().wall)});
    self.runner.run(std::move(words), std::move(input), deadline,
                    [&self, then = std::move(ended)](int code, std::string said) {
                      then(code, std::move(said));
                      self.folders.watch(self.watched());  // the ledger may have come to be
                      self.look_at_safe_mode();
                    });
  };
  out.run_canary = [&self](const ActionRequest& request) { self.on.run_canary(request); };
  out.changed = [&self](const actions::ActionRecord& record) { self.record_changed(record); };
  out.log = [&self](Severity severity, const std::string& text) { self.on.log(severity, text); };
  out.ledger = [&self]() -> std::vector<LedgerEntry> {
    const auto files = Tree::open(self.options.root);
    return files ? read_ledger(*files) : std::vector<LedgerEntry>();
  };
  return out;
}

PolicyService::Impl::Impl(boost::asio::io_context& context, const Clock& c, Options o, Handlers h)
    : io(context),
      clock(c),
      options(std::move(o)),
      on(std::move(h)),
      runner(context, {options.act, why_no_units().empty()}),
      actions(clock, handlers(*this)),
      folders(context,
              std::max(std::chrono::milliseconds(20),
                       std::chrono::milliseconds(std::llround(static_cast<double>(kQuiet.count()) / options.speed))),
              [this] { folders_changed(); }),
      store(options.root, options.config_dir),
      started(clock.now().wall) {}

void PolicyService::Impl::start() {
  load_state();
  look_at_safe_mode();
  (void)reload();
  actions.start();
  look_into_inbox();
}

void PolicyService::Impl::load_state() {
  std::ifstream file(options.state_file, std::ios::binary);
  if (!file) return;
  std::stringstream text;
  text << file.rdbuf();
  auto loaded = policy::load_state(text.str());
  if (loaded) {
    state = std::move(*loaded);
    return;
  }
  const std::string aside = options.state_file + ".damaged";
  std::rename(options.state_file.c_str(), aside.c_str());
  on.event(Severity::Warning, "policy.state-lost", "",
           loaded.error().text + "; it is set aside as " + aside + ", and budgets begin anew");
}

// Before anything is done the budget that it costs is on the disk; else now and then is enough.
void PolicyService::Impl::save_state(bool durable) {
  const SteadyTime now = clock.now().steady;
  if (!durable && now - saved_at < kSaveEvery) return;
  saved_at = now;
  const std::string beside = options.state_file + ".new";
  const std::string text = policy::save(state);
  const Fd file(open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0640));
  bool done = file && write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (done && durable) done = fdatasync(file.get()) == 0;
  if (done) done = std::rename(beside.c_str(), options.state_file.c_str()) == 0;
  if (done) return;
  unlink(beside.c_str());
  on.log(Severity::Warning, "what policies remember cannot be kept in " + options.state_file);
}

void PolicyService::Impl::read_machine() {
  std::vector<std::string> notes;
  facts = policy::read_facts(options.root, notes, options.config_dir);
  facts.boot_id = options.boot_id;
  if (!options.kernel.empty()) facts.kernel = options.kernel;
  if (notes != notes_said)
    for (const auto& note : notes) on.log(Severity::Warning, note);
  notes_said = std::move(notes);
}

Result<void> PolicyService::Impl::reload() {
  read_machine();
  look_at_bundle();
  files_seen = fingerprint();
  const std::string before = store.problem();
  const bool sound = store.reload(facts, clock.now().wall);
  folders.watch(watched());
  if (sound) {
    sound_bundle = bundle;
    const auto all = store.set().policies | std::views::transform(&policy::Policy::rules) | std::views::join;
    const auto any = [&](auto what) { return std::ranges::any_of(all, what); };
    wants_battery = any([](const policy::Rule& rule) { return rule.unless.battery; });
    wants_advisories = any([](const policy::Rule& rule) { return uses(rule.when, is_advisory); });
    advisories_are_old = true;
    if (const auto wanted = policy::longest_window(store.set()); wanted > window) {
      window = wanted;
      on.want_events(clock.now().wall - window);
    }
    on.log(Severity::Info, "policies read: " + std::to_string(store.set().policies.size()));
    if (!before.empty()) on.event(Severity::Info, "policy.loaded", "", "the policies are sound again and in force");
  } else if (store.problem() != before) {
    on.event(Severity::Warning, "policy.problem", "",
             "policies not changed, the last good ones stay in force: " + store.problem());
  }
  tell_standing();
  if (!sound && is_new_bundle() && bundle != sound_bundle &&
      store.problem().find(join(options.root, policy::kBundleFolder) + "/current/") != std::string::npos)
    roll_back("it does not load: " + store.problem());
  look_soon();
  if (sound) return {};
  return fail(ErrorCode::InvalidInput, store.problem());
}

// What is read once, of all folders: names, sizes, times.
std::string PolicyService::Impl::fingerprint() const {
  std::string out;
  const auto note = [&](const std::string& path) {
    struct stat info{};
    if (stat(path.c_str(), &info) != 0) return;
    out += path + " " + std::to_string(info.st_ino) + " " + std::to_string(info.st_size) + " " +
           std::to_string(info.st_mtim.tv_sec) + "." + std::to_string(info.st_mtim.tv_nsec) + "\n";
  };
  note(config_folder(options) + "/labels");
  for (const auto& layer : policy::all_layers()) {
    const std::string folder =
        layer.name == "admin" ? config_folder(options) + "/policy.d" : join(options.root, layer.path);
    note(folder);
    const auto tree = Tree::open(folder);
    if (!tree) continue;
    for (const auto& name : tree->list("/")) note(folder + "/" + name);
  }
  return out;
}

std::vector<std::string> PolicyService::Impl::watched() const {
  std::vector<std::string> out = {config_folder(options),
                                  config_folder(options) + "/policy.d",
                                  join(options.root, "/run/gpuhealthd"),
                                  join(options.root, kLedgerFolder),
                                  join(options.root, policy::kBundleFolder),
                                  join(options.root, policy::kBundleFolder) + "/inbox"};
  for (const auto& layer : policy::all_layers())
    if (layer.name != "admin") out.push_back(join(options.root, layer.path));
  return out;
}

void PolicyService::Impl::folders_changed() {
  look_at_safe_mode();
  actions.look_at_ledger();
  if (fingerprint() != files_seen) {
    (void)reload();
  } else {
    folders.watch(watched());
  }
  look_into_inbox();
}

void PolicyService::Impl::look_at_safe_mode() {
  safe_mode_at = clock.now().steady;
  std::string why;
  auto files = Tree::open(options.root);
  auto hardware = Tree::open(options.sysroot.empty() ? "/" : options.sysroot);
  if (files && hardware) {
    for (const auto& reason : actions::safe_mode({std::move(*files), std::move(*hardware), {}}))
      why += (why.empty() ? "" : "; ") + reason;
  }
  if (const std::string file = config_folder(options) + "/observe";
      !options.config_dir.empty() && access(file.c_str(), F_OK) == 0)
    why += (why.empty() ? "" : "; ") + file + " is there";
  if (why == safe_mode) return;
  const bool over = why.empty();
  on.event(over ? Severity::Info : Severity::Warning, "policy.safe-mode", "",
           over ? "safe mode is over: rules that enforce act again" : "safe mode, nothing is changed: " + why);
  safe_mode = std::move(why);
  tell_standing();
  look_soon();
}

void PolicyService::Impl::tell_standing() {
  Standing now;
  policy::Mode highest = policy::Mode::Observe;
  for (const auto& policy : store.set().policies) {
    if (!policy::machine_matches(policy.targets, facts)) continue;
    for (const auto& rule : policy.rules) highest = std::max(highest, rule.mode.value_or(policy.mode));
  }
  now.mode = to_string(highest);
  now.safe_mode = safe_mode;
  now.problem = store.problem();
  now.breaker_open = state.breaker.has_value();
  for (const auto& file : store.files())
    if (file.state == policy::PolicyFile::State::InForce) now.files.push_back(file.path);
  told = now;
  on.standing(told);
}

// --- the outside -----------------------------------------------------------------------------------------------------

PolicyService::PolicyService(boost::asio::io_context& io, const Clock& clock, Options options, Handlers handlers)
    : impl_(std::make_unique<Impl>(io, clock, std::move(options), std::move(handlers))) {}
PolicyService::~PolicyService() {
  impl_->save_state(true);
}

void PolicyService::start() {
  impl_->start();
}
Result<void> PolicyService::reload() {
  impl_->look_at_safe_mode();
  return impl_->reload();
}
void PolicyService::look() {
  const SteadyTime now = impl_->clock.now().steady;
  if (now - impl_->safe_mode_at >= kSafeModeEvery) impl_->look_at_safe_mode();
  impl_->actions.tick();
  impl_->devices_known = true;
  impl_->look();
}
void PolicyService::advisories_changed() {
  impl_->advisories_are_old = true;
  impl_->look_soon();
}
void PolicyService::devices_changed() {
  impl_->advisories_are_old = true;
  for (const auto& record : impl_->actions.records()) impl_->record_changed(record);  // their names are known now
  impl_->look_soon();
}
void PolicyService::changed() {
  impl_->look_soon();
}
void PolicyService::condition_cleared(const std::string& condition) {
  impl_->actions.condition_cleared(condition);
  impl_->look_soon();
}
void PolicyService::canary_passed(const std::string& device) {
  impl_->actions.canary_passed(device);
}
void PolicyService::device_came_back(const std::string& device) {
  impl_->actions.device_came_back(device);
}
void PolicyService::confirm(const std::string& id, std::function<void(Result<void>)> then) {
  impl_->actions.confirm(id, std::move(then));
}
void PolicyService::revert(const std::string& id, std::function<void(Result<void>)> then) {
  impl_->actions.revert(id, std::move(then));
}

void PolicyService::reset_breaker(std::function<void(Result<void>)> then) {
  if (impl_->state.breaker) {
    policy::reset_breaker(impl_->state);
    impl_->save_state(true);
    impl_->on.event(Severity::Info, "policy.breaker", "", "the breaker was closed by a person");
    impl_->tell_standing();
    impl_->look_soon();
  }
  // A safe mode that we fell into ourselves is written down; only gpuhealth-act writes there.
  const auto files = Tree::open(impl_->options.root);
  if (files && files->is_file(actions::kSafeModeFile)) return impl_->actions.leave_safe_mode(std::move(then));
  then({});
}

}  // namespace gpuhealth::daemon
