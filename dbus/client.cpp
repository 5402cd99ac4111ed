// SPDX-License-Identifier: Apache-2.0
#include "dbus/client.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>

#include "dbus/client_bus.hpp"
#include "dbus/kernel_client.hpp"
#include "dbus/names.hpp"
#include "dbus/records.hpp"
#include "dbus/sd.hpp"
#include "dbus/views.hpp"
#include "dbus/wire.hpp"

namespace gpuhealth::dbus {
namespace {

using std::chrono::milliseconds;
using Steady = std::chrono::steady_clock;

constexpr std::chrono::seconds kDialogueTime{120};

std::uint64_t microseconds(milliseconds d) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(std::chrono::microseconds(d).count(), 1));
}

tl::unexpected<Error> no_bus(const std::string& where, int error) {
  const ErrorCode code = error == -EACCES || error == -EPERM ? ErrorCode::NotPermitted : ErrorCode::Unavailable;
  return fail(code, "cannot connect to " + where + ": " + std::strerror(-error) + "; is dbus-daemon running?", -error);
}

}  // namespace

Error from_bus(const BusError& error, int r) {
  if (r == -ETIMEDOUT || std::strcmp(error.name(), SD_BUS_ERROR_NO_REPLY) == 0)
    return {ErrorCode::Unavailable, "gpuhealthd does not answer; look at: systemctl status gpuhealthd", ETIMEDOUT};
  // sd-bus names its own failures after the errno where D-Bus has no word for them.
  const bool disconnected = r == -ECONNRESET || r == -ENOTCONN || r == -EPIPE || r == -ESHUTDOWN;
  if (disconnected || error.name()[0] == '\0')
    return {ErrorCode::Unavailable, std::string("the bus is gone: ") + std::strerror(-r), -r};
  const ErrorCode code = error_code(error.name());
  const bool ours = std::string_view(error.name()).starts_with("org.gpuhealth1.Error.");
  if (code == ErrorCode::Unavailable && !ours)
    return {code,
            "gpuhealthd is not running; start it with: systemctl start gpuhealthd (" + std::string(error.text()) + ")",
            0};
  return {code, error.text(), 0};
}

namespace {

Result<BusPtr> open_bus(const std::string& address) {
  BusPtr bus;
  const int r = open_bus(bus, address);
  if (r < 0) return no_bus(address.empty() ? "the system bus" : "the bus at " + address, r);
  return bus;
}

// sd-bus would wait for the bus's greeting as long as it takes.
Result<void> wait_ready(sd_bus* bus, const std::string& where, milliseconds deadline) {
  const auto end = Steady::now() + deadline;
  while (sd_bus_is_ready(bus) <= 0) {
    int r = sd_bus_process(bus, nullptr);
    if (r > 0) continue;
    const auto left = std::chrono::duration_cast<milliseconds>(end - Steady::now());
    if (r == 0 && left.count() <= 0) r = -ETIMEDOUT;
    if (r == 0) r = sd_bus_wait(bus, microseconds(left));
    if (r < 0 && r != -EINTR) return no_bus(where, r);
  }
  return {};
}

}  // namespace

Result<BusPtr> connect_client(const std::string& address, milliseconds deadline) {
  const char* wish = std::getenv("GPUHEALTH_BUS_ADDRESS");
  const std::string where = !address.empty() ? address : wish != nullptr ? wish : "";
  auto bus = open_bus(where);
  if (!bus) return tl::unexpected(bus.error());
  const std::string text = where.empty() ? "the system bus" : "the bus at " + where;
  if (auto ready = wait_ready(bus->get(), text, deadline); !ready) return tl::unexpected(ready.error());
  return bus;
}

struct Client::Impl {
  BusPtr bus;
  milliseconds deadline{};
  std::vector<SlotPtr> matches;
  bool changed = false;  // a signal came
  Activation activation = Activation::Allowed;

  Result<MessagePtr> call(sd_bus_message* message, milliseconds limit);
  template <class Write>
  Result<MessagePtr> call_manager(const char* method, const Write& write_to);
  Result<MessagePtr> ask(const char* interface, const char* method, const char* argument);
  Result<MessagePtr> managed_objects();
  Result<void> change(const char* method, const std::string* argument);
  Result<void> subscribe();
};

Result<MessagePtr> Client::Impl::call(sd_bus_message* message, milliseconds limit) {
  BusError error;
  sd_bus_message* reply = nullptr;
  sd_bus_message_set_auto_start(message, activation == Activation::Allowed ? 1 : 0);
  const int r = sd_bus_call(bus.get(), message, microseconds(limit), error.get(), &reply);
  if (r < 0) return tl::unexpected(from_bus(error, r));
  return MessagePtr(reply);
}

template <class Write>
Result<MessagePtr> Client::Impl::call_manager(const char* method, const Write& write_to) {
  sd_bus_message* raw = nullptr;
  int r = sd_bus_message_new_method_call(bus.get(), &raw, kBusName, kRootPath, kManagerInterface, method);
  const MessagePtr message(raw);
  if (r >= 0) {
    Writer out(raw);
    write_to(out);
    r = out.error();
  }
  if (r < 0) return fail(ErrorCode::Internal, std::string("cannot write the call ") + method, -r);
  return call(raw, deadline);
}

Result<MessagePtr> Client::Impl::ask(const char* interface, const char* method, const char* argument) {
  sd_bus_message* raw = nullptr;
  int r = sd_bus_message_new_method_call(bus.get(), &raw, kBusName, kRootPath, interface, method);
  const MessagePtr message(raw);
  if (r >= 0 && argument != nullptr) r = Writer(raw).text(argument).error();
  if (r < 0) return fail(ErrorCode::Unavailable, "the bus is gone", -r);
  return call(raw, deadline);
}

Result<MessagePtr> Client::Impl::managed_objects() {
  return ask("org.freedesktop.DBus.ObjectManager", "GetManagedObjects", nullptr);
}

Result<void> Client::Impl::change(const char* method, const std::string* argument) {
  sd_bus_message* raw = nullptr;
  int r = sd_bus_message_new_method_call(bus.get(), &raw, kBusName, kRootPath, kManagerInterface, method);
  const MessagePtr message(raw);
  if (r >= 0 && argument != nullptr) r = Writer(raw).text(*argument).error();
  if (r >= 0) r = sd_bus_message_set_allow_interactive_authorization(raw, 1);
  if (r < 0) return fail(ErrorCode::Internal, std::string("cannot write the call ") + method, -r);
  auto reply = call(raw, std::max<milliseconds>(deadline, kDialogueTime));
  if (!reply) return tl::unexpected(reply.error());
  return {};
}

Result<void> Client::Impl::subscribe() {
  if (!matches.empty()) return {};
  const auto note = [](sd_bus_message*, void* userdata, sd_bus_error*) {
    static_cast<Impl*>(userdata)->changed = true;
    return 0;
  };
  constexpr const char* rules[] = {
      "type='signal',sender='org.gpuhealth1',path_namespace='/org/gpuhealth1'",
      "type='signal',sender='org.freedesktop.DBus',interface='org.freedesktop.DBus',member='NameOwnerChanged',"
      "arg0='org.gpuhealth1'"};
  for (const char* rule : rules) {
    sd_bus_slot* slot = nullptr;
    const int r = sd_bus_add_match(bus.get(), &slot, rule, note, this);
    if (r < 0) {
      matches.clear();
      return fail(ErrorCode::Unavailable, std::string("cannot listen on the bus: ") + std::strerror(-r), -r);
    }
    matches.emplace_back(slot);
  }
  return {};
}

Client::Client(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Client::Client(Client&&) noexcept = default;
Client& Client::operator=(Client&&) noexcept = default;
Client::~Client() = default;

Result<Client> Client::connect(const std::string& address, milliseconds deadline, Activation activation) {
  const char* wish = std::getenv("GPUHEALTH_BUS_ADDRESS");
  const std::string where = !address.empty() ? address : wish != nullptr ? wish : "";
  auto bus = open_bus(where);
  if (!bus) return tl::unexpected(bus.error());
  auto impl = std::make_unique<Impl>();
  impl->bus = std::move(*bus);
  impl->deadline = deadline;
  impl->activation = activation;
  const std::string text = where.empty() ? "the system bus" : "the bus at " + where;
  if (auto ready = wait_ready(impl->bus.get(), text, deadline); !ready) return tl::unexpected(ready.error());
  sd_bus_set_method_call_timeout(impl->bus.get(), microseconds(deadline));
  if (auto pong = impl->ask("org.freedesktop.DBus.Peer", "Ping", nullptr); !pong) return tl::unexpected(pong.error());
  return Client(std::move(impl));
}

namespace {

std::string* text_of(KernelState& view, std::string_view name) {
  if (name == "Running") return &view.running;
  if (name == "Next") return &view.next;
  if (name == "NextReason") return &view.next_reason;
  if (name == "LastKnownGood") return &view.last_known_good;
  if (name == "Pinned") return &view.pinned;
  if (name == "Trial") return &view.trial;
  return name == "State" ? &view.state : nullptr;
}

// Properties of a newer daemon are passed over.
KernelState read_kernel(Reader& in) {
  KernelState view;
  const auto text = [&](std::string& to) {
    if (!in.enter('v', "s")) return;
    to = in.text();
    in.leave();
  };
  if (!in.enter('a', "{sv}")) return view;
  while (in.enter('e', "sv")) {
    const std::string name = in.text();
    if (name == "Hold") {
      if (in.enter('v', "b")) {
        view.hold = in.flag();
        in.leave();
      }
    } else if (name == "Advisories") {
      if (in.enter('v', "as")) {
        view.advisories = read_texts(in);
        in.leave();
      }
    } else if (std::string* field = text_of(view, name)) {
      text(*field);
    } else {
      in.skip("v");
    }
    in.leave();
  }
  in.leave();
  return view;
}

tl::unexpected<Error> unreadable(int error) {
  return fail(ErrorCode::InvalidInput,
              "gpuhealthd's answer cannot be read; are its version and this program's the same?", -error);
}

template <class Rows, class Read>
Result<Rows> decoded(Result<MessagePtr> reply, const Read& read) {
  if (!reply) return tl::unexpected(reply.error());
  Reader in(reply->get());
  Rows rows = read(in);
  if (in.error() < 0) return unreadable(in.error());
  return rows;
}

}  // namespace

Result<ManagerView> Client::manager() {
  return decoded<ManagerView>(impl_->ask("org.freedesktop.DBus.Properties", "GetAll", kManagerInterface), read_manager);
}

Result<std::vector<DeviceView>> Client::devices() {
  return decoded<std::vector<DeviceView>>(impl_->managed_objects(),
                                          [](Reader& in) { return read_objects(in).devices; });
}

Result<std::vector<Condition>> Client::conditions() {
  return decoded<std::vector<Condition>>(impl_->managed_objects(),
                                         [](Reader& in) { return read_objects(in).conditions; });
}

Result<Snapshot> Client::snapshot() {
  Snapshot out;
  auto properties = impl_->ask("org.freedesktop.DBus.Properties", "GetAll", kManagerInterface);
  if (!properties) return tl::unexpected(properties.error());
  auto objects = impl_->managed_objects();
  if (!objects) return tl::unexpected(objects.error());
  // Each answer is read twice: as what this version knows, and loosely.
  Reader manager(properties->get());
  out.manager = read_manager(manager);
  Reader known(objects->get());
  auto views = read_objects(known);
  sd_bus_message_rewind(properties->get(), 1);
  sd_bus_message_rewind(objects->get(), 1);
  Reader rest(properties->get());
  out.manager_properties = read_loose_properties(rest);
  Reader others(objects->get());
  out.others = read_loose_objects(others, {kActionInterface, kKernelInterface});
  for (const Reader* in : {&manager, &known, &rest, &others}) {
    if (in->error() < 0) return unreadable(in->error());
  }
  out.devices = std::move(views.devices);
  out.conditions = std::move(views.conditions);
  return out;
}

Result<std::vector<Condition>> Client::past_conditions(WallTime since, std::uint32_t limit) {
  auto reply = impl_->call_manager("GetPastConditions", [&](Writer& out) { out.time(since).u32(limit); });
  return decoded<std::vector<Condition>>(std::move(reply), read_conditions);
}

Result<std::vector<Event>> Client::events(WallTime since, WallTime until, std::uint32_t limit) {
  auto reply = impl_->call_manager("GetEvents", [&](Writer& out) { out.time(since).time(until).u32(limit); });
  return decoded<std::vector<Event>>(std::move(reply), read_events);
}

Result<std::vector<store::HistoryPoint>> Client::history(const store::HistoryQuery& query) {
  const ReadingInfo* reading = find_reading(query.reading);
  if (reading == nullptr) return fail(ErrorCode::InvalidInput, "no reading has this number");
  auto reply = impl_->call_manager("GetHistory", [&](Writer& out) {
    out.text(query.device).text(reading->name).time(query.since).time(query.until).u32(query.max_points);
  });
  return decoded<std::vector<store::HistoryPoint>>(std::move(reply), read_history);
}

Result<void> Client::acknowledge(const std::string& condition_id) {
  return impl_->change("AcknowledgeCondition", &condition_id);
}

Result<void> Client::reload() {
  return impl_->change("Reload", nullptr);
}

Result<std::vector<ActionView>> Client::actions() {
  return decoded<std::vector<ActionView>>(impl_->managed_objects(),
                                          [](Reader& in) { return read_objects(in).actions; });
}

Result<void> Client::reload_policy() {
  return impl_->change("ReloadPolicy", nullptr);
}

Result<void> Client::reset_breaker() {
  return impl_->change("ResetBreaker", nullptr);
}

Result<void> Client::confirm_action(const std::string& id) {
  return impl_->change("ConfirmAction", &id);
}

Result<void> Client::revert_action(const std::string& id) {
  return impl_->change("RevertAction", &id);
}

Result<void> Client::watch(milliseconds tick, const std::function<bool()>& on_change) {
  if (auto listening = impl_->subscribe(); !listening) return listening;
  auto next = Steady::now() + tick;
  for (;;) {
    int r = sd_bus_process(impl_->bus.get(), nullptr);
    if (r > 0) continue;
    const auto left = std::chrono::duration_cast<milliseconds>(next - Steady::now());
    if (r == 0 && (impl_->changed || left.count() <= 0)) {
      impl_->changed = false;
      next = Steady::now() + tick;
      if (!on_change()) return {};
      continue;
    }
    if (r == 0) r = sd_bus_wait(impl_->bus.get(), microseconds(left));
    if (r < 0 && r != -EINTR)
      return fail(ErrorCode::Unavailable, std::string("the bus is gone: ") + std::strerror(-r), -r);
  }
}

// --- the kernel's object

struct KernelClient::Impl {
  BusPtr bus;
  milliseconds deadline{};

  Result<MessagePtr> call(sd_bus_message* message, milliseconds limit) {
    BusError error;
    sd_bus_message* reply = nullptr;
    const int r = sd_bus_call(bus.get(), message, microseconds(limit), error.get(), &reply);
    if (r < 0) return tl::unexpected(from_bus(error, r));
    return MessagePtr(reply);
  }
};

KernelClient::KernelClient(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
KernelClient::KernelClient(KernelClient&&) noexcept = default;
KernelClient& KernelClient::operator=(KernelClient&&) noexcept = default;
KernelClient::~KernelClient() = default;

Result<KernelClient> KernelClient::connect(const std::string& address, milliseconds deadline) {
  auto bus = connect_client(address, deadline);
  if (!bus) return tl::unexpected(bus.error());
  auto impl = std::make_unique<Impl>();
  impl->bus = std::move(*bus);
  impl->deadline = deadline;
  return KernelClient(std::move(impl));
}

Result<KernelState> KernelClient::state() {
  sd_bus_message* raw = nullptr;
  int r = sd_bus_message_new_method_call(impl_->bus.get(), &raw, kBusName, kKernelPath,
                                         "org.freedesktop.DBus.Properties", "GetAll");
  const MessagePtr message(raw);
  if (r >= 0) r = Writer(raw).text(kKernelInterface).error();
  if (r < 0) return fail(ErrorCode::Unavailable, "the bus is gone", -r);
  return decoded<KernelState>(impl_->call(raw, impl_->deadline), read_kernel);
}

Result<void> KernelClient::ask(const KernelRequest& request) {
  using V = KernelRequest::Verb;
  constexpr std::chrono::minutes kMenuTime{20};
  constexpr std::array kMethods = {"Pin", "Unpin", "Trial", "Hold", "Bless", "Reject", "Qualify"};
  const char* method = kMethods.at(static_cast<std::size_t>(request.verb));
  sd_bus_message* raw = nullptr;
  int r = sd_bus_message_new_method_call(impl_->bus.get(), &raw, kBusName, kKernelPath, kKernelInterface, method);
  const MessagePtr message(raw);
  if (r >= 0) {
    Writer out(raw);
    if (request.verb == V::Pin || request.verb == V::Trial) out.text(request.release);
    if (request.verb == V::Pin) out.text(request.expires);
    if (request.verb == V::Hold) out.flag(request.on);
    r = out.error();
  }
  if (r >= 0) r = sd_bus_message_set_allow_interactive_authorization(raw, 1);
  if (r < 0) return fail(ErrorCode::Internal, std::string("cannot write the call ") + method, -r);
  auto reply = impl_->call(raw, kMenuTime);
  if (!reply) return tl::unexpected(reply.error());
  return {};
}

}  // namespace gpuhealth::dbus
