// SPDX-License-Identifier: Apache-2.0
// The file system itself, in namespaces of its own; only where the machine lets us mount FUSE.
#include "sim/fault_fs.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <fstream>

#include "core/fd.hpp"
#include "sim/isolation.hpp"
#include "tests/support/temp_dir.hpp"

namespace gpuhealth::sim {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

int reads(const fs::path& path) {  // bytes, or minus errno
  const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return -errno;
  std::array<char, 4096> bytes{};
  const ssize_t got = pread(file.get(), bytes.data(), bytes.size(), 0);
  return got < 0 ? -errno : static_cast<int>(got);
}

int writes(const fs::path& path) {
  const Fd file(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file) return -errno;
  return write(file.get(), "7", 1) == 1 ? 1 : -errno;
}

char state_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string word;
  file >> word >> word >> word;
  return word.empty() ? '?' : word[0];
}

// Fails the check with its number; exit statuses are all that comes out of the namespaces.
#define CHECK_THAT(what)                                              \
  do {                                                                \
    if (!(what)) {                                                    \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #what); \
      return 1;                                                       \
    }                                                                 \
  } while (false)

int faults(const fs::path& home) {
  const fs::path backing = home / "backing";
  const fs::path view = home / "view";
  auto mounted = FaultFs::mount(backing, view);
  CHECK_THAT(mounted);
  FaultFs& files = **mounted;
  const auto value = view / "card/value";
  CHECK_THAT(reads(value) == 3);
  CHECK_THAT(fs::read_symlink(view / "link") == "card/value");
  CHECK_THAT(fs::file_size(value) == 4096);

  const int error = files.add("*/value", {Fault::Kind::ReadError, EBUSY});
  CHECK_THAT(reads(value) == -EBUSY);
  files.remove(error);
  CHECK_THAT(reads(value) == 3);
  const int refused = files.add("card/*", {Fault::Kind::OpenError, EPERM});
  CHECK_THAT(reads(value) == -EPERM);
  files.remove(refused);
  const int cut = files.add("*", {Fault::Kind::Short, 2});
  CHECK_THAT(reads(value) == 2);
  files.remove(cut);
  const int locked = files.add("*", {Fault::Kind::WriteError, EINVAL});
  CHECK_THAT(writes(value) == -EINVAL);
  files.remove(locked);
  CHECK_THAT(writes(value) == 1);
  CHECK_THAT(reads(value) == 1);

  // A device that leaves while its file is open.
  const Fd open_file(open(value.c_str(), O_RDONLY | O_CLOEXEC));
  fs::rename(backing / "card", backing / "gone");
  char byte = 0;
  CHECK_THAT(pread(open_file.get(), &byte, 1, 0) == -1 && errno == ENODEV);
  fs::rename(backing / "gone", backing / "card");

  // A read that never returns: no signal ends it, the fault's end does.
  const int hang = files.add("*/value", {Fault::Kind::Hang, 0});
  const pid_t reader = fork();
  if (reader == 0) _exit(reads(value) == 1 ? 0 : 1);
  while (files.held() == 0) usleep(1000);
  kill(reader, SIGKILL);
  for (int i = 0; i < 5000 && state_of(reader) != 'D'; ++i) usleep(1000);
  CHECK_THAT(state_of(reader) == 'D');
  CHECK_THAT(waitpid(reader, nullptr, WNOHANG) == 0);
  files.remove(hang);
  CHECK_THAT(waitpid(reader, nullptr, 0) == reader);

  std::size_t written = 0;
  for (const auto& access : files.accesses()) written += access.kind == AccessKind::Write ? 1 : 0;
  CHECK_THAT(written == 2);

  // Told to remember opening alone, it forgets to note the rest.
  files.remember({AccessKind::Open});
  const auto before = files.accesses().size();
  CHECK_THAT(reads(value) == 1);
  CHECK_THAT(files.accesses().size() == before + 1);
  CHECK_THAT(files.accesses().back().kind == AccessKind::Open);
  return 0;
}

TEST(FaultFs, GivesTheFaultsItIsToldAndCountsWhoAsks) {
  const test::TempDir home;
  fs::create_directories(home.path() / "backing/card");
  fs::create_directory(home.path() / "view");
  std::ofstream(home.path() / "backing/card/value") << "42\n";
  fs::create_symlink("card/value", home.path() / "backing/link");
  if (access("/dev/fuse", F_OK) != 0) GTEST_SKIP() << "this machine has no /dev/fuse";
  const auto status = run_isolated([&] { return faults(home.path()); });
  ASSERT_TRUE(status) << status.error().text;
  EXPECT_EQ(*status, 0);
}

TEST(Isolation, GivesTheValueAndLeavesNothing) {
  const auto status = run_isolated([] {
    if (getpid() != 2 || getppid() != 1) return 1;
    if (fork() == 0) pause();  // ends with its namespace
    return 42;
  });
  ASSERT_TRUE(status) << status.error().text;
  EXPECT_EQ(*status, 42);
}

TEST(Isolation, SeesOffWhoLosesHisParent) {
  const auto status = run_isolated([] {
    std::array<int, 2> ends{};
    if (pipe(ends.data()) != 0) return 1;
    const pid_t parent = fork();
    if (parent == 0) {
      const pid_t orphan = fork();
      if (orphan == 0) _exit(0);
      _exit(write(ends[1], &orphan, sizeof orphan) == sizeof orphan ? 0 : 1);
    }
    pid_t orphan = 0;
    if (read(ends[0], &orphan, sizeof orphan) != sizeof orphan || orphan <= 0) return 2;
    if (waitpid(parent, nullptr, 0) != parent) return 3;
    for (int i = 0; i < 5000; ++i) {
      if (kill(orphan, 0) != 0 && errno == ESRCH) return 42;  // not even a zombie
      usleep(1000);
    }
    return 4;
  });
  ASSERT_TRUE(status) << status.error().text;
  EXPECT_EQ(*status, 42);
}

}  // namespace
}  // namespace gpuhealth::sim
