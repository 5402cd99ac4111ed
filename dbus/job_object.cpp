// SPDX-License-Identifier: Apache-2.0
#include "dbus/job_object.hpp"

#include <cstdint>
#include <string>

#include "dbus/calls.hpp"
#include "dbus/model.hpp"
#include "dbus/names.hpp"
#include "dbus/records.hpp"
#include "dbus/vtables.hpp"
#include "dbus/wire.hpp"

namespace gpuhealth::dbus {
namespace {

constexpr std::uint64_t kConst = SD_BUS_VTABLE_PROPERTY_CONST;
constexpr std::uint64_t kChanges = SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE;
// Without this flag sd-bus asks the bus for the caller's rights, and waits; polkit decides, not sd-bus.
constexpr std::uint64_t kOpen = SD_BUS_VTABLE_UNPRIVILEGED;

template <auto Write>
int get(sd_bus* /*bus*/, const char* /*path*/, const char* /*interface*/, const char* /*property*/,
        sd_bus_message* reply, void* userdata, sd_bus_error* /*error*/) noexcept {
  Writer out(reply);
  Write(out, static_cast<const JobObject*>(userdata)->job);
  return out.error();
}

int get_problem(sd_bus* /*bus*/, const char* /*path*/, const char* /*interface*/, const char* /*property*/,
                sd_bus_message* reply, void* userdata, sd_bus_error* /*error*/) noexcept {
  Writer out(reply);
  out.text(static_cast<const Objects*>(userdata)->model.canary_problem);
  return out.error();
}

int run(sd_bus_message* message, void* userdata, sd_bus_error* /*error*/) noexcept {
  return static_cast<Objects*>(userdata)->calls.run_canary(message);
}

int cancel(sd_bus_message* message, void* userdata, sd_bus_error* /*error*/) noexcept {
  // userdata is the job that was found; what found it hangs on the slot.
  auto* objects =
      static_cast<Objects*>(sd_bus_slot_get_userdata(sd_bus_get_current_slot(sd_bus_message_get_bus(message))));
  return objects->calls.cancel_canary(message, static_cast<const JobObject*>(userdata)->job.id);
}

}  // namespace

void update(JobObject& object, const JobView& now) {
  using namespace job_property;
  const auto& before = object.job;
  if (before.state != now.state) object.changed.set(State);
  if (before.reason != now.reason) object.changed.set(Reason);
  if (before.started != now.started) object.changed.set(Started);
  if (before.ended != now.ended) object.changed.set(Ended);
  object.job = now;
}

bool tell_results(sd_bus* bus, const std::string& path, JobObject& object, bool (*room)(sd_bus*)) {
  for (; object.results_told < object.job.results.size(); ++object.results_told) {
    if (!room(bus)) return false;
    sd_bus_message* raw = nullptr;
    if (sd_bus_message_new_signal(bus, &raw, path.c_str(), kJobInterface, "Result") < 0) continue;
    const MessagePtr message(raw);
    Writer out(raw);
    out.text(object.job.results[object.results_told]);
    if (out.error() >= 0) sd_bus_send(bus, raw, nullptr);
  }
  return true;
}

const sd_bus_vtable kCanaryTable[] = {SD_BUS_VTABLE_START(0),
                                      SD_BUS_METHOD_WITH_ARGS("Run", SD_BUS_ARGS("s", device, "u", tier, "as", only),
                                                              SD_BUS_RESULT("o", job), run, kOpen),
                                      SD_BUS_PROPERTY("Problem", "s", get_problem, 0, 0), SD_BUS_VTABLE_END};

const sd_bus_vtable kJobTable[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_METHOD_WITH_ARGS("Cancel", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, cancel, kOpen),
    SD_BUS_SIGNAL_WITH_ARGS("Result", SD_BUS_ARGS("s", line), 0),
    SD_BUS_PROPERTY("Id", "s", (get<[](auto& w, auto& j) { w.text(j.id); }>), 0, kConst),
    SD_BUS_PROPERTY("Device", "s", (get<[](auto& w, auto& j) { w.text(j.device); }>), 0, kConst),
    SD_BUS_PROPERTY("DeviceLabel", "s", (get<[](auto& w, auto& j) { w.text(j.device_label); }>), 0, kConst),
    SD_BUS_PROPERTY("Tier", "u", (get<[](auto& w, auto& j) { w.u32(j.tier); }>), 0, kConst),
    SD_BUS_PROPERTY("Only", "as", (get<[](auto& w, auto& j) { write(w, j.only); }>), 0, kConst),
    SD_BUS_PROPERTY("State", "s", (get<[](auto& w, auto& j) { w.text(j.state); }>), 0, kChanges),
    SD_BUS_PROPERTY("Reason", "s", (get<[](auto& w, auto& j) { w.text(j.reason); }>), 0, kChanges),
    SD_BUS_PROPERTY("Started", "t", (get<[](auto& w, auto& j) { w.time(j.started); }>), 0, kChanges),
    SD_BUS_PROPERTY("Ended", "t", (get<[](auto& w, auto& j) { w.time(j.ended); }>), 0, kChanges),
    SD_BUS_PROPERTY("Results", "as", (get<[](auto& w, auto& j) { write(w, j.results); }>), 0, 0),
    SD_BUS_VTABLE_END};

}  // namespace gpuhealth::dbus
