// SPDX-License-Identifier: Apache-2.0
#include "sim/caller.hpp"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>

#include "core/fd.hpp"

namespace gpuhealth::sim {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::size_t kMostVectors = 1024;  // IOV_MAX

std::string file_of(pid_t tid, const char* name) {
  return "/proc/" + std::to_string(tid) + "/" + name;
}

iovec remote(std::uint64_t address, std::size_t bytes) {
  return {reinterpret_cast<void*>(address), bytes};  // NOLINT(performance-no-int-to-ptr): of another process
}

}  // namespace

bool Caller::read(std::uint64_t address, void* to, std::size_t bytes) const {
  const iovec here{to, bytes};
  const iovec there = remote(address, bytes);
  return bytes == 0 || process_vm_readv(tid_, &here, 1, &there, 1, 0) == static_cast<ssize_t>(bytes);
}

bool Caller::write(std::uint64_t address, const void* from, std::size_t bytes) const {
  const iovec here{const_cast<void*>(from), bytes};
  const iovec there = remote(address, bytes);
  return bytes == 0 || process_vm_writev(tid_, &here, 1, &there, 1, 0) == static_cast<ssize_t>(bytes);
}

std::string Caller::path_of(int fd) const {
  std::array<char, 256> target{};
  const auto link = file_of(tid_, "fd/") + std::to_string(fd);
  if (readlink(link.c_str(), target.data(), target.size() - 1) <= 0) return {};
  return target.data();
}

Caller::Mapping Caller::mapping(std::uint64_t address, std::uint64_t bytes) const {
  Mapping out{.whole = false, .writable = true, .shared = false, .file = false};
  std::uint64_t covered = address;
  std::ifstream maps(file_of(tid_, "maps"));
  for (std::string line; covered < address + bytes && std::getline(maps, line);) {
    unsigned long first = 0;
    unsigned long last = 0;
    unsigned long inode = 0;
    std::array<char, 8> access{};
    if (std::sscanf(line.c_str(), "%lx-%lx %4s %*s %*s %lu", &first, &last, access.data(), &inode) != 4) continue;
    if (last <= covered) continue;
    if (first > covered) return out;
    out.writable = out.writable && access[1] == 'w';
    out.shared = out.shared || access[3] == 's';
    out.file = out.file || inode != 0;
    covered = last;
  }
  out.whole = covered >= address + bytes;
  return out;
}

std::vector<std::uint64_t> Caller::pages(std::uint64_t address, std::uint64_t bytes) const {
  const Fd file(open(file_of(tid_, "pagemap").c_str(), O_RDONLY | O_CLOEXEC));
  std::vector<std::uint64_t> out(bytes / kPage);
  const auto size = static_cast<ssize_t>(out.size() * sizeof out[0]);
  if (!file || pread(file.get(), out.data(), static_cast<std::size_t>(size),
                     static_cast<off_t>(address / kPage * sizeof out[0])) != size)
    out.clear();
  return out;
}

bool Caller::fault_in(const std::vector<std::uint64_t>& page_addresses) const {
  for (std::size_t from = 0; from < page_addresses.size(); from += kMostVectors) {
    const auto count = std::min(kMostVectors, page_addresses.size() - from);
    std::vector<iovec> there;
    there.reserve(count);
    for (std::size_t i = 0; i < count; ++i) there.push_back(remote(page_addresses[from + i], 1));
    std::vector<char> bytes(count);
    const iovec here{bytes.data(), count};
    const auto all = static_cast<ssize_t>(count);
    if (process_vm_readv(tid_, &here, 1, there.data(), count, 0) != all) return false;
    if (process_vm_writev(tid_, &here, 1, there.data(), count, 0) != all) return false;
  }
  return true;
}

}  // namespace gpuhealth::sim
