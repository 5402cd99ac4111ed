// SPDX-License-Identifier: Apache-2.0
// The full screen of `watch` in a real pseudo-terminal; what is seen is what a small terminal of the test makes of the
// bytes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <clocale>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>

#include "cli/text.hpp"
#include "cli/watch.hpp"
#include "samples.hpp"
#include "tests/paths.hpp"

namespace gpuhealth::cli {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

winsize size_of(unsigned short columns, unsigned short rows) {
  winsize size{};
  size.ws_col = columns;
  size.ws_row = rows;
  return size;
}

// Just what the screen of `watch` sends: cursor home, erase, alternate screen, colours, text.
class Vt {
 public:
  void feed(const std::string& bytes) {
    pending_ += bytes;
    while (!pending_.empty() && step()) {
    }
  }
  bool alternate = false;
  bool cursor = true;
  std::size_t colours = 0;
  std::size_t unknown = 0;  // sequences that it does not know
  std::string after;        // what was printed outside of the alternate screen
  [[nodiscard]] std::vector<std::string> lines() const {
    std::vector<std::string> out;
    for (const auto& row : grid_) {
      std::string line;
      for (const auto& glyph : row) line += glyph;
      out.push_back(line);
    }
    return out;
  }
  [[nodiscard]] std::string text() const {
    std::string out;
    for (const auto& line : lines()) out += line + "\n";
    return out;
  }
  void clear() { grid_.clear(); }

 private:
  std::vector<std::string>& row() {
    if (grid_.size() <= row_) grid_.resize(row_ + 1);
    return grid_[row_];
  }
  bool step() {
    const auto take = [&](std::string_view what) {
      if (!pending_.starts_with(what)) return false;
      pending_.erase(0, what.size());
      return true;
    };
    if (pending_[0] == '\x1b') {
      const std::size_t end = pending_.find_first_of("ABCDHJKmhl", 2);
      if (end == std::string::npos) return false;
      if (take("\x1b[?1049h")) return alternate = true;
      if (take("\x1b[?1049l")) return alternate = false, true;
      if (take("\x1b[?25l")) return cursor = false, true;
      if (take("\x1b[?25h")) return cursor = true;
      if (take("\x1b[H")) return row_ = column_ = 0, true;
      if (take("\x1b[K")) return row().resize(std::min(row().size(), column_)), true;
      if (take("\x1b[J")) {
        row().resize(std::min(row().size(), column_));
        return grid_.resize(row_ + 1), true;
      }
      (pending_[end] == 'm' ? colours : unknown) += 1;
      return pending_.erase(0, end + 1), true;
    }
    const auto first = static_cast<unsigned char>(pending_[0]);
    const std::size_t length = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    if (pending_.size() < length) return false;
    const std::string glyph = pending_.substr(0, length);
    pending_.erase(0, length);
    if (!alternate) return after += glyph, true;
    if (glyph == "\r") return column_ = 0, true;
    if (glyph == "\n") return ++row_, true;
    if (row().size() <= column_) row().resize(column_ + 1, " ");
    row()[column_++] = glyph;
    return true;
  }
  std::vector<std::vector<std::string>> grid_;
  std::size_t row_ = 0;
  std::size_t column_ = 0;
  std::string pending_;
};

class Pty {
 public:
  Pty(winsize size, const std::function<void()>& child) {
    pid_ = forkpty(&fd_, nullptr, nullptr, &size);
    if (pid_ != 0) return;
    unsetenv("NO_COLOR");
    setenv("TERM", "xterm", 1);
    std::setlocale(LC_CTYPE, "C.UTF-8");
    child();
    std::fflush(stdout);
    _exit(0);
  }
  ~Pty() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    close(fd_);
  }
  Pty(const Pty&) = delete;
  Pty& operator=(const Pty&) = delete;

  // Reads until it holds; false after 20 seconds, or when the program is gone.
  bool until(const std::function<bool(const Vt&)>& holds) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!holds(vt)) {
      pollfd p = {fd_, POLLIN, 0};
      if (std::chrono::steady_clock::now() > end) return false;
      if (poll(&p, 1, 500) <= 0) continue;
      std::array<char, 65536> buffer{};
      const ssize_t got = read(fd_, buffer.data(), buffer.size());
      if (got <= 0) return holds(vt);
      vt.feed(std::string(buffer.data(), static_cast<std::size_t>(got)));
    }
    return true;
  }
  bool shows(const std::string& text) {
    return until([&](const Vt& v) { return v.text().find(text) != std::string::npos; });
  }
  bool printed(const std::string& text) {
    return until([&](const Vt& v) { return v.after.find(text) != std::string::npos; });
  }
  void type(std::string_view keys) const { ASSERT_EQ(write(fd_, keys.data(), keys.size()), std::ssize(keys)); }
  void resize(winsize size) {
    vt.clear();
    ASSERT_EQ(ioctl(fd_, TIOCSWINSZ, &size), 0);
  }
  void signal(int number) const { kill(pid_, number); }
  [[nodiscard]] bool canonical() const {
    termios t{};
    return tcgetattr(fd_, &t) == 0 && (t.c_lflag & ICANON) != 0 && (t.c_lflag & ECHO) != 0;
  }
  Vt vt;

 private:
  pid_t pid_ = -1;
  int fd_ = -1;
};

Machine many(std::size_t count) {
  Machine machine = samples::overheating();
  while (machine.devices.size() < count) {
    auto device = samples::accelerator();
    device.id = "uid-" + std::to_string(machine.devices.size());
    device.name = "Card number " + std::to_string(machine.devices.size());
    machine.devices.push_back(device);
  }
  return machine;
}

// What the child runs: looks cost nothing, and come every 0.2 s.
std::function<void()> watching(Machine machine, ColourChoice colour = ColourChoice::Auto) {
  return [machine = std::move(machine), colour] {
    watch_screen(machine, [&] { return Result<Machine>(machine); }, 0.2, colour);
    std::puts("LEFT");
  };
}

TEST(Screen, FillsEachSizeOfTerminalAndNoMore) {
  for (const auto& [columns, rows] :
       std::vector<std::pair<unsigned short, unsigned short>>{{80, 24}, {40, 10}, {200, 60}, {20, 5}}) {
    Pty pty(size_of(columns, rows), watching(many(64)));
    ASSERT_TRUE(pty.until([&, last = static_cast<std::size_t>(rows)](const Vt& v) {
      return v.lines().size() == last && v.lines().back().find(" of ") != std::string::npos;
    })) << columns
        << "x" << rows << "\n"
        << pty.vt.text();
    for (const auto& line : pty.vt.lines()) EXPECT_LE(width(line), columns) << line;
    EXPECT_THAT(pty.vt.lines()[0], StartsWith("2 of 64 GPUs need"));
    EXPECT_EQ(pty.vt.unknown, 0U);
    EXPECT_TRUE(pty.vt.alternate);
    EXPECT_FALSE(pty.vt.cursor);
  }
}

TEST(Screen, TheLastOf64GpusIsReachedByKeysAndTheFirstLineAgain) {
  Pty pty(size_of(80, 24), watching(many(64)));
  ASSERT_TRUE(pty.shows("2 of 64 GPUs"));
  EXPECT_THAT(pty.vt.text(), Not(HasSubstr("Card number 63")));
  pty.type("\x1b[F");
  EXPECT_TRUE(pty.shows("Card number 63"));
  pty.type("\x1b[5~\x1b[H");
  EXPECT_TRUE(pty.shows("2 of 64 GPUs"));
}

TEST(Screen, HelpComesAndGoesAndFits40By10) {
  Pty pty(size_of(40, 10), watching(many(3)));
  ASSERT_TRUE(pty.shows("2 of 3 GPUs"));
  pty.type("?");
  EXPECT_TRUE(pty.shows("to the shell"));
  pty.type("?");
  EXPECT_TRUE(pty.shows("2 of 3 GPUs"));
}

TEST(Screen, FollowsTheSizeOfTheTerminal) {
  Pty pty(size_of(80, 24), watching(many(64)));
  ASSERT_TRUE(pty.shows("2 of 64 GPUs"));
  pty.resize(size_of(40, 10));
  EXPECT_TRUE(pty.until([](const Vt& v) {
    return v.lines().size() == 10 && v.lines()[9].find(" of ") != std::string::npos;
  })) << pty.vt.text();
}

TEST(Screen, EveryWayOutGivesTheTerminalBack) {
  const std::vector<std::pair<const char*, std::function<void(Pty&)>>> ways = {
      {"q", [](Pty& p) { p.type("q"); }},          {"Ctrl-C", [](Pty& p) { p.type("\x03"); }},
      {"Ctrl-D", [](Pty& p) { p.type("\x04"); }},  {"Ctrl-backslash", [](Pty& p) { p.type("\x1c"); }},
      {"TERM", [](Pty& p) { p.signal(SIGTERM); }}, {"HUP", [](Pty& p) { p.signal(SIGHUP); }}};
  for (const auto& [name, go] : ways) {
    Pty pty(size_of(80, 24), watching(many(3)));
    ASSERT_TRUE(pty.shows("q quit")) << name;
    EXPECT_FALSE(pty.canonical()) << name;
    go(pty);
    EXPECT_TRUE(pty.printed("LEFT")) << name;
    EXPECT_FALSE(pty.vt.alternate) << name;
    EXPECT_TRUE(pty.vt.cursor) << name;
    EXPECT_TRUE(pty.canonical()) << name;
  }
}

// A job of its own below a parent in the same session, as a shell starts it; the parent says what becomes of it.
void as_a_job(const std::function<void()>& job) {
  std::signal(SIGTTOU, SIG_IGN);
  const pid_t pid = fork();
  if (pid == 0) {
    setpgid(0, 0);
    tcsetpgrp(STDIN_FILENO, getpid());
    std::signal(SIGTTOU, SIG_DFL);
    job();
    std::fflush(stdout);
    _exit(0);
  }
  setpgid(pid, pid);
  int status = 0;
  while (waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status)) {
    tcsetpgrp(STDIN_FILENO, getpid());
    std::puts("STOPPED");
    std::fflush(stdout);
    std::array<char, 16> line{};
    if (read(STDIN_FILENO, line.data(), line.size()) <= 0) return;
    tcsetpgrp(STDIN_FILENO, pid);
    kill(pid, SIGCONT);
  }
  tcsetpgrp(STDIN_FILENO, getpid());
}

TEST(Screen, CtrlZGivesTheTerminalToTheShellAndFgTakesItAgain) {
  Pty pty(size_of(80, 24), [] { as_a_job(watching(many(3))); });
  ASSERT_TRUE(pty.shows("2 of 3 GPUs"));
  pty.type("\x1a");
  ASSERT_TRUE(pty.printed("STOPPED"));
  EXPECT_FALSE(pty.vt.alternate);
  EXPECT_TRUE(pty.vt.cursor);
  EXPECT_TRUE(pty.canonical());
  pty.vt.clear();
  pty.type("fg\n");
  EXPECT_TRUE(pty.shows("2 of 3 GPUs"));
  EXPECT_TRUE(pty.vt.alternate);
  EXPECT_FALSE(pty.canonical());
  pty.type("q");
  EXPECT_TRUE(pty.printed("LEFT"));
}

TEST(Screen, NoColorIsObeyed) {
  Pty plain(size_of(80, 24), [] {
    setenv("NO_COLOR", "1", 1);
    watching(many(3))();
  });
  ASSERT_TRUE(plain.shows("2 of 3 GPUs"));
  EXPECT_EQ(plain.vt.colours, 0U);
  Pty coloured(size_of(80, 24), watching(many(3)));
  ASSERT_TRUE(coloured.shows("2 of 3 GPUs"));
  EXPECT_GT(coloured.vt.colours, 0U);
}

TEST(Screen, ADaemonThatGoesAwayIsSaidAndTheViewStays) {
  Pty pty(size_of(80, 24), [] {
    int looks = 0;
    const auto look = [&]() -> Result<Machine> {
      if (++looks > 3) return many(5);
      return tl::unexpected<Error>(Error{ErrorCode::Unavailable, "nobody is there"});
    };
    watch_screen(many(3), look, 0.2, ColourChoice::Never);
  });
  EXPECT_TRUE(pty.shows("2 of 3 GPUs"));
  EXPECT_TRUE(pty.shows("nobody is there"));
  EXPECT_TRUE(pty.shows("2 of 5 GPUs"));
}

}  // namespace
}  // namespace gpuhealth::cli
