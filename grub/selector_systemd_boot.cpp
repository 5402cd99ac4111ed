// SPDX-License-Identifier: Apache-2.0
// systemd-boot: the default is a line of loader.conf, a one-shot an EFI variable that bootctl sets.
#include "grub/selector.hpp"
#include "grub/systemd_boot.hpp"

namespace gpuhealth::grub {
namespace {

constexpr std::string_view kMark = "# gpuhealth: the line that was here: ";

// With `default ID` in place of the line that was there, which is kept in a comment; ID empty: that line comes back.
std::string with_default(std::string_view conf, const std::string& id) {
  std::string out;
  std::string before;
  bool marked = false;
  while (!conf.empty()) {
    const auto end = std::min(conf.find('\n'), conf.size());
    const std::string_view line = conf.substr(0, end);
    conf.remove_prefix(std::min(end + 1, conf.size()));
    const auto begin = line.find_first_not_of(" \t");
    const bool is_default = begin != std::string_view::npos && line.substr(begin).starts_with("default") &&
                            line.size() > begin + 7 && (line[begin + 7] == ' ' || line[begin + 7] == '\t');
    if (line.starts_with(kMark)) {
      marked = true;
      before = line.substr(kMark.size());
    } else if (is_default) {
      if (!marked) before = line;
    } else {
      out += std::string(line) + "\n";
    }
  }
  if (id.empty()) {
    if (!before.empty()) out += before + "\n";
    return out;
  }
  return out + std::string(kMark) + before + "\ndefault " + id + "\n";
}

Result<Change> plan(const Inventory& inventory, const Tree& tree, const Wish& wish) {
  if (inventory.boot.config.empty())
    return fail(ErrorCode::NotFound, "systemd-boot's loader.conf is missing: is the EFI partition mounted?");
  const auto variable = loader_variable(tree, "LoaderEntryDefault");
  if (variable && !variable->empty() && !wish.pinned.empty())
    return fail(ErrorCode::InvalidInput, "the EFI variable LoaderEntryDefault names '" + *variable +
                                             "' and would win; take it away with bootctl set-default ''");
  const auto conf = tree.read(inventory.boot.config);
  if (!conf) return tl::unexpected<Error>(conf.error());
  Change change;
  std::string id;
  if (!wish.pinned.empty()) {
    const auto entry = entry_for(inventory, tree, wish.pinned);
    if (!entry) return fail(ErrorCode::NotFound, "there is no entry for " + wish.pinned);
    id = entry->entry->id;
  }
  change.files[inventory.boot.config] = {true, with_default(*conf, id), 0644};
  const auto info = tree.stat(inventory.boot.config);
  if (info) change.files[inventory.boot.config].mode = info->st_mode & 07777U;
  change.steps.push_back(id.empty() ? "give loader.conf its own default line back"
                                    : "set the default in " + inventory.boot.config + " to " + id);
  if (!wish.trial.empty()) {
    if (!tree.running() || !has_efi_variables(tree))
      return fail(ErrorCode::Unavailable, "a trial needs the EFI variables of the running machine, which are not here");
    const auto entry = entry_for(inventory, tree, wish.trial);
    if (!entry) return fail(ErrorCode::NotFound, "there is no entry for " + wish.trial);
    change.one_shot = {"bootctl", "set-oneshot", entry->entry->id};
    change.steps.push_back("ask for " + entry->entry->id + " once, with bootctl set-oneshot");
  }
  return change;
}

Result<void> check(const Boot& boot, const Tree& tree, const Wish& wish) {
  if (wish.pinned.empty()) return {};
  for (const FlatEntry& entry : flatten(boot, tree)) {
    if (!boot.lasting.known || entry.path != boot.lasting.path) continue;
    if (entry.release == wish.pinned) return {};
  }
  return fail(ErrorCode::InvalidInput, "loader.conf does not lead to " + wish.pinned + ": " + boot.lasting.reason);
}

}  // namespace

const Selector kSystemdBootSelector = {"systemd-boot", plan, check};

}  // namespace gpuhealth::grub
