// SPDX-License-Identifier: Apache-2.0
// Any bytes as each kind of metrics file: no read outside them, and the sampler's view says what the decoder says.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <span>

#include "telemetry/gpu_metrics.hpp"
#include "telemetry/gpu_metrics_table.hpp"
#include "telemetry/metrics_units.hpp"
#include "telemetry/throttle_map.hpp"

namespace {

using namespace gpuhealth;
using namespace gpuhealth::telemetry;

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

// What the full decoder says of a key: the first of its names that is there.
std::optional<std::uint64_t> decoded_value(const GpuMetrics& metrics, MetricsKey key) {
  for (const auto& row : all_key_names()) {
    if (row.key != key) continue;
    const auto* field = metrics.find(row.name);
    if (field == nullptr) continue;
    if (field->values.empty() || !field->values[0] || *field->values[0] < 0) return std::nullopt;
    return field->raw[0];
  }
  return std::nullopt;
}

void check_decoded(const GpuMetrics& metrics) {
  require((metrics.status == MetricsStatus::Invalid) == metrics.fields.empty(), "only what is invalid has no fields");
  require(metrics.status == MetricsStatus::Ok || !metrics.note.empty(), "a status has a note");
  for (const auto& field : metrics.fields) {
    require(field.values.size() == field.raw.size(), "as many values as raw ones");
    require(field.array || field.values.size() == 1, "a scalar has one value");
    require(metrics.find(field.name) == &field, "names are unique");
  }
}

void check_view(std::span<const std::uint8_t> bytes, const GpuMetrics& metrics) {
  const MetricsView view(bytes);
  require(view.status() == metrics.status, "same status");
  require(view.format() == metrics.format && view.content() == metrics.content, "same revision");
  for (unsigned i = 0; i < static_cast<unsigned>(MetricsKey::Count); ++i) {
    const auto key = static_cast<MetricsKey>(i);
    require(view.raw(key) == decoded_value(metrics, key), "same value");
    require(metrics_scale(key, view.format(), view.content(), AsicFamily::ApuRdna3) > 0, "a scale is a factor");
  }
  for (unsigned family = 0; family <= static_cast<unsigned>(AsicFamily::ApuRdna3); ++family) {
    ThrottleInput input;
    input.family = static_cast<AsicFamily>(family);
    input.asic_status = view.raw(MetricsKey::ThrottleStatus);
    input.indep_status = view.raw(MetricsKey::IndepThrottleStatus);
    const auto output = decode_throttle(input);
    require((output.believed.bits() & output.gated.bits()) == 0, "a reason is believed or gated");
    (void)link_speed_gts(view.raw(MetricsKey::PcieLinkSpeed).value_or(0), input.family);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // An exact allocation: one byte further is the sanitizer's.
  const auto copy = std::make_unique<std::uint8_t[]>(size);
  if (size != 0) std::memcpy(copy.get(), data, size);
  const std::span<const std::uint8_t> bytes(copy.get(), size);
  for (const auto file : {MetricsFile::GpuMetrics, MetricsFile::GpuBoardTemperature, MetricsFile::BaseboardTemperature,
                          MetricsFile::Partition}) {
    const auto metrics = decode_gpu_metrics(bytes, file);
    check_decoded(metrics);
    if (file == MetricsFile::GpuMetrics) check_view(bytes, metrics);
  }
  return 0;
}
