// SPDX-License-Identifier: Apache-2.0
// gpuhealth-reader: reads the GPUs' files for gpuhealthd. Started by it with a pipe at each end and shared memory at
// descriptor 3; not meant to be run by hand.
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/exit_codes.hpp"
#include "core/version.hpp"
#include "telemetry/kfd_events.hpp"
#include "telemetry/kmsg.hpp"
#include "telemetry/nvml_reader.hpp"
#include "telemetry/reader.hpp"
#include "telemetry/reader_once.hpp"
#include "telemetry/rocm_smi_reader.hpp"

namespace {

constexpr int kProgressFd = 3;

gpuhealth::telemetry::Progress* map_progress() {
  struct stat info{};
  if (fstat(kProgressFd, &info) != 0 || static_cast<std::size_t>(info.st_size) < sizeof(gpuhealth::telemetry::Progress))
    return nullptr;
  void* memory =
      mmap(nullptr, sizeof(gpuhealth::telemetry::Progress), PROT_READ | PROT_WRITE, MAP_SHARED, kProgressFd, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<gpuhealth::telemetry::Progress*>(memory);
}

}  // namespace

int main(int argc, char** argv) {
  using gpuhealth::ExitCode;
  std::string sysroot;
  std::string source = "sysfs";
  std::string library;
  bool once = false;
  std::vector<std::string> skip;
  std::optional<std::uint64_t> after;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--version") == 0) {
      std::printf("gpuhealth-reader %s\n", gpuhealth::kVersion);
      return 0;
    }
    if (std::strcmp(argv[i], "--once") == 0) {
      once = true;
      continue;
    }
    if (std::strcmp(argv[i], "--sysroot") == 0 && i + 1 < argc) {
      sysroot = argv[++i];
      continue;
    }
    if (std::strcmp(argv[i], "--source") == 0 && i + 1 < argc) {
      source = argv[++i];
      continue;
    }
    if (std::strcmp(argv[i], "--library") == 0 && i + 1 < argc) {
      library = argv[++i];
      continue;
    }
    if (std::strcmp(argv[i], "--skip") == 0 && i + 1 < argc) {
      skip.emplace_back(argv[++i]);
      continue;
    }
    if (std::strcmp(argv[i], "--after") == 0 && i + 1 < argc) {
      after = std::strtoull(argv[++i], nullptr, 10);
      continue;
    }
    std::fprintf(
        stderr,
        "gpuhealth-reader: %s: expected --sysroot DIR, --source sysfs, clients, kfd-events, kmsg, nvml or rocm-smi, "
        "--library FILE, --skip QUERY, --after NUMBER, --once; gpuhealthd "
        "starts this program, see gpuhealthd(8)\n",
        argv[i]);
    return static_cast<int>(ExitCode::Usage);
  }
  // It must not outlive the daemon; a stuck one dies as soon as its read returns.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::signal(SIGPIPE, SIG_IGN);
  if (source == "kmsg") return gpuhealth::telemetry::follow_kmsg(sysroot, after, STDIN_FILENO, STDOUT_FILENO);
  if (source == "kfd-events") return gpuhealth::telemetry::follow_kfd_events(sysroot, STDIN_FILENO, STDOUT_FILENO);
  const gpuhealth::SystemClock clock;
  using gpuhealth::telemetry::Request;
  using Bytes = std::vector<std::uint8_t>;
  const auto work = [&](const std::function<void(const Request&, Bytes&)>& answer) {
    return once ? gpuhealth::telemetry::print_once(answer, stdout)
                : gpuhealth::telemetry::serve(answer, STDIN_FILENO, STDOUT_FILENO);
  };
  if (source == "nvml") {
    gpuhealth::telemetry::NvmlReader reader(sysroot, library.empty() ? "libnvidia-ml.so.1" : library, clock,
                                            map_progress());
    return work([&](const Request& r, Bytes& out) { reader.answer(r, out); });
  }
  if (source == "rocm-smi") {
    gpuhealth::telemetry::RocmSmiReader reader(library.empty() ? "librocm_smi64.so.1" : library, skip, map_progress());
    return work([&](const Request& r, Bytes& out) { reader.answer(r, out); });
  }
  if (source == "sysfs" || source == "clients") {
    gpuhealth::telemetry::Reader reader(sysroot, clock, map_progress());
    return work([&](const Request& r, Bytes& out) { reader.answer(r, out); });
  }
  std::fprintf(stderr, "gpuhealth-reader: --source %s: expected sysfs, clients, kfd-events, kmsg, nvml or rocm-smi\n",
               source.c_str());
  return static_cast<int>(ExitCode::Usage);
}
