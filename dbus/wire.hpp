// SPDX-License-Identifier: Apache-2.0
// Values to and from bus messages. A writer or reader that has failed ignores what follows; the error is asked for
// once.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/clock.hpp"

struct sd_bus_message;

namespace gpuhealth::dbus {

// `text` with what the bus does not carry (invalid UTF-8, NUL) replaced by '?', so that no firmware string breaks an
// answer.
std::string bus_text(std::string_view text);

// Bus times are unsigned; the year 2255 bounds what anybody may ask for, so that sums do not overflow.
inline constexpr std::uint64_t kLatestTime = 9'000'000'000'000'000;
WallTime time_from_bus(std::uint64_t us);
std::uint64_t time_to_bus(WallTime time);

class Writer {
 public:
  explicit Writer(sd_bus_message* message) : message_(message) {}
  Writer& text(std::string_view value);
  Writer& path(const std::string& value);
  Writer& time(WallTime value) { return u64(time_to_bus(value)); }
  Writer& u64(std::uint64_t value);
  Writer& i64(std::int64_t value);
  Writer& u32(std::uint32_t value);
  Writer& i32(std::int32_t value);
  Writer& flag(bool value);
  Writer& number(double value);
  Writer& begin(char type, const char* contents);  // 'a' array, 'r' struct, 'e' dictionary entry, 'v' variant
  Writer& end();
  [[nodiscard]] int error() const { return error_; }  // 0, or a negative errno

 private:
  Writer& basic(char type, const void* value);
  sd_bus_message* message_;
  int error_ = 0;
};

class Reader {
 public:
  explicit Reader(sd_bus_message* message) : message_(message) {}
  std::string text();
  std::string path();
  WallTime time() { return time_from_bus(u64()); }
  std::uint64_t u64();
  std::int64_t i64();
  std::uint32_t u32();
  std::int32_t i32();
  bool flag();
  double number();
  bool enter(char type, const char* contents);  // false at the end of the container around it, or after an error
  void leave();
  bool at_end();  // of the container entered; true after an error
  void skip(const char* types);
  std::string variant_type();  // of the variant that comes next, "as"; empty where none does
  [[nodiscard]] int error() const { return error_; }

 private:
  void basic(char type, void* value);
  sd_bus_message* message_;
  int error_ = 0;
};

}  // namespace gpuhealth::dbus
