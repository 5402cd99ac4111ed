// SPDX-License-Identifier: Apache-2.0
// Wordings of many kernels and drivers, from their sources, with made-up addresses and numbers.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "klog_support.hpp"

namespace gpuhealth::klog {
namespace {

using test::Said;
using test::said_of;

struct Wording {
  std::string_view line;
  std::string_view said;  // without the line's number; empty: nothing
};

void expect(const std::vector<Wording>& wordings) {
  for (const auto& [line, said] : wordings)
    EXPECT_EQ(said_of(line), said.empty() ? Said{} : Said{"1 " + std::string(said) + " x1"}) << line;
}

TEST(KlogWordings, AmdgpuRas) {
  expect({
      {"amdgpu 0000:e3:00.0: amdgpu: 2 correctable hardware errors detected in gfx block, no user action is needed.",
       "ras.correctable warning 0000:e3:00.0"},
      {"amdgpu 0000:e3:00.0: amdgpu: socket: 0, die: 0 4 uncorrectable hardware errors detected in sdma block",
       "ras.uncorrectable critical 0000:e3:00.0"},
      {"amdgpu 0000:e3:00.0: {7}socket: 1, die: 3, 5 new correctable hardware errors detected in umc block",
       "ras.correctable warning 0000:e3:00.0"},
      {"amdgpu 0000:e3:00.0: {7}socket: 1, die: 3, 9 uncorrectable hardware errors detected in total in mmhub block",
       "ras.uncorrectable critical 0000:e3:00.0"},
      {"amdgpu 0000:e3:00.0: {7}socket: 1, die: 3, 1 new deferred hardware errors detected in umc block",
       "ras.deferred warning 0000:e3:00.0"},
      {"amdgpu 0000:e3:00.0: amdgpu: Poison is created, no user action is needed.", "ras.poison warning 0000:e3:00.0"},
      {"amdgpu 0000:e3:00.0: amdgpu: RAS poison consumption, unmap queue flow succeeded: client id 10",
       "ras.poison critical 0000:e3:00.0"},
      {"amdgpu 0000:e3:00.0: amdgpu: GPU reset for gfx RAS poison consumption is issued!",
       "ras.poison critical 0000:e3:00.0"},
      {"amdgpu 0000:08:00.0: amdgpu: Saved bad pages 140 reaches threshold value 128",
       "ras.bad_pages critical 0000:08:00.0"},
      {"amdgpu 0000:08:00.0: amdgpu: RAS records:120 exceeds 90% of threshold:128",
       "ras.bad_pages warning 0000:08:00.0"},
      {"amdgpu 0000:08:00.0: amdgpu: RAS records:130 exceed threshold:128, GPU will not be initialized. Replace this "
       "GPU "
       "or increase the threshold",
       "ras.bad_pages critical 0000:08:00.0"},
      {"amdgpu 0000:c1:00.0: amdgpu: socket: 0, aid: 1, hbm: 2, fw_status: 0x8001, memory training failed",
       "init.failed critical 0000:c1:00.0"},
      // "0" errors of a kind are no error words at all in these lines, and those of CPUs are not the GPU's
      {"mce: 99 correctable hardware errors detected in total in mc0 block on CPU1", ""},
      {"amdgpu 0000:2b:00.0: amdgpu: RAS: optional ras ta ucode is not available", ""},
      {"amdgpu 0000:e3:00.0: amdgpu: MEM ECC is active.", ""},
      {"amdgpu 0000:e3:00.0: amdgpu: RAS INFO: ras initialized successfully, hardware ability[7fff] ras_mask[7fff]",
       ""},
  });
}

TEST(KlogWordings, AmdgpuManagementFirmware) {
  expect({
      {"amdgpu 0000:09:00.0: amdgpu: SMU: I'm not done with your previous command!",
       "smu.unresponsive critical 0000:09:00.0"},
      {"amdgpu 0000:09:00.0: SMU: No response msg_reg: 12 resp_reg: 0", "smu.unresponsive critical 0000:09:00.0"},
      {"amdgpu 0000:09:00.0: amdgpu: SMU is in hanged state, failed to send smu message!",
       "smu.unresponsive critical 0000:09:00.0"},
      {"amdgpu 0000:09:00.0: amdgpu: Msg issuing pre-check failed and SMU may be not in the right state!",
       "smu.unresponsive critical 0000:09:00.0"},
      {"amdgpu 0000:09:00.0: amdgpu: failed send message: TransferTableSmu2Dram (18) \tparam: 0x00000006 response "
       "0xffffffc2",
       "smu.unresponsive critical 0000:09:00.0"},
      {"amdgpu: [powerplay] failed to send message 145 ret is 0 ", "smu.unresponsive critical -"},
      {"amdgpu: \n last message was failed ret is 65535", ""},
      {"amdgpu 0000:08:00.0: SMU: bus error for message: EnableSmuFeaturesLow(8) response:0xFFFFFFFF",
       "bus.lost critical 0000:08:00.0"},
      {"amdgpu 0000:08:00.0: device lost from bus!", "bus.lost critical 0000:08:00.0"},
      {"amdgpu 0000:08:00.0: amdgpu: SMU: response:0xFFFFFFFF for index:18 param:0x00000005 "
       "message:TransferTableSmu2Dram?",
       "bus.lost critical 0000:08:00.0"},
      {"amdgpu 0000:09:00.0: amdgpu: SMU: unknown command: index:25 param:0x0 message:GetFoo", ""},
      {"amdgpu 0000:09:00.0: amdgpu: SMU is resuming...", ""},
      {"amdgpu 0000:09:00.0: amdgpu: SMU is initialized successfully!", ""},
  });
}

TEST(KlogWordings, AmdgpuHeat) {
  expect({
      {"amdgpu 0000:83:00.0: amdgpu: WARN: GPU is throttled, expect performance decrease. CORE TEMP.",
       "thermal.throttle warning 0000:83:00.0"},
      {"amdgpu 0000:83:00.0: amdgpu: ERROR: GPU HW Critical Temperature Fault(aka CTF) detected!",
       "thermal.over_limit critical 0000:83:00.0"},
      {"amdgpu 0000:83:00.0: amdgpu: ERROR: System is going to shutdown due to GPU HW CTF!",
       "thermal.shutdown critical 0000:83:00.0"},
      {"amdgpu: [powerplay] GPU over temperature range detected on PCIe 3:0.0!", "thermal.over_limit critical -"},
      {"amdgpu: [powerplay] GPU under temperature range detected on PCIe 3:0.0!", "thermal.throttle info -"},
  });
}

TEST(KlogWordings, AmdgpuEnginesAndQueues) {
  expect({
      {"amdgpu 0000:44:00.0: ring vcn_unified_1 timeout, signaled seq=5, emitted seq=7",
       "ring.timeout warning 0000:44:00.0"},
      {"amdgpu 0000:44:00.0: ring sdma0.0 timeout, signaled seq=5, emitted seq=7", "ring.timeout warning 0000:44:00.0"},
      {"amdgpu 0000:44:00.0: Ring comp_1.3.1 reset succeeded", "ring.reset.succeeded info 0000:44:00.0"},
      {"amdgpu 0000:44:00.0: amdgpu: Ring sdma0 reset success", "ring.reset.succeeded info 0000:44:00.0"},
      {"amdgpu 0000:44:00.0: MES(1) failed to respond to msg=MISC (WAIT_REG_MEM)", "mes.hang critical 0000:44:00.0"},
      {"amdgpu: MES failed to response msg=2", ""},
      {"[drm:mes_v11_0_submit_pkt_and_poll_completion.constprop.0 [amdgpu]] *ERROR* MES failed to respond to msg=14",
       "mes.hang critical -"},
      {"amdgpu 0000:44:00.0: amdgpu: HIQ MQD's queue_doorbell_id0 is not 0, Queue preemption time out",
       "hws.hang critical 0000:44:00.0"},
      {"amdgpu: Failed to evict queues of pasid 0x8001", "queue.evict_failed warning -"},
      {"kfd kfd: amdgpu: Failed to resume IOMMU for device 1002:15d8", ""},
      {"amdgpu 0000:44:00.0: amdgpu: [mmhub0] VMC page fault (src_id:0 ring:169 vmid:0 pasid:0, for process  pid 0 "
       "thread  pid 0)",
       "page_fault warning 0000:44:00.0"},
      {"amdgpu 0000:44:00.0: GPU fault detected: 147 0x0a904801", "page_fault warning 0000:44:00.0"},
      {"[drm:gfx_v9_0_priv_inst_irq [amdgpu]] *ERROR* Illegal instruction in command stream",
       "gpu.exception warning -"},
      {"amdgpu 0000:44:00.0: amdgpu: ring gfx_0.0.0 uses VM inv eng 0 on hub 0", ""},
      {"amdgpu 0000:44:00.0: amdgpu: Using BACO for runtime pm", ""},
      {"amdgpu 0000:44:00.0: PCI error: detected callback, state(2)!!", "pcie.recovery.begin warning 0000:44:00.0"},
      {"amdgpu 0000:44:00.0: amdgpu: XGMI: Set topology failure on device 1234, hive 5678, ret -22",
       "xgmi.error warning 0000:44:00.0"},
      {"amdgpu 0000:44:00.0: [drm] device wedged, needs recovery", "gpu.wedged critical 0000:44:00.0"},
      {"amdgpu 0000:44:00.0: [drm] device wedged, but no recovery needed", "gpu.wedged info 0000:44:00.0"},
      {"amdgpu 0000:44:00.0: [drm] *ERROR* [CRTC:81:crtc-0] flip_done timed out",
       "display.timeout warning 0000:44:00.0"},
  });
}

TEST(KlogWordings, AmdgpuComingUp) {
  expect({
      {"amdgpu 0000:05:00.0: probe with driver amdgpu failed with error -22", "init.failed critical 0000:05:00.0"},
      {"amdgpu: probe of 0000:05:00.0 failed with error -110", "init.failed critical 0000:05:00.0"},
      {"amdgpu 0000:05:00.0: Direct firmware load for amdgpu/gc_11_5_1_pfp.bin failed with error -2",
       "firmware.missing warning 0000:05:00.0"},
      {"amdgpu 0000:05:00.0: firmware: failed to load amdgpu/navi10_gpu_info.bin (-2)",
       "firmware.missing warning 0000:05:00.0"},
      {"platform regulatory.0: Direct firmware load for regulatory.db failed with error -2", ""},
      {"iwlwifi 0000:02:00.0: Direct firmware load for iwlwifi-ty-a0-gf-a0-89.ucode failed with error -2", ""},
      {"nvme: probe of 0000:05:00.0 failed with error -22", ""},
      {"amdgpu 0000:05:00.0: [drm:amdgpu_device_ip_init [amdgpu]] *ERROR* sw_init of IP block <psp> failed -19",
       "init.failed critical 0000:05:00.0"},
      {"amdgpu 0000:05:00.0: amdgpu: hw_init of IP block <mes_v12_0> failed -110", "init.failed critical 0000:05:00.0"},
      {"amdgpu 0000:05:00.0: amdgpu: failed to load ucode SDMA0(0x1)", "init.failed critical 0000:05:00.0"},
      {"amdgpu 0000:05:00.0: amdgpu: detected ip block number 4 <smu_v14_0_0> (smu)", ""},
  });
}

TEST(KlogWordings, OldKernels) {
  expect({
      {"[drm] IP block:gfx_v8_0 is hung!", "ring.timeout warning -"},
      {"[drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring gfx timeout, last signaled seq=1122, last emitted seq=1124",
       "ring.timeout warning -"},
      {"amdgpu 0000:01:00.0: GPU fault detected: 146 0x0480880c", "page_fault warning 0000:01:00.0"},
      {"kfd: qcm fence wait loop timeout expired", "hws.hang critical -"},
      {"kfd2kgd: cp queue preemption time out.", "hws.hang critical -"},
      {"[drm] stuck on render ring", "ring.timeout warning -"},
      {"drm/i915: Resetting chip after gpu hang", "gpu.reset.begin warning -"},
      {"pciehp 0000:00:01.1:pcie004: Slot(0): Link Down", "pcie.link.down info 0000:00:01.1"},
      {"nvidia 0000:65:00.0: AER: can't recover (no error_detected callback)",
       "pcie.recovery.failed critical 0000:65:00.0"},
      {"amdgpu 0000:05:00.0: amdgpu: failed to write reg 28b4 wait reg 28c6", "ring.timeout warning 0000:05:00.0"},
  });
}

TEST(KlogWordings, Radeon) {
  expect({
      {"radeon 0000:01:00.0: ring 0 stalled for more than 10240msec", "ring.timeout warning 0000:01:00.0"},
      {"radeon 0000:01:00.0: GPU lockup (current fence id 0x0000000000012345 last fence id 0x0000000000012350 on ring "
       "0)",
       "ring.timeout warning 0000:01:00.0"},
      {"radeon 0000:01:00.0: GPU softreset: 0x00000009", "gpu.reset.begin warning 0000:01:00.0"},
      {"radeon 0000:01:00.0: GPU pci config reset", "gpu.reset.begin warning 0000:01:00.0"},
      {"radeon 0000:01:00.0: GPU reset succeeded, trying to resume", "gpu.reset.succeeded info 0000:01:00.0"},
      {"radeon 0000:01:00.0: GPU reset failed", "gpu.reset.failed critical 0000:01:00.0"},
      {"radeon 0000:01:00.0: GPU fault detected: 146 0x0c035014", "page_fault warning 0000:01:00.0"},
      {"[drm:r600_ring_test [radeon]] *ERROR* radeon: ring 0 test failed (scratch(0x850C)=0xCAFEDEAD)",
       "init.failed critical -"},
      {"radeon 0000:01:00.0: disabling GPU acceleration", "init.failed critical 0000:01:00.0"},
      {"[drm] radeon kernel modesetting enabled.", ""},
      {"radeon 0000:01:00.0: VRAM: 1024M 0x0000000000000000 - 0x000000003FFFFFFF (1024M used)", ""},
  });
}

TEST(KlogWordings, NvidiaXids) {
  expect({
      {"NVRM: Xid (PCI:0000:65:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
       "xid critical 0000:65:00.0"},
      {"NVRM: Xid (PCI:0000:65:00): 13, pid=4242, name=python3, Graphics SM Warp Exception on (GPC 0, TPC 1, SM 0)",
       "xid warning 0000:65:00.0"},
      {"NVRM: Xid (0000:03:00): 31, Ch 00000008, engmask 00000101, intr 10000000", "xid warning 0000:03:00.0"},
      {"NVRM: Xid (PCI:0001:c1:00): 48, pid=1, DBE (double bit error) ECC Error", "xid critical 0001:c1:00.0"},
      {"NVRM: Xid (PCI:0000:65:00): 63, pid=1, Row Remapper: New row marked for remapping", "xid warning 0000:65:00.0"},
      {"NVRM: Xid (PCI:0000:65:00): 64, pid=1, Row Remapper: Failed to remap row", "xid critical 0000:65:00.0"},
      {"NVRM: Xid (PCI:0000:65:00): 45, pid=1, name=python3, Ch 00000008", "xid info 0000:65:00.0"},
      {"NVRM: Xid (PCI:0000:65:00): 94, pid=1, name=python3, Contained: SM (0x1). RST: No, D-RST: No",
       "xid warning 0000:65:00.0"},
      {"NVRM: Xid (PCI:0000:65:00): 119, pid=1, name=nvidia-smi, Timeout waiting for RPC from GSP!",
       "xid critical 0000:65:00.0"},
      {"NVRM: Xid (PCI:0000:65:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)",
       "xid critical 0000:65:00.0"},
      {"NVRM: Xid (PCI:0000:65:00): 999, something new", "xid warning 0000:65:00.0"},
      {"nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 30 LTSSM Fault Up", "xid critical 0000:c1:00.0"},
      {"nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 12028, Non-fatal, Link 30 egress non-posted PRIV error",
       "xid warning 0000:c1:00.0"},
      {"NVRM: GPU 0000:65:00.0: GPU has fallen off the bus.", "bus.lost critical 0000:65:00.0"},
      {"NVRM: GPU 0000:65:00.0: RmInitAdapter failed! (0x26:0x56:1474)", "init.failed critical 0000:65:00.0"},
      {"NVRM: The NVIDIA GPU 0000:65:00.0 (PCI ID: 10de:2330) installed in this system has fallen off the bus and is "
       "not "
       "responding to commands.",
       "bus.lost critical 0000:65:00.0"},
      {"nvidia: probe of 0000:65:00.0 failed with error -1", "init.failed critical 0000:65:00.0"},
      {"NVRM: GPU at PCI:0000:65:00: GPU-b850f46d-d5ea-c752-ddf3-c4453e44d3f7", ""},
      {"NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.54.15", ""},
      {"nvidia: module license 'NVIDIA' taints kernel.", ""},
  });
}

TEST(KlogWordings, XidsTellTheirProgramAndNumber) {
  const auto events =
      classify("NVRM: Xid (PCI:0000:65:00): 31, pid=4242, name=python3, Ch 00000008, intr 00000000. MMU Fault");
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].subject, "31");
  EXPECT_EQ(events[0].process, "python3");
  EXPECT_EQ(events[0].pid, 4242U);
}

TEST(KlogWordings, Nouveau) {
  expect({
      {"nouveau 0000:01:00.0: fifo: SCHED_ERROR 0a [CTXSW_TIMEOUT]", "ring.timeout warning 0000:01:00.0"},
      {"nouveau 0000:01:00.0: fifo: fault 00 [READ] at 0000000000000000 engine 00 [GR] client 0d [GPC0/T1_2] reason 02 "
       "[PTE] "
       "on channel 4 [007fb4d000 Xorg[1234]]",
       "page_fault warning 0000:01:00.0"},
      {"nouveau 0000:01:00.0: gr: TRAP ch 5 [003fb4d000 glxgears[999]]", "gpu.exception warning 0000:01:00.0"},
      {"nouveau 0000:01:00.0: DRM: GPU lockup - switching to software fbcon", "ring.timeout warning 0000:01:00.0"},
      {"nouveau 0000:01:00.0: fifo: channel 4: killed", "job.rejected warning 0000:01:00.0"},
      {"nouveau 0000:01:00.0: gsp: rc engn:00000001 chid:24 gfid:0 level:2 type:31 scope:1 part:233",
       "xid warning 0000:01:00.0"},
      {"nouveau 0000:01:00.0: bus: MMIO read of 00000000 FAULT at 409800 [ TIMEOUT ]",
       "gpu.exception info 0000:01:00.0"},
      {"nouveau 0000:01:00.0: DRM: VRAM: 4096 MiB", ""},
  });
}

TEST(KlogWordings, IntelI915) {
  expect({
      {"i915 0000:00:02.0: [drm] GPU HANG: ecode 12:1:85dffdfb, in Xorg [1234]", "ring.timeout warning 0000:00:02.0"},
      {"[drm] GPU HANG: ecode 9:0:0x84dffff8, in chrome [2345], reason: hang on rcs0, action: reset",
       "ring.timeout warning -"},
      {"i915 0000:00:02.0: [drm] Resetting rcs0 for stopped heartbeat on rcs0", "ring.reset.begin info 0000:00:02.0"},
      {"i915 0000:00:02.0: Resetting chip for stopped heartbeat on rcs0", "gpu.reset.begin warning 0000:00:02.0"},
      {"i915 0000:00:02.0: [drm] *ERROR* Failed to reset chip", "gpu.reset.failed critical 0000:00:02.0"},
      {"i915 0000:00:02.0: [drm] *ERROR* Failed to initialise HW following reset (-5)",
       "gpu.reset.failed critical 0000:00:02.0"},
      {"i915 0000:00:02.0: GPU recovery timed out, cancelling all in-flight rendering.",
       "gpu.wedged critical 0000:00:02.0"},
      {"i915 0000:00:02.0: [drm] *ERROR* Failed to initialize GPU, declaring it wedged!",
       "gpu.wedged critical 0000:00:02.0"},
      {"i915 0000:00:02.0: Direct firmware load for i915/tgl_guc_70.bin failed with error -2",
       "firmware.missing warning 0000:00:02.0"},
      {"i915 0000:00:02.0: [drm] Finished loading DMC firmware i915/tgl_dmc_ver2_12.bin (v2.12)", ""},
      {"i915 0000:00:02.0: [drm] VT-d active for gfx access", ""},
  });
}

TEST(KlogWordings, IntelXe) {
  expect({
      {"xe 0000:03:00.0: [drm] GT0: Timedout job: seqno=4294967169, lrc_seqno=4294967169, guc_id=2, flags=0x0 in "
       "glxgears [77]",
       "ring.timeout warning 0000:03:00.0"},
      {"xe 0000:03:00.0: [drm] Tile0: GT0: Timedout job: seqno=1, lrc_seqno=1, guc_id=6, flags=0x20 in llama-bench "
       "[260404]",
       "ring.timeout warning 0000:03:00.0"},
      {"xe 0000:03:00.0: [drm] Tile0: GT0: Engine reset: engine_class=bcs, logical_mask: 0x1, guc_id=6, state=0x3",
       "ring.reset.begin info 0000:03:00.0"},
      {"xe 0000:03:00.0: [drm] Tile0: GT0: Engine memory CAT error [18]: class=bcs, logical_mask: 0x1, guc_id=3",
       "page_fault warning 0000:03:00.0"},
      {"xe 0000:03:00.0: [drm] Tile0: GT0: Fault response: Unsuccessful -EINVAL", "page_fault warning 0000:03:00.0"},
      {"xe 0000:03:00.0: [drm] GT0: reset started", "gpu.reset.begin warning 0000:03:00.0"},
      {"xe 0000:03:00.0: [drm] GT0: reset done", "gpu.reset.succeeded info 0000:03:00.0"},
      {"xe 0000:03:00.0: [drm] *ERROR* GT0: reset failed (-ETIMEDOUT)", "gpu.reset.failed critical 0000:03:00.0"},
      {"xe 0000:03:00.0: [drm] *ERROR* CRITICAL: Xe has declared device 0000:03:00.0 as wedged.",
       "gpu.wedged critical 0000:03:00.0"},
      {"xe 0000:03:00.0: [drm] Xe device coredump has been created", "gpu.coredump info 0000:03:00.0"},
      {"xe 0000:03:00.0: [drm] GT0: trying reset from guc_exec_queue_timedout_job [xe]", ""},
      {"xe 0000:03:00.0: [drm] fb0: xedrmfb frame buffer device", ""},
  });
}

TEST(KlogWordings, XeTellsTheProgram) {
  const auto events =
      classify("xe 0000:03:00.0: [drm] GT0: Timedout job: seqno=1, guc_id=6, flags=0x20 in llama-bench [260404]");
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].process, "llama-bench");
  EXPECT_EQ(events[0].pid, 260404U);
}

}  // namespace
}  // namespace gpuhealth::klog
