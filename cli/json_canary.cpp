// SPDX-License-Identifier: Apache-2.0
#include "cli/json_canary.hpp"

#include <algorithm>
#include <set>
#include <string>

#include "core/json.hpp"

namespace gpuhealth::cli {
namespace {

Json changed_fields(const std::vector<std::pair<std::string, std::string>>& changed) {
  Json out = Json::array();
  for (const auto& [field, change] : changed) out.push_back({{"field", field}, {"change", change}});
  return out;
}

Json number_or_null(const std::optional<double>& value) {
  return value ? number(*value) : Json(nullptr);
}

}  // namespace

int bisect_code(const std::vector<RunRow>& rows, std::string_view verdict) {
  if (verdict == "busy" || verdict == "unsupported") return kCannotTell;
  if (verdict != "ok") return 1;
  std::set<std::string> controlled;
  for (const auto& r : rows) {
    if (!r.measurement.mappings.empty()) controlled.insert(r.measurement.canary);
  }
  const bool unknown = std::ranges::any_of(
      rows, [&](const auto& r) { return r.verdict == "no baseline" && !controlled.contains(r.measurement.canary); });
  return unknown ? kCannotTell : 0;
}

Json json_finding(const health::CanaryFinding& f) {
  Json out;
  out["kind"] = to_string(f.finding.kind);
  out["level"] = to_string(f.finding.level);
  out["device"] = f.finding.device;
  out["canary"] = f.finding.canary;
  out["metric"] = f.finding.metric;
  out["time"] = canary::time_text(f.finding.time);
  out["since"] = canary::time_text(f.finding.since);
  out["ratio"] = number_or_null(f.finding.ratio);
  out["epoch"] = f.finding.epoch;
  out["good_epoch"] = text_or_null(f.finding.good_epoch);
  out["detail"] = f.finding.detail;
  out["cause"] = f.cause.name;
  out["cause_text"] = f.cause.text;
  out["cause_evidence"] = f.cause.evidence;
  out["against"] = Json::array();
  for (const auto& [cause, why] : f.cause.against) out["against"].push_back({{"cause", cause}, {"why", why}});
  out["changed"] = changed_fields(f.cause.changed.empty() ? f.finding.changed : f.cause.changed);
  return out;
}

Json json_baselines(const std::vector<canary::stats::BaselineView>& baselines) {
  Json out = Json::array();
  for (const auto& b : baselines) {
    out.push_back({{"device", b.device},
                   {"canary", b.canary},
                   {"metric", b.metric},
                   {"epoch", b.epoch},
                   {"runs", b.runs},
                   {"value", number_or_null(b.value)},
                   {"sigma", number(b.sigma)},
                   {"state", b.state},
                   {"last_known_good", b.last_known_good}});
  }
  return out;
}

Json json_replay(const Replay& replay) {
  Json out;
  out["lines"] = replay.lines;
  out["judged"] = replay.judged;
  out["ignored"] = Json::array();
  for (const auto& bad : replay.bad) out["ignored"].push_back({{"line", bad.line}, {"reason", bad.reason}});
  out["confirmed"] = anything_confirmed(replay);
  out["findings"] = Json::array();
  for (const auto& f : replay.findings) out["findings"].push_back(json_finding(f));
  out["open"] = Json::array();
  for (const auto& f : replay.open) out["open"].push_back(json_finding(f));
  out["baselines"] = json_baselines(replay.baselines);
  return out;
}

Json json_comparison(std::string_view before, std::string_view after, const std::vector<Comparison>& rows) {
  Json out;
  out["before"] = before;
  out["after"] = after;
  out["rows"] = Json::array();
  for (const auto& r : rows) {
    Json row = {{"canary", r.canary},           {"metric", r.metric},         {"unit", r.unit},
                {"before", number(r.before)},   {"after", number(r.after)},   {"slower", number(r.slower)},
                {"before_runs", r.before_runs}, {"after_runs", r.after_runs}, {"machines", r.machines},
                {"verdict", r.verdict}};
    row["z"] = r.fleet ? number(r.fleet->z) : Json(nullptr);
    out["rows"].push_back(std::move(row));
  }
  return out;
}

Json json_canaries() {
  Json out;
  out["canaries"] = Json::array();
  for (const auto& row : canary::all_canaries())
    out["canaries"].push_back({{"canary", row.canary},
                               {"metric", row.metric},
                               {"tier", row.tier},
                               {"unit", row.unit},
                               {"better", row.better == canary::Better::Higher ? "higher" : "lower"},
                               {"text", row.text}});
  return out;
}

Json json_run(const std::vector<RunRow>& rows, std::string_view verdict) {
  Json out;
  out["verdict"] = verdict;
  out["results"] = Json::array();
  for (const auto& r : rows) {
    Json one = parse_json<Json>(canary::to_json_line(r.measurement));
    one["baseline"] = number_or_null(r.baseline);
    one["slower"] = number_or_null(r.slower);
    one["verdict"] = r.verdict;
    out["results"].push_back(std::move(one));
  }
  return out;
}

}  // namespace gpuhealth::cli
