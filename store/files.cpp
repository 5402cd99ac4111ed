// SPDX-License-Identifier: Apache-2.0
#include "store/files.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "core/fd.hpp"

namespace gpuhealth::store {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kDirectoryMode = 0750;
constexpr mode_t kFileMode = 0640;
constexpr off_t kPageSize = 4096;
constexpr std::array<const char*, 3> kParts = {"", "-wal", "-shm"};

Result<void> make_directory(const fs::path& directory) {
  struct stat info{};
  if (directory.empty() || ::stat(directory.c_str(), &info) == 0) return {};
  if (directory.has_parent_path() && directory.parent_path() != directory) {
    if (auto made = make_directory(directory.parent_path()); !made) return made;
  }
  if (::mkdir(directory.c_str(), kDirectoryMode) != 0 && errno != EEXIST)
    return fail_errno(directory.string() + ": cannot create the directory", errno);
  return {};
}

// "history.db.damaged-12" -> 12, also with -wal or -shm behind.
std::optional<int> damaged_number(std::string_view name, std::string_view base) {
  const std::string prefix = std::string(base) + ".damaged-";
  if (!name.starts_with(prefix)) return std::nullopt;
  name.remove_prefix(prefix.size());
  int number = 0;
  const auto [end, problem] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (problem != std::errc{} || number < 0) return std::nullopt;
  const std::string_view rest(end, static_cast<std::size_t>(name.data() + name.size() - end));
  if (std::ranges::find(kParts, rest) == kParts.end()) return std::nullopt;
  return number;
}

std::vector<int> damaged_numbers(const fs::path& path) {
  std::vector<int> numbers;
  const fs::path directory = path.has_parent_path() ? path.parent_path() : fs::path(".");
  std::error_code problem;
  for (fs::directory_iterator it(directory, problem), end; !problem && it != end; it.increment(problem)) {
    if (const auto number = damaged_number(it->path().filename().string(), path.filename().string()))
      numbers.push_back(*number);
  }
  std::ranges::sort(numbers);
  const auto repeated = std::ranges::unique(numbers);
  numbers.erase(repeated.begin(), repeated.end());
  return numbers;
}

std::string damaged_name(const std::string& path, int number) {
  return path + ".damaged-" + std::to_string(number);
}

}  // namespace

Result<void> prepare_file(const std::string& path, bool& empty) {
  if (auto made = make_directory(fs::path(path).parent_path()); !made) return made;
  // O_NONBLOCK: a fifo of this name must not hold the thread.
  const Fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, kFileMode));
  if (!file) return fail_errno(path + ": cannot open", errno);
  struct stat info{};
  if (::fstat(file.get(), &info) != 0) return fail_errno(path + ": cannot stat", errno);
  if (!S_ISREG(info.st_mode)) return fail(ErrorCode::InvalidInput, path + ": not a regular file; move it away");
  if ((info.st_mode & 07777 & ~kFileMode) != 0 && ::fchmod(file.get(), info.st_mode & kFileMode) != 0)
    return fail_errno(path + ": cannot set the mode", errno);
  empty = info.st_size == 0;
  return {};
}

bool is_cut(const std::string& path) {
  struct stat file{};
  struct stat log{};
  if (::stat(path.c_str(), &file) != 0 || file.st_size % kPageSize == 0) return false;
  return ::stat((path + "-wal").c_str(), &log) != 0 || log.st_size == 0 || file.st_size < kPageSize;
}

Result<std::string> set_aside(const std::string& path) {
  auto numbers = damaged_numbers(path);
  const int number = numbers.empty() ? 1 : numbers.back() + 1;
  std::string name = damaged_name(path, number);
  for (const char* part : kParts) {
    std::string from = path;
    std::string to = name;
    from += part;
    to += part;
    if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) != 0 && errno != ENOENT)
      return fail_errno(from.append(": cannot rename to ").append(to), errno);
  }
  numbers.push_back(number);
  for (std::size_t i = 0; i + kDamagedKept < numbers.size(); ++i) {
    for (const char* part : kParts) ::unlink(damaged_name(path, numbers[i]).append(part).c_str());
  }
  return name;
}

std::uint64_t size_on_disk(const std::string& path) {
  std::uint64_t size = 0;
  for (const char* part : {"", "-wal"}) {
    struct stat info{};
    if (::stat((path + part).c_str(), &info) == 0) size += static_cast<std::uint64_t>(info.st_size);
  }
  return size;
}

}  // namespace gpuhealth::store
