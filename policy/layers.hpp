// SPDX-License-Identifier: Apache-2.0
// Policies from their folders, as systemd does it: a file hides those of its name in lower folders, an empty one (or a
// link to /dev/null) masks them. One mistake anywhere, and the whole set is not taken.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/clock.hpp"
#include "core/error.hpp"
#include "policy/evaluate.hpp"

namespace gpuhealth::policy {

inline constexpr std::size_t kMostPolicyBytes = 256U << 10U;  // of a file
inline constexpr std::size_t kMostPolicyFiles = 256;          // of a folder

struct Layer {
  std::string_view name;  // "vendor"
  std::string_view path;
};
// From the lowest to the highest.
std::span<const Layer> all_layers();

struct PolicyFile {
  // Hidden: a file of its name in a higher folder counts. Elsewhere: its targets are other machines.
  enum class State : std::uint8_t { InForce, Hidden, Masked, Elsewhere, Expired, Broken };
  std::string name;   // "50-lab.yaml"
  std::string path;   // with the root
  std::string layer;  // name of its layer
  State state = State::InForce;
  std::string by;      // the path of what hides it
  std::string policy;  // metadata.name
  std::vector<yaml::Mistake> mistakes;
};
std::string_view to_string(PolicyFile::State state);  // "in-force", …

struct Loaded {
  PolicySet set;                   // of the files in force; empty when one is broken
  std::vector<PolicyFile> files;   // in the order of their names, then of layers from the highest
  std::vector<std::string> notes;  // of labels and folders: what was not understood
  [[nodiscard]] bool sound() const;
  [[nodiscard]] std::string problem() const;  // every mistake, one a line: "FILE:LINE:COLUMN: …"
};
// `fleet`: the folder to take for that of the installed bundle. `config_dir`: what is in the place of /etc/gpuhealthd,
// outside of the root; empty: the root's own.
Result<Loaded> load_layers(const std::string& root, const MachineFacts& facts, WallTime now,
                           const std::string& fleet = "", const std::string& config_dir = "");

// Files and folders that a person names (a folder: its *.yaml by name).
Result<Loaded> load_named(const std::vector<std::string>& paths);

// This machine, as its files say: hostname, os-release, machine-id, kernel, /etc/gpuhealthd/labels.
MachineFacts read_facts(const std::string& root, std::vector<std::string>& notes, const std::string& config_dir = "");
// "key=value" a line, # begins a comment.
std::map<std::string, std::string> parse_labels(std::string_view text, std::string_view file,
                                                std::vector<std::string>& notes);

// The set in force for the daemon: a new one is taken when it is sound, else the last good one stays.
class PolicyStore {
 public:
  explicit PolicyStore(std::string root, std::string config_dir = "")
      : root_(std::move(root)), config_dir_(std::move(config_dir)) {}
  // True when the files are sound, and the set in force is theirs.
  bool reload(const MachineFacts& facts, WallTime now);
  [[nodiscard]] const PolicySet& set() const { return set_; }
  [[nodiscard]] const std::vector<PolicyFile>& files() const { return files_; }  // of the set in force
  [[nodiscard]] const std::string& problem() const {
    return problem_;
  }  // why the newest files are not in force; empty: they are

 private:
  std::string root_, config_dir_;
  PolicySet set_;
  std::vector<PolicyFile> files_;
  std::string problem_;
};

}  // namespace gpuhealth::policy
