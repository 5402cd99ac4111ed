// SPDX-License-Identifier: Apache-2.0
// Runs the real worker as a user would.
#pragma once

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "canary/measurement.hpp"
#include "tests/paths.hpp"
#include "tests/support/temp_dir.hpp"

namespace gpuhealth::canary {

struct WorkerRun {
  int code = -1;
  std::string out;
  std::vector<Measurement> lines;
  std::vector<std::string> bad_lines;
  [[nodiscard]] const Measurement* find(const std::string& canary, const std::string& metric = "") const {
    for (const auto& m : lines) {
      if (m.canary == canary && (metric.empty() || m.metric == metric)) return &m;
    }
    return nullptr;
  }
};

inline WorkerRun run_worker(const std::string& arguments, const std::string& environment = "") {
  WorkerRun run;
  const std::string line = environment + " " GPUHEALTH_BIN_DIR "/gpuhealth-canary " + arguments + " 2>/dev/null";
  FILE* pipe = popen(line.c_str(), "r");
  std::array<char, 65536> buffer{};
  while (std::fgets(buffer.data(), buffer.size(), pipe) != nullptr) {
    run.out += buffer.data();
    if (auto m = parse_measurement(buffer.data()))
      run.lines.push_back(std::move(*m));
    else
      run.bad_lines.emplace_back(buffer.data());
  }
  const int status = pclose(pipe);
  run.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return run;
}

// A folder with a stand-in runtime that has its orders.
class StandIn {
 public:
  explicit StandIn(const std::string& orders) {
    namespace fs = std::filesystem;
    fs::copy_file(GPUHEALTH_BIN_DIR "/standin/libstandin_opencl.so", folder_.path() / "libOpenCL.so.1");
    std::ofstream(folder_.path() / "orders") << orders << "\n";
  }
  [[nodiscard]] std::string environment() const { return "LD_LIBRARY_PATH=" + folder_.path().string(); }

 private:
  test::TempDir folder_;
};

}  // namespace gpuhealth::canary
