// SPDX-License-Identifier: Apache-2.0
#include "cli/screen.hpp"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <csignal>
#include <string>
#include <string_view>

#include "core/clock.hpp"

namespace gpuhealth::cli {
namespace {

constexpr std::string_view kEnter = "\x1b[?1049h\x1b[?25l";
constexpr std::string_view kLeave = "\x1b[?25h\x1b[?1049l";

void put(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(STDOUT_FILENO, text.data(), text.size());
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

// True when a key asks to leave; the keyboard's end asks so too.
bool wants_to_leave(int keys) {
  std::array<char, 64> buffer{};
  const ssize_t got = read(keys, buffer.data(), buffer.size());
  if (got <= 0) return true;
  const std::string_view typed(buffer.data(), static_cast<std::size_t>(got));
  return typed.find_first_of("qQ\x03\x04") != std::string_view::npos;
}

}  // namespace

Signals::Signals() {
  sigset_t set{};
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGWINCH}) sigaddset(&set, signal);
  pthread_sigmask(SIG_BLOCK, &set, &before_);
  fd_.reset(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

Signals::~Signals() {
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

Wake Signals::wait(double seconds, int keys) const {
  const SystemClock clock;
  const auto deadline = clock.now().steady + Duration(static_cast<std::int64_t>(seconds * 1e6));
  while (true) {
    const auto left = deadline - clock.now().steady;
    if (left.count() <= 0) return Wake::Tick;
    std::array<pollfd, 2> fds = {{{fd_.get(), POLLIN, 0}, {keys, POLLIN, 0}}};
    if (poll(fds.data(), fds.size(), static_cast<int>(left.count() / 1000 + 1)) <= 0) continue;
    if (fds[1].revents != 0 && wants_to_leave(keys)) return Wake::Quit;
    signalfd_siginfo event{};
    if (fds[0].revents == 0 || read(fd_.get(), &event, sizeof event) != sizeof event) continue;
    return event.ssi_signo == SIGWINCH ? Wake::Resized : Wake::Quit;
  }
}

Screen::Screen() {
  keyboard_ = isatty(STDIN_FILENO) == 1 && tcgetattr(STDIN_FILENO, &before_) == 0;
  if (keyboard_) {
    termios raw = before_;
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    raw.c_cc[VSUSP] = _POSIX_VDISABLE;  // stopped, it would leave the terminal to the shell as it is
    tcsetattr(STDIN_FILENO, TCSANOW, &raw);
  }
  put(kEnter);
}

Screen::~Screen() {
  put(kLeave);
  if (keyboard_) tcsetattr(STDIN_FILENO, TCSANOW, &before_);
}

void Screen::draw(const Page& page, const Terminal& terminal) {
  std::string out = "\x1b[H";
  const auto& lines = page.lines();
  std::size_t row = 0;
  for (; row < lines.size() && row < terminal.rows; ++row) {
    out += render(lines[row], terminal) + "\x1b[K";
    if (row + 1 < lines.size() && row + 1 < terminal.rows) out += "\r\n";
  }
  put(out + "\x1b[J");
}

Wake Screen::wait(double seconds) const {
  return signals_.wait(seconds, keyboard_ ? STDIN_FILENO : -1);
}

}  // namespace gpuhealth::cli
