// SPDX-License-Identifier: Apache-2.0
#include "grub/known_faults.hpp"

#include <filesystem>

namespace gpuhealth::grub {

namespace fs = std::filesystem;

std::string find_advisories(const std::string& root) {
  std::vector<fs::path> places = {fs::path(root) / "etc/gpuhealthd/advisories.d",
                                  fs::path(root) / "usr/share/gpuhealthd/advisories.d"};
  std::error_code ignored;
  const fs::path self = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  places.push_back(self.parent_path() / "share/gpuhealthd/advisories.d");
  places.push_back(self.parent_path().parent_path().parent_path() / "etc/advisories.d");
  for (const fs::path& place : places)
    if (fs::is_directory(place, ignored)) return place.string();
  return {};
}

AdvisoryQuestion question_about(const Inventory& inventory, const Kernel& kernel, std::vector<std::string> gfx) {
  AdvisoryQuestion question;
  question.kernel = identify(kernel, inventory.distribution, inventory.version_id);
  question.gfx = std::move(gfx);
  if (kernel.amdgpu == AmdgpuModule::Dkms || kernel.dkms_lacking) question.module_version = kernel.dkms_version;
  for (const Package& package : inventory.packages.all) {
    if (package.name == "amdgpu-dkms" && question.module_version.empty() && kernel.dkms_lacking) {
      const auto colon = package.version.find(':');
      question.module_version = package.version.substr(colon == std::string::npos ? 0 : colon + 1);
    }
    if (package.name.find("firmware") != std::string::npos && question.firmware_version.empty()) {
      question.firmware_version = package.version;
      question.firmware_ordering = inventory.packages.manager;
    }
  }
  return question;
}

std::string release_of_choice(const Inventory& inventory, const Tree& tree, const Choice& choice) {
  if (!choice.known) return {};
  for (const FlatEntry& entry : flatten(inventory.boot, tree))
    if (entry.path == choice.path) return entry.release;
  return {};
}

}  // namespace gpuhealth::grub
