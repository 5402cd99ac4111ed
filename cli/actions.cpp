// SPDX-License-Identifier: Apache-2.0
#include "cli/actions.hpp"

#include "actions/request.hpp"

namespace gpuhealth::cli {
namespace {

Json words(const std::vector<std::string>& list) {
  return list.empty() ? Json::array() : Json(list);
}

std::string change_of(const LedgerEntry& entry) {
  if (entry.owner == "kernel") return entry.target;
  if (entry.before.empty() && entry.wanted.empty()) return "";
  return entry.before + " -> " + (entry.after.empty() ? entry.wanted : entry.after);
}

Tone tone_of_state(const LedgerEntry& entry) {
  if (entry.state.starts_with("failed")) return Tone::Critical;
  if (actions::is_open(entry) || entry.state == "overtaken" || entry.state == "interrupted") return Tone::Warning;
  return Tone::Plain;
}

void fact(Page& page, const Terminal& terminal, const std::string& name, const std::string& value) {
  if (!value.empty()) page.paragraph({name + ": " + value}, 2, terminal.columns);
}

std::string text_in(const Json& json, const char* key) {
  return json.contains(key) && json[key].is_string() ? json[key].get<std::string>() : std::string();
}

}  // namespace

Json json_actions(const ActionsView& view) {
  Json out = {{"safe_mode", words(view.safe_mode)}, {"problems", words(view.problems)}};
  out["actions"] = Json::array();
  for (const LedgerEntry& entry : view.entries) out["actions"].push_back(actions::entry_json(entry));
  out["decided"] = Json::array();
  for (const dbus::ActionView& action : view.told) out["decided"].push_back(json_told(action));
  return out;
}

Json json_told(const dbus::ActionView& a) {
  return {{"id", a.id},
          {"action", a.kind},
          {"device", text_or_null(a.device)},
          {"device_label", text_or_null(a.device_label)},
          {"state", a.state},
          {"policy", text_or_null(a.policy)},
          {"rule", text_or_null(a.rule)},
          {"reason", text_or_null(a.reason)},
          {"text", text_or_null(a.text)},
          {"before", text_or_null(a.before)},
          {"wanted", text_or_null(a.wanted)},
          {"after", text_or_null(a.after)},
          {"fault", time_or_null(a.fault)},
          {"detected", time_or_null(a.detected)},
          {"acted", time_or_null(a.acted)},
          {"verified", time_or_null(a.verified)},
          {"confirm_by", time_or_null(a.confirm_by)},
          {"reversible", a.reversible}};
}

Json json_action(const LedgerEntry& entry) {
  return actions::entry_json(entry);
}

Page render_actions(const ActionsView& view, const Terminal& terminal) {
  Page page;
  for (const std::string& reason : view.safe_mode)
    page.paragraph({"Safe mode, nothing is changed: " + reason, Tone::Warning}, 0, terminal.columns);
  for (const std::string& problem : view.problems) page.paragraph({problem, Tone::Warning}, 0, terminal.columns);
  std::vector<Line> rows;
  rows.reserve(view.entries.size());
  for (const LedgerEntry& entry : view.entries)
    rows.push_back({{entry.id},
                    {entry.started},
                    {entry.owner == "kernel" ? "" : entry.target},
                    {change_of(entry)},
                    {entry.state, tone_of_state(entry)},
                    {entry.rule.empty() ? "by hand" : entry.rule}});
  for (const dbus::ActionView& action : view.told)
    rows.push_back({{action.id},
                    {utc_text(action.detected)},
                    {action.device_label.empty() ? action.device : action.device_label},
                    {action.before.empty() ? action.kind : action.kind + ": " + action.before + " -> " + action.wanted},
                    {action.state, action.state == "refused" ? Tone::Warning : Tone::Plain},
                    {action.rule.empty() ? "by hand" : action.rule}});
  if (rows.empty()) page.line({{"Nothing was changed yet."}});
  if (!rows.empty())
    add_table(page,
              {{"id"}, {"when"}, {"device"}, {"change", Align::Left, true}, {"state"}, {"rule", Align::Left, true}},
              rows, terminal);
  return page;
}

Page render_action(const LedgerEntry& entry, const Terminal& terminal) {
  Page page;
  page.line({{entry.id + ": ", Tone::Heading}, {entry.state, tone_of_state(entry)}});
  fact(page, terminal, "device",
       entry.owner == "kernel" ? "" : entry.target + (entry.device.empty() ? "" : " (" + entry.device + ")"));
  fact(page, terminal, "change", change_of(entry));
  fact(page, terminal, "why", entry.reason);
  fact(page, terminal, "rule", entry.rule + (entry.policy.empty() ? "" : " of " + entry.policy));
  fact(page, terminal, "condition", entry.condition);
  fact(page, terminal, "written down", entry.started);
  for (const auto& [state, time] : entry.times) fact(page, terminal, state, time);
  fact(page, terminal, "taken back unless found good by", entry.confirm_by);
  fact(page, terminal, "note", entry.note);
  for (const std::string& warning : entry.warnings) fact(page, terminal, "warning", warning);
  for (const LedgerStep& step : entry.steps) fact(page, terminal, "done", actions::describe(step));
  for (const LedgerStep& step : entry.back) fact(page, terminal, "way back", actions::describe(step));
  for (const auto& [path, state] : entry.prior)
    fact(page, terminal, "way back", state.exists ? "put " + path + " back as it was" : "remove " + path);
  return page;
}

Page render_action_outcome(const Json& outcome, const Terminal& terminal) {
  Page page;
  const auto lines = [&](const char* key, const char* mark, Tone tone) {
    if (!outcome.contains(key) || !outcome[key].is_array()) return;
    for (const Json& item : outcome[key])
      if (item.is_string()) page.paragraph({mark + item.get<std::string>(), tone}, 0, terminal.columns);
  };
  const bool planned = text_in(outcome, "state") == "planned";
  lines("resolved", "first, what had not come to its end: ", Tone::Note);
  lines("steps", planned ? "would: " : "done: ", Tone::Plain);
  lines("warnings", "note: ", Tone::Note);
  if (const std::string text = text_in(outcome, "text"); !text.empty())
    page.paragraph({text, Tone::Heading}, 0, terminal.columns);
  if (planned)
    page.paragraph({text_in(outcome, "before") + " -> " + text_in(outcome, "wanted") + "; nothing was changed."}, 0,
                   terminal.columns);
  if (const std::string by = text_in(outcome, "confirm_by"); !by.empty() && text_in(outcome, "state") == "applied")
    page.paragraph(
        {"After " + by + " the next action takes it back, unless it is found good: gpuhealthctl actions confirm " +
         text_in(outcome, "ledger") + ". To take it back now: gpuhealthctl actions revert " +
         text_in(outcome, "ledger")},
        0, terminal.columns);
  return page;
}

}  // namespace gpuhealth::cli
