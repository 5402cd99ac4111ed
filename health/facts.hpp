// SPDX-License-Identifier: Apache-2.0
// Small facts that several detectors share, and how numbers are written for people.
#pragma once

#include <optional>
#include <string>

#include "core/clock.hpp"
#include "core/condition.hpp"
#include "core/device.hpp"
#include "core/sample.hpp"

namespace gpuhealth::health {

// The value where the reading is valid and finite.
std::optional<double> number(const Sample& sample, ReadingId id);
// Power now, in W: instantaneous where the card has it, else averaged (which of the two exists depends on the ASIC).
std::optional<double> power_now(const Sample& sample);

Duration seconds(double s);

// "112", "2.5": at most one decimal.
std::string text_of(double value);
// "112 C", "2.5 GT/s"; lanes as "x16", bytes as "1.5 GiB".
std::string text_of(double value, Unit unit);
// A reading as evidence, under its own name.
Evidence evidence_of(ReadingId id, double value);

}  // namespace gpuhealth::health
