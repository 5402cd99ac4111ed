// SPDX-License-Identifier: Apache-2.0
// What the store's tests share: a directory that goes away, values made by hand, a raw look into a database file.
#pragma once

#include <filesystem>
#include <initializer_list>
#include <string>
#include <utility>

#include "store/database.hpp"

namespace gpuhealth::store::test {

class TemporaryDirectory {
 public:
  TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory();
  [[nodiscard]] std::string file(const std::string& name) const { return (path_ / name).string(); }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// 2026-01-01 00:00:00 UTC and so many seconds: a whole minute, quarter-hour and six hours.
inline constexpr std::int64_t kNewYear = 1'767'225'600;
WallTime at(std::int64_t seconds);

Sample sample(std::int64_t seconds, std::initializer_list<std::pair<ReadingId, double>> values,
              const std::string& device = "uid-1");
Event event(std::int64_t seconds, const std::string& text);
Condition condition(const std::string& id, std::int64_t since);
DeviceInfo device(const std::string& unique_id);

Database open_or_die(const Options& options, OpenReport* report = nullptr);
Database open_or_die(const std::string& path, OpenReport* report = nullptr);

HistoryQuery query(std::int64_t since, std::int64_t until, ReadingId reading = ReadingId::TemperatureEdge,
                   const std::string& device = "uid-1");
// "0:45/46.5/48 60:…": seconds since the new year:min/mean/max of each point.
std::string show(const Result<std::vector<HistoryPoint>>& points);

// First column of the first row, through a connection of its own (the database must be closed).
std::int64_t raw_number(const std::string& path, const std::string& sql);
void raw_exec(const std::string& path, const std::string& sql);

std::string read_file(const std::string& path);
void write_file(const std::string& path, const std::string& content);

}  // namespace gpuhealth::store::test
