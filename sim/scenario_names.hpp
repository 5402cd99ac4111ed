// SPDX-License-Identifier: Apache-2.0
// The words that a scenario may use, and what they stand for.
#pragma once

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <vector>

#include "sim/scenario.hpp"

namespace gpuhealth::sim {

using std::string_view;

template <class T>
struct Named {
  string_view name;
  T value;
};

inline constexpr auto kModels = std::to_array<Named<CardModel (*)()>>({{"rx580", rx580},
                                                                       {"rx6900xt", rx6900xt},
                                                                       {"rx7900xtx", rx7900xtx},
                                                                       {"rx9070", rx9070},
                                                                       {"phoenix", phoenix_apu},
                                                                       {"mi210", mi210},
                                                                       {"mi300x", mi300x}});
inline constexpr auto kErrors = std::to_array<Named<int>>({{"EACCES", EACCES},
                                                           {"EBUSY", EBUSY},
                                                           {"EINVAL", EINVAL},
                                                           {"EIO", EIO},
                                                           {"ENODATA", ENODATA},
                                                           {"ENODEV", ENODEV},
                                                           {"ENOENT", ENOENT},
                                                           {"EOPNOTSUPP", EOPNOTSUPP},
                                                           {"EPERM", EPERM},
                                                           {"EREMOTEIO", EREMOTEIO},
                                                           {"ETIME", ETIME},
                                                           {"ETIMEDOUT", ETIMEDOUT}});
inline constexpr auto kDaemonSteps = std::to_array<Named<DaemonStep>>({{"stop", DaemonStep::Stop},
                                                                       {"start", DaemonStep::Start},
                                                                       {"kill", DaemonStep::Kill},
                                                                       {"reload", DaemonStep::Reload}});
inline constexpr auto kBusSteps = std::to_array<Named<BusStep>>({{"restart", BusStep::Restart}});
inline constexpr auto kPolkits = std::to_array<Named<Polkit>>(
    {{"absent", Polkit::Absent}, {"allows", Polkit::Allows}, {"refuses", Polkit::Refuses}});
inline constexpr auto kForms = std::to_array<Named<UserptrForm>>(
    {{"healthy", UserptrForm::Healthy}, {"fixed", UserptrForm::Fixed}, {"stall", UserptrForm::Stall}});
inline constexpr auto kAccesses = std::to_array<Named<AccessKind>>(
    {{"opens", AccessKind::Open}, {"reads", AccessKind::Read}, {"writes", AccessKind::Write}});

template <class T, std::size_t N>
std::array<string_view, N> names_of(const std::array<Named<T>, N>& rows) {
  std::array<string_view, N> out{};
  std::ranges::transform(rows, out.begin(), &Named<T>::name);
  return out;
}

template <std::size_t N>
std::vector<string_view> words(const std::array<string_view, N>& fixed) {
  return {fixed.begin(), fixed.end()};
}

}  // namespace gpuhealth::sim
