// SPDX-License-Identifier: Apache-2.0
// Uevents as udevd would multicast them, in a network namespace of the test's own. Needs root.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "daemon/hotplug.hpp"
#include "daemon/log_events.hpp"
#include "sim/announcer.hpp"

namespace gpuhealth::daemon {
namespace {

using namespace std::chrono_literals;

// A namespace without the machine's devices, in which udevd seems to run.
void enter_namespace() {
  static const bool entered = [] {
    if (unshare(CLONE_NEWNET | CLONE_NEWNS) != 0) return false;
    if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
    if (mount("none", "/run", "tmpfs", 0, nullptr) != 0) return false;
    std::filesystem::create_directories("/run/udev");
    std::ofstream("/run/udev/control") << "";
    return true;
  }();
  ASSERT_TRUE(entered) << "this test needs root: " << std::strerror(errno);
}

class Uevents : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(enter_namespace());
    auto started =
        Hotplug::start(io_, [this] { ++changes_; }, [this](const Notice& notice) { notices_.push_back(notice); });
    ASSERT_TRUE(started) << started.error().text;
    hotplug_ = std::move(*started);
  }

  void send(const std::string& action, const std::string& path, const std::string& subsystem,
            const std::vector<std::string>& more = {}) {
    sim::Uevent event{action, subsystem, {}};
    for (const auto& one : more) event.properties[one.substr(0, one.find('='))] = one.substr(one.find('=') + 1);
    const auto sent = sim::send_uevent(event, path);
    ASSERT_TRUE(sent) << sent.error().text;
  }
  // Until `seen` holds; false after ten seconds.
  template <class Seen>
  bool await(Seen seen) {
    const auto end = std::chrono::steady_clock::now() + 10s;
    while (!seen() && std::chrono::steady_clock::now() < end) io_.run_one_for(100ms);
    return seen();
  }

  boost::asio::io_context io_;
  std::unique_ptr<Hotplug> hotplug_;
  int changes_ = 0;
  std::vector<Notice> notices_;
};

constexpr const char kCard[] = "/devices/pci0000:00/0000:00:01.1/0000:03:00.0/drm/card0";

TEST_F(Uevents, AWedgedGpuIsNoticedWithWhatItNeeds) {
  send("change", kCard, "drm", {"DEVTYPE=drm_minor", "WEDGED=rebind,bus-reset"});
  ASSERT_TRUE(await([&] { return !notices_.empty(); }));
  EXPECT_EQ(notices_[0].kind, Notice::Kind::Wedged);
  EXPECT_EQ(notices_[0].device, "0000:03:00.0");
  EXPECT_EQ(notices_[0].methods, "rebind,bus-reset");
  const auto event = event_of(notices_[0], {}, "boot");
  EXPECT_EQ(event.type, "gpu.wedged");
  EXPECT_EQ(event.severity, Severity::Critical);
  EXPECT_EQ(event.text,
            "the driver says of the GPU at 0000:03:00.0: its driver must be unbound and bound again, or it needs a "
            "reset of its bus");
}

// amdgpu says so after every recovery that worked.
TEST_F(Uevents, WedgedNoneIsAResetThatWorkedAndNamesTheProgram) {
  send("change", kCard, "drm", {"DEVTYPE=drm_minor", "WEDGED=none", "PID=4242", "TASK=blender"});
  ASSERT_TRUE(await([&] { return !notices_.empty(); }));
  EXPECT_EQ(notices_[0].pid, 4242U);
  const auto event = event_of(notices_[0], {}, "boot");
  EXPECT_EQ(event.severity, Severity::Info);
  EXPECT_EQ(event.text,
            "the driver says of the GPU at 0000:03:00.0: it was reset and works again (program blender, 4242)");
}

TEST_F(Uevents, ACoreDumpIsNoticed) {
  send("add", "/devices/virtual/devcoredump/devcd1", "devcoredump");
  ASSERT_TRUE(await([&] { return !notices_.empty(); }));
  EXPECT_EQ(notices_[0].kind, Notice::Kind::Coredump);
  EXPECT_EQ(event_of(notices_[0], {}, "boot").type, "gpu.coredump");
}

TEST_F(Uevents, AGpuThatComesOrGoesIsLookedForOnce) {
  for (int i = 0; i < 20; ++i) {
    send("remove", "/devices/pci0000:00/0000:00:01.1/0000:03:00.0", "pci");
    send("unbind", "/devices/pci0000:00/0000:00:01.1/0000:03:00.0", "pci");
    send("remove", kCard, "drm", {"DEVTYPE=drm_minor"});
  }
  ASSERT_TRUE(await([&] { return changes_ > 0; }));
  EXPECT_EQ(changes_, 1);
  EXPECT_TRUE(notices_.empty());
}

TEST_F(Uevents, ADisplayThatIsPluggedInAndDevicesOfOthersChangeNothing) {
  send("change", kCard, "drm", {"DEVTYPE=drm_minor", "HOTPLUG=1"});
  send("add", "/devices/pci0000:00/0000:00:14.0/usb1/1-1", "usb");
  send("change", kCard, "drm", {"DEVTYPE=drm_minor", "WEDGED=none"});
  ASSERT_TRUE(await([&] { return !notices_.empty(); }));
  boost::asio::steady_timer quiet(io_, 500ms);  // longer than what makes a burst one call
  bool passed = false;
  quiet.async_wait([&](const boost::system::error_code&) { passed = true; });
  ASSERT_TRUE(await([&] { return passed; }));
  EXPECT_EQ(changes_, 0);
}

TEST(WedgedMeaning, KnowsEveryMethodAndShowsOthers) {
  EXPECT_EQ(meaning_of_wedged("vendor-specific"), "it needs its maker's own recovery");
  EXPECT_EQ(meaning_of_wedged("cold-reset"), "the machine must be powered off and on");
  EXPECT_EQ(meaning_of_wedged("moon-phase"), "recovery \"moon-phase\"");
  EXPECT_EQ(meaning_of_wedged(""), "the driver says nothing more");
}

}  // namespace
}  // namespace gpuhealth::daemon
