// SPDX-License-Identifier: Apache-2.0
#include "dbus/authority.hpp"

#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <utility>

#include "dbus/names.hpp"
#include "dbus/wire.hpp"

namespace gpuhealth::dbus {
namespace {

constexpr const char kPolkitName[] = "org.freedesktop.PolicyKit1";
constexpr const char kPolkitPath[] = "/org/freedesktop/PolicyKit1/Authority";
constexpr const char kPolkitInterface[] = "org.freedesktop.PolicyKit1.Authority";
constexpr std::uint32_t kAllowUserInteraction = 1;

constexpr std::uint64_t microseconds(std::chrono::microseconds d) {
  return static_cast<std::uint64_t>(d.count());
}
constexpr auto kAnswerTime = microseconds(std::chrono::seconds(10));
constexpr auto kDialogueTime = microseconds(std::chrono::minutes(2));  // a person types a password

MessagePtr polkit_call(sd_bus* bus, const char* method) {
  sd_bus_message* raw = nullptr;
  sd_bus_message_new_method_call(bus, &raw, kPolkitName, kPolkitPath, kPolkitInterface, method);
  return MessagePtr(raw);
}

}  // namespace

void Authority::check(sd_bus_message* call, const char* action, Then then) {
  const auto it = checks_.emplace(checks_.end());
  it->owner = this;
  it->self = it;
  const char* sender = sd_bus_message_get_sender(call);
  it->sender = sender != nullptr ? sender : "";
  it->cancellation_id = "gpuhealthd-" + std::to_string(++next_cancellation_);
  it->then = std::move(then);
  const bool interactive = sd_bus_message_get_allow_interactive_authorization(call) > 0;
  if (const int r = ask_polkit(*it, action, interactive); r < 0)
    finish(*it, Refusal{error_name(ErrorCode::Unavailable), std::string("cannot ask polkit: ") + strerror(-r)});
}

int Authority::ask_polkit(Check& check, const char* action, bool interactive) {
  const MessagePtr question = polkit_call(bus_, "CheckAuthorization");
  if (!question) return -ENOMEM;
  Writer out(question.get());
  out.begin('r', "sa{sv}").text("system-bus-name").begin('a', "{sv}");
  out.begin('e', "sv").text("name").begin('v', "s").text(check.sender).end().end().end().end();
  out.text(action).begin('a', "{ss}").end().u32(interactive ? kAllowUserInteraction : 0).text(check.cancellation_id);
  if (out.error() < 0) return out.error();
  sd_bus_slot* slot = nullptr;
  const int r = sd_bus_call_async(bus_, &slot, question.get(), &Authority::polkit_answered, &check,
                                  interactive ? kDialogueTime : kAnswerTime);
  check.slot.reset(slot);
  return r;
}

int Authority::polkit_answered(sd_bus_message* reply, void* userdata, sd_bus_error* /*error*/) noexcept {
  auto& check = *static_cast<Check*>(userdata);
  auto& self = *check.owner;
  if (const sd_bus_error* error = sd_bus_message_get_error(reply); error != nullptr) {
    if (std::strcmp(error->name, SD_BUS_ERROR_NO_REPLY) == 0) self.cancel(check);
    check.polkit_problem = error->message != nullptr ? error->message : error->name;
    self.ask_bus_for_user(check);
    return 1;
  }
  Reader in(reply);
  bool authorized = false;
  bool challenge = false;
  if (in.enter('r', "bba{ss}")) {
    authorized = in.flag();
    challenge = in.flag();
  }
  if (in.error() < 0) {
    self.finish(check,
                Refusal{error_name(ErrorCode::Unavailable), "polkit answered with something else than a verdict"});
  } else if (authorized) {
    self.finish(check, std::nullopt);
  } else if (challenge) {
    self.finish(check, Refusal{SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED,
                               "polkit wants a password and there is nobody to ask for it; run this as root, or from a "
                               "session with an authentication agent"});
  } else {
    self.finish(check, Refusal{error_name(ErrorCode::NotPermitted),
                               std::string("polkit does not permit you ") + kPolkitManageDevice});
  }
  return 1;
}

void Authority::ask_bus_for_user(Check& check) {
  sd_bus_slot* slot = nullptr;
  const int r =
      sd_bus_call_method_async(bus_, &slot, "org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus",
                               "GetConnectionUnixUser", &Authority::bus_answered, &check, "s", check.sender.c_str());
  check.slot.reset(slot);
  if (r < 0)
    finish(check, Refusal{error_name(ErrorCode::Unavailable), "polkit does not answer: " + check.polkit_problem});
}

int Authority::bus_answered(sd_bus_message* reply, void* userdata, sd_bus_error* /*error*/) noexcept {
  auto& check = *static_cast<Check*>(userdata);
  Reader in(reply);
  const bool is_error = sd_bus_message_is_method_error(reply, nullptr) > 0;
  const std::uint32_t user = is_error ? 0 : in.u32();
  if (!is_error && in.error() >= 0 && (user == 0 || user == geteuid()))
    check.owner->finish(check, std::nullopt);
  else
    check.owner->finish(check,
                        Refusal{error_name(ErrorCode::Unavailable),
                                "polkit does not answer, so that only root may do this: " + check.polkit_problem});
  return 1;
}

// A dialogue that nobody waits for any more must not stay on the screen.
void Authority::cancel(const Check& check) {
  const MessagePtr message = polkit_call(bus_, "CancelCheckAuthorization");
  if (!message) return;
  Writer(message.get()).text(check.cancellation_id);
  sd_bus_message_set_expect_reply(message.get(), 0);
  sd_bus_send(bus_, message.get(), nullptr);
}

void Authority::finish(Check& check, std::optional<Refusal> refusal) {
  const Then then = std::move(check.then);
  checks_.erase(check.self);
  then(std::move(refusal));
}

}  // namespace gpuhealth::dbus
