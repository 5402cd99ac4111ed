// SPDX-License-Identifier: Apache-2.0
#include "cli/canary_results.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>

namespace gpuhealth::cli {
namespace {

using canary::Measurement;
using canary::Status;
using canary::stats::Level;

constexpr std::size_t kMostBytes = 256U << 20U;
constexpr std::size_t kFewestRuns = 3;
const double kSame = std::log(1.02);

bool in_epoch(const Measurement& m, std::string_view wanted) {
  if (wanted.empty()) return false;
  if (m.epoch == wanted || (wanted.size() >= 4 && m.epoch.starts_with(wanted))) return true;
  return std::ranges::any_of(m.software, [&](const auto& field) { return field.second == wanted; });
}

struct Key {
  std::string canary, metric;
  friend auto operator<=>(const Key&, const Key&) = default;
};
struct Pair {
  std::vector<double> before, after;  // ln(time)
};

}  // namespace

ResultFile parse_results(std::string_view text, canary::Gate silent_gate) {
  ResultFile out;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    auto line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++out.lines;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    if (auto reset = canary::parse_reset(line)) {
      out.entries.emplace_back(std::move(*reset));
      continue;
    }
    auto m = canary::parse_measurement(line);
    if (!m) {
      out.bad.push_back({out.lines, m.error().text});
      continue;
    }
    if (m->gate == canary::Gate::Unknown) m->gate = silent_gate;
    out.entries.emplace_back(std::move(*m));
  }
  return out;
}

Result<ResultFile> read_results(const std::string& path, canary::Gate silent_gate) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(
      path == "-" ? fdopen(0, "r") : std::fopen(path.c_str(), "re"), std::fclose);
  if (!file) return fail_errno("cannot open " + path, errno);
  std::string text;
  std::vector<char> buffer(65536);
  while (const std::size_t n = std::fread(buffer.data(), 1, buffer.size(), file.get())) {
    text.append(buffer.data(), n);
    if (text.size() > kMostBytes)
      return fail(ErrorCode::InvalidInput, path + " has more than 256 MiB: that is no file of results");
  }
  if (std::ferror(file.get()) != 0) return fail_errno("cannot read " + path, errno);
  auto out = parse_results(text, silent_gate);
  out.path = path;
  return out;
}

Replay replay(const ResultFile& file) {
  Replay out;
  out.lines = file.lines;
  out.bad = file.bad;
  health::CanaryWatch watch;
  for (const auto& entry : file.entries) {
    if (const auto* reset = std::get_if<BaselineReset>(&entry)) {
      watch.reset(reset->device, reset->canary);
      continue;
    }
    auto seen = watch.observe(std::get<Measurement>(entry));
    out.judged += seen.judged ? 1 : 0;
    for (auto& f : seen.findings) out.findings.push_back(std::move(f));
  }
  out.open = watch.open();
  out.baselines = watch.baselines();
  return out;
}

bool anything_confirmed(const Replay& replay) {
  return std::ranges::any_of(replay.open, [](const auto& f) { return f.finding.level == Level::Confirmed; });
}

std::vector<Comparison> compare_epochs(const std::vector<ResultFile>& files, std::string_view before,
                                       std::string_view after) {
  // One machine is one device of one file.
  std::map<Key, std::map<std::string, Pair>> seen;
  std::map<Key, Measurement> names;
  for (const auto& file : files) {
    for (const auto& entry : file.entries) {
      const auto* m = std::get_if<Measurement>(&entry);
      if (m == nullptr || m->status != Status::Ok || !m->value || !(*m->value > 0)) continue;
      const bool old = in_epoch(*m, before);
      if (!old && !in_epoch(*m, after)) continue;
      const double t = m->better == canary::Better::Higher ? -std::log(*m->value) : std::log(*m->value);
      auto& pair = seen[{m->canary, m->metric}][file.path + " " + m->device];
      (old ? pair.before : pair.after).push_back(t);
      names[{m->canary, m->metric}] = *m;
    }
  }
  std::vector<Comparison> out;
  for (const auto& [key, machines] : seen) {
    const auto& m = names[key];
    Comparison row{key.canary, key.metric, m.unit, m.better, 0, 0, 0, 0, 0, 1, std::nullopt, ""};
    std::vector<double> befores, afters, ratios;
    for (const auto& [machine, pair] : machines) {
      row.before_runs += pair.before.size();
      row.after_runs += pair.after.size();
      if (pair.before.empty() || pair.after.empty()) continue;
      befores.push_back(canary::stats::median(pair.before));
      afters.push_back(canary::stats::median(pair.after));
      ratios.push_back(afters.back() - befores.back());
    }
    row.machines = ratios.size();
    if (ratios.empty()) continue;
    const auto value = [&](double t) { return std::exp(m.better == canary::Better::Higher ? -t : t); };
    row.before = value(canary::stats::median(befores));
    row.after = value(canary::stats::median(afters));
    const double ratio = canary::stats::median(ratios);
    row.slower = std::exp(ratio);
    if (row.machines > 1) row.fleet = canary::stats::judge_fleet(ratios);
    const auto* info = canary::find_canary(key.canary, key.metric);
    const double noise = std::max(kSame, 3 * (info == nullptr ? 0.02 : info->sigma_floor));
    const bool few = row.before_runs < kFewestRuns || row.after_runs < kFewestRuns;
    row.verdict = few ? "too few runs" : ratio > noise ? "slower" : ratio < -noise ? "faster" : "same";
    if (row.fleet && row.fleet->slower) row.verdict = "slower";
    out.push_back(std::move(row));
  }
  return out;
}

}  // namespace gpuhealth::cli
