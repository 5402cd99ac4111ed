// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "cli/render.hpp"
#include "samples.hpp"

namespace gpuhealth::cli {
namespace {

namespace fs = std::filesystem;
using samples::pipe;
using testing::HasSubstr;

class DoctorTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = fs::temp_directory_path() / "doctor-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    patient_.root = name;
    patient_.may_use = [](const std::string&) { return true; };
  }
  void TearDown() override { fs::remove_all(patient_.root); }

  void write(const std::string& path, const std::string& text) const {
    fs::create_directories(fs::path(patient_.root + path).parent_path());
    std::ofstream(patient_.root + path) << text << "\n";
  }
  void add_card(const std::string& address, const std::string& driver) const {
    const std::string folder = "/sys/bus/pci/devices/" + address;
    write(folder + "/vendor", "0x1002");
    write(folder + "/class", "0x030000");
    if (driver.empty()) return;
    fs::create_directory_symlink("../../../bus/pci/drivers/" + driver, patient_.root + folder + "/driver");
  }
  [[nodiscard]] CheckResult check(std::string_view name) const {
    const auto results = examine(patient_);
    const auto it = std::ranges::find(results, name, &CheckResult::name);
    EXPECT_NE(it, results.end()) << name;
    return it == results.end() ? CheckResult{} : *it;
  }

  Patient patient_;
};

TEST_F(DoctorTest, AnEmptyMachineIsDescribedWithoutFailing) {
  EXPECT_EQ(check("daemon").state, CheckState::Missing);
  EXPECT_EQ(check("amdgpu driver").state, CheckState::Note);
  EXPECT_EQ(check("cards").found, "no AMD GPU on the PCI bus");
  EXPECT_EQ(check("GPU names").state, CheckState::Missing);
  EXPECT_EQ(check("history").state, CheckState::Note);
}

TEST_F(DoctorTest, EveryCheckSaysWhyAndWhatIsMissingSaysWhatToDo) {
  for (const auto& result : examine(patient_)) {
    EXPECT_FALSE(result.why.empty()) << result.name;
    EXPECT_FALSE(result.found.empty()) << result.name;
    EXPECT_TRUE(result.state != CheckState::Missing || !result.advice.empty()) << result.name;
  }
}

TEST_F(DoctorTest, ACardWithoutDriverIsNamed) {
  add_card("0000:03:00.0", "amdgpu");
  add_card("0000:09:00.0", "");
  const auto cards = check("cards");
  EXPECT_EQ(cards.state, CheckState::Missing);
  EXPECT_EQ(cards.found, "no driver is bound to 0000:09:00.0");
  EXPECT_EQ(check("amdgpu driver").state, CheckState::Missing);
}

TEST_F(DoctorTest, AnotherMakersCardIsNotAmds) {
  write("/sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de");
  write("/sys/bus/pci/devices/0000:01:00.0/class", "0x030000");
  EXPECT_EQ(check("cards").state, CheckState::Note);
}

TEST_F(DoctorTest, SensorsAreLookedForAtEachCard) {
  add_card("0000:03:00.0", "amdgpu");
  add_card("0000:09:00.0", "amdgpu");
  write("/sys/bus/pci/devices/0000:03:00.0/hwmon/hwmon3/name", "amdgpu");
  EXPECT_EQ(check("sensors").found, "no sensors at 0000:09:00.0");
  write("/sys/bus/pci/devices/0000:09:00.0/hwmon/hwmon4/name", "amdgpu");
  EXPECT_EQ(check("sensors").found, "sensors of 2 GPUs");
}

TEST_F(DoctorTest, AccessIsTheCallers) {
  write("/dev/kfd", "");
  write("/dev/dri/renderD128", "");
  write("/dev/dri/card0", "");
  EXPECT_EQ(check("compute access").state, CheckState::Ok);
  EXPECT_EQ(check("render access").state, CheckState::Ok);
  patient_.may_use = [](const std::string&) { return false; };
  EXPECT_EQ(check("compute access").state, CheckState::Missing);
  EXPECT_EQ(check("render access").found, "you may not use /dev/dri/renderD128");
  EXPECT_THAT(check("render access").advice, HasSubstr("usermod -a -G render,video"));
}

TEST_F(DoctorTest, AKernelThatStallsCopiesIsNoted) {
  write("/proc/sys/kernel/osrelease", "7.0.12-200.fc44.x86_64");
  EXPECT_EQ(check("kernel").state, CheckState::Note);
  write("/proc/sys/kernel/osrelease", "7.0.0-28-generic");
  EXPECT_EQ(check("kernel").state, CheckState::Note);
  for (const char* good : {"7.0.13-200.fc44.x86_64", "7.0.120", "7.0.0-280-generic", "6.12.57+deb13-amd64"}) {
    write("/proc/sys/kernel/osrelease", good);
    EXPECT_EQ(check("kernel").state, CheckState::Ok) << good;
  }
}

TEST_F(DoctorTest, TheDaemonsOwnTroublesAreShown) {
  patient_.manager.emplace();
  patient_.manager->version = "0.1.0";
  EXPECT_EQ(check("daemon").found, "running, version 0.1.0");
  EXPECT_EQ(check("history").state, CheckState::Ok);
  patient_.manager->store_problem = "disk full";
  patient_.manager->config_problem = "gpuhealthd.yaml:3:1: unknown key";
  EXPECT_EQ(check("history").found, "disk full");
  EXPECT_EQ(check("configuration").state, CheckState::Missing);
}

TEST_F(DoctorTest, InstalledPartsAreFoundByPath) {
  write("/usr/share/dbus-1/system.d/org.gpuhealth1.conf", "");
  write("/usr/share/polkit-1/actions/org.gpuhealth1.policy", "");
  write("/usr/share/libdrm/amdgpu.ids", "");
  write("/usr/lib/x86_64-linux-gnu/librocm_smi64.so.5", "");
  EXPECT_EQ(check("bus policy").state, CheckState::Ok);
  EXPECT_EQ(check("polkit actions").state, CheckState::Ok);
  EXPECT_EQ(check("GPU names").state, CheckState::Ok);
  EXPECT_EQ(check("ROCm SMI library").found, "/usr/lib/x86_64-linux-gnu/librocm_smi64.so.5");
}

TEST(DoctorPage, OkIsOneLineAndTheRestSaysWhyAndWhat) {
  const std::vector<CheckResult> results = {
      {"cards", CheckState::Ok, "fine", "w", ""},
      {"daemon", CheckState::Missing, "not running", "nothing watches", "start it"}};
  EXPECT_EQ(render(render_doctor(results, pipe()), pipe()),
            "ok       cards   fine\n"
            "missing  daemon  not running\n"
            "                 why: nothing watches\n"
            "                 do: start it\n"
            "\n"
            "1 missing.\n");
}

}  // namespace
}  // namespace gpuhealth::cli
