// SPDX-License-Identifier: Apache-2.0
#include "cli/canary_run.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>

#include "core/fd.hpp"

namespace gpuhealth::cli {
namespace {

std::string worker_path() {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  for (const auto& path : {self / "gpuhealth-canary", self.parent_path() / "libexec" / "gpuhealth-canary"}) {
    if (std::filesystem::exists(path, error)) return path.string();
  }
  return "gpuhealth-canary";
}

Result<pid_t> spawn(const std::string& program, const std::vector<std::string>& arguments, int out, int err) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO);
  std::vector<std::string> words = {program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t pid = -1;
  const int error = posix_spawnp(&pid, program.c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return fail_errno("cannot start " + program, error);
  return pid;
}

// Calls `each` with every whole line that is there now; false at the end of the stream.
bool take_lines(int fd, std::string& partial, const std::function<void(const std::string&)>& each) {
  std::array<char, 16384> buffer{};
  const ssize_t n = read(fd, buffer.data(), buffer.size());
  if (n < 0 && errno == EINTR) return true;
  if (n <= 0) return false;
  partial.append(buffer.data(), static_cast<std::size_t>(n));
  for (auto end = partial.find('\n'); end != std::string::npos; end = partial.find('\n')) {
    each(partial.substr(0, end));
    partial.erase(0, end + 1);
  }
  return true;
}

}  // namespace

Result<WorkerOutcome> run_worker(const std::vector<std::string>& arguments,
                                 const std::function<void(const std::string&)>& progress) {
  std::array<int, 2> out{};
  std::array<int, 2> err{};
  if (pipe2(out.data(), O_CLOEXEC) != 0) return fail_errno("cannot make a pipe", errno);
  if (pipe2(err.data(), O_CLOEXEC) != 0) return fail_errno("cannot make a pipe", errno);
  const Fd out_read(out[0]), err_read(err[0]);
  Fd out_write(out[1]), err_write(err[1]);
  const auto pid = spawn(worker_path(), arguments, out_write.get(), err_write.get());
  if (!pid) return tl::unexpected(pid.error());
  out_write.reset();
  err_write.reset();
  WorkerOutcome outcome;
  std::string out_rest, err_rest, complaint;
  std::array<pollfd, 2> fds = {{{out_read.get(), POLLIN, 0}, {err_read.get(), POLLIN, 0}}};
  while (fds[0].fd >= 0 || fds[1].fd >= 0) {
    if (poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) break;
    if (fds[0].fd >= 0 && fds[0].revents != 0 && !take_lines(fds[0].fd, out_rest, [&](const std::string& line) {
          if (auto m = canary::parse_measurement(line)) outcome.lines.push_back(std::move(*m));
        }))
      fds[0].fd = -1;
    if (fds[1].fd >= 0 && fds[1].revents != 0 && !take_lines(fds[1].fd, err_rest, [&](const std::string& line) {
          if (line.find(' ') == std::string::npos)
            progress(line);
          else
            complaint = line;
        }))
      fds[1].fd = -1;
  }
  int status = 0;
  waitpid(*pid, &status, 0);
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  if (outcome.lines.empty())
    return fail(ErrorCode::Unavailable, complaint.empty() ? "the canary worker said nothing" : complaint);
  return outcome;
}

namespace {

Result<std::vector<std::string>> words_of(const std::string& program, const std::vector<std::string>& arguments) {
  std::array<int, 2> out{};
  if (pipe2(out.data(), O_CLOEXEC) != 0) return fail_errno("cannot make a pipe", errno);
  const Fd reading(out[0]);
  Fd writing(out[1]);
  const Fd nothing(open("/dev/null", O_WRONLY | O_CLOEXEC));
  const auto pid = spawn(program, arguments, writing.get(), nothing.get());
  if (!pid) return tl::unexpected(pid.error());
  writing.reset();
  std::vector<std::string> lines;
  std::string rest;
  while (take_lines(reading.get(), rest, [&](const std::string& line) { lines.push_back(line); })) {
  }
  waitpid(*pid, nullptr, 0);
  return lines;
}

}  // namespace

Result<std::vector<std::string>> worker_says(const std::vector<std::string>& arguments) {
  return words_of(worker_path(), arguments);
}

Result<std::string> this_program_says(const std::vector<std::string>& arguments) {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error).string();
  const auto lines = words_of(self, arguments);
  if (!lines) return tl::unexpected(lines.error());
  std::string all;
  for (const auto& line : *lines) all += line + "\n";
  return all;
}

Result<void> append_lines(const std::string& path, const std::string& lines) {
  const Fd file(open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0640));
  if (!file) return fail_errno("cannot open " + path, errno);
  if (write(file.get(), lines.data(), lines.size()) != static_cast<ssize_t>(lines.size()))
    return fail_errno("cannot write " + path, errno);
  return {};
}

}  // namespace gpuhealth::cli
