// SPDX-License-Identifier: Apache-2.0
// Which kernels are known to be bad for which GPUs: etc/advisories.d/*.yaml, docs/kernel-selection.md has the form.
// An advisory informs; whether a kernel computes as it should is for the canaries to say.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "grub/identity.hpp"
#include "grub/interpreter.hpp"
#include "grub/version.hpp"

namespace gpuhealth::grub {

// A line of versions and the part of it that is bad: half-open, [first_bad, first_fixed), or closed by last_bad where
// nobody has seen a fixed one. Versions are compared within one line only, with its own ordering.
struct AdvisoryRange {
  std::string component = "kernel";   // "kernel", "module" (amdgpu by DKMS), "firmware", "rocm", "driver"
  std::string distribution;           // "upstream", "ubuntu", …
  std::vector<std::string> releases;  // of the distribution; empty: all
  std::string stream;                 // KernelIdentity::stream; empty: all
  Ordering ordering = Ordering::Upstream;
  std::string series;  // upstream: only versions that begin so ("7.0"); empty: all
  std::string first_bad;
  std::string first_fixed;
  std::string last_bad;
  bool good = false;                  // the whole line is known not to be affected
  std::vector<std::string> inferred;  // which of the bounds were concluded, not seen
  std::string note;
};

struct Advisory {
  std::string id;
  std::string title;
  std::string severity;          // "critical", "high", "medium", "low"
  std::string confidence;        // "confirmed", "several"
  std::string vendor;            // "amd", "nvidia", "intel"
  std::vector<std::string> gfx;  // empty: every GPU of the vendor
  std::string gpu_note;
  std::string symptom;
  std::string canary;  // which canary shows it; empty: none
  std::vector<std::string> signs;
  std::vector<std::string> workarounds;  // that need no reboot
  std::vector<std::string> remedies;     // that do
  std::string introduced_by;
  std::string fixed_by;
  std::vector<AdvisoryRange> affected;
  std::vector<std::string> links;
  std::string note;
  std::string file;
};

struct AdvisorySet {
  std::vector<Advisory> advisories;
  std::vector<std::string> mistakes;  // "FILE:LINE:COLUMN: …"; a file with one is left out as a whole
};

// Pure; FILE is for messages.
void read_advisories(AdvisorySet& set, std::string_view file, const std::string& text);
// All *.yaml of a folder, by name. An absent folder is an empty set.
AdvisorySet load_advisories(const std::string& folder);

// What is asked about.
struct AdvisoryQuestion {
  KernelIdentity kernel;
  std::vector<std::string> gfx;  // of the machine's GPUs; empty: not known
  std::vector<std::string> vendors = {"amd"};
  std::string module_version;  // of amdgpu by DKMS for this kernel; empty: in-tree
  bool module_known = true;
  std::string firmware_version;  // of the firmware package; empty: not known
  Ordering firmware_ordering = Ordering::Upstream;
};

struct AdvisoryMatch {
  const Advisory* advisory = nullptr;
  const AdvisoryRange* range = nullptr;
  Tri applies = Tri::Unknown;
  std::string why;  // "ubuntu linux 7.0.0-28.28 is from 7.0.0-28.28 on and before 7.0.0-30.30"
};
// Those that apply, or may.
std::vector<AdvisoryMatch> match(std::span<const Advisory> advisories, const AdvisoryQuestion& question);

// Is this version in the range? `exact` false: the version may lack its end (7.0.0-28 of 7.0.0-28.28).
Tri in_range(const AdvisoryRange& range, Ordering ordering, std::string_view version, bool exact);

}  // namespace gpuhealth::grub
