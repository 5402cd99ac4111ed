// SPDX-License-Identifier: Apache-2.0
// A child by posix_spawn: no copy of a large parent, an empty signal mask, descriptors laid out by the caller.
#pragma once

#include <spawn.h>
#include <sys/types.h>

#include <string>
#include <vector>

#include "core/error.hpp"

namespace gpuhealth {

// What the child's descriptors are, in the order of the calls.
class SpawnFiles {
 public:
  SpawnFiles() { posix_spawn_file_actions_init(&actions_); }
  ~SpawnFiles() { posix_spawn_file_actions_destroy(&actions_); }
  SpawnFiles(const SpawnFiles&) = delete;
  SpawnFiles& operator=(const SpawnFiles&) = delete;

  SpawnFiles& open(int fd, const std::string& path, int flags, mode_t mode = 0) {
    posix_spawn_file_actions_addopen(&actions_, fd, path.c_str(), flags, mode);
    return *this;
  }
  SpawnFiles& dup(int from, int to) {
    posix_spawn_file_actions_adddup2(&actions_, from, to);
    return *this;
  }
  [[nodiscard]] const posix_spawn_file_actions_t& actions() const { return actions_; }

 private:
  posix_spawn_file_actions_t actions_{};
};

// words[0] is the program: a path, or a name that is looked for in PATH. The environment is the caller's, with
// `variables` ("NAME=VALUE") in place of those of the same name. Error with errno when it cannot be started.
Result<pid_t> spawn(std::vector<std::string> words, const SpawnFiles& files, std::vector<std::string> variables = {});

}  // namespace gpuhealth
