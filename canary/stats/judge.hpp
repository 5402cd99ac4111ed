// SPDX-License-Identifier: Apache-2.0
// From measurements to findings: baselines per (device, epoch, canary), the comparisons of docs/detection.md, and which
// of them may page. Pure: time comes with each measurement. The daemon, `replay` and the simulation use this code.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "canary/measurement.hpp"
#include "canary/stats/detectors.hpp"

namespace gpuhealth::canary::stats {

enum class FindingKind : std::uint8_t {
  Stall,       // a host copy takes whole seconds where its control takes milliseconds
  Collapse,    // 1.5x and worse, for minutes
  Regression,  // slower since the epoch changed, against the last known good one
  Drift,       // slower than its own baseline, slowly
  Serialized,  // queues run one after the other
  Wrong,       // output is not what it must be
  Failing,     // it cannot be run: fails, hangs, takes the runtime down
  Floor,       // slower than half of what the hardware states, and never seen better
  FellBack,    // runs on the CPU where a GPU is expected
};
std::string_view to_string(FindingKind kind);  // "stall", "collapse", …

// Suspect: shown, journal, metric. Confirmed: may page. Recovered: it is over.
enum class Level : std::uint8_t { Suspect, Confirmed, Recovered };
std::string_view to_string(Level level);

struct Finding {
  FindingKind kind{};
  Level level{};
  std::string device, canary, metric;
  double time = 0;              // of the measurement that decided
  double since = 0;             // of the first that showed it
  std::optional<double> ratio;  // how many times slower
  std::string epoch;
  std::string good_epoch;                                    // compared with; empty where no epoch is compared
  std::vector<std::pair<std::string, std::string>> changed;  // "kernel" -> "6.12.1 -> 6.12.2", between the two
  std::string detail;                                        // one sentence
};

// The end of an open finding.
Finding recovered(Finding open, double time);

// What one measurement meant.
struct Outcome {
  std::vector<Finding> findings;       // changes only
  std::optional<double> y;             // ln(time / reference), where it was compared
  std::optional<double> next_after_s;  // this canary is wanted again so soon
  bool judged = false;
};

struct BaselineView {
  std::string device, canary, metric, epoch;
  std::size_t runs = 0;         // accepted so far
  std::optional<double> value;  // reference, in the metric's unit
  double sigma = 0;
  std::string state;  // "learning", "good", "regressed"
  bool last_known_good = false;
};

// The machine's reference over all epochs of one metric of one device.
class KeyJudge {
 public:
  KeyJudge(Better better, double sigma_floor);
  Outcome observe(const Measurement& m);
  void baselines(std::vector<BaselineView>& out, const Measurement& names) const;
  // Open ones.
  [[nodiscard]] const std::map<FindingKind, Finding>& open() const { return open_; }

 private:
  struct Epoch {
    std::string name;
    std::map<std::string, std::string> software;
    std::vector<double> runs;  // ln(time), accepted, until the baseline is complete
    std::optional<Baseline> baseline;
    enum class State : std::uint8_t { Learning, Good, Regressed } state = State::Learning;
  };
  void enter(const Measurement& m);
  void learn(double log_time, bool outlier);
  void settle();
  void settle_early();
  [[nodiscard]] const Baseline* reference() const;
  [[nodiscard]] const Epoch* compared_with() const;
  void compare(Outcome& out, const Measurement& m, double y, bool censored);
  void compare_epochs(Outcome& out, const Measurement& m, double y);
  void improve(double log_time, double y);
  void open(Outcome& out, const Measurement& m, FindingKind kind, Level level, double since, double y,
            std::string_view why);
  void close(Outcome& out, const Measurement& m, FindingKind kind);

  Better better_;
  double floor_;
  std::vector<Epoch> epochs_;
  std::size_t now_ = 0;              // index into epochs_
  std::optional<std::size_t> good_;  // last known good
  std::optional<Sprt> sprt_;
  std::optional<Cusum> cusum_;
  Collapse collapse_;
  std::vector<double> regression_recent_;
  std::vector<double> better_runs_;  // ln(time) of the last runs, while all are faster than the baseline
  std::map<FindingKind, Finding> open_;
};

class Judge {
 public:
  Judge();
  ~Judge();
  Judge(Judge&&) noexcept;
  Judge& operator=(Judge&&) noexcept;

  Outcome observe(const Measurement& m);
  // Forgets what is known of a device (and, when given, of one canary).
  void reset(std::string_view device, std::string_view canary = {});
  [[nodiscard]] std::vector<BaselineView> baselines() const;
  [[nodiscard]] std::vector<Finding> open() const;

 private:
  struct Device;
  std::map<std::string, std::unique_ptr<Device>, std::less<>> devices_;
};

// Names of the fields in which two epochs differ, with both values.
std::vector<std::pair<std::string, std::string>> differences(const std::map<std::string, std::string>& before,
                                                             const std::map<std::string, std::string>& after);

}  // namespace gpuhealth::canary::stats
