// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "actions/machine.hpp"

namespace gpuhealth::actions {
namespace {

using Steady = std::chrono::steady_clock;

[[noreturn]] void become(const std::vector<char*>& words, const std::vector<char*>& variables, int in, int out) {
  (void)::setpgid(0, 0);
  for (const int signal : {SIGINT, SIGHUP, SIGTERM, SIGPIPE}) (void)::signal(signal, SIG_DFL);
  if (::dup2(in, STDIN_FILENO) < 0 || ::dup2(out, STDOUT_FILENO) < 0 || ::dup2(out, STDERR_FILENO) < 0 ||
      ::chdir("/") != 0)
    ::_exit(126);
  ::execve(words.front(), words.data(), variables.data());
  ::_exit(127);
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  out.reserve(texts.size() + 1);
  for (std::string& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

struct Talk {
  Fd to;
  Fd from;
  std::string_view input;
};

// Feeds and listens until the program has said its last word or its time is over.
bool talk(Talk& talk, const ProgramRun& run, std::string& said) {
  const auto deadline = Steady::now() + run.deadline;
  while (talk.from) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Steady::now()).count();
    if (left <= 0) return false;
    if (talk.input.empty()) talk.to.reset();
    std::array<pollfd, 2> waiting{{{talk.from.get(), POLLIN, 0}, {talk.to.get(), POLLOUT, 0}}};
    if (::poll(waiting.data(), talk.to ? 2 : 1, static_cast<int>(left)) <= 0) continue;
    if (talk.to && waiting[1].revents != 0) {
      const ssize_t n = ::write(talk.to.get(), talk.input.data(), std::min<std::size_t>(talk.input.size(), 4096));
      if (n > 0) {
        talk.input.remove_prefix(static_cast<std::size_t>(n));
      } else if (n < 0 && errno != EAGAIN && errno != EINTR) {
        talk.to.reset();  // it does not want to hear the rest
        talk.input = {};
      }
    }
    if (waiting[0].revents == 0) continue;
    std::array<char, 4096> buffer{};
    const ssize_t n = ::read(talk.from.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    said.append(buffer.data(), std::min(static_cast<std::size_t>(n), run.most - std::min(run.most, said.size())));
  }
  return true;
}

// Its exit after it closed its ends; false when it does not come by the deadline.
bool ended(pid_t child, Steady::time_point deadline, int& status) {
  while (::waitpid(child, &status, WNOHANG) == 0) {
    if (Steady::now() >= deadline) return false;
    const timespec moment{0, 2'000'000};
    (void)::nanosleep(&moment, nullptr);
  }
  return true;
}

}  // namespace

Result<ProgramEnd> run_program(const ProgramRun& run) {
  if (run.words.empty()) return fail(ErrorCode::InvalidInput, "there is no program to run");
  (void)::signal(SIGPIPE, SIG_IGN);
  std::array<int, 2> down{};
  std::array<int, 2> up{};
  if (::pipe2(down.data(), O_CLOEXEC | O_NONBLOCK) != 0) return fail_errno("cannot start " + run.words.front(), errno);
  Fd in(down[0]);
  Talk pipes;
  pipes.to.reset(down[1]);
  if (::pipe2(up.data(), O_CLOEXEC) != 0) return fail_errno("cannot start " + run.words.front(), errno);
  pipes.from.reset(up[0]);
  Fd out(up[1]);
  pipes.input = run.input;
  // The child's end must wait for what we say.
  (void)::fcntl(in.get(), F_SETFL, 0);
  std::vector<std::string> words = run.words;
  std::vector<std::string> variables = {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                                        "LANG=C.UTF-8"};
  variables.insert(variables.end(), run.variables.begin(), run.variables.end());
  const auto argv = pointers(words);
  const auto envp = pointers(variables);
  const auto deadline = Steady::now() + run.deadline;
  const pid_t child = ::fork();
  if (child < 0) return fail_errno("cannot start " + run.words.front(), errno);
  if (child == 0) become(argv, envp, in.get(), out.get());
  (void)::setpgid(child, child);
  in.reset();
  out.reset();
  ProgramEnd end;
  int status = 0;
  end.late = !talk(pipes, run, end.said) || !ended(child, deadline, status);
  if (end.late) {
    (void)::kill(-child, SIGKILL);
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
  } else {
    (void)::kill(-child, SIGKILL);  // what it left behind
  }
  end.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  if (end.code == 127 && end.said.empty()) return fail(ErrorCode::NotFound, run.words.front() + " cannot be run");
  return end;
}

}  // namespace gpuhealth::actions
