// SPDX-License-Identifier: Apache-2.0
#include "telemetry/proc.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "telemetry/parse.hpp"
#include "telemetry/sysfs.hpp"

namespace gpuhealth::telemetry {
namespace {

template <class T>
std::optional<T> number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string_view take_word(std::string_view& text) {
  const auto first = text.find_first_not_of(" \n");
  if (first == std::string_view::npos) return {};
  text.remove_prefix(first);
  const auto end = std::min(text.find_first_of(" \n"), text.size());
  const auto word = text.substr(0, end);
  text.remove_prefix(end);
  return word;
}

constexpr std::uint64_t kKernelThread = 0x00200000;  // PF_KTHREAD (include/linux/sched.h)

// The libraries that work on a GPU goes through; what only finds devices is not among them.
constexpr std::array<std::string_view, 6> kRuntimes = {"/libamdhip64.so",  "/libhsa-runtime64.so", "/libcudart.so",
                                                       "/libtorch_hip.so", "/libtorch_cuda.so",    "/libggml-hip.so"};

}  // namespace

std::optional<ProcStat> parse_proc_stat(std::string_view text) {
  const auto open = text.find('(');
  const auto close = text.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return std::nullopt;
  ProcStat out;
  const auto pid = number<std::uint32_t>(trimmed(text.substr(0, open)));
  if (!pid) return std::nullopt;
  out.pid = *pid;
  text.remove_prefix(close + 1);
  take_word(text);  // field 3, the state
  std::array<std::uint64_t, 23> fields{};
  for (std::size_t field = 4; field <= 22; ++field) {
    const auto word = take_word(text);
    if (word.empty()) return std::nullopt;
    fields[field] = number<std::uint64_t>(word).value_or(0);  // some are negative; none of those that are used
  }
  out.parent = static_cast<std::uint32_t>(fields[4]);
  out.kernel_thread = (fields[9] & kKernelThread) != 0;
  out.user_ticks = fields[14];
  out.system_ticks = fields[15];
  out.started = fields[22];
  return out;
}

std::optional<std::uint64_t> parse_proc_io(std::string_view text) {
  std::optional<std::uint64_t> most;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    const auto line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    for (const std::string_view key : {"rchar: ", "read_bytes: "}) {
      const auto value = line.starts_with(key) ? number<std::uint64_t>(line.substr(key.size())) : std::nullopt;
      if (value) most = std::max(most.value_or(0), *value);
    }
  }
  return most;
}

bool maps_compute_runtime(std::string_view maps) {
  return std::ranges::any_of(kRuntimes, [&](std::string_view name) { return maps.find(name) != maps.npos; });
}

std::string process_name(const std::string& root, std::uint32_t pid, std::uint64_t started) {
  const auto folder = root + "/proc/" + std::to_string(pid);
  const auto stat = parse_proc_stat(read_text_or_empty(folder + "/stat"));
  if (!stat || (started != 0 && stat->started != started)) return {};
  return read_text_or_empty(folder + "/comm");
}

}  // namespace gpuhealth::telemetry
