// SPDX-License-Identifier: Apache-2.0
#include "sim/cpu_files.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdint>

namespace gpuhealth::sim {
namespace fs = std::filesystem;
namespace {

struct Cache {
  unsigned level;
  const char* type;
  const char* size;
  bool shared;
};
constexpr std::array<Cache, 4> kCaches = {{{1, "Data", "32K", false},
                                           {1, "Instruction", "32K", false},
                                           {2, "Unified", "1024K", false},
                                           {3, "Unified", "16384K", true}}};

std::string mask(std::uint64_t bits) {
  return fmt::format("{:08x}\n", bits);
}

void write_cache(Folder& sys, const fs::path& folder, const Cache& cache, const std::string& cpus) {
  sys.file(folder / "level", fmt::format("{}\n", cache.level));
  sys.file(folder / "type", fmt::format("{}\n", cache.type));
  sys.file(folder / "size", fmt::format("{}\n", cache.size));
  sys.file(folder / "coherency_line_size", "64\n");
  sys.file(folder / "number_of_sets", "64\n");
  sys.file(folder / "physical_line_partition", "1\n");
  sys.file(folder / "ways_of_associativity", "8\n");
  sys.file(folder / "shared_cpu_map", cpus);
}

}  // namespace

void write_cpus(Folder& sys, unsigned count) {
  const fs::path root = "devices/system/cpu";
  const std::string range = count == 1 ? "0\n" : fmt::format("0-{}\n", count - 1);
  const std::string all = mask((std::uint64_t{1} << count) - 1);
  for (const char* file : {"online", "possible", "present"}) sys.file(root / file, range);
  for (unsigned n = 0; n < count; ++n) {
    const fs::path cpu = root / fmt::format("cpu{}", n);
    const std::string own = mask(std::uint64_t{1} << n);
    sys.file(cpu / "online", "1\n");
    for (const char* file : {"physical_package_id", "die_id", "cluster_id"}) sys.file(cpu / "topology" / file, "0\n");
    sys.file(cpu / "topology/core_id", fmt::format("{}\n", n));
    for (const char* file : {"thread_siblings", "core_cpus"}) sys.file(cpu / "topology" / file, own);
    for (const char* file : {"core_siblings", "package_cpus", "die_cpus"}) sys.file(cpu / "topology" / file, all);
    for (std::size_t i = 0; i < kCaches.size(); ++i)
      write_cache(sys, cpu / fmt::format("cache/index{}", i), kCaches.at(i), kCaches.at(i).shared ? all : own);
  }
  const fs::path node = "devices/system/node";
  sys.file(node / "online", "0\n");
  sys.file(node / "node0/cpumap", all);
  sys.file(node / "node0/cpulist", range);
  sys.file(node / "node0/meminfo", "Node 0 MemTotal:       67108864 kB\nNode 0 MemFree:        33554432 kB\n");
}

}  // namespace gpuhealth::sim
