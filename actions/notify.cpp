// SPDX-License-Identifier: Apache-2.0
// Tells people: the journal, mail through sendmail(8), a webhook through curl(1). Desktops hear of it from the D-Bus
// signal of the daemon. What is told to one is told to all: a way that fails is said, and the others still hear.
#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

#include "actions/actuator.hpp"
#include "actions/text.hpp"

namespace gpuhealth::actions {
namespace {

constexpr auto kReplace = nlohmann::json::error_handler_t::replace;

int priority_of(const std::string& urgency) {
  if (urgency == "critical") return 2;
  return urgency == "low" ? 6 : 4;
}

Result<void> finish(const Machine& machine, const ProgramRun& run) {
  const auto end = machine.outside.run(run);
  if (!end) return tl::unexpected<Error>(end.error());
  if (end->late) return fail(ErrorCode::Unavailable, run.words.front() + " did not end in time");
  if (end->code == 0) return {};
  return fail(ErrorCode::Unavailable,
              run.words.front() + " failed with exit code " + std::to_string(end->code) + ": " + end->said);
}

Result<void> to_journal(const Asked& asked, const std::string& text) {
  const ActionRequest& request = *asked.request;
  return asked.machine->outside.journal(priority_of(asked.params.text("urgency")), text,
                                        {{"GPUHEALTH_DEVICE", request.device},
                                         {"GPUHEALTH_CONDITION", request.condition},
                                         {"GPUHEALTH_RULE", request.rule}});
}

Result<void> to_mail(const Asked& asked, const std::string& text) {
  const std::string program = find_program(*asked.machine, "sendmail");
  if (program.empty()) return fail(ErrorCode::NotFound, "there is no sendmail to mail with");
  std::string to = asked.params.text("to");
  if (to.empty()) to = "root";
  const bool odd = std::ranges::any_of(
      to, [](char c) { return static_cast<unsigned char>(c) <= 0x20 || c == 0x7f || c == ',' || c == ';'; });
  if (odd || to.starts_with('-')) return fail(ErrorCode::InvalidInput, "\"" + to + "\" is not one mail address");
  ProgramRun run;
  // The address stands in the header alone (-t): nothing that was configured becomes an option.
  run.words = {program, "-t", "-i"};
  run.input = "To: " + to + "\nSubject: [gpuhealth] " + asked.machine->outside.host + ": " + text.substr(0, 150) +
              "\nX-Priority: " + (asked.params.text("urgency") == "critical" ? "1" : "3") +
              "\nMIME-Version: 1.0\nContent-Type: text/plain; charset=utf-8\nAuto-Submitted: auto-generated\n\n" +
              text + "\n\n" + event_json(asked) + "\n";
  return finish(*asked.machine, run);
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

Result<void> to_webhook(const Asked& asked, const std::string& text) {
  const std::string url = asked.params.text("to");
  const bool odd = std::ranges::any_of(url, [](char c) { return static_cast<unsigned char>(c) <= 0x20 || c == 0x7f; });
  if (!url.starts_with("https://") || odd)
    return fail(ErrorCode::InvalidInput, "a webhook needs to: https://…; what is said may be secret on the way");
  const std::string program = find_program(*asked.machine, "curl");
  if (program.empty()) return fail(ErrorCode::NotFound, "there is no curl to call a webhook with");
  ProgramRun run;
  // On its input rather than its command line: a webhook's URL often is a secret, and every user sees command lines.
  run.words = {program, "--disable", "--config", "-"};
  const std::string body =
      R"({"text":)" + nlohmann::json(text).dump(-1, ' ', true, kReplace) + R"(,"event":)" + event_json(asked) + "}";
  run.input = "url = " + quoted(url) +
              "\nsilent\nshow-error\nfail\nmax-time = 20\nproto = \"=https\"\nheader = \"Content-Type: "
              "application/json\"\ndata-binary = " +
              quoted(body) + "\n";
  return finish(*asked.machine, run);
}

Result<Report> perform(const Asked& asked) {
  struct Way {
    std::string_view name;
    Result<void> (*tell)(const Asked&, const std::string&);
  };
  static constexpr std::array<Way, 3> kWays = {{{"journal", to_journal}, {"mail", to_mail}, {"webhook", to_webhook}}};
  const std::string text = fill_template(asked, asked.params.text("text"));
  Report out;
  std::string told;
  std::optional<Error> first;
  for (const std::string& word : asked.params.words("via")) {
    if (word == "desktop") {
      out.warnings.emplace_back("desktops are told by the daemon, over D-Bus");
      continue;
    }
    const auto* const way = std::ranges::find(kWays, word, &Way::name);
    if (way == kWays.end())
      return fail(ErrorCode::InvalidInput, "notify: via is any of journal, desktop, mail, webhook, not " + word);
    if (const auto done = way->tell(asked, text); !done) {
      out.warnings.push_back(word + ": " + done.error().text);
      if (!first) first = done.error();
    } else {
      told += (told.empty() ? "" : ", ") + word;
    }
  }
  if (told.empty() && first) return tl::unexpected<Error>(*first);
  out.text = "told by " + (told.empty() ? std::string("nobody here") : told) + ": " + text;
  return out;
}

}  // namespace

const Actuator kNotify = {.kind = ActionKind::Notify, .recovery = Recovery::Note, .perform = perform};

}  // namespace gpuhealth::actions
