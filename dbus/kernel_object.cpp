// SPDX-License-Identifier: Apache-2.0
#include "dbus/kernel_object.hpp"

#include <string>

#include "dbus/calls.hpp"
#include "dbus/model.hpp"
#include "dbus/records.hpp"
#include "dbus/vtables.hpp"
#include "dbus/wire.hpp"

namespace gpuhealth::dbus {
namespace {

constexpr std::uint64_t kChanges = SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE;
// Without this flag sd-bus asks the bus for the caller's rights, and waits; polkit decides, not sd-bus.
constexpr std::uint64_t kOpen = SD_BUS_VTABLE_UNPRIVILEGED;

template <auto Field>
int get(sd_bus* /*bus*/, const char* /*path*/, const char* /*interface*/, const char* /*property*/,
        sd_bus_message* reply, void* userdata, sd_bus_error* /*error*/) noexcept {
  Writer out(reply);
  const auto& value = static_cast<const Objects*>(userdata)->model.kernel.*Field;
  if constexpr (std::is_same_v<std::remove_cvref_t<decltype(value)>, bool>) {
    out.flag(value);
  } else if constexpr (std::is_same_v<std::remove_cvref_t<decltype(value)>, std::string>) {
    out.text(value);
  } else {
    write(out, value);
  }
  return out.error();
}

template <KernelRequest::Verb Verb>
int call(sd_bus_message* message, void* userdata, sd_bus_error* /*error*/) noexcept {
  using V = KernelRequest::Verb;
  KernelRequest request;
  request.verb = Verb;
  Reader in(message);
  if constexpr (Verb == V::Pin || Verb == V::Trial) request.release = in.text();
  if constexpr (Verb == V::Pin) request.expires = in.text();
  if constexpr (Verb == V::Hold) request.on = in.flag();
  if (in.error() < 0) return in.error();
  return static_cast<Objects*>(userdata)->calls.kernel(message, std::move(request));
}

using V = KernelRequest::Verb;

}  // namespace

KernelChanges differences(const KernelState& a, const KernelState& b) {
  using namespace kernel_property;
  KernelChanges out;
  out.set(Running, a.running != b.running);
  out.set(Next, a.next != b.next);
  out.set(NextReason, a.next_reason != b.next_reason);
  out.set(LastKnownGood, a.last_known_good != b.last_known_good);
  out.set(Pinned, a.pinned != b.pinned);
  out.set(Trial, a.trial != b.trial);
  out.set(Hold, a.hold != b.hold);
  out.set(State, a.state != b.state);
  out.set(Advisories, a.advisories != b.advisories);
  return out;
}

const sd_bus_vtable kKernelTable[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_METHOD_WITH_ARGS("Pin", SD_BUS_ARGS("s", release, "s", expires), SD_BUS_NO_RESULT, call<V::Pin>, kOpen),
    SD_BUS_METHOD_WITH_ARGS("Unpin", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, call<V::Unpin>, kOpen),
    SD_BUS_METHOD_WITH_ARGS("Trial", SD_BUS_ARGS("s", release), SD_BUS_NO_RESULT, call<V::Trial>, kOpen),
    SD_BUS_METHOD_WITH_ARGS("Hold", SD_BUS_ARGS("b", on), SD_BUS_NO_RESULT, call<V::Hold>, kOpen),
    SD_BUS_METHOD_WITH_ARGS("Bless", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, call<V::Bless>, kOpen),
    SD_BUS_METHOD_WITH_ARGS("Reject", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, call<V::Reject>, kOpen),
    SD_BUS_METHOD_WITH_ARGS("Qualify", SD_BUS_NO_ARGS, SD_BUS_NO_RESULT, call<V::Qualify>, kOpen),
    SD_BUS_PROPERTY("Running", "s", get<&KernelState::running>, 0, kChanges),
    SD_BUS_PROPERTY("Next", "s", get<&KernelState::next>, 0, kChanges),
    SD_BUS_PROPERTY("NextReason", "s", get<&KernelState::next_reason>, 0, kChanges),
    SD_BUS_PROPERTY("LastKnownGood", "s", get<&KernelState::last_known_good>, 0, kChanges),
    SD_BUS_PROPERTY("Pinned", "s", get<&KernelState::pinned>, 0, kChanges),
    SD_BUS_PROPERTY("Trial", "s", get<&KernelState::trial>, 0, kChanges),
    SD_BUS_PROPERTY("Hold", "b", get<&KernelState::hold>, 0, kChanges),
    SD_BUS_PROPERTY("State", "s", get<&KernelState::state>, 0, kChanges),
    SD_BUS_PROPERTY("Advisories", "as", get<&KernelState::advisories>, 0, kChanges),
    SD_BUS_VTABLE_END};

}  // namespace gpuhealth::dbus
