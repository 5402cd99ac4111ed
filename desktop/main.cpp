// SPDX-License-Identifier: Apache-2.0
// gpuhealth-notify: tells the person at the screen what gpuhealthd knows, and passes on what they decide.
#include <poll.h>
#include <sys/signalfd.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <memory>
#include <thread>

#include <CLI/CLI.hpp>

#include "core/exit_codes.hpp"
#include "core/spawn.hpp"
#include "core/version.hpp"
#include "desktop/daemon.hpp"
#include "desktop/paths.hpp"
#include "desktop/screen.hpp"

namespace gpuhealth::desktop {
namespace {

struct Options {
  std::string bus;
  std::string session;
  std::string details = kDetailsProgram;
};

constexpr int kPauseMs = 1000;          // between two tries to find a session bus
constexpr int kLookAgainMs = 3600'000;  // "not now" ends some time

void say(const std::string& text) {
  std::fprintf(stderr, "gpuhealth-notify: %s\n", text.c_str());
}

WallTime now() {
  return SystemClock().now().wall;
}

class Agent {
 public:
  explicit Agent(Options options) : options_(std::move(options)) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigprocmask(SIG_BLOCK, &set, nullptr);  // for the threads to come as well
    signals_ = Fd(signalfd(-1, &set, SFD_CLOEXEC));
    std::signal(SIGCHLD, SIG_IGN);  // viewers end when they like
  }

  ExitCode run() {
    std::thread([this] {
      look_for_ever(options_.bus, [this](std::optional<dbus::Snapshot> snapshot) {
        mailbox_.post([this, snapshot = std::move(snapshot)] {
          notices_.update(snapshot, now());
          apply();
        });
      });
    }).detach();
    bool told = false;
    while (true) {
      if (!screen_) connect(told);
      if (other_) return ExitCode::Ok;
      if (!wait()) break;
    }
    if (screen_) {
      screen_->apply({});
      sd_bus_flush(screen_->bus());
    }
    return ExitCode::Ok;
  }

 private:
  void connect(bool& told) {
    auto screen = Screen::open(options_.session, {[this](const std::string& key) { notices_.dismissed(key, now()); },
                                                  [this](const auto& key, const auto& button) { pressed(key, button); },
                                                  [this] { again_ = true; }});
    if (screen) {
      screen_ = std::move(*screen);
      told = false;
      sd_notify(0, "READY=1");
      apply();
      return;
    }
    other_ = screen.error().code == ErrorCode::Exhausted;
    if (!told) say(screen.error().text);
    told = true;
  }

  void apply() {
    if (screen_) screen_->apply(notices_.wanted(now()));
  }

  void pressed(const std::string& key, const std::string& button) {
    const Wish wish = notices_.pressed(key, button, now());
    again_ = true;
    if (wish.kind == Wish::Kind::Nothing) return;
    if (wish.kind == Wish::Kind::Details) {
      // The mask of this program is not the viewer's: spawn() clears it.
      const auto started = spawn({options_.details, wish.what}, SpawnFiles());
      if (!started) notices_.failed({ErrorCode::NotFound, "The details cannot be shown: " + started.error().text});
      return;
    }
    std::thread([this, wish] {
      const auto done = ask(options_.bus, wish);
      if (done) return;
      mailbox_.post([this, error = done.error()] {
        say(error.text);
        notices_.failed(error);
        apply();
      });
    }).detach();
  }

  // Until something is to be done; false on a signal to end.
  bool wait() {
    std::array<pollfd, 3> fds = {pollfd{signals_.get(), POLLIN, 0}, pollfd{mailbox_.fd(), POLLIN, 0}, pollfd{-1, 0, 0}};
    int timeout = kPauseMs;
    if (screen_) {
      if (!screen_->process()) return lose();
      if (std::exchange(again_, false)) apply();
      timeout = kLookAgainMs;
      fds[2] = {sd_bus_get_fd(screen_->bus()), static_cast<short>(sd_bus_get_events(screen_->bus())), 0};
      timeout = std::min(timeout, until_bus());
    }
    if (poll(fds.data(), fds.size(), timeout) < 0 && errno != EINTR) return false;
    if (fds[0].revents != 0) return false;
    if (fds[1].revents != 0)
      mailbox_.run();
    else if (screen_ && fds[2].revents == 0)
      apply();
    return true;
  }

  bool lose() {
    say("the session bus is gone");
    screen_.reset();
    return true;
  }

  int until_bus() {
    std::uint64_t at = 0;
    if (sd_bus_get_timeout(screen_->bus(), &at) <= 0 || at == UINT64_MAX) return kLookAgainMs;
    timespec time{};
    clock_gettime(CLOCK_MONOTONIC, &time);
    const auto us =
        static_cast<std::uint64_t>(time.tv_sec) * 1'000'000 + static_cast<std::uint64_t>(time.tv_nsec) / 1000;
    return at <= us ? 0 : static_cast<int>(std::min<std::uint64_t>((at - us) / 1000 + 1, kLookAgainMs));
  }

  Options options_;
  Fd signals_;
  Mailbox mailbox_;
  Notices notices_;
  std::unique_ptr<Screen> screen_;
  bool again_ = false;
  bool other_ = false;
};

int main(int argc, char** argv) {
  CLI::App app;
  Options options;
  app.description("Shows what gpuhealthd knows as notifications of this desktop.");
  app.set_version_flag("--version", std::string("gpuhealth-notify ") + kVersion, "print the version");
  app.add_option("--bus", options.bus, "D-Bus address instead of the system bus")->type_name("ADDRESS");
  app.add_option("--session-bus", options.session, "D-Bus address instead of the session bus")->type_name("ADDRESS");
  app.add_option("--details", options.details, "program that shows a condition; it gets the condition's id")
      ->type_name("PROGRAM")
      ->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    say(std::string(error.what()) + "; gpuhealth-notify --help tells what there is");
    return static_cast<int>(ExitCode::Usage);
  }
  const auto code = Agent(std::move(options)).run();
  // Its threads wait on the bus and have nothing to finish.
  _exit(static_cast<int>(code));
}

}  // namespace
}  // namespace gpuhealth::desktop

int main(int argc, char** argv) {
  return gpuhealth::desktop::main(argc, argv);
}
