// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "klog_support.hpp"

namespace gpuhealth::klog {
namespace {

using test::Said;
using test::said_of;

const std::string kHung =
    "[  363.1] INFO: task Xorg:1234 blocked for more than 120 seconds.\n"
    "[  363.1]       Tainted: G           OE      6.1.0 #1\n"
    "[  363.1] task:Xorg            state:D stack:    0 pid: 1234 ppid:  1200 flags:0x00004002\n"
    "[  363.1] Call Trace:\n"
    "[  363.1]  __schedule+0x2d4/0x870\n"
    "[  363.1]  dma_fence_default_wait+0x1c5/0x260\n";

TEST(KlogTrace, AProcessThatHangsInADriver) {
  const auto events = classify(kHung + "[  363.1]  amdgpu_vm_fini+0x88/0x4e0 [amdgpu]\n");
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(test::brief(events[0]), "1 kernel.hung_task critical - x1");
  EXPECT_EQ(events[0].process, "Xorg");
  EXPECT_EQ(events[0].pid, 1234U);
}

TEST(KlogTrace, AProcessThatHangsElsewhereIsNoGpus) {
  EXPECT_EQ(said_of(kHung + "[  363.1]  nfs_wait_bit_killable+0x1e/0x90 [nfs]\n"), Said{});
  EXPECT_EQ(said_of(kHung + "[  363.1] Modules linked in: nfs amdgpu(OE) drm_sched_foo+0x1\n"), Said{});
  // The driver's next ordinary line is not a frame.
  EXPECT_EQ(said_of(kHung + "[  363.2] [drm:amdgpu_foo [amdgpu]] some word\n"), Said{});
}

TEST(KlogTrace, ACpuThatSpinsInADriver) {
  EXPECT_EQ(said_of("[ 100.1] watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [python3:4242]\n"
                    "[ 100.1] Modules linked in: amdgpu(E) nfs\n"
                    "[ 100.1] RIP: 0010:amdgpu_hmm_range_get_pages+0x1f2/0x380 [amdgpu]\n"),
            Said{"1 kernel.soft_lockup critical - x1"});
  EXPECT_EQ(said_of("[ 100.1] watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [kswapd0:90]\n"
                    "[ 100.1] Modules linked in: amdgpu(E) nfs\n"
                    "[ 100.1] RIP: 0010:shrink_slab+0x1f2/0x380\n"),
            Said{});
}

TEST(KlogTrace, ACrashInADriverIsOneEvent) {
  EXPECT_EQ(said_of("[ 55.1] BUG: kernel NULL pointer dereference, address: 0000000000000008\n"
                    "[ 55.1] #PF: supervisor read access in kernel mode\n"
                    "[ 55.1] Oops: 0000 [#1] PREEMPT SMP NOPTI\n"
                    "[ 55.1] Hardware name: Some Board\n"
                    "[ 55.1] RIP: 0010:dc_stream_release+0x1f/0x60 [amdgpu]\n"
                    "[ 55.1] Call Trace:\n"
                    "[ 55.1]  dm_update_crtc_state+0x1/0x2 [amdgpu]\n"
                    "[ 55.1] ---[ end trace 0000000000000000 ]---\n"),
            Said{"1 kernel.oops critical - x1"});
}

TEST(KlogTrace, ACrashElsewhereIsNoGpus) {
  EXPECT_EQ(said_of("[ 55.1] Oops: 0000 [#1] SMP\n[ 55.1] RIP: 0010:ext4_foo+0x1/0x2 [ext4]\n"
                    "[ 55.1] ---[ end trace 0000000000000000 ]---\n"
                    "[ 56.1]  amdgpu_foo+0x1/0x2 [amdgpu]\n"),
            Said{});
}

TEST(KlogTrace, ADriversOwnWarningIsInformation) {
  EXPECT_EQ(said_of("[ 7.1] WARNING: CPU: 3 PID: 99 at drivers/gpu/drm/amd/amdgpu/../display/dc/core/dc.c:100 "
                    "dc_foo+0x1/0x2 [amdgpu]\n"),
            Said{"1 kernel.warning info - x1"});
  EXPECT_EQ(said_of("[ 7.1] WARNING: CPU: 3 PID: 99 at net/core/dev.c:100 foo+0x1/0x2\n"), Said{});
}

TEST(KlogTrace, AKilledProgramCountsWhenItUsesTheGpu) {
  const std::string kill = "[ 900.1] Out of memory: Killed process 4242 (python3) total-vm:99999kB, anon-rss:8kB\n";
  EXPECT_EQ(said_of(kill), Said{});
  EXPECT_EQ(said_of("[ 800.1] amdgpu 0000:03:00.0: amdgpu: [gfxhub] page fault (src_id:0 ring:24 vmid:8 pasid:1)\n"
                    "[ 800.1] amdgpu 0000:03:00.0: amdgpu:  Process python3 pid 4242 thread python3 pid 4242\n" +
                    kill),
            (Said{"1 page_fault warning 0000:03:00.0 x1", "3 oom.kill warning - x1"}));
}

TEST(KlogTrace, AKillForADriversMemoryCounts) {
  EXPECT_EQ(said_of("[ 900.0] node invoked oom-killer: gfp_mask=0x140dca, order=0, oom_score_adj=0\n"
                    "[ 900.0] Call Trace:\n"
                    "[ 900.0]  ttm_pool_alloc+0x1/0x2 [ttm]\n"
                    "[ 900.0]  amdgpu_ttm_tt_populate+0x1/0x2 [amdgpu]\n"
                    "[ 900.1] oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),task=node,pid=77,uid=1000\n"
                    "[ 900.1] Out of memory: Killed process 77 (node) total-vm:99999kB\n"),
            Said{"6 oom.kill warning - x1"});
}

TEST(KlogTrace, AnInferenceServerUsesTheGpu) {
  EXPECT_EQ(
      said_of("[ 900.1] oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),global_oom,task=llama-server,pid=78,uid=1\n"
              "[ 900.1] Out of memory: Killed process 78 (llama-server) total-vm:99999kB\n"),
      Said{"2 oom.kill warning - x1"});
}

}  // namespace
}  // namespace gpuhealth::klog
