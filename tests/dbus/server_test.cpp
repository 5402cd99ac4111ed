// SPDX-License-Identifier: Apache-2.0
// Signals, and who may change something, as a second program on the bus sees them.
#include "dbus/server.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <thread>

#include "dbus/client.hpp"
#include "dbus/names.hpp"
#include "tests/dbus/fixtures.hpp"
#include "tests/dbus/harness.hpp"
#include "tests/support/private_bus.hpp"

namespace gpuhealth::dbus {
namespace {

using test::card;
using test::Host;
using test::kCardId;
using test::kCardPath;
using test::kHotId;
using test::kHotPath;
using test::Listener;
using test::overheating;
using test::PrivateBus;
using test::sample;

// The properties that a PropertiesChanged message says have changed.
std::set<std::string> changed_properties(sd_bus_message* message, const char* interface) {
  std::set<std::string> names;
  const char* text = nullptr;
  sd_bus_message_read(message, "s", &text);
  EXPECT_STREQ(text, interface);
  sd_bus_message_enter_container(message, 'a', "{sv}");
  while (sd_bus_message_enter_container(message, 'e', "sv") > 0) {
    sd_bus_message_read(message, "s", &text);
    names.insert(text);
    sd_bus_message_skip(message, "v");
    sd_bus_message_exit_container(message);
  }
  return names;
}

std::string first_path(sd_bus_message* message) {
  const char* path = nullptr;
  sd_bus_message_read(message, "o", &path);
  return path != nullptr ? path : "";
}

class ServerTest : public ::testing::Test {
 protected:
  void serve(Requests requests = {}) {
    host = std::make_unique<Host>(bus.address(), std::move(requests));
    host->on_loop([](Server& s) {
      s.set_manager(test::manager_state());
      s.set_device(card());
      s.set_sample(sample());
    });
    host->start();
    listener.wait_for_name();
    host->wait_connected();
    listener.listen();
  }

  PrivateBus bus;
  Listener listener{bus.address()};
  std::unique_ptr<Host> host;
};

TEST_F(ServerTest, TellsOfConditionsThatComeChangeAndGo) {
  serve();
  host->on_loop([](Server& s) { s.set_condition(overheating()); });
  EXPECT_EQ(first_path(listener.wait_for("InterfacesAdded", "/org/gpuhealth1").get()), kHotPath);
  const auto raised = listener.wait_for("ConditionChanged", "/org/gpuhealth1");
  const char* id = nullptr;
  const char* type = nullptr;
  const char* severity = nullptr;
  const char* state = nullptr;
  const char* device = nullptr;
  int acknowledged = -1;
  ASSERT_GT(sd_bus_message_read(raised.get(), "sssssb", &id, &type, &severity, &state, &device, &acknowledged), 0);
  EXPECT_STREQ(id, kHotId);
  EXPECT_STREQ(type, "overheating");
  EXPECT_STREQ(severity, "critical");
  EXPECT_STREQ(state, "confirmed");
  EXPECT_STREQ(device, kCardId);
  EXPECT_EQ(acknowledged, 0);
  EXPECT_EQ(changed_properties(listener.wait_for("PropertiesChanged", "/org/gpuhealth1").get(), kManagerInterface),
            std::set<std::string>{"Health"});

  auto known = overheating();
  known.acknowledged = true;
  known.detail = "junction is at 113 C; its limit is 110 C";
  host->on_loop([&](Server& s) { s.set_condition(known); });
  EXPECT_EQ(changed_properties(listener.wait_for("PropertiesChanged", kHotPath).get(), kConditionInterface),
            std::set<std::string>{"Acknowledged"});

  host->on_loop([](Server& s) { s.remove_condition(kHotId); });
  EXPECT_EQ(first_path(listener.wait_for("InterfacesRemoved", "/org/gpuhealth1").get()), kHotPath);
  const auto cleared = listener.wait_for("ConditionChanged");
  ASSERT_GT(sd_bus_message_read(cleared.get(), "ssss", &id, &type, &severity, &state), 0);
  EXPECT_STREQ(state, "cleared");
}

TEST_F(ServerTest, TellsOfDevicesThatComeChangeAndGo) {
  serve();
  auto throttled = sample();
  throttled.throttle.insert(ThrottleReason::TempHotspot);
  throttled.performance_level = "low";
  host->on_loop([&](Server& s) { s.set_sample(throttled); });
  EXPECT_EQ(changed_properties(listener.wait_for("PropertiesChanged", kCardPath).get(), kDeviceInterface),
            (std::set<std::string>{"ThrottleReasons", "PerformanceLevel"}));
  host->on_loop([](Server& s) { s.remove_device(kCardId); });
  EXPECT_EQ(first_path(listener.wait_for("InterfacesRemoved").get()), kCardPath);
  host->on_loop([](Server& s) { s.set_device(card()); });
  EXPECT_EQ(first_path(listener.wait_for("InterfacesAdded").get()), kCardPath);
}

TEST_F(ServerTest, IsSilentAboutNumbersThatFluctuate) {
  serve();
  host->on_loop([](Server& s) {
    for (int i = 0; i < 100; ++i) s.set_sample(sample(40.0 + i));
    auto c = test::manager_state();
    c.samples = 142;
    s.set_manager(c);
  });
  listener.drain();
  EXPECT_TRUE(listener.seen().empty()) << listener.seen().front();
  const auto devices = Client::connect(bus.address())->devices();
  EXPECT_EQ(devices->front().readings.front().value, 139.0);
}

TEST_F(ServerTest, CarriesTextsThatAreNoText) {
  serve();
  auto odd = card();
  odd.name = "bad \xff name";
  host->on_loop([&](Server& s) { s.set_device(odd); });
  const auto devices = Client::connect(bus.address())->devices();
  ASSERT_TRUE(devices) << devices.error().text;
  EXPECT_EQ(devices->front().name, "bad ? name");
}

TEST_F(ServerTest, RefusesWhatDoesNotExist) {
  serve();
  EXPECT_EQ(listener.error_of("/org/gpuhealth1", kManagerInterface, "GetHistory", "ssttu", kCardId, "temperature.nose",
                              std::uint64_t{0}, std::uint64_t{10}, 10u),
            "org.gpuhealth1.Error.NotFound");
  EXPECT_EQ(listener.error_of("/org/gpuhealth1", kManagerInterface, "GetHistory", "s", kCardId),
            "org.freedesktop.DBus.Error.InvalidArgs");
  EXPECT_EQ(listener.error_of("/org/gpuhealth1/device/none", "org.freedesktop.DBus.Properties", "GetAll", "s",
                              kDeviceInterface),
            "org.freedesktop.DBus.Error.UnknownObject");
  EXPECT_EQ(listener.error_of(kCardPath, "org.freedesktop.DBus.Properties", "Set", "ssv", kDeviceInterface,
                              "PerformanceLevel", "s", "high"),
            "org.freedesktop.DBus.Error.PropertyReadOnly");
}

TEST_F(ServerTest, AnswersForACallThatTheDaemonDropped) {
  Requests requests;
  requests.events = [](WallTime, WallTime, std::uint32_t, const auto&) {};
  serve(std::move(requests));
  EXPECT_EQ(listener.error_of("/org/gpuhealth1", kManagerInterface, "GetEvents", "ttu", std::uint64_t{0},
                              std::uint64_t{10}, 10u),
            "org.gpuhealth1.Error.Unavailable");
}

TEST_F(ServerTest, AcknowledgesForRootWherePolkitIsMissing) {
  Requests requests;
  std::string acknowledged;
  requests.acknowledge = [&](const std::string& id, const auto& then) {
    acknowledged = id;
    then(Result<void>{});
  };
  serve(std::move(requests));
  host->on_loop([](Server& s) { s.set_condition(overheating()); });
  EXPECT_EQ(listener.error_of(kHotPath, kConditionInterface, "Acknowledge", ""), "");
  host->on_loop([&](Server&) { EXPECT_EQ(acknowledged, kHotId); });
  EXPECT_TRUE(Client::connect(bus.address())->acknowledge(kHotId));
}

TEST_F(ServerTest, PassesOnWhyAReloadFailed) {
  Requests requests;
  requests.reload = [](const auto& then) {
    then(fail(ErrorCode::InvalidInput, "gpuhealthd.yaml:3:5: unknown key \"intervall\""));
  };
  serve(std::move(requests));
  const auto reloaded = Client::connect(bus.address())->reload();
  ASSERT_FALSE(reloaded);
  EXPECT_EQ(reloaded.error().code, ErrorCode::InvalidInput);
  EXPECT_EQ(reloaded.error().text, "gpuhealthd.yaml:3:5: unknown key \"intervall\"");
}

// A polkit of a test's own: says what it is told to, and notes the flags that it was asked with.
class FakePolkit {
 public:
  FakePolkit(const std::string& address, bool authorized, bool challenge)
      : bus_(address), authorized_(authorized), challenge_(challenge) {
    if (!bus_.own("org.freedesktop.PolicyKit1")) throw std::runtime_error("cannot be polkit");
    sd_bus_add_filter(bus_.bus(), nullptr, &FakePolkit::answer, this);
    thread_ = std::thread([this] {
      while (!answered_) {
        if (sd_bus_process(bus_.bus(), nullptr) == 0) sd_bus_wait(bus_.bus(), UINT64_MAX);
      }
    });
  }
  ~FakePolkit() { thread_.join(); }  // one question must have come
  FakePolkit(const FakePolkit&) = delete;
  FakePolkit& operator=(const FakePolkit&) = delete;

  std::string action;
  std::uint32_t flags = 99;
  std::string cancellation;

 private:
  static int answer(sd_bus_message* m, void* userdata, sd_bus_error*) {
    if (sd_bus_message_is_method_call(m, "org.freedesktop.PolicyKit1.Authority", "CheckAuthorization") <= 0) return 0;
    auto* self = static_cast<FakePolkit*>(userdata);
    const char* text = nullptr;
    sd_bus_message_skip(m, "(sa{sv})");
    sd_bus_message_read(m, "s", &text);
    self->action = text;
    sd_bus_message_skip(m, "a{ss}");
    sd_bus_message_read(m, "u", &self->flags);
    sd_bus_reply_method_return(m, "(bba{ss})", static_cast<int>(self->authorized_), static_cast<int>(self->challenge_),
                               0);
    self->answered_ = true;
    return 1;
  }
  Listener bus_;
  bool authorized_;
  bool challenge_;
  bool answered_ = false;
  std::thread thread_;
};

struct Verdict {
  bool authorized;
  bool challenge;
  const char* error;
};

class PolkitVerdict : public ServerTest, public ::testing::WithParamInterface<Verdict> {};

TEST_P(PolkitVerdict, DecidesWhetherAConditionIsAcknowledged) {
  bool asked = false;
  Requests requests;
  requests.acknowledge = [&](const std::string&, const auto& then) {
    asked = true;
    then(Result<void>{});
  };
  serve(std::move(requests));
  host->on_loop([](Server& s) { s.set_condition(overheating()); });
  std::string action;
  std::uint32_t flags = 99;
  {
    FakePolkit polkit(bus.address(), GetParam().authorized, GetParam().challenge);
    EXPECT_EQ(listener.error_of("/org/gpuhealth1", kManagerInterface, "AcknowledgeCondition", "s", kHotId),
              GetParam().error);
    listener.drain();
    action = polkit.action;
    flags = polkit.flags;
  }
  EXPECT_EQ(action, "org.gpuhealth1.device.manage");
  EXPECT_EQ(flags, 0u);  // the caller did not allow a dialogue
  host->on_loop([&](Server&) { EXPECT_EQ(asked, GetParam().authorized); });
}

INSTANTIATE_TEST_SUITE_P(
    Says, PolkitVerdict,
    ::testing::Values(Verdict{true, false, ""}, Verdict{false, false, "org.gpuhealth1.Error.NotPermitted"},
                      Verdict{false, true, "org.freedesktop.DBus.Error.InteractiveAuthorizationRequired"}));

TEST_F(ServerTest, LetsPolkitShowADialogueWhenTheCallerAllowsIt) {
  Requests requests;
  requests.acknowledge = [](const std::string&, const auto& then) { then(Result<void>{}); };
  serve(std::move(requests));
  host->on_loop([](Server& s) { s.set_condition(overheating()); });
  std::uint32_t flags = 99;
  {
    FakePolkit polkit(bus.address(), true, false);
    EXPECT_TRUE(Client::connect(bus.address())->acknowledge(kHotId));  // the client always allows it
    flags = polkit.flags;
  }
  EXPECT_EQ(flags, 1u);
}

}  // namespace
}  // namespace gpuhealth::dbus
