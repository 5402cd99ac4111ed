// SPDX-License-Identifier: Apache-2.0
#include "exporter/canary_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>

#include <nlohmann/json.hpp>

#include "core/fd.hpp"

namespace gpuhealth::exporter {
namespace {

constexpr off_t kMostAtOnce = 64 << 20;
constexpr std::size_t kLongestLine = 1 << 20;

// "{"reset": true, "device": …, "canary": …}": a person's word (docs/json.md, Result lines).
bool is_reset(std::string_view line, std::string& device, std::string& canary) {
  if (line.find("\"reset\"") == std::string_view::npos) return false;
  const auto json = nlohmann::json::parse(line, nullptr, false);
  if (!json.is_object() || json.value("reset", nlohmann::json()) != true) return false;
  const auto word = [&](const char* key) {
    return json.contains(key) && json[key].is_string() ? json[key].get<std::string>() : std::string();
  };
  device = word("device");
  canary = word("canary");
  return true;
}

}  // namespace

void CanaryFile::line(std::string_view text) {
  std::string device;
  std::string canary;
  if (is_reset(text, device, canary)) {
    judge_.reset(device, canary);
    for (auto& [key, last] : last_) {
      if (last.device == device && (canary.empty() || last.canary == canary)) last.ratio.reset();
    }
    return;
  }
  auto m = canary::parse_measurement(text);
  if (!m) return;
  if (m->gate == canary::Gate::Unknown) m->gate = canary::Gate::Strong;  // as gpuhealthctl reads the file
  const auto outcome = judge_.observe(*m);
  auto& last = last_[{m->device, m->canary, m->metric}];
  last = {m->device, m->canary, m->metric, m->status, m->time, std::nullopt};
  if (outcome.y && std::isfinite(*outcome.y)) last.ratio = std::exp(*outcome.y);
}

void CanaryFile::read_on(int fd, off_t size) {
  const off_t end = std::min(size, read_ + kMostAtOnce);
  std::array<char, 65536> buffer{};
  while (read_ < end) {
    const auto got = pread(fd, buffer.data(), buffer.size(), read_);
    if (got <= 0) break;
    read_ += got;
    rest_.append(buffer.data(), static_cast<std::size_t>(got));
    std::size_t begin = 0;
    for (std::size_t at = 0; (at = rest_.find('\n', begin)) != std::string::npos; begin = at + 1)
      line(std::string_view(rest_).substr(begin, at - begin));
    rest_.erase(0, begin);
    if (rest_.size() > kLongestLine) rest_.clear();  // no result line is so long
  }
}

const CanaryState& CanaryFile::look() {
  const Fd fd(open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat st{};
  state_.readable = fd && fstat(fd.get(), &st) == 0 && S_ISREG(st.st_mode);
  if (!state_.readable) return state_;
  if (st.st_ino != inode_ || st.st_size < read_) {
    // Set aside for a new one: what was learnt stays learnt.
    inode_ = st.st_ino;
    read_ = 0;
    rest_.clear();
  }
  if (st.st_size == read_) return state_;
  read_on(fd.get(), st.st_size);
  state_.last.clear();
  for (const auto& [key, last] : last_) state_.last.push_back(last);
  state_.open = judge_.open();
  return state_;
}

}  // namespace gpuhealth::exporter
