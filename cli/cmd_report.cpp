// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>

#include <CLI/CLI.hpp>

#include "cli/ask.hpp"
#include "cli/command.hpp"
#include "cli/report_bundle.hpp"

namespace gpuhealth::cli {
namespace {

struct Options {
  std::string since = "7d";
  std::string html, bundle;
  bool keep_names = false;
  std::string results = kResultsFile;
};

constexpr std::uint32_t kMostPoints = 360;
constexpr std::uint32_t kMostEvents = 2000;
constexpr std::uint32_t kMostConditions = 500;

Result<void> gather_history(dbus::Client& client, Report& r) {
  for (const auto& d : r.machine.devices) {
    for (const auto* metric : report_metrics()) {
      auto points = client.history({d.id, metric->id, r.since, r.made, kMostPoints});
      if (!points) return tl::unexpected(points.error());
      if (!points->empty()) r.series.push_back({d.id, d.pci, label(d), metric, r.since, r.made, std::move(*points)});
    }
  }
  return {};
}

// Without history a report still says what is.
void gather_past(dbus::Client& client, Report& r) {
  auto past = client.past_conditions(r.since, kMostConditions);
  auto events = client.events(r.since, r.made, kMostEvents);
  if (past) r.past = std::move(*past);
  if (events) r.events = std::move(*events);
  const auto curves = gather_history(client, r);
  const Error* const whys[] = {past ? nullptr : &past.error(), events ? nullptr : &events.error(),
                               curves ? nullptr : &curves.error()};
  for (const Error* why : whys) {
    if (why == nullptr) continue;
    r.notes.push_back("History is not in this report: " + why->text);
    break;
  }
}

Result<Report> gather(const Context& context, const Options& options, WallTime now, WallTime since) {
  auto client = connect(context);
  if (!client) return tl::unexpected(client.error());
  auto machine = look(*client);
  if (!machine) return tl::unexpected(machine.error());
  Report r;
  r.made = now;
  r.since = since;
  r.machine = std::move(*machine);
  if (auto snapshot = client->snapshot()) r.others = std::move(snapshot->others);
  gather_past(*client, r);
  auto results = read_results(options.results, canary::Gate::Strong);
  if (results) {
    for (auto& entry : results->entries) {
      if (auto* m = std::get_if<canary::Measurement>(&entry)) r.measurements.push_back(std::move(*m));
    }
  } else if (results.error().code != ErrorCode::NotFound) {
    r.notes.push_back("Results of canaries are not in this report: " + results.error().text);
  }
  conclude(r);
  return r;
}

ExitCode report(const Context& context, const Options& options) {
  const auto now = wall_now();
  const auto since = parse_when(options.since, now);
  if (!since) {
    complain(context, since.error());
    return ExitCode::Usage;
  }
  const auto made = gather(context, options, now, *since);
  if (!made) return complain(context, made.error());
  if (!options.html.empty()) {
    if (auto done = write_whole(options.html, report_html(*made)); !done) return complain(context, done.error());
  }
  if (!options.bundle.empty()) {
    if (auto done = write_bundle(options.bundle, bundle_files(*made, options.keep_names), now); !done)
      return complain(context, done.error());
  }
  const bool file = !options.html.empty() || !options.bundle.empty();
  if (file && !context.json) return ExitCode::Ok;
  show(context, [&] { return report_page(*made, context.terminal); }, [&] { return report_json(*made); });
  return ExitCode::Ok;
}

}  // namespace

Action set_up_report(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("--since", options->since, "a period before now (24h, 7d) or a date (2026-11-01)")
      ->type_name("WHEN")
      ->capture_default_str();
  app.add_option("--html", options->html, "write a page for a browser; it needs no network")->type_name("FILE");
  auto* bundle =
      app.add_option("--bundle", options->bundle,
                     "write one file with page, history and results, without names of hosts, users and cards")
          ->type_name("FILE")
          ->check([](const std::string& file) {
            return file.ends_with(".tar.zst") ? std::string() : std::string("must end in .tar.zst");
          });
  app.add_flag("--keep-names", options->keep_names, "with --bundle: leave the names in")->needs(bundle);
  app.add_option("--file", options->results, "results of canaries")->type_name("FILE")->capture_default_str();
  return [options](const Context& context) { return report(context, *options); };
}

}  // namespace gpuhealth::cli
