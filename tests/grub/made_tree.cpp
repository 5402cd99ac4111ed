// SPDX-License-Identifier: Apache-2.0
#include "made_tree.hpp"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace gpuhealth::grub::test {

namespace fs = std::filesystem;

MadeTree& MadeTree::file(const std::string& path, const std::string& text) {
  const fs::path to = dir_->path() / path.substr(path.find_first_not_of('/'));
  fs::create_directories(to.parent_path());
  std::ofstream(to, std::ios::binary) << text;
  return *this;
}

MadeTree& MadeTree::copy(const std::string& path, const fs::path& from) {
  const fs::path to = dir_->path() / path.substr(std::min(path.find_first_not_of('/'), path.size()));
  fs::create_directories(to.parent_path());
  fs::copy(from, to, fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  return *this;
}

MadeTree& MadeTree::link(const std::string& path, const std::string& target) {
  const fs::path to = dir_->path() / path.substr(path.find_first_not_of('/'));
  fs::create_directories(to.parent_path());
  fs::create_symlink(target, to);
  return *this;
}

std::string MadeTree::read(const std::string& path) const {
  std::ifstream in(dir_->path() / path.substr(path.find_first_not_of('/')), std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

bool MadeTree::exists(const std::string& path) const {
  return fs::exists(fs::symlink_status(dir_->path() / path.substr(path.find_first_not_of('/'))));
}

Tree MadeTree::tree() const {
  auto tree = Tree::open(root());
  if (!tree) throw std::runtime_error(tree.error().text);
  return std::move(*tree);
}

Boot MadeTree::boot() const {
  auto boot = look_at_boot(tree());
  if (!boot) throw std::runtime_error(boot.error().text);
  return std::move(*boot);
}

std::vector<std::string> lines(const MadeTree& made) {
  std::vector<std::string> out;
  const Boot boot = made.boot();
  for (const FlatEntry& entry : flatten(boot, made.tree()))
    out.push_back(std::string(to_string(entry.kind)) + "|" + entry.path_text + "|" + entry.release);
  return out;
}

namespace {
std::string text_of(const Boot& boot, const Choice& choice) {
  return choice.known ? path_text(boot.menu, choice.path) : "unknown";
}
}  // namespace

std::string next_of(const Boot& boot) {
  return text_of(boot, boot.next);
}
std::string lasting_of(const Boot& boot) {
  return text_of(boot, boot.lasting);
}

std::string grubenv(const std::string& lines) {
  std::string out = "# GRUB Environment Block\n" + lines;
  out.resize(1024, '#');
  return out;
}

namespace {

constexpr const char* kRootId = "11111111-2222-3333-4444-555555555555";

std::string debian_entry(const std::string& title, const std::string& id, const std::string& kernel,
                         const std::string& arguments, bool savedefault) {
  return "menuentry '" + title + "' --class debian --class gnu-linux --class gnu --class os $menuentry_id_option '" +
         id + "' {\n" + (savedefault ? "\tsavedefault\n" : "") +
         "\tload_video\n\tinsmod gzio\n\tif [ x$grub_platform = xxen ]; then insmod xzio; insmod lzopio; fi\n"
         "\tinsmod part_gpt\n\tinsmod ext2\n\tset root='hd0,gpt2'\n"
         "\tif [ x$feature_platform_search_hint = xy ]; then\n"
         "\t  search --no-floppy --fs-uuid --set=root --hint-bios=hd0,gpt2 " +
         kRootId + "\n\telse\n\t  search --no-floppy --fs-uuid --set=root " + kRootId +
         "\n\tfi\n\techo\t'Loading Linux " + kernel + " ...'\n\tlinux\t/boot/vmlinuz-" + kernel +
         " root=UUID=" + kRootId + " ro " + arguments +
         "\n\techo\t'Loading initial ramdisk ...'\n\tinitrd\t/boot/initrd.img-" + kernel + "\n}\n";
}

}  // namespace

std::string debian_id(const std::string& kernel) {
  return "gnulinux-" + kernel + "-advanced-" + kRootId;
}
std::string debian_path(const std::string& kernel) {
  return std::string("gnulinux-advanced-") + kRootId + ">" + debian_id(kernel);
}

std::string debian_config(const std::vector<std::string>& kernels, const DebianMenu& menu) {
  std::string out =
      "if [ -s $prefix/grubenv ]; then\n  set have_grubenv=true\n  load_env\nfi\n"
      "if [ \"${next_entry}\" ] ; then\n   set default=\"${next_entry}\"\n   set next_entry=\n   save_env next_entry\n"
      "   set boot_once=true\nelse\n   set default=\"" +
      menu.set_default +
      "\"\nfi\n\nif [ x\"${feature_menuentry_id}\" = xy ]; then\n  menuentry_id_option=\"--id\"\nelse\n"
      "  menuentry_id_option=\"\"\nfi\n\nexport menuentry_id_option\n\n"
      "if [ \"${prev_saved_entry}\" ]; then\n  set saved_entry=\"${prev_saved_entry}\"\n  save_env saved_entry\n"
      "  set prev_saved_entry=\n  save_env prev_saved_entry\n  set boot_once=true\nfi\n\n"
      "function savedefault {\n  if [ -z \"${boot_once}\" ]; then\n    saved_entry=\"${chosen}\"\n    save_env "
      "saved_entry\n"
      "  fi\n}\nfunction load_video {\n  insmod all_video\n}\nset timeout=5\n" +
      menu.on_top;
  const std::string title = "Debian GNU/Linux";
  if (menu.submenu) {
    out += debian_entry(title, std::string("gnulinux-simple-") + kRootId, kernels.front(), "quiet", menu.savedefault);
    out += "submenu 'Advanced options for Debian GNU/Linux' $menuentry_id_option 'gnulinux-advanced-" +
           std::string(kRootId) + "' {\n";
  }
  for (const std::string& kernel : kernels) {
    out += debian_entry(title + ", with Linux " + kernel, debian_id(kernel), kernel, "quiet", menu.savedefault);
    out += debian_entry(title + ", with Linux " + kernel + " (recovery mode)",
                        "gnulinux-" + kernel + "-recovery-" + kRootId, kernel, "single", menu.savedefault);
  }
  if (menu.submenu) out += "}\n";
  return out +
         "if [ -f  ${config_directory}/custom.cfg ]; then\n  source ${config_directory}/custom.cfg\n"
         "elif [ -z \"${config_directory}\" -a -f  $prefix/custom.cfg ]; then\n  source $prefix/custom.cfg\nfi\n";
}

std::string kernel_image(const std::string& release, const std::string& build) {
  std::string out(0x400, '\0');
  out.replace(0x202, 4, "HdrS");
  out[0x20e] = '\0';
  out[0x20f] = '\x01';  // the banner is at 0x100 + 0x200
  const std::string banner = release + " (build@host) " + build;
  out.replace(0x300, banner.size(), banner);
  return out;
}

}  // namespace gpuhealth::grub::test
