// SPDX-License-Identifier: Apache-2.0
// Bytes for the decoder tests: from captures, and built by hand.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/support/captures.hpp"

using ByteVector = std::vector<std::uint8_t>;

inline ByteVector read_bytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.is_open()) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

// A table as the driver begins one: all ones, then the header.
class TableBuilder {
 public:
  TableBuilder(std::size_t size, unsigned format, unsigned content) : bytes_(size, 0xFF) {
    put(0, 2, size);
    put(2, 1, format);
    put(3, 1, content);
  }
  TableBuilder& put(std::size_t offset, std::size_t width, std::uint64_t value) {
    for (std::size_t i = 0; i < width; ++i) bytes_.at(offset + i) = static_cast<std::uint8_t>(value >> (8 * i) & 0xFF);
    return *this;
  }
  [[nodiscard]] const ByteVector& bytes() const { return bytes_; }

 private:
  ByteVector bytes_;
};

// An attribute stream: header, count, packed attributes.
class StreamBuilder {
 public:
  explicit StreamBuilder(unsigned content = 9) : bytes_{0, 0, 1, static_cast<std::uint8_t>(content), 0, 0, 0, 0} {}
  // type: 0..7 = u8, s8, u16, s16, u32, s32, u64, s64.
  StreamBuilder& add(unsigned id, unsigned type, const std::vector<std::uint64_t>& values, unsigned unit = 0) {
    append(8, std::uint64_t{unit} << 24 | std::uint64_t{type} << 20 | std::uint64_t{id} << 10 | values.size());
    for (const auto value : values) append(std::size_t{1} << (type / 2), value);
    ++count_;
    return *this;
  }
  StreamBuilder& count(std::uint32_t stated) {
    count_ = stated;
    return *this;
  }
  // With the header's size and the count filled in.
  [[nodiscard]] ByteVector bytes() const {
    ByteVector out = bytes_;
    out[0] = static_cast<std::uint8_t>(out.size() & 0xFF);
    out[1] = static_cast<std::uint8_t>(out.size() >> 8);
    for (std::size_t i = 0; i < 4; ++i) out[4 + i] = static_cast<std::uint8_t>(count_ >> (8 * i) & 0xFF);
    return out;
  }

 private:
  void append(std::size_t width, std::uint64_t value) {
    for (std::size_t i = 0; i < width; ++i)
      bytes_.push_back(static_cast<std::uint8_t>(i < 8 ? value >> (8 * i) & 0xFF : 0));
  }
  ByteVector bytes_;
  std::uint32_t count_ = 0;
};
