// SPDX-License-Identifier: Apache-2.0
// gpuhealth-act policy …: fleet bundles put in force, or taken back, for the daemon.
#include "actions/act.hpp"
#include "core/clock.hpp"
#include "policy/bundle.hpp"

namespace gpuhealth::actions {
namespace {

struct Line {
  std::string root = "/", why, who = "gpuhealthd";
  std::vector<std::string> words;
};

bool read_line(const std::vector<std::string>& arguments, Line& out) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    std::string* field = nullptr;
    for (auto [name, place] :
         {std::pair{"--root", &out.root}, std::pair{"--why", &out.why}, std::pair{"--who", &out.who}})
      if (arguments[i] == name) field = place;
    if (field == nullptr) {
      if (arguments[i].starts_with("--")) return false;
      out.words.push_back(arguments[i]);
    } else if (++i < arguments.size()) {
      *field = arguments[i];
    } else {
      return false;
    }
  }
  return !out.words.empty();
}

// A refusal is an answer, and no failure of this program.
int show(const policy::Accepted<policy::Installed>& done) {
  if (!done) {
    print({{"result", "refused"}, {"reason", done.error().code}, {"text", done.error().text}});
    return 0;
  }
  print({{"result", done->active ? "installed" : "not-installed"},
         {"name", done->header.name},
         {"serial", done->header.serial},
         {"text", done->text}});
  return 0;
}

}  // namespace

int act_policy(const std::vector<std::string>& arguments) {
  Line line;
  if (!read_line(arguments, line)) return usage();
  const WallTime now = SystemClock().now().wall;
  const std::string& verb = line.words.front();
  if (verb == "install" && line.words.size() == 2)
    return show(policy::install_bundle(line.words[1], {line.root, false, line.who}, now));
  if (verb == "rollback" && line.words.size() == 1 && !line.why.empty())
    return show(policy::roll_back(line.root, line.why, line.who, now));
  return usage();
}

}  // namespace gpuhealth::actions
