// SPDX-License-Identifier: Apache-2.0
// Uevents as udevd would multicast them, in a network namespace of the test's own. Needs root.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/netlink.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "core/fd.hpp"
#include "daemon/hotplug.hpp"
#include "daemon/log_events.hpp"

namespace gpuhealth::daemon {
namespace {

using namespace std::chrono_literals;

// libudev's hash of a subsystem's name (MurmurHash2), by which its socket filters.
std::uint32_t hash(std::string_view text) {
  constexpr std::uint32_t m = 0x5bd1e995;
  auto h = static_cast<std::uint32_t>(text.size());
  while (text.size() >= 4) {
    std::uint32_t k = 0;
    std::memcpy(&k, text.data(), 4);
    k *= m;
    k ^= k >> 24U;
    k *= m;
    h = (h * m) ^ k;
    text.remove_prefix(4);
  }
  if (text.size() >= 3) h ^= static_cast<std::uint32_t>(static_cast<unsigned char>(text[2])) << 16U;
  if (text.size() >= 2) h ^= static_cast<std::uint32_t>(static_cast<unsigned char>(text[1])) << 8U;
  if (!text.empty()) {
    h ^= static_cast<unsigned char>(text[0]);
    h *= m;
  }
  h ^= h >> 13U;
  h *= m;
  return h ^ h >> 15U;
}

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
    sender_.reset(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_KOBJECT_UEVENT));
    sockaddr_nl here{};
    here.nl_family = AF_NETLINK;
    ASSERT_EQ(bind(sender_.get(), reinterpret_cast<const sockaddr*>(&here), sizeof here), 0);
  }

  void send(const std::string& action, const std::string& path, const std::string& subsystem,
            const std::vector<std::string>& more = {}) {
    std::string body = "ACTION=" + action + '\0' + "DEVPATH=" + path + '\0' + "SUBSYSTEM=" + subsystem + '\0';
    body += "SEQNUM=" + std::to_string(++number_) + '\0';
    for (const auto& one : more) body += one + '\0';
    struct Header {
      std::array<char, 8> prefix{'l', 'i', 'b', 'u', 'd', 'e', 'v', '\0'};
      std::uint32_t magic = htonl(0xfeedcafe);
      std::uint32_t header_size = 40;
      std::uint32_t properties_off = 40;
      std::uint32_t properties_len = 0;
      std::uint32_t subsystem_hash = 0;
      std::uint32_t devtype_hash = 0;
      std::array<std::uint32_t, 2> tag_bloom{};
    } header;
    static_assert(sizeof header == 40);
    header.properties_len = static_cast<std::uint32_t>(body.size());
    header.subsystem_hash = htonl(hash(subsystem));
    const std::string message = std::string(reinterpret_cast<const char*>(&header), sizeof header) + body;
    sockaddr_nl udev{};
    udev.nl_family = AF_NETLINK;
    udev.nl_groups = 2;
    ASSERT_EQ(
        sendto(sender_.get(), message.data(), message.size(), 0, reinterpret_cast<const sockaddr*>(&udev), sizeof udev),
        static_cast<ssize_t>(message.size()));
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
  Fd sender_;
  int changes_ = 0;
  std::vector<Notice> notices_;
  std::uint64_t number_ = 0;
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
