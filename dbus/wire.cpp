// SPDX-License-Identifier: Apache-2.0
#include "dbus/wire.hpp"

#include <systemd/sd-bus.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace gpuhealth::dbus {
namespace {

// Length of the valid UTF-8 sequence at the front of `text`, 0 where there is none (RFC 3629: no overlong forms, no
// surrogates).
std::size_t sequence_length(std::string_view text) {
  struct Row {
    unsigned char first_low, first_high, second_low, second_high;
    std::size_t length;
  };
  constexpr std::array rows = std::to_array<Row>({{0x01, 0x7f, 0, 0, 1},
                                                  {0xc2, 0xdf, 0x80, 0xbf, 2},
                                                  {0xe0, 0xe0, 0xa0, 0xbf, 3},
                                                  {0xe1, 0xec, 0x80, 0xbf, 3},
                                                  {0xed, 0xed, 0x80, 0x9f, 3},
                                                  {0xee, 0xef, 0x80, 0xbf, 3},
                                                  {0xf0, 0xf0, 0x90, 0xbf, 4},
                                                  {0xf1, 0xf3, 0x80, 0xbf, 4},
                                                  {0xf4, 0xf4, 0x80, 0x8f, 4}});
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  for (const auto& row : rows) {
    if (byte(0) < row.first_low || byte(0) > row.first_high) continue;
    if (row.length == 1) return 1;
    if (text.size() < row.length || byte(1) < row.second_low || byte(1) > row.second_high) return 0;
    for (std::size_t i = 2; i < row.length; ++i) {
      if (byte(i) < 0x80 || byte(i) > 0xbf) return 0;
    }
    return row.length;
  }
  return 0;
}

}  // namespace

std::string bus_text(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const auto length = sequence_length(text);
    if (length == 0)
      out += '?';
    else
      out += text.substr(0, length);
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

WallTime time_from_bus(std::uint64_t us) {
  return wall_from_microseconds(static_cast<std::int64_t>(std::min(us, kLatestTime)));
}

std::uint64_t time_to_bus(WallTime time) {
  return std::min(static_cast<std::uint64_t>(std::max<std::int64_t>(to_microseconds(time), 0)), kLatestTime);
}

Writer& Writer::basic(char type, const void* value) {
  if (error_ < 0) return *this;
  const int r = sd_bus_message_append_basic(message_, type, value);
  if (r < 0) error_ = r;
  return *this;
}
Writer& Writer::text(std::string_view value) {
  return basic(SD_BUS_TYPE_STRING, bus_text(value).c_str());
}
Writer& Writer::path(const std::string& value) {
  return basic(SD_BUS_TYPE_OBJECT_PATH, value.c_str());
}
Writer& Writer::u64(std::uint64_t value) {
  return basic(SD_BUS_TYPE_UINT64, &value);
}
Writer& Writer::i64(std::int64_t value) {
  return basic(SD_BUS_TYPE_INT64, &value);
}
Writer& Writer::u32(std::uint32_t value) {
  return basic(SD_BUS_TYPE_UINT32, &value);
}
Writer& Writer::i32(std::int32_t value) {
  return basic(SD_BUS_TYPE_INT32, &value);
}
Writer& Writer::flag(bool value) {
  const int number = value ? 1 : 0;
  return basic(SD_BUS_TYPE_BOOLEAN, &number);
}
Writer& Writer::number(double value) {
  return basic(SD_BUS_TYPE_DOUBLE, &value);
}
Writer& Writer::begin(char type, const char* contents) {
  if (error_ < 0) return *this;
  const int r = sd_bus_message_open_container(message_, type, contents);
  if (r < 0) error_ = r;
  return *this;
}
Writer& Writer::end() {
  if (error_ < 0) return *this;
  const int r = sd_bus_message_close_container(message_);
  if (r < 0) error_ = r;
  return *this;
}

// Nothing left to read where something must be is an error too.
void Reader::basic(char type, void* value) {
  if (error_ < 0) return;
  const int r = sd_bus_message_read_basic(message_, type, value);
  if (r <= 0) error_ = r < 0 ? r : -EBADMSG;
}
std::string Reader::text() {
  const char* value = nullptr;
  basic(SD_BUS_TYPE_STRING, static_cast<void*>(&value));
  return error_ < 0 || value == nullptr ? std::string() : std::string(value);
}
std::string Reader::path() {
  const char* value = nullptr;
  basic(SD_BUS_TYPE_OBJECT_PATH, static_cast<void*>(&value));
  return error_ < 0 || value == nullptr ? std::string() : std::string(value);
}
std::int64_t Reader::i64() {
  std::int64_t value = 0;
  basic(SD_BUS_TYPE_INT64, &value);
  return error_ < 0 ? 0 : value;
}
std::uint64_t Reader::u64() {
  std::uint64_t value = 0;
  basic(SD_BUS_TYPE_UINT64, &value);
  return error_ < 0 ? 0 : value;
}
std::uint32_t Reader::u32() {
  std::uint32_t value = 0;
  basic(SD_BUS_TYPE_UINT32, &value);
  return error_ < 0 ? 0 : value;
}
std::int32_t Reader::i32() {
  std::int32_t value = 0;
  basic(SD_BUS_TYPE_INT32, &value);
  return error_ < 0 ? 0 : value;
}
bool Reader::flag() {
  int value = 0;
  basic(SD_BUS_TYPE_BOOLEAN, &value);
  return error_ >= 0 && value != 0;
}
double Reader::number() {
  double value = 0;
  basic(SD_BUS_TYPE_DOUBLE, &value);
  return error_ < 0 ? 0 : value;
}
bool Reader::enter(char type, const char* contents) {
  if (error_ < 0) return false;
  const int r = sd_bus_message_enter_container(message_, type, contents);
  if (r < 0) error_ = r;
  return r > 0;
}
void Reader::leave() {
  if (error_ < 0) return;
  const int r = sd_bus_message_exit_container(message_);
  if (r < 0) error_ = r;
}
bool Reader::at_end() {
  if (error_ < 0) return true;
  const int r = sd_bus_message_at_end(message_, 0);
  if (r < 0) error_ = r;
  return r != 0;
}
std::string Reader::variant_type() {
  if (error_ < 0) return {};
  char type = 0;
  const char* contents = nullptr;
  const int r = sd_bus_message_peek_type(message_, &type, &contents);
  if (r < 0) error_ = r;
  return r > 0 && type == SD_BUS_TYPE_VARIANT && contents != nullptr ? contents : std::string();
}
void Reader::skip(const char* types) {
  if (error_ < 0) return;
  const int r = sd_bus_message_skip(message_, types);
  if (r < 0) error_ = r;
}

}  // namespace gpuhealth::dbus
