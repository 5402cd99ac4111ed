// SPDX-License-Identifier: Apache-2.0
#include "grub/image.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "grub/menu.hpp"

namespace gpuhealth::grub {
namespace {

class Bytes {
 public:
  explicit Bytes(int fd) : fd_(fd) {}
  [[nodiscard]] std::string at(std::uint64_t offset, std::size_t size) const {
    std::string out(size, '\0');
    const ssize_t n = ::pread(fd_, out.data(), out.size(), static_cast<off_t>(offset));
    out.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
    return out;
  }

 private:
  int fd_;
};

std::uint32_t little(std::string_view bytes, std::size_t at, std::size_t size) {
  std::uint32_t out = 0;
  if (at + size > bytes.size()) return 0;
  for (std::size_t i = 0; i < size; ++i) out |= std::uint32_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
  return out;
}

std::string line_value(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!line.starts_with(key) || line.size() <= key.size() || line[key.size()] != '=') continue;
    line.remove_prefix(key.size() + 1);
    if (line.size() > 1 && line.front() == '"' && line.back() == '"') line = line.substr(1, line.size() - 2);
    return std::string(line);
  }
  return {};
}

std::string trimmed(std::string text) {
  text.resize(std::min(text.find('\0'), text.size()));
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

// "6.1.0-50-amd64 (debian-kernel@lists.debian.org) #1 SMP …"
void read_banner(ImageFacts& facts, std::string_view banner) {
  const auto blank = banner.find(' ');
  if (!looks_like_release(banner.substr(0, blank))) return;
  facts.release = banner.substr(0, blank);
  const auto hash = banner.find(" #");
  if (hash != std::string_view::npos) facts.build = banner.substr(hash + 1);
}

bool read_linux_header(const Bytes& file, const std::string& head, ImageFacts& facts) {
  if (head.size() < 0x210 || head.substr(0x202, 4) != "HdrS") return false;
  const std::uint32_t pointer = little(head, 0x20e, 2);
  if (pointer != 0) read_banner(facts, trimmed(file.at(pointer + 0x200, 512)));
  return true;
}

void read_sections(const Bytes& file, std::uint32_t pe, const std::string& header, ImageFacts& facts) {
  const std::uint32_t count = std::min<std::uint32_t>(little(header, 6, 2), 96);
  const std::string table = file.at(std::uint64_t{pe} + 24 + little(header, 20, 2), std::size_t{count} * 40);
  const std::string_view sections = table;
  bool has_linux = false;
  for (std::size_t i = 0; (i + 1) * 40 <= sections.size(); ++i) {
    const std::string_view section = sections.substr(i * 40, 40);
    const std::string name = trimmed(std::string(section.substr(0, 8)));
    const std::size_t size = std::min<std::size_t>({little(section, 16, 4), little(section, 8, 4), 16384});
    const auto text = [&] { return trimmed(file.at(little(section, 20, 4), size)); };
    has_linux = has_linux || name == ".linux";
    if (name == ".uname") facts.release = text();
    if (name == ".cmdline") facts.arguments = text();
    if (name == ".osrel") facts.title = line_value(text(), "PRETTY_NAME");
  }
  facts.uki = has_linux;
}

bool read_pe(const Bytes& file, const std::string& head, ImageFacts& facts) {
  if (head.size() < 0x40 || !head.starts_with("MZ")) return false;
  const std::uint32_t pe = little(head, 0x3c, 4);
  const std::string header = file.at(pe, 256);
  if (!header.starts_with(std::string_view("PE\0\0", 4))) return false;
  // The certificate table is the fifth data directory: behind 112 bytes of optional header (PE32+), 96 (PE32).
  const std::size_t directories = 24 + (little(header, 24, 2) == 0x20b ? 112U : 96U);
  facts.signature = little(header, directories + std::size_t{4} * 8 + 4, 4) != 0;
  read_sections(file, pe, header, facts);
  return true;
}

}  // namespace

std::optional<ImageFacts> read_image(const Tree& tree, std::string_view path) {
  const auto fd = tree.open_file(path, O_RDONLY | O_NONBLOCK);
  if (!fd) return std::nullopt;
  const Bytes file(fd->get());
  const std::string head = file.at(0, 0x400);
  ImageFacts facts;
  const bool linux_image = read_linux_header(file, head, facts);
  const bool pe = read_pe(file, head, facts);
  if (!linux_image && !pe) return std::nullopt;
  return facts;
}

std::string locate_image(const Tree& tree, std::string_view loader_path) {
  if (loader_path.starts_with('(')) {
    const auto close = loader_path.find(')');
    loader_path.remove_prefix(close == std::string_view::npos ? loader_path.size() : close + 1);
  }
  if (!loader_path.starts_with('/') || loader_path.find("${") != std::string_view::npos) return {};
  std::string_view path = loader_path;
  for (int level = 0; level < 3; ++level) {
    for (const std::string_view folder : {"", "/boot", "/efi", "/boot/efi"}) {
      const std::string candidate = std::string(folder) + std::string(path);
      if (tree.is_file(candidate)) return candidate;
    }
    const auto slash = path.find('/', 1);
    if (slash == std::string_view::npos) break;
    path.remove_prefix(slash);
  }
  return {};
}

}  // namespace gpuhealth::grub
