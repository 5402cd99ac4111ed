// SPDX-License-Identifier: Apache-2.0
// The one thread that owns the database. Work is posted to it and never waited for in the loop; results come back
// through `deliver`, which the owner binds to its own thread (boost::asio::post in the daemon). When the disk is full
// or the database fails, work is dropped, counted and reported, and the worker goes on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "store/database.hpp"

namespace gpuhealth::store {

struct Health {
  bool working = true;
  std::string problem;        // "disk full", …; empty when working
  std::uint64_t dropped = 0;  // pieces of work lost since start
  std::uint64_t size_bytes = 0;
};

class Worker {
 public:
  using Deliver = std::function<void(std::function<void()>)>;
  // `on_problem` is delivered when the state of Health changes, and once after open with the report's text if a file
  // was set aside.
  Worker(Options options, Deliver deliver, std::function<void(Health)> on_health,
         std::function<void(OpenReport)> on_open);
  ~Worker();  // finishes what is queued within a second, flushes, joins
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Fire and forget; the queue is bounded (oldest samples are dropped first, never conditions).
  void add(Sample sample);
  void add(Event event);
  void put(Condition condition);
  void seen(DeviceInfo device, std::string label, std::string boot_id, WallTime now);
  void forget_device(std::string id);

  // Answers are delivered; `then` is not called after the destructor.
  void history(HistoryQuery query, std::function<void(Result<std::vector<HistoryPoint>>)> then);
  void events(WallTime since, WallTime until, std::uint32_t limit,
              std::function<void(Result<std::vector<Event>>)> then);
  void conditions(WallTime since, std::uint32_t limit, std::function<void(Result<std::vector<Condition>>)> then);
  void open_conditions(std::function<void(Result<std::vector<Condition>>)> then);
  void known_devices(std::function<void(Result<std::vector<KnownDevice>>)> then);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gpuhealth::store
