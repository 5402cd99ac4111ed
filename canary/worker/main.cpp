// SPDX-License-Identifier: Apache-2.0
// gpuhealth-canary: runs canaries on one GPU through one runtime and prints a JSON line a measurement.
#include <getopt.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>

#include "canary/measurement.hpp"
#include "canary/worker/devices.hpp"
#include "canary/worker/environment.hpp"
#include "canary/worker/supervisor.hpp"
#include "core/exit_codes.hpp"
#include "core/version.hpp"

namespace {

using namespace gpuhealth;
using namespace gpuhealth::canary;

constexpr const char* kUsage =
    "usage: gpuhealth-canary [OPTION...]\n"
    "Measures what a GPU can do, compares every result bit for bit, and prints one JSON object a line.\n"
    "\n"
    "  --backend NAME     ioctl, hip, opencl, cuda, or auto (default): what the machine has\n"
    "  --tier N           0, 1 (default), 2 or 3: the canaries of this tier and those below\n"
    "  --only NAME        one canary, whatever its tier; may be repeated; --list names them\n"
    "  --device PCI       a GPU by its address, 0000:03:00.0 or 03:00.0; default: the first\n"
    "  --allow-cpu        take an OpenCL device that is a CPU, when there is no other\n"
    "  --idle-only        measure nothing but tier 0 on a GPU that somebody uses already\n"
    "  --deadline SECONDS of one canary, 1 to 3600; default 30, in tier 3 600\n"
    "  --progress         name each canary on standard error when it begins\n"
    "  --json             one JSON object a line (the default, and the only form)\n"
    "  --list             print the canaries and end\n"
    "  --devices          print what the runtime (--backend hip, opencl or cuda) sees, by its own numbers, and end\n"
    "  --version          print the version and end\n"
    "  --help             print this and end\n"
    "\n"
    "Exit codes: 0 all that ran is ok; 1 measured beside another client, not to be judged; 2 wrong command line;\n"
    "4 nothing could run (no runtime, no device); 7 a result is wrong, late or missing.\n";

struct Line {
  RunOptions options;
  int tier = 1;
  std::vector<std::string> only;
  bool progress = false;
  bool devices = false;
  double deadline = 0;
  int exit_code = -1;  // at once, when not negative
};

int refuse(const std::string& text) {
  std::fprintf(stderr, "gpuhealth-canary: %s; see gpuhealth-canary --help\n", text.c_str());
  return static_cast<int>(ExitCode::Usage);
}

void list() {
  for (const auto& row : all_canaries())
    std::printf("%d  %-19.*s %-11.*s %-8.*s %.*s\n", row.tier, static_cast<int>(row.canary.size()), row.canary.data(),
                static_cast<int>(row.metric.size()), row.metric.data(), static_cast<int>(row.unit.size()),
                row.unit.data(), static_cast<int>(row.text.size()), row.text.data());
}

enum Option : int {
  Backend = 256,
  Tier,
  Only,
  Device,
  AllowCpu,
  IdleOnly,
  Deadline,
  Progress,
  JsonLines,
  List,
  Devices,
  Version,
  Help
};

constexpr std::array<option, 14> kOptions = {{{"backend", required_argument, nullptr, Backend},
                                              {"tier", required_argument, nullptr, Tier},
                                              {"only", required_argument, nullptr, Only},
                                              {"device", required_argument, nullptr, Device},
                                              {"allow-cpu", no_argument, nullptr, AllowCpu},
                                              {"idle-only", no_argument, nullptr, IdleOnly},
                                              {"deadline", required_argument, nullptr, Deadline},
                                              {"progress", no_argument, nullptr, Progress},
                                              {"json", no_argument, nullptr, JsonLines},
                                              {"list", no_argument, nullptr, List},
                                              {"devices", no_argument, nullptr, Devices},
                                              {"version", no_argument, nullptr, Version},
                                              {"help", no_argument, nullptr, Help},
                                              {nullptr, 0, nullptr, 0}}};

// Takes one option; what it says is wrong, or empty.
std::string take(Line& line, int option, const std::string& value) {
  switch (option) {
    case Backend:
      for (const char* name : {"ioctl", "hip", "opencl", "cuda", "auto"}) {
        if (value == name) line.options.backend = value;
      }
      return line.options.backend == value ? ""
                                           : "--backend \"" + value + "\" is none of ioctl, hip, opencl, cuda, auto";
    case Tier:
      if (value.size() != 1 || value[0] < '0' || value[0] > '3')
        return "--tier \"" + value + "\" is none of 0, 1, 2, 3";
      line.tier = value[0] - '0';
      return "";
    case Only:
      if (metrics_of(value).empty()) return "--only \"" + value + "\": there is no such canary (--list names them)";
      line.only.push_back(value);
      return "";
    case Device:
      line.options.device = parse_pci_address(value);
      return line.options.device ? "" : "--device \"" + value + "\" is no PCI address (0000:03:00.0)";
    case Deadline: {
      char* end = nullptr;
      line.deadline = std::strtod(value.c_str(), &end);
      const bool good = end != value.c_str() && *end == '\0' && line.deadline >= 1 && line.deadline <= 3600;
      return good ? "" : "--deadline \"" + value + "\" is not between 1 and 3600";
    }
    case AllowCpu:
      line.options.allow_cpu = true;
      return "";
    case IdleOnly:
      line.options.idle_only = true;
      return "";
    case Progress:
      line.progress = true;
      return "";
    case Devices:
      line.devices = true;
      return "";
    default:
      return "";
  }
}

Line parse(int argc, char** argv) {
  Line line;
  line.options.backend = "auto";
  opterr = 0;
  for (;;) {
    const int option = getopt_long(argc, argv, "", kOptions.data(), nullptr);
    if (option == -1) break;
    if (option == '?') {
      line.exit_code = refuse(std::string("\"") + argv[optind - 1] + "\" is no option, or lacks its value");
      return line;
    }
    if (option == List) list();
    if (option == Version) std::printf("gpuhealth-canary %s\n", kVersion);
    if (option == Help) std::fputs(kUsage, stdout);
    if (option == List || option == Version || option == Help) {
      line.exit_code = 0;
      return line;
    }
    if (const auto wrong = take(line, option, optarg == nullptr ? "" : optarg); !wrong.empty()) {
      line.exit_code = refuse(wrong);
      return line;
    }
  }
  if (optind < argc) line.exit_code = refuse(std::string("\"") + argv[optind] + "\": no argument was expected");
  return line;
}

// What to try, in order: AMD's own runtime where there is an AMD GPU, NVIDIA's where there is one of theirs, else (and
// where that is not installed) OpenCL.
std::vector<std::string> automatic_backends(bool only_userptr) {
  if (only_userptr) return {"ioctl"};
  if (access("/dev/kfd", R_OK | W_OK) == 0) return {"hip", "opencl"};
  if (access("/dev/nvidiactl", F_OK) == 0 || access("/dev/dxg", F_OK) == 0) return {"cuda", "opencl"};
  return {"opencl"};
}

std::vector<std::string> chosen(const Line& line) {
  std::vector<std::string> out;
  for (const auto name : canary_names(3)) {
    const auto tier = metrics_of(name).front().tier;
    const bool ioctl = name == "userptr_cow";
    const bool wanted = line.only.empty() ? tier <= line.tier : std::ranges::find(line.only, name) != line.only.end();
    if (wanted && ioctl == (line.options.backend == "ioctl")) out.emplace_back(name);
  }
  return out;
}

// Nothing that was asked for is of this backend.
int say_unsupported(const Line& line) {
  for (const auto& row : all_canaries()) {
    const bool wanted =
        line.only.empty() ? row.tier <= line.tier : std::ranges::find(line.only, row.canary) != line.only.end();
    if (!wanted) continue;
    const std::string device = line.options.device ? to_string(*line.options.device) : "";
    const auto m =
        line_without_value(row, line.options, Status::Unsupported,
                           "the backend " + line.options.backend + " does not run it; " +
                               (row.canary == "userptr_cow" ? "--backend ioctl does" : "hip, opencl and cuda do"),
                           device, software_of("", device));
    std::printf("%s\n", to_json_line(m).c_str());
  }
  return static_cast<int>(ExitCode::Unavailable);
}

bool is_unsupported(const Measurement& m) {
  return m.status == Status::Unsupported;
}

int exit_code(const std::vector<Measurement>& lines) {
  bool ran = false;
  bool busy = false;
  for (const auto& m : lines) {
    if (m.status == Status::Unsupported) continue;
    ran = true;
    if (m.status == Status::Busy)
      busy = true;
    else if (m.status != Status::Ok)
      return static_cast<int>(ExitCode::Failed);
  }
  if (!ran) return static_cast<int>(ExitCode::Unavailable);
  return busy ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  Line line = parse(argc, argv);
  if (line.exit_code >= 0) return line.exit_code;
  if (line.devices) {
    const auto& backend = line.options.backend;
    if (backend != "hip" && backend != "opencl" && backend != "cuda")
      return refuse("--devices needs --backend hip, opencl or cuda");
    print_runtime_devices(backend, line.deadline > 0 ? line.deadline : 30);
    return std::fflush(stdout) == 0 ? 0 : static_cast<int>(ExitCode::Failed);
  }
  std::vector<std::string> backends = {line.options.backend};
  if (line.options.backend == "auto")
    backends =
        automatic_backends(line.only.empty() ? line.tier == 0 : line.only == std::vector<std::string>{"userptr_cow"});
  line.options.deadline_s = line.deadline > 0 ? line.deadline : line.tier == 3 ? 600 : 30;
  RunReport report;
  for (const auto& backend : backends) {
    line.options.backend = backend;
    line.options.canaries = chosen(line);
    if (line.options.canaries.empty()) return say_unsupported(line);
    auto ran = supervise(line.options, [&](const std::string& canary) {
      if (line.progress) std::fprintf(stderr, "%s\n", canary.c_str());
    });
    // Of several that cannot run anything the first one's reasons are shown.
    const bool anything = !std::ranges::all_of(ran.lines, is_unsupported);
    if (anything || report.lines.empty()) report = std::move(ran);
    if (anything) break;
  }
  for (const auto& m : report.lines) std::printf("%s\n", to_json_line(m).c_str());
  if (std::fflush(stdout) != 0) return static_cast<int>(ExitCode::Failed);
  // A child that hangs in the kernel must not hold us: no destructor, no wait.
  _exit(exit_code(report.lines));
}
