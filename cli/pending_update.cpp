// SPDX-License-Identifier: Apache-2.0
#include "cli/pending_update.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cctype>
#include <chrono>
#include <csignal>
#include <sstream>

#include "core/fd.hpp"
#include "core/spawn.hpp"
#include "grub/version.hpp"

namespace gpuhealth::cli {
namespace {

constexpr auto kDeadline = std::chrono::seconds(30);
constexpr std::size_t kMostSaid = std::size_t{4} << 20;
constexpr const char* kApt = "/usr/bin/apt-get";

std::string output_of(std::vector<std::string> command) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return {};
  const Fd in(ends[0]);
  Fd out(ends[1]);
  SpawnFiles files;
  files.open(STDIN_FILENO, "/dev/null", O_RDONLY)
      .dup(out.get(), STDOUT_FILENO)
      .open(STDERR_FILENO, "/dev/null", O_WRONLY);
  const auto child = spawn(std::move(command), files, {"LC_ALL=C"});
  out.reset();
  if (!child) return {};
  std::string said;
  const auto end = std::chrono::steady_clock::now() + kDeadline;
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    pollfd waiting{in.get(), POLLIN, 0};
    if (left.count() <= 0 || ::poll(&waiting, 1, static_cast<int>(left.count())) <= 0) {
      (void)::kill(*child, SIGKILL);
      said.clear();
      break;
    }
    std::array<char, 16384> buffer{};
    const ssize_t n = ::read(in.get(), buffer.data(), buffer.size());
    if (n <= 0) break;
    if (said.size() < kMostSaid) said.append(buffer.data(), static_cast<std::size_t>(n));
  }
  int status = 0;
  (void)::waitpid(*child, &status, 0);
  return said;
}

}  // namespace

// "Inst linux-image-6.1.0-58-amd64 [OLD] (6.1.158-1 Debian-Security:12/oldstable-security [amd64])"; a metapackage
// (linux-image-amd64) names no release.
std::optional<PendingKernel> kernel_in_apt_plan(const std::string& text) {
  constexpr std::string_view kBegin = "Inst linux-image-";
  std::optional<PendingKernel> out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(kBegin)) continue;
    std::string name = line.substr(kBegin.size(), line.find(' ', kBegin.size()) - kBegin.size());
    const auto open = line.find('(');
    if (open == std::string::npos) continue;
    PendingKernel one;
    one.package.name = "linux-image-" + name;
    one.package.version = line.substr(open + 1, line.find_first_of(" )", open) - open - 1);
    if (name.starts_with("unsigned-")) name.erase(0, 9);
    if (name.empty() || std::isdigit(static_cast<unsigned char>(name.front())) == 0) continue;
    one.release = name;
    if (!out || grub::compare(grub::Ordering::Dpkg, out->package.version, one.package.version) < 0)
      out = std::move(one);
  }
  return out;
}

std::optional<PendingKernel> pending_kernel() {
  if (::access(kApt, X_OK) != 0) return std::nullopt;
  return kernel_in_apt_plan(output_of({kApt, "-s", "-q", "-o", "Debug::NoLocking=1", "dist-upgrade"}));
}

}  // namespace gpuhealth::cli
