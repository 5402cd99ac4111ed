// SPDX-License-Identifier: Apache-2.0
#include "support.hpp"

#include <fmt/format.h>
#include <sqlite3.h>
#include <stdlib.h>

#include <fstream>
#include <sstream>
#include <stdexcept>

namespace gpuhealth::store::test {

TemporaryDirectory::TemporaryDirectory() {
  // In memory where there is such a place: thousands of checkpoints are synced, and nothing here is about the disk.
  std::error_code absent;
  const bool memory = std::filesystem::is_directory("/dev/shm", absent);
  const auto parent = memory ? std::filesystem::path("/dev/shm") : std::filesystem::temp_directory_path();
  std::string pattern = (parent / "gpuhealth-store-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
  path_ = pattern;
}
TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

WallTime at(std::int64_t seconds) {
  return wall_from_microseconds((kNewYear + seconds) * 1'000'000);
}

Sample sample(std::int64_t seconds, std::initializer_list<std::pair<ReadingId, double>> values,
              const std::string& device) {
  Sample out;
  out.device = device;
  out.time.wall = at(seconds);
  out.power = PowerState::Active;
  for (const auto& [id, value] : values) out.readings.push_back({id, ReadingStatus::Valid, 0, value});
  return out;
}

Event event(std::int64_t seconds, const std::string& text) {
  return {at(seconds), "device.added", Severity::Info, "uid-1", text, "boot"};
}

Condition condition(const std::string& id, std::int64_t since) {
  Condition out;
  out.id = id;
  out.type = ConditionType::Overheating;
  out.severity = Severity::Critical;
  out.state = ConditionState::Confirmed;
  out.device = "uid-1";
  out.device_label = "Radeon RX 7900 XTX at 0000:03:00.0";
  out.since = at(since);
  out.last_seen = at(since + 5);
  out.boot_id = "boot";
  out.detail = "112 C at the junction";
  out.evidence = {{"temperature.junction", "112 C"}, {"limit", "110 C"}};
  return out;
}

DeviceInfo device(const std::string& unique_id) {
  DeviceInfo out;
  out.pci = {0, 3, 0, 0};
  out.unique_id = unique_id;
  return out;
}

Database open_or_die(const Options& options, OpenReport* report) {
  OpenReport own;
  auto database = Database::open(options, report != nullptr ? *report : own);
  if (!database) throw std::runtime_error(database.error().text);
  return std::move(*database);
}
Database open_or_die(const std::string& path, OpenReport* report) {
  Options options;
  options.path = path;
  return open_or_die(options, report);
}

HistoryQuery query(std::int64_t since, std::int64_t until, ReadingId reading, const std::string& device) {
  return {device, reading, at(since), at(until), 512};
}

std::string show(const Result<std::vector<HistoryPoint>>& points) {
  if (!points) return points.error().text;
  std::string out;
  for (const auto& p : *points) {
    if (!out.empty()) out += ' ';
    out += fmt::format("{}:{}/{}/{}", (p.time - at(0)).count() / 1'000'000, p.min, p.mean, p.max);
  }
  return out;
}

namespace {
struct Raw {
  explicit Raw(const std::string& path) {
    if (sqlite3_open(path.c_str(), &db) != SQLITE_OK) throw std::runtime_error(sqlite3_errmsg(db));
  }
  Raw(const Raw&) = delete;
  Raw& operator=(const Raw&) = delete;
  ~Raw() { sqlite3_close(db); }
  sqlite3* db = nullptr;
};
}  // namespace

std::int64_t raw_number(const std::string& path, const std::string& sql) {
  const Raw raw(path);
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(raw.db, sql.c_str(), -1, &statement, nullptr) != SQLITE_OK)
    throw std::runtime_error(sqlite3_errmsg(raw.db));
  std::int64_t value = -1;
  if (sqlite3_step(statement) == SQLITE_ROW) value = sqlite3_column_int64(statement, 0);
  sqlite3_finalize(statement);
  return value;
}

void raw_exec(const std::string& path, const std::string& sql) {
  const Raw raw(path);
  if (sqlite3_exec(raw.db, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK)
    throw std::runtime_error(sqlite3_errmsg(raw.db));
}

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream content;
  content << in.rdbuf();
  return content.str();
}

void write_file(const std::string& path, const std::string& content) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(content.data(), static_cast<std::streamsize>(content.size()));
  if (!out) throw std::runtime_error("cannot write " + path);
}

}  // namespace gpuhealth::store::test
