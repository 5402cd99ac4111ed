// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>

#include <CLI/CLI.hpp>

#include "cli/ask.hpp"
#include "cli/command.hpp"
#include "cli/render.hpp"

namespace gpuhealth::cli {
namespace {

struct Options {
  std::string metric;
  std::string device;
  std::string since = "24h";
  std::string until = "now";
  std::size_t width = 0;  // 0: the terminal's
  std::size_t height = 10;
};

struct Question {
  const ReadingInfo* metric = nullptr;
  WallTime since;
  WallTime until;
};

Result<Question> understand(const Options& options, WallTime now) {
  const auto metric = parse_metric(options.metric);
  if (!metric) return tl::unexpected<Error>(metric.error());
  const auto since = parse_when(options.since, now);
  if (!since) return tl::unexpected<Error>(since.error());
  const auto until = parse_when(options.until, now);
  if (!until) return tl::unexpected<Error>(until.error());
  if (*since >= *until)
    return fail(ErrorCode::InvalidInput, "--since " + options.since + " is not before --until " + options.until);
  return Question{*metric, *since, *until};
}

PlotSize size_of(const Options& options, const Terminal& terminal) {
  const std::size_t columns = options.width > 0 ? options.width : terminal.columns > 0 ? terminal.columns : 80;
  return {columns, options.height};
}

Result<Series> ask(dbus::Client& client, const Question& q, const dbus::DeviceView& device, std::uint32_t max_points) {
  auto points = client.history({device.id, q.metric->id, q.since, q.until, max_points});
  if (!points) return tl::unexpected<Error>(points.error());
  return Series{device.id, device.pci, label(device), q.metric, q.since, q.until, std::move(*points)};
}

// As DeviceInfo::id() makes them.
bool is_id(std::string_view text) {
  return text.starts_with("uid-") || text.starts_with("serial-") || text.starts_with("pci-");
}

ExitCode history(const Context& context, const Options& options) {
  const auto question = understand(options, wall_now());
  if (!question) {
    complain(context, question.error());
    return ExitCode::Usage;
  }
  auto client = connect(context);
  if (!client) return complain(context, client.error());
  auto devices = client->devices();
  if (!devices) return complain(context, devices.error());
  std::ranges::sort(*devices, {}, &dbus::DeviceView::pci);
  std::span<const dbus::DeviceView> chosen = *devices;
  dbus::DeviceView gone;  // a card that has left, by the id that its events and conditions name
  if (!options.device.empty()) {
    const auto device = choose_device(*devices, options.device);
    if (device) {
      chosen = {*device, 1};
    } else if (is_id(options.device)) {
      gone.id = options.device;
      chosen = {&gone, 1};
    } else {
      return complain(context, device.error());
    }
  }
  const PlotSize size = size_of(options, context.terminal);
  const auto max_points =
      static_cast<std::uint32_t>(context.json ? 512 : std::min<std::size_t>(size.columns * 2, 2048));
  std::vector<Series> series;
  for (const auto& device : chosen) {
    auto one = ask(*client, *question, device, max_points);
    if (!one) return complain(context, one.error());
    series.push_back(std::move(*one));
  }
  show(
      context, [&] { return render_history(series, context.terminal, size); },
      [&] { return json_history(*question->metric, question->since, question->until, series); });
  return ExitCode::Ok;
}

}  // namespace

Action set_up_history(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("METRIC", options->metric, "a reading's name, such as temperature.junction")->required();
  app.add_option("--device", options->device,
                 "PCI address, id (also of a card that has left), or a part of the name; without it: all");
  app.add_option("--since", options->since, "a period before now (24h, 7d) or a date (2026-11-01)")
      ->type_name("WHEN")
      ->capture_default_str();
  app.add_option("--until", options->until, "likewise")->type_name("WHEN")->capture_default_str();
  app.add_option("--width", options->width, "columns of the plot")->type_name("COLUMNS")->check(CLI::Range(40, 1000));
  app.add_option("--height", options->height, "rows of the plot")
      ->type_name("ROWS")
      ->check(CLI::Range(3, 200))
      ->capture_default_str();
  return [options](const Context& context) { return history(context, *options); };
}

}  // namespace gpuhealth::cli
