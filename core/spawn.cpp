// SPDX-License-Identifier: Apache-2.0
#include "core/spawn.hpp"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <string_view>

namespace gpuhealth {
namespace {

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  out.reserve(texts.size() + 1);
  for (auto& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

}  // namespace

Result<pid_t> spawn(std::vector<std::string> words, const SpawnFiles& files, std::vector<std::string> variables) {
  if (words.empty()) return fail(ErrorCode::InvalidInput, "there is no program to start");
  const auto named = variables.size();
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view variable = *entry;
    const auto name = variable.substr(0, variable.find('=') + 1);
    const auto end = variables.begin() + static_cast<std::ptrdiff_t>(named);
    if (std::none_of(variables.begin(), end, [&](const std::string& v) { return v.starts_with(name); }))
      variables.emplace_back(variable);
  }
  const auto argv = pointers(words);
  const auto envp = pointers(variables);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  pid_t pid = -1;
  const int error = posix_spawnp(&pid, argv[0], &files.actions(), &attributes, argv.data(), envp.data());
  posix_spawnattr_destroy(&attributes);
  if (error != 0) return fail_errno("cannot start " + words.front(), error);
  return pid;
}

}  // namespace gpuhealth
