// SPDX-License-Identifier: Apache-2.0
#include <sqlite3.h>

#include <utility>

#include "store/database_impl.hpp"
#include "store/files.hpp"
#include "store/schema.hpp"

namespace gpuhealth::store {
namespace {

// docs/history.md says why. Exclusive: no shared-memory file, and nobody writes beside us.
constexpr const char* kSettings =
    "PRAGMA locking_mode = EXCLUSIVE;"
    "PRAGMA cache_size = -512;"
    "PRAGMA mmap_size = 0;"
    "PRAGMA temp_store = MEMORY;"
    "PRAGMA secure_delete = OFF;"
    "PRAGMA trusted_schema = OFF;"
    "PRAGMA foreign_keys = ON;"
    "PRAGMA cell_size_check = ON;"
    "PRAGMA synchronous = NORMAL;"
    "PRAGMA wal_autocheckpoint = 256;"
    "PRAGMA journal_size_limit = 1048576;";
constexpr const char* kNewFile =
    "PRAGMA page_size = 4096;"
    "PRAGMA auto_vacuum = INCREMENTAL;";

Result<void> check_pages(Connection& connection) {
  Statement check(connection, "PRAGMA quick_check(1)");
  const std::string verdict = check.row() ? check.text(0) : "";
  // Once interrupted, the check calls pages lost that it did not come to.
  if (connection.interrupted()) return fail(ErrorCode::Unavailable, "stopped");
  if (check.failed()) return check.error();
  if (verdict == "ok") return {};
  connection.set_damaged();
  return fail(ErrorCode::InvalidInput, "damaged: " + verdict);
}

Result<void> make_usable(Connection& connection) {
  if (auto done = connection.exec(kSettings); !done) return done;
  if (auto done = refuse_newer(connection); !done) return done;
  const auto page_count = connection.number("PRAGMA page_count");
  if (!page_count) return tl::unexpected<Error>(page_count.error());
  if (*page_count == 0) {
    if (auto done = connection.exec(kNewFile); !done) return done;
  }
  if (auto done = connection.exec("PRAGMA journal_mode = WAL"); !done) return done;
  if (auto done = check_pages(connection); !done) return done;
  return migrate(connection);
}

struct Opening {
  Result<Connection> connection;
  bool damaged = false;
};

Opening open_once(const std::string& path, Interrupt* interrupt) {
  if (path != ":memory:" && is_cut(path))
    return {fail(ErrorCode::InvalidInput, path + ": cut off within a page"), true};
  auto connection = Connection::open(path, interrupt);
  if (!connection) return {std::move(connection)};
  auto usable = make_usable(*connection);
  if (usable) return {std::move(connection)};
  const bool damaged = connection->damaged();
  return {tl::unexpected<Error>(std::move(usable.error())), damaged};
}

Result<Connection> open_file(const std::string& path, OpenReport& report, Interrupt* interrupt) {
  if (path == ":memory:") {
    report.created = true;
    return open_once(path, interrupt).connection;
  }
  for (int attempt = 0;; ++attempt) {
    if (auto ready = prepare_file(path, report.created); !ready) return tl::unexpected<Error>(ready.error());
    Opening opening = open_once(path, interrupt);
    if (opening.connection || !opening.damaged || attempt > 0) return std::move(opening.connection);
    auto name = set_aside(path);
    if (!name) return tl::unexpected<Error>(name.error());
    report.set_aside_as = *name;
    report.reason = opening.connection.error().text;
  }
}

}  // namespace

Database::Database(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Database::Database(Database&&) noexcept = default;
Database& Database::operator=(Database&&) noexcept = default;
Database::~Database() = default;

Result<Database> Database::open(const Options& options, OpenReport& report, Interrupt* interrupt) {
  auto connection = open_file(options.path, report, interrupt);
  if (!connection) return tl::unexpected<Error>(connection.error());
  return Database(std::unique_ptr<Impl>(new Impl{options, std::move(*connection), interrupt, {}, {}}));
}

Result<Database> Database::replace(Database damaged, const std::string& reason, OpenReport& report) {
  const std::unique_ptr<Impl> old = std::move(damaged.impl_);
  old->connection.close();
  if (!old->in_memory()) {
    auto name = set_aside(old->options.path);
    if (!name) return tl::unexpected<Error>(name.error());
    report.set_aside_as = *name;
    report.reason = reason;
  }
  auto fresh = open(old->options, report, old->interrupt);
  if (fresh) fresh->impl_->pending = std::move(old->pending);
  return fresh;
}

std::uint64_t Database::size_bytes() const {
  if (!impl_->in_memory()) return size_on_disk(impl_->options.path);
  const auto size = impl_->connection.number("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size");
  return static_cast<std::uint64_t>(size.value_or(0));
}

bool Database::damaged() const {
  return impl_->connection.damaged();
}

std::uint64_t Database::dropped() const {
  return impl_->pending.dropped;
}

}  // namespace gpuhealth::store
