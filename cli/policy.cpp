// SPDX-License-Identifier: Apache-2.0
#include "cli/policy.hpp"

#include <algorithm>
#include <filesystem>

#include "policy/files.hpp"
#include "policy/reader.hpp"
#include "policy/scenario_file.hpp"

namespace gpuhealth::cli {
namespace {

namespace fs = std::filesystem;
using policy::kind_of;

constexpr std::size_t kMostLookedAt = 100'000;

// As in the daemon's folders: it hides files of its name in lower layers.
bool is_mask(const std::string& path) {
  std::error_code error;
  return fs::read_symlink(path, error) == "/dev/null" ||
         (fs::is_regular_file(path, error) && fs::file_size(path, error) == 0);
}

Result<std::vector<std::string>> yaml_files(const std::string& path) {
  std::error_code error;
  if (!fs::exists(path, error)) return fail(ErrorCode::NotFound, path + " does not exist");
  if (!fs::is_directory(path, error)) return std::vector<std::string>{path};
  const auto root = policy::Root::open(path);
  const auto names = root ? root->list(".", kMostLookedAt) : tl::unexpected<Error>(root.error());
  if (!names) return tl::unexpected<Error>(names.error());
  std::vector<std::string> out;
  for (const auto& name : *names)
    if (name.ends_with(".yaml") && !name.starts_with('.')) out.push_back((fs::path(path) / name).string());
  if (out.empty()) return fail(ErrorCode::NotFound, path + " holds no file *.yaml");
  return out;
}

CheckedFile check_test(const std::string& path, const yaml::Node& root) {
  CheckedFile out{path, "PolicyTest", "", 0, {}};
  policy::Mistakes mistakes;
  out.name = policy::read_test(root, mistakes).name;
  out.mistakes = mistakes.take();
  return out;
}

CheckedFile check_one(const std::string& path) {
  CheckedFile out{path, "Policy", "", 0, {}};
  const auto text = policy::read_named_file(path, policy::kMostPolicyBytes, true);
  if (!text) {
    out.mistakes.push_back({{}, text.error().text, "", ""});
    return out;
  }
  if (const auto tree = yaml::parse(*text); kind_of(tree.root) == "PolicyTest") return check_test(path, *tree.root);
  auto parsed = policy::parse_policy(path, *text);
  out.mistakes = std::move(parsed.mistakes);
  if (parsed.policy) out.name = parsed.policy->name, out.rules = parsed.policy->rules.size();
  return out;
}

// "3 mistakes", "1 file"
std::string counted(std::size_t n, const std::string& what) {
  return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
}

Tone tone_of(policy::Outcome outcome) {
  switch (outcome) {
    case policy::Outcome::Act:
      return Tone::Heading;
    case policy::Outcome::Blocked:
      return Tone::Note;
    default:
      return Tone::Plain;
  }
}

Json json_mistakes(const std::string& file, const std::vector<yaml::Mistake>& mistakes) {
  Json out = Json::array();
  for (const auto& m : mistakes) {
    out.push_back({{"file", file},
                   {"line", m.at.line > 0 ? Json(m.at.line) : Json()},
                   {"column", m.at.line > 0 ? Json(m.at.column) : Json()},
                   {"text", m.text},
                   {"found", text_or_null(m.found)},
                   {"hint", text_or_null(m.hint)}});
  }
  return out;
}

}  // namespace

Result<std::vector<CheckedFile>> check_policies(const std::vector<std::string>& paths) {
  std::vector<CheckedFile> out;
  for (const auto& path : paths) {
    const auto files = yaml_files(path);
    if (!files) return tl::unexpected<Error>(files.error());
    std::error_code error;
    const bool folder = fs::is_directory(path, error);
    if (const auto count = std::distance(fs::directory_iterator(folder ? path : "."), fs::directory_iterator());
        folder && count > static_cast<std::ptrdiff_t>(policy::kMostPolicyFiles))
      out.push_back({path,
                     "Policy",
                     "",
                     0,
                     {{{},
                       "holds " + std::to_string(count) + " files; gpuhealthd takes a folder of at most " +
                           std::to_string(policy::kMostPolicyFiles),
                       "",
                       ""}}});
    for (const auto& file : *files) {
      if (folder && is_mask(file)) {
        out.push_back({file, "Policy", "", 0, {}});
        continue;
      }
      CheckedFile checked = check_one(file);
      const auto twin = std::ranges::find_if(out, [&](const CheckedFile& f) {
        return f.kind == "Policy" && checked.kind == "Policy" && !f.name.empty() && f.name == checked.name &&
               f.file != checked.file;
      });
      if (twin != out.end())
        checked.mistakes.push_back(
            {{},
             "its policy is called " + yaml::shown(checked.name) + " as that of " + twin->file + " is",
             checked.name,
             "names must differ"});
      out.push_back(std::move(checked));
    }
  }
  return out;
}

bool all_valid(const std::vector<CheckedFile>& files) {
  return std::ranges::all_of(files, [](const CheckedFile& f) { return f.mistakes.empty(); });
}

Page render_check(const std::vector<CheckedFile>& files, const Terminal& /*terminal*/) {
  Page page;
  std::size_t mistakes = 0;
  for (const auto& file : files) {
    mistakes += file.mistakes.size();
    for (const auto& m : file.mistakes) page.line({{yaml::line_of(file.file, m)}});
  }
  if (mistakes == 0) {
    page.line({{counted(files.size(), "file") + ", no mistakes.", Tone::Good}});
  } else {
    page.line({{counted(files.size(), "file") + ", " + counted(mistakes, "mistake") + ".", Tone::Critical}});
  }
  return page;
}

Json json_check(const std::vector<CheckedFile>& files) {
  Json list = Json::array();
  for (const auto& f : files) {
    list.push_back({{"file", f.file},
                    {"valid", f.mistakes.empty()},
                    {"kind", f.kind},
                    {"name", text_or_null(f.name)},
                    {"rules", f.rules},
                    {"errors", json_mistakes(f.file, f.mistakes)}});
  }
  return {{"valid", all_valid(files)}, {"files", list}};
}

Result<std::vector<std::string>> find_tests(const std::vector<std::string>& paths) {
  std::vector<std::string> out;
  for (const auto& path : paths) {
    const auto files = yaml_files(path);
    if (!files) return tl::unexpected<Error>(files.error());
    std::error_code error;
    if (!fs::is_directory(path, error)) {
      out.push_back(path);
      continue;
    }
    const auto before = out.size();
    for (const auto& file : *files) {
      const auto text = policy::read_named_file(file, policy::kMostPolicyBytes, true);
      if (text && kind_of(yaml::parse(*text).root) == "PolicyTest") out.push_back(file);
    }
    if (out.size() == before) return fail(ErrorCode::NotFound, path + " holds no policy test (kind: PolicyTest)");
  }
  return out;
}

Page render_tests(const std::vector<policy::TestResult>& results, bool decisions, const Terminal& /*terminal*/) {
  Page page;
  std::size_t failed = 0;
  for (const auto& r : results) {
    failed += r.passed() ? 0 : 1;
    page.line({{r.passed() ? "passed  " : "FAILED  ", r.passed() ? Tone::Good : Tone::Critical},
               {r.file},
               {r.name.empty() ? "" : "  " + r.name, Tone::Note}});
    for (const auto& m : r.mistakes) page.line({{"  " + yaml::line_of(r.file, m)}});
    for (const auto& text : r.policy_mistakes) page.line({{"  " + text}});
    for (const auto& text : r.failures) page.line({{"  " + text}});
    if (!decisions) continue;
    for (const auto& d : r.decisions) page.line({{"  " + policy::line_of(d), tone_of(d.decision.outcome)}});
  }
  page.line({{counted(results.size(), "test") + ", " + std::to_string(failed) + " failed.",
              failed == 0 ? Tone::Good : Tone::Critical}});
  return page;
}

Json json_decision(const policy::Decision& d) {
  Json actions = Json::array();
  for (const auto& a : d.actions)
    actions.push_back({{"action", to_string(a.kind)}, {"device", text_or_null(a.device)}, {"params", a.params}});
  return {{"decision", to_string(d.outcome)},
          {"block", d.block == policy::Block::None ? Json() : Json(to_string(d.block))},
          {"mode", policy::to_string(d.mode)},
          {"policy", d.policy},
          {"rule", d.rule},
          {"file", text_or_null(d.file)},
          {"device", text_or_null(d.device)},
          {"actions", actions},
          {"reason", d.reason}};
}

Json json_tests(const std::vector<policy::TestResult>& results) {
  Json tests = Json::array();
  for (const auto& r : results) {
    Json decisions = Json::array();
    for (const auto& d : r.decisions) {
      Json one = {{"at_s", number(std::chrono::duration<double>(d.at).count())}};
      one.update(json_decision(d.decision));
      decisions.push_back(std::move(one));
    }
    Json errors = json_mistakes(r.file, r.mistakes);
    for (const auto& text : r.policy_mistakes)
      errors.push_back({{"file", r.file},
                        {"line", Json()},
                        {"column", Json()},
                        {"text", text},
                        {"found", Json()},
                        {"hint", Json()}});
    tests.push_back({{"file", r.file},
                     {"name", text_or_null(r.name)},
                     {"passed", r.passed()},
                     {"errors", errors},
                     {"failures", r.failures},
                     {"decisions", decisions}});
  }
  return {{"passed", std::ranges::all_of(results, &policy::TestResult::passed)}, {"tests", tests}};
}

Page render_policies(const ShownPolicies& shown, bool effective, const Terminal& terminal) {
  Page page;
  for (const auto& note : shown.loaded.notes) page.paragraph({"note: " + note, Tone::Note}, 0, terminal.columns);
  if (!shown.loaded.sound()) {
    page.line({{"These files are not taken; the daemon stays with the last good set:", Tone::Critical}});
    for (const auto& f : shown.loaded.files)
      for (const auto& m : f.mistakes) page.line({{"  " + yaml::line_of(f.path, m)}});
  }
  if (!effective) {
    std::vector<Line> rows;
    rows.reserve(shown.loaded.files.size());
    for (const auto& f : shown.loaded.files) {
      rows.push_back({{f.path},
                      {f.layer},
                      {std::string(to_string(f.state))},
                      {f.policy.empty() ? (f.by.empty() ? "" : "by " + f.by) : f.policy}});
    }
    if (rows.empty()) {
      page.line({{"No policies."}});
      return page;
    }
    add_table(page, {{"FILE"}, {"LAYER"}, {"STATE"}, {"POLICY", Align::Left, true}}, rows, terminal);
    return page;
  }
  std::vector<Line> rows;
  for (const auto& p : shown.loaded.set.policies) {
    const auto file = std::ranges::find(shown.loaded.files, p.file, &policy::PolicyFile::path);
    if (file == shown.loaded.files.end() || file->state != policy::PolicyFile::State::InForce) continue;
    for (const auto& rule : p.rules)
      rows.push_back({{p.name + "/" + rule.name},
                      {std::string(policy::to_string(rule.mode.value_or(p.mode)))},
                      {p.file + ":" + std::to_string(rule.line)}});
  }
  if (rows.empty()) {
    page.line({{"No rule is in force."}});
    return page;
  }
  add_table(page, {{"RULE"}, {"MODE"}, {"FROM", Align::Left, true}}, rows, terminal);
  return page;
}

Json json_policies(const ShownPolicies& shown) {
  Json files = Json::array(), rules = Json::array();
  for (const auto& f : shown.loaded.files) {
    files.push_back({{"file", f.path},
                     {"layer", f.layer},
                     {"state", to_string(f.state)},
                     {"by", text_or_null(f.by)},
                     {"policy", text_or_null(f.policy)},
                     {"errors", json_mistakes(f.path, f.mistakes)}});
  }
  for (const auto& p : shown.loaded.set.policies) {
    const auto file = std::ranges::find(shown.loaded.files, p.file, &policy::PolicyFile::path);
    if (file == shown.loaded.files.end() || file->state != policy::PolicyFile::State::InForce) continue;
    for (const auto& rule : p.rules) {
      Json actions = Json::array();
      for (const auto& a : rule.actions) actions.push_back({{"action", to_string(a.kind)}, {"params", a.params}});
      rules.push_back({{"policy", p.name},
                       {"rule", rule.name},
                       {"mode", policy::to_string(rule.mode.value_or(p.mode))},
                       {"file", p.file},
                       {"line", rule.line},
                       {"layer", file->layer},
                       {"actions", actions}});
    }
  }
  const auto& m = shown.facts;
  return {{"valid", shown.loaded.sound()},
          {"machine",
           {{"host", text_or_null(m.host)},
            {"distribution", text_or_null(m.distribution)},
            {"version", text_or_null(m.version)},
            {"kernel", text_or_null(m.kernel)},
            {"labels", m.labels}}},
          {"files", files},
          {"rules", rules},
          {"notes", shown.loaded.notes}};
}

Page render_refusal(const policy::Refusal& refusal, const Terminal& terminal) {
  Page page;
  page.paragraph({"Refused (" + refusal.code + "): " + refusal.text, Tone::Critical}, 0, terminal.columns);
  return page;
}

Json json_refusal(const policy::Refusal& refusal) {
  return {{"valid", false}, {"refused", refusal.code}, {"text", refusal.text}};
}

Json json_bundle(const policy::Verified& verified) {
  const auto& h = verified.bundle.header;
  Json files = Json::array();
  for (const auto& f : verified.bundle.files) files.push_back(f.name);
  return {{"valid", true},
          {"refused", Json()},
          {"name", h.name},
          {"serial", h.serial},
          {"created", text_or_null(h.created)},
          {"expires", text_or_null(h.expires)},
          {"percent", h.percent},
          {"key", text_or_null(verified.key)},
          {"key_file", text_or_null(verified.key_file)},
          {"files", files}};
}

Page render_bundle(const policy::Verified& verified, const Terminal& /*terminal*/) {
  const auto& h = verified.bundle.header;
  Page page;
  page.line({{h.name + ", serial " + std::to_string(h.serial), Tone::Heading},
             {h.expires.empty() ? "" : ", good until " + h.expires},
             {h.percent < 100 ? ", for " + std::to_string(h.percent) + " % of the machines" : ""}});
  page.line({{verified.key.empty() ? "not signed"
                                   : "signed with key " + verified.key + ", trusted by " + verified.key_file}});
  for (const auto& f : verified.bundle.files) page.line({{"  " + f.name}});
  return page;
}

Json json_installed(const policy::Installed& installed) {
  return {{"valid", true},
          {"refused", Json()},
          {"installed", installed.active},
          {"name", text_or_null(installed.header.name)},
          {"serial", installed.header.serial},
          {"key", text_or_null(installed.key)},
          {"text", installed.text}};
}

}  // namespace gpuhealth::cli
