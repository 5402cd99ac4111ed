// SPDX-License-Identifier: Apache-2.0
// gpuhealthctl canary: run, list, history, compare, baseline, accept. All of it works without the daemon.
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <map>
#include <memory>
#include <optional>

#include <CLI/CLI.hpp>

#include "cli/acceptance.hpp"
#include "cli/ask.hpp"
#include "cli/canary_ask.hpp"
#include "cli/canary_run.hpp"
#include "cli/command.hpp"
#include "cli/json_canary.hpp"
#include "cli/render.hpp"
#include "core/json.hpp"

namespace gpuhealth::cli {
namespace {

using canary::Measurement;
using canary::Status;

struct Options {
  std::string file = kResultsFile;
  std::vector<std::string> files;
  // run
  std::string tier = "1";
  std::vector<std::string> only;
  std::string backend = "auto";
  std::string device;
  std::string save;
  bool allow_cpu = false;
  bool bisect = false;
  bool local = false;
  // history, compare, baseline
  std::string canary, metric;
  std::string before, after;
  std::string why;
  bool yes = false;
  Action chosen;
};
using Shared = std::shared_ptr<Options>;

// What is known already; nothing where the file is not there or not for this user.
std::vector<canary::stats::BaselineView> known_baselines(const std::string& path) {
  const auto file = read_results(path, canary::Gate::Strong);
  return file ? replay(*file).baselines : std::vector<canary::stats::BaselineView>();
}

RunRow judged(const Measurement& m, const std::vector<canary::stats::BaselineView>& baselines) {
  RunRow row{m, std::nullopt, std::nullopt, std::string(to_string(m.status))};
  if (!m.mappings.empty() && canary::stats::judge_mappings(m.mappings).stalled) {
    row.verdict = "stall";
    return row;
  }
  if (m.status != Status::Ok) return row;
  const canary::stats::BaselineView* best = nullptr;
  for (const auto& b : baselines) {
    if (b.device != m.device || b.canary != m.canary || b.metric != m.metric || !b.value) continue;
    if (b.epoch == m.epoch && b.state == "good") best = &b;
    if (b.last_known_good && (best == nullptr || best->epoch != m.epoch)) best = &b;
  }
  const auto* info = canary::find_canary(m.canary, m.metric);
  if (best == nullptr || !m.value || *m.value <= 0) {
    row.verdict = info != nullptr && info->sigma_floor <= 0 ? "ok" : "no baseline";
    return row;
  }
  row.baseline = best->value;
  row.slower = m.better == canary::Better::Higher ? *best->value / *m.value : *m.value / *best->value;
  // One run: only what no noise makes.
  row.verdict = *row.slower >= 1.5 ? "slower" : "ok";
  return row;
}

std::string verdict_of(const std::vector<RunRow>& rows) {
  std::string worst = "unsupported";
  for (const auto& r : rows) {
    if (r.verdict == "unsupported") continue;
    if (r.verdict != "ok" && r.verdict != "no baseline" && r.verdict != "busy") return r.verdict;
    if (worst == "unsupported" || r.verdict == "busy") worst = r.verdict == "busy" ? "busy" : "ok";
  }
  return worst;
}

std::vector<std::string> worker_arguments(const Options& options) {
  std::vector<std::string> out = {"--backend", options.backend, "--tier", options.tier, "--json", "--progress"};
  for (const auto& name : options.only) {
    out.emplace_back("--only");
    out.push_back(name);
  }
  if (!options.device.empty()) {
    out.emplace_back("--device");
    out.push_back(options.device);
  }
  if (options.allow_cpu) out.emplace_back("--allow-cpu");
  return out;
}

// What is no tier the worker refuses.
std::optional<std::uint32_t> tier_of(const std::string& text) {
  if (text.size() != 1 || text[0] < '0' || text[0] > '3') return std::nullopt;
  return static_cast<std::uint32_t>(text[0] - '0');
}

Result<WorkerOutcome> measure(const Context& context, const Options& options, bool each_gpu) {
  const bool live = isatty(STDERR_FILENO) == 1 && !context.quiet && !context.json;
  const auto progress = [live](const std::string& text) {
    if (live) std::fprintf(stderr, "\r\033[K%s", text.c_str());
  };
  std::optional<Result<WorkerOutcome>> by_daemon;
  const auto tier = tier_of(options.tier);
  // The daemon chooses the runtime itself, and knows no CPU.
  if (!options.local && !options.allow_cpu && options.backend == "auto" && tier)
    by_daemon = measure_by_daemon(context.bus, {options.device, *tier, options.only}, each_gpu, progress);
  auto outcome = by_daemon ? std::move(*by_daemon) : run_worker(worker_arguments(options), progress);
  if (live) std::fputs("\r\033[K", stderr);
  if (!outcome || options.save.empty()) return outcome;
  std::string lines;
  for (const auto& m : outcome->lines) lines += canary::to_json_line(m) + "\n";
  if (auto saved = append_lines(options.save, lines); !saved) return tl::unexpected(saved.error());
  return outcome;
}

ExitCode run(const Context& context, const Options& options) {
  const auto outcome = measure(context, options, true);
  if (!outcome) {
    const auto code = complain(context, outcome.error());
    return options.bisect ? static_cast<ExitCode>(kCannotTell) : code;
  }
  const auto baselines = known_baselines(options.file);
  std::vector<RunRow> rows;
  for (const auto& m : outcome->lines) rows.push_back(judged(m, baselines));
  const auto verdict = verdict_of(rows);
  show(context, [&] { return render_run(rows, verdict, context.terminal); }, [&] { return json_run(rows, verdict); });
  if (options.bisect) return static_cast<ExitCode>(bisect_code(rows, verdict));
  if (verdict == "ok") return ExitCode::Ok;
  if (verdict == "unsupported") return ExitCode::Unavailable;
  if (verdict == "busy" || verdict == "stall" || verdict == "slower") return ExitCode::ConditionsPresent;
  return ExitCode::Failed;
}

// A new or used card: everything computed is right, and nothing is far below what card and slot state.
ExitCode accept(const Context& context, Options options) {
  options.tier = "2";
  const auto outcome = measure(context, options, false);
  if (!outcome) return complain(context, outcome.error());
  const std::string& card = outcome->lines.front().device;
  if (std::ranges::any_of(outcome->lines, [&](const Measurement& m) { return m.device != card; }))
    return complain(context, {ErrorCode::InvalidInput,
                              "this machine has several GPUs; name one with --device: a verdict is for one card"});
  std::vector<RunRow> rows;
  for (const auto& m : outcome->lines) {
    RunRow row{m, std::nullopt, std::nullopt, std::string(to_string(m.status))};
    const auto ideal = m.notes.find("ideal");
    const double stated = ideal == m.notes.end() ? 0 : std::strtod(ideal->second.c_str(), nullptr);
    if (m.status == Status::Ok && m.value && stated > 0 && *m.value < 0.5 * stated) row.verdict = "slower";
    if (!m.mappings.empty() && canary::stats::judge_mappings(m.mappings).stalled) row.verdict = "stall";
    rows.push_back(std::move(row));
  }
  const auto seen = this_program_says({"inspect", "--json"});
  const auto inspection = seen ? parse_json<Json>(*seen) : Json();
  const auto checks = check_hardware(inspection, card, rows);
  const auto verdict = acceptance_verdict(rows, checks);
  show(
      context,
      [&] {
        auto page = render_run(rows, verdict, context.terminal);
        for (const auto& c : checks)
          page.paragraph({c.what + ": " + c.verdict + ", " + c.detail}, 2, context.terminal.columns);
        return page;
      },
      [&] {
        auto json = json_run(rows, verdict);
        json["checks"] = Json::array();
        for (const auto& c : checks)
          json["checks"].push_back({{"what", c.what}, {"verdict", c.verdict}, {"detail", c.detail}});
        return json;
      });
  if (verdict == "hardware cleared") return ExitCode::Ok;
  return verdict == "unsupported" ? ExitCode::Unavailable : ExitCode::ConditionsPresent;
}

ExitCode list(const Context& context) {
  show(context, [&] { return render_canaries(context.terminal); }, [] { return json_canaries(); });
  return ExitCode::Ok;
}

ExitCode history(const Context& context, const Options& options) {
  const auto rows = canary::metrics_of(options.canary);
  std::string metric = options.metric;
  if (metric.empty() && !rows.empty()) metric = rows.front().metric;
  const auto file = read_results(options.file, canary::Gate::Strong);
  if (!file) return complain(context, file.error());
  std::map<std::string, std::vector<store::HistoryPoint>> devices;
  std::string unit;
  for (const auto& entry : file->entries) {
    const auto* m = std::get_if<Measurement>(&entry);
    if (m == nullptr || m->canary != options.canary || !m->value || m->status != Status::Ok) continue;
    if (metric.empty()) metric = m->metric;
    if (m->metric != metric || (!options.device.empty() && m->device != options.device)) continue;
    unit = m->unit;
    devices[m->device].push_back(
        {wall_from_microseconds(static_cast<std::int64_t>(m->time * 1e6)), *m->value, *m->value, *m->value});
  }
  if (devices.empty())
    return complain(context, Error{ErrorCode::NotFound, options.file + " holds no result of " + options.canary +
                                                            (metric.empty() ? "" : " " + metric) +
                                                            "; gpuhealthctl canary list names the canaries"});
  const std::string name = options.canary + "." + metric + (unit.empty() ? "" : " (" + unit + ")");
  const ReadingInfo info{ReadingId::PlainCount, name, Unit::Count, Keep::Live, ""};
  std::vector<Series> series;
  for (auto& [device, points] : devices) {
    std::ranges::sort(points, {}, &store::HistoryPoint::time);
    Series s{device,           device, device, &info, points.front().time, points.back().time + std::chrono::seconds(1),
             std::move(points)};
    series.push_back(std::move(s));
  }
  const std::size_t columns = context.terminal.columns > 0 ? context.terminal.columns : 80;
  show(
      context, [&] { return render_history(series, context.terminal, {columns, 10}); },
      [&] { return json_history(info, series.front().since, series.front().until, series); });
  return ExitCode::Ok;
}

ExitCode compare(const Context& context, const Options& options) {
  std::vector<ResultFile> files;
  for (const auto& path : options.files.empty() ? std::vector<std::string>{options.file} : options.files) {
    auto file = read_results(path, canary::Gate::Strong);
    if (!file) return complain(context, file.error());
    files.push_back(std::move(*file));
  }
  const auto rows = compare_epochs(files, options.before, options.after);
  show(
      context, [&] { return render_comparison(options.before, options.after, rows, context.terminal); },
      [&] { return json_comparison(options.before, options.after, rows); });
  if (rows.empty()) return ExitCode::NotFound;
  const bool slower = std::ranges::any_of(rows, [](const auto& r) { return r.verdict == "slower"; });
  return slower ? ExitCode::ConditionsPresent : ExitCode::Ok;
}

ExitCode baseline_show(const Context& context, const Options& options) {
  const auto file = read_results(options.file, canary::Gate::Strong);
  if (!file) return complain(context, file.error());
  const auto baselines = replay(*file).baselines;
  show(
      context, [&] { return render_baselines(baselines, context.terminal); },
      [&] { return Json{{"baselines", json_baselines(baselines)}}; });
  return ExitCode::Ok;
}

std::string who() {
  const passwd* user = getpwuid(getuid());
  return user == nullptr ? std::to_string(getuid()) : std::string(user->pw_name);
}

ExitCode baseline_reset(const Context& context, const Options& options) {
  const std::string what = options.canary.empty() ? "all canaries" : options.canary;
  if (!options.yes) {
    if (isatty(STDIN_FILENO) != 1)
      return complain(context, Error{ErrorCode::InvalidInput,
                                     "a reset forgets what was good; say --yes where nobody can be asked"});
    std::fprintf(stderr, "Forget the baselines of %s on %s? A slow card then counts as good. [y/N] ", what.c_str(),
                 options.device.c_str());
    std::string answer;
    std::getline(std::cin, answer);
    if (answer != "y" && answer != "yes") return ExitCode::Ok;
  }
  const BaselineReset reset{options.device, options.canary, who(), options.why,
                            static_cast<double>(to_microseconds(wall_now())) / 1e6};
  const auto line = to_json_line(reset);
  if (auto done = append_lines(options.file, line + "\n"); !done) return complain(context, done.error());
  Page page;
  page.line({{"Forgotten: " + what + " on " + options.device + "."}});
  show(context, [&] { return page; }, [&] { return parse_json<Json>(line); });
  return ExitCode::Ok;
}

void add_measuring(CLI::App& app, const Shared& options) {
  app.add_option("--backend", options->backend, "ioctl, hip, opencl, cuda or auto")->type_name("NAME");
  app.add_option("--device", options->device, "one GPU, by PCI address")->type_name("PCI");
  app.add_option("--save", options->save, "append the result lines to a file")->type_name("FILE");
  app.add_flag("--local", options->local, "measure here, past a daemon that runs");
  app.add_flag("--allow-cpu", options->allow_cpu, "take a CPU when there is no GPU");
}

void add_file(CLI::App& app, const Shared& options) {
  app.add_option("--file", options->file, "result lines to use instead of the daemon's")->type_name("FILE");
}

CLI::App* add(CLI::App& app, const char* name, const char* summary, const Shared& options, Action action) {
  CLI::App* sub = app.add_subcommand(name, summary);
  sub->fallthrough();
  sub->callback([options, action = std::move(action)] { options->chosen = action; });
  return sub;
}

void add_baseline(CLI::App& app, const Shared& options) {
  CLI::App* baseline = app.add_subcommand("baseline", "what is known to be good");
  baseline->fallthrough();
  baseline->require_subcommand(1);
  auto* show_it = add(*baseline, "show", "the baselines of each device, epoch and canary", options,
                      [options](const Context& c) { return baseline_show(c, *options); });
  add_file(*show_it, options);
  auto* reset = add(*baseline, "reset", "forget them; asks first, and records who and why", options,
                    [options](const Context& c) { return baseline_reset(c, *options); });
  reset->add_option("DEVICE", options->device, "as the results name it")->required();
  reset->add_option("CANARY", options->canary, "one canary; else all");
  reset->add_option("--why", options->why, "the reason, for those who come after")->required()->type_name("TEXT");
  reset->add_flag("--yes", options->yes, "do not ask");
  add_file(*reset, options);
}

}  // namespace

Action set_up_canary(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.require_subcommand(1);
  auto* run_it = add(app, "run", "measure now, and compare with what is known", options,
                     [options](const Context& c) { return run(c, *options); });
  run_it->add_option("--tier", options->tier, "0, 1, 2 or 3")->type_name("N");
  run_it->add_option("--only", options->only, "one canary; may be repeated")->type_name("NAME");
  run_it->add_flag("--bisect", options->bisect, "exit codes for git bisect run: 0 good, 1 bad, 125 cannot tell");
  add_measuring(*run_it, options);
  add_file(*run_it, options);
  auto* accept_it = add(app, "accept", "is this card sound? for a new or used one", options,
                        [options](const Context& c) { return accept(c, *options); });
  add_measuring(*accept_it, options);
  add(app, "list", "the canaries, and what each measures", options, [](const Context& c) { return list(c); });
  auto* history_it =
      add(app, "history", "a canary's curve", options, [options](const Context& c) { return history(c, *options); });
  history_it->add_option("NAME", options->canary, "a canary, such as triad")->required();
  history_it->add_option("--metric", options->metric, "one of its metrics; else the first")->type_name("METRIC");
  history_it->add_option("--device", options->device, "one device, as the results name it")->type_name("DEVICE");
  add_file(*history_it, options);
  auto* compare_it = add(app, "compare", "before and after a change of software", options,
                         [options](const Context& c) { return compare(c, *options); });
  compare_it
      ->add_option("BEFORE", options->before,
                   "an epoch: its hash, a beginning of it, or a value such as a kernel release")
      ->required();
  compare_it->add_option("AFTER", options->after, "the other")->required();
  compare_it->add_option("FILES", options->files, "results of this and other machines; one machine a file");
  add_file(*compare_it, options);
  add_baseline(app, options);
  return [options](const Context& context) { return options->chosen(context); };
}

}  // namespace gpuhealth::cli
