// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <vector>

#include "store/database_impl.hpp"

namespace gpuhealth::store {
namespace {

// The GPUs of one round are stamped one after the other: a bucket stays open a little beyond its minute.
constexpr std::int64_t kGraceMicroseconds = 5'000'000;
constexpr std::size_t kMostPending = 15;
constexpr double kMostPlausible = 1e200;  // sums stay finite

// Complete: the clock is outside the minute, whichever way it went.
bool is_complete(Minute minute, WallTime now) {
  constexpr std::int64_t whole = 60'000'000;
  const Minute current = minute_of(now);
  if (current == minute) return false;
  const std::int64_t into = (to_microseconds(now) % whole + whole) % whole;
  if (current == minute + 1) return into >= kGraceMicroseconds;
  if (current == minute - 1) return into < whole - kGraceMicroseconds;
  return true;
}

bool is_kept(const Reading& reading) {
  if (reading.status != ReadingStatus::Valid || !(std::abs(reading.value) < kMostPlausible)) return false;
  const ReadingInfo* row = find_reading(reading.id);
  return row != nullptr && row->keep == Keep::History;
}

void accumulate(Pending& pending, const Sample& sample) {
  Bucket* bucket = nullptr;
  std::map<ReadingId, Aggregate>* series = nullptr;
  for (const Reading& reading : sample.readings) {
    if (!is_kept(reading)) continue;
    if (series == nullptr) {
      bucket = &pending.buckets[minute_of(sample.time.wall)];
      series = &bucket->devices[sample.device];
      ++bucket->samples;
    }
    (*series)[reading.id].merge({reading.value, reading.value, reading.value, 1});
  }
}

void drop_oldest(Pending& pending) {
  while (pending.buckets.size() > kMostPending) {
    pending.dropped += pending.buckets.begin()->second.samples;
    pending.buckets.erase(pending.buckets.begin());
  }
}

}  // namespace

Result<void> Database::add(const Sample& sample) {
  Pending& pending = impl_->pending;
  accumulate(pending, sample);
  std::vector<Minute> complete;
  for (const auto& [minute, bucket] : pending.buckets) {
    if (is_complete(minute, sample.time.wall)) complete.push_back(minute);
  }
  if (complete.empty()) return {};
  auto written = impl_->write(complete);
  if (!written) drop_oldest(pending);
  return written;
}

Result<void> Database::flush() {
  std::vector<Minute> all;
  for (const auto& [minute, bucket] : impl_->pending.buckets) all.push_back(minute);
  return all.empty() ? Result<void>{} : impl_->write(all);
}

Result<std::int64_t> Database::Impl::device_number(const std::string& device) {
  if (const auto known = device_numbers.find(device); known != device_numbers.end()) return known->second;
  Statement insert(connection, "INSERT OR IGNORE INTO history_device(device) VALUES(?)");
  if (auto done = insert.bind(device).run(); !done) return tl::unexpected<Error>(done.error());
  Statement select(connection, "SELECT number FROM history_device WHERE device = ?");
  const bool found = select.bind(device).row();
  if (select.failed()) return select.error();
  if (!found) return fail(ErrorCode::Internal, "a device just stored is not found");
  return device_numbers[device] = select.integer(0);
}

Result<void> Database::Impl::write(const std::vector<Minute>& which) {
  Transaction transaction(connection);
  if (!transaction.begun()) return transaction.begun();
  Statement upsert(connection,
                   "INSERT INTO bucket VALUES(0, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
                   "min = min(min, excluded.min), max = max(max, excluded.max), sum = sum + excluded.sum, "
                   "count = count + excluded.count");
  const auto write_bucket = [&](Minute minute, const Bucket& bucket) -> Result<void> {
    for (const auto& [device, series] : bucket.devices) {
      const auto number = device_number(device);
      if (!number) return tl::unexpected<Error>(number.error());
      for (const auto& [reading, a] : series) {
        upsert.bind(*number, minute, static_cast<int>(reading), a.min, a.max, a.sum, a.count);
        if (auto done = upsert.run(); !done) return done;
      }
    }
    return {};
  };
  Result<void> done;
  for (const Minute minute : which) {
    done = write_bucket(minute, pending.buckets.at(minute));
    if (!done) break;
  }
  if (done) done = transaction.commit();
  if (!done) {
    device_numbers.clear();  // those given within this transaction are not stored
    return done;
  }
  for (const Minute minute : which) pending.buckets.erase(minute);
  return {};
}

}  // namespace gpuhealth::store
