// SPDX-License-Identifier: Apache-2.0
// gpuhealth-reader --source nvml on a stand-in library, which does what a real card does not: hang, fail, be lost, be
// old.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include <boost/asio/io_context.hpp>

#include "telemetry/nvml_reader.hpp"
#include "telemetry/reader_pool.hpp"
#include "tests/paths.hpp"
#include "tests/support/temp_dir.hpp"

namespace gpuhealth::telemetry {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using R = ReadingId;
using S = ReadingStatus;

const PciAddress kGpu{0, 0x41, 0, 0};

class Nvml : public ::testing::Test {
 protected:
  void SetUp() override {
    setenv("STANDIN_NVML", orders_file().c_str(), 1);
    put("class", "0x030200\n");  // a 3D controller: no display, and no DRM node
    put("vendor", "0x10de\n");
    put("device", "0x2335\n");
    put("subsystem_vendor", "0x10de\n");
    put("subsystem_device", "0x18be\n");
    put("config", std::string("\xde\x10\x35\x23", 4));
    fs::create_symlink("../../../bus/pci/drivers/nvidia", dir() / "driver");
  }
  void TearDown() override { unsetenv("STANDIN_NVML"); }
  [[nodiscard]] std::string orders_file() const { return (root_.path() / "orders").string(); }
  [[nodiscard]] fs::path dir() const { return root_.path() / "sys/bus/pci/devices/0000:41:00.0"; }
  void put(const fs::path& file, const std::string& text) const {
    fs::create_directories((dir() / file).parent_path());
    std::ofstream(dir() / file) << text;
  }
  void order(const std::string& text) const { std::ofstream(orders_file()) << text; }
  static std::string library(const char* which) { return std::string(GPUHEALTH_BIN_DIR "/standin/") + which; }

  std::vector<Frame> answer(RequestKind kind, bool slow = true) {
    Request request;
    request.kind = kind;
    request.slow = slow;
    request.tick = 5;
    if (kind == RequestKind::Sample) request.devices = {pack(kGpu)};
    std::vector<std::uint8_t> bytes;
    reader_->answer(request, bytes);
    FrameParser parser;
    parser.feed(bytes);
    std::vector<Frame> frames;
    for (auto frame = parser.next(); frame && *frame; frame = parser.next()) frames.push_back(std::move(**frame));
    return frames;
  }
  Sample sample(bool slow = true) {
    for (auto& frame : answer(RequestKind::Sample, slow)) {
      if (auto* of = std::get_if<SampleFrame>(&frame)) return of->sample;
    }
    return {};
  }
  static S status(const Sample& s, R id) {
    const auto* reading = s.find(id);
    return reading == nullptr ? S::Unsupported : reading->status;
  }

  test::TempDir root_;
  ManualClock clock_{{wall_from_microseconds(1), {1'000'000'000}}};
  std::unique_ptr<NvmlReader> reader_ =
      std::make_unique<NvmlReader>(root_.string(), library("libnvml.so"), clock_, nullptr);
};

TEST_F(Nvml, ACardWithoutADrmNodeIsFoundOnTheBusAndNamedByTheLibrary) {
  const auto frames = answer(RequestKind::Discover);
  const auto& found = std::get<DevicesFrame>(frames.at(0)).devices;
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].name, "NVIDIA H200");
  EXPECT_EQ(found[0].id(), "uid-GPU-7d3b6a1e-0001-0002-0003-000000000004");
  EXPECT_EQ(found[0].vbios_version, "96.00.AF.00.01");
  EXPECT_EQ(found[0].driver, "nvidia");
  EXPECT_EQ(found[0].device_id, 0x2335);
}

TEST_F(Nvml, ACardOfAnotherDriverIsNotAsked) {
  fs::remove(dir() / "driver");
  fs::create_symlink("../../../bus/pci/drivers/vfio-pci", dir() / "driver");
  const auto frames = answer(RequestKind::Discover);
  EXPECT_TRUE(std::get<DevicesFrame>(frames.at(0)).devices.empty());
  EXPECT_EQ(std::get<DevicesFrame>(frames.at(0)).notes.at(0), "0000:41:00.0: NVIDIA GPU, driver vfio-pci; not watched");
}

TEST_F(Nvml, ReadingsAreTheLibrarysInOurUnits) {
  const auto s = sample();
  const std::map<R, double> expected = {{R::TemperatureEdge, 41},
                                        {R::TemperatureMemory, 52},
                                        {R::TemperatureEdgeCritical, 92},
                                        {R::TemperatureEdgeEmergency, 95},
                                        {R::TemperatureMemoryCritical, 105},
                                        {R::PowerAverage, 117},
                                        {R::PowerInput, 121.5},
                                        {R::PowerCap, 700},
                                        {R::PowerCapDefault, 700},
                                        {R::PowerCapMin, 200},
                                        {R::PowerCapMax, 700},
                                        {R::ClockGfx, 1980},
                                        {R::ClockMemory, 3201},
                                        {R::ClockGfxMax, 1980},
                                        {R::UtilizationGfx, 97},
                                        {R::UtilizationMemory, 33},
                                        {R::UtilizationMedia, 5},
                                        {R::VramTotal, 150754820096.0},
                                        {R::VramUsed, 4294967296.0},
                                        {R::VramVisibleTotal, 274877906944.0},
                                        {R::PcieSpeed, 32},
                                        {R::PcieSpeedMax, 32},
                                        {R::PcieWidth, 16},
                                        {R::PcieReplays, 7},
                                        {R::VramBadPages, 3},
                                        {R::VramRetirePending, 1},
                                        {R::VramRemapFailed, 0},
                                        {R::MigMode, 0},
                                        {R::PcieAnswers, 1},
                                        {ras_reading(0, RasKind::Correctable), 4},
                                        {ras_reading(0, RasKind::Uncorrectable), 0},
                                        {ras_reading(2, RasKind::Correctable), 1}};
  for (const auto& [id, value] : expected) {
    ASSERT_TRUE(s.value(id)) << find_reading(id)->name;
    EXPECT_DOUBLE_EQ(*s.value(id), value) << find_reading(id)->name;
  }
  EXPECT_EQ(status(s, R::FanPercent), S::Unsupported);
  EXPECT_EQ(s.performance_level, "P0");
  EXPECT_TRUE(s.throttle_known);
  ThrottleSet limit;
  limit.insert(ThrottleReason::SwPowerCap);
  EXPECT_EQ(s.throttle, limit) << "being idle is no throttling";
  for (std::size_t i = 1; i < s.readings.size(); ++i) EXPECT_LT(s.readings[i - 1].id, s.readings[i].id);
}

TEST_F(Nvml, AnOldDriverLacksFunctionsAndTheRestIsRead) {
  reader_ = std::make_unique<NvmlReader>(root_.string(), library("libnvml-old.so"), clock_, nullptr);
  const auto s = sample();
  EXPECT_EQ(s.value(R::PowerAverage), 118.25);
  EXPECT_EQ(status(s, R::PowerInput), S::Unsupported);
  EXPECT_EQ(status(s, R::TemperatureMemory), S::Unsupported);
  EXPECT_EQ(status(s, R::MigMode), S::Unsupported);
  EXPECT_EQ(s.value(R::VramUsed), 5368709120.0);
  EXPECT_EQ(s.value(R::VramBadPages), 5);
  EXPECT_EQ(s.value(ras_reading(0, RasKind::Correctable)), 12);
  EXPECT_EQ(s.value(ras_reading(0, RasKind::Uncorrectable)), 1);
  EXPECT_TRUE(s.throttle_known);
}

TEST_F(Nvml, ClientsComeWithASlowSample) {
  std::map<std::uint32_t, GpuClient> clients;
  bool complete = false;
  for (auto& frame : answer(RequestKind::Sample)) {
    if (auto* of = std::get_if<ClientsFrame>(&frame)) {
      complete = of->look.complete;
      for (const auto& c : of->look.clients) clients[c.pid] = c;
    }
  }
  ASSERT_EQ(clients.size(), 2u);
  EXPECT_TRUE(complete);
  EXPECT_EQ(clients[4242].vram_bytes, 3221225472ULL);
  EXPECT_TRUE(clients[4242].queues);
  EXPECT_FALSE(clients[4343].vram_bytes) << "not told, as in a container";
  for (const auto& frame : answer(RequestKind::Sample, false))
    EXPECT_FALSE(std::holds_alternative<ClientsFrame>(frame));
}

TEST_F(Nvml, ALostGpuFailsInAllReadingsAndComesBack) {
  sample();
  order("lost\n");
  auto s = sample();
  for (const auto id : {R::TemperatureEdge, R::PowerAverage, R::ClockGfx, R::UtilizationGfx}) {
    EXPECT_EQ(status(s, id), S::Unreadable);
    EXPECT_EQ(s.find(id)->sys_errno, ENODEV);
  }
  EXPECT_FALSE(s.throttle_known);
  order("");
  sample();
  s = sample();
  EXPECT_EQ(s.value(R::TemperatureEdge), 41);
}

TEST_F(Nvml, TheBusItselfIsAskedBesideTheLibrary) {
  put("config", std::string("\xff\xff\xff\xff", 4));
  EXPECT_EQ(sample().value(R::PcieAnswers), 0);
}

TEST_F(Nvml, OneFunctionThatFailsTakesNoOtherWithIt) {
  sample();
  order(
      "code nvmlDeviceGetTemperature 999\ncode nvmlDeviceGetUtilizationRates 4\ncode nvmlDeviceGetPcieReplayCounter "
      "3\n");
  const auto s = sample();
  EXPECT_EQ(status(s, R::TemperatureEdge), S::Unreadable);
  EXPECT_EQ(s.find(R::TemperatureEdge)->sys_errno, EIO);
  EXPECT_EQ(s.find(R::UtilizationGfx)->sys_errno, EACCES);
  EXPECT_EQ(status(s, R::PcieReplays), S::Unreadable) << "it worked before: it is not unsupported";
  EXPECT_EQ(s.value(R::PowerCap), 700);
}

TEST_F(Nvml, WhatIsNoTemperatureIsImplausible) {
  order("code nvmlDeviceGetFieldValues 3\n");
  const auto s = sample();
  EXPECT_EQ(status(s, R::TemperatureMemory), S::Unsupported);
  EXPECT_EQ(s.value(R::PowerAverage), 118.25) << "the older function has the power";
}

TEST_F(Nvml, ASleepingGpuIsNotAsked) {
  answer(RequestKind::Discover);
  sample();
  put("power/runtime_status", "suspended\n");
  order("abort nvmlDeviceGetHandleByPciBusId_v2\nabort nvmlInit_v2\nabort nvmlDeviceGetTemperature\n");
  const auto s = sample();
  EXPECT_EQ(s.power, PowerState::Suspended);
  EXPECT_EQ(status(s, R::TemperatureEdge), S::Asleep);
  const auto frames = answer(RequestKind::Discover);
  EXPECT_EQ(std::get<DevicesFrame>(frames.at(0)).devices.at(0).name, "NVIDIA H200") << "it keeps its name";
}

TEST_F(Nvml, AGpuAtRestThatMaySleepIsLeftAlone) {
  put("power/control", "auto\n");
  put("power/runtime_status", "active\n");
  sample();  // busy at 97 %: asked again at once
  order("abort nvmlInit_v2\n");
  EXPECT_EQ(sample().value(R::TemperatureEdge), 41) << "the library is still open";
  order("code nvmlDeviceGetUtilizationRates 0\n");
}

TEST_F(Nvml, ALibraryThatIsNotThereIsSaid) {
  reader_ = std::make_unique<NvmlReader>(root_.string(), "/nowhere/libnvidia-ml.so.1", clock_, nullptr);
  const auto frames = answer(RequestKind::Discover);
  const auto& frame = std::get<DevicesFrame>(frames.at(0));
  ASSERT_EQ(frame.notes.size(), 1u);
  EXPECT_NE(frame.notes[0].find("NVIDIA GPUs cannot be read"), std::string::npos) << frame.notes[0];
}

// The pool's own process: what hangs and what aborts.
class NvmlPool : public Nvml {
 protected:
  void start() {
    ReaderPool::Options options;
    options.program = GPUHEALTH_BIN_DIR "/gpuhealth-reader";
    options.sysroot = root_.string();
    options.arguments = {"--source", "nvml", "--library", library("libnvml.so")};
    options.patience = 100ms;
    options.deadline = 500ms;
    options.first_retry = 100ms;
    options.last_retry = 400ms;
    ReaderPool::Handlers on;
    on.devices = [this](const DevicesFrame& frame) { devices_ = frame.devices.size(); };
    on.sample = [this](const PciAddress&, Sample& s) { last_ = s, ++samples_; };
    on.gone = [](const PciAddress&) {};
    on.stuck = [this](const PciAddress&, bool stuck, const std::string& what) { stuck_ = stuck ? what : ""; };
    on.log = [](Severity, const std::string&) {};
    pool_ = std::make_unique<ReaderPool>(io_, options, on);
    pool_->discover();
  }
  template <class Done>
  void run_until(Done done) {
    const auto limit = std::chrono::steady_clock::now() + 30s;
    auto next = std::chrono::steady_clock::now();
    while (!done() && std::chrono::steady_clock::now() < limit) {
      if (devices_ && std::chrono::steady_clock::now() >= next) {
        pool_->sample(true);
        next = std::chrono::steady_clock::now() + 150ms;
      }
      io_.restart();
      io_.run_one_for(50ms);
    }
    ASSERT_TRUE(done());
  }
  boost::asio::io_context io_{1};
  std::optional<std::size_t> devices_;
  Sample last_;
  int samples_ = 0;
  std::string stuck_;
  std::unique_ptr<ReaderPool> pool_;
};

TEST_F(NvmlPool, AHangIsNamedAndEndsWhenItIsOver) {
  start();
  run_until([this] { return samples_ > 0; });
  order("hang nvmlDeviceGetClockInfo\n");
  run_until([this] { return !stuck_.empty(); });
  EXPECT_EQ(stuck_, "nvml clocks");
  order("");
  run_until([this] { return stuck_.empty(); });
  EXPECT_EQ(last_.value(R::ClockGfx), 1980);
}

TEST_F(NvmlPool, ALibraryThatAbortsIsNamedAndTriedAgain) {
  start();
  run_until([this] { return samples_ > 0; });
  order("abort nvmlDeviceGetRemappedRows\n");
  run_until([this] { return !stuck_.empty(); });
  EXPECT_EQ(stuck_, "nvml retired memory (it ended the reader)");
  order("");
  run_until([this] { return stuck_.empty(); });
}

}  // namespace
}  // namespace gpuhealth::telemetry
