// SPDX-License-Identifier: Apache-2.0
// GRUB whose menu comes from BLS files: Fedora, RHEL. Their entries have no text in grub.cfg to copy, so ours is made
// from the file's fields; saved_entry, which kernel-install rewrites at each new kernel, is not used.
#include "grub/selector.hpp"

namespace gpuhealth::grub {
namespace {

// "search … --set=boot UUID" at the top of the configuration: where /boot is.
std::string search_line(const std::string& config, const std::string& image) {
  for (const std::string_view mark : {"--set=boot ", "--set=root "}) {
    const auto at = config.find(mark);
    if (at == std::string::npos) continue;
    const auto line_begin = config.rfind('\n', at) + 1;
    const auto line_end = std::min(config.find('\n', at), config.size());
    const std::string line = config.substr(line_begin, line_end - line_begin);
    const auto id = line.rfind(' ');
    if (line.find("--fs-uuid") != std::string::npos && id != std::string::npos && line.find('$') == std::string::npos)
      return "\tsearch --no-floppy --fs-uuid --set=root " + line.substr(id + 1) + "\n";
  }
  return "\tsearch --no-floppy --file --set=root " + image + "\n";
}

Result<Change> plan(const Inventory& inventory, const Tree& tree, const Wish& wish) {
  const auto config = tree.read(inventory.boot.config);
  if (!config) return tl::unexpected<Error>(config.error());
  std::map<std::string, std::string> bodies;
  for (const std::string& release : {wish.pinned, wish.trial}) {
    if (release.empty()) continue;
    const auto entry = entry_for(inventory, tree, release);
    if (!entry) return fail(ErrorCode::NotFound, "there is no BLS entry for " + release + " in /boot/loader/entries");
    const BootSteps& steps = entry->entry->steps;
    std::string body = "\tload_video\n\tset gfxpayload=keep\n\tinsmod gzio\n\tinsmod part_gpt\n\tinsmod part_msdos\n";
    body += search_line(*config, steps.linux_image);
    body += "\tlinux " + steps.linux_image + " " + steps.arguments + "\n\tinitrd";
    for (const std::string& initrd : steps.initrds) body += " " + initrd;
    bodies[release] = body + "\n";
  }
  return plan_grub(inventory, tree, wish, bodies);
}

}  // namespace

const Selector kGrubBlsSelector = {"grub-bls", plan, check_grub};

}  // namespace gpuhealth::grub
