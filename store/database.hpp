// SPDX-License-Identifier: Apache-2.0
// History in SQLite: samples thinned with age, events, conditions, devices seen. Used from one thread (see worker.hpp).
// Losing history is allowed and said; blocking or crashing because of it is not. The action ledger is not here.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/clock.hpp"
#include "core/condition.hpp"
#include "core/device.hpp"
#include "core/error.hpp"
#include "core/event.hpp"
#include "core/reading.hpp"
#include "core/sample.hpp"

namespace gpuhealth::store {

struct Options {
  std::string path;                             // "/var/lib/gpuhealthd/history.db"; ":memory:" in tests
  std::uint64_t size_cap_bytes = 256ull << 20;  // near it old detail goes first, then what is oldest: docs/history.md
  Duration fine_for = std::chrono::hours(24 * 7);      // how long minute buckets are kept
  Duration medium_for = std::chrono::hours(24 * 60);   // quarter-hour buckets
  Duration coarse_for = std::chrono::hours(24 * 730);  // six-hour buckets
  Duration events_for = std::chrono::hours(24 * 730);
};

struct HistoryPoint {
  WallTime time;  // start of the bucket
  double min = 0;
  double mean = 0;
  double max = 0;
};

struct HistoryQuery {
  std::string device;  // DeviceInfo::id()
  ReadingId reading{};
  WallTime since;
  WallTime until;
  std::uint32_t max_points = 512;  // neighbouring buckets are merged to stay below
};

struct KnownDevice {
  std::string id;
  std::string label;  // "Radeon RX 7900 XTX at 0000:03:00.0"
  std::string pci;
  std::string last_boot_id;
  WallTime first_seen;
  WallTime last_seen;
};

// What open() had to do to get a usable database; shown to people and kept as an event.
struct OpenReport {
  bool created = false;
  std::string set_aside_as;  // the damaged file's new name; empty when it was sound
  std::string reason;        // why it was set aside
};

class Interrupt;  // store/sqlite.hpp

class Database {
 public:
  // Creates, migrates, or sets a damaged file aside ("history.db.damaged-1") and starts anew.
  // A database made by a newer version is left alone and is an error. Reads the whole file to check it: `interrupt`
  // ends that from another thread.
  static Result<Database> open(const Options& options, OpenReport& report, Interrupt* interrupt = nullptr);
  // Sets the file of a database that turned out to be damaged aside, and starts anew with what it held in memory.
  static Result<Database> replace(Database damaged, const std::string& reason, OpenReport& report);

  Database(Database&&) noexcept;
  Database& operator=(Database&&) noexcept;
  ~Database();

  // Adds valid readings of Keep::History to their minute bucket. Buckets are written when they are complete, so that a
  // sample costs no disk access; flush() writes those begun (at shutdown). The sample itself is taken in any case: an
  // error says that complete buckets could not be written; they are kept (a quarter of an hour at most) for the next
  // add.
  Result<void> add(const Sample& sample);
  Result<void> flush();

  Result<void> add(const Event& event);
  // Newest first, both ends included.
  Result<std::vector<Event>> events(WallTime since, WallTime until, std::uint32_t limit) const;

  Result<void> put(const Condition& condition);  // inserts or replaces by id
  Result<std::vector<Condition>> open_conditions() const;
  // Newest first, cleared ones too: all that are open, or were seen at or after `since`.
  Result<std::vector<Condition>> conditions(WallTime since, std::uint32_t limit) const;

  Result<void> seen(const DeviceInfo& device, const std::string& label, const std::string& boot_id, WallTime now);
  Result<std::vector<KnownDevice>> known_devices() const;
  // A person says that it was taken out for good. Its history stays until it has aged.
  Result<void> forget_device(const std::string& id);

  // Every bucket that overlaps the range, in the resolution that exists there, times ascending; the first may begin
  // before `since`. The unfinished minute is included.
  Result<std::vector<HistoryPoint>> history(const HistoryQuery& query) const;

  // Thins what has aged, enforces the size cap. Bounded work a call; call it again while it returns true. After a leap
  // of the clock, ageing follows it by two days a complete pass: a wrong clock must not cost the history.
  Result<bool> maintain(WallTime now);
  [[nodiscard]] std::uint64_t size_bytes() const;  // on disk, write-ahead log included
  [[nodiscard]] bool damaged() const;              // a call met damage: see replace()
  [[nodiscard]] std::uint64_t dropped() const;     // samples lost in this object since it was opened

 private:
  struct Impl;
  explicit Database(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace gpuhealth::store
