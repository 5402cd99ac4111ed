// SPDX-License-Identifier: Apache-2.0
#include "telemetry/source_text.hpp"

#include <cstdint>

#include "telemetry/parse.hpp"
#include "telemetry/ras.hpp"

namespace gpuhealth::telemetry {
namespace {

std::optional<double> as_double(std::optional<std::uint64_t> n) {
  if (!n) return std::nullopt;
  return static_cast<double>(*n);
}

}  // namespace

std::optional<Values> parse_text(const SourceRow* row, std::string_view text) {
  if (row == nullptr) {
    const auto ras = parse_ras_counts(text);
    if (!ras) return std::nullopt;
    return Values{as_double(ras->correctable), as_double(ras->uncorrectable), as_double(ras->deferred)};
  }
  std::optional<double> one;
  switch (row->parse) {
    case SourceParse::Integer:
    case SourceParse::Energy:
      if (const auto n = parse_integer(text)) one = static_cast<double>(*n) * row->scale;
      break;
    case SourceParse::LinkSpeed:
      one = parse_link_speed(text);
      break;
    case SourceParse::AllOnes:
      if (text.size() >= 4) one = text.substr(0, 4) == "\xff\xff\xff\xff" ? 0 : 1;
      break;
    case SourceParse::BadPages:
      if (const auto pages = parse_bad_pages(text)) one = static_cast<double>(pages->total());
      break;
    case SourceParse::Aer:
      one = as_double(parse_aer_total(text));
      break;
    case SourceParse::Dpm:
      const auto dpm = summarise_dpm(text);
      if (!dpm) return std::nullopt;
      return Values{dpm->current, dpm->lowest, dpm->highest};
  }
  if (!one) return std::nullopt;
  return Values{one, {}, {}};
}

}  // namespace gpuhealth::telemetry
