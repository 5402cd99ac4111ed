// SPDX-License-Identifier: Apache-2.0
// gpuhealthd: wires readers, health, history and the bus together on one loop. Nothing clever lives here.
#pragma once

#include <memory>
#include <string>

#include "core/clock.hpp"
#include "daemon/config.hpp"

namespace boost::asio {
class io_context;
}

namespace gpuhealth::daemon {

struct Options {
  std::string sysroot;                            // empty: this machine
  std::string bus;                                // D-Bus address; empty: the system bus
  std::string state_dir = "/var/lib/gpuhealthd";  // history.db
  std::string config_dir = "/etc/gpuhealthd";
  std::string reader;            // path of gpuhealth-reader
  std::string act;               // path of gpuhealth-act
  std::string root;              // policies, ledger, settings; empty: the sysroot's, or this machine's
  double speed = 1;              // of the clock that the daemon is given: its timers run as much faster
  std::string canary;            // path of gpuhealth-canary
  std::string nvml_library;      // empty: libnvidia-ml.so.1
  std::string rocm_smi_library;  // empty: librocm_smi64.so.1
};

class Daemon {
 public:
  Daemon(boost::asio::io_context& io, const Clock& clock, Options options, Config config);
  ~Daemon();
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  void start();
  void stopped();  // the last word: it was told to stop
  void reload();   // reads the configuration again; a bad one leaves the last good one in force

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gpuhealth::daemon
