// SPDX-License-Identifier: Apache-2.0
// One line of the worker: what one canary measured once. docs/json.md documents it ("Result lines").
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"

namespace gpuhealth::canary {

enum class Better : std::uint8_t { Lower, Higher };

struct CanaryInfo {
  std::string_view canary;  // "triad"
  std::string_view metric;  // "bandwidth"
  int tier;
  std::string_view unit;
  Better better;
  double sigma_floor;  // relative; 0: not compared with a baseline
  std::string_view text;
};
std::span<const CanaryInfo> all_canaries();
const CanaryInfo* find_canary(std::string_view canary, std::string_view metric);
// The rows of one canary; empty for a name that is none.
std::span<const CanaryInfo> metrics_of(std::string_view canary);
std::vector<std::string_view> canary_names(int up_to_tier);

enum class Status : std::uint8_t {
  Ok,
  Wrong,          // it ran, and its output is not bit for bit what it must be
  Failed,         // a call failed
  Timeout,        // killed at its deadline
  Unsupported,    // this device, backend or moment cannot run it; not a fault
  Busy,           // somebody else used the device: shown, not judged
  Stuck,          // killed, and it does not die: it hangs in the kernel
  BackendFailed,  // the runtime aborted, corrupted its heap or ended the process
};
std::string_view to_string(Status status);  // "ok", …, "backend-failed"
std::optional<Status> status_from(std::string_view name);

// How sure it is that nobody else used the device.
enum class Gate : std::uint8_t {
  Unknown,  // not looked
  Weak,     // looked, and could not see everybody (not root, a guest, a shared function)
  Strong,   // every client was visible, before and after
};
std::string_view to_string(Gate gate);
std::optional<Gate> gate_from(std::string_view name);

// One fresh mapping of a host-copy canary, beside its control.
struct Mapping {
  double ms = 0;          // wall time, all attempts
  double control_ms = 0;  // the same amount from memory that cannot stall
  double system_ms = 0;   // kernel time of the worker meanwhile
  int slots = 2;          // 2 MiB slots that the mapping touches
};

struct Measurement {
  std::string canary;
  std::string metric;
  std::string unit;
  std::optional<double> value;
  Status status = Status::Ok;
  Better better = Better::Lower;
  int tier = 1;
  std::string backend;                          // "ioctl", "hip", "opencl", "cuda"
  std::string device;                           // PCI address, or "cpu"; any name in replayed files
  std::string device_name;                      // as the runtime says
  double time = 0;                              // seconds since 1970
  std::string epoch;                            // which software: a short hash of `software`
  std::map<std::string, std::string> software;  // "kernel" -> "6.12.57-amd64"
  Gate gate = Gate::Unknown;
  std::optional<double> p25, worst;  // of the samples, in `unit`
  std::optional<int> samples;
  std::vector<Mapping> mappings;
  std::optional<double> user_ms, system_ms;        // the worker's own CPU time in this canary
  std::optional<double> gpu_ms;                    // time of kernels and copies
  std::map<std::string, std::string> environment;  // work-arounds that were set, and are not for the canary
  std::map<std::string, std::string> notes;        // clocks, links, why …: facts beside the number
  std::string reason;                              // of every status but ok
};

// ErrorCode::InvalidInput with what is wrong: no JSON object, no canary, a value that is no finite number, a status
// that does not exist. Keys that it does not know are ignored; what is absent takes the default above.
Result<Measurement> parse_measurement(std::string_view line);
std::string to_json_line(const Measurement& measurement);  // one line, without its newline, ASCII

// A hash of the fields, 16 hex digits.
std::string epoch_of(const std::map<std::string, std::string>& software);
// "2026-11-30T14:02:07Z", also with a fraction; nothing for anything else.
std::optional<double> parse_time(std::string_view text);
std::string time_text(double seconds);

}  // namespace gpuhealth::canary
