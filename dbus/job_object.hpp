// SPDX-License-Identifier: Apache-2.0
// /org/gpuhealth1/canary and /org/gpuhealth1/job/ID on the bus.
#pragma once

#include <bitset>
#include <cstddef>

#include "dbus/job.hpp"
#include "dbus/sd.hpp"

namespace gpuhealth::dbus {

struct Objects;

namespace job_property {
enum : std::size_t { State, Reason, Started, Ended, Count };
inline constexpr const char* const kNames[Count] = {"State", "Reason", "Started", "Ended"};
}  // namespace job_property

struct JobObject {
  JobView job;
  bool announced = false;
  std::size_t results_told = 0;  // as signals
  std::bitset<job_property::Count> changed;
};

// Takes over what is new, and marks what is to be told.
void update(JobObject& object, const JobView& now);

// The signals of the results that were not told yet, as long as `room` says yes. False: some are left.
bool tell_results(sd_bus* bus, const std::string& path, JobObject& object, bool (*room)(sd_bus*));

extern const sd_bus_vtable kCanaryTable[];
extern const sd_bus_vtable kJobTable[];

}  // namespace gpuhealth::dbus
