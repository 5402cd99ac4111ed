// SPDX-License-Identifier: Apache-2.0
// Processes on a synthetic machine: /proc and KFD's list are folders, descriptors are links to node names.
#include "telemetry/clients.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "sim/machine.hpp"
#include "sim/tree.hpp"
#include "telemetry/fdinfo.hpp"
#include "telemetry/proc.hpp"
#include "tests/support/temp_dir.hpp"

namespace gpuhealth::telemetry {
namespace {

namespace fs = std::filesystem;
constexpr std::uint64_t kMib = 1024 * 1024;

// As Linux 6.12 writes it for a game: Documentation/gpu/drm-usage-stats.rst.
TEST(DrmFdinfo, OfLinux612HasMemoryEnginesAndWhatWasEvicted) {
  const auto info = parse_drm_fdinfo(
      "pos:\t0\nflags:\t02100002\nmnt_id:\t31\nino:\t559\ndrm-driver:\tamdgpu\ndrm-client-id:\t7\ndrm-pdev:\t0000:03:"
      "00.0\n"
      "pasid:\t32771\ndrm-memory-vram:\t1048576 KiB\ndrm-memory-gtt: \t2048 KiB\ndrm-memory-cpu: \t0 KiB\n"
      "amd-evicted-vram:\t512 KiB\namd-requested-vram:\t1049088 KiB\ndrm-engine-gfx:\t123456789 ns\n"
      "drm-engine-capacity-gfx:\t2\ndrm-engine-compute:\t5 ns\n");
  EXPECT_EQ(info.driver, "amdgpu");
  EXPECT_EQ(info.pci, "0000:03:00.0");
  EXPECT_EQ(info.client_id, "7");
  EXPECT_EQ(info.vram_bytes, 1024 * kMib);
  EXPECT_EQ(info.gtt_bytes, 2 * kMib);
  EXPECT_EQ(info.evicted_bytes, 512 * 1024u);
  EXPECT_EQ(info.engine_ns, (std::map<std::string, std::uint64_t>{{"compute", 5}, {"gfx", 123456789}}));
}

TEST(DrmFdinfo, ResidentMemoryOfLaterKernelsIsTakenInPlaceOfTheOlderWord) {
  const auto info = parse_drm_fdinfo("drm-driver:\tamdgpu\ndrm-memory-vram:\t9 MiB\ndrm-resident-vram:\t3 MiB\n");
  EXPECT_EQ(info.vram_bytes, 3 * kMib);
}

TEST(DrmFdinfo, OfAnotherFileIsNoClient) {
  EXPECT_TRUE(parse_drm_fdinfo("pos:\t0\nflags:\t02\neventfd-count: 0\n").driver.empty());
  EXPECT_FALSE(parse_drm_fdinfo("drm-memory-vram:\t99999999999999999999 KiB\n").vram_bytes);
  EXPECT_FALSE(parse_drm_fdinfo("drm-memory-vram:\t18446744073709551615 KiB\n").vram_bytes);
}

TEST(ProcStat, ANameWithBracketsAndBlanksIsSteppedOver) {
  const auto stat =
      parse_proc_stat("4242 (a) R (b) S 17 1 1 0 -1 4194560 9 9 9 9 700 8000 0 0 20 0 31 0 123456 1 2 3\n");
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->pid, 4242u);
  EXPECT_EQ(stat->parent, 17u);
  EXPECT_EQ(stat->user_ticks, 700u);
  EXPECT_EQ(stat->system_ticks, 8000u);
  EXPECT_EQ(stat->started, 123456u);
  EXPECT_FALSE(stat->kernel_thread);
  EXPECT_FALSE(parse_proc_stat("4242 (a"));
  EXPECT_FALSE(parse_proc_stat("4242 (a) R 1 2 3"));
}

TEST(ProcIo, TheGreaterOfReadAndFetchedCounts) {
  EXPECT_EQ(parse_proc_io("rchar: 100\nwchar: 900\nread_bytes: 4096\nwrite_bytes: 1\n"), 4096u);
  EXPECT_EQ(parse_proc_io("nothing\n"), std::nullopt);
}

class ClientsTest : public ::testing::Test {
 protected:
  struct Fake {
    std::uint32_t pid = 0;
    std::uint32_t parent = 1;
    std::uint64_t user = 0, system = 0;
    std::uint64_t started = 5000;
    std::string target{};  // of descriptor 5
    std::string fdinfo{};
  };
  void SetUp() override {
    cards_ = sim::healthy_machine(2);
    ASSERT_TRUE(sim::write_machine(root_.path(), cards_));
    gpu_ = cards_[0].place.gpu;
    for (const auto& card : cards_) gpus_.push_back(card.place.gpu);
    put("proc/sys/kernel/osrelease", "6.12.1\n");
  }
  void put(const fs::path& file, const std::string& text) {
    fs::create_directories((root_.path() / file).parent_path());
    std::ofstream(root_.path() / file) << text;
  }
  static std::string stat(const Fake& p) {
    return fmt::format("{} (python3) R {} 1 1 0 -1 4194560 0 0 0 0 {} {} 0 0 20 0 2 0 {} 0 0\n", p.pid, p.parent,
                       p.user, p.system, p.started);
  }
  void put(const Fake& p) {
    const fs::path proc = "proc/" + std::to_string(p.pid);
    put(proc / "stat", stat(p));
    put(proc / "task" / std::to_string(p.pid) / "stat", stat(p));
    fs::create_directories(root_.path() / proc / "fd");
    if (p.target.empty()) return;
    fs::remove(root_.path() / proc / "fd/5");
    fs::create_symlink(p.target, root_.path() / proc / "fd/5");
    put(proc / "fdinfo/5", p.fdinfo);
  }
  [[nodiscard]] std::string fdinfo(const std::string& id, std::uint64_t mib, std::uint64_t gfx_ms) const {
    return fmt::format(
        "drm-driver:\tamdgpu\ndrm-client-id:\t{}\ndrm-pdev:\t{}\ndrm-memory-vram:\t{} KiB\ndrm-engine-gfx:\t{} ns\n",
        id, to_string(gpu_), mib * 1024, gfx_ms * 1'000'000);
  }
  std::vector<GpuClient> look(std::int64_t second) {
    last_ = scanner_.look(gpus_, {second * 1'000'000});
    return last_.at(0).look.clients;
  }

  test::TempDir root_;
  std::vector<sim::Card> cards_;
  PciAddress gpu_;
  std::vector<PciAddress> gpus_;
  ClientScanner scanner_{root_.string(), 900};
  std::vector<GpuClients> last_;
};

TEST_F(ClientsTest, AProcessIsSeenWithItsMemoryAndThenItsEngineTime) {
  Fake game{.pid = 100, .target = "/dev/dri/renderD128", .fdinfo = fdinfo("7", 512, 1000)};
  put(game);
  auto seen = look(10);
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].pid, 100u);
  EXPECT_EQ(seen[0].started, 5000u);
  EXPECT_EQ(seen[0].vram_bytes, 512 * kMib);
  EXPECT_TRUE(seen[0].open);
  EXPECT_FALSE(seen[0].engine_percent);
  // In ten seconds: 4 s of graphics, 3 s of processor.
  game.fdinfo = fdinfo("7", 600, 5000);
  game.user = 300;
  put(game);
  seen = look(20);
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_DOUBLE_EQ(*seen[0].engine_percent, 40);
  EXPECT_DOUBLE_EQ(*seen[0].cpu_percent, 30);
  EXPECT_EQ(seen[0].vram_bytes, 600 * kMib);
  EXPECT_TRUE(last_[1].look.clients.empty()) << "the other GPU has nobody";
}

TEST_F(ClientsTest, ADescriptorThatWasPassedOnCountsOnce) {
  put({.pid = 100, .target = "/dev/dri/renderD128", .fdinfo = fdinfo("7", 512, 1000)});
  fs::create_symlink("/dev/dri/renderD128", root_.path() / "proc/100/fd/6");
  put("proc/100/fdinfo/6", fdinfo("7", 512, 1000));
  EXPECT_EQ(look(10).at(0).vram_bytes, 512 * kMib);
  fs::create_symlink("/dev/dri/card0", root_.path() / "proc/100/fd/8");
  put("proc/100/fdinfo/8", fdinfo("9", 100, 0));  // another client of the same process adds to it
  EXPECT_EQ(look(20).at(0).vram_bytes, 612 * kMib);
}

TEST_F(ClientsTest, ComputeMemoryIsInBothListsAndCountedOnce) {
  put({.pid = 100, .target = "/dev/dri/renderD128", .fdinfo = fdinfo("7", 2048, 0)});
  put("sys/class/kfd/kfd/proc/100/vram_40001", "2147483648\n");
  put("sys/class/kfd/kfd/proc/100/vram_40002", "0\n");
  put("sys/class/kfd/kfd/proc/100/queues/0/gpuid", "40001");  // without a newline
  const auto seen = look(10);
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_TRUE(seen[0].queues);
  EXPECT_EQ(seen[0].vram_bytes, 2048 * kMib);
  EXPECT_TRUE(last_[1].look.clients.empty()) << "a file that says 0 is no use";
}

TEST_F(ClientsTest, AComputeProcessOfAnotherNamespaceIsKnownByItsNumberAlone) {
  put("sys/class/kfd/kfd/proc/555/vram_40001", "1048576\n");
  const auto seen = look(10);
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].pid, 555u);
  EXPECT_EQ(seen[0].vram_bytes, kMib);
}

TEST_F(ClientsTest, WhatTheDaemonItselfRunsIsNoClient) {
  put({.pid = 900});
  put({.pid = 901, .parent = 900, .target = "/dev/dri/renderD128", .fdinfo = fdinfo("7", 512, 0)});
  put({.pid = 902, .parent = 901, .target = "/dev/dri/renderD128", .fdinfo = fdinfo("8", 512, 0)});
  put({.pid = 903, .target = "/dev/dri/renderD128", .fdinfo = fdinfo("9", 1, 0)});
  const auto seen = look(10);
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].pid, 903u);
}

TEST_F(ClientsTest, NoFileIsReadOfAGpuThatHasLeft) {
  put({.pid = 100, .target = "/dev/dri/renderD130 (deleted)", .fdinfo = fdinfo("7", 512, 0)});
  put({.pid = 101, .target = "/dev/dri/renderD200", .fdinfo = fdinfo("8", 512, 0)});
  EXPECT_TRUE(look(10).empty());
}

// amdgpu_bo_get_memory of 5.19 followed a null pointer when a GPU was reset (nvtop 168).
TEST_F(ClientsTest, NoFdinfoIsReadWhereTheKernelMayCrashOnIt) {
  put("proc/sys/kernel/osrelease", "5.19.12-arch1-1\n");
  put({.pid = 100, .target = "/dev/dri/renderD128", .fdinfo = fdinfo("7", 512, 0)});
  const auto seen = look(10);
  ASSERT_EQ(seen.size(), 1u) << "that it has the node open is known";
  EXPECT_FALSE(seen[0].vram_bytes);
  EXPECT_FALSE(last_[0].look.complete);
  put("proc/sys/kernel/osrelease", "6.1.0-28-amd64\n");
  EXPECT_EQ(look(20).at(0).vram_bytes, 512 * kMib);
}

TEST_F(ClientsTest, OneThreadThatSpinsInTheKernelIsFoundAtTheThirdLook) {
  Fake job{.pid = 100, .target = "/dev/dri/renderD128", .fdinfo = fdinfo("7", 6000, 0)};
  put("proc/100/io", "rchar: 1000\nread_bytes: 0\n");
  for (int i = 0; i < 3; ++i) {
    job.system = static_cast<std::uint64_t>(i) * 990;
    put(job);
    const auto seen = look(10 + i * 10);
    ASSERT_EQ(seen.size(), 1u);
    EXPECT_EQ(seen[0].thread_system_percent.has_value(), i == 2);
    if (i == 2) {
      EXPECT_NEAR(*seen[0].thread_system_percent, 99, 0.01);
      EXPECT_NEAR(*seen[0].thread_user_percent, 0, 0.01);
      EXPECT_DOUBLE_EQ(*seen[0].read_bytes_per_s, 0);
    }
  }
}

TEST_F(ClientsTest, ABusyProcessWithAComputeRuntimeAndNoGpuIsToldOfTheFirst) {
  Fake job{.pid = 100};
  put("proc/100/maps", "7f0 r-xp 0 0 0 /opt/rocm/lib/libamdhip64.so.6.2\n");
  put(job);
  EXPECT_TRUE(look(10).empty());
  job.user = 80'000;  // 800 s in 60: many threads
  put(job);
  for (int i = 2; i <= 7; ++i) look(i * 10);
  const auto seen = look(80);
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_TRUE(seen[0].library);
  EXPECT_FALSE(seen[0].open);
}

// A desktop has hundreds of processes; listing the descriptors of all at every look would cost thousands of calls.
TEST_F(ClientsTest, AProcessWithoutAGpuIsListedAtEverySixthLookOnly) {
  Fake shell{.pid = 102};  // spread: 102 % 6 == 0, so the first look counts whole
  put(shell);
  EXPECT_TRUE(look(10).empty());
  shell.target = "/dev/dri/renderD128";
  shell.fdinfo = fdinfo("7", 1, 0);
  put(shell);
  for (int i = 2; i <= 6; ++i) EXPECT_TRUE(look(i * 10).empty());
  EXPECT_EQ(look(70).size(), 1u);
}

TEST_F(ClientsTest, AnotherProcessUnderTheSameNumberStartsAnew) {
  put({.pid = 100, .user = 500, .target = "/dev/dri/renderD128", .fdinfo = fdinfo("7", 1, 9000)});
  look(10);
  put({.pid = 100, .user = 600, .started = 9999, .target = "/dev/dri/renderD128", .fdinfo = fdinfo("8", 1, 9100)});
  const auto seen = look(20);
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].started, 9999u);
  EXPECT_FALSE(seen[0].cpu_percent);
  EXPECT_FALSE(seen[0].engine_percent);
}

}  // namespace
}  // namespace gpuhealth::telemetry
