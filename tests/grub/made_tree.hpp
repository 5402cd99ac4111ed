// SPDX-License-Identifier: Apache-2.0
// A machine's files in a temporary folder, and how its menu reads.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "grub/boot.hpp"
#include "tests/support/temp_dir.hpp"

namespace gpuhealth::grub::test {

class MadeTree {
 public:
  MadeTree& file(const std::string& path, const std::string& text);
  MadeTree& copy(const std::string& path, const std::filesystem::path& from);  // a file or a folder
  MadeTree& link(const std::string& path, const std::string& target);
  [[nodiscard]] std::string read(const std::string& path) const;
  [[nodiscard]] bool exists(const std::string& path) const;
  [[nodiscard]] std::string root() const { return dir_->string(); }
  [[nodiscard]] Tree tree() const;
  [[nodiscard]] Boot boot() const;

 private:
  std::shared_ptr<gpuhealth::test::TempDir> dir_ = std::make_shared<gpuhealth::test::TempDir>();
};

// One line an entry: "linux|path|release".
std::vector<std::string> lines(const MadeTree& made);
// "path", or "unknown".
std::string next_of(const Boot& boot);
std::string lasting_of(const Boot& boot);

// A block of 1024 bytes as grub-editenv makes it, with these lines ("saved_entry=x\n").
std::string grubenv(const std::string& lines);
// A bzImage that says only its release and build; a few hundred bytes.
std::string kernel_image(const std::string& release, const std::string& build = "#1 SMP PREEMPT_DYNAMIC");

// What Debian's grub-mkconfig makes of these kernels, newest first, in the form that matters here. `set_default` is the
// value that GRUB_DEFAULT became: "0", "${saved_entry}", an id.
struct DebianMenu {
  std::string set_default = "0";
  bool submenu = true;
  bool savedefault = false;
  std::string on_top = {};  // of 06_…, ahead of 10_linux
};
std::string debian_config(const std::vector<std::string>& kernels, const DebianMenu& menu = {});
std::string debian_id(const std::string& kernel);    // the id of its entry in the submenu
std::string debian_path(const std::string& kernel);  // with the submenu's

}  // namespace gpuhealth::grub::test
