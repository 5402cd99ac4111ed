// SPDX-License-Identifier: Apache-2.0
// Follows the file of canary results that the daemon appends to: only what is new is read, a file that was set aside is
// noticed.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <tuple>

#include "exporter/state.hpp"

namespace gpuhealth::exporter {

class CanaryFile {
 public:
  explicit CanaryFile(std::string path) : path_(std::move(path)) {}
  // Reads what was appended since the last look; at most 64 MiB at once, the rest at the next look.
  const CanaryState& look();

 private:
  void read_on(int fd, off_t size);
  void line(std::string_view text);

  std::string path_;
  ino_t inode_ = 0;
  off_t read_ = 0;
  std::string rest_;  // a line that is not complete yet
  canary::stats::Judge judge_;
  std::map<std::tuple<std::string, std::string, std::string>, CanaryLast> last_;
  CanaryState state_;
};

}  // namespace gpuhealth::exporter
