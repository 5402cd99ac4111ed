// SPDX-License-Identifier: Apache-2.0
// gpuhealth-act: the program that changes the boot menu. One process an action, started by gpuhealthctl or the daemon;
// prints one JSON object.
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/exit_codes.hpp"
#include "core/version.hpp"
#include "grub/operations.hpp"

namespace {

using namespace gpuhealth;
using namespace gpuhealth::grub;
using Json = nlohmann::ordered_json;

constexpr const char* kUsage =
    "usage: gpuhealth-act kernel pin|unpin|trial|bless|hold-on|hold-off|protect|recover|installed [RELEASE] [--root "
    "DIR] "
    "[--expires DAY]\n"
    "gpuhealthctl kernel starts this program, see gpuhealthctl(1)\n";

void print(const Json& json) {
  const std::string text = json.dump(2, ' ', true, Json::error_handler_t::replace) + "\n";
  (void)std::fwrite(text.data(), 1, text.size(), stdout);
}

int complain(const Error& error) {
  print({{"error", {{"code", to_string(error.code)}, {"text", error.text}}}});
  return static_cast<int>(exit_code(error.code));
}

Json words(const std::vector<std::string>& list) {
  return list.empty() ? Json::array() : Json(list);
}

int done(const Outcome& out) {
  const auto or_null = [](const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); };
  print({{"operation", to_string(out.operation)},
         {"release", or_null(out.release)},
         {"steps", words(out.steps)},
         {"changed", words(out.changed)},
         {"undone", words(out.undone)},
         {"next", or_null(out.next)},
         {"default", or_null(out.lasting)},
         {"ledger", or_null(out.ledger)},
         {"warnings", words(out.warnings)}});
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  // Ctrl-C between two writes would leave the work to the next start.
  for (const int signal : {SIGINT, SIGHUP, SIGTERM, SIGPIPE}) (void)std::signal(signal, SIG_IGN);
  std::vector<std::string> words_given;
  std::string root = "/";
  Request request;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--version") {
      std::printf("gpuhealth-act %s\n", kVersion);
      return 0;
    }
    if ((word == "--root" || word == "--expires") && i + 1 < argc) {
      (word == "--root" ? root : request.expires) = argv[++i];
    } else {
      words_given.push_back(word);
    }
  }
  const bool recovery = words_given.size() == 2 && words_given[1] == "recover";
  const auto operation = words_given.size() > 1 ? operation_from(words_given[1]) : std::nullopt;
  const bool installed = words_given.size() == 3 && words_given[1] == "installed";
  if (words_given.empty() || words_given[0] != "kernel" || (!operation && !recovery && !installed) ||
      words_given.size() > 3) {
    (void)std::fputs(kUsage, stderr);
    return static_cast<int>(ExitCode::Usage);
  }
  const auto tree = Tree::open(root);
  if (!tree) return complain(tree.error());
  System system;
  const Surroundings surroundings = real_surroundings(system);
  if (recovery) {
    const auto undone = recover(*tree, surroundings);
    if (!undone) return complain(undone.error());
    print({{"operation", "recover"}, {"undone", words(*undone)}});
    return 0;
  }
  if (installed) {
    const auto state = note_installed(*tree, words_given[2], surroundings);
    if (!state) return complain(state.error());
    print({{"operation", "installed"}, {"release", words_given[2]}, {"state", *state}});
    return 0;
  }
  request.operation = *operation;
  if (words_given.size() > 2) request.release = words_given[2];
  const auto out = perform(*tree, request, surroundings);
  return out ? done(*out) : complain(out.error());
}
