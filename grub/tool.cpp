// SPDX-License-Identifier: Apache-2.0
#include "grub/tool.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "core/fd.hpp"
#include "grub/settings.hpp"

namespace gpuhealth::grub {
namespace {

// Titles are written in the language of whoever makes the menu: that of the system, not of this process.
std::string system_language(const Tree& tree) {
  for (const std::string_view path : {"/etc/default/locale", "/etc/locale.conf"}) {
    const auto text = tree.read(path, std::size_t{64} << 10);
    if (!text) continue;
    Settings values;
    read_settings(values, path, *text);
    if (!values.value("LANG").empty()) return values.value("LANG");
  }
  return "C";
}

[[noreturn]] void become(const Tree& tree, const std::vector<std::string>& command, const std::string& language,
                         int out) {
  if (::setpgid(0, 0) != 0) ::_exit(126);
  const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (null >= 0) (void)::dup2(null, STDIN_FILENO);
  (void)::dup2(out, STDOUT_FILENO);
  (void)::dup2(out, STDERR_FILENO);
  if (!tree.running() && (::chroot(tree.root().c_str()) != 0 || ::chdir("/") != 0)) ::_exit(125);
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  std::string lang = "LANG=" + language;
  std::string path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
  std::string home = "HOME=/root";
  char* environment[] = {lang.data(), path.data(), home.data(), nullptr};
  ::execvpe(command.front().c_str(), arguments.data(), environment);
  ::_exit(127);
}

std::string in_seconds(std::chrono::milliseconds time) {
  return std::to_string(std::chrono::ceil<std::chrono::seconds>(time).count()) + " s";
}

// What it says, to its end; `late` is why it was ended before.
std::string read_end(int fd, pid_t child, const ToolPatience& patience, std::string& late) {
  using std::chrono::milliseconds;
  using std::chrono::steady_clock;
  std::string said;
  const auto end = steady_clock::now() + patience.most;
  auto next_word = steady_clock::now() + patience.silence;
  while (true) {
    const auto now = steady_clock::now();
    if (now >= end) late = "did not end within " + in_seconds(patience.most);
    if (late.empty() && now >= next_word) late = "said nothing for " + in_seconds(patience.silence);
    if (!late.empty()) {
      (void)::kill(-child, SIGKILL);
      return said;
    }
    const auto left = std::chrono::ceil<milliseconds>(std::min(end, next_word) - now);
    pollfd waiting{fd, POLLIN, 0};
    if (::poll(&waiting, 1, static_cast<int>(left.count())) <= 0) continue;
    next_word = steady_clock::now() + patience.silence;
    char buffer[4096];
    const ssize_t n = ::read(fd, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return said;
    said.append(buffer, static_cast<std::size_t>(n));
    if (said.size() > 16384) said.erase(0, said.size() - 8192);
  }
}

std::string last_lines(const std::string& said) {
  std::string text = said.size() > 600 ? said.substr(said.size() - 600) : said;
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

}  // namespace

Result<void> run_tool(const Tree& tree, const std::vector<std::string>& command, const ToolPatience& patience) {
  if (!tree.running() && ::geteuid() != 0)
    return fail(ErrorCode::NotPermitted, "running " + command.front() + " inside " + tree.root() + " needs root");
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno("cannot start " + command.front(), errno);
  const Fd in(ends[0]);
  Fd out(ends[1]);
  const std::string language = system_language(tree);
  const pid_t child = ::fork();
  if (child < 0) return fail_errno("cannot start " + command.front(), errno);
  if (child == 0) become(tree, command, language, out.get());
  out.reset();
  std::string late;
  const std::string said = read_end(in.get(), child, patience, late);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!late.empty()) return fail(ErrorCode::Unavailable, command.front() + " " + late);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  if (code == 127)
    return fail(ErrorCode::Unavailable, command.front() + " cannot be run inside " + tree.root() +
                                            ": it, its shell or its libraries are missing");
  return fail(ErrorCode::Unavailable,
              command.front() + " failed with exit code " + std::to_string(code) + ": " + last_lines(said));
}

}  // namespace gpuhealth::grub
