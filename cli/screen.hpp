// SPDX-License-Identifier: Apache-2.0
// A terminal taken over for a while: alternate screen, keys without echo; given back as it was, also after a signal.
#pragma once

#include <termios.h>

#include "cli/page.hpp"
#include "core/fd.hpp"

namespace gpuhealth::cli {

enum class Wake : std::uint8_t { Tick, Resized, Quit };

// SIGINT, SIGTERM, SIGHUP and SIGWINCH as events instead of interruptions, for as long as this lives.
class Signals {
 public:
  Signals();
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;
  // Waits `seconds`; less when a signal comes, or 'q' on `keys` (-1: no keyboard).
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
  [[nodiscard]] Wake wait(double seconds) const;

 private:
  Signals signals_;
  termios before_{};
  bool keyboard_ = false;
};

}  // namespace gpuhealth::cli
