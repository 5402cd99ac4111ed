// SPDX-License-Identifier: Apache-2.0
// GRUB with a menu that grub-mkconfig writes: Debian, Ubuntu, Arch, openSUSE.
#include <algorithm>

#include "grub/menu_script.hpp"
#include "grub/selector.hpp"

namespace gpuhealth::grub {
namespace {

// The lines between an entry's header and its closing brace, as the configuration has them, one tab less.
std::string body_lines(const std::string& config, std::uint32_t header_line) {
  std::string out;
  std::string_view rest = config;
  for (std::uint32_t line = 1; !rest.empty(); ++line) {
    const auto end = std::min(rest.find('\n'), rest.size());
    std::string_view text = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line <= header_line) continue;
    const auto begin = text.find_first_not_of(" \t");
    if (begin != std::string_view::npos && text.substr(begin) == "}") return out;
    if (begin != std::string_view::npos && text.substr(begin).starts_with("savedefault")) continue;
    if (text.starts_with("\t\t")) text.remove_prefix(1);
    out += std::string(text) + "\n";
  }
  return {};
}

Result<std::string> body_of(const Inventory& inventory, const Tree& tree, const std::string& release) {
  const auto entry = entry_for(inventory, tree, release);
  if (!entry)
    return fail(ErrorCode::NotFound, "the boot menu has no plain entry for " + release + "; run update-grub first");
  const auto config = tree.read(inventory.boot.config);
  if (!config) return tl::unexpected<Error>(config.error());
  std::string body = body_lines(*config, entry->entry->line);
  if (body.find("linux") == std::string::npos || body.find("GPUHEALTH_END") != std::string::npos)
    return fail(ErrorCode::InvalidInput,
                "the entry of " + release + " in " + inventory.boot.config + " has a form that cannot be copied");
  return body;
}

Result<Change> plan(const Inventory& inventory, const Tree& tree, const Wish& wish) {
  std::map<std::string, std::string> bodies;
  for (const std::string& release : {wish.pinned, wish.trial}) {
    if (release.empty()) continue;
    auto body = body_of(inventory, tree, release);
    if (!body) return tl::unexpected<Error>(body.error());
    bodies[release] = std::move(*body);
  }
  return plan_grub(inventory, tree, wish, bodies);
}

std::string find_tool(const Tree& tree) {
  for (const std::string_view name : {"grub-mkconfig", "grub2-mkconfig"}) {
    for (const std::string_view folder : {"/usr/sbin/", "/usr/bin/", "/sbin/", "/usr/local/sbin/"}) {
      std::string path = std::string(folder) + std::string(name);
      if (tree.is_file(path)) return path;
    }
  }
  return {};
}

bool reads_drop_ins(const Tree& tree, const std::string& tool) {
  const auto text = tree.read(tool, std::size_t{1} << 20);
  return text && text->find("default/grub.d") != std::string::npos && tree.is_folder("/etc/default/grub.d");
}

void add_protection(const Inventory& inventory, const Tree& tree, const Wish& wish, Change& change) {
  if (inventory.packages.manager != Ordering::Dpkg || !tree.is_folder("/etc/apt/apt.conf.d")) return;
  std::vector<std::string> releases;
  for (const std::string& release : {wish.pinned, wish.trial})
    if (!release.empty()) releases.push_back(release);
  change.files[std::string(kAptFile)] = apt_protection(releases);
  if (!releases.empty()) change.steps.push_back("keep them from apt's automatic removal: " + std::string(kAptFile));
}

}  // namespace

FileState apt_protection(const std::vector<std::string>& releases) {
  if (releases.empty()) return {};
  std::string text =
      "// Made by gpuhealth-act: kernels that are pinned or on trial are not removed automatically.\n"
      "APT::NeverAutoRemove {\n";
  for (const std::string& release : releases) {
    std::string pattern;
    for (const char c : release) pattern += c == '.' || c == '+' ? std::string("\\") + c : std::string(1, c);
    text += "  \"^linux-(image|image-unsigned|modules|modules-extra|headers)-" + pattern + "$\";\n";
  }
  return {true, text + "};\n", 0644};
}

Result<Change> plan_grub(const Inventory& inventory, const Tree& tree, const Wish& wish,
                         const std::map<std::string, std::string>& bodies) {
  const std::string tool = find_tool(tree);
  if (tool.empty())
    return fail(ErrorCode::Unavailable,
                "the menu is made by grub-mkconfig, which is missing (looked for grub-mkconfig and grub2-mkconfig in "
                "/usr/sbin, /usr/bin and /sbin)");
  if (!tree.is_folder("/etc/grub.d"))
    return fail(ErrorCode::Unavailable, "the menu is made from /etc/grub.d, which is missing");
  Change change;
  change.new_menu = true;
  change.tool = {tool, "-o"};
  const bool any = !wish.pinned.empty() || !wish.trial.empty();
  if (any) {
    const auto body = [&](const std::string& release) {
      const auto found = bodies.find(release);
      return found == bodies.end() ? std::string() : found->second;
    };
    const std::string script = menu_script({wish.pinned, body(wish.pinned)}, {wish.trial, body(wish.trial)});
    change.files[std::string(kMenuScript)] = {true, script, 0755};
    change.steps.push_back("make " + wish.pinned + " the first entry of the menu: " + std::string(kMenuScript));
    if (!wish.trial.empty())
      change.steps.push_back("add a trial entry for " + wish.trial + " that resets a machine that hangs");
    if (reads_drop_ins(tree, tool)) {
      change.files[std::string(kDropIn)] = {
          true, "# Made by gpuhealth-act; gpuhealthctl kernel unpin takes it away.\nGRUB_DEFAULT=gpuhealth-pinned\n",
          0644};
      change.steps.push_back("make it the default: " + std::string(kDropIn));
    }
  } else {
    change.files[std::string(kMenuScript)] = {};
    if (tree.is_folder("/etc/default/grub.d")) change.files[std::string(kDropIn)] = {};
    change.steps.emplace_back("take away our entries, drop-in and protection");
  }
  add_protection(inventory, tree, wish, change);
  change.steps.push_back("make the menu anew with " + tool + ", check it, and only then put it in place");
  if (!wish.trial.empty()) {
    change.environment.emplace_back(kTrialMark, "armed");
    change.environment.emplace_back("next_entry", std::string(kTrialId));
    change.steps.push_back("ask for the trial once: next_entry in " + inventory.boot.grubenv_path);
  }
  return change;
}

Result<void> check_grub(const Boot& boot, const Tree& tree, const Wish& wish) {
  const auto wrong = [](const std::string& what) {
    return fail(ErrorCode::InvalidInput, "the new menu is not right: " + what);
  };
  const auto entries = flatten(boot, tree);
  const auto find = [&](std::string_view id) -> const FlatEntry* {
    for (const FlatEntry& entry : entries)
      if (entry.entry->id == id) return &entry;
    return nullptr;
  };
  if (entries.empty()) return wrong("it has no entries");
  if (wish.pinned.empty() && wish.trial.empty()) {
    if (find(kPinnedId) != nullptr || find(kTrialId) != nullptr) return wrong("an entry of ours is left");
    if (boot.menu_default == kPinnedId) return wrong("our default is left");
    return {};
  }
  const FlatEntry* pinned = find(kPinnedId);
  if (pinned == nullptr || pinned->path != MenuPath{0}) return wrong("its first entry is not the pinned kernel");
  if (pinned->release != wish.pinned || !pinned->entry->certain)
    return wrong("its first entry starts '" + pinned->release + "' instead of " + wish.pinned);
  if (pinned->entry->steps.initrds.empty()) return wrong("the pinned entry loads no initramfs");
  if (!boot.lasting.known || boot.lasting.path != pinned->path)
    return wrong("the default is another: " + boot.lasting.reason);
  if (wish.trial.empty()) return {};
  const FlatEntry* trial = find(kTrialId);
  if (trial == nullptr || trial->release != wish.trial || trial->path.size() != 1)
    return wrong("the trial's entry is missing");
  return {};
}

const Selector kGrubSelector = {"grub", plan, check_grub};

const Selector* selector_for(Loader loader) {
  switch (loader) {
    case Loader::Grub:
      return &kGrubSelector;
    case Loader::GrubBls:
      return &kGrubBlsSelector;
    case Loader::SystemdBoot:
      return &kSystemdBootSelector;
    case Loader::Unknown:
      break;
  }
  return nullptr;
}

}  // namespace gpuhealth::grub
