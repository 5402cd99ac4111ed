// SPDX-License-Identifier: Apache-2.0
// gpuhealth-act: the only program that changes anything. One process an action, started by gpuhealthctl or the daemon.
#include <csignal>
#include <cstdio>

#include "actions/act.hpp"
#include "actions/request.hpp"
#include "core/exit_codes.hpp"
#include "core/version.hpp"

namespace gpuhealth::actions {
namespace {

constexpr const char* kUsage =
    "usage: gpuhealth-act kernel pin|unpin|trial|bless|reject|hold-on|hold-off|protect|recover|installed|qualifying|"
    "qualify [RELEASE]\n"
    "       [--root DIR] [--expires DAY] [--by-canaries] [--by-rule] [--reason TEXT] [--gpu ID]...\n"
    "       gpuhealth-act kernel start [--ended-in-order BOOT] | show [--gfx TARGET]... [--advisories DIR] [--root "
    "DIR]\n"
    "       gpuhealth-act device run ACTION [NAME=VALUE...] [--device DEVICE] [--dry-run] [--confirm]\n"
    "       gpuhealth-act device run --request FILE|-\n"
    "       gpuhealth-act device confirm|verified|revert ID [--by-rule]\n"
    "       gpuhealth-act device recover|revert-all|resume\n"
    "       gpuhealth-act device again --device DEVICE\n"
    "       each of device with [--root DIR] [--sysroot DIR]\n"
    "gpuhealthctl kernel and gpuhealthctl actions start this program, see gpuhealthctl(1)\n";

}  // namespace

void print(const Json& json) {
  const std::string text = json.dump(2, ' ', true, Json::error_handler_t::replace) + "\n";
  (void)std::fwrite(text.data(), 1, text.size(), stdout);
}

int complain(const Error& error) {
  print(error_json(error));
  return static_cast<int>(exit_code(error.code));
}

int usage() {
  (void)std::fputs(kUsage, stderr);
  return static_cast<int>(ExitCode::Usage);
}

}  // namespace gpuhealth::actions

int main(int argc, char** argv) {
  // Ctrl-C between two writes would leave the work to the next start.
  for (const int signal : {SIGINT, SIGHUP, SIGTERM, SIGPIPE}) (void)std::signal(signal, SIG_IGN);
  std::vector<std::string> words(argv + 1, argv + argc);
  if (!words.empty() && words.front() == "--version") {
    std::printf("gpuhealth-act %s\n", gpuhealth::kVersion);
    return 0;
  }
  if (words.empty()) return gpuhealth::actions::usage();
  const std::string part = words.front();
  words.erase(words.begin());
  if (part == "kernel") return gpuhealth::actions::act_kernel(words);
  if (part == "device") return gpuhealth::actions::act_device(words);
  if (part == "policy") return gpuhealth::actions::act_policy(words);
  return gpuhealth::actions::usage();
}
