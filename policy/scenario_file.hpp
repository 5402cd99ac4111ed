// SPDX-License-Identifier: Apache-2.0
// A policy test as it stands in its file. Private to policy tests.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "policy/reader.hpp"
#include "policy/scenario.hpp"

namespace gpuhealth::policy {

struct TestEntry {
  Duration at{};
  std::vector<std::size_t> gpus;
  // What it changes, in the order of its file; `now` is its time.
  std::vector<std::function<void(Snapshot&, std::size_t gpu, WallTime now)>> gpu_changes;
  std::vector<std::function<void(Snapshot&, WallTime now)>> machine_changes;
};

struct TestFile {
  std::string name;
  std::vector<std::string> policies;
  std::optional<Mode> mode;
  WallTime start{std::chrono::sys_days(std::chrono::year(2026) / 1 / 5)};  // a Monday
  std::optional<Duration> step, until;
  Snapshot snapshot;
  std::vector<TestEntry> timeline;
  std::vector<Expectation> expect;
};
// Mistakes are collected; then the test is of no use.
TestFile read_test(const yaml::Node& root, Mistakes& mistakes);

struct TestKeyInfo {
  std::string_view section, key;
  bool required;
  std::string_view meaning;
};
std::span<const TestKeyInfo> all_test_keys();

}  // namespace gpuhealth::policy
