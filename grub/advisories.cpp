// SPDX-License-Identifier: Apache-2.0
#include "grub/advisories.hpp"

#include <algorithm>
#include <filesystem>

#include "core/sorted.hpp"

namespace gpuhealth::grub {
namespace {

bool begins_series(std::string_view version, std::string_view series) {
  if (series.empty()) return true;
  if (!version.starts_with(series)) return false;
  return version.size() == series.size() || version[series.size()] == '.' || version[series.size()] == '-' ||
         version[series.size()] == '_';
}

bool contains(const std::vector<std::string>& list, std::string_view text) {
  return std::ranges::find(list, text) != list.end();
}

Tri between(const AdvisoryRange& range, Ordering ordering, std::string_view version) {
  if (!range.first_bad.empty() && compare(ordering, version, range.first_bad) < 0) return Tri::No;
  if (!range.first_fixed.empty()) return compare(ordering, version, range.first_fixed) < 0 ? Tri::Yes : Tri::No;
  if (range.last_bad.empty()) return Tri::Yes;
  // Nobody has seen a fixed one: behind the last that was seen bad nothing is known.
  return compare(ordering, version, range.last_bad) <= 0 ? Tri::Yes : Tri::Unknown;
}

std::string describe(const AdvisoryRange& range, std::string_view what, std::string_view version) {
  std::string out = std::string(what) + " " + std::string(version);
  if (!range.first_bad.empty()) out += ", bad from " + range.first_bad;
  if (!range.first_fixed.empty()) out += ", fixed in " + range.first_fixed;
  if (range.first_fixed.empty() && !range.last_bad.empty()) out += ", last seen bad in " + range.last_bad;
  if (!range.inferred.empty()) {
    out += " (concluded:";
    for (const std::string& bound : range.inferred) out += " " + bound;
    out += ")";
  }
  return out;
}

struct Found {
  Tri applies = Tri::No;
  const AdvisoryRange* range = nullptr;
  std::string why;
};

void take(Found& found, const AdvisoryRange& range, Tri applies, std::string why) {
  if (applies == Tri::No || found.applies == Tri::Yes) return;
  if (applies == Tri::Unknown && found.applies == Tri::Unknown) return;
  found = {applies, &range, std::move(why)};
}

bool of_distribution(const AdvisoryRange& range, const KernelIdentity& kernel) {
  if (range.distribution != kernel.distribution) return false;
  if (!range.stream.empty() && range.stream != kernel.stream) return false;
  return range.releases.empty() || kernel.version_id.empty() || contains(range.releases, kernel.version_id);
}

Found find_kernel_range(const Advisory& advisory, const AdvisoryQuestion& question) {
  Found found;
  const KernelIdentity& kernel = question.kernel;
  bool own = false;  // the distribution's own line decides, and upstream's is not asked
  for (const AdvisoryRange& range : advisory.affected) {
    if (range.component != "kernel" || range.distribution == "upstream" || !of_distribution(range, kernel)) continue;
    if (!range.good && !begins_series(kernel.version, range.series)) continue;
    own = true;
    if (range.good) continue;
    const Tri applies =
        kernel.version.empty() ? Tri::Unknown : in_range(range, kernel.ordering, kernel.version, kernel.exact);
    take(found, range, applies,
         describe(range, kernel.distribution + " " + kernel.stream, kernel.version.empty() ? "?" : kernel.version));
  }
  if (own || kernel.upstream.empty()) return found;
  for (const AdvisoryRange& range : advisory.affected) {
    if (range.component != "kernel" || range.distribution != "upstream" || range.good) continue;
    if (!begins_series(kernel.upstream, range.series)) continue;
    take(found, range, in_range(range, Ordering::Upstream, kernel.upstream, true),
         describe(range, "kernel.org's", kernel.upstream));
  }
  return found;
}

// A fault of the module or the firmware: which kernel it is says nothing, unless the advisory also names kernels.
Found find_component_range(const Advisory& advisory, const AdvisoryQuestion& question) {
  Found found;
  for (const AdvisoryRange& range : advisory.affected) {
    if (range.component == "module") {
      if (!question.module_version.empty())
        take(found, range, in_range(range, Ordering::Upstream, question.module_version, true),
             describe(range, "amdgpu by DKMS", question.module_version));
    } else if (range.component == "rocm" || range.component == "driver") {
      take(found, range, Tri::Unknown,
           "it depends on the version of " + std::string(range.component == "rocm" ? "ROCm" : "the driver") +
               ", which is not looked at here");
    } else if (range.component == "firmware") {
      if (!range.distribution.empty() && range.distribution != "upstream" &&
          range.distribution != question.kernel.distribution)
        continue;
      if (question.firmware_version.empty()) {
        take(found, range, Tri::Unknown, "the version of the GPU firmware's package is not known");
      } else {
        take(found, range, in_range(range, question.firmware_ordering, question.firmware_version, true),
             describe(range, "firmware", question.firmware_version));
      }
    }
  }
  return found;
}

Tri for_these_gpus(const Advisory& advisory, const AdvisoryQuestion& question) {
  if (!contains(question.vendors, advisory.vendor)) return Tri::No;
  if (advisory.gfx.empty()) return Tri::Yes;
  if (question.gfx.empty()) return Tri::Unknown;
  return std::ranges::any_of(question.gfx, [&](const std::string& gfx) { return contains(advisory.gfx, gfx); })
             ? Tri::Yes
             : Tri::No;
}

}  // namespace

Tri in_range(const AdvisoryRange& range, Ordering ordering, std::string_view version, bool exact) {
  if (exact) return between(range, ordering, version);
  // The end is missing: as low and as high as it can be have to agree. Ubuntu counts uploads on from the ABI's number:
  // 7.0.0-28.28, 5.15.0-133.144.
  const auto dash = version.find_last_not_of("0123456789");
  const std::string abi(dash == std::string_view::npos ? version : version.substr(dash + 1));
  const Tri low = between(range, ordering, std::string(version) + "." + abi);
  const Tri high = between(range, ordering, std::string(version) + ".999999");
  return low == high ? low : Tri::Unknown;
}

std::vector<AdvisoryMatch> match(std::span<const Advisory> advisories, const AdvisoryQuestion& question) {
  std::vector<AdvisoryMatch> out;
  for (const Advisory& advisory : advisories) {
    const Tri gpus = for_these_gpus(advisory, question);
    if (gpus == Tri::No) continue;
    const bool by_kernel = std::ranges::any_of(
        advisory.affected, [](const AdvisoryRange& range) { return range.component == "kernel" && !range.good; });
    const bool by_component =
        std::ranges::any_of(advisory.affected, [](const AdvisoryRange& range) { return range.component != "kernel"; });
    Found found = by_kernel ? find_kernel_range(advisory, question) : Found{};
    const Found component = by_component ? find_component_range(advisory, question) : Found{};
    if (by_kernel && by_component) {
      // A pair, such as a module that does not build for a kernel: both have to be there.
      if (component.applies == Tri::No) found.applies = Tri::No;
      if (component.applies == Tri::Unknown && found.applies == Tri::Yes) found.applies = Tri::Unknown;
      if (found.applies != Tri::No) found.why += "; " + component.why;
    } else if (by_component) {
      found = component;
    }
    if (found.applies == Tri::No) continue;
    if (gpus == Tri::Unknown) {
      found.applies = Tri::Unknown;
      found.why += "; which GPU this machine has is not known";
    }
    out.push_back({&advisory, found.range, found.applies, std::move(found.why)});
  }
  sort_stable(out, [](const AdvisoryMatch& a, const AdvisoryMatch& b) {
    return a.applies == Tri::Yes && b.applies != Tri::Yes;
  });
  return out;
}

AdvisorySet load_advisories(const std::string& folder) {
  AdvisorySet set;
  const auto tree = Tree::open(folder);
  if (!tree) return set;
  for (const std::string& file : tree->list("/")) {
    if (!file.ends_with(".yaml")) continue;
    const auto text = tree->read(file, std::size_t{1} << 20);
    if (text) {
      read_advisories(set, folder + "/" + file, *text);
    } else {
      set.mistakes.push_back(text.error().text);
    }
  }
  return set;
}

}  // namespace gpuhealth::grub
