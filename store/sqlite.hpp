// SPDX-License-Identifier: Apache-2.0
// The little of SQLite that this room needs, as values: a connection that knows whether its file is damaged, statements
// whose first failure stays, and a transaction that rolls back unless committed.
#pragma once

#include <concepts>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include "core/error.hpp"

struct sqlite3;
struct sqlite3_stmt;

namespace gpuhealth::store {

// Stops whatever a connection is doing, from another thread. After stop() no connection opens under it.
class Interrupt {
 public:
  void stop();
  [[nodiscard]] bool stopped() const;

 private:
  friend class Connection;
  bool attach(sqlite3* db);  // false when stopped
  void detach(const sqlite3* db);

  mutable std::mutex mutex_;
  sqlite3* db_ = nullptr;
  bool stopped_ = false;
};

class Connection {
 public:
  // The file must exist (or be ":memory:"); a file that can only be read is an error.
  static Result<Connection> open(const std::string& path, Interrupt* interrupt);
  Connection(Connection&& other) noexcept;
  Connection& operator=(Connection&& other) noexcept;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() { close(); }

  // Of a damaged file nothing is written on closing: it is kept as it was found.
  void close();

  Result<void> exec(const char* sql);
  Result<std::int64_t> number(const char* sql);  // first column of the first row; 0 without a row

  // The last failure as the house's error; remembers that the file is damaged when it says so.
  Error failure(int rc);
  void set_damaged() { damaged_ = true; }
  [[nodiscard]] bool damaged() const { return damaged_; }
  [[nodiscard]] bool interrupted() const { return interrupt_ != nullptr && interrupt_->stopped(); }
  [[nodiscard]] sqlite3* get() const { return db_; }

 private:
  Connection(sqlite3* db, std::string path) : db_(db), path_(std::move(path)) {}

  sqlite3* db_ = nullptr;
  std::string path_;
  Interrupt* interrupt_ = nullptr;
  bool damaged_ = false;
};

class Statement {
 public:
  Statement(Connection& connection, std::string_view sql);
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;
  ~Statement();

  // Binds all parameters, in order, and makes the statement ready to run again.
  template <class... Values>
  Statement& bind(const Values&... values) {
    reset();
    int index = 0;
    (bind_one(++index, values), ...);
    return *this;
  }

  bool row();          // true: there is a row; false: the end, or a failure
  Result<void> run();  // to the end
  [[nodiscard]] bool failed() const { return failed_; }
  [[nodiscard]] tl::unexpected<Error> error() const { return tl::unexpected<Error>(error_); }

  [[nodiscard]] std::int64_t integer(int column) const;
  [[nodiscard]] double real(int column) const;
  [[nodiscard]] std::string text(int column) const;

 private:
  void reset();
  void check(int rc);
  void bind_one(int index, std::string_view value);
  void bind_one(int index, double value);
  template <std::integral Integer>
  void bind_one(int index, Integer value) {
    bind_integer(index, static_cast<std::int64_t>(value));
  }
  void bind_integer(int index, std::int64_t value);

  Connection& connection_;
  sqlite3_stmt* statement_ = nullptr;
  bool failed_ = false;
  Error error_;
};

class Transaction {
 public:
  explicit Transaction(Connection& connection);
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  ~Transaction();
  // Write nothing when this is a failure: it would stand outside the transaction.
  [[nodiscard]] const Result<void>& begun() const { return begun_; }
  Result<void> commit();

 private:
  Connection& connection_;
  Result<void> begun_;
  bool open_ = false;
};

}  // namespace gpuhealth::store
