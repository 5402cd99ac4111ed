// SPDX-License-Identifier: Apache-2.0
// Any bytes as a request, and as what the driver prints of profiles and clocks.
#include <cstdint>
#include <string_view>

#include "actions/params.hpp"
#include "actions/profile_table.hpp"
#include "actions/request.hpp"
#include "fuzz/require.hpp"

using namespace gpuhealth;
using namespace gpuhealth::actions;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const PowerProfile& profile : parse_profiles(text)) require(!profile.name.empty(), "a profile has a name");
  if (const auto table = parse_clock_table(text)) require(table->highest_mhz > 0, "a clock ticks");
  (void)units::parse_window(text);
  if (const auto span = units::parse_duration(text)) require(span->count() >= 0, "time goes on");
  if (const auto order = order_from(text)) {
    const auto again = order_from(order_json(*order).dump(-1, ' ', true, Json::error_handler_t::replace));
    require(again.has_value(), "a request that was read can be read again");
    require(again->request.kind == order->request.kind, "as the same action");
    (void)Params::read(order->request);
  }
  return 0;
}
