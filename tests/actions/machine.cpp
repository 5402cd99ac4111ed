// SPDX-License-Identifier: Apache-2.0
#include "machine.hpp"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "actions/pci_config.hpp"
#include "grub/operations.hpp"
#include "sim/tree.hpp"

namespace gpuhealth::actions::test {
namespace {

constexpr unsigned kExpress = 0x64;  // where sim/pci_files.cpp puts the capability

std::string hex(std::string_view bytes) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (const char c : bytes) {
    out += kDigits[static_cast<unsigned char>(c) >> 4U];
    out += kDigits[static_cast<unsigned char>(c) & 15U];
  }
  return out;
}

}  // namespace

Result<void> CountingSystem::next() {
  ++calls;
  if (calls == kill_at) ::kill(::getpid(), SIGKILL);
  if (calls == fail_at) return fail_errno("call " + std::to_string(calls), EIO);
  return {};
}

Result<Fd> CountingSystem::create(const Tree& t, const std::string& p, mode_t m) {
  if (auto f = next(); !f) return tl::unexpected<Error>(f.error());
  return System::create(t, p, m);
}
Result<Fd> CountingSystem::open_to_write(const Tree& t, const std::string& p) {
  if (auto f = next(); !f) return tl::unexpected<Error>(f.error());
  return System::open_to_write(t, p);
}
Result<void> CountingSystem::write_all(const Fd& fd, std::string_view b) {
  if (room == 0) return fail_errno("cannot write", ENOSPC);
  if (room > 0) --room;
  if (calls + 1 == kill_at) (void)System::write_all(fd, b.substr(0, b.size() / 2));  // a part of it gets there
  auto f = next();
  return f ? System::write_all(fd, b) : f;
}
Result<void> CountingSystem::chmod(const Fd& fd, mode_t m) {
  auto f = next();
  return f ? System::chmod(fd, m) : f;
}
// Counted, not done: hundreds of real ones would take minutes.
Result<void> CountingSystem::sync_file(const Fd& /*fd*/) {
  return next();
}
Result<void> CountingSystem::sync_folder(const Tree& /*t*/, const std::string& /*p*/) {
  return next();
}
Result<void> CountingSystem::sync_file_system(const Tree& /*t*/, const std::string& /*p*/) {
  return next();
}
Result<void> CountingSystem::rename(const Tree& t, const std::string& a, const std::string& b) {
  auto f = next();
  return f ? System::rename(t, a, b) : f;
}
Result<void> CountingSystem::remove(const Tree& t, const std::string& p) {
  auto f = next();
  return f ? System::remove(t, p) : f;
}
Result<void> CountingSystem::make_folder(const Tree& t, const std::string& p, mode_t m) {
  auto f = next();
  return f ? System::make_folder(t, p, m) : f;
}

std::optional<Result<void>> CountingSystem::faulty(const std::string& path, const std::string& value) {
  const int count = ++written_[path];
  for (const auto& [end, fault] : faults) {
    if (!path.ends_with(end) || (fault.only_call != 0 && fault.only_call != count)) continue;
    if (fault.error != 0) return fail_errno("cannot write " + path, fault.error);
    if (fault.no_effect) return Result<void>();
    if (fault.then_gone && path.ends_with("/config")) {
      machine_->lose_card();
      return Result<void>();
    }
    if (!fault.instead.empty()) return machine_->react(path, fault.instead);
    if (fault.then_gone) {
      auto done = machine_->react(path, value);
      machine_->lose_card();
      return done;
    }
  }
  return std::nullopt;
}

Result<void> CountingSystem::write_value(const Tree& t, const std::string& p, std::string_view value) {
  if (auto f = next(); !f) return f;
  writes.push_back(p + " " + std::string(value));
  if (!t.stat(p)) return fail_errno("cannot open " + p, ENOENT);
  if (auto fault = faulty(p, std::string(value))) return *fault;
  return machine_->react(p, std::string(value));
}
Result<void> CountingSystem::write_at(const Tree& /*t*/, const std::string& p, std::uint64_t offset,
                                      std::string_view bytes) {
  if (auto f = next(); !f) return f;
  writes.push_back(p + "@" + std::to_string(offset) + " " + hex(bytes));
  if (auto fault = faulty(p, std::string(bytes))) return *fault;
  return machine_->react_config(p, offset, bytes);
}
Result<std::string> CountingSystem::read_that_acts(const Tree& t, const std::string& p) {
  if (auto f = next(); !f) return tl::unexpected<Error>(f.error());
  writes.push_back(p + " read");
  return System::read_that_acts(t, p);
}

TestMachine::TestMachine(std::vector<sim::Card> all) : system(*this), cards(std::move(all)) {
  if (auto made = sim::write_machine(dir_.path(), cards, {.boot_id = "boot-1", .dkms_version = ""}); !made)
    throw std::runtime_error(made.error().text);
  for (const char* folder : {"etc/gpuhealthd/hooks.d", "etc/modprobe.d", "var/lib", "run", "usr/bin", "usr/sbin"})
    fs::create_directories(dir_.path() / folder);
  auto files = Tree::open(dir_.string());
  auto hardware = Tree::open(dir_.string());
  Outside outside;
  outside.system = &system;
  outside.run = run_program;
  outside.inhibitors = [this]() -> Result<std::vector<std::string>> { return inhibitors; };
  outside.reboot = [this](const RebootWish& wish) -> Result<void> {
    reboots.push_back(wish);
    return {};
  };
  outside.journal = [this](int priority, const std::string& text, const auto&) -> Result<void> {
    told.push_back(std::to_string(priority) + " " + text);
    return {};
  };
  outside.pause = [](std::chrono::milliseconds) {};
  outside.kernel = [this] {
    grub::Surroundings out;
    out.system = &system;
    return out;
  };
  outside.now = wall_from_microseconds(1'796'000'000'000'000);  // 2026-11-30T00:53:20Z
  outside.boot_id = "boot-1";
  outside.host = "node7";
  machine_.emplace(Machine{std::move(*files), std::move(*hardware), std::move(outside)});
}

std::string TestMachine::read(const std::string& path) const {
  std::ifstream file(root().string() + path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  while (text.ends_with('\n')) text.pop_back();
  return text;
}
void TestMachine::write(const std::string& path, const std::string& text, int mode) {
  const std::string place = root().string() + path;
  fs::create_directories(fs::path(place).parent_path());
  std::ofstream(place, std::ios::binary | std::ios::trunc) << text;
  ::chmod(place.c_str(), static_cast<mode_t>(mode));
}
bool TestMachine::exists(const std::string& path) const {
  return fs::exists(root().string() + path);
}

std::string TestMachine::pci(unsigned card) const {
  return to_string(cards.at(card).place.gpu);
}
std::string TestMachine::device(unsigned card) const {
  return "/sys/bus/pci/devices/" + pci(card);
}
std::string TestMachine::cap(unsigned card) const {
  return device(card) + "/hwmon/hwmon" + std::to_string(card + 2) + "/power1_cap";
}
std::string TestMachine::port(unsigned card) const {
  return "/sys/devices/pci0000:00/" + to_string(cards.at(card).place.root_port);
}

Order TestMachine::order(ActionKind kind, std::map<std::string, std::string> params) const {
  Order out;
  out.request.kind = kind;
  out.request.params = std::move(params);
  out.request.device = pci();
  return out;
}
Result<Outcome> TestMachine::run(ActionKind kind, std::map<std::string, std::string> params) {
  return carry_out(*machine_, order(kind, std::move(params)));
}
Result<Outcome> TestMachine::run_by_rule(ActionKind kind, std::map<std::string, std::string> params) {
  Order wanted = order(kind, std::move(params));
  wanted.request.policy = "lab";
  wanted.request.rule = "cool-it";
  wanted.request.condition = "thermal-throttling-uid-5ee0000000000001-1764515000";
  wanted.request.reason = "junction at 110 C";
  return carry_out(*machine_, wanted);
}

LedgerEntry TestMachine::last() const {
  auto all = ledger();
  return all.empty() ? LedgerEntry{} : all.back();
}

void TestMachine::reboot(const std::string& boot_id) {
  if (auto made = sim::write_machine(dir_.path(), cards, {.boot_id = boot_id, .dkms_version = ""}); !made)
    throw std::runtime_error(made.error().text);
  fs::remove_all(dir_.path() / "run");
  fs::create_directories(dir_.path() / "run");
  machine_->outside.boot_id = boot_id;
}

std::map<std::string, std::string> TestMachine::files() const {
  std::map<std::string, std::string> out;
  for (const auto& item : fs::recursive_directory_iterator(root())) {
    const std::string path = item.path().string().substr(root().string().size());
    if (item.is_symlink() || !item.is_regular_file() || path.starts_with("/var/lib/gpuhealthd")) continue;
    out[path] = read(path);
  }
  return out;
}

void TestMachine::lose_card(unsigned card) {
  (void)sim::remove_card(dir_.path(), cards.at(card).place.gpu);
}

Result<void> TestMachine::react(const std::string& path, const std::string& value) {
  const auto ends = [&](std::string_view end) { return path.ends_with(end); };
  const auto refuse = [&](int error) -> Result<void> { return fail_errno("cannot write " + path, error); };
  const std::string folder = path.substr(0, path.rfind('/'));
  if (ends("_cap")) {
    const auto wanted = number_of(value);
    const auto low = number_of(read(path + "_min")).value_or(0);
    const auto high = number_of(read(path + "_max"));
    if (!wanted || *wanted < low || (high && *wanted > *high)) return refuse(EINVAL);
    write(path, std::to_string(*wanted / 1'000'000 * 1'000'000) + "\n");
    return {};
  }
  if (ends("pp_power_profile_mode")) {
    if (read(folder + "/power_dpm_force_performance_level") != "manual") return refuse(EINVAL);
    std::string table = read(path) + "\n";
    std::ranges::replace(table, '*', ' ');
    const auto at = table.find("\n " + value + " ");
    if (at == std::string::npos) return refuse(EINVAL);
    table.insert(table.find(':', at), "*");
    write(path, table);
    return {};
  }
  if (ends("pp_od_clk_voltage")) {
    if (value != "c") {
      pending_clock = value;
      return {};
    }
    const std::string mhz = pending_clock.substr(pending_clock.rfind(' ') + 1);
    write(path,
          "OD_SCLK:\n0: 500Mhz\n1: " + mhz + "Mhz\nOD_MCLK:\n1: 1249MHz\nOD_RANGE:\nSCLK:     500Mhz       3000Mhz\n");
    return {};
  }
  if (ends("cur_state")) {
    write(path, value + "\n");
    const auto target =
        static_cast<char>(cards.front().model.link_max.speed_gts > 20 ? 5 - std::stoi(value) : 4 - std::stoi(value));
    (void)react_config(port() + "/config", kExpress + kLinkControl2, std::string{target, '\0'});
    return react_config(port() + "/config", kExpress + kLinkControl, std::string{' ', '\0'});
  }
  if (ends("/remove")) {
    lose_card();
    return {};
  }
  if (ends("/rescan")) {
    if (comes_back && !fs::exists(root().string() + device())) (void)sim::add_card(dir_.path(), cards.front());
    return {};
  }
  write(path, value + "\n");
  return {};
}

Result<void> TestMachine::react_config(const std::string& path, std::uint64_t offset, std::string_view bytes) {
  const auto poke = [&](const std::string& file, std::uint64_t at, std::string_view what) {
    std::fstream stream(root().string() + file, std::ios::binary | std::ios::in | std::ios::out);
    stream.seekp(static_cast<std::streamoff>(at));
    stream.write(what.data(), static_cast<std::streamsize>(what.size()));
  };
  const auto peek = [&](const std::string& file, std::size_t at) {
    std::ifstream stream(root().string() + file, std::ios::binary);
    stream.seekg(static_cast<std::streamoff>(at));
    return static_cast<unsigned char>(stream.get());
  };
  const bool retrain = offset == kExpress + kLinkControl && (static_cast<unsigned char>(bytes[0]) & kRetrainLink) != 0;
  if (!retrain) {
    poke(path, offset, bytes);
    return {};
  }
  // The link comes up at the target, or at what the card can do.
  const unsigned speed = std::min<unsigned>(peek(path, kExpress + kLinkControl2) & 0xfU,
                                            cards.front().model.link_max.speed_gts > 20 ? 5 : 4);
  const unsigned status = peek(path, kExpress + kLinkStatus);
  poke(path, kExpress + kLinkStatus, std::string{static_cast<char>((status & 0xf0U) | speed)});
  return {};
}

}  // namespace gpuhealth::actions::test
