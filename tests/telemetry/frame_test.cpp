// SPDX-License-Identifier: Apache-2.0
#include "telemetry/frame.hpp"

#include <gtest/gtest.h>

#include <random>

namespace gpuhealth::telemetry {
namespace {

SampleFrame a_sample() {
  SampleFrame frame;
  frame.tick = 7;
  frame.device = 0x0003'0000;
  frame.sample.power = PowerState::Suspended;
  frame.sample.throttle.insert(ThrottleReason::TempMem);
  frame.sample.throttle_gated.insert(ThrottleReason::Ppt0);
  frame.sample.throttle_known = true;
  frame.sample.performance_level = "manual";
  frame.sample.power_profile = "COMPUTE";
  frame.sample.readings = {{ReadingId::TemperatureEdge, ReadingStatus::Valid, 0, 45.5},
                           {ReadingId::PowerAverage, ReadingStatus::Unreadable, 5, 0},
                           {ras_reading(0, RasKind::Deferred), ReadingStatus::Valid, 0, 3}};
  return frame;
}

Frame only_frame(const std::vector<std::uint8_t>& bytes) {
  FrameParser parser;
  parser.feed(bytes);
  auto frame = parser.next();
  EXPECT_TRUE(frame);
  EXPECT_TRUE(frame && *frame);
  return frame && *frame ? std::move(**frame) : Frame{};
}

TEST(Frames, ASampleArrivesAsItWasSent) {
  std::vector<std::uint8_t> bytes;
  append_frame(bytes, a_sample());
  const auto frame = std::get<SampleFrame>(only_frame(bytes));
  EXPECT_EQ(frame.tick, 7u);
  EXPECT_EQ(frame.device, 0x0003'0000u);
  EXPECT_TRUE(frame.present);
  EXPECT_EQ(frame.sample.power, PowerState::Suspended);
  EXPECT_EQ(frame.sample.readings, a_sample().sample.readings);
  EXPECT_EQ(frame.sample.throttle, a_sample().sample.throttle);
  EXPECT_EQ(frame.sample.throttle_gated, a_sample().sample.throttle_gated);
  EXPECT_EQ(frame.sample.performance_level, "manual");
  EXPECT_EQ(frame.sample.power_profile, "COMPUTE");
}

TEST(Frames, ClientsArriveAsTheyWereSent) {
  ClientsFrame sent;
  sent.tick = 9;
  sent.device = 0x0003'0000;
  sent.look.time = {77};
  sent.look.complete = true;
  sent.look.processors = 64;
  GpuClient full;
  full.pid = 4242;
  full.started = 123456789;
  full.vram_bytes = 1ULL << 40U;
  full.gtt_bytes = 2;
  full.evicted_bytes = 3;
  full.open = full.queues = full.library = true;
  full.engine_percent = 12.5;
  full.cpu_percent = 800;
  full.thread_system_percent = 99;
  full.thread_user_percent = 0;
  full.read_bytes_per_s = 1e9;
  GpuClient bare;
  bare.pid = 1;
  sent.look.clients = {bare, full};
  std::vector<std::uint8_t> bytes;
  append_frame(bytes, sent);
  const auto frame = std::get<ClientsFrame>(only_frame(bytes));
  EXPECT_EQ(frame.tick, 9u);
  EXPECT_EQ(frame.device, 0x0003'0000u);
  EXPECT_EQ(frame.look.time.us, 77);
  EXPECT_TRUE(frame.look.complete);
  EXPECT_EQ(frame.look.processors, 64u);
  EXPECT_EQ(frame.look.clients, sent.look.clients);
}

TEST(Frames, ADeviceArrivesAsItWasSent) {
  DevicesFrame sent;
  DeviceInfo d;
  d.pci = {0x10000, 3, 0, 1};
  d.vendor_id = 0x1002;
  d.device_id = 0x744c;
  d.subsystem_vendor = 0x1da2;
  d.revision = 0xc8;
  d.family = AsicFamily::Navi3x;
  d.name = "AMD Radeon RX 7900 XTX";
  d.other_names = {"a", "b"};
  d.firmware = {{"smc", "0x004e7e00"}};
  d.unique_id = "5ee0000000000001";
  d.compute_nodes = {{1, 4711, 0, "gfx942", 128, 38}, {2, 4712, 1, "gfx942", -1, 38}};
  d.compute_partition = "CPX";
  d.memory_partition = "NPS4";
  d.xgmi_peers = {{0, 5, 0, 0}, {1, 0x26, 0, 0}};
  sent.devices.push_back(d);
  sent.untouched = {42};
  sent.notes = {"note"};
  std::vector<std::uint8_t> bytes;
  append_frame(bytes, sent);
  const auto frame = std::get<DevicesFrame>(only_frame(bytes));
  ASSERT_EQ(frame.devices.size(), 1u);
  const auto& got = frame.devices[0];
  EXPECT_EQ(got.pci, d.pci);
  EXPECT_EQ(got.device_id, 0x744c);
  EXPECT_EQ(got.subsystem_vendor, 0x1da2);
  EXPECT_FALSE(got.subsystem_device);
  EXPECT_EQ(got.revision, 0xc8);
  EXPECT_EQ(got.name, d.name);
  EXPECT_EQ(got.other_names, d.other_names);
  EXPECT_EQ(got.firmware, d.firmware);
  EXPECT_EQ(got.compute_nodes, d.compute_nodes);
  EXPECT_EQ(got.compute_partition, "CPX");
  EXPECT_EQ(got.memory_partition, "NPS4");
  EXPECT_EQ(got.xgmi_peers, d.xgmi_peers);
  EXPECT_EQ(got.id(), d.id());
  EXPECT_EQ(frame.untouched, (std::vector<std::uint64_t>{42}));
}

TEST(Frames, BytesMayArriveOneByOne) {
  std::vector<std::uint8_t> bytes;
  append_frame(bytes, a_sample());
  append_frame(bytes, DoneFrame{7});
  FrameParser parser;
  int frames = 0;
  for (const auto b : bytes) {
    parser.feed({&b, 1});
    const auto frame = parser.next();
    ASSERT_TRUE(frame);
    frames += *frame ? 1 : 0;
  }
  EXPECT_EQ(frames, 2);
}

TEST(Frames, NonsenseIsAnErrorAndStaysOne) {
  FrameParser parser;
  parser.feed(std::vector<std::uint8_t>(64, 0x41));
  EXPECT_FALSE(parser.next());
  std::vector<std::uint8_t> good;
  append_frame(good, DoneFrame{1});
  parser.feed(good);
  EXPECT_FALSE(parser.next());
}

TEST(Frames, ReadingsOutOfOrderOrUnknownAreRefused) {
  for (const auto& readings : {std::vector<Reading>{{ReadingId::PowerCap, ReadingStatus::Valid, 0, 1},
                                                    {ReadingId::TemperatureEdge, ReadingStatus::Valid, 0, 1}},
                               std::vector<Reading>{{static_cast<ReadingId>(255), ReadingStatus::Valid, 0, 1}},
                               std::vector<Reading>{{ReadingId::PowerCap, static_cast<ReadingStatus>(77), 0, 1}}}) {
    auto frame = a_sample();
    frame.sample.readings = readings;
    std::vector<std::uint8_t> bytes;
    append_frame(bytes, frame);
    FrameParser parser;
    parser.feed(bytes);
    EXPECT_FALSE(parser.next());
  }
}

TEST(Frames, DamageOfAnyByteNeverDoesMoreThanFail) {
  std::vector<std::uint8_t> sound;
  append_frame(sound, a_sample());
  std::mt19937 random(1);
  for (int round = 0; round < 20'000; ++round) {
    auto bytes = sound;
    for (int i = 0; i < 3; ++i) bytes[random() % bytes.size()] = static_cast<std::uint8_t>(random());
    FrameParser parser;
    parser.feed(bytes);
    for (int i = 0; i < 4; ++i) {
      if (!parser.next()) break;
    }
  }
}

TEST(Requests, ArriveAsTheyWereSentAlsoInPieces) {
  Request sent;
  sent.kind = RequestKind::Sample;
  sent.slow = true;
  sent.tick = 9;
  sent.devices = {1, 2, 3};
  std::vector<std::uint8_t> bytes;
  append_request(bytes, sent);
  std::vector<std::uint8_t> first(bytes.begin(), bytes.begin() + 30);
  const auto early = take_request(first);
  ASSERT_TRUE(early);
  EXPECT_FALSE(*early);
  const auto got = take_request(bytes);
  ASSERT_TRUE(got && *got);
  EXPECT_TRUE((*got)->slow);
  EXPECT_FALSE((*got)->reopen);
  EXPECT_EQ((*got)->devices, sent.devices);
  EXPECT_TRUE(bytes.empty());
}

TEST(Frame, CarriesWhatTheKernelLogSays) {
  KlogFrame sent;
  sent.sequence = 4711;
  sent.lost = 3;
  KlogFrame::Item item;
  item.event.type = klog::Type::RingTimeout;
  item.event.severity = Severity::Critical;
  item.event.device = PciAddress{0x10000, 0xc5, 0x1f, 7};
  item.event.count = 12;
  item.event.text = "ring gfx timeout";
  item.event.process = "blender";
  item.event.pid = 42;
  item.event.subject = "gfx";
  item.event.from = 2;
  item.age_us = 99;
  sent.items = {item, KlogFrame::Item{}};
  std::vector<std::uint8_t> bytes;
  append_frame(bytes, sent);
  FrameParser parser;
  parser.feed(bytes);
  const auto got = parser.next();
  ASSERT_TRUE(got && *got);
  const auto& frame = std::get<KlogFrame>(**got);
  EXPECT_EQ(frame.sequence, 4711U);
  EXPECT_EQ(frame.lost, 3U);
  ASSERT_EQ(frame.items.size(), 2U);
  EXPECT_EQ(frame.items[0].event.type, klog::Type::RingTimeout);
  EXPECT_EQ(frame.items[0].event.severity, Severity::Critical);
  EXPECT_EQ(frame.items[0].event.device, item.event.device);
  EXPECT_EQ(frame.items[0].event.count, 12U);
  EXPECT_EQ(frame.items[0].event.text, "ring gfx timeout");
  EXPECT_EQ(frame.items[0].event.process, "blender");
  EXPECT_EQ(frame.items[0].event.pid, 42U);
  EXPECT_EQ(frame.items[0].event.subject, "gfx");
  EXPECT_EQ(frame.items[0].age_us, 99U);
  EXPECT_FALSE(frame.items[0].gpu);
  EXPECT_FALSE(frame.items[1].event.device);
}

TEST(Frame, ATypeOfTheKernelLogThatDoesNotExistIsDamage) {
  KlogFrame sent;
  sent.items.resize(1);
  std::vector<std::uint8_t> bytes;
  append_frame(bytes, sent);
  bytes.at(24 + 8 + 4) = 0xff;  // behind the header, the lost count and the number of items
  FrameParser parser;
  parser.feed(bytes);
  EXPECT_FALSE(parser.next());
}

}  // namespace
}  // namespace gpuhealth::telemetry
