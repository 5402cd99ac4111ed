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

class StackTest : public DoctorTest {
 protected:
  // Card `address` as node `node` of the compute driver's topology.
  void add_node(const std::string& address, unsigned node, unsigned gfx_target_version) {
    add_card(address, "amdgpu");
    const std::string folder = "/sys/class/kfd/kfd/topology/nodes/" + std::to_string(node);
    write(folder + "/gpu_id", std::to_string(1000 + node));
    const auto bus = std::stoul(address.substr(5, 2), nullptr, 16);
    write(folder + "/properties", "simd_count 192\nsimd_per_cu 2\ngfx_target_version " +
                                      std::to_string(gfx_target_version) + "\nvendor_id 4098\ndomain 0\nlocation_id " +
                                      std::to_string(bus << 8U));
  }
  void sees(const std::string& runtime, int ordinal, const std::string& pci) {
    patient_.runtimes.push_back({runtime, ordinal, pci, "a card", "", false});
  }
};

TEST_F(StackTest, NumbersOfRuntimesAreSetBesideAddresses) {
  sees("hip", 0, "0000:03:00.0");
  sees("hip", 1, "0000:06:00.0");
  EXPECT_EQ(check("device numbers").state, CheckState::Ok);
  EXPECT_EQ(check("device numbers").found, "hip 0 = 0000:03:00.0, hip 1 = 0000:06:00.0");
  sees("opencl", 0, "0000:06:00.0");
  sees("opencl", 1, "0000:03:00.0");
  EXPECT_EQ(check("device numbers").state, CheckState::Note);
  EXPECT_THAT(check("device numbers").advice, HasSubstr("count differently"));
}

TEST_F(StackTest, ARuntimeThatHangsIsNamedAndOneThatIsNotThereIsNot) {
  patient_.runtimes.push_back(*parse_runtime_line(R"({"runtime":"cuda","problem":"not installed: libcuda.so.1"})"));
  EXPECT_EQ(check("device numbers").state, CheckState::Note);
  patient_.runtimes.push_back(*parse_runtime_line(R"({"runtime":"hip","problem":"it does not answer within 10 s"})"));
  EXPECT_EQ(check("device numbers").state, CheckState::Missing);
  EXPECT_EQ(check("device numbers").found, "hip: it does not answer within 10 s");
}

TEST_F(StackTest, LinesOfTheWorkerAreReadAndOthersIgnored) {
  const auto seen = parse_runtime_line(R"({"runtime":"opencl","ordinal":2,"pci":null,"name":"llvmpipe"})");
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->ordinal, 2);
  EXPECT_EQ(seen->pci, "");
  for (const char* text : {"", "warning: x", "[]", "{}", R"({"runtime":1})", R"({"runtime":"hip")"})
    EXPECT_FALSE(parse_runtime_line(text)) << text;
}

TEST_F(StackTest, TheGroupOfANodeIsTheOneToJoin) {
  write("/dev/dri/renderD128", "");
  fs::permissions(patient_.root + "/dev/dri/renderD128", fs::perms(0660));
  write("/etc/group", "root:x:" + std::to_string(getegid()) + ":\nvideo:x:44:");
  patient_.may_use = [](const std::string&) { return false; };
  patient_.groups = {getegid() + 1};
  EXPECT_EQ(check("node groups").state, CheckState::Missing);
  EXPECT_EQ(check("node groups").found, "/dev/dri/renderD128 root 0660");
  EXPECT_EQ(check("node groups").advice, "sudo usermod -a -G root $USER, then log in again");
  fs::permissions(patient_.root + "/dev/dri/renderD128", fs::perms(0600));
  EXPECT_THAT(check("node groups").advice, HasSubstr("closed to groups"));
  patient_.groups = {getegid()};
  EXPECT_EQ(check("node groups").state, CheckState::Ok);
}

TEST_F(StackTest, AnArchitectureThatTheRuntimeDoesNotKnowIsNamed) {
  EXPECT_EQ(check("architectures").state, CheckState::Note);
  add_node("0000:03:00.0", 1, 110000);
  add_node("0000:06:00.0", 2, 120001);
  EXPECT_EQ(check("architectures").found, "no ROCm device library is installed");
  write("/opt/rocm-6.2.0/amdgcn/bitcode/oclc_isa_version_1100.bc", "");
  write("/opt/rocm-6.2.0/amdgcn/bitcode/oclc_isa_version_90a.bc", "");
  EXPECT_EQ(check("architectures").state, CheckState::Missing);
  EXPECT_EQ(check("architectures").found, "the installed device libraries do not know gfx1201 of 0000:06:00.0");
  write("/opt/rocm-6.2.0/amdgcn/bitcode/oclc_isa_version_1201.bc", "");
  EXPECT_EQ(check("architectures").state, CheckState::Ok);
}

TEST_F(StackTest, FirmwareIsLookedForAndTheKernelIsBelieved) {
  add_card("0000:03:00.0", "amdgpu");
  EXPECT_EQ(check("firmware").state, CheckState::Missing);
  write("/lib/firmware/amdgpu/navi31_mes.bin", "");
  EXPECT_EQ(check("firmware").state, CheckState::Ok);
  patient_.firmware_missing = "amdgpu 0000:03:00.0: Direct firmware load for amdgpu/gc_11_0_0_mes.bin failed";
  EXPECT_EQ(check("firmware").state, CheckState::Missing);
  EXPECT_THAT(check("firmware").found, HasSubstr("gc_11_0_0_mes.bin"));
}

TEST_F(StackTest, VariablesThatChangeBehaviourAreShownWithWhereTheyAreSet) {
  EXPECT_EQ(check("environment").state, CheckState::Ok);
  write("/etc/profile.d/rocm.sh", "  export HSA_OVERRIDE_GFX_VERSION=10.3.0\nexport PATH=/opt/rocm/bin:$PATH");
  patient_.variable = [](const std::string& name) -> std::optional<std::string> {
    return name == "ROCR_VISIBLE_DEVICES" ? std::optional<std::string>("1") : std::nullopt;
  };
  EXPECT_EQ(check("environment").state, CheckState::Note);
  EXPECT_EQ(check("environment").found,
            "HSA_OVERRIDE_GFX_VERSION (/etc/profile.d/rocm.sh): the GPU passes for another one; "
            "ROCR_VISIBLE_DEVICES=1: hides and renumbers GPUs");
}

TEST_F(StackTest, ParametersThatAreNotTheDriversDefaultsAreShown) {
  write("/sys/module/amdgpu/parameters/noretry", "-1");
  write("/sys/module/amdgpu/parameters/ppfeaturemask", "0xfff7bfff");
  write("/sys/module/amdgpu/parameters/some_other", "77");
  EXPECT_EQ(check("module parameters").state, CheckState::Ok);
  write("/sys/module/amdgpu/parameters/noretry", "0");
  write("/sys/module/amdgpu/parameters/ppfeaturemask", "0xffffffff");
  EXPECT_EQ(
      check("module parameters").found,
      "amdgpu.noretry=0: retry of page faults (XNACK); amdgpu.ppfeaturemask=0xffffffff: power features, overclocking");
}

TEST_F(StackTest, AForeignDriverIsNamedWithItsMark) {
  write("/sys/module/amdgpu/srcversion", "9B3E1A0C5D7F");
  EXPECT_EQ(check("driver modules").state, CheckState::Ok);
  write("/sys/module/amdgpu/version", "6.10.5");
  write("/sys/module/amdgpu/taint", "OE");
  EXPECT_EQ(check("driver modules").state, CheckState::Note);
  EXPECT_EQ(check("driver modules").found,
            "amdgpu 6.10.5, srcversion 9B3E1A0C5D7F (built outside the kernel, not signed)");
}

TEST_F(StackTest, SeveralRocmVersionsAreNamed) {
  EXPECT_EQ(check("ROCm versions").found, "ROCm is not installed");
  write("/opt/rocm-6.2.0/.info/version", "6.2.0-66");
  fs::create_directory_symlink("rocm-6.2.0", patient_.root + "/opt/rocm");
  EXPECT_EQ(check("ROCm versions").state, CheckState::Ok);
  write("/usr/lib/x86_64-linux-gnu/libhsa-runtime64.so.1.9.0", "");
  EXPECT_EQ(check("ROCm versions").state, CheckState::Note);
  EXPECT_EQ(check("ROCm versions").found,
            "/opt/rocm-6.2.0 (6.2.0-66), /usr/lib/x86_64-linux-gnu/libhsa-runtime64.so.1.9.0; /opt/rocm leads to "
            "rocm-6.2.0");
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
