// SPDX-License-Identifier: Apache-2.0
// The live kernel log: records as /dev/kmsg gives them, in the follower and through the real reader program.
#include "telemetry/kmsg.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "core/fd.hpp"
#include "telemetry/log_reader.hpp"
#include "tests/paths.hpp"
#include "tests/support/temp_dir.hpp"

namespace gpuhealth::telemetry {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

std::string record(std::uint64_t sequence, std::int64_t us, std::string_view text) {
  return "3," + std::to_string(sequence) + "," + std::to_string(us) + ",-;" + std::string(text) + "\n";
}

constexpr std::string_view kFailed = "amdgpu 0000:03:00.0: GPU reset(2) failed";
constexpr std::string_view kFault = "amdgpu 0000:03:00.0: [gfxhub] page fault (src_id:0 ring:24 vmid:8 pasid:1)";

TEST(Kmsg, WhatHappenedSinceBootIsReadOnce) {
  KmsgFollower follower;
  follower.take(record(0, 100, "Linux version 6.12.57") + record(1, 5'000'000, kFailed));
  const auto frame = follower.news(65'000'000);
  ASSERT_TRUE(frame);
  ASSERT_EQ(frame->items.size(), 1U);
  EXPECT_EQ(frame->items[0].event.type, klog::Type::GpuResetFailed);
  EXPECT_EQ(frame->items[0].age_us, 60'000'000U);  // a minute ago
  EXPECT_EQ(frame->sequence, 1U);
  EXPECT_EQ(frame->lost, 0U);
  EXPECT_FALSE(follower.news(66'000'000));
}

TEST(Kmsg, AfterARestartOnlyWhatIsNewIsTold) {
  KmsgFollower follower({}, 1);
  follower.take(record(0, 100, "a") + record(1, 5'000'000, kFailed) + record(2, 100'000'000, kFailed));
  const auto frame = follower.news(101'000'000);
  ASSERT_TRUE(frame);
  ASSERT_EQ(frame->items.size(), 1U);
  EXPECT_EQ(frame->items[0].age_us, 1'000'000U);
  EXPECT_EQ(frame->lost, 0U);
}

TEST(Kmsg, AWrapIsCountedAndSaid) {
  KmsgFollower follower;
  follower.take(record(10, 100, "a"));
  follower.take(record(15, 200, "b"));  // 11 to 14 are gone
  const auto frame = follower.news(300);
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->lost, 4U);
  EXPECT_TRUE(frame->items.empty());
  EXPECT_FALSE(follower.news(400));
}

TEST(Kmsg, AWrapWhileTheDaemonWasAwayIsCountedToo) {
  KmsgFollower follower({}, 5);
  follower.take(record(9, 100, "a"));
  const auto frame = follower.news(200);
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->lost, 3U);
}

// The ring of a boot that begins long before the daemon: its first record is not number 0, and nothing of it is lost.
TEST(Kmsg, AFirstRecordThatIsNotTheFirstOfTheBootIsNoLoss) {
  KmsgFollower follower;
  follower.take(record(70000, 100, "a") + record(70001, 200, kFailed));
  const auto frame = follower.news(300);
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->lost, 0U);
}

TEST(Kmsg, ContinuationLinesAndPiecesDoNotConfuse) {
  KmsgFollower follower;
  const std::string text = record(1, 1000, "amdgpu 0000:03:00.0: \\x09device lost from bus!") +
                           " SUBSYSTEM=pci\n DEVICE=+pci:0000:03:00.0\n" + record(2, 2000, "other");
  for (const char c : text) follower.take({&c, 1});
  const auto frame = follower.news(3000);
  ASSERT_TRUE(frame);
  ASSERT_EQ(frame->items.size(), 1U);
  EXPECT_EQ(frame->items[0].event.type, klog::Type::BusLost);
  EXPECT_EQ(frame->sequence, 2U);
}

TEST(Kmsg, WordsOfUserspaceAreNoEvents) {
  KmsgFollower follower;
  follower.take("12,5,1000,-;amdgpu 0000:03:00.0: GPU reset(2) failed\n");
  EXPECT_FALSE(follower.news(2000));
}

TEST(Kmsg, AnEndlessLineDoesNotFillMemory) {
  KmsgFollower follower;
  const std::string piece(10000, 'x');
  for (int i = 0; i < 1000; ++i) follower.take(piece);
  follower.take("\n" + record(1, 1000, kFailed));
  EXPECT_TRUE(follower.news(2000));
}

// --- the program -----------------------------------------------------------------------------------------------------

class KmsgReader : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(root_.path() / "dev");
    fs::create_directories(root_.path() / "sys/bus/pci/devices");
    ASSERT_EQ(mkfifo((root_.path() / "dev/kmsg").c_str(), 0600), 0);
    kernel_.reset(open((root_.path() / "dev/kmsg").c_str(), O_RDWR | O_CLOEXEC));
  }
  void print(const std::string& text) const {
    std::size_t done = 0;
    while (done < text.size()) {
      const auto n = write(kernel_.get(), text.data() + done, text.size() - done);
      ASSERT_GT(n, 0);
      done += static_cast<std::size_t>(n);
    }
  }
  // Runs until `enough` holds; fails after half a minute.
  void follow(const std::function<bool()>& enough, std::optional<std::uint64_t> after = std::nullopt) {
    boost::asio::io_context io;
    LogReader::Options options;
    options.program = GPUHEALTH_BIN_DIR "/gpuhealth-reader";
    options.sysroot = root_.string();
    options.after = after;
    LogReader::Handlers on;
    on.news = [&](const KlogFrame& frame) {
      lost_ += frame.lost;
      sequence_ = frame.sequence;
      for (const auto& item : frame.items) items_.push_back(item);
      if (enough()) io.stop();
    };
    on.log = [&](Severity, const std::string& text) { said_ += text + "\n"; };
    const LogReader reader(io, std::move(options), std::move(on));
    io.run_for(30s);
    EXPECT_TRUE(enough()) << said_;
  }
  [[nodiscard]] std::uint64_t counted() const {
    std::uint64_t n = 0;
    for (const auto& item : items_) n += item.event.count;
    return n;
  }

  gpuhealth::test::TempDir root_;
  Fd kernel_;
  std::vector<KlogFrame::Item> items_;
  std::uint64_t lost_ = 0;
  std::uint64_t sequence_ = 0;
  std::string said_;
};

TEST_F(KmsgReader, TellsAnEventAtOnce) {
  print(record(1, 1000, kFailed));
  follow([&] { return !items_.empty(); });
  EXPECT_EQ(items_[0].event.text, kFailed);
  EXPECT_EQ(items_[0].event.severity, Severity::Critical);
  EXPECT_EQ(to_string(items_[0].event.device.value()), "0000:03:00.0");
}

// 30 000 records, a needle among them, as fast as a pipe takes them: all are dealt with, the needle is found.
TEST_F(KmsgReader, ABurstOfThirtyThousandLinesLosesNothing) {
  std::thread kernel([this] {
    for (std::uint64_t i = 0; i < 30000; ++i)
      print(record(i, 1'000'000 + static_cast<std::int64_t>(i) * 10,
                   i == 17000   ? kFailed
                   : i % 2 == 0 ? kFault
                                : std::string_view("[drm] Skip scheduling IBs!")));
    // Long after: the burst is over.
    print(record(30000, 400'000'000, "nothing"));
    print(record(30001, 400'000'001, kFault));
  });
  const auto begin = std::chrono::steady_clock::now();
  follow([&] { return counted() >= 15001; });
  const auto took = std::chrono::steady_clock::now() - begin;
  kernel.join();
  EXPECT_EQ(lost_, 0U);
  EXPECT_LT(took, 3s) << "10 000 lines a second must not stall it";
  bool needle = false;
  for (const auto& item : items_) needle = needle || item.event.type == klog::Type::GpuResetFailed;
  EXPECT_TRUE(needle);
}

// What is readable for ever and gives nothing is looked at now and then, not without pause.
TEST(KmsgProgram, ALogThatHasAnEndCostsNothing) {
  const gpuhealth::test::TempDir root;
  fs::create_directories(root.path() / "dev");
  fs::create_symlink("/dev/null", root.path() / "dev/kmsg");
  std::array<int, 2> in{};
  ASSERT_EQ(pipe2(in.data(), O_CLOEXEC), 0);
  const Fd reading(in[0]);
  Fd writing(in[1]);
  const pid_t reader = fork();
  ASSERT_GE(reader, 0);
  if (reader == 0) {
    dup2(reading.get(), STDIN_FILENO);
    const std::string sysroot = root.string();
    execl(GPUHEALTH_BIN_DIR "/gpuhealth-reader", "gpuhealth-reader", "--source", "kmsg", "--sysroot", sysroot.c_str(),
          static_cast<char*>(nullptr));
    _exit(127);
  }
  std::this_thread::sleep_for(1s);
  writing.reset();  // the daemon has gone: it ends
  int status = -1;
  rusage used{};
  ASSERT_EQ(wait4(reader, &status, 0, &used), reader);
  EXPECT_EQ(status, 0);
  const auto ms =
      (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000 + (used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1000;
  EXPECT_LT(ms, 300) << "milliseconds of CPU in a second of nothing";
}

TEST(KmsgFacts, PortsAboveAGpuAreKnownFromSysfs) {
  const gpuhealth::test::TempDir root;
  const auto devices = root.path() / "sys/devices/pci0000:00";
  const auto bus = root.path() / "sys/bus/pci/devices";
  fs::create_directories(bus);
  const auto add = [&](const std::string& path, const std::string& code) {
    fs::create_directories(devices / path);
    const Fd file(open((devices / path / "class").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    ASSERT_EQ(write(file.get(), code.data(), code.size()), static_cast<ssize_t>(code.size()));
    fs::create_directory_symlink(devices / path, bus / fs::path(path).filename());
  };
  add("0000:00:03.1", "0x060400\n");
  add("0000:00:03.1/0000:0a:00.0", "0x060400\n");
  add("0000:00:03.1/0000:0a:00.0/0000:0c:00.0", "0x030000\n");
  add("0000:00:02.1", "0x060400\n");
  const auto facts = facts_of_machine(root.string());
  const auto at = [](std::string_view text) { return *parse_pci_address(text); };
  EXPECT_EQ(facts.relation(at("0000:00:03.1"), klog::Port), klog::Relation::Gpu);
  EXPECT_EQ(facts.relation(at("0000:0a:00.0"), klog::Port), klog::Relation::Gpu);
  EXPECT_EQ(facts.relation(at("0000:00:02.1"), klog::Port), klog::Relation::NotGpu);
  EXPECT_EQ(facts.gpu_of(at("0000:00:03.1")), at("0000:0c:00.0"));
  EXPECT_EQ(facts.gpu_of(at("0000:0c:00.1")), at("0000:0c:00.0"));
  EXPECT_EQ(facts.gpu_of(at("0000:00:02.1")), std::nullopt);
}

}  // namespace
}  // namespace gpuhealth::telemetry
