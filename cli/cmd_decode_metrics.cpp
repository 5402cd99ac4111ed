// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <memory>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/command.hpp"
#include "cli/render.hpp"
#include "core/fd.hpp"
#include "telemetry/gpu_metrics.hpp"

namespace gpuhealth::cli {
namespace {

using telemetry::MetricsFile;
using Bytes = std::vector<std::uint8_t>;

struct Options {
  std::string file;
  MetricsFile type = MetricsFile::GpuMetrics;
};

// The largest known table has 4 KiB, an attribute stream at most 64 KiB.
constexpr std::size_t kMost = 1U << 20U;

Result<Bytes> read_file(const std::string& path) {
  const Fd file(path == "-" ? dup(STDIN_FILENO) : open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return fail_errno("cannot open " + path, errno);
  Bytes bytes;
  std::vector<std::uint8_t> buffer(65536);
  while (true) {
    const ssize_t got = read(file.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EISDIR) return fail(ErrorCode::InvalidInput, path + " is a folder, not a file");
    if (got < 0) return fail_errno("cannot read " + path, errno);
    if (got == 0) return bytes;
    bytes.insert(bytes.end(), buffer.begin(), buffer.begin() + got);
    if (bytes.size() > kMost)
      return fail(ErrorCode::InvalidInput, path + " has more than 1 MiB: that is no gpu_metrics file");
  }
}

ExitCode decode(const Context& context, const Options& options) {
  const auto bytes = read_file(options.file);
  if (!bytes) return complain(context, bytes.error());
  const auto metrics = telemetry::decode_gpu_metrics(*bytes, options.type);
  show(context, [&] { return render_metrics(metrics, context.terminal); }, [&] { return json_metrics(metrics); });
  if (metrics.status != telemetry::MetricsStatus::Invalid) return ExitCode::Ok;
  if (!context.quiet) return ExitCode::InvalidInput;  // it has been said
  return complain(context, {ErrorCode::InvalidInput, options.file + ": " + metrics.note});
}

}  // namespace

Action set_up_decode_metrics(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("FILE", options->file, "the file; - is standard input")->required();
  const std::map<std::string, MetricsFile> types = {{"gpu_metrics", MetricsFile::GpuMetrics},
                                                    {"gpuboard_temp", MetricsFile::GpuBoardTemperature},
                                                    {"baseboard_temp", MetricsFile::BaseboardTemperature},
                                                    {"partition", MetricsFile::Partition}};
  app.add_option("--type", options->type, "gpu_metrics (default), gpuboard_temp, baseboard_temp or partition")
      ->type_name("TYPE")
      ->transform(CLI::Transformer(types).description(""))
      ->check([](const std::string& text) {
        const bool known = text.size() == 1 && text[0] >= '0' && text[0] <= '3';  // what the transformer made of it
        return known ? std::string() : "must be gpu_metrics, gpuboard_temp, baseboard_temp or partition";
      });
  return [options](const Context& context) { return decode(context, *options); };
}

}  // namespace gpuhealth::cli
