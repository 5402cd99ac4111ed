// SPDX-License-Identifier: Apache-2.0
// The way from a line of the kernel log to an event on the bus and in history.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/machine.hpp"
#include "tests/daemon/rig.hpp"

namespace gpuhealth {
namespace {

using test::id_of;

class KernelLog : public ::testing::Test, protected test::Rig {
 protected:
  void SetUp() override {
    plug(std::vector{a_, b_});
    std::filesystem::create_directories(tree.path() / "dev");
    const auto path = tree.path() / "dev/kmsg";
    ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
    kernel_.reset(open(path.c_str(), O_RDWR | O_CLOEXEC));
  }
  void print(std::uint64_t sequence, const std::string& text) const {
    const auto line = "3," + std::to_string(sequence) + "," + std::to_string(sequence * 1000) + ",-;" + text + "\n";
    ASSERT_EQ(write(kernel_.get(), line.data(), line.size()), static_cast<ssize_t>(line.size()));
  }
  [[nodiscard]] std::vector<Event> events(const std::string& type) const {
    auto c = client();
    std::vector<Event> out;
    const auto all = c.events(WallTime{}, WallTime::max(), 1000);
    if (!all) return out;
    for (const auto& event : *all)
      if (event.type == type) out.push_back(event);
    return out;
  }
  bool await_event(const std::string& type) const {
    return await([&](dbus::Client&) { return !events(type).empty(); });
  }
  [[nodiscard]] bool is_open(ConditionType type, const std::string& device) const {
    auto c = client();
    const auto open = c.conditions();
    return open && test::find(*open, type, device).has_value();
  }
  [[nodiscard]] std::string failed_reset() const {
    return "amdgpu " + to_string(a_.place.gpu) + ": GPU reset(2) failed";
  }

  const sim::Card a_ = sim::idle_card(sim::rx7900xtx(), 0);
  const sim::Card b_ = sim::idle_card(sim::rx6900xt(), 1);
  Fd kernel_;
};

TEST_F(KernelLog, ALineBecomesAnEventOfItsDevice) {
  print(1, failed_reset());  // before the daemon is there
  start();
  ASSERT_TRUE(await_event("gpu.reset.failed"));
  const auto found = events("gpu.reset.failed");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].device, id_of(a_));
  EXPECT_EQ(found[0].severity, Severity::Critical);
  EXPECT_EQ(found[0].text, "the reset did not bring the GPU back: " + failed_reset());
}

TEST_F(KernelLog, TheBusTellsItAtOnce) {
  start();
  test::Listener listener(bus.address());
  listener.listen();
  print(1, failed_reset());
  // The device's own arrival may be told first.
  for (;;) {
    const auto signal = listener.wait_for("EventHappened", "/org/gpuhealth1");
    std::uint64_t time = 0;
    const char* type = nullptr;
    const char* severity = nullptr;
    const char* device = nullptr;
    ASSERT_GT(sd_bus_message_read(signal.get(), "tsss", &time, &type, &severity, &device), 0);
    if (std::string(type) != "gpu.reset.failed") continue;
    EXPECT_STREQ(severity, "critical");
    EXPECT_EQ(device, id_of(a_));
    EXPECT_GT(time, 0U);
    return;
  }
}

TEST_F(KernelLog, ARestartTellsNothingTwice) {
  print(1, failed_reset());
  start();
  ASSERT_TRUE(await_event("gpu.reset.failed"));
  ASSERT_EQ(stop(), 0);
  print(1, failed_reset());  // the ring still has it
  print(2, "amdgpu " + to_string(b_.place.gpu) + ": VRAM is lost due to GPU reset!");
  start();
  ASSERT_TRUE(await_event("vram.lost"));
  EXPECT_EQ(events("gpu.reset.failed").size(), 1U);
  EXPECT_EQ(events("vram.lost")[0].device, id_of(b_));
}

TEST_F(KernelLog, WhatWasOverwrittenIsSaid) {
  print(1, "a");
  start();
  ASSERT_TRUE(await_samples(1));
  print(9, failed_reset());
  ASSERT_TRUE(await_event("klog.lost"));
  EXPECT_EQ(events("klog.lost")[0].text,
            "7 lines of the kernel log were overwritten before they could be read; what they said is not known");
}

TEST_F(KernelLog, ALineThatNamesNoDeviceIsNobodysWhereThereAreTwo) {
  start();
  print(1, "[drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring gfx timeout, signaled seq=1, emitted seq=3");
  ASSERT_TRUE(await_event("ring.timeout"));
  EXPECT_EQ(events("ring.timeout")[0].device, "");
}

TEST_F(KernelLog, AFailedResetIsAConditionWithTheKernelsWords) {
  start();
  print(1, failed_reset());
  const auto hang = await_confirmed(ConditionType::GpuHang, id_of(a_));
  ASSERT_TRUE(hang);
  ASSERT_EQ(hang->evidence.size(), 1U);
  EXPECT_EQ(hang->evidence[0].value, failed_reset());
  EXPECT_FALSE(is_open(ConditionType::GpuHang, id_of(b_)));
}

}  // namespace
}  // namespace gpuhealth
