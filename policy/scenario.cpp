// SPDX-License-Identifier: Apache-2.0
#include "policy/scenario.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "policy/files.hpp"
#include "policy/scenario_file.hpp"

namespace gpuhealth::policy {
namespace {

namespace fs = std::filesystem;
constexpr std::int64_t kMostSteps = 2'000'000;
constexpr std::size_t kMostDecisions = 10'000;

Duration end_of(const TestFile& test) {
  if (test.until) return *test.until;
  Duration end{};
  for (const auto& entry : test.timeline) end = std::max(end, entry.at);
  for (const auto& e : test.expect) end = std::max(end, e.at);
  return end;
}

Duration step_of(const TestFile& test, Duration end) {
  using namespace std::chrono_literals;
  if (test.step) return *test.step;
  return end <= 2h ? 1s : end <= 48h ? Duration(10s) : Duration(60s);
}

void apply(const TestEntry& entry, Snapshot& snapshot, WallTime now) {
  for (const auto& change : entry.machine_changes) change(snapshot, now);
  for (const auto& change : entry.gpu_changes)
    for (const std::size_t gpu : entry.gpus) change(snapshot, gpu, now);
}

void play(const TestFile& test, const PolicySet& set, TestResult& out) {
  const Duration end = end_of(test), step = step_of(test, end);
  std::set<Duration> marks;  // besides the steps
  for (const auto& entry : test.timeline) marks.insert(entry.at);
  for (const auto& e : test.expect) marks.insert(e.at);
  Snapshot snapshot = test.snapshot;
  State state;
  auto entry = test.timeline.begin();
  for (Duration at{}, next_step{}; at <= end;) {
    const Now now{test.start + at, {1'000'000'000 + at.count()}};
    for (; entry != test.timeline.end() && entry->at <= at; ++entry) apply(*entry, snapshot, now.wall);
    auto evaluation = evaluate(snapshot, set, std::move(state), now);
    state = std::move(evaluation.state);
    for (auto& decision : evaluation.decisions)
      if (out.decisions.size() < kMostDecisions) out.decisions.push_back({at, std::move(decision)});
    while (next_step <= at) next_step += step;
    const auto mark = marks.upper_bound(at);
    at = mark == marks.end() ? next_step : std::min(next_step, *mark);
  }
}

bool fits(const Expectation& e, const TimedDecision& d) {
  const Decision& decision = d.decision;
  if (d.at != e.at || decision.rule != e.rule || (!e.gpu.empty() && decision.device != e.gpu)) return false;
  if ((e.outcome && decision.outcome != *e.outcome) || (e.block && decision.block != *e.block)) return false;
  if (!e.actions.empty() && e.actions.size() != decision.actions.size()) return false;
  for (std::size_t i = 0; i < e.actions.size(); ++i) {
    if (decision.actions[i].kind != e.actions[i]) return false;
    for (const auto& [key, value] : e.params[i]) {
      const auto it = decision.actions[i].params.find(key);
      if (it == decision.actions[i].params.end() || it->second != value) return false;
    }
  }
  return std::ranges::all_of(e.because,
                             [&](const std::string& part) { return decision.reason.find(part) != std::string::npos; });
}

std::string wanted(const Expectation& e) {
  std::string out = fmt::format("at {} rule {}", text_of(e.at), e.rule);
  if (!e.gpu.empty()) out += " about " + e.gpu;
  if (e.outcome) out += fmt::format(", {}", to_string(*e.outcome));
  if (e.block) out += fmt::format(" ({})", to_string(*e.block));
  for (std::size_t i = 0; i < e.actions.size(); ++i) {
    out += fmt::format("{}{}", i == 0 ? ": " : ", ", to_string(e.actions[i]));
    for (const auto& [key, value] : e.params[i]) out += fmt::format(" {}={}", key, value);
  }
  for (const auto& part : e.because) out += ", because of " + yaml::shown(part);
  return out;
}

void compare(const TestFile& test, TestResult& out) {
  std::vector<bool> used(out.decisions.size());
  std::vector<const Expectation*> unmet;
  for (const auto& e : test.expect) {
    bool met = false;
    for (std::size_t i = 0; i < out.decisions.size() && !met; ++i) {
      if (used[i] || !fits(e, out.decisions[i])) continue;
      used[i] = met = true;
    }
    if (!met) unmet.push_back(&e);
  }
  for (const auto* e : unmet)
    out.failures.push_back(fmt::format("{}:{}: not decided: {}", out.file, e->line, wanted(*e)));
  for (std::size_t i = 0; i < used.size(); ++i)
    if (!used[i]) out.failures.push_back(out.file + ": decided, and not expected: " + line_of(out.decisions[i]));
}

void override_mode(PolicySet& set, Mode mode) {
  for (auto& policy : set.policies) {
    policy.mode = mode;
    for (auto& rule : policy.rules) rule.mode = mode;
  }
}

}  // namespace

std::string text_of(const ActionRequest& action) {
  std::string out(to_string(action.kind));
  for (const auto& [key, value] : action.params)
    out += fmt::format(" {}={}", key, value.find(' ') == std::string::npos ? value : yaml::shown(value));
  return out;
}

std::string line_of(const TimedDecision& timed) {
  const Decision& d = timed.decision;
  std::string actions;
  for (const auto& action : d.actions) actions += (actions.empty() ? "" : ", ") + text_of(action);
  return fmt::format("{}  {}{}  {}/{}  {}  {}  ({})", text_of(timed.at), to_string(d.outcome),
                     d.block == Block::None ? "" : fmt::format(" by {}", to_string(d.block)), d.policy, d.rule,
                     d.device, actions, d.reason);
}

TestResult run_test(const std::string& path, std::string_view text) {
  TestResult out;
  out.file = path;
  auto parsed = yaml::parse(text);
  if (!parsed.root) {
    out.mistakes = std::move(parsed.mistakes);
    return out;
  }
  Mistakes mistakes;
  const TestFile test = read_test(*parsed.root, mistakes);
  out.name = test.name;
  const Duration end = end_of(test);
  if (mistakes.empty() && end / step_of(test, end) > kMostSteps)
    mistakes.add({}, "takes more than two million steps", "", "state a longer step");
  out.mistakes = mistakes.take();
  if (!out.mistakes.empty()) return out;
  std::vector<std::string> paths;
  paths.reserve(test.policies.size());
  for (const auto& policy : test.policies)
    paths.push_back((fs::path(path).parent_path() / policy).lexically_normal().string());
  auto loaded = load_named(paths);
  if (!loaded) {
    out.policy_mistakes.push_back(loaded.error().text);
    return out;
  }
  for (const auto& file : loaded->files)
    for (const auto& mistake : file.mistakes) out.policy_mistakes.push_back(yaml::line_of(file.path, mistake));
  if (!out.policy_mistakes.empty()) return out;
  if (test.mode) override_mode(loaded->set, *test.mode);
  play(test, loaded->set, out);
  compare(test, out);
  return out;
}

TestResult run_test(const std::string& path) {
  const auto text = read_named_file(path, kMostPolicyBytes, true);
  if (text) return run_test(path, *text);
  TestResult out;
  out.file = path;
  out.mistakes.push_back({{}, text.error().text, "", ""});
  return out;
}

}  // namespace gpuhealth::policy
