// SPDX-License-Identifier: Apache-2.0
#include "core/spawn.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>

#include "core/fd.hpp"

namespace gpuhealth {
namespace {

std::string output_of(const std::string& script, std::vector<std::string> variables = {}) {
  std::array<int, 2> ends{};
  EXPECT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
  const Fd from(ends[0]);
  Fd to(ends[1]);
  SpawnFiles files;
  files.open(STDIN_FILENO, "/dev/null", O_RDONLY).dup(to.get(), STDOUT_FILENO);
  const auto pid = spawn({"sh", "-c", script}, files, std::move(variables));
  EXPECT_TRUE(pid);
  to.reset();
  std::string out;
  std::array<char, 256> bytes{};
  for (ssize_t n = 0; (n = read(from.get(), bytes.data(), bytes.size())) > 0;)
    out.append(bytes.data(), static_cast<std::size_t>(n));
  waitpid(*pid, nullptr, 0);
  return out;
}

TEST(Spawn, GivesTheDescriptorsAndTheEnvironmentThatWereAsked) {
  setenv("GPUHEALTH_SPAWN_TEST", "before", 1);
  setenv("GPUHEALTH_SPAWN_KEPT", "kept", 1);
  EXPECT_EQ(output_of("echo $GPUHEALTH_SPAWN_TEST $GPUHEALTH_SPAWN_KEPT"), "before kept\n");
  EXPECT_EQ(output_of("echo $GPUHEALTH_SPAWN_TEST $GPUHEALTH_SPAWN_KEPT", {"GPUHEALTH_SPAWN_TEST=after"}),
            "after kept\n");
}

TEST(Spawn, TheChildBlocksNoSignalThatWeBlock) {
  sigset_t blocked;
  sigset_t old;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  ASSERT_EQ(pthread_sigmask(SIG_BLOCK, &blocked, &old), 0);
  EXPECT_EQ(output_of("grep SigBlk /proc/self/status"), "SigBlk:\t0000000000000000\n");
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
}

TEST(Spawn, SaysWhatCannotBeStarted) {
  const auto pid = spawn({"/nonexistent/program"}, SpawnFiles());
  ASSERT_FALSE(pid);
  EXPECT_EQ(pid.error().sys_errno, ENOENT);
  EXPECT_NE(pid.error().text.find("/nonexistent/program"), std::string::npos);
  EXPECT_FALSE(spawn({}, SpawnFiles()));
}

}  // namespace
}  // namespace gpuhealth
