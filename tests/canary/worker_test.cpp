// SPDX-License-Identifier: Apache-2.0
// The real worker on pocl, and with a stand-in loader that does wrong on purpose. Other programs may use this machine's
// processors meanwhile: a line may then be busy instead of ok, which is what it is for.
#include "worker.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "canary/stats/judge.hpp"

namespace gpuhealth::canary {
namespace {

using testing::HasSubstr;

bool measured(const Measurement& m) {
  return m.status == Status::Ok || m.status == Status::Busy;
}

TEST(Worker, EveryTierOneCanaryRunsOnAnOpenClCpuAndAllBitsAreRight) {
  const auto run = run_worker("--backend opencl --tier 1 --allow-cpu --json");
  EXPECT_TRUE(run.code == 0 || run.code == 1) << run.code << run.out;
  EXPECT_TRUE(run.bad_lines.empty());
  for (const auto& row : all_canaries()) {
    if (row.tier > 1 || row.canary == "userptr_cow") continue;
    const auto* m = run.find(std::string(row.canary), std::string(row.metric));
    ASSERT_NE(m, nullptr) << row.canary << " " << row.metric;
    if (row.canary == "mma16") {
      EXPECT_EQ(m->status, Status::Unsupported);
      continue;
    }
    EXPECT_TRUE(measured(*m)) << to_json_line(*m);
    ASSERT_TRUE(m->value) << row.canary;
    EXPECT_GE(*m->value, 0) << row.canary;
    EXPECT_EQ(m->unit, row.unit);
    EXPECT_EQ(m->device, "cpu");
    EXPECT_FALSE(m->epoch.empty());
    EXPECT_TRUE(m->software.contains("kernel"));
  }
  EXPECT_EQ(run.find("checksum")->value, 0);
  ASSERT_EQ(run.find("h2d_file_rw")->mappings.size(), 3U);
  EXPECT_FALSE(stats::judge_mappings(run.find("h2d_file_rw")->mappings).stalled);
}

TEST(Worker, TheDeepCanariesRunToo) {
  const auto run =
      run_worker("--backend opencl --only vram_pattern --only jit --only two_process --only p2p --allow-cpu --json");
  EXPECT_TRUE(run.code == 0 || run.code == 1) << run.out;
  ASSERT_NE(run.find("vram_pattern"), nullptr);
  EXPECT_TRUE(measured(*run.find("vram_pattern"))) << run.out;
  EXPECT_EQ(run.find("vram_pattern")->value, 0);
  EXPECT_TRUE(measured(*run.find("jit", "cold"))) << run.out;
  EXPECT_TRUE(measured(*run.find("two_process"))) << run.out;
  EXPECT_EQ(run.find("p2p")->status, Status::Unsupported);
}

TEST(Worker, ACpuIsNotTakenUnlessAllowed) {
  const auto run = run_worker("--backend opencl --tier 1 --json");
  EXPECT_EQ(run.code, 4);
  ASSERT_NE(run.find("triad"), nullptr);
  EXPECT_EQ(run.find("triad")->status, Status::Unsupported);
  EXPECT_THAT(run.find("triad")->reason, HasSubstr("no device"));
  EXPECT_THAT(run.find("triad")->reason, HasSubstr("--allow-cpu"));
}

TEST(Worker, WithoutALibraryOrADeviceEachBackendSaysSo) {
  for (const char* backend : {"ioctl", "hip", "cuda"}) {
    const auto run = run_worker(std::string("--backend ") + backend + " --tier 1 --json --device 0000:fe:00.0");
    EXPECT_EQ(run.code, 4) << backend << run.out;
    ASSERT_FALSE(run.lines.empty()) << backend;
    for (const auto& m : run.lines) {
      EXPECT_EQ(m.status, Status::Unsupported) << backend;
      EXPECT_THAT(m.reason, HasSubstr("no ")) << backend;
    }
  }
}

TEST(Worker, WrongCommandLinesAreRefused) {
  for (const char* line : {"--backend vulkan", "--tier 4", "--tier x", "--only bogus", "--device 12", "--deadline 0",
                           "surplus", "--bogus"}) {
    const auto run = run_worker(line);
    EXPECT_EQ(run.code, 2) << line;
    EXPECT_TRUE(run.out.empty()) << line;
  }
}

TEST(Worker, ACanaryOfAnotherBackendIsALineNotAnError) {
  for (const char* line : {"--backend ioctl --only triad", "--backend cuda --tier 0 --json"}) {
    const auto run = run_worker(line);
    EXPECT_EQ(run.code, 4) << line;
    ASSERT_EQ(run.lines.size(), 1U) << line;
    EXPECT_EQ(run.lines[0].status, Status::Unsupported);
  }
}

TEST(Worker, AWrongBitIsFoundAndIsNoSlowness) {
  const StandIn standin("wrong-bit");
  const auto run = run_worker("--backend opencl --only checksum --allow-cpu --json", standin.environment());
  EXPECT_EQ(run.code, 7);
  ASSERT_EQ(run.lines.size(), 1U);
  EXPECT_EQ(run.lines[0].status, Status::Wrong);
  EXPECT_EQ(run.lines[0].value, 1);
  EXPECT_EQ(run.lines[0].notes.at("repeats"), "1, 1, 1");  // the same each time: software
}

TEST(Worker, AnAbortOfTheRuntimeIsAResultAndTheRestIsTriedInANewProcess) {
  const StandIn standin("abort");
  const auto run =
      run_worker("--backend opencl --only launch_rtt --only checksum --allow-cpu --json", standin.environment());
  EXPECT_EQ(run.code, 7);
  ASSERT_EQ(run.lines.size(), 3U) << run.out;
  const auto* launch = run.find("launch_rtt", "p50");
  EXPECT_EQ(launch->status, Status::BackendFailed);
  EXPECT_THAT(launch->reason, HasSubstr("signal 6"));
  EXPECT_THAT(launch->reason, HasSubstr("HSA_STATUS_ERROR_EXCEPTION"));
  EXPECT_TRUE(measured(*run.find("checksum"))) << run.out;
}

TEST(Worker, ACorruptedHeapIsAResult) {
  const StandIn standin("heap");
  const auto run = run_worker("--backend opencl --only launch_rtt --allow-cpu --json", standin.environment());
  EXPECT_EQ(run.code, 7);
  ASSERT_FALSE(run.lines.empty());
  EXPECT_EQ(run.lines[0].status, Status::BackendFailed);
}

TEST(Worker, AHangEndsAtTheDeadline) {
  const StandIn standin("hang");
  const auto run = run_worker("--backend opencl --only chain --allow-cpu --json --deadline 3", standin.environment());
  EXPECT_EQ(run.code, 7);
  ASSERT_EQ(run.lines.size(), 1U);
  EXPECT_EQ(run.lines[0].status, Status::Timeout);
  EXPECT_THAT(run.lines[0].reason, HasSubstr("3 s"));
}

TEST(Worker, SerializedQueuesAreSeenByTheirTimeStamps) {
  const StandIn standin("serialize");
  const auto run = run_worker("--backend opencl --only overlap --allow-cpu --json", standin.environment());
  const auto* fraction = run.find("overlap", "fraction");
  ASSERT_NE(fraction, nullptr);
  if (fraction->status == Status::Unsupported) return;  // one processor
  EXPECT_EQ(fraction->value, 0);
}

double bandwidth(const std::string& orders) {
  const StandIn standin(orders);
  const auto run = run_worker("--backend opencl --only triad --allow-cpu --json", standin.environment());
  return run.lines.empty() ? 0 : run.lines[0].value.value_or(0);
}

TEST(Worker, TenTimesSlowerIsTenTimesLess) {
  // The machine's own noise is far from a factor of four, unless a neighbour takes the processors from one of the two.
  double slow = 0, fast = 0;
  for (int attempt = 0; attempt < 3 && fast <= slow * 4; ++attempt) {
    slow = bandwidth("slow 10");
    fast = bandwidth("none");
  }
  EXPECT_GT(slow, 0);
  EXPECT_LT(slow * 4, fast);
}

TEST(Worker, TheHostCopyStallIsSeenThroughARuntimeAndKnownWorkaroundsAreNamed) {
  const StandIn standin("stall");
  const auto run = run_worker("--backend opencl --only h2d_file_rw --only h2d_pin --allow-cpu --json",
                              standin.environment() + " HSA_USERPTR_FOR_PAGED_MEM=0");
  const auto* rw = run.find("h2d_file_rw");
  ASSERT_NE(rw, nullptr) << run.out;
  ASSERT_EQ(rw->mappings.size(), 3U) << run.out;
  const auto verdict = stats::judge_mappings(rw->mappings);
  EXPECT_TRUE(verdict.stalled) << to_json_line(*rw);
  EXPECT_GE(verdict.worst_ms_per_slot, 1000);
  EXPECT_TRUE(measured(*run.find("h2d_pin"))) << "pinned copies are healthy";
  EXPECT_EQ(rw->environment.at("HSA_USERPTR_FOR_PAGED_MEM"), "0");
}

class RenderNode : public testing::Test {
 protected:
  RenderNode() {
    namespace fs = std::filesystem;
    fs::copy_file(GPUHEALTH_BIN_DIR "/standin/libstandin_drm.so", folder_.path() / "libstandin_drm.so");
    std::ofstream(folder_.path() / "renderD128") << "\n";
  }
  WorkerRun run() {
    return run_worker("--backend ioctl --tier 0 --json", "LD_PRELOAD=" + folder_.string() + "/libstandin_drm.so");
  }
  test::TempDir folder_;
};

TEST_F(RenderNode, AHealthyKernelPinsAtOnce) {
  const auto healthy = run();
  EXPECT_EQ(healthy.code, 0) << healthy.out;
  ASSERT_EQ(healthy.lines.size(), 1U);
  EXPECT_EQ(healthy.lines[0].status, Status::Ok);
  EXPECT_FALSE(stats::judge_mappings(healthy.lines[0].mappings).stalled);
}

TEST_F(RenderNode, ASecondASlotWithoutAnyRuntimeIsAStall) {
  std::ofstream(folder_.path() / "stall") << "\n";
  const auto broken = run();
  ASSERT_EQ(broken.lines.size(), 1U) << broken.out;
  EXPECT_TRUE(stats::judge_mappings(broken.lines[0].mappings).stalled) << broken.out;
  EXPECT_EQ(broken.lines[0].notes.at("retries"), "6");  // two slots of three mappings
}

}  // namespace
}  // namespace gpuhealth::canary
