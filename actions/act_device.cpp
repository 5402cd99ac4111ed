// SPDX-License-Identifier: Apache-2.0
// gpuhealth-act device …: actions on hardware and services.
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <iterator>

#include "actions/act.hpp"
#include "actions/interlocks.hpp"
#include "actions/request.hpp"

namespace gpuhealth::actions {
namespace {

struct Line {
  std::string root = "/", sysroot, device, request;
  std::string now;  // of a simulated machine, whose clock runs faster: UTC
  bool dry_run = false, confirm = false, by_rule = false;
  std::vector<std::string> words;  // what is no option
};

bool read_line(const std::vector<std::string>& arguments, Line& out) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    bool known = false;
    for (auto [name, field] :
         {std::pair{"--root", &out.root}, std::pair{"--sysroot", &out.sysroot}, std::pair{"--device", &out.device},
          std::pair{"--request", &out.request}, std::pair{"--now", &out.now}}) {
      if (word != name) continue;
      if (i + 1 == arguments.size()) return false;
      *field = arguments[++i];
      known = true;
    }
    for (auto [name, field] : {std::pair{"--dry-run", &out.dry_run}, std::pair{"--confirm", &out.confirm},
                               std::pair{"--by-rule", &out.by_rule}}) {
      if (word != name) continue;
      *field = true;
      known = true;
    }
    if (known) continue;
    if (word.starts_with("--")) return false;
    out.words.push_back(word);
  }
  return !out.words.empty();
}

Result<std::string> read_request(const std::string& from) {
  if (from == "-") {
    std::string text;
    char buffer[4096];
    while (true) {
      const ssize_t n = ::read(STDIN_FILENO, buffer, sizeof buffer);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0 || text.size() > (std::size_t{1} << 20)) return text;
      text.append(buffer, static_cast<std::size_t>(n));
    }
  }
  std::ifstream file(from, std::ios::binary);
  if (!file) return fail_errno("cannot read " + from, errno);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

Result<Order> read_order(const Line& line) {
  Order out;
  if (!line.request.empty()) {
    const auto text = read_request(line.request);
    if (!text) return tl::unexpected<Error>(text.error());
    auto order = order_from(*text);
    if (!order) return order;
    out = std::move(*order);
  } else {
    const auto kind = line.words.size() > 1 ? action_kind_from(line.words[1]) : std::nullopt;
    if (!kind)
      return fail(ErrorCode::InvalidInput,
                  "there is no action " + (line.words.size() > 1 ? "\"" + line.words[1] + "\"" : "without a name"));
    out.request.kind = *kind;
    for (std::size_t i = 2; i < line.words.size(); ++i)
      if (auto added = add_param(out.request, line.words[i]); !added) return tl::unexpected<Error>(added.error());
  }
  if (!line.device.empty()) out.request.device = line.device;
  out.dry_run = line.dry_run;
  out.confirm = line.confirm;
  return out;
}

int show(const Result<Outcome>& outcome) {
  if (!outcome) return complain(outcome.error());
  print(outcome_json(*outcome));
  return 0;
}

}  // namespace

int act_device(const std::vector<std::string>& arguments) {
  Line line;
  if (!read_line(arguments, line)) return usage();
  auto files = Tree::open(line.root);
  if (!files) return complain(files.error());
  auto hardware = Tree::open(line.sysroot.empty() ? line.root : line.sysroot);
  if (!hardware) return complain(hardware.error());
  System system;
  Outside outside = real_outside(system, *hardware);
  if (!line.now.empty()) {
    const auto now = utc_from(line.now);
    if (!now) return usage();
    outside.now = *now;
  }
  const Machine machine = {std::move(*files), std::move(*hardware), std::move(outside)};
  const std::string& verb = line.words.front();
  if (verb == "run") {
    const auto order = read_order(line);
    return order ? show(carry_out(machine, *order)) : complain(order.error());
  }
  const std::size_t most = verb == "confirm" || verb == "revert" || verb == "verified" ? 2 : 1;
  if (line.words.size() != most) return usage();
  if (verb == "confirm") return show(confirm(machine, line.words[1]));
  if (verb == "revert") return show(revert(machine, line.words[1], !line.by_rule));
  if (verb == "verified") return show(note_verified(machine, line.words[1]));
  if (verb == "recover") return show(recover(machine));
  if (verb == "revert-all") return show(revert_all(machine));
  if (verb == "again" && !line.device.empty()) return show(apply_again(machine, line.device));
  if (verb != "resume") return usage();
  if (auto left = leave_safe_mode(machine); !left) return complain(left.error());
  Outcome out;
  out.action = "resume";
  out.state = "done";
  out.warnings = safe_mode(machine);
  return show(out);
}

}  // namespace gpuhealth::actions
