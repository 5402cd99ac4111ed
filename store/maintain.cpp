// SPDX-License-Identifier: Apache-2.0
// Ageing and the size cap. Both move the oldest buckets of a level into the next one, and drop those of the last.
#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "store/database_impl.hpp"

namespace gpuhealth::store {
namespace {

constexpr std::int64_t kRowsACall = 2000;
constexpr std::int64_t kPagesACall = 256;    // given back to the file system
constexpr std::int64_t kFreePagesKept = 64;  // for the next hours' rows; not worth moving pages
constexpr Minute kHour = 60;
constexpr Minute kDay = 24 * kHour;
constexpr Minute kLeap = 2 * kDay;

// Near the cap: what goes first is old detail, because thinned it still tells the same story; whole stretches of time
// go only when that is not enough. Ages that are spared; kAny also takes what a wrong clock put into the
// future.
constexpr Minute kAny = -1;
struct Relief {
  std::size_t level;
  Minute spared;
};
constexpr std::array<Relief, 8> kReliefs = {
    {{0, kDay}, {1, 7 * kDay}, {2, 90 * kDay}, {0, kHour}, {1, kDay}, {2, kAny}, {1, kAny}, {0, kAny}}};

class Upkeep {
 public:
  Upkeep(Connection& connection, const Options& options) : connection_(connection), options_(options) {}

  Result<void> age(Minute now);
  Result<void> relieve(Minute now);
  [[nodiscard]] bool spent() const { return rows_ >= kRowsACall; }
  [[nodiscard]] bool relieved() const { return relieved_; }

  // The file is kept an eighth below the cap: an hour's growth and the write-ahead log fit between.
  [[nodiscard]] std::int64_t target() const {
    return static_cast<std::int64_t>(options_.size_cap_bytes - options_.size_cap_bytes / 8);
  }

 private:
  struct Oldest {
    std::int64_t device;
    Minute start;
  };
  Result<std::optional<Oldest>> oldest(std::size_t level);
  Result<Minute> end_of_chunk(std::size_t level, Oldest oldest, Minute width);
  Result<std::int64_t> thin_oldest(std::size_t level, Minute before);
  Result<void> thin(std::size_t level, Minute before);
  Result<void> drop_records(const char* sql, std::int64_t before, std::int64_t most);
  Result<bool> over_target();

  Connection& connection_;
  const Options& options_;
  std::int64_t rows_ = 0;
  bool relieved_ = false;
};

Result<std::optional<Upkeep::Oldest>> Upkeep::oldest(std::size_t level) {
  Statement select(
      connection_,
      "SELECT number, (SELECT start FROM bucket WHERE level = ? AND device = number ORDER BY start LIMIT 1) "
      "AS first FROM history_device WHERE first IS NOT NULL ORDER BY first LIMIT 1");
  const bool found = select.bind(level).row();
  if (select.failed()) return select.error();
  if (!found) return std::optional<Oldest>{};
  return std::optional<Oldest>{{select.integer(0), select.integer(1)}};
}

// As many whole windows as the rest of this call's rows allows, at least one.
Result<Minute> Upkeep::end_of_chunk(std::size_t level, Oldest oldest, Minute width) {
  const Minute one = (floor_div(oldest.start, width) + 1) * width;
  Statement select(connection_,
                   "SELECT start FROM bucket WHERE level = ? AND device = ? AND start >= ? ORDER BY start, reading "
                   "LIMIT 1 OFFSET ?");
  const bool more = select.bind(level, oldest.device, oldest.start, kRowsACall - rows_).row();
  if (select.failed()) return select.error();
  if (!more) return INT64_MAX;
  return std::max(one, floor_div(select.integer(0), width) * width);
}

// Rows handled; 0 when none of this level is older than `before`.
Result<std::int64_t> Upkeep::thin_oldest(std::size_t level, Minute before) {
  const auto first = oldest(level);
  if (!first) return tl::unexpected<Error>(first.error());
  if (!*first) return 0;
  const bool last_level = level + 1 == kLevels.size();
  const Minute width = kLevels[last_level ? level : level + 1].width;
  const auto chunk = end_of_chunk(level, **first, width);
  if (!chunk) return tl::unexpected<Error>(chunk.error());
  const Minute end = std::min(*chunk, floor_div(before, width) * width);
  if (end <= (*first)->start) return 0;

  const std::int64_t device = (*first)->device;
  const Minute start = (*first)->start;
  if (!last_level) {
    Statement merge(connection_,
                    "INSERT INTO bucket SELECT ?1 + 1, device, start - ((start % ?5) + ?5) % ?5 AS wide, reading, "
                    "min(min), max(max), sum(sum), sum(count) FROM bucket "
                    "WHERE level = ?1 AND device = ?2 AND start >= ?3 AND start < ?4 GROUP BY wide, reading "
                    "ON CONFLICT DO UPDATE SET min = min(min, excluded.min), max = max(max, excluded.max), "
                    "sum = sum + excluded.sum, count = count + excluded.count");
    if (auto done = merge.bind(level, device, start, end, width).run(); !done)
      return tl::unexpected<Error>(done.error());
  }
  Statement remove(connection_, "DELETE FROM bucket WHERE level = ? AND device = ? AND start >= ? AND start < ?");
  if (auto done = remove.bind(level, device, start, end).run(); !done) return tl::unexpected<Error>(done.error());
  return sqlite3_changes64(connection_.get());
}

Result<void> Upkeep::thin(std::size_t level, Minute before) {
  while (!spent()) {
    const auto rows = thin_oldest(level, before);
    if (!rows) return tl::unexpected<Error>(rows.error());
    if (*rows == 0) break;
    rows_ += *rows;
  }
  return {};
}

Result<void> Upkeep::drop_records(const char* sql, std::int64_t before, std::int64_t most) {
  if (spent()) return {};
  Statement remove(connection_, sql);
  if (auto done = remove.bind(before, most, kRowsACall - rows_).run(); !done) return done;
  rows_ += sqlite3_changes64(connection_.get());
  return {};
}

Result<void> Upkeep::age(Minute now) {
  for (std::size_t level = 0; level < kLevels.size(); ++level) {
    if (auto done = thin(level, now - minutes(options_.*kLevels[level].keep_for)); !done) return done;
  }
  const std::int64_t before = to_microseconds(time_of(now - minutes(options_.events_for)));
  // Beside their age, events may take about an eighth of the cap, cleared conditions a sixteenth: a flood of either
  // must not push the samples out.
  const auto cap = static_cast<std::int64_t>(options_.size_cap_bytes);
  if (auto done =
          drop_records("DELETE FROM event WHERE number IN (SELECT number FROM event WHERE time < ?1 OR number <= "
                       "(SELECT number FROM event ORDER BY number DESC LIMIT 1 OFFSET ?2) LIMIT ?3)",
                       before, cap / 2048);
      !done)
    return done;
  return drop_records(
      "DELETE FROM condition WHERE id IN (SELECT id FROM condition WHERE state = 'cleared' AND "
      "(cleared < ?1 OR since <= (SELECT since FROM condition WHERE state = 'cleared' "
      "ORDER BY since DESC LIMIT 1 OFFSET ?2)) LIMIT ?3)",
      before, cap / 16384);
}

Result<bool> Upkeep::over_target() {
  const auto used = connection_.number(
      "SELECT (page_count - freelist_count) * page_size FROM pragma_page_count, pragma_freelist_count, "
      "pragma_page_size");
  if (!used) return tl::unexpected<Error>(used.error());
  return *used > target();
}

Result<void> Upkeep::relieve(Minute now) {
  for (const Relief& relief : kReliefs) {
    if (spent()) return {};
    const auto over = over_target();
    if (!over) return tl::unexpected<Error>(over.error());
    if (!*over) return {};
    const std::int64_t rows_before = rows_;
    if (auto done = thin(relief.level, relief.spared == kAny ? INT64_MAX : now - relief.spared); !done) return done;
    relieved_ = relieved_ || rows_ > rows_before;
  }
  return {};
}

// How far ageing has come: the clock, but no more than kLeap beyond the last complete pass.
Result<Minute> aged_to(Connection& connection, Minute now) {
  Statement select(connection, "SELECT aged_to FROM upkeep");
  const bool known = select.row();
  if (select.failed()) return select.error();
  return known ? std::min(now, select.integer(0) + kLeap) : now;
}

Result<void> set_aged_to(Connection& connection, Minute minute) {
  Statement put(connection, "INSERT OR REPLACE INTO upkeep VALUES(0, ?)");
  return put.bind(minute).run();
}

struct Pages {
  std::int64_t count = 0;
  std::int64_t free = 0;
};
Result<Pages> pages(Connection& connection) {
  const auto count = connection.number("PRAGMA page_count");
  if (!count) return tl::unexpected<Error>(count.error());
  const auto free = connection.number("PRAGMA freelist_count");
  if (!free) return tl::unexpected<Error>(free.error());
  return Pages{*count, *free};
}

// Gives free pages back when they are many or the file is near its cap. True: there are more.
Result<bool> shrink(Connection& connection, std::int64_t target) {
  const auto page_size = connection.number("PRAGMA page_size");
  if (!page_size) return tl::unexpected<Error>(page_size.error());
  const auto wanted = [&](const Pages& p) {
    const bool many = p.free > kFreePagesKept && p.free > p.count / 8;
    return many || (p.free > 0 && p.count * *page_size > target);
  };
  const auto before = pages(connection);
  if (!before) return tl::unexpected<Error>(before.error());
  if (!wanted(*before)) return false;
  const auto sql = "PRAGMA incremental_vacuum(" + std::to_string(kPagesACall) + ")";
  if (auto done = connection.exec(sql.c_str()); !done) return tl::unexpected<Error>(done.error());
  const auto after = pages(connection);
  if (!after) return tl::unexpected<Error>(after.error());
  return after->count < before->count && wanted(*after);
}

}  // namespace

Result<bool> Database::maintain(WallTime now) {
  Connection& connection = impl_->connection;
  Upkeep upkeep(connection, impl_->options);
  Transaction transaction(connection);
  if (!transaction.begun()) return tl::unexpected<Error>(transaction.begun().error());
  const auto age_to = aged_to(connection, minute_of(now));
  if (!age_to) return tl::unexpected<Error>(age_to.error());
  if (auto done = upkeep.age(*age_to); !done) return tl::unexpected<Error>(done.error());
  if (auto done = upkeep.relieve(minute_of(now)); !done) return tl::unexpected<Error>(done.error());
  const bool rows_left = upkeep.spent() || upkeep.relieved();
  if (!rows_left) {
    if (auto done = set_aged_to(connection, *age_to); !done) return tl::unexpected<Error>(done.error());
  }
  if (auto done = transaction.commit(); !done) return tl::unexpected<Error>(done.error());
  auto pages_left = shrink(connection, upkeep.target());
  if (!pages_left) return pages_left;
  if (rows_left || *pages_left) return true;
  // The pages that went leave the file only now; also a synced file every hour is what a power cut can cost at most.
  if (auto done = connection.exec("PRAGMA wal_checkpoint(TRUNCATE)"); !done) return tl::unexpected<Error>(done.error());
  sqlite3_db_release_memory(connection.get());
  return false;
}

}  // namespace gpuhealth::store
