// SPDX-License-Identifier: Apache-2.0
#include "telemetry/gpu_metrics_frame.hpp"

#include <algorithm>

namespace gpuhealth::telemetry {
namespace {

constexpr std::size_t kHeaderSize = 4;
constexpr unsigned kNoSize = 0xFFFF;

bool plausible_size(unsigned size) {
  return size >= kHeaderSize && size != kNoSize;
}

// A newer revision may be either kind: it is read as a stream only where all of it is one.
bool reads_as_stream(std::span<const std::uint8_t> bytes) {
  AttributeWalk walk(bytes);
  if (walk.stated() <= 0) return false;
  while (walk.next()) {
  }
  return walk.end() == AttributeWalk::End::Complete && !walk.reserved_used();
}

MetricsStatus status_of_stream(std::span<const std::uint8_t> read, std::span<const std::uint8_t> counted) {
  AttributeWalk walk(counted);
  if (walk.stated() < 0) return MetricsStatus::Invalid;
  while (walk.next()) {
  }
  if (walk.end() != AttributeWalk::End::Complete) return MetricsStatus::Truncated;
  return read.size() > counted.size() ? MetricsStatus::Longer : MetricsStatus::Ok;
}

MetricsStatus status_of_struct(std::size_t read, std::size_t stated, std::size_t known) {
  if (read < stated || stated < known) return MetricsStatus::Truncated;
  if (read > stated || stated > known) return MetricsStatus::Longer;
  return MetricsStatus::Ok;
}

}  // namespace

MetricsFrame frame_metrics(std::span<const std::uint8_t> bytes, MetricsFile file) {
  MetricsFrame frame;
  if (bytes.size() < kHeaderSize) return frame;
  frame.structure_size = static_cast<unsigned>(load_le(bytes.data(), 2));
  frame.format = bytes[2];
  frame.content = bytes[3];
  if (!plausible_size(frame.structure_size)) return frame;
  frame.bytes = bytes.first(std::min<std::size_t>(bytes.size(), frame.structure_size));

  if (is_stream(file, frame.format, frame.content)) {
    frame.status = status_of_stream(bytes, frame.bytes);
    frame.stream = frame.status != MetricsStatus::Invalid;
    return frame;
  }
  if (is_newer_than_known(file, frame.format, frame.content)) {
    frame.status = MetricsStatus::UnknownRevision;
    const bool after_stream = is_stream(file, frame.format, newest_layout(file, frame.format)->content + 1U);
    frame.stream = after_stream && reads_as_stream(frame.bytes);
    if (!frame.stream) frame.layout = newest_layout(file, frame.format);
    return frame;
  }
  frame.layout = find_layout(file, frame.format, frame.content);
  if (frame.layout != nullptr) frame.status = status_of_struct(bytes.size(), frame.structure_size, frame.layout->size);
  return frame;
}

AttributeWalk::AttributeWalk(std::span<const std::uint8_t> bytes) : bytes_(bytes) {
  if (bytes_.size() < at_) {
    stated_ = 1;  // there must have been something; next() finds it cut
    return;
  }
  stated_ = static_cast<std::int32_t>(load_le(bytes_.data() + kHeaderSize, 4));
}

std::optional<Attribute> AttributeWalk::next() {
  if (end_ != End::Complete || seen_ >= stated_) return std::nullopt;
  if (bytes_.size() < at_ || bytes_.size() - at_ < 8) {
    end_ = End::Cut;
    return std::nullopt;
  }
  const auto encoding = load_le(bytes_.data() + at_, 8);
  reserved_used_ = reserved_used_ || (encoding >> 32) != 0;
  const auto type = static_cast<unsigned>(encoding >> 20 & 0xF);
  if (type > static_cast<unsigned>(FieldType::S64)) {
    end_ = End::UnknownType;  // of unknown size: what follows cannot be found
    return std::nullopt;
  }
  const Attribute out{static_cast<unsigned>(encoding >> 10 & 0x3FF), static_cast<FieldType>(type),
                      static_cast<unsigned>(encoding & 0x3FF), at_ + 8};
  const auto size = out.count * width_of(out.type);
  if (bytes_.size() - out.offset < size) {
    end_ = End::Cut;
    return std::nullopt;
  }
  at_ = out.offset + size;
  ++seen_;
  return out;
}

}  // namespace gpuhealth::telemetry
