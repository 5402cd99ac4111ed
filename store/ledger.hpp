// SPDX-License-Identifier: Apache-2.0
// What we change on a machine, written down before it is done: one file a change, with the prior state of everything
// that it will touch. A change that did not come to its end (crash, power cut) is resolved at the next start. One
// folder and one lock for all that change something: boot menu, hardware, services.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/clock.hpp"
#include "core/error.hpp"
#include "core/fd.hpp"
#include "core/system.hpp"
#include "core/tree.hpp"

namespace gpuhealth {

inline constexpr std::string_view kStateFolder = "/var/lib/gpuhealthd";
inline constexpr std::string_view kLedgerFolder = "/var/lib/gpuhealthd/ledger";
// 1 had files alone, and no number; it is read as well. What a newer version wrote is not touched.
inline constexpr int kLedgerFormat = 2;

struct FileState {
  bool exists = false;
  std::string bytes;
  mode_t mode = 0644;
  friend bool operator==(const FileState& a, const FileState& b) {
    return a.exists == b.exists && (!a.exists || (a.bytes == b.bytes && a.mode == b.mode));
  }
};
Result<FileState> file_state(const Tree& tree, const std::string& path);

// One write that is no file's content: a value of /sys, bits of PCI configuration space, a program. What each kind does
// is in actions/steps.def.
struct LedgerStep {
  std::string kind;
  std::string path;
  unsigned offset = 0;  // into configuration space
  unsigned mask = 0;
  std::string value;  // what is written
  friend bool operator==(const LedgerStep&, const LedgerStep&) = default;
};

struct LedgerEntry {
  int format = kLedgerFormat;
  std::string id;       // "000012-kernel-pin"
  std::string owner;    // who resolves it: "kernel" (grub/) or "actions"
  std::string action;   // "kernel-pin"
  std::string target;   // a kernel's release; a device's PCI address
  std::string state;    // of kernel changes "intended", "done", "undone", "failed-to-undo"; else actions/states.def
  std::string started;  // UTC
  std::string boot_id;
  std::string note;                        // why it ended as it did
  std::map<std::string, FileState> prior;  // files

  // Of owner "actions".
  std::string device;                         // DeviceInfo::id(); empty: the machine
  std::map<std::string, std::string> params;  // as they were asked for
  std::string policy, rule, condition, reason;
  std::vector<LedgerStep> steps;             // in the order in which they are done
  std::vector<LedgerStep> back;              // these bring back what was there
  std::map<std::string, std::string> facts;  // what the actuator has to know later
  std::string before, wanted, after;         // what is changed, in one word each: "303 W", "250 W", "250 W"
  bool lasting = false;                      // outlives a reboot
  std::string confirm_by;                    // UTC; empty: no time is set
  std::map<std::string, std::string> times;  // "applied", "confirmed", …, also "fault", "detected" and "verified"
  std::vector<std::string> warnings;
};

// One at a time a tree: held as long as the object lives.
class Ledger {
 public:
  // Makes the folder where it is absent.
  static Result<Ledger> open(const Tree& tree, System& system);

  // Gives it an id, writes it down; only then may the change be made.
  Result<LedgerEntry> begin(LedgerEntry entry, WallTime now);
  Result<void> close(LedgerEntry& entry, std::string state, std::string note = {});
  Result<void> save(const LedgerEntry& entry);

 private:
  Ledger(const Tree& tree, System& system, Fd lock) : tree_(&tree), system_(&system), lock_(std::move(lock)) {}

  const Tree* tree_;
  System* system_;
  Fd lock_;
};

// Oldest first; needs no lock. Damaged files are named in `notes`.
std::vector<LedgerEntry> read_ledger(const Tree& tree, std::vector<std::string>* notes = nullptr);

std::string utc_text(WallTime time);                        // "2026-11-30T14:02:07Z"
std::optional<WallTime> utc_from(const std::string& text);  // of the same

// Beside, synced, renamed, folder synced.
Result<void> put_file(const Tree& tree, System& system, const std::string& path, const FileState& state);
// Makes what is absent of /var/lib/gpuhealthd and the folder `name` in it.
Result<void> make_state_folder(const Tree& tree, System& system, std::string_view name);

// Brings every file of an entry back to its prior state; what already has it is not touched. Goes on after a failure,
// and says the first one.
Result<void> undo(const Tree& tree, System& system, const LedgerEntry& entry);

}  // namespace gpuhealth
