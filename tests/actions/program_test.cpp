// SPDX-License-Identifier: Apache-2.0
// gpuhealth-act itself on a synthetic tree: what it prints, how it ends, and every write as the kernel saw it (strace).
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <sstream>

#include <nlohmann/json.hpp>

#include "sim/tree.hpp"
#include "tests/paths.hpp"
#include "tests/support/temp_dir.hpp"

namespace {

using namespace gpuhealth;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kCap =
    "/sys/devices/pci0000:00/0000:00:01.1/0000:01:00.0/0000:02:00.0/0000:03:00.0/hwmon/hwmon2/power1_cap";

struct Ended {
  int code = -1;
  nlohmann::json said;
};

class ActProgram : public testing::Test {
 protected:
  void SetUp() override {
    const std::vector<sim::Card> cards = {sim::idle_card(sim::rx7900xtx(), 0)};
    ASSERT_TRUE(sim::write_machine(dir_.path(), cards, {.boot_id = "boot-1", .dkms_version = ""}));
    for (const char* folder : {"var/lib", "etc/gpuhealthd", "run"})
      std::filesystem::create_directories(dir_.path() / folder);
  }
  [[nodiscard]] std::string root() const { return dir_.string(); }
  Ended act(const std::string& words, const std::string& before = "") {
    const std::string command = before + " timeout 60 " GPUHEALTH_BIN_DIR "/gpuhealth-act device " + words +
                                " --root " + root() + " 2>&1 </dev/null";
    std::FILE* pipe = popen(command.c_str(), "re");  // NOLINT(bugprone-command-processor): our own words
    std::string out;
    std::array<char, 4096> buffer{};
    while (const std::size_t n = std::fread(buffer.data(), 1, buffer.size(), pipe)) out.append(buffer.data(), n);
    const int status = pclose(pipe);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, nlohmann::json::parse(out, nullptr, false)};
  }
  [[nodiscard]] std::string read(const std::string& path) const {
    std::ifstream file(root() + path);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }
  test::TempDir dir_;
};

TEST_F(ActProgram, CarriesOutConfirmsAndReverts) {
  const auto done = act("run power-cap watts=280 --device 03:00.0");
  ASSERT_EQ(done.code, 0) << done.said;
  EXPECT_EQ(done.said["state"], "applied");
  EXPECT_EQ(done.said["before"], "303 W");
  EXPECT_EQ(read(kCap), "280000000");
  EXPECT_EQ(act("confirm 1").said["state"], "confirmed");
  EXPECT_EQ(act("confirm 1").code, 3);
  EXPECT_EQ(act("revert 1").said["state"], "reverted");
  EXPECT_EQ(read(kCap), "303000000");
  EXPECT_EQ(act("revert 1").code, 3);
  EXPECT_EQ(act("revert 77").code, 5);
}

TEST_F(ActProgram, TakesARequestAsJson) {
  std::ofstream(root() + "/request.json")
      << R"({"action":"power-cap","device":"0000:03:00.0","params":{"percent":95},"rule":"r","condition":"c-1","reason":"hot"})";
  const auto done = act("run --request " + root() + "/request.json");
  ASSERT_EQ(done.code, 0) << done.said;
  EXPECT_EQ(done.said["after"], "287 W");
  EXPECT_EQ(done.said["device"], "uid-5ee0000000000001");
}

TEST_F(ActProgram, ErrorsHaveTheirCodes) {
  EXPECT_EQ(act("run fly").code, 3);
  EXPECT_EQ(act("run power-cap watts=280 --device 09:00.0").code, 5);
  EXPECT_EQ(act("run power-cap watts=280").code, 3);
  EXPECT_EQ(act("run power-cap wats=280 --device 03:00.0").said["error"]["code"], "invalid-input");
  EXPECT_EQ(act("").code, 2);
  EXPECT_EQ(act("run power-cap --frobnicate").code, 2);
  EXPECT_EQ(act("recover").code, 0);
  std::ofstream(root() + "/etc/gpuhealthd/observe") << "";
  EXPECT_EQ(act("run power-cap watts=280 --device 03:00.0").code, 6);
  EXPECT_EQ(act("run power-cap watts=280 --device 03:00.0 --dry-run").code, 0);
  EXPECT_FALSE(std::filesystem::exists(root() + "/var/lib/gpuhealthd"));
}

// Lines of a trace with the path behind every descriptor, and the tree's root taken away.
std::vector<std::string> calls(const std::string& log, const std::string& root) {
  std::ifstream file(log);
  std::vector<std::string> out;
  std::string line;
  while (std::getline(file, line)) {
    if (line.find(root) == std::string::npos) continue;
    for (auto at = line.find(root); at != std::string::npos; at = line.find(root)) line.erase(at, root.size());
    const auto name = line.find_first_not_of("0123456789 ");
    out.push_back(line.substr(name == std::string::npos ? 0 : name));
  }
  return out;
}

TEST_F(ActProgram, WritesTheHardwareOnceAndOnlyAfterTheLedgerIsOnTheDisk) {
  const std::string log = root() + "/../" + dir_.path().filename().string() + ".trace";
  const auto done = act("run power-cap watts=280 --device 03:00.0",
                        "env ASAN_OPTIONS=detect_leaks=0 strace -f -y -o " + log +
                            " -e trace=write,pwrite64,fsync,renameat,rename,renameat2,unlinkat,ftruncate");
  ASSERT_EQ(done.code, 0) << done.said;
  const auto seen = calls(log, root());
  std::filesystem::remove(log);
  std::vector<std::string> hardware;
  std::size_t first = seen.size();
  for (std::size_t i = 0; i < seen.size(); ++i) {
    if (seen[i].find("</sys/") == std::string::npos) continue;
    hardware.push_back(seen[i]);
    first = std::min(first, i);
  }
  ASSERT_EQ(hardware.size(), 1U) << testing::PrintToString(seen);
  EXPECT_THAT(hardware[0], HasSubstr(std::string(kCap) + ">, \"280000000\", 9) = 9"));
  // The entry, beside; synced; renamed; its folder synced: all before.
  std::vector<std::string> before;
  for (std::size_t i = 0; i < first; ++i) before.push_back(seen[i].substr(0, seen[i].find('(')));
  ASSERT_GE(before.size(), 4U);
  EXPECT_THAT(std::vector<std::string>(before.end() - 4, before.end()),
              ElementsAre("pwrite64", "fsync", "renameat", "fsync"));
}

}  // namespace
