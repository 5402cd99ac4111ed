// SPDX-License-Identifier: Apache-2.0
// The unmodified librocm_smi64 on a synthetic machine that lies over /sys in a namespace of the reader's own: it says
// what we say, and where it aborts, that is named and gone round.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include <boost/asio/io_context.hpp>

#include "sim/machine.hpp"
#include "sim/tree.hpp"
#include "telemetry/discovery.hpp"
#include "telemetry/inspect.hpp"
#include "telemetry/rocm_smi_api.hpp"
#include "telemetry/sampler.hpp"
#include "telemetry/side_reader.hpp"
#include "tests/paths.hpp"
#include "tests/support/temp_dir.hpp"

namespace gpuhealth::telemetry {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using R = ReadingId;

class RocmSmi : public ::testing::Test {
 protected:
  void plug(std::vector<sim::Card> cards) {
    cards_ = std::move(cards);
    ASSERT_TRUE(sim::write_machine(root_.path(), cards_));
  }
  void start(std::chrono::milliseconds deadline = 6000ms) {  // rsmi_init itself waits five seconds for a lock
    SideReader::Options options;
    options.program = "/usr/bin/unshare";
    options.deadline = deadline;
    options.first_retry = 10ms;
    options.last_retry = 20ms;
    SideReader::Handlers on;
    on.frame = [this](const Frame& frame) {
      if (const auto* sample = std::get_if<SampleFrame>(&frame)) samples_[sample->device] = sample->sample;
      if (const auto* news = std::get_if<DevicesFrame>(&frame)) refusal_ = news->error;
      done_ = done_ || std::holds_alternative<DoneFrame>(frame);
    };
    on.trouble = [this](const SideReader::Trouble& trouble) { troubles_.push_back(trouble); };
    reader_ = std::make_unique<SideReader>(io_, options, on);
  }
  // One question, answered or ended in trouble.
  void ask(const std::vector<std::string>& skip = {}, const std::string& library = "") {
    std::vector<std::string> arguments = {
        "--mount",
        "--propagation",
        "private",
        "sh",
        "-c",
        R"(mount --bind "$1/sys" /sys && mount -t tmpfs none /dev/shm && eval "$2" && shift 2 && exec "$@")",
        "sh",
        root_.string(),
        before_,
        GPUHEALTH_BIN_DIR "/gpuhealth-reader",
        "--source",
        "rocm-smi"};
    if (!library.empty()) arguments.insert(arguments.end(), {"--library", library});
    for (const auto& s : skip) arguments.insert(arguments.end(), {"--skip", s});
    Request request;
    request.kind = RequestKind::Sample;
    request.tick = ++tick_;
    for (const auto& card : cards_) request.devices.push_back(pack(card.place.gpu));
    done_ = false;
    const auto before = troubles_.size();
    bool asked = false;
    const auto limit = std::chrono::steady_clock::now() + 30s;
    while (!done_ && troubles_.size() == before && std::chrono::steady_clock::now() < limit) {
      asked = asked || reader_->ask(request, arguments);
      io_.restart();
      io_.run_one_for(20ms);
    }
    ASSERT_TRUE(asked);
    ASSERT_TRUE(done_ || troubles_.size() > before) << "no answer within 30 s";
  }
  fs::path file(const std::string& name) const {
    return fs::path(device_dir(root_.string(), cards_[0].place.gpu)) / name;
  }
  void put(const std::string& name, const std::string& text) const { std::ofstream(file(name)) << text; }
  std::string function_of(const std::string& query) const {
    return to_string(cards_[0].place.gpu) + "/" + query.substr(0, query.find(' '));
  }
  Sample& first() { return samples_[pack(cards_[0].place.gpu)]; }
  // What the shell says of AMD's own program on the same files: 134 is SIGABRT.
  int rocm_smi(const std::string& option) const {
    const std::string line = "unshare --mount --propagation private sh -c 'mount --bind " + root_.string() +
                             "/sys /sys && mount -t tmpfs none /dev/shm && exec rocm-smi " + option +
                             "' >/dev/null 2>&1; exit $?";
    const int status = std::system(line.c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  // All is read, nothing ends the reader.
  void expect_whole() {
    start();
    ask();
    EXPECT_TRUE(troubles_.empty()) << troubles_[0].what;
    EXPECT_TRUE(done_);
    EXPECT_EQ(first().value(R::PowerCap), expected_cap_);
  }
  // Provoked, named, and gone round at the next start.
  void expect_gone_round(const std::string& query) {
    start();
    ask();
    ASSERT_EQ(troubles_.size(), 1u) << query;
    EXPECT_FALSE(troubles_[0].hung);
    EXPECT_EQ(troubles_[0].what, query);
    EXPECT_EQ(troubles_[0].device, pack(cards_[0].place.gpu));
    ask({function_of(query)});
    EXPECT_TRUE(done_) << query;
    EXPECT_EQ(first().value(R::PowerCap), expected_cap_);
  }

  test::TempDir root_;
  std::vector<sim::Card> cards_;
  boost::asio::io_context io_{1};
  std::map<std::uint64_t, Sample> samples_;
  std::string refusal_;
  std::string before_ = ":";  // what else the reader's namespace holds: a command of the shell
  bool done_ = false;
  std::vector<SideReader::Trouble> troubles_;
  std::uint64_t tick_ = 0;
  double expected_cap_ = 303;
  std::unique_ptr<SideReader> reader_;
};

TEST_F(RocmSmi, AgreesWithTheFilesValueByValue) {
  plug({sim::idle_card(sim::rx7900xtx(), 0), sim::loaded_card(sim::rx6900xt(), 1)});
  start();
  ask();
  ASSERT_TRUE(done_);
  const auto ours = inspect(root_.string());
  ASSERT_TRUE(ours);
  ASSERT_EQ(samples_.size(), 2u);
  std::size_t compared = 0;
  for (const auto& one : ours->devices) {
    for (const auto& theirs : samples_[pack(one.device.pci)].readings) {
      const auto value = one.sample.value(theirs.id);
      if (theirs.status != ReadingStatus::Valid || !value) continue;
      // Clocks are compared below: the library takes them from the table of levels, we from the sensor.
      if (theirs.id == R::ClockGfx || theirs.id == R::ClockMemory) continue;
      ++compared;
      EXPECT_NEAR(theirs.value, *value, 1e-6) << to_string(one.device.pci) << " " << find_reading(theirs.id)->name;
    }
  }
  EXPECT_GE(compared, 36u);
}

TEST_F(RocmSmi, LimitsAreThoseOfTheCard) {
  plug({sim::idle_card(sim::rx7900xtx(), 0)});
  start();
  ask();
  EXPECT_EQ(first().value(R::PowerCap), 303);
  EXPECT_EQ(first().value(R::TemperatureJunctionCritical), 110);
  EXPECT_EQ(first().value(R::VramTotal), 25769803776.0);
}

TEST_F(RocmSmi, ASleepingGpuIsNotAsked) {
  plug({sim::idle_card(sim::rx7900xtx(), 0)});
  put("power/runtime_status", "suspended\n");
  start();
  ask();
  EXPECT_TRUE(done_);
  EXPECT_TRUE(samples_.empty());
}

// --- where 5.2.3 aborts (built with assertions) ----------------------------------------------------------------------

TEST_F(RocmSmi, AMetricsTableOfMi300EndsIt) {
  plug({sim::idle_card(sim::rx7900xtx(), 0)});
  std::string table(288, '\0');
  table[0] = 0x20, table[1] = 0x01, table[2] = 1, table[3] = 4;  // 288 bytes, format 1.4
  put("gpu_metrics", table);
  expect_gone_round("gpu_metrics_info_get");
}

TEST_F(RocmSmi, AnInaccessibleErrorCountEndsIt) {
  plug({sim::idle_card(sim::rx7900xtx(), 0)});
  fs::create_directories(file("ras"));
  put("ras/features", "feature mask: 0x00000001\n");
  put("ras/umc_err_count", "Query currently inaccessible\n");
  expect_gone_round("ecc_count_get UMC");
}

TEST_F(RocmSmi, ADeepSleepClockEndsIt) {
  plug({sim::idle_card(sim::rx7900xtx(), 0)});
  put("pp_dpm_sclk", "S: 19Mhz *\n0: 500Mhz\n1: 2500Mhz\n");
  start();
  ask();
  if (!troubles_.empty()) {
    EXPECT_EQ(troubles_[0].what, "gpu_clk_freq_get system");
    ask({to_string(cards_[0].place.gpu) + "/gpu_clk_freq_get"});
  }
  EXPECT_TRUE(done_);
}

TEST_F(RocmSmi, AMissingHwmonEndsIt) {
  plug({sim::idle_card(sim::rx7900xtx(), 0)});
  const fs::path hwmon = hwmon_dir(device_dir(root_.string(), cards_[0].place.gpu));
  std::ofstream(hwmon / "name") << "not_amdgpu\n";
  start();
  std::vector<std::string> skip;
  for (int i = 0; i < 12 && (i == 0 || !done_); ++i) {
    ask(skip);
    if (!done_) skip.push_back(function_of(troubles_.back().what));
  }
  EXPECT_TRUE(done_);
  ASSERT_FALSE(skip.empty());
  EXPECT_EQ(troubles_[0].what, "temp_metric_get edge");
}

TEST_F(RocmSmi, ANodeWithoutLinksEndsItAtItsStart) {
  plug({sim::idle_card(sim::rx7900xtx(), 0)});
  fs::remove_all(root_.path() / "sys/devices/virtual/kfd/kfd/topology/nodes/1/io_links");
  start();
  ask();
  ASSERT_EQ(troubles_.size(), 1u);
  EXPECT_EQ(troubles_[0].what, "rsmi_init");
}

// The other aborts of 5.2.3 are in functions that we do not call: AMD's program ends there, we read on.
TEST_F(RocmSmi, APcieTableWithADeepSleepLevelEndsOthers) {
  plug({sim::idle_card(sim::rx7900xtx(), 0)});
  put("pp_dpm_pcie", "S: 19Mhz *\n0: 2.5GT/s, x1 78Mhz\n");
  EXPECT_EQ(rocm_smi("--showclocks"), 134);
  expect_whole();
}

TEST_F(RocmSmi, APcieTableWithoutAStarIsNotReadByIt) {
  plug({sim::idle_card(sim::rx7900xtx(), 0)});
  put("pp_dpm_pcie", "0: 2.5GT/s, x1\n1: 16.0GT/s, x16\n");
  expect_whole();
}

TEST_F(RocmSmi, PowerProfilesWithoutAHeadingEndOthers) {
  plug({sim::idle_card(sim::rx7900xtx(), 0)});
  put("pp_power_profile_mode", " 0 BOOTUP_DEFAULT*:\n");
  EXPECT_EQ(rocm_smi("--showprofile"), 134);
  expect_whole();
}

TEST_F(RocmSmi, AnOverdriveTableWithoutAVoltageCurveEndsOthers) {
  plug({sim::idle_card(sim::rx7900xtx(), 0)});
  put("pp_od_clk_voltage", "OD_SCLK:\n0: 500Mhz\n1: 2500Mhz\nOD_MCLK:\n1: 1000MHz\nOD_RANGE:\nSCLK: 500Mhz 3000Mhz\n");
  EXPECT_EQ(rocm_smi("--showvc"), 134);
  expect_whole();
}

TEST_F(RocmSmi, AnErrorCountOfGarbageEndsIt) {
  for (const char* text : {"", "\n", "garbage\n"}) {
    samples_.clear();
    troubles_.clear();
    plug({sim::idle_card(sim::rx7900xtx(), 0)});
    fs::create_directories(file("ras"));
    put("ras/features", "feature mask: 0x00000001\n");
    put("ras/umc_err_count", text);
    expect_gone_round("ecc_count_get UMC");
  }
}

// Another program that uses the library and does not let go of its lock, as one that is stuck in a read.
constexpr const char* kHolder = R"(
import ctypes, mmap, os, time
smi = ctypes.CDLL("librocm_smi64.so.1")
smi.rsmi_init(ctypes.c_uint64(0))
lock = mmap.mmap(os.open("/dev/shm/rocm_smi_card0", os.O_RDWR), 0)
ctypes.CDLL("libc.so.6").pthread_mutex_lock(ctypes.byref((ctypes.c_char * len(lock)).from_buffer(lock)))
open(os.environ["HELD"], "w").write(str(os.getpid()))
time.sleep(60)
)";

TEST_F(RocmSmi, ALockThatAnotherHoldsIsSaid) {
  plug({sim::idle_card(sim::rx7900xtx(), 0)});
  const fs::path program = root_.path() / "holder.py";
  const fs::path held = root_.path() / "held";
  std::ofstream(program) << kHolder;
  before_ = "{ HELD=" + held.string() + " python3 " + program.string() + " & } && until [ -s " + held.string() +
            " ]; do sleep 0.05; done";
  start(20s);
  ask();
  int pid = 0;
  std::ifstream(held) >> pid;
  ASSERT_GT(pid, 0);
  kill(pid, SIGKILL);
  EXPECT_TRUE(troubles_.empty()) << troubles_[0].what;
  EXPECT_TRUE(refusal_.find("another program holds its lock, /dev/shm/rocm_smi_card*") != std::string::npos)
      << refusal_;
}

TEST_F(RocmSmi, ALibraryThatIsNotThereIsSaid) {
  plug({sim::idle_card(sim::rx7900xtx(), 0)});
  start();
  ask({}, "/nowhere/librocm_smi64.so.1");
  EXPECT_TRUE(done_);
  EXPECT_TRUE(refusal_.starts_with("/nowhere/librocm_smi64.so.1 cannot be loaded")) << refusal_;
}

// --- the two generations of structs ----------------------------------------------------------------------------------

TEST(RocmSmiFrequencies, AreReadByGeneration) {
  rsmi::Buffer older{};
  const std::uint32_t old_head[] = {3, 1};
  const std::uint64_t hertz[] = {500'000'000, 1'200'000'000, 2'500'000'000};
  std::memcpy(older.bytes, old_head, sizeof old_head);
  std::memcpy(older.bytes + 8, hertz, sizeof hertz);
  EXPECT_EQ(rsmi::current_frequency(older, false), 1'200'000'000u);

  rsmi::Buffer newer{};
  const std::uint32_t new_head[] = {1, 3, 2};  // has_deep_sleep, padded
  std::memcpy(newer.bytes, new_head, sizeof new_head);
  std::memcpy(newer.bytes + 16, hertz, sizeof hertz);
  EXPECT_EQ(rsmi::current_frequency(newer, true), 2'500'000'000u);
}

TEST(RocmSmiFrequencies, NonsenseIsNoFrequency) {
  rsmi::Buffer buffer{};
  std::fill(std::begin(buffer.bytes), std::end(buffer.bytes), std::byte{0xff});
  EXPECT_EQ(rsmi::current_frequency(buffer, false), 0u);
  EXPECT_EQ(rsmi::current_frequency(buffer, true), 0u);
}

}  // namespace
}  // namespace gpuhealth::telemetry
