// SPDX-License-Identifier: Apache-2.0
// The logs of other people's machines: what each says, read by eye from its text.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "klog_support.hpp"
#include "tests/support/captures.hpp"

namespace gpuhealth::klog {
namespace {

namespace fs = std::filesystem;
using test::Said;

class KlogCaptures : public testing::Test {
 protected:
  void SetUp() override {
    CAPTURES_OR_RETURN(dir);
    folder_ = dir;
  }
  [[nodiscard]] std::string read(const std::string& file) const {
    std::ifstream in(folder_ / file);
    EXPECT_TRUE(in) << file;
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
  }
  fs::path folder_;
};

const std::map<std::string, Said> kFaults = {
    {"6600m-sw-ctf-shutdown",
     {"1 thermal.over_limit critical 0000:03:00.0 x1", "2 thermal.shutdown critical 0000:03:00.0 x1"}},
    {"6900xt-smu-not-done", {"1 smu.unresponsive critical 0000:09:00.0 x2"}},
    {"780m-reset-loop",
     {"3 gpu.reset.succeeded info 0000:c6:00.0 x1", "4 mes.hang critical 0000:c6:00.0 x1",
      "7 queue.evict_failed warning 0000:c6:00.0 x3", "10 gpu.reset.begin warning 0000:c6:00.0 x1"}},
    {"aarch64-aer-replay-old-format", {"2 pcie.aer.correctable warning 0000:07:00.0 x1"}},
    {"atombios-stuck-reset2-failed-22",
     {"3 init.failed critical 0000:02:00.0 x3", "4 gpu.reset.failed critical 0000:02:00.0 x1",
      "7 ring.timeout warning - x1", "9 gpu.reset.begin warning 0000:02:00.0 x1"}},
    {"fiji-fatal-malformed-tlp",
     {"2 pcie.aer.fatal critical 0000:00:1c.4 x1", "10 pcie.recovery.failed critical 0000:00:1c.4 x1"}},
    {"fiji-qcm-no-device-prefix", {"1 hws.hang critical - x1", "3 queue.evict_failed warning - x1"}},
    {"gfx11-illegal-opcode-mode1-vramlost",
     {"1 ring.timeout warning 0000:2d:00.0 x1", "3 gpu.exception warning - x1", "4 mes.hang critical 0000:2d:00.0 x1",
      "7 ring.reset.failed warning 0000:2d:00.0 x1", "8 gpu.reset.begin warning 0000:2d:00.0 x1",
      "10 gpu.reset.succeeded info 0000:2d:00.0 x1", "11 vram.lost warning 0000:2d:00.0 x1"}},
    {"gfx11-ring-reset-fail-mode2-ok",
     {"1 gpu.coredump info 0000:c5:00.0 x1", "3 ring.timeout warning 0000:c5:00.0 x1",
      "5 ring.reset.begin info 0000:c5:00.0 x1", "6 ring.reset.failed warning 0000:c5:00.0 x1",
      "7 gpu.reset.begin warning 0000:c5:00.0 x1", "8 mes.hang critical 0000:c5:00.0 x1", "10 init.failed warning - x1",
      "12 gpu.reset.succeeded info 0000:c5:00.0 x1"}},
    {"gfx1103-mes-reset4-ok-wedged-recovered",
     {"3 gpu.reset.succeeded info 0000:c5:00.0 x1", "4 gpu.wedged info 0000:c5:00.0 x1",
      "5 mes.hang critical 0000:c5:00.0 x1"}},
    {"gfx1150-gfxhub-pagefault", {"1 page_fault warning 0000:c2:00.0 x1"}},
    {"gfx1151-mes-mode2-ok",
     {"1 mes.hang critical 0000:c1:00.0 x1", "4 queue.evict_failed warning 0000:c1:00.0 x3",
      "5 gpu.reset.begin warning 0000:c1:00.0 x1", "12 gpu.reset.succeeded info 0000:c1:00.0 x1",
      "14 gpu.coredump info 0000:c1:00.0 x1"}},
    {"gfxhub0-noretry-pagefault", {"1 page_fault warning 0000:c6:00.0 x1"}},
    {"kfd-old-pci-config-reset", {}},
    {"lost-from-bus-kr",
     {"2 ring.reset.begin info - x1", "3 ring.reset.failed warning - x1", "4 gpu.reset.begin warning - x1",
      "5 bus.lost critical - x1", "6 gpu.reset.failed critical - x1"}},
    {"mi100-apei-pcie-corrected", {"10 pcie.aer.correctable warning 0000:20:03.1 x1"}},
    {"mi100-hbm-thermal-throttle", {"1 thermal.throttle warning 0000:29:00.0 x1"}},
    {"mi100-runtimepm-smc-not-ready",
     {"7 smu.unresponsive critical 0000:03:00.0 x1", "10 init.failed critical 0000:03:00.0 x1",
      "17 smu.unresponsive critical 0000:83:00.0 x1"}},
    {"mi210-psp-ring-bad-xgmi-bridge", {"2 init.failed critical - x3"}},
    {"mi300x-invalid-ip-discovery", {"3 init.failed critical 0000:05:00.0 x3"}},
    {"mi50-athub-ras-reset-fail",
     {"3 ras.uncorrectable critical 0000:e3:00.0 x1", "4 gpu.reset.begin warning 0000:e3:00.0 x1",
      "6 smu.unresponsive critical 0000:e3:00.0 x2"}},
    {"mi50-umc-1ce-1ue",
     {"1 ras.uncorrectable critical 0000:08:00.0 x1", "2 ras.correctable warning 0000:08:00.0 x1",
      "3 ras.uncorrectable critical 0000:08:00.0 x1", "4 gpu.reset.begin warning - x1"}},
    {"navi-smu-dead-during-reset",
     {"2 gpu.reset.begin warning 0000:03:00.0 x1", "4 display.timeout warning - x3",
      "7 init.failed critical 0000:03:00.0 x2", "11 smu.unresponsive critical 0000:03:00.0 x1"}},
    {"navi10-ih-overflow-then-timeout", {"4 irq.overflow warning 0000:44:00.0 x1", "5 ring.timeout warning - x1"}},
    {"navi3x-aer-badtlp-init-fail",
     {"2 pcie.aer.correctable warning 0000:01:00.0 x1", "6 pcie.aer.correctable warning 0000:00:01.0 x1",
      "13 init.failed critical 0000:03:00.0 x2"}},
    {"pagefault-one-line-process", {"1 page_fault warning 0000:2b:00.0 x1"}},
    {"polaris-vmfault-ih-overflow",
     {"2 page_fault warning 0000:0c:00.0 x1", "3 irq.overflow warning 0000:0c:00.0 x1", "4 irq.lost warning - x1"}},
    {"polaris12-missing-firmware",
     {"8 firmware.missing warning 0000:01:00.0 x1", "13 init.failed critical 0000:01:00.0 x1"}},
    {"qcom-aer-unrelated", {}},
    {"rdna4-sdma-pagefault", {"1 queue.evict_failed warning - x1", "2 page_fault warning 0000:0e:00.0 x1"}},
    {"renoir-psp-resume-fail", {"5 init.failed critical 0000:05:00.0 x3"}},
    {"reset1-failed-vram-lost-psp-62",
     {"2 vram.lost warning - x1", "4 init.failed critical - x3", "7 gpu.reset.failed critical 0000:0b:00.0 x1",
      "12 hws.hang critical - x1", "14 bus.lost warning 0000:0b:00.1 x1"}},
    {"soft-recovered-7900xtx", {"1 ring.recovered info 0000:03:00.0 x1"}},
    {"soft-recovered-old-then-parser", {"1 job.rejected warning - x2", "2 ring.recovered info - x1"}},
    {"steamdeck-sdma0-timeout-pid0",
     {"3 ring.timeout warning - x1", "5 gpu.reset.begin warning 0000:04:00.0 x1",
      "7 gpu.reset.succeeded info 0000:04:00.0 x1"}},
    {"strixhalo-mes-kfd-source3",
     {"1 mes.hang critical 0000:c5:00.0 x2", "4 queue.evict_failed warning 0000:c5:00.0 x4",
      "6 gpu.reset.begin warning 0000:c5:00.0 x1"}},
    {"vcn-resume-fail-110", {"3 init.failed critical 0000:03:00.0 x2", "5 gpu.reset.failed critical 0000:03:00.0 x1"}},
    {"vega-apu-reset2-failed-110",
     {"2 init.failed critical 0000:05:00.0 x2", "5 gpu.reset.failed critical 0000:05:00.0 x1",
      "8 ring.timeout warning - x1"}},
    {"vega-apu-softrecovered-after-failed-reset",
     {"2 init.failed critical 0000:06:00.0 x2", "4 gpu.reset.failed critical 0000:06:00.0 x1",
      "6 ring.recovered info - x2", "8 ring.timeout warning - x1"}},
    {"vega64-cs-rejected-storm", {"3 job.rejected warning - x3"}},
};

TEST_F(KlogCaptures, EveryFaultIsNamedOnItsDevice) {
  std::set<std::string> seen;
  for (const auto& entry : fs::directory_iterator(folder_ / "klog")) {
    const auto name = entry.path().filename().string();
    seen.insert(name);
    const auto expected = kFaults.find(name);
    ASSERT_NE(expected, kFaults.end()) << name << ": nobody has written down what it says";
    EXPECT_EQ(test::said_of(read("klog/" + name + "/log.txt")), expected->second) << name;
  }
  EXPECT_EQ(seen.size(), kFaults.size());
}

TEST_F(KlogCaptures, HealthyBootsSayNothing) {
  int logs = 0;
  for (const auto& entry : fs::directory_iterator(folder_ / "klog-benign")) {
    for (const auto& file : fs::directory_iterator(entry.path())) {
      if (file.path().extension() != ".log" && file.path().filename() != "log.txt") continue;
      ++logs;
      EXPECT_EQ(test::said_of(read(fs::relative(file.path(), folder_))), Said{}) << file.path();
    }
  }
  EXPECT_EQ(logs, 5);
}

TEST_F(KlogCaptures, AWholeBootShowsTheCrashAndNothingBeforeIt) {
  EXPECT_EQ(test::said_of(read("klog-full/navi22-6700xt-crash1/kernel.log")),
            (Said{"1371 gpu.exception warning - x1", "1372 ring.timeout warning - x1",
                  "1374 gpu.reset.begin warning 0000:0b:00.0 x1", "1381 vram.lost warning - x1",
                  "1415 gpu.reset.succeeded info 0000:0b:00.0 x1", "1559 job.rejected warning - x2"}));
}

TEST_F(KlogCaptures, AMachineCheckOfTheCpuIsNoErrorOfAGpu) {
  // Lines 133 to 218 of the vendor's test text: two RAS lines of a GPU among machine checks that use the same words.
  std::set<std::string> types;
  for (const auto& event : classify(read("klog-vendor-synthetic/node-scraper-unit-lines/lines.log"))) {
    if (event.line < 133) continue;
    types.insert(std::string(info(event.type).name));
    EXPECT_NE(event.text.find("amdgpu"), std::string::npos) << event.text;
  }
  EXPECT_EQ(types, std::set<std::string>{"ras.correctable"});
}

}  // namespace
}  // namespace gpuhealth::klog
