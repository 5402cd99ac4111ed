// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite.hpp"

#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace gpuhealth::store {
namespace {

struct Meaning {
  int rc;
  ErrorCode code;
  std::string_view text;
};
constexpr std::array kMeanings = std::to_array<Meaning>({
    {SQLITE_FULL, ErrorCode::Exhausted, "the disk is full"},
    {SQLITE_NOMEM, ErrorCode::Exhausted, "out of memory"},
    {SQLITE_READONLY, ErrorCode::NotPermitted, "can be read and not written"},
    {SQLITE_CANTOPEN, ErrorCode::Unreadable, "cannot be opened"},
    {SQLITE_PERM, ErrorCode::NotPermitted, "access denied"},
    {SQLITE_AUTH, ErrorCode::NotPermitted, "access denied"},
    {SQLITE_IOERR, ErrorCode::Unreadable, "reading or writing failed"},
    {SQLITE_BUSY, ErrorCode::Unavailable, "in use by another program"},
    {SQLITE_LOCKED, ErrorCode::Unavailable, "in use by another program"},
    {SQLITE_INTERRUPT, ErrorCode::Unavailable, "stopped"},
    {SQLITE_CORRUPT, ErrorCode::InvalidInput, "damaged"},
    {SQLITE_NOTADB, ErrorCode::InvalidInput, "not a database"},
});

bool is_full(int sys_errno) {
  return sys_errno == ENOSPC || sys_errno == EDQUOT || sys_errno == EFBIG;
}

// A sector that cannot be read stays so: the file is of no use any more.
bool is_damage(int rc, int sys_errno) {
  const int primary = rc & 0xff;
  if (primary == SQLITE_CORRUPT || primary == SQLITE_NOTADB) return true;
  return rc == SQLITE_IOERR_READ && sys_errno == EIO;
}

}  // namespace

void Interrupt::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  if (db_ != nullptr) sqlite3_interrupt(db_);
}

bool Interrupt::stopped() const {
  const std::lock_guard lock(mutex_);
  return stopped_;
}

bool Interrupt::attach(sqlite3* db) {
  const std::lock_guard lock(mutex_);
  if (stopped_) return false;
  db_ = db;
  return true;
}

void Interrupt::detach(const sqlite3* db) {
  const std::lock_guard lock(mutex_);
  if (db_ == db) db_ = nullptr;
}

Result<Connection> Connection::open(const std::string& path, Interrupt* interrupt) {
  sqlite3* db = nullptr;
  const int rc = sqlite3_open_v2(path.c_str(), &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nullptr);
  Connection connection(db, path);
  if (db == nullptr) return fail(ErrorCode::Exhausted, path + ": out of memory");
  sqlite3_extended_result_codes(db, 1);
  if (rc != SQLITE_OK) return tl::unexpected<Error>(connection.failure(rc));
  if (sqlite3_db_readonly(db, "main") == 1)
    return fail(ErrorCode::NotPermitted, path + ": can be read and not written", EROFS);
  if (interrupt != nullptr) {
    if (!interrupt->attach(db)) return fail(ErrorCode::Unavailable, path + ": stopped");
    connection.interrupt_ = interrupt;
  }
  return connection;
}

Connection::Connection(Connection&& other) noexcept
    : db_(std::exchange(other.db_, nullptr)),
      path_(std::move(other.path_)),
      interrupt_(std::exchange(other.interrupt_, nullptr)),
      damaged_(other.damaged_) {}

Connection& Connection::operator=(Connection&& other) noexcept {
  if (this == &other) return *this;
  close();
  db_ = std::exchange(other.db_, nullptr);
  path_ = std::move(other.path_);
  interrupt_ = std::exchange(other.interrupt_, nullptr);
  damaged_ = other.damaged_;
  return *this;
}

void Connection::close() {
  if (db_ == nullptr) return;
  if (interrupt_ != nullptr) interrupt_->detach(db_);
  if (damaged_) sqlite3_db_config(db_, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  sqlite3_close_v2(db_);
  db_ = nullptr;
}

Result<void> Connection::exec(const char* sql) {
  const int rc = sqlite3_exec(db_, sql, nullptr, nullptr, nullptr);
  if (rc != SQLITE_OK) return tl::unexpected<Error>(failure(rc));
  return {};
}

Result<std::int64_t> Connection::number(const char* sql) {
  Statement statement(*this, sql);
  const std::int64_t value = statement.row() ? statement.integer(0) : 0;
  if (statement.failed()) return statement.error();
  return value;
}

Error Connection::failure(int rc) {
  const int primary = rc & 0xff;
  const bool from_system = primary == SQLITE_IOERR || primary == SQLITE_CANTOPEN || primary == SQLITE_FULL;
  int sys_errno = from_system ? sqlite3_system_errno(db_) : 0;
  if (primary == SQLITE_FULL && !is_full(sys_errno)) sys_errno = ENOSPC;
  if (is_damage(rc, sys_errno)) damaged_ = true;

  const auto* row = std::ranges::find(kMeanings, primary, &Meaning::rc);
  if (row == kMeanings.end())
    return {ErrorCode::Internal, path_ + ": " + sqlite3_errmsg(db_) + " (SQLite " + std::to_string(rc) + ")", 0};
  Error error{row->code, path_ + ": " + std::string(row->text), sys_errno};
  if (is_full(sys_errno)) error.code = ErrorCode::Exhausted;
  if (primary != SQLITE_FULL && sys_errno != 0) {
    std::array<char, 128> buffer{};
    error.text += std::string(": ") + strerror_r(sys_errno, buffer.data(), buffer.size());
  }
  return error;
}

Statement::Statement(Connection& connection, std::string_view sql) : connection_(connection) {
  check(sqlite3_prepare_v2(connection.get(), sql.data(), static_cast<int>(sql.size()), &statement_, nullptr));
}

Statement::~Statement() {
  sqlite3_finalize(statement_);
}

void Statement::check(int rc) {
  if (rc == SQLITE_OK || rc == SQLITE_ROW || rc == SQLITE_DONE || failed_) return;
  failed_ = true;
  error_ = connection_.failure(rc);
}

void Statement::reset() {
  if (!failed_) sqlite3_reset(statement_);
}

bool Statement::row() {
  if (failed_) return false;
  const int rc = sqlite3_step(statement_);
  check(rc);
  return rc == SQLITE_ROW;
}

Result<void> Statement::run() {
  while (row()) {
  }
  if (failed_) return error();
  reset();
  return {};
}

void Statement::bind_one(int index, std::string_view value) {
  // A view of nothing may have no address, and would be bound as NULL.
  const char* data = value.empty() ? "" : value.data();
  if (!failed_) check(sqlite3_bind_text(statement_, index, data, static_cast<int>(value.size()), SQLITE_TRANSIENT));
}

void Statement::bind_one(int index, double value) {
  if (!failed_) check(sqlite3_bind_double(statement_, index, value));
}

void Statement::bind_integer(int index, std::int64_t value) {
  if (!failed_) check(sqlite3_bind_int64(statement_, index, value));
}

std::int64_t Statement::integer(int column) const {
  return sqlite3_column_int64(statement_, column);
}

double Statement::real(int column) const {
  return sqlite3_column_double(statement_, column);
}

std::string Statement::text(int column) const {
  const auto* data = sqlite3_column_text(statement_, column);
  if (data == nullptr) return {};
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement_, column));
  return {reinterpret_cast<const char*>(data), size};
}

Transaction::Transaction(Connection& connection) : connection_(connection), begun_(connection.exec("BEGIN IMMEDIATE")) {
  open_ = begun_.has_value();
}

Transaction::~Transaction() {
  // SQLite may have rolled back by itself, as it does when the disk is full.
  if (open_ && sqlite3_get_autocommit(connection_.get()) == 0)
    sqlite3_exec(connection_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
}

Result<void> Transaction::commit() {
  auto committed = connection_.exec("COMMIT");
  if (committed) open_ = false;
  return committed;
}

}  // namespace gpuhealth::store
