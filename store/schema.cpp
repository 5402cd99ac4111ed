// SPDX-License-Identifier: Apache-2.0
#include "store/schema.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

namespace gpuhealth::store {
namespace {

// Step i leads from version i to i + 1. Released steps are never edited: a new version is a new row.
constexpr std::array kSteps = std::to_array<const char*>({
    // bucket: level 0 = minutes, 1 = quarter-hours, 2 = six hours; start in minutes since 1970. The key keeps a
    // device's
    // readings of one minute on one page: a minute is written by touching a page a device, and the history of one
    // reading reads past the other readings of its own device only. Sums, not means: they add up exactly. What the
    // CHECKs
    // refuse only damage can write; quick_check finds it.
    R"(CREATE TABLE history_device(number INTEGER PRIMARY KEY, device TEXT NOT NULL UNIQUE) STRICT;
       CREATE TABLE bucket(level INTEGER NOT NULL, device INTEGER NOT NULL,
         start INTEGER NOT NULL CHECK(start BETWEEN -200000000000 AND 200000000000),
         reading INTEGER NOT NULL, min REAL NOT NULL, max REAL NOT NULL, sum REAL NOT NULL CHECK(abs(sum) < 1e250),
         count INTEGER NOT NULL CHECK(count BETWEEN 1 AND 1000000000000),
         PRIMARY KEY(level, device, start, reading)) STRICT, WITHOUT ROWID;
       CREATE TABLE event(number INTEGER PRIMARY KEY, time INTEGER NOT NULL, type TEXT NOT NULL, severity TEXT NOT NULL,
         device TEXT NOT NULL, text TEXT NOT NULL, boot_id TEXT NOT NULL) STRICT;
       CREATE INDEX event_time ON event(time);
       CREATE TABLE condition(id TEXT PRIMARY KEY NOT NULL, type TEXT NOT NULL, severity TEXT NOT NULL,
         state TEXT NOT NULL, acknowledged INTEGER NOT NULL, device TEXT NOT NULL, device_label TEXT NOT NULL,
         since INTEGER NOT NULL, last_seen INTEGER NOT NULL, cleared INTEGER NOT NULL, boot_id TEXT NOT NULL,
         detail TEXT NOT NULL) STRICT, WITHOUT ROWID;
       CREATE INDEX condition_since ON condition(since);
       CREATE TABLE evidence(condition TEXT NOT NULL REFERENCES condition(id) ON DELETE CASCADE,
         position INTEGER NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL,
         PRIMARY KEY(condition, position)) STRICT, WITHOUT ROWID;
       CREATE TABLE device(id TEXT PRIMARY KEY NOT NULL, label TEXT NOT NULL, pci TEXT NOT NULL,
         last_boot_id TEXT NOT NULL, first_seen INTEGER NOT NULL, last_seen INTEGER NOT NULL) STRICT, WITHOUT ROWID;
       CREATE TABLE upkeep(only INTEGER PRIMARY KEY CHECK(only = 0), aged_to INTEGER NOT NULL) STRICT;)",
});

Result<void> step(Connection& connection, std::size_t from) {
  Transaction transaction(connection);
  if (!transaction.begun()) return transaction.begun();
  const auto stamp = "PRAGMA user_version = " + std::to_string(from + 1);
  if (auto done = connection.exec(kSteps.at(from)); !done) return done;
  if (auto done = connection.exec(stamp.c_str()); !done) return done;
  if (auto done = connection.exec(("PRAGMA application_id = " + std::to_string(kApplicationId)).c_str()); !done)
    return done;
  return transaction.commit();
}

Result<std::vector<std::string>> description(Connection& connection) {
  std::vector<std::string> lines;
  Statement rows(connection, "SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%'");
  while (rows.row()) lines.push_back(rows.text(0) + " " + rows.text(1) + " " + rows.text(2));
  if (rows.failed()) return rows.error();
  std::ranges::sort(lines);
  return lines;
}

Result<void> steps_from(Connection& connection, std::size_t version) {
  for (; version < kSteps.size(); ++version) {
    if (auto done = step(connection, version); !done) return done;
  }
  return {};
}

// A flipped bit in a table's definition is no error to SQLite, only another table.
Result<void> check_tables(Connection& connection) {
  auto reference = Connection::open(":memory:", nullptr);
  if (!reference) return tl::unexpected<Error>(reference.error());
  if (auto made = steps_from(*reference, 0); !made) return made;
  const auto expected = description(*reference);
  if (!expected) return tl::unexpected<Error>(expected.error());
  const auto found = description(connection);
  if (!found) return tl::unexpected<Error>(found.error());
  if (!std::ranges::includes(*found, *expected)) {
    connection.set_damaged();
    return fail(ErrorCode::InvalidInput, "the tables are not those of this program");
  }
  return {};
}

}  // namespace

int schema_version() {
  return static_cast<int>(kSteps.size());
}

Result<void> refuse_newer(Connection& connection) {
  const auto version = connection.number("PRAGMA user_version");
  if (!version) return tl::unexpected<Error>(version.error());
  if (*version > schema_version())
    return fail(ErrorCode::InvalidInput, "the history was written by a newer gpuhealthd (version " +
                                             std::to_string(*version) + ", this one knows " +
                                             std::to_string(schema_version()) + "); it is left alone");
  return {};
}

Result<void> migrate(Connection& connection) {
  const auto version = connection.number("PRAGMA user_version");
  if (!version) return tl::unexpected<Error>(version.error());
  if (*version < 0) {
    connection.set_damaged();
    return fail(ErrorCode::InvalidInput, "the version number is damaged");
  }
  if (auto done = steps_from(connection, static_cast<std::size_t>(*version)); !done) {
    // SQL that fails although disk and file work meets tables that should not be there.
    if (done.error().code == ErrorCode::Internal) connection.set_damaged();
    return done;
  }
  return check_tables(connection);
}

}  // namespace gpuhealth::store
