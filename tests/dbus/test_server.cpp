// SPDX-License-Identifier: Apache-2.0
// test_dbus_server [ADDRESS]: serves one made-up card that is too hot until SIGTERM; prints "problem: …" lines.
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>

#include "dbus/server.hpp"
#include "tests/dbus/fixtures.hpp"

int main(int argc, char** argv) {
  using namespace gpuhealth;
  boost::asio::io_context io{1};
  dbus::Requests requests;
  dbus::Server* self = nullptr;
  requests.acknowledge = [&](const std::string&, const auto& then) {
    auto known = test::overheating();
    known.acknowledged = true;
    self->set_condition(known);
    then(Result<void>{});
  };
  requests.reload = [](const auto& then) { then(Result<void>{}); };
  dbus::Server server(io, dbus::Address{argc > 1 ? argv[1] : ""}, std::move(requests));
  self = &server;
  server.set_manager(test::manager_state());
  server.set_device(test::card());
  server.set_sample(test::sample());
  server.set_condition(test::overheating());
  boost::asio::signal_set stop(io, SIGTERM, SIGINT);
  stop.async_wait([&](const boost::system::error_code&, int) { io.stop(); });
  server.start([](const Error& problem) {
    std::printf("problem: %s: %s\n", std::string(to_string(problem.code)).c_str(), problem.text.c_str());
    std::fflush(stdout);
  });
  io.run();
}
