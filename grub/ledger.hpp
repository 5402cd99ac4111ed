// SPDX-License-Identifier: Apache-2.0
// What we change on a machine, written down before it is done: one file a change, with the prior state of every file
// that it will touch. A change that did not come to its end (crash, power cut) is undone at the next start.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.hpp"
#include "core/error.hpp"
#include "grub/system.hpp"
#include "grub/tree.hpp"

namespace gpuhealth::grub {

inline constexpr std::string_view kStateFolder = "/var/lib/gpuhealthd";
inline constexpr std::string_view kLedgerFolder = "/var/lib/gpuhealthd/ledger";

struct FileState {
  bool exists = false;
  std::string bytes;
  mode_t mode = 0644;
  friend bool operator==(const FileState& a, const FileState& b) {
    return a.exists == b.exists && (!a.exists || (a.bytes == b.bytes && a.mode == b.mode));
  }
};
Result<FileState> file_state(const Tree& tree, const std::string& path);

struct LedgerEntry {
  std::string id;       // "000012-kernel-pin"
  std::string action;   // "kernel-pin"
  std::string target;   // the release
  std::string state;    // "intended", "done", "undone", "failed-to-undo"
  std::string started;  // UTC
  std::string boot_id;
  std::string note;  // why it was undone
  std::map<std::string, FileState> prior;
};

// One at a time a tree: held as long as the object lives.
class Ledger {
 public:
  // Makes the folder where it is absent.
  static Result<Ledger> open(const Tree& tree, System& system);

  Result<LedgerEntry> begin(std::string action, std::string target, std::map<std::string, FileState> prior,
                            WallTime now, std::string boot_id);
  Result<void> close(LedgerEntry& entry, std::string state, std::string note = {});

 private:
  Ledger(const Tree& tree, System& system, Fd lock) : tree_(&tree), system_(&system), lock_(std::move(lock)) {}
  Result<void> write(const LedgerEntry& entry);

  const Tree* tree_;
  System* system_;
  Fd lock_;
};

// Oldest first; needs no lock. Damaged files are named in `notes`.
std::vector<LedgerEntry> read_ledger(const Tree& tree, std::vector<std::string>* notes = nullptr);

// Beside, synced, renamed, folder synced.
Result<void> put_file(const Tree& tree, System& system, const std::string& path, const FileState& state);

// Brings every file of an entry back to its prior state; what already has it is not touched. Goes on after a failure,
// and says the first one.
Result<void> undo(const Tree& tree, System& system, const LedgerEntry& entry);

}  // namespace gpuhealth::grub
