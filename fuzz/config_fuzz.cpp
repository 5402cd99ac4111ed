// SPDX-License-Identifier: Apache-2.0
// Any bytes as gpuhealthd.yaml: a configuration within its ranges, or mistakes that can be shown.
#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <string>

#include "daemon/config.hpp"
#include "fuzz/require.hpp"

namespace {

using namespace gpuhealth;
using namespace gpuhealth::daemon;

// A folder in memory that goes with the program.
class Folder {
 public:
  Folder() {
    std::string name = "/dev/shm/gpuhealth-config-XXXXXX";
    require(mkdtemp(name.data()) != nullptr, "a folder in /dev/shm");
    path_ = name;
    file_ = open((path_ + "/gpuhealthd.yaml").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    require(file_ >= 0, "a file in it");
  }
  ~Folder() {
    close(file_);
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  void write(const std::uint8_t* data, std::size_t size) const {
    require(ftruncate(file_, 0) == 0 && pwrite(file_, data, size, 0) == static_cast<ssize_t>(size), "written");
  }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
  int file_ = -1;
};

void check_error(const std::string& text) {
  require(!text.empty(), "a mistake is said");
  for (const unsigned char c : text) require(c >= ' ' || c == '\n', "it can be shown");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Folder folder;
  folder.write(data, size);
  const auto config = load_config(folder.path());
  if (!config) {
    check_error(config.error().text);
    return 0;
  }
  for (const auto& s : all_settings()) {
    const auto value = config->settings.*s.field;
    require(value >= s.low && value <= s.high, "a setting is in its range");
    require(parse_setting(s.kind, format_setting(s.kind, value)) == value, "a value reads as it is written");
  }
  for (const auto& t : health::all_thresholds()) {
    const auto value = config->thresholds.*t.field;
    require(value >= t.lowest && value <= t.highest, "a threshold is in its range");
  }
  return 0;
}
