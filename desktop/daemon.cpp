// SPDX-License-Identifier: Apache-2.0
#include "desktop/daemon.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <utility>

#include "dbus/names.hpp"
#include "dbus/sd.hpp"

namespace gpuhealth::desktop {
namespace {

constexpr std::uint64_t kDialogueTime = 120'000'000;
constexpr std::chrono::milliseconds kFirstPause{250};
constexpr std::chrono::milliseconds kLongestPause{30'000};
constexpr const char* kKernelPath = "/org/gpuhealth1/kernel";

struct Call {
  const char* path;
  const char* interface;
  const char* method;
  bool with_argument;
};

Call call_of(Wish::Kind kind) {
  switch (kind) {
    case Wish::Kind::TryKernel:
      return {kKernelPath, dbus::kKernelInterface, "Trial", true};
    case Wish::Kind::UndoTrial:
      return {kKernelPath, dbus::kKernelInterface, "Unpin", false};
    case Wish::Kind::Revert:
      return {dbus::kRootPath, dbus::kManagerInterface, "RevertAction", true};
    case Wish::Kind::Keep:
      return {dbus::kRootPath, dbus::kManagerInterface, "ConfirmAction", true};
    case Wish::Kind::Nothing:
    case Wish::Kind::Details:
      break;
  }
  return {nullptr, nullptr, nullptr, false};
}

dbus::BusPtr open_bus(const std::string& address) {
  const char* wish = std::getenv("GPUHEALTH_BUS_ADDRESS");
  const std::string where = !address.empty() ? address : wish != nullptr ? wish : "";
  dbus::BusPtr bus;
  return dbus::open_bus(bus, where) < 0 ? nullptr : std::move(bus);
}

}  // namespace

Mailbox::Mailbox() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

void Mailbox::post(std::function<void()> work) {
  const std::scoped_lock lock(mutex_);
  waiting_.push_back(std::move(work));
  eventfd_write(fd_.get(), 1);
}

void Mailbox::run() {
  std::vector<std::function<void()>> work;
  {
    const std::scoped_lock lock(mutex_);
    eventfd_t count = 0;
    eventfd_read(fd_.get(), &count);
    work.swap(waiting_);
  }
  for (const auto& one : work) one();
}

void look_for_ever(const std::string& bus, const std::function<void(std::optional<dbus::Snapshot>)>& seen) {
  auto pause = kFirstPause;
  while (true) {
    auto client = dbus::Client::connect(bus, std::chrono::seconds(5), dbus::Activation::Never);
    if (client) {
      const auto look = [&] {
        auto snapshot = client->snapshot();
        if (!snapshot) return false;
        seen(std::move(*snapshot));
        pause = kFirstPause;
        return true;
      };
      // Listens first, then looks: nothing that is signalled meanwhile is missed.
      const auto listening = client->watch(std::chrono::milliseconds(1), [] { return false; });
      if (listening && look()) (void)client->watch(std::chrono::hours(1), look);
      seen(std::nullopt);
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, kLongestPause);
  }
}

Result<void> ask(const std::string& bus_address, const Wish& wish) {
  const Call call = call_of(wish.kind);
  if (call.path == nullptr) return {};
  const auto bus = open_bus(bus_address);
  if (!bus) return fail(ErrorCode::Unavailable, "there is no bus to ask the daemon on");
  sd_bus_message* raw = nullptr;
  int r = sd_bus_message_new_method_call(bus.get(), &raw, dbus::kBusName, call.path, call.interface, call.method);
  const dbus::MessagePtr message(raw);
  if (r >= 0 && call.with_argument) r = sd_bus_message_append(raw, "s", wish.what.c_str());
  if (r >= 0) r = sd_bus_message_set_allow_interactive_authorization(raw, 1);
  if (r < 0) return fail(ErrorCode::Internal, "cannot write the call", -r);
  dbus::BusError error;
  sd_bus_message* answer = nullptr;
  r = sd_bus_call(bus.get(), raw, kDialogueTime, error.get(), &answer);
  const dbus::MessagePtr reply(answer);
  if (r >= 0) return {};
  const auto code = error.name()[0] == '\0' ? ErrorCode::Unavailable : dbus::error_code(error.name());
  return fail(code, error.text()[0] == '\0' ? std::strerror(-r) : error.text(), -r);
}

}  // namespace gpuhealth::desktop
