// SPDX-License-Identifier: Apache-2.0
#include "grub/boot.hpp"

#include <algorithm>
#include <array>
#include <memory>

#include "grub/image.hpp"
#include "grub/loaders.hpp"
#include "grub/systemd_boot.hpp"

namespace gpuhealth::grub {
namespace {

// A boot partition seen by itself (its root is what /boot is elsewhere) counts too.
constexpr std::array<std::string_view, 4> kBootFolders = {"/boot", "", "/boot/efi", "/efi"};

void read_all_settings(const Tree& tree, Settings& settings) {
  if (const auto text = tree.read("/etc/default/grub")) read_settings(settings, "/etc/default/grub", *text);
  for (const std::string& file : tree.list("/etc/default/grub.d")) {
    if (!file.ends_with(".cfg")) continue;
    const std::string path = "/etc/default/grub.d/" + file;
    if (const auto text = tree.read(path)) read_settings(settings, path, *text);
  }
}

std::vector<BlsEntry> read_bls(const Tree& tree, const std::vector<std::string>& folders) {
  std::vector<BlsEntry> out;
  for (const std::string& folder : folders) {
    for (const std::string& file : tree.list(folder)) {
      if (!file.ends_with(".conf")) continue;
      const auto text = tree.read(folder + "/" + file, std::size_t{256} << 10);
      if (text) out.push_back(parse_bls(file, *text));
    }
    if (!out.empty()) break;  // the others are the same folder by another way
  }
  return out;
}

std::string find_grub_config(const Tree& tree) {
  static constexpr std::array<std::string_view, 5> kPlaces = {"/boot/grub/grub.cfg", "/boot/grub2/grub.cfg",
                                                              "/grub/grub.cfg", "/grub2/grub.cfg", "/grub.cfg"};
  for (const std::string_view place : kPlaces)
    if (tree.is_file(place)) return std::string(place);
  for (const std::string_view esp : {"/boot/efi/EFI", "/efi/EFI", "/boot/EFI", "/EFI"}) {
    for (const std::string& vendor : tree.list(esp)) {
      std::string path = std::string(esp) + "/" + vendor + "/grub.cfg";
      if (tree.is_file(path)) return path;
    }
  }
  return {};
}

std::string folder_of(const std::string& path) {
  return path.substr(0, path.rfind('/'));
}

std::string grub_platform(const Tree& tree, const std::string& config) {
  if (tree.running()) return tree.is_folder("/sys/firmware/efi") ? "efi" : "pc";
  if (config.find("/EFI/") != std::string::npos) return "efi";
  const std::string folder = folder_of(config);
  const bool bios = tree.is_folder(folder + "/i386-pc");
  bool efi = false;
  for (const std::string& name : tree.list(folder)) efi = efi || name.ends_with("-efi");
  if (bios == efi) return {};
  return efi ? "efi" : "pc";
}

struct Parsed {
  const Tree* tree;
  std::map<std::string, std::shared_ptr<const Script>> files;

  std::shared_ptr<const Script> load(const std::string& path) {
    if (const auto known = files.find(path); known != files.end()) return known->second;
    auto text = tree->read(path);
    std::shared_ptr<const Script> script;
    if (text) script = std::make_shared<const Script>(parse_script(std::move(*text)));
    files[path] = script;
    return script;
  }
};

// The tree's path of a path as GRUB has it: GRUB's root may be /boot.
std::optional<std::string> in_tree(const Tree& tree, std::string_view path) {
  for (const std::string_view folder : {"", "/boot", "/boot/efi"}) {
    std::string candidate = std::string(folder) + std::string(path);
    if (tree.is_file(candidate)) return candidate;
  }
  return std::nullopt;
}

std::vector<Matching> possible_matchings(const Tree& tree, bool blscfg) {
  if (blscfg) return {Matching::IdFirst};
  const std::string ids = " " + os_release(tree, "ID") + " " + os_release(tree, "ID_LIKE") + " ";
  for (const std::string_view id : {" fedora ", " rhel ", " centos "})
    if (ids.find(id) != std::string::npos) return {Matching::IdFirst};
  for (const std::string_view id : {" debian ", " ubuntu ", " arch "})
    if (ids.find(id) != std::string::npos) return {Matching::NumberFirst};
  return {Matching::NumberFirst, Matching::IdFirst};
}

Choice choose(const Interpreter& run, const std::vector<Matching>& matchings) {
  Choice first = run.choose(matchings.front());
  for (const Matching matching : matchings) {
    const Choice other = run.choose(matching);
    if (other.known != first.known || other.path != first.path)
      return {false, {}, first.reason + "; whether GRUB takes that as a number or a name depends on whose build it is"};
  }
  return first;
}

EnvValues without_one_shot(EnvValues values) {
  values.erase("next_entry");
  // The older way: saved_entry is the trial, prev_saved_entry what comes back after it.
  const auto previous = values.find("prev_saved_entry");
  if (previous != values.end() && !previous->second.empty()) values["saved_entry"] = previous->second;
  values.erase("prev_saved_entry");
  return values;
}

void read_grubenv(const Tree& tree, Boot& boot, Machine& machine) {
  const std::string path = machine.folder + "/grubenv";
  boot.grubenv_path = tree.resolve(path).value_or(path);
  const auto bytes = tree.read(path, std::size_t{64} << 10);
  if (!bytes) {
    if (bytes.error().code != ErrorCode::NotFound) {
      machine.grubenv_unknown = true;
      boot.warnings.push_back(bytes.error().text);
    }
    return;
  }
  boot.grubenv = parse_grubenv(*bytes);
  for (const std::string& damage : boot.grubenv->damage) boot.warnings.push_back(path + ": " + damage);
  if (boot.grubenv->usable) machine.grubenv = EnvValues(boot.grubenv->values.begin(), boot.grubenv->values.end());
  machine.grubenv_unknown = boot.grubenv->external;
}

void look_at_grub(const Tree& tree, Boot& boot) {
  boot.loader = Loader::Grub;
  auto files = std::make_shared<Parsed>(Parsed{&tree, {}});
  Machine machine;
  machine.folder = folder_of(boot.config);
  machine.platform = grub_platform(tree, boot.config);
  machine.exists = [&tree](std::string_view path, bool not_empty) {
    const auto found = in_tree(tree, path);
    if (!found) return false;
    const auto info = tree.stat(*found);
    return !not_empty || (info && info->st_size > 0);
  };
  machine.load = [&tree, files](std::string_view path) -> std::shared_ptr<const Script> {
    const auto found = in_tree(tree, path);
    return found ? files->load(*found) : nullptr;
  };
  machine.bls = read_bls(tree, {"/boot/loader/entries", "/loader/entries", "/boot/efi/loader/entries"});
  sort_for_grub(machine.bls);
  read_grubenv(tree, boot, machine);
  const auto script = files->load(boot.config);
  if (!script) {
    boot.next.reason = boot.lasting.reason = boot.config + " cannot be read";
    return;
  }

  Interpreter next(machine);
  next.run(script);
  if (next.uses_blscfg()) boot.loader = Loader::GrubBls;
  const auto matchings = possible_matchings(tree, next.uses_blscfg());
  boot.menu = next.menu();
  boot.next = choose(next, matchings);
  for (const std::string& note : next.notes()) boot.warnings.push_back(boot.config + ": " + note);

  const auto run_again = [&](const EnvValues& values) {
    Machine other = machine;
    other.grubenv = values;
    Interpreter again(other);
    again.run(script, false);
    boot.menu_default = again.variable("default").text;
    return choose(again, matchings);
  };
  boot.lasting = boot.next;
  boot.menu_default = next.variable("default").text;
  if (!machine.grubenv) return;
  const EnvValues lasting = without_one_shot(*machine.grubenv);
  if (lasting != *machine.grubenv) boot.lasting = run_again(lasting);
  const auto after = next.grubenv_after(boot.next);
  if (after && *after != *machine.grubenv && *after != lasting) {
    const std::string kept = boot.menu_default;
    Choice later = run_again(*after);
    boot.menu_default = kept;
    if (later.known && boot.lasting.known && later.path != boot.lasting.path) boot.afterwards = std::move(later);
  }
}

void look_at_systemd_boot(const Tree& tree, Boot& boot) {
  boot.loader = Loader::SystemdBoot;
  std::vector<std::string> folders;
  std::vector<std::string> places;
  for (const std::string_view folder : kBootFolders) {
    folders.push_back(std::string(folder) + "/loader/entries");
    places.emplace_back(folder);
  }
  LoaderConf conf;
  for (const std::string_view folder : kBootFolders) {
    const std::string path = std::string(folder) + "/loader/loader.conf";
    const auto text = tree.read(path, std::size_t{256} << 10);
    if (!text) continue;
    conf = parse_loader_conf(*text);
    boot.config = path;
    break;
  }
  boot.menu = systemd_boot_menu(read_bls(tree, folders), tree, places);
  auto choice = choose_systemd_boot(boot.menu, conf, tree);
  boot.next = std::move(choice.next);
  boot.lasting = std::move(choice.lasting);
}

void warn_of_settings(Boot& boot) {
  for (const std::string& warning : boot.settings.warnings) boot.warnings.push_back(warning);
  if (boot.settings.value("GRUB_SAVEDEFAULT") == "true")
    boot.warnings.emplace_back("GRUB_SAVEDEFAULT=true: each entry that is started from the menu becomes the default");
  if (!boot.grubenv) return;
  const auto previous = boot.grubenv->values.find("prev_saved_entry");
  if (previous != boot.grubenv->values.end() && !previous->second.empty())
    boot.warnings.push_back("grubenv has prev_saved_entry: at its next start GRUB makes '" + previous->second +
                            "' the default again");
}

}  // namespace

std::string_view to_string(Loader loader) {
  static constexpr std::array<std::string_view, 4> kNames = {"unknown", "grub", "grub-bls", "systemd-boot"};
  return kNames.at(static_cast<std::size_t>(loader));
}

std::string os_release(const Tree& tree, std::string_view key) {
  for (const std::string_view path : {"/etc/os-release", "/usr/lib/os-release"}) {
    const auto text = tree.read(path, std::size_t{64} << 10);
    if (!text) continue;
    Settings values;
    read_settings(values, path, *text);
    return values.value(key);
  }
  return {};
}

Result<Boot> look_at_boot(const Tree& tree) {
  Boot boot;
  read_all_settings(tree, boot.settings);
  if (const auto cmdline = tree.read("/etc/kernel/cmdline", std::size_t{64} << 10))
    boot.kernel_cmdline = cmdline->substr(0, cmdline->find('\n'));
  boot.config = find_grub_config(tree);
  const LoaderFound found = find_loader(tree, !boot.config.empty());
  boot.unsupported = found.unsupported;
  if (found.loader == Loader::Grub) {
    look_at_grub(tree, boot);
    warn_of_settings(boot);
  } else if (found.loader == Loader::SystemdBoot) {
    look_at_systemd_boot(tree, boot);
  } else {
    boot.config.clear();
    boot.next.reason = boot.lasting.reason = found.reason;
  }
  boot.refusal = found.loader == Loader::Unknown ? found.reason : refusal_of(tree);
  if (found.ambiguous) {
    boot.next = boot.lasting = Choice{false, {}, found.reason};
    boot.afterwards.reset();
    boot.refusal = found.reason;
  }
  return boot;
}

std::vector<FlatEntry> flatten(const Boot& boot, const Tree& tree) {
  std::vector<FlatEntry> out;
  std::map<std::string, std::string> releases;  // of images already read
  const auto from_image = [&](const std::string& path) -> std::string {
    const std::string there = locate_image(tree, path);
    if (there.empty()) return {};
    const auto known = releases.find(there);
    if (known != releases.end()) return known->second;
    const auto image = read_image(tree, there);
    return releases[there] = image ? image->release : std::string();
  };
  const auto walk = [&](const auto& self, const Menu& menu, MenuPath& path) -> void {
    for (std::size_t i = 0; i < menu.size(); ++i) {
      path.push_back(i);
      if (menu[i].submenu) {
        self(self, menu[i].children, path);
      } else {
        FlatEntry flat{&menu[i], path, path_text(boot.menu, path), kind_of(menu[i]), release_of(menu[i])};
        const bool boots_linux = flat.kind == EntryKind::Linux || flat.kind == EntryKind::Recovery;
        if (flat.release.empty() && boots_linux && !menu[i].steps.several)
          flat.release = from_image(menu[i].steps.linux_image);
        if (flat.release.empty() && flat.kind == EntryKind::Chainload)
          flat.release = from_image(menu[i].steps.chainloader);
        out.push_back(std::move(flat));
      }
      path.pop_back();
    }
  };
  MenuPath path;
  walk(walk, boot.menu, path);
  return out;
}

}  // namespace gpuhealth::grub
