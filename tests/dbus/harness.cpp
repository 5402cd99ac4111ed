// SPDX-License-Identifier: Apache-2.0
#include "tests/dbus/harness.hpp"

#include <condition_variable>
#include <cstdarg>
#include <deque>
#include <future>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <utility>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include "dbus/names.hpp"

namespace asio = boost::asio;

namespace gpuhealth::test {
namespace {

using Steady = std::chrono::steady_clock;

void must(int r, const char* what) {
  if (r < 0) throw std::runtime_error(std::string(what) + ": " + std::to_string(r));
}

}  // namespace

Listener::Listener(const std::string& address) {
  sd_bus* raw = nullptr;
  must(sd_bus_new(&raw), "new");
  bus_.reset(raw);
  must(sd_bus_set_address(raw, address.c_str()), "address");
  must(sd_bus_set_bus_client(raw, 1), "client");
  must(sd_bus_start(raw), "start");
}

bool Listener::name_is_owned(const std::string& name) {
  sd_bus_creds* creds = nullptr;
  const int r = sd_bus_get_name_creds(bus_.get(), name.c_str(), 0, &creds);
  sd_bus_creds_unref(creds);
  return r >= 0;
}

void Listener::wait_for_owner(const std::string& name, bool wanted) {
  const std::string rule = "type='signal',sender='org.freedesktop.DBus',member='NameOwnerChanged',arg0='" + name + "'";
  sd_bus_slot* slot = nullptr;
  must(sd_bus_add_match(
           bus_.get(), &slot, rule.c_str(), [](sd_bus_message*, void*, sd_bus_error*) { return 0; }, nullptr),
       "match");
  const dbus::SlotPtr match(slot);
  const auto end = Steady::now() + kPatience;
  while (name_is_owned(name) != wanted) next(end);
}

void Listener::wait_for_name(const std::string& name) {
  wait_for_owner(name, true);
}
void Listener::wait_for_no_name(const std::string& name) {
  wait_for_owner(name, false);
}

bool Listener::own(const std::string& name) {
  return sd_bus_request_name(bus_.get(), name.c_str(), 0) >= 0;
}

void Listener::listen() {
  sd_bus_slot* slot = nullptr;
  const auto note = [](sd_bus_message* m, void* userdata, sd_bus_error*) {
    auto* self = static_cast<Listener*>(userdata);
    self->seen_.push_back(std::string(sd_bus_message_get_path(m)) + " " + sd_bus_message_get_member(m));
    self->queue_.emplace_back(sd_bus_message_ref(m));
    return 0;
  };
  must(sd_bus_add_match(bus_.get(), &slot, "type='signal',sender='org.gpuhealth1'", note, this), "match");
  slots_.emplace_back(slot);
}

void Listener::next(Steady::time_point end) {
  const int r = sd_bus_process(bus_.get(), nullptr);
  must(r, "process");
  if (r > 0) return;
  const auto left = std::chrono::duration_cast<std::chrono::microseconds>(end - Steady::now());
  if (left.count() <= 0) {
    std::string came;
    for (const auto& one : seen_) came += "\n  " + one;
    throw std::runtime_error("it did not come from the bus in time; what came:" + came);
  }
  must(sd_bus_wait(bus_.get(), static_cast<std::uint64_t>(left.count())), "wait");
}

dbus::MessagePtr Listener::wait_for(const std::string& member, const std::string& path) {
  const auto end = Steady::now() + kPatience;
  for (;;) {
    while (!queue_.empty()) {
      auto message = std::move(queue_.front());
      queue_.erase(queue_.begin());
      if (member == sd_bus_message_get_member(message.get()) &&
          (path.empty() || path == sd_bus_message_get_path(message.get())))
        return message;
    }
    next(end);
  }
}

void Listener::drain() {
  error_of(dbus::kRootPath, "org.freedesktop.DBus.Peer", "Ping", "");
  while (sd_bus_process(bus_.get(), nullptr) > 0) {
  }
}

std::string Listener::introspect(const std::string& path) {
  sd_bus_message* raw = nullptr;
  must(sd_bus_call_method(bus_.get(), dbus::kBusName, path.c_str(), "org.freedesktop.DBus.Introspectable", "Introspect",
                          nullptr, &raw, ""),
       "introspect");
  const dbus::MessagePtr reply(raw);
  const char* xml = nullptr;
  must(sd_bus_message_read(raw, "s", &xml), "read");
  return xml;
}

std::string Listener::error_of(const char* path, const char* interface, const char* member, const char* types, ...) {
  sd_bus_message* raw = nullptr;
  must(sd_bus_message_new_method_call(bus_.get(), &raw, dbus::kBusName, path, interface, member), "call");
  const dbus::MessagePtr message(raw);
  va_list arguments;
  va_start(arguments, types);
  const int r = sd_bus_message_appendv(raw, types, arguments);
  va_end(arguments);
  must(r, "append");
  dbus::BusError error;
  sd_bus_message* reply = nullptr;
  const int called = sd_bus_call(bus_.get(), raw, 0, error.get(), &reply);
  sd_bus_message_unref(reply);
  return called < 0 ? error.name() : "";
}

struct Host::Impl {
  asio::io_context io{1};
  asio::executor_work_guard<asio::io_context::executor_type> work = asio::make_work_guard(io);
  std::optional<dbus::Server> server;
  std::mutex mutex;
  std::condition_variable came;
  std::deque<Error> problems;
  std::thread thread;
};

Host::Host(const std::string& address, dbus::Requests requests) : impl_(std::make_unique<Impl>()) {
  impl_->server.emplace(impl_->io, dbus::Address{address}, std::move(requests));
  impl_->thread = std::thread([this] { impl_->io.run(); });
}

Host::~Host() {
  on_loop([this](dbus::Server&) { impl_->server.reset(); });
  impl_->work.reset();
  impl_->io.stop();
  impl_->thread.join();
}

void Host::on_loop(const std::function<void(dbus::Server&)>& work) {
  std::promise<void> done;
  asio::post(impl_->io, [&] {
    work(*impl_->server);
    done.set_value();
  });
  done.get_future().wait();
}

void Host::start() {
  on_loop([this](dbus::Server& server) {
    server.start([this](Error problem) {
      const std::lock_guard lock(impl_->mutex);
      impl_->problems.push_back(std::move(problem));
      impl_->came.notify_all();
    });
  });
}

void Host::wait_connected() {
  const auto end = Steady::now() + kPatience;
  for (bool connected = false; !connected;) {
    on_loop([&](dbus::Server& server) { connected = server.connected(); });
    if (Steady::now() > end) throw std::runtime_error("the server did not connect");
    if (!connected) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

Error Host::wait_for_problem() {
  std::unique_lock lock(impl_->mutex);
  if (!impl_->came.wait_for(lock, kPatience, [this] { return !impl_->problems.empty(); }))
    throw std::runtime_error("no problem was reported");
  Error first = std::move(impl_->problems.front());
  impl_->problems.pop_front();
  return first;
}

}  // namespace gpuhealth::test
