// SPDX-License-Identifier: Apache-2.0
#include "cli/screen.hpp"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <string>
#include <string_view>

#include "cli/text.hpp"
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

}  // namespace

Signals::Signals(bool job_control) {
  sigset_t set{};
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH}) sigaddset(&set, signal);
  if (job_control) {
    for (const int signal : {SIGTSTP, SIGCONT}) sigaddset(&set, signal);
  }
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
    signalfd_siginfo event{};
    if (fds[0].revents != 0 && read(fd_.get(), &event, sizeof event) == sizeof event) {
      switch (event.ssi_signo) {
        case SIGWINCH:
          return Wake::Resized;
        case SIGTSTP:
          return Wake::Stopped;
        case SIGCONT:
          return Wake::Resumed;
        default:
          return Wake::Quit;
      }
    }
    if (fds[1].revents != 0) return Wake::Key;
  }
}

Screen::Screen() {
  keyboard_ = isatty(STDIN_FILENO) == 1 && tcgetattr(STDIN_FILENO, &before_) == 0;
  enter();
}

Screen::~Screen() {
  leave();
}

void Screen::enter() {
  if (keyboard_) {
    termios raw = before_;
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    tcsetattr(STDIN_FILENO, TCSANOW, &raw);
  }
  put(kEnter);
}

void Screen::leave() {
  put(kLeave);
  if (keyboard_) tcsetattr(STDIN_FILENO, TCSANOW, &before_);
}

void Screen::stop() {
  leave();
  sigset_t one{};
  sigemptyset(&one);
  sigaddset(&one, SIGTSTP);
  std::raise(SIGTSTP);
  pthread_sigmask(SIG_UNBLOCK, &one, nullptr);  // here it stops, and here it goes on
  pthread_sigmask(SIG_BLOCK, &one, nullptr);
  enter();
}

void Screen::draw(const Page& page, const Terminal& terminal) {
  std::string out = "\x1b[H";
  const auto& lines = page.lines();
  const std::size_t rows = std::min(lines.size(), terminal.rows);
  Terminal plain = terminal;
  plain.colour = false;
  for (std::size_t row = 0; row < rows; ++row) {
    out += render(lines[row], terminal);
    // Behind a full line the cursor stands on its last column: to erase from there would take that away.
    if (width(render(lines[row], plain)) < terminal.columns) out += "\x1b[K";
    if (row + 1 < terminal.rows) out += "\r\n";
  }
  put(rows < terminal.rows ? out + "\x1b[J" : out);
}

Wake Screen::wait(double seconds) {
  const Wake wake = signals_.wait(seconds, keyboard_ ? STDIN_FILENO : -1);
  if (wake != Wake::Key) return wake;
  std::array<char, 64> buffer{};
  const ssize_t got = read(STDIN_FILENO, buffer.data(), buffer.size());
  if (got <= 0) return Wake::Quit;
  typed_.append(buffer.data(), static_cast<std::size_t>(got));
  return Wake::Key;
}

std::vector<Key> Screen::keys() {
  return take_keys(typed_);
}

}  // namespace gpuhealth::cli
