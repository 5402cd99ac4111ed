// SPDX-License-Identifier: Apache-2.0
// A command as a user runs it: its exit code, and what it printed.
#pragma once

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>

namespace gpuhealth::test {

struct Outcome {
  int code = -1;    // -1: it did not end by itself
  std::string out;  // standard output, and what the command sends there
};

// Through the shell, with an empty standard input and two minutes at most.
inline Outcome run_command(const std::string& command) {
  Outcome outcome;
  std::FILE* pipe = popen(("timeout 120 " + command + " </dev/null").c_str(), "re");  // NOLINT: our own words
  if (pipe == nullptr) return outcome;
  std::array<char, 4096> buffer{};
  while (const std::size_t got = std::fread(buffer.data(), 1, buffer.size(), pipe))
    outcome.out.append(buffer.data(), got);
  const int status = pclose(pipe);
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return outcome;
}

}  // namespace gpuhealth::test
