// SPDX-License-Identifier: Apache-2.0
// A terminal taken over for a while: alternate screen, keys without echo; given back as it was, also after a signal.
#pragma once

#include <termios.h>

#include <csignal>
#include <string>
#include <vector>

#include "cli/page.hpp"
#include "cli/watch_view.hpp"
#include "core/fd.hpp"

namespace gpuhealth::cli {

enum class Wake : std::uint8_t { Tick, Resized, Key, Stopped, Resumed, Quit };

// SIGINT, SIGTERM, SIGHUP, SIGQUIT and SIGWINCH as events instead of interruptions, for as long as this lives; with
// `job_control` also SIGTSTP and SIGCONT, which somebody who holds the terminal has to act on.
class Signals {
 public:
  explicit Signals(bool job_control = false);
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;
  // Waits `seconds`; less when a signal comes, or something was typed on `keys` (-1: no keyboard).
  [[nodiscard]] Wake wait(double seconds, int keys = -1) const;

 private:
  Fd fd_;
  sigset_t before_{};
};

class Screen {
 public:
  Screen();
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;
  // Redraws in place: every line is overwritten, none is blanked first.
  void draw(const Page& page, const Terminal& terminal);
  // Keyboard's end is Quit.
  [[nodiscard]] Wake wait(double seconds);
  // What was typed before wait() said Key.
  [[nodiscard]] std::vector<Key> keys();
  // Gives the terminal back, stops the process as Ctrl-Z does, takes it again when the shell says so.
  void stop();
  // After a SIGCONT: whoever had the terminal meanwhile left it in his own state.
  void resume() { enter(); }

 private:
  void enter();
  void leave();

  Signals signals_{true};
  termios before_{};
  bool keyboard_ = false;
  std::string typed_;
};

}  // namespace gpuhealth::cli
