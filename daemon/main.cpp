// SPDX-License-Identifier: Apache-2.0
#include <getopt.h>
#include <malloc.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>

#include "core/exit_codes.hpp"
#include "core/version.hpp"
#include "daemon/daemon.hpp"
#include "daemon/log.hpp"
#include "daemon/only_one.hpp"

namespace {

using gpuhealth::ExitCode;
using gpuhealth::daemon::Options;

constexpr const char kUsage[] =
    "Usage: gpuhealthd [OPTION]...\n"
    "Watches this machine's GPUs and tells over D-Bus what is wrong with them. See gpuhealthd(8).\n"
    "\n"
    "  --sysroot DIR     read DIR/sys instead of this machine's (for trees of other machines)\n"
    "  --bus ADDRESS     D-Bus address (default: the system bus)\n"
    "  --state-dir DIR   where history is kept (default: /var/lib/gpuhealthd)\n"
    "  --config-dir DIR  where gpuhealthd.yaml is (default: /etc/gpuhealthd)\n"
    "  --root DIR        policies, the ledger and settings are below DIR (default: the sysroot, or /)\n"
    "  --reader FILE     the reader program (default: gpuhealth-reader beside this program, or in libexec)\n"
    "  --check-config    read the configuration, say what is wrong with it, and exit\n"
    "  --version, --help\n";

struct CommandLine {
  Options options;
  bool check_config = false;
  bool config_dir_given = false;
  int exit_code = -1;  // not negative: print nothing more and exit
};

CommandLine parse(int argc, char** argv) {
  enum Option : int { Sysroot = 1, Bus, StateDir, ConfigDir, Root, Reader, CheckConfig, Version, Help };
  const std::array<option, 10> longs = {{{"sysroot", required_argument, nullptr, Sysroot},
                                         {"bus", required_argument, nullptr, Bus},
                                         {"state-dir", required_argument, nullptr, StateDir},
                                         {"config-dir", required_argument, nullptr, ConfigDir},
                                         {"root", required_argument, nullptr, Root},
                                         {"reader", required_argument, nullptr, Reader},
                                         {"check-config", no_argument, nullptr, CheckConfig},
                                         {"version", no_argument, nullptr, Version},
                                         {"help", no_argument, nullptr, Help},
                                         {nullptr, 0, nullptr, 0}}};
  CommandLine line;
  for (;;) {
    switch (getopt_long(argc, argv, "", longs.data(), nullptr)) {
      case Sysroot:
        line.options.sysroot = std::string(optarg) == "/" ? "" : optarg;
        break;
      case Bus:
        line.options.bus = optarg;
        break;
      case StateDir:
        line.options.state_dir = optarg;
        break;
      case ConfigDir:
        line.options.config_dir = optarg;
        line.config_dir_given = true;
        break;
      case Root:
        line.options.root = optarg;
        break;
      case Reader:
        line.options.reader = optarg;
        break;
      case CheckConfig:
        line.check_config = true;
        break;
      case Version:
        std::printf("gpuhealthd %s\n", gpuhealth::kVersion);
        line.exit_code = 0;
        return line;
      case Help:
        std::fputs(kUsage, stdout);
        line.exit_code = 0;
        return line;
      case -1:
        if (optind < argc) {
          std::fprintf(stderr, "gpuhealthd: \"%s\": no argument was expected; see gpuhealthd --help\n", argv[optind]);
          line.exit_code = static_cast<int>(ExitCode::Usage);
        }
        return line;
      default:
        std::fputs("See gpuhealthd --help.\n", stderr);
        line.exit_code = static_cast<int>(ExitCode::Usage);
        return line;
    }
  }
}

// Beside this program in a build tree; in libexec when installed.
std::string find_program(const char* name) {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  const auto beside = self / name;
  if (std::filesystem::exists(beside, error)) return beside.string();
  return (self.parent_path() / "libexec" / name).string();
}

// The test clock of simulated machines (docs/simulator.md).
std::optional<double> test_speed() {
  const char* text = std::getenv("GPUHEALTH_TEST_SPEED");
  if (text == nullptr) return 1;
  char* end = nullptr;
  const double speed = std::strtod(text, &end);
  if (end == text || *end != '\0' || !std::isfinite(speed) || speed < 1 || speed > 1000) return std::nullopt;
  return speed;
}

}  // namespace

int main(int argc, char** argv) {
  auto line = parse(argc, argv);
  if (line.exit_code >= 0) return line.exit_code;
  const auto speed = test_speed();
  if (!speed) {
    std::fputs("gpuhealthd: GPUHEALTH_TEST_SPEED must be a number from 1 to 1000; unset it outside of tests\n", stderr);
    return static_cast<int>(ExitCode::Usage);
  }
  line.options.speed = *speed;
  // For libraries outside the loader's path, and for tests.
  if (const char* file = std::getenv("GPUHEALTH_NVML_LIBRARY")) line.options.nvml_library = file;
  if (const char* file = std::getenv("GPUHEALTH_ROCM_SMI_LIBRARY")) line.options.rocm_smi_library = file;
  if (std::error_code ignored;
      line.config_dir_given && !std::filesystem::is_directory(line.options.config_dir, ignored)) {
    std::fprintf(stderr, "gpuhealthd: there is no folder %s (--config-dir)\n", line.options.config_dir.c_str());
    return static_cast<int>(ExitCode::NotFound);
  }
  auto loaded = gpuhealth::daemon::load_config(line.options.config_dir);
  gpuhealth::daemon::Config config;
  if (loaded) {
    config = std::move(*loaded);
  } else {
    std::fprintf(stderr, "%s\n", loaded.error().text.c_str());
    if (line.check_config) return static_cast<int>(ExitCode::InvalidInput);
    // A daemon that watches with its defaults is worth more than one that does not start.
    gpuhealth::daemon::log_line(gpuhealth::Severity::Warning, "configuration is not valid; going on with the defaults");
    config.problem = loaded.error().text;
  }
  if (line.check_config) return 0;
  const auto only = gpuhealth::daemon::be_the_only_one(line.options.state_dir);
  if (!only) {
    std::fprintf(stderr, "gpuhealthd: %s\n", only.error().text.c_str());
    return static_cast<int>(ExitCode::Failed);
  }
  if (line.options.reader.empty()) line.options.reader = find_program("gpuhealth-reader");
  line.options.canary = find_program("gpuhealth-canary");
  line.options.act = find_program("gpuhealth-act");
  // Two threads allocate; the default of eight arenas a core would keep memory that nobody uses.
  mallopt(M_ARENA_MAX, 2);
  std::signal(SIGPIPE, SIG_IGN);

  boost::asio::io_context io(1);
  const gpuhealth::ScaledClock clock(line.options.speed);
  gpuhealth::daemon::Daemon daemon(io, clock, line.options, std::move(config));
  boost::asio::signal_set stop(io, SIGINT, SIGTERM);
  stop.async_wait([&](const boost::system::error_code&, int) {
    sd_notify(0, "STOPPING=1");
    daemon.stopped();
    io.stop();
  });
  boost::asio::signal_set hangup(io, SIGHUP);
  std::function<void()> wait_for_hangup = [&] {
    hangup.async_wait([&](const boost::system::error_code& error, int) {
      if (error) return;
      daemon.reload();
      wait_for_hangup();
    });
  };
  wait_for_hangup();
  daemon.start();
  io.run();
  return 0;
}
