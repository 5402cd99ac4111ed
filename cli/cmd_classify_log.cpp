// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

#include <CLI/CLI.hpp>

#include "cli/command.hpp"
#include "cli/render.hpp"
#include "core/fd.hpp"
#include "telemetry/klog/classifier.hpp"

namespace gpuhealth::cli {
namespace {

// Months of kernel log fit; an endless device given by mistake ends here.
constexpr std::size_t kMost = std::size_t{512} << 20U;

Result<std::string> read_log(const std::string& path) {
  const Fd file(path == "-" ? dup(STDIN_FILENO) : open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return fail_errno("cannot open " + path, errno);
  std::string text;
  std::vector<char> buffer(std::size_t{1} << 18U);
  while (true) {
    const ssize_t got = read(file.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EISDIR) return fail(ErrorCode::InvalidInput, path + " is a folder, not a file");
    if (got < 0) return fail_errno("cannot read " + path, errno);
    if (got == 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(got));
    if (text.size() > kMost)
      return fail(ErrorCode::InvalidInput, path + " has more than 512 MiB: give a part of the log");
  }
}

ExitCode classify_log(const Context& context, const std::string& file) {
  const auto log = read_log(file);
  if (!log) return complain(context, log.error());
  const auto events = klog::classify(*log);
  show(context, [&] { return render_log(events, context.terminal); }, [&] { return json_log(events); });
  return ExitCode::Ok;
}

}  // namespace

Action set_up_classify_log(CLI::App& app) {
  auto file = std::make_shared<std::string>();
  app.add_option("FILE", *file, "the log: dmesg, journalctl -k or syslog text; - is standard input")->required();
  return [file](const Context& context) { return classify_log(context, *file); };
}

}  // namespace gpuhealth::cli
