// SPDX-License-Identifier: Apache-2.0
#include "canary/gate.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/support/temp_dir.hpp"

namespace gpuhealth::canary {
namespace {

constexpr const char* kFdinfo =
    "pos:\t0\nflags:\t02100002\nmnt_id:\t25\nino:\t1\n"
    "drm-driver:\tamdgpu\ndrm-client-id:\t42\ndrm-pdev:\t0000:03:00.0\npasid:\t32771\n"
    "drm-memory-vram:\t2048 KiB\ndrm-engine-gfx:\t5000000 ns\ndrm-engine-compute:\t0 "
    "ns\ndrm-engine-capacity-compute:\t4\n";

GateLook look(std::uint64_t ns, bool everybody = true) {
  GateLook l;
  l.everybody = everybody;
  l.processes = {{4242, "python3", {{"client 42 gfx", ns}}, false, false}};
  return l;
}

TEST(Gate, EngineTimeBetweenTheLooksIsUse) {
  const auto v = compare_looks(look(5'000'000), look(17'000'000), {});
  EXPECT_TRUE(v.busy);
  EXPECT_EQ(v.gate, Gate::Strong);
  EXPECT_EQ(v.reason, "pid 4242 (python3) used gfx for 12.0 ms");
}

TEST(Gate, ADesktopThatDrawsNothingIsNoUse) {
  EXPECT_FALSE(compare_looks(look(5'000'000), look(5'050'000), {}).busy);
}

TEST(Gate, OurOwnProcessesAreNoStrangers) {
  EXPECT_FALSE(compare_looks(look(0), look(9'000'000), {4242}).busy);
}

TEST(Gate, AClientThatCameMeanwhileIsSeen) {
  EXPECT_TRUE(compare_looks(GateLook{{}, true, 0, 0}, look(1'000'000), {}).busy);
}

TEST(Gate, ComputeProcessesAndOpenNvidiaDevicesCountByBeingThere) {
  GateLook kfd;
  kfd.processes = {{7, "a", {}, true, false}};
  GateLook nvidia;
  nvidia.processes = {{8, "b", {}, false, true}};
  EXPECT_TRUE(compare_looks(kfd, GateLook{}, {}).busy);
  EXPECT_TRUE(compare_looks(GateLook{}, nvidia, {}).busy);
}

TEST(Gate, WhoCannotSeeEverybodyHasAWeakGate) {
  EXPECT_EQ(compare_looks(look(0, false), look(0), {}).gate, Gate::Weak);
}

TEST(Gate, ANeighbourOnTheProcessorsMakesACpuDeviceBusyOnlyWhenItHadToWait) {
  GateLook before;
  GateLook after;
  after.cpu_all = 1000;
  after.cpu_busy = 900;
  EXPECT_TRUE(compare_cpu(before, after, 300, 0.4).busy);    // others 60 %
  EXPECT_FALSE(compare_cpu(before, after, 300, 0.02).busy);  // enough processors for both
  EXPECT_FALSE(compare_cpu(before, after, 700, 0.4).busy);   // others 20 %
  EXPECT_EQ(compare_cpu(before, before, 0, 0).gate, Gate::Unknown);
}

class Tree : public testing::Test {
 protected:
  void SetUp() override { kernel("6.12.94+deb13-amd64"); }
  void kernel(const std::string& release) {
    std::filesystem::create_directories(root_.path() / "proc/sys/kernel");
    std::ofstream(root_.path() / "proc/sys/kernel/osrelease") << release << "\n";
  }
  void process(int pid, const std::string& name, const std::string& device, const std::string& fdinfo) {
    namespace fs = std::filesystem;
    const auto folder = root_.path() / "proc" / std::to_string(pid);
    fs::create_directories(folder / "fd");
    fs::create_directories(folder / "fdinfo");
    fs::create_symlink(device, folder / "fd" / "5");
    std::ofstream(folder / "fdinfo" / "5") << fdinfo;
    std::ofstream(folder / "comm") << name << "\n";
  }
  test::TempDir root_;
};

TEST_F(Tree, ClientsOfTheDeviceAreFound) {
  process(100, "Xorg", "/dev/dri/card0", kFdinfo);
  process(101, "bash", "/dev/pts/1", "pos:\t0\n");
  process(102, "trainer", "/dev/nvidia0", "");
  process(103, "smi", "/dev/nvidiactl", "");
  std::filesystem::create_directories(root_.path() / "sys/class/kfd/kfd/proc/100");
  std::filesystem::create_directories(root_.path() / "sys/class/kfd/kfd/proc/7777");
  const auto seen = look_for_clients(root_.string(), "0000:03:00.0");
  ASSERT_EQ(seen.processes.size(), 3U);
  for (const auto& p : seen.processes) {
    if (p.pid == 100) {
      EXPECT_TRUE(p.kfd);
      EXPECT_EQ(p.name, "Xorg");
      EXPECT_EQ(p.engine_ns.at("client 42 gfx"), 5000000U);
    }
    if (p.pid == 102) {
      EXPECT_TRUE(p.nvidia);
    }
    if (p.pid == 7777) {
      EXPECT_TRUE(p.kfd) << "of another process namespace";
    }
  }
}

// Driver 580: NVML opens /dev/nvidia0 three or four times and maps libcuda; a CUDA context opens it 20 times. Our own
// reader, nvidia-smi and DCGM would make every run busy.
TEST_F(Tree, WhoOnlyManagesAnNvidiaGpuDoesNotUseIt) {
  const auto opened = [&](int pid, int times, const std::string& libraries) {
    process(pid, "p", "/dev/nvidia0", "");
    const auto folder = root_.path() / "proc" / std::to_string(pid);
    for (int i = 1; i < times; ++i)
      std::filesystem::create_symlink("/dev/nvidia0", folder / "fd" / std::to_string(100 + i));
    if (!libraries.empty()) std::ofstream(folder / "maps") << libraries;
  };
  const std::string nvml = "7f00-7f01 r-xp 00000000 fe:01 9 /usr/lib/x86_64-linux-gnu/libnvidia-ml.so.580.159.04\n";
  const std::string cuda = "7f02-7f03 r-xp 00000000 fe:01 9 /usr/lib/x86_64-linux-gnu/libcuda.so.580.159.04\n";
  opened(200, 4, nvml + cuda);
  opened(201, 20, nvml + cuda);
  opened(202, 4, cuda);
  opened(203, 4, "");
  std::set<int> users;
  for (const auto& p : look_for_clients(root_.string(), "0000:01:00.0").processes) users.insert(p.pid);
  EXPECT_EQ(users, (std::set<int>{201, 202, 203}));
}

// nvtop 168: a reader of fdinfo crashed kernels before 6.1.
TEST_F(Tree, WhatMayCrashTheKernelIsNotReadAndTheGateIsWeak) {
  process(100, "Xorg", "/dev/dri/card0", kFdinfo);
  kernel("5.19.0-50-generic");
  const auto seen = look_for_clients(root_.string(), "0000:03:00.0");
  EXPECT_TRUE(seen.processes.empty());
  EXPECT_FALSE(seen.everybody);
}

TEST_F(Tree, ClientsOfAnotherCardAreNone) {
  process(100, "Xorg", "/dev/dri/card0", kFdinfo);
  EXPECT_TRUE(look_for_clients(root_.string(), "0000:83:00.0").processes.empty());
}

}  // namespace
}  // namespace gpuhealth::canary
