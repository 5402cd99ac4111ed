// SPDX-License-Identifier: Apache-2.0
// Sources beside the kernel's files, through the real daemon: processes, NVML, librocm_smi64.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "sim/machine.hpp"
#include "tests/daemon/rig.hpp"
#include "tests/paths.hpp"

namespace gpuhealth {
namespace {

using test::id_of;
namespace fs = std::filesystem;

class SourcesTest : public ::testing::Test, protected test::Rig {
 protected:
  void put(const fs::path& file, const std::string& text) const {
    fs::create_directories((tree.path() / file).parent_path());
    std::ofstream(tree.path() / file) << text;
  }
  std::optional<dbus::DeviceView> device(dbus::Client& c, const std::string& id) const {
    const auto devices = c.devices();
    if (!devices) return std::nullopt;
    for (const auto& d : *devices) {
      if (d.id == id) return d;
    }
    return std::nullopt;
  }
  static std::optional<double> value(const dbus::DeviceView& d, ReadingId id) {
    for (const auto& r : d.readings) {
      if (r.id == id && r.status == ReadingStatus::Valid) return r.value;
    }
    return std::nullopt;
  }
  bool happened(const std::string& type, const std::string& part) const {
    return await([&](dbus::Client& c) {
      const auto events = c.events({}, wall_from_microseconds(8'000'000'000'000'000), 100);
      return events && std::ranges::any_of(*events, [&](const Event& e) {
               return e.type == type && e.text.find(part) != std::string::npos;
             });
    });
  }
  const sim::Card card_ = sim::idle_card(sim::rx7900xtx(), 0);
};

TEST_F(SourcesTest, WhoUsesAGpuIsOnTheBusWithoutAName) {
  plug(std::vector{card_});
  fs::create_directory(config / "gpuhealthd.yaml.d");
  std::ofstream(config / "gpuhealthd.yaml.d/clients.yaml") << "sampling:\n  clients: 500ms\n";
  put("proc/4242/stat", "4242 (secret) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 777 0 0\n");
  put("proc/4242/comm", "secret\n");
  put("proc/4242/fdinfo/5",
      fmt::format("drm-driver:\tamdgpu\ndrm-client-id:\t7\ndrm-pdev:\t{}\ndrm-memory-vram:\t2097152 KiB\n",
                  to_string(card_.place.gpu)));
  fs::create_directories(tree.path() / "proc/4242/fd");
  fs::create_symlink("/dev/dri/renderD128", tree.path() / "proc/4242/fd/5");
  start();
  EXPECT_TRUE(await([&](dbus::Client& c) {
    const auto d = device(c, id_of(card_));
    return d && d->clients.size() == 1 && d->clients[0].pid == 4242 && d->clients[0].started == 777 &&
           d->clients[0].vram_bytes == 2147483648ULL;
  }));
  auto c = client();
  const auto d = device(c, id_of(card_));
  ASSERT_TRUE(d);
  ASSERT_EQ(d->compute_nodes.size(), 1u);
  EXPECT_EQ(d->compute_nodes[0].gfx, "gfx1100");
  EXPECT_EQ(d->compute_nodes[0].render_minor, 128);
  EXPECT_TRUE(d->client_names.empty());
}

TEST_F(SourcesTest, AnNvidiaGpuBesideAnAmdOneIsReadAndBothStay) {
  plug(std::vector{card_});
  const fs::path gpu = "sys/bus/pci/devices/0000:41:00.0";
  put(gpu / "class", "0x030200\n");
  put(gpu / "vendor", "0x10de\n");
  put(gpu / "device", "0x2335\n");
  put(gpu / "config", std::string("\xde\x10\x35\x23", 4));
  fs::create_symlink("../../../bus/pci/drivers/nvidia", tree.path() / gpu / "driver");
  start({"GPUHEALTH_NVML_LIBRARY=" GPUHEALTH_BIN_DIR "/standin/libnvml.so"});
  const std::string id = "uid-GPU-7d3b6a1e-0001-0002-0003-000000000004";
  EXPECT_TRUE(await([&](dbus::Client& c) {
    const auto nvidia = device(c, id);
    const auto amd = device(c, id_of(card_));
    return nvidia && amd && value(*nvidia, ReadingId::TemperatureEdge) == 41 &&
           value(*amd, ReadingId::TemperatureEdge).has_value();
  }));
  auto c = client();
  const auto nvidia = device(c, id);
  ASSERT_TRUE(nvidia);
  EXPECT_EQ(nvidia->name, "NVIDIA H200");
  EXPECT_EQ(nvidia->throttle_reasons, std::vector<std::string>{"SW_POWER_CAP"});
  // Discoveries of either reader do not take the other's away.
  ASSERT_TRUE(await_samples(24));
  EXPECT_TRUE(device(c, id));
  EXPECT_TRUE(device(c, id_of(card_)));
}

// 250 W by the library, 303 W by the file; and what aborts is named, gone round, and the daemon stays up.
TEST_F(SourcesTest, ALibraryThatAbortsAndDisagreesIsReportedForBoth) {
  plug(std::vector{card_});
  configure(
      "sampling:\n  interval: 30s\n  slow-every: 1\ntelemetry:\n  source: both\n"
      "health:\n  sources-disagree:\n    count: 2\n    for: 0\n");
  const auto& at = card_.place.gpu;
  const auto pci =
      std::uint64_t{at.domain} << 32U | std::uint64_t{at.bus} << 8U | std::uint64_t{at.device} << 3U | at.function;
  start({"GPUHEALTH_TEST_SPEED=60", "GPUHEALTH_ROCM_SMI_LIBRARY=" GPUHEALTH_BIN_DIR "/standin/librsmi.so",
         fmt::format("STANDIN_RSMI_PCI={}", pci)});
  EXPECT_TRUE(happened("rocm-smi.ended", "in gpu_metrics_info_get of "));
  const auto condition = await_confirmed(ConditionType::SourcesDisagree, id_of(card_));
  ASSERT_TRUE(condition);
  EXPECT_EQ(condition->detail, "power.cap: the kernel's file says 303 W, librocm_smi64 250 W.");
  EXPECT_FALSE(daemon->wait(std::chrono::milliseconds(1)).has_value()) << "the daemon runs";
}

TEST_F(SourcesTest, ALibraryThatIsNotThereIsSaidAndTheFilesGoOn) {
  plug(std::vector{card_});
  configure(std::string(test::kFastConfig) + "telemetry:\n  source: both\n");
  start({"GPUHEALTH_ROCM_SMI_LIBRARY=/nowhere/librocm_smi64.so.1"});
  EXPECT_TRUE(happened("rocm-smi.unusable", "/nowhere/librocm_smi64.so.1 cannot be loaded"));
  EXPECT_TRUE(await_samples(3));
}

TEST_F(SourcesTest, WhereTheLibraryIsToCountItsReadingsStandInPlaceOfTheFiles) {
  plug(std::vector{card_});
  configure(std::string(test::kFastConfig) + "telemetry:\n  source: rocm-smi\n");
  const auto& at = card_.place.gpu;
  const auto pci =
      std::uint64_t{at.domain} << 32U | std::uint64_t{at.bus} << 8U | std::uint64_t{at.device} << 3U | at.function;
  start({"GPUHEALTH_ROCM_SMI_LIBRARY=" GPUHEALTH_BIN_DIR "/standin/librsmi.so", "GPUHEALTH_TEST_SPEED=10",
         fmt::format("STANDIN_RSMI_PCI={}", pci)});
  EXPECT_TRUE(await([&](dbus::Client& c) {
    const auto d = device(c, id_of(card_));
    return d && value(*d, ReadingId::PowerCap) == 250 && value(*d, ReadingId::ClockGfx) == 777 &&
           value(*d, ReadingId::TemperatureEdge).has_value();
  }));
}

}  // namespace
}  // namespace gpuhealth
