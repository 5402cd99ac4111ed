// SPDX-License-Identifier: Apache-2.0
#include "telemetry/gpu_metrics_frame.hpp"

namespace gpuhealth::telemetry {
namespace {

std::optional<std::uint64_t> value_at(std::span<const std::uint8_t> bytes, std::size_t offset, std::size_t width) {
  const auto value = load_le(bytes.data() + offset, width);
  if (value == sentinel_of(width)) return std::nullopt;
  return value;
}

std::optional<std::uint64_t> value_in_stream(std::span<const std::uint8_t> bytes, MetricsKey key) {
  const auto wanted = key_attribute(key);
  if (!wanted) return std::nullopt;
  AttributeWalk walk(bytes);
  while (const auto attribute = walk.next()) {
    if (attribute->id != *wanted) continue;
    if (attribute->count == 0) return std::nullopt;
    const auto width = width_of(attribute->type);
    const auto value = value_at(bytes, attribute->offset, width);
    // No key can be negative: such a value is not what the key means.
    const bool negative = is_signed(attribute->type) && value && (*value >> (8 * width - 1)) != 0;
    return negative ? std::nullopt : value;
  }
  return std::nullopt;
}

}  // namespace

MetricsView::MetricsView(std::span<const std::uint8_t> bytes) {
  const auto frame = frame_metrics(bytes, MetricsFile::GpuMetrics);
  bytes_ = frame.bytes;
  format_ = frame.format;
  content_ = frame.content;
  status_ = frame.status;
  layout_ = frame.layout;
  stream_ = frame.stream;
}

std::optional<std::uint64_t> MetricsView::raw(MetricsKey key) const {
  if (key >= MetricsKey::Count) return std::nullopt;
  if (stream_) return value_in_stream(bytes_, key);
  if (layout_ == nullptr) return std::nullopt;
  const auto slot = key_slot(*layout_, key);
  if (slot.width == 0 || slot.end > bytes_.size()) return std::nullopt;
  return value_at(bytes_, slot.offset, slot.width);
}

}  // namespace gpuhealth::telemetry
