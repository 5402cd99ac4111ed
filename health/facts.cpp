// SPDX-License-Identifier: Apache-2.0
#include "health/facts.hpp"

#include <fmt/format.h>

#include <cmath>

namespace gpuhealth::health {
namespace {

constexpr double kMib = 1024.0 * 1024.0;
constexpr double kGib = 1024.0 * kMib;

}  // namespace

std::optional<double> number(const Sample& sample, ReadingId id) {
  const auto value = sample.value(id);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

std::optional<double> power_now(const Sample& sample) {
  const auto input = number(sample, ReadingId::PowerInput);
  return input ? input : number(sample, ReadingId::PowerAverage);
}

Duration seconds(double s) {
  return Duration(std::llround(s * 1e6));
}

std::string text_of(double value) {
  auto out = fmt::format("{:.1f}", value);
  if (out.ends_with(".0")) out.resize(out.size() - 2);
  return out;
}

std::string text_of(double value, Unit unit) {
  if (unit == Unit::Lane) return "x" + text_of(value);
  if (unit == Unit::Count) return text_of(value);
  if (unit == Unit::Byte) return value < kGib ? text_of(value / kMib) + " MiB" : text_of(value / kGib) + " GiB";
  return text_of(value) + " " + std::string(to_string(unit));
}

Evidence evidence_of(ReadingId id, double value) {
  const auto* row = find_reading(id);
  if (row == nullptr) return {"reading", text_of(value)};
  return {std::string(row->name), text_of(value, row->unit)};
}

}  // namespace gpuhealth::health
