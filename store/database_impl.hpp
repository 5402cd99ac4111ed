// SPDX-License-Identifier: Apache-2.0
// What the files of this room share of a Database.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "store/database.hpp"
#include "store/pending.hpp"
#include "store/sqlite.hpp"

namespace gpuhealth::store {

// The levels of history: how wide a bucket is, and for how long it is kept before it goes into the next level.
struct Level {
  Minute width;
  Duration Options::* keep_for;
};
inline constexpr std::array<Level, 3> kLevels = {
    {{1, &Options::fine_for}, {15, &Options::medium_for}, {360, &Options::coarse_for}}};

struct Database::Impl {
  Options options;
  Connection connection;
  Interrupt* interrupt = nullptr;
  Pending pending;
  std::map<std::string, std::int64_t, std::less<>> device_numbers;  // of history_device, as far as used

  // Writes these buckets in one transaction, merged into what is there; on success they leave `pending`.
  Result<void> write(const std::vector<Minute>& which);
  Result<std::int64_t> device_number(const std::string& device);
  [[nodiscard]] bool in_memory() const { return options.path == ":memory:"; }
};

}  // namespace gpuhealth::store
