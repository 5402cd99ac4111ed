// SPDX-License-Identifier: Apache-2.0
#include "canary/worker/devices.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>

#include <nlohmann/json.hpp>

#include "canary/worker/driver_api.hpp"
#include "core/fd.hpp"

namespace gpuhealth::canary {
namespace {

using Steady = std::chrono::steady_clock;
constexpr std::size_t kMostOutput = 1U << 20U;

std::string problem_line(const std::string& backend, const std::string& problem) {
  const nlohmann::json line = {{"runtime", backend}, {"problem", problem}};
  return line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string lines_of(const std::string& backend) {
  const auto devices = backend == "opencl" ? list_opencl_devices() : list_driver_devices(backend);
  if (!devices) return problem_line(backend, devices.error().text);
  std::string out;
  for (const auto& device : *devices) {
    nlohmann::json line = {{"runtime", backend}, {"ordinal", device.ordinal}, {"pci", nullptr}, {"name", device.name}};
    if (device.pci) line["pci"] = to_string(*device.pci);
    out += line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  }
  return out.empty() ? problem_line(backend, "it sees no device") : out;
}

// The child: whatever the runtime prints itself goes nowhere.
[[noreturn]] void be_child(const std::string& backend, int out) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(nothing, fd);
  const auto text = lines_of(backend);
  for (std::size_t at = 0; at < text.size();) {
    const auto n = write(out, text.data() + at, text.size() - at);
    if (n <= 0) break;
    at += static_cast<std::size_t>(n);
  }
  _exit(0);  // destructors of runtimes hang as well
}

}  // namespace

Result<std::vector<RuntimeDevice>> list_driver_devices(const std::string& backend) {
  const bool hip = backend == "hip";
  auto library = load_library(hip ? std::vector<std::string>{"libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6",
                                                             "libamdhip64.so.5", "/opt/rocm/lib/libamdhip64.so"}
                                  : std::vector<std::string>{"libcuda.so.1"});
  if (!library) return fail(ErrorCode::Unavailable, "not installed: " + library.error().text);
  const auto api = load_driver_api(*library, hip ? Vendor::Hip : Vendor::Cuda);
  if (!api) return tl::unexpected(api.error());
  const Code began = api->init(0);
  int count = 0;
  const Code counted = api->device_count(&count);
  if (counted != 0 || (began != 0 && count == 0))
    return fail(ErrorCode::Unavailable,
                "it finds no device (code " + std::to_string(counted != 0 ? counted : began) + ")");
  std::vector<RuntimeDevice> out;
  for (int i = 0; i < count; ++i) {
    RuntimeDevice device;
    device.ordinal = i;
    int handle = 0;
    std::array<char, 256> name{};
    std::array<char, 64> pci{};
    if (api->device_get(&handle, i) == 0) {
      if (api->device_name(name.data(), name.size() - 1, handle) == 0) device.name = name.data();
      if (api->device_pci(pci.data(), pci.size() - 1, handle) == 0) device.pci = parse_pci_address(pci.data());
    }
    out.push_back(std::move(device));
  }
  return out;
}

void print_runtime_devices(const std::string& backend, double deadline_s) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return;
  const Fd ours(ends[0]);
  Fd theirs(ends[1]);
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) be_child(backend, theirs.get());
  theirs.reset();
  std::string text;
  bool ended = child < 0;
  const auto until = Steady::now() + std::chrono::duration<double>(deadline_s);
  while (!ended && text.size() < kMostOutput) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Steady::now()).count();
    pollfd wait{ours.get(), POLLIN, 0};
    if (left <= 0 || poll(&wait, 1, static_cast<int>(left)) == 0) break;
    std::array<char, 4096> buffer{};
    const auto n = read(ours.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    ended = n <= 0;
    if (n > 0) text.append(buffer.data(), static_cast<std::size_t>(n));
  }
  if (!ended) {
    kill(child, SIGKILL);  // one that hangs in the kernel is not waited for
    text = problem_line(backend, "it does not answer within " + std::to_string(static_cast<int>(deadline_s)) + " s");
  } else if (int status = 0; child > 0 && waitpid(child, &status, 0) == child && WIFSIGNALED(status)) {
    text = problem_line(backend, "it was ended by signal " + std::to_string(WTERMSIG(status)) + " while it was asked");
  }
  std::fputs(text.c_str(), stdout);
}

}  // namespace gpuhealth::canary
