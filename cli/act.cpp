// SPDX-License-Identifier: Apache-2.0
#include "cli/act.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "core/fd.hpp"
#include "core/json.hpp"

namespace gpuhealth::cli {
namespace {

std::string find_act() {
  std::error_code ignored;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
  const auto beside = self / "gpuhealth-act";
  if (access(beside.c_str(), X_OK) == 0) return beside.string();
  return (self.parent_path() / "libexec" / "gpuhealth-act").string();
}

Result<std::string> start_act(const std::vector<std::string>& words, int& code) {
  const std::string program = find_act();
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno("cannot start gpuhealth-act", errno);
  const Fd in(ends[0]);
  Fd out(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) return fail_errno("cannot start gpuhealth-act", errno);
  if (child == 0) {
    (void)::dup2(out.get(), STDOUT_FILENO);
    std::vector<char*> arguments{const_cast<char*>(program.c_str())};
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    ::execv(program.c_str(), arguments.data());
    ::_exit(127);
  }
  out.reset();
  std::string said;
  char buffer[4096];
  while (true) {
    const ssize_t n = ::read(in.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    said.append(buffer, static_cast<std::size_t>(n));
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  if (code == 127 || code < 0)
    return fail(ErrorCode::Unavailable, program + " did not run: is gpuhealthd installed whole?");
  return said;
}

}  // namespace

ExitCode run_act(const Context& context, const std::vector<std::string>& words,
                 const std::function<Page(const Json&)>& shown) {
  int code = 0;
  const auto said = start_act(words, code);
  if (!said) return complain(context, said.error());
  const Json json = parse_json<Json>(*said);
  if (!json.is_object())
    return complain(context, {ErrorCode::Internal, "gpuhealth-act said something that is not JSON", 0});
  if (json.contains("error")) {
    const Json& error = json["error"];
    Error out{ErrorCode::Unavailable, error.value("text", "it failed"), 0};
    for (int i = 0; i <= static_cast<int>(ErrorCode::Internal); ++i)
      if (to_string(static_cast<ErrorCode>(i)) == error.value("code", "")) out.code = static_cast<ErrorCode>(i);
    return complain(context, out);
  }
  show(context, [&] { return shown(json); }, [&] { return Json(json); });
  return static_cast<ExitCode>(code);
}

}  // namespace gpuhealth::cli
