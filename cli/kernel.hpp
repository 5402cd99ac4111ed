// SPDX-License-Identifier: Apache-2.0
// What gpuhealthctl kernel knows of a tree, and how it is shown.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cli/json.hpp"
#include "cli/page.hpp"
#include "grub/advisories.hpp"
#include "grub/kernels.hpp"
#include "grub/operations.hpp"
#include "grub/qualification.hpp"

namespace gpuhealth::cli {

struct KernelView {
  std::string root;
  grub::Inventory inventory;
  std::vector<grub::FlatEntry> entries;  // point into `inventory`
  grub::Choices choices;
  bool pin_over = false;  // its last day has passed
  grub::Qualifications qualifications;
  grub::AdvisorySet advisories;
  std::vector<std::string> gfx;                                     // of the tree's GPUs
  std::map<std::string, std::vector<grub::AdvisoryMatch>> matches;  // by release

  KernelView() = default;
  KernelView(const KernelView&) = delete;
  KernelView& operator=(const KernelView&) = delete;
};
Result<void> look_at_kernels(KernelView& view, const std::string& root, const std::string& advisories);

// "6.1.0-50-amd64 boots next: the configuration names '0'", always one line.
std::string next_boot_line(const KernelView& view);
std::string release_of_choice(const KernelView& view, const grub::Choice& choice);  // empty: not known

struct SafeToUpdate {
  std::string answer;     // "yes", "no", "unknown"
  std::string candidate;  // release; empty: there is none
  std::string reason;
  std::vector<grub::AdvisoryMatch> matches;
};
// `pending`: the package that the manager would install, where the kernel is not installed yet.
SafeToUpdate safe_to_update(const KernelView& view, const std::string& release, const grub::Package* pending = nullptr);

Json json_kernel_list(const KernelView& view);
Json json_kernel_status(const KernelView& view);
Json json_kernel_plan(const KernelView& view, const grub::Plan& plan, std::string_view operation);
Json json_kernel_advisories(const KernelView& view);
Json json_safe_to_update(const SafeToUpdate& answer);
Json json_kernel_log(std::span<const LedgerEntry> entries);

Page render_kernel_list(const KernelView& view, const Terminal& terminal);
Page render_kernel_status(const KernelView& view, const Terminal& terminal);
Page render_kernel_plan(const grub::Plan& plan, const Terminal& terminal);
Page render_kernel_advisories(const KernelView& view, const Terminal& terminal);
Page render_safe_to_update(const SafeToUpdate& answer, const Terminal& terminal);
Page render_kernel_log(std::span<const LedgerEntry> entries, const Terminal& terminal);

}  // namespace gpuhealth::cli
