// SPDX-License-Identifier: Apache-2.0
// Real gpuhealth-reader processes on a synthetic machine. A FIFO stands for a file whose read does not return.
#include "telemetry/reader_pool.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include <boost/asio/io_context.hpp>

#include "core/fd.hpp"
#include "sim/machine.hpp"
#include "sim/tree.hpp"
#include "telemetry/discovery.hpp"
#include "telemetry/sampler.hpp"
#include "tests/paths.hpp"
#include "tests/support/temp_dir.hpp"

namespace gpuhealth::telemetry {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

class ReaderPoolTest : public ::testing::Test {
 protected:
  void plug(unsigned count) {
    cards_ = sim::healthy_machine(count);
    ASSERT_TRUE(sim::write_machine(root_.path(), cards_));
  }
  void start() {
    ReaderPool::Options options;
    options.program = GPUHEALTH_BIN_DIR "/gpuhealth-reader";
    options.sysroot = root_.string();
    options.patience = 200ms;
    options.deadline = 800ms;
    options.first_retry = 100ms;
    options.last_retry = 400ms;
    options.calm = 500ms;
    ReaderPool::Handlers on;
    on.devices = [this](const DevicesFrame& frame) { devices_ = frame; };
    on.sample = [this](const PciAddress& a, Sample& s) {
      ++samples_[a];
      last_[a] = s;
    };
    on.gone = [this](const PciAddress& a) { gone_.insert(a); };
    on.stuck = [this](const PciAddress& a, bool stuck, const std::string& what) {
      if (stuck) {
        stuck_[a] = what;
      } else {
        stuck_.erase(a);
      }
    };
    on.log = [this](Severity, const std::string& text) { log_.push_back(text); };
    pool_ = std::make_unique<ReaderPool>(io_, options, on);
    pool_->discover();
    run_until([this] { return devices_.has_value(); });
  }
  // Runs the loop until `done`; the generous limit only ends a broken test.
  template <class Done>
  void run_until(Done done) {
    const auto limit = std::chrono::steady_clock::now() + 30s;
    io_.restart();
    while (!done() && std::chrono::steady_clock::now() < limit) io_.run_one_for(50ms);
    ASSERT_TRUE(done()) << "nothing happened within 30 s; log: " << ::testing::PrintToString(log_);
  }
  // Samples at a steady pace, as the daemon does, until `done`.
  template <class Done>
  void sample_until(Done done) {
    auto next = std::chrono::steady_clock::now();
    run_until([&] {
      if (std::chrono::steady_clock::now() >= next) {
        pool_->sample(false);
        next = std::chrono::steady_clock::now() + 150ms;
      }
      return done();
    });
  }
  void sample_once(const std::vector<PciAddress>& who) {
    const auto before = samples_;
    pool_->sample(false);
    run_until([&] {
      return std::ranges::all_of(who,
                                 [&](const auto& a) { return samples_[a] > (before.contains(a) ? before.at(a) : 0); });
    });
  }
  [[nodiscard]] std::vector<PciAddress> addresses(std::size_t without = SIZE_MAX) const {
    std::vector<PciAddress> out;
    for (std::size_t i = 0; i < cards_.size(); ++i) {
      if (i != without) out.push_back(cards_[i].place.gpu);
    }
    return out;
  }
  fs::path file(std::size_t card, const std::string& name) const {
    return device_dir(root_.string(), cards_[card].place.gpu) + "/" + name;
  }
  void hang(std::size_t card) {
    fs::remove(file(card, "gpu_busy_percent"));
    ASSERT_EQ(mkfifo(file(card, "gpu_busy_percent").c_str(), 0600), 0);
  }
  void heal(std::size_t card) {
    fs::remove(file(card, "gpu_busy_percent"));
    std::ofstream(file(card, "gpu_busy_percent")) << "12\n";
  }

  test::TempDir root_;
  std::vector<sim::Card> cards_;
  boost::asio::io_context io_{1};
  std::optional<DevicesFrame> devices_;
  std::map<PciAddress, int> samples_;
  std::map<PciAddress, Sample> last_;
  std::set<PciAddress> gone_;
  std::map<PciAddress, std::string> stuck_;
  std::vector<std::string> log_;
  std::unique_ptr<ReaderPool> pool_;  // last: it goes first
};

TEST_F(ReaderPoolTest, OneProcessReadsAllDevices) {
  plug(4);
  start();
  ASSERT_EQ(devices_->devices.size(), 4u);
  sample_once(addresses());
  sample_once(addresses());
  EXPECT_EQ(pool_->processes(), 1u);
  EXPECT_TRUE(last_[cards_[0].place.gpu].value(ReadingId::TemperatureEdge));
  EXPECT_TRUE(log_.empty());
}

TEST_F(ReaderPoolTest, AStuckDeviceDoesNotDelayTheOthersAndIsNamed) {
  plug(4);
  hang(1);
  start();
  const auto begin = std::chrono::steady_clock::now();
  sample_once(addresses(1));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 800ms) << "the others must not wait for the deadline";
  run_until([&] { return stuck_.contains(cards_[1].place.gpu); });
  EXPECT_EQ(stuck_.size(), 1u);
  sample_once(addresses(1));
}

TEST_F(ReaderPoolTest, ADeviceThatHangsTheSearchForDevicesDelaysNoOther) {
  plug(3);
  start();
  sample_once(addresses());
  fs::remove(file(1, "vendor"));
  ASSERT_EQ(mkfifo(file(1, "vendor").c_str(), 0600), 0);
  pool_->discover();
  sample_until([&] { return stuck_.contains(cards_[1].place.gpu); });
  const auto before = samples_;
  sample_once(addresses(1));
  EXPECT_EQ(stuck_.size(), 1u);
  devices_.reset();
  pool_->discover();
  run_until([&] { return devices_.has_value(); });
  EXPECT_EQ(devices_->devices.size(), 2u);
  EXPECT_EQ(devices_->untouched, (std::vector{pack(cards_[1].place.gpu)}));
}

TEST_F(ReaderPoolTest, AStuckDeviceComesBack) {
  plug(2);
  hang(0);
  start();
  pool_->sample(false);
  run_until([&] { return stuck_.contains(cards_[0].place.gpu); });
  heal(0);
  sample_until([&] { return stuck_.empty() && samples_[cards_[0].place.gpu] > 0; });
  // and when all has been calm for a while, one process reads both again
  sample_until([&] { return pool_->processes() == 1; });
  sample_once(addresses());
}

TEST_F(ReaderPoolTest, SixteenHungDevicesLeaveTheGoodOneReadableAndNothingGrows) {
  plug(17);
  for (std::size_t i = 0; i < 16; ++i) hang(i);
  start();
  sample_once({cards_[16].place.gpu});
  run_until([&] { return stuck_.size() == 16; });
  sample_once({cards_[16].place.gpu});
  EXPECT_LE(pool_->processes(), 2u * 17u);
}

TEST_F(ReaderPoolTest, ADeviceThatIsUnpluggedIsGoneAndForgotten) {
  plug(2);
  start();
  sample_once(addresses());
  ASSERT_TRUE(sim::remove_card(root_.path(), cards_[0].place.gpu));
  devices_.reset();
  pool_->discover();
  run_until([&] { return devices_.has_value(); });
  EXPECT_EQ(devices_->devices.size(), 1u);
  const auto before = samples_[cards_[0].place.gpu];
  sample_once({cards_[1].place.gpu});
  EXPECT_EQ(samples_[cards_[0].place.gpu], before);
}

TEST_F(ReaderPoolTest, ADeviceThatIsPluggedInIsRead) {
  plug(1);
  start();
  const auto card = sim::idle_card(sim::rx580(), 5);
  ASSERT_TRUE(sim::add_card(root_.path(), card));
  pool_->discover();
  run_until([&] { return devices_->devices.size() == 2; });
  sample_once({card.place.gpu});
}

TEST_F(ReaderPoolTest, AReaderThatIsKilledIsReplaced) {
  plug(2);
  start();
  sample_once(addresses());
  // All of them: on a busy machine there may be two, or one that has ended and is not reaped yet.
  std::ifstream children("/proc/self/task/" + std::to_string(getpid()) + "/children");
  int killed = 0;
  for (pid_t reader = 0; children >> reader; ++killed) ASSERT_EQ(kill(reader, SIGKILL), 0);
  ASSERT_GT(killed, 0);
  run_until([&] { return !log_.empty(); });
  sample_until([&] { return samples_[cards_[0].place.gpu] > 1 && samples_[cards_[1].place.gpu] > 1; });
  EXPECT_TRUE(stuck_.empty()) << "nobody was being read when it died";
}

TEST_F(ReaderPoolTest, AMissingReaderProgramIsSaid) {
  plug(1);
  ReaderPool::Options options;
  options.program = "/nonexistent/gpuhealth-reader";
  ReaderPool::Handlers on;
  on.log = [this](Severity, const std::string& text) { log_.push_back(text); };
  ReaderPool pool(io_, options, on);
  pool.discover();
  ASSERT_FALSE(log_.empty());
  EXPECT_NE(log_[0].find("/nonexistent/gpuhealth-reader"), std::string::npos);
}

TEST_F(ReaderPoolTest, StoppingNeverWaitsForAStuckReader) {
  plug(2);
  hang(0);
  start();
  pool_->sample(false);
  const auto begin = std::chrono::steady_clock::now();
  pool_.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 100ms);
}

}  // namespace
}  // namespace gpuhealth::telemetry
