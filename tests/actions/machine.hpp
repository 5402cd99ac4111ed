// SPDX-License-Identifier: Apache-2.0
// A synthetic machine whose files act as the kernel's do, with every changing system call counted, logged, made to fail
// or to be the last one.
#pragma once

#include <cerrno>
#include <map>
#include <string>
#include <vector>

#include "actions/carry_out.hpp"
#include "sim/card.hpp"
#include "tests/support/temp_dir.hpp"

namespace gpuhealth::actions::test {

namespace fs = std::filesystem;

// What the driver does with a write, other than what it should.
struct Fault {
  int error = 0;           // refuses with this errno
  bool no_effect = false;  // takes it, and nothing happens
  std::string instead{};   // takes this value instead
  bool then_gone = false;  // takes it, and the card falls off the bus
  int only_call = 0;       // the n-th write to the file alone; 0: every one
};

class TestMachine;

class CountingSystem : public System {
 public:
  explicit CountingSystem(TestMachine& machine) : machine_(&machine) {}
  int calls = 0;
  int kill_at = 0;                      // this process is killed before the call with this number; 0: never
  int fail_at = 0;                      // the call with this number fails with EIO
  int room = -1;                        // for so many more files, then the disk is full; -1: for all
  std::vector<std::string> writes;      // to /sys: "PATH VALUE", "PATH@OFFSET VALUE", "PATH read"
  std::map<std::string, Fault> faults;  // by the end of the path

  Result<Fd> create(const Tree& t, const std::string& p, mode_t m) override;
  Result<Fd> open_to_write(const Tree& t, const std::string& p) override;
  Result<void> write_all(const Fd& fd, std::string_view b) override;
  Result<void> chmod(const Fd& fd, mode_t m) override;
  Result<void> sync_file(const Fd& fd) override;
  Result<void> sync_folder(const Tree& t, const std::string& p) override;
  Result<void> sync_file_system(const Tree& t, const std::string& p) override;
  Result<void> rename(const Tree& t, const std::string& a, const std::string& b) override;
  Result<void> remove(const Tree& t, const std::string& p) override;
  Result<void> make_folder(const Tree& t, const std::string& p, mode_t m) override;
  Result<void> write_value(const Tree& t, const std::string& p, std::string_view value) override;
  Result<void> write_at(const Tree& t, const std::string& p, std::uint64_t offset, std::string_view bytes) override;
  Result<std::string> read_that_acts(const Tree& t, const std::string& p) override;

 private:
  Result<void> next();
  std::optional<Result<void>> faulty(const std::string& path, const std::string& value);

  TestMachine* machine_;
  std::map<std::string, int> written_;  // how often, by path
};

class TestMachine {
 public:
  explicit TestMachine(std::vector<sim::Card> cards = {sim::idle_card(sim::rx7900xtx(), 0)});

  [[nodiscard]] const Machine& machine() const { return *machine_; }
  Machine& machine() { return *machine_; }
  [[nodiscard]] fs::path root() const { return dir_.path(); }
  [[nodiscard]] std::string read(const std::string& path) const;  // without the line end
  void write(const std::string& path, const std::string& text, int mode = 0644);
  [[nodiscard]] bool exists(const std::string& path) const;
  void program(const std::string& path, const std::string& script) { write(path, script, 0755); }

  // The files that a card's settings are in.
  [[nodiscard]] std::string device(unsigned card = 0) const;  // "/sys/bus/pci/devices/0000:03:00.0"
  [[nodiscard]] std::string cap(unsigned card = 0) const;     // ".../hwmon/hwmon2/power1_cap"
  [[nodiscard]] std::string port(unsigned card = 0) const;    // the slot's port
  [[nodiscard]] std::string pci(unsigned card = 0) const;

  Result<Outcome> run(ActionKind kind, std::map<std::string, std::string> params = {});
  Result<Outcome> run_by_rule(ActionKind kind, std::map<std::string, std::string> params = {});
  Result<Outcome> run(const Order& order) { return carry_out(*machine_, order); }
  [[nodiscard]] Order order(ActionKind kind, std::map<std::string, std::string> params = {}) const;
  [[nodiscard]] std::vector<LedgerEntry> ledger() const { return read_ledger(machine_->files); }
  [[nodiscard]] LedgerEntry last() const;

  // Another boot: the hardware has its own values again, /run is empty.
  void reboot(const std::string& boot_id);
  void later(std::chrono::seconds time) { machine_->outside.now += time; }

  // Everything but the ledger and notes of ours; "as it was, byte for byte".
  [[nodiscard]] std::map<std::string, std::string> files() const;

  // As the kernel: what a write to a file of /sys does.
  Result<void> react(const std::string& path, const std::string& value);
  Result<void> react_config(const std::string& path, std::uint64_t offset, std::string_view bytes);
  void lose_card(unsigned card = 0);

  CountingSystem system;
  std::vector<sim::Card> cards;
  std::vector<std::string> told;  // lines of the journal
  std::vector<std::string> inhibitors;
  std::vector<RebootWish> reboots;
  bool comes_back = true;  // after a rescan
  std::string pending_clock;

 private:
  gpuhealth::test::TempDir dir_;
  std::optional<Machine> machine_;
};

}  // namespace gpuhealth::actions::test
