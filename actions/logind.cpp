// SPDX-License-Identifier: Apache-2.0
#include "actions/logind.hpp"

#include <sys/uio.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-journal.h>

#include <cstdlib>
#include <memory>

namespace gpuhealth::actions {
namespace {

constexpr const char* kName = "org.freedesktop.login1";
constexpr const char* kPath = "/org/freedesktop/login1";
constexpr const char* kManager = "org.freedesktop.login1.Manager";

using Bus = std::unique_ptr<sd_bus, decltype(&sd_bus_flush_close_unref)>;
using Message = std::unique_ptr<sd_bus_message, decltype(&sd_bus_message_unref)>;

Result<Bus> system_bus() {
  sd_bus* bus = nullptr;
  if (const int error = sd_bus_open_system(&bus); error < 0) return fail_errno("logind cannot be asked", -error);
  return Bus(bus, &sd_bus_flush_close_unref);
}

struct BusError {
  sd_bus_error error{nullptr, nullptr, 0};
  BusError() = default;
  BusError(const BusError&) = delete;
  BusError& operator=(const BusError&) = delete;
  ~BusError() { sd_bus_error_free(&error); }
  [[nodiscard]] std::string text(int code) const {
    if (error.message != nullptr) return error.message;
    return "error " + std::to_string(-code);
  }
};

}  // namespace

Result<std::vector<std::string>> logind_inhibitors() {
  const auto bus = system_bus();
  if (!bus) return tl::unexpected<Error>(bus.error());
  BusError error;
  sd_bus_message* raw = nullptr;
  int code = sd_bus_call_method(bus->get(), kName, kPath, kManager, "ListInhibitors", &error.error, &raw, "");
  if (code < 0) return fail(ErrorCode::Unavailable, "logind does not list its inhibitors: " + error.text(code));
  const Message reply(raw, &sd_bus_message_unref);
  std::vector<std::string> out;
  code = sd_bus_message_enter_container(raw, 'a', "(ssssuu)");
  const char* what = nullptr;
  const char* who = nullptr;
  const char* why = nullptr;
  const char* mode = nullptr;
  unsigned uid = 0;
  unsigned pid = 0;
  while (code >= 0 && (code = sd_bus_message_read(raw, "(ssssuu)", &what, &who, &why, &mode, &uid, &pid)) > 0) {
    if (std::string_view(mode) == "block" && std::string_view(what).find("shutdown") != std::string_view::npos)
      out.push_back(std::string(who) + " (pid " + std::to_string(pid) + "): " + why);
  }
  if (code < 0) return fail_errno("what logind said of its inhibitors cannot be read", -code);
  return out;
}

Result<void> logind_reboot(const RebootWish& wish) {
  const auto bus = system_bus();
  if (!bus) return tl::unexpected<Error>(bus.error());
  BusError wall;
  // Without the right to set a message the reboot still is announced, in logind's own words.
  (void)sd_bus_call_method(bus->get(), kName, kPath, kManager, "SetWallMessage", &wall.error, nullptr, "sb",
                           wish.message.c_str(), 1);
  const auto when = std::chrono::duration_cast<std::chrono::microseconds>(
                        std::chrono::system_clock::now().time_since_epoch() + wish.notice)
                        .count();
  BusError error;
  const int code = sd_bus_call_method(bus->get(), kName, kPath, kManager, "ScheduleShutdown", &error.error, nullptr,
                                      "st", "reboot", static_cast<std::uint64_t>(when));
  if (code < 0) return fail(ErrorCode::Unavailable, "logind does not reboot the machine: " + error.text(code));
  return {};
}

Result<void> journal_line(int priority, const std::string& text,
                          const std::vector<std::pair<std::string, std::string>>& fields) {
  std::vector<std::string> lines = {"MESSAGE=" + text, "PRIORITY=" + std::to_string(priority),
                                    "SYSLOG_IDENTIFIER=gpuhealth"};
  for (const auto& [name, value] : fields) lines.push_back(name + "=" + value);
  std::vector<iovec> parts;
  parts.reserve(lines.size());
  for (std::string& line : lines) parts.push_back({line.data(), line.size()});
  if (const int error = sd_journal_sendv(parts.data(), static_cast<int>(parts.size())); error < 0)
    return fail_errno("the journal takes no line", -error);
  return {};
}

}  // namespace gpuhealth::actions
