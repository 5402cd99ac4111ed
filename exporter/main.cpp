// SPDX-License-Identifier: Apache-2.0
// gpuhealth-exporter: what gpuhealthd knows, for Prometheus. One thread asks the daemon; scrapes are answered by the
// library's threads from the last answer.
#include <arpa/inet.h>
#include <prometheus/collectable.h>
#include <prometheus/exposer.h>
#include <prometheus/text_serializer.h>
#include <systemd/sd-daemon.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>

#include "core/exit_codes.hpp"
#include "core/version.hpp"
#include "exporter/canary_file.hpp"
#include "exporter/families.hpp"
#include "exporter/output.hpp"

namespace gpuhealth::exporter {
namespace {

struct Options {
  std::string listen = "127.0.0.1:9836";
  std::string textfile;
  bool once = false;
  double interval = 5;
  double deadline = 5;
  std::string bus;
  std::string results = "/var/lib/gpuhealthd/canary/results.jsonl";
};

class Shared final : public prometheus::Collectable {
 public:
  void set(State state) {
    const std::scoped_lock lock(mutex_);
    state_ = std::move(state);
  }
  [[nodiscard]] std::vector<prometheus::MetricFamily> Collect() const override {
    const std::scoped_lock lock(mutex_);
    return families(state_, own_cost());
  }

 private:
  mutable std::mutex mutex_;
  State state_;
};

void say(const std::string& text) {
  std::fprintf(stderr, "gpuhealth-exporter: %s\n", text.c_str());
}

// Asks until told not to, and hands on each answer; says once when the daemon is lost, and when it is found.
class Questions {
 public:
  Questions(const Options& options, std::shared_ptr<Shared> shared)
      : options_(options), shared_(std::move(shared)), canaries_(options.results) {}

  // Ends with --once, or when the text file cannot be written.
  ExitCode run() {
    while (true) {
      auto client = dbus::Client::connect(options_.bus, milliseconds(options_.deadline), dbus::Activation::Never);
      if (!client) {
        lost(client.error());
      } else if (look(*client) && !options_.once) {
        const auto end = client->watch(milliseconds(options_.interval), [&] { return look(*client); });
        if (!end) lost(end.error());
      }
      if (failed_) return ExitCode::Failed;
      if (options_.once) return state_.snapshot ? ExitCode::Ok : ExitCode::Unavailable;
      std::this_thread::sleep_for(milliseconds(options_.interval));
    }
  }

 private:
  static std::chrono::milliseconds milliseconds(double seconds) {
    return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
  }

  bool look(dbus::Client& client) {
    const auto begin = SystemClock().now();
    auto snapshot = client.snapshot();
    if (!snapshot) {
      lost(snapshot.error());
      return false;
    }
    const auto end = SystemClock().now();
    state_.snapshot = std::move(*snapshot);
    state_.answered = end.wall;
    state_.ask_seconds = static_cast<double>((end.steady - begin.steady).count()) / 1e6;
    if (lost_) say("the daemon answers");
    lost_ = false;
    publish();
    return !failed_;
  }

  void lost(const Error& why) {
    if (!lost_ || options_.once) say(why.text);
    lost_ = true;
    state_.snapshot.reset();  // what was true a while ago is not what is
    publish();
  }

  void publish() {
    state_.canaries = canaries_.look();
    if (options_.textfile.empty()) {
      shared_->set(state_);
      return;
    }
    const auto text = prometheus::TextSerializer().Serialize(families(state_, own_cost()));
    const auto written = write_textfile(options_.textfile, text);
    if (!written) say(written.error().text);
    failed_ = !written;
  }

  const Options& options_;
  std::shared_ptr<Shared> shared_;
  CanaryFile canaries_;
  State state_;
  bool lost_ = false;
  bool failed_ = false;
};

// civetweb takes a bare port as "all interfaces"; here an address must be named.
std::string check_listen(const std::string& text) {
  const auto colon = text.rfind(':');
  std::string host = colon == std::string::npos ? "" : text.substr(0, colon);
  const std::string port = colon == std::string::npos ? text : text.substr(colon + 1);
  const bool six = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (six) host = host.substr(1, host.size() - 2);
  in6_addr address{};
  const bool digits = !port.empty() && port.size() <= 5 && port.find_first_not_of("0123456789") == std::string::npos;
  if (inet_pton(six ? AF_INET6 : AF_INET, host.c_str(), &address) == 1 && digits && std::stoi(port) < 65536) return {};
  return "must be ADDRESS:PORT, such as 127.0.0.1:9836 or [::1]:9836";
}

void add_options(CLI::App& app, Options& options) {
  app.description("Serves what gpuhealthd knows for Prometheus, at /metrics.");
  app.set_version_flag("--version", std::string("gpuhealth-exporter ") + kVersion, "print the version");
  app.add_option("--listen", options.listen, "where to serve; TLS and passwords are a proxy's work")
      ->type_name("ADDRESS:PORT")
      ->check(check_listen)
      ->capture_default_str();
  auto* textfile = app.add_option("--textfile", options.textfile,
                                  "write this file for node_exporter instead of serving; its name ends in .prom")
                       ->type_name("FILE")
                       ->check([](const std::string& file) {
                         return file.ends_with(".prom") ? std::string() : std::string("must end in .prom");
                       });
  app.add_flag("--once", options.once, "with --textfile: write once and end")->needs(textfile);
  app.add_option("--interval", options.interval, "seconds between two questions to the daemon")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.1, 3600.0))
      ->capture_default_str();
  app.add_option("--deadline", options.deadline, "seconds that the daemon has for an answer")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.1, 600.0))
      ->capture_default_str();
  app.add_option("--bus", options.bus, "D-Bus address instead of the system bus")->type_name("ADDRESS");
  app.add_option("--canary-results", options.results, "results of the canaries")
      ->type_name("FILE")
      ->capture_default_str();
}

ExitCode serve(const Options& options) {
  auto shared = std::make_shared<Shared>();
  std::unique_ptr<prometheus::Exposer> exposer;
  if (options.textfile.empty()) {
    try {
      exposer = std::make_unique<prometheus::Exposer>(std::vector<std::string>{
          "listening_ports", options.listen, "num_threads", "2", "request_timeout_ms", "5000"});
    } catch (const std::exception& error) {
      say("cannot listen on " + options.listen + " (" + error.what() + "); is the port in use?");
      return ExitCode::Unavailable;
    }
    exposer->RegisterCollectable(shared);
    say("serving /metrics on port " + std::to_string(exposer->GetListeningPorts().front()));
  }
  sd_notify(0, "READY=1");
  return Questions(options, shared).run();
}

int main(int argc, char** argv) {
  own_cost();  // the time of the start
  CLI::App app;
  Options options;
  add_options(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    say(std::string(error.what()) + "; gpuhealth-exporter --help tells what there is");
    return static_cast<int>(ExitCode::Usage);
  }
  return static_cast<int>(serve(options));
}

}  // namespace
}  // namespace gpuhealth::exporter

int main(int argc, char** argv) {
  return gpuhealth::exporter::main(argc, argv);
}
