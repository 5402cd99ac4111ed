// SPDX-License-Identifier: Apache-2.0
#include "dbus/server.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "dbus/announce.hpp"
#include "dbus/calls.hpp"
#include "dbus/model.hpp"
#include "dbus/names.hpp"
#include "dbus/pump.hpp"
#include "dbus/sd.hpp"
#include "dbus/vtables.hpp"
#include "dbus/wire.hpp"

namespace asio = boost::asio;

namespace gpuhealth::dbus {
namespace {

constexpr std::chrono::seconds kFirstRetry{1};
constexpr std::chrono::seconds kLastRetry{30};

Result<BusPtr> open_bus(const Address& address) {
  BusPtr bus;
  const int r = open_bus(bus, address.value);
  if (r < 0) {
    const std::string where = address.value.empty() ? "the system bus" : "the bus at " + address.value;
    return fail(ErrorCode::Unavailable, "cannot connect to " + where + ": " + std::strerror(-r) + "; trying again", -r);
  }
  return bus;
}

}  // namespace

struct Server::Impl {
  // Everything that dies with the bus. Destroyed from the bottom up: slots before what they point to.
  struct Connection {
    BusPtr bus;
    std::unique_ptr<Calls> calls;
    std::unique_ptr<Objects> objects;
    std::vector<SlotPtr> slots;
    SlotPtr name_slot;
    bool owns_name = false;
    std::unique_ptr<Pump> pump;
  };

  Impl(asio::io_context& context, Address where, Requests what)
      : io(context), address(std::move(where)), requests(std::move(what)), retry_timer(context) {}

  void connect();
  void retry_later();
  void report(Error problem);
  void lost(int error);
  void pump();
  bool tell();
  void named(sd_bus_message* reply);
  static int name_answered(sd_bus_message* reply, void* userdata, sd_bus_error* error) noexcept;

  asio::io_context& io;
  Address address;
  Requests requests;
  Model model;
  std::function<void(Error)> on_problem;
  std::string last_problem;  // each is told once
  asio::steady_timer retry_timer;
  std::chrono::seconds retry_after = kFirstRetry;
  std::unique_ptr<Connection> connection;
  std::shared_ptr<Impl*> alive = std::make_shared<Impl*>(this);  // handlers of the loop may outlive us
};

void Server::Impl::report(Error problem) {
  if (std::exchange(last_problem, problem.text) == problem.text) return;
  if (on_problem) on_problem(std::move(problem));
}

void Server::Impl::retry_later() {
  retry_timer.expires_after(retry_after);
  retry_after = std::min(retry_after * 2, kLastRetry);
  retry_timer.async_wait([weak = std::weak_ptr(alive)](const boost::system::error_code& error) {
    const auto self = weak.lock();
    if (self && !error) (*self)->connect();
  });
}

void Server::Impl::connect() {
  connection.reset();
  auto bus = open_bus(address);
  if (!bus) {
    report(bus.error());
    return retry_later();
  }
  auto fresh = std::make_unique<Connection>();
  fresh->bus = std::move(*bus);
  sd_bus* raw = fresh->bus.get();
  fresh->calls = std::make_unique<Calls>(raw, model, requests, [this] { pump(); });
  fresh->objects = std::make_unique<Objects>(model, *fresh->calls);
  fresh->slots = add_objects(raw, *fresh->objects);
  // Not queued behind another owner: a second daemon must not wait silently for the first one's death.
  sd_bus_slot* slot = nullptr;
  const int r = sd_bus_request_name_async(raw, &slot, kBusName, 0, &Impl::name_answered, this);
  fresh->name_slot.reset(slot);
  if (fresh->slots.empty() || r < 0) {
    report({ErrorCode::Internal, "cannot put the objects on the bus", 0});
    return retry_later();
  }
  fresh->pump = std::make_unique<Pump>(io, raw, [this] { return tell(); }, [this](int error) { lost(error); });
  connection = std::move(fresh);
  pump();
}

void Server::Impl::lost(int error) {
  if (connection) connection->calls->everybody_left();
  connection.reset();
  report({ErrorCode::Unavailable, std::string("the bus is gone: ") + std::strerror(-error) + "; connecting again",
          -error});
  retry_later();
}

void Server::Impl::pump() {
  if (connection && connection->pump) connection->pump->pump();
}

bool Server::Impl::tell() {
  return connection && connection->owns_name && announce(connection->bus.get(), model);
}

int Server::Impl::name_answered(sd_bus_message* reply, void* userdata, sd_bus_error* /*error*/) noexcept {
  static_cast<Impl*>(userdata)->named(reply);
  return 1;
}

void Server::Impl::named(sd_bus_message* reply) {
  constexpr std::uint32_t primary_owner = 1;
  constexpr std::uint32_t already_owner = 4;
  const sd_bus_error* refused = sd_bus_message_get_error(reply);
  Reader in(reply);
  const std::uint32_t result = refused != nullptr ? 0 : in.u32();
  if (result == primary_owner || result == already_owner) {
    connection->owns_name = true;
    model.mark_all_told();
    last_problem.clear();
    retry_after = kFirstRetry;
    return;
  }
  if (refused != nullptr)
    report({error_code(refused->name),
            std::string("the bus refuses the name ") + kBusName + ": " +
                (refused->message != nullptr ? refused->message : refused->name) + "; trying again",
            0});
  else
    report(
        {ErrorCode::Unavailable,
         std::string("another process owns the name ") + kBusName + " (is a second gpuhealthd running?); trying again",
         0});
  // The connection is replaced when the timer fires: it cannot be closed from inside its own handler.
  retry_later();
}

Server::Server(asio::io_context& io, Address address, Requests requests)
    : impl_(std::make_unique<Impl>(io, std::move(address), std::move(requests))) {}

Server::~Server() = default;

void Server::start(std::function<void(Error)> on_problem) {
  impl_->on_problem = std::move(on_problem);
  impl_->connect();
}

bool Server::connected() const {
  return impl_->connection && impl_->connection->owns_name;
}

std::size_t Server::queued() const {
  return impl_->connection ? queued_messages(impl_->connection->bus.get()) : 0;
}

void Server::set_manager(const ManagerState& state) {
  impl_->model.set_manager(state);
  impl_->pump();
}
void Server::set_kernel(const KernelState& state) {
  impl_->model.set_kernel(state);
  impl_->pump();
}
void Server::set_device(const DeviceInfo& device) {
  impl_->model.set_device(device);
  impl_->pump();
}
void Server::set_sample(const Sample& sample) {
  impl_->model.set_sample(sample);
  impl_->pump();
}
void Server::set_clients(const std::string& id, std::vector<GpuClient> clients) {
  impl_->model.set_clients(id, std::move(clients));
}
void Server::remove_device(const std::string& id) {
  impl_->model.remove_device(id);
  impl_->pump();
}
void Server::set_condition(const Condition& condition) {
  impl_->model.set_condition(condition);
  impl_->pump();
}
void Server::remove_condition(const std::string& id) {
  impl_->model.remove_condition(id);
  impl_->pump();
}
void Server::set_action(const ActionView& action) {
  impl_->model.set_action(action);
  impl_->pump();
}
void Server::remove_action(const std::string& id) {
  impl_->model.remove_action(id);
  impl_->pump();
}
void Server::set_canary_problem(const std::string& text) {
  impl_->model.canary_problem = text;
}
void Server::set_job(const JobView& job) {
  impl_->model.set_job(job);
  impl_->pump();
}
void Server::remove_job(const std::string& id) {
  impl_->model.remove_job(id);
  impl_->pump();
}
void Server::tell(const Event& event) {
  impl_->model.add_event(event);
  impl_->pump();
}

}  // namespace gpuhealth::dbus
