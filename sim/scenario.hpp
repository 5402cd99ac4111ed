// SPDX-License-Identifier: Apache-2.0
// A scenario: a machine, what happens to it and when, and what must come of it (docs/simulator.md). Times are seconds
// of the daemon's clock since its start.
#pragma once

#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/condition.hpp"
#include "core/error.hpp"
#include "core/reading.hpp"
#include "sim/announcer.hpp"
#include "sim/card.hpp"
#include "sim/fault_fs.hpp"
#include "sim/tree.hpp"
#include "sim/userptr.hpp"

namespace gpuhealth::sim {

inline constexpr double kNever = std::numeric_limits<double>::infinity();

// What a step does to a card's state.
struct Ramp {
  double to = 0;
  double over_s = 0;
};
struct SetState {
  std::map<std::string, Ramp> numbers;  // by StateField::name
  std::optional<std::string> performance_level;
  std::optional<std::string> runtime_status;
  std::optional<bool> driver_bound;
  std::vector<RasCount> ras;  // blocks that are named; others stay
};
struct SetFault {
  std::vector<std::string> files;  // globs below the card's folder, "hwmon/temp2_input"
  std::optional<Fault> fault;      // none: what was set for these files ends
  double for_s = kNever;
};
struct WriteFile {
  std::string file;
  std::optional<std::string> text;  // none: the file goes
};
struct Unplug {};
struct Plug {
  unsigned slot = 0;
};
struct Reboot {
  std::vector<std::string> order;      // cards in the order of their slots; those not named are gone
  std::string kernel;                  // release of the next one; empty: the same
  std::optional<UserptrPath> userptr;  // its way to pin memory; none: the same
};
enum class DaemonStep : std::uint8_t { Stop, Start, Kill, Reload };
enum class BusStep : std::uint8_t { Restart };

struct LogLine {
  std::string text;
  unsigned priority = 6;  // as in /dev/kmsg: 3 error, 4 warning, 6 info
};
struct KfdRecord {
  std::string text;  // "3 1 job hang"
};
struct Sleep {
  double for_s = 0;
};

using What = std::variant<SetState, SetFault, WriteFile, Unplug, Plug, Reboot, DaemonStep, BusStep, LogLine, KfdRecord,
                          Uevent, Sleep>;

struct Step {
  double at_s = 0;
  std::string card;  // empty: the machine
  What what;
};

struct ExpectCondition {
  ConditionType type{};
  std::string card;  // empty: any
  double from_s = 0;
  std::optional<double> confirmed_by_s;
  std::optional<double> cleared_by_s;
  std::optional<Severity> severity;
  bool never = false;
  std::vector<std::string> says;  // each must be part of its detail or of a piece of its evidence ("name: value")
};
struct ExpectReading {
  ReadingId id{};
  std::string card;
  double by_s = 0;
  double from_s = 0;
  std::optional<ReadingStatus> status;
  std::optional<double> at_least;
  std::optional<double> at_most;
};
struct ExpectAccess {
  AccessKind kind = AccessKind::Read;
  std::string card;         // empty: the whole /sys
  std::string files = "*";  // glob below the card's folder
  double from_s = 0;
  double to_s = kNever;
  std::optional<std::size_t> at_least;
  std::optional<std::size_t> at_most;
};
struct ExpectDevice {
  std::string card;
  bool present = true;
  double by_s = 0;
};
// What canaries measured; by the daemon's results file.
struct ExpectCanary {
  std::string canary;
  std::string card;                                  // empty: any
  std::string backend;                               // empty: any
  std::string kernel;                                // empty: any
  std::vector<std::string> status = {"ok", "busy"};  // of every one of its lines
  std::size_t at_least = 1;                          // lines with a value
};
// What the ledger says at the end of all actions of a kind that are in a state.
struct ExpectLedger {
  std::string action;              // "power-cap"
  std::string state;               // empty: any
  std::vector<std::string> times;  // moments that it records, each no earlier than the one before
  std::optional<std::size_t> at_least;
  std::optional<std::size_t> at_most;
};
// An event that the daemon told.
struct ExpectEvent {
  std::string type;
  std::string card;  // empty: any, or the machine
  std::string says;  // part of its text
  std::optional<Severity> severity;
  double by_s = 0;
  std::size_t at_least = 1;
  std::optional<std::size_t> at_most;
};
struct Expectation {
  std::string text;  // as the file has it, on one line
  int line = 0;
  std::variant<ExpectCondition, ExpectReading, ExpectAccess, ExpectDevice, ExpectCanary, ExpectLedger, ExpectEvent>
      what;
};

struct ScenarioCard {
  std::string name;
  Card card;
};

struct Scenario {
  std::string name;
  std::string about;
  double duration_s = 60;
  unsigned seed = 1;
  bool noise = true;
  MachineFacts facts;
  std::string config;                           // gpuhealthd.yaml
  std::map<std::string, std::string> policies;  // files of policy.d
  UserptrPath userptr;
  bool opencl = false;       // the stand-in runtime, for the first card
  bool needs_nodes = false;  // something that is asked for needs /dev/dri
  bool needs_uevents = false;
  Polkit polkit = Polkit::Absent;
  std::map<std::string, std::string> boot;       // files of /boot: name, content; none: /boot is the real one
  std::string cmdline;                           // of the kernel; empty: the real one's
  double speed_at_most = kNever;                 // canaries take real time
  std::map<std::string, std::string> variables;  // set for all users
  std::vector<ScenarioCard> cards;
  std::vector<Step> timeline;  // by time
  std::vector<Expectation> expectations;
  bool writes_allowed = false;
  bool ends_early = false;  // once all that is to happen has happened
};

// Every mistake of the text is in the error, one a line: "FILE:LINE:COLUMN: …".
Result<Scenario> parse_scenario(const std::string& text, const std::string& file_name);
Result<Scenario> load_scenario(const std::string& path);

// "30s", "500ms", "2min", "1h"; a plain number is seconds.
std::optional<double> parse_seconds(std::string_view text);

}  // namespace gpuhealth::sim
