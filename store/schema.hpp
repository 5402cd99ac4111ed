// SPDX-License-Identifier: Apache-2.0
// What the tables look like, and how older ones become so. docs/history.md describes them.
#pragma once

#include "core/error.hpp"
#include "store/sqlite.hpp"

namespace gpuhealth::store {

inline constexpr int kApplicationId = 0x47505548;  // "GPUH"

int schema_version();

// ErrorCode::InvalidInput for the file of a newer program. Writes nothing.
Result<void> refuse_newer(Connection& connection);

// Brings the database to schema_version(), each step in a transaction of its own, and checks that the tables are those
// that the steps make; what fails here without an I/O error is a damaged file (Connection::damaged()).
Result<void> migrate(Connection& connection);

}  // namespace gpuhealth::store
