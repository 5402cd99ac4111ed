// SPDX-License-Identifier: Apache-2.0
#include "dbus/names.hpp"

#include <systemd/sd-bus.h>

#include <array>
#include <cstdlib>
#include <memory>

namespace gpuhealth::dbus {
namespace {

std::string encode(const char* prefix, std::string_view id) {
  char* raw = nullptr;
  if (sd_bus_path_encode(prefix, std::string(id).c_str(), &raw) < 0) return prefix;
  const std::unique_ptr<char, decltype(&std::free)> path(raw, &std::free);
  return path.get();
}

struct ErrorRow {
  const char* name;
  ErrorCode code;
};
// The first row of each code is the one that we answer with.
constexpr std::array kErrors = std::to_array<ErrorRow>({
    {"org.gpuhealth1.Error.NotFound", ErrorCode::NotFound},
    {"org.gpuhealth1.Error.Unreadable", ErrorCode::Unreadable},
    {"org.gpuhealth1.Error.InvalidInput", ErrorCode::InvalidInput},
    {"org.gpuhealth1.Error.NotPermitted", ErrorCode::NotPermitted},
    {"org.gpuhealth1.Error.Unavailable", ErrorCode::Unavailable},
    {"org.gpuhealth1.Error.Exhausted", ErrorCode::Exhausted},
    {"org.gpuhealth1.Error.Internal", ErrorCode::Internal},
    {"org.freedesktop.DBus.Error.UnknownObject", ErrorCode::NotFound},
    {"org.freedesktop.DBus.Error.InvalidArgs", ErrorCode::InvalidInput},
    {"org.freedesktop.DBus.Error.AccessDenied", ErrorCode::NotPermitted},
    {"org.freedesktop.DBus.Error.AuthFailed", ErrorCode::NotPermitted},
    {"org.freedesktop.DBus.Error.InteractiveAuthorizationRequired", ErrorCode::NotPermitted},
    {"org.freedesktop.DBus.Error.ServiceUnknown", ErrorCode::Unavailable},
    {"org.freedesktop.DBus.Error.NameHasNoOwner", ErrorCode::Unavailable},
    {"org.freedesktop.DBus.Error.NoReply", ErrorCode::Unavailable},
    {"org.freedesktop.DBus.Error.NoServer", ErrorCode::Unavailable},
    {"org.freedesktop.DBus.Error.Disconnected", ErrorCode::Unavailable},
    {"org.freedesktop.DBus.Error.Timeout", ErrorCode::Unavailable},
    {"org.freedesktop.DBus.Error.TimedOut", ErrorCode::Unavailable},
    {"org.freedesktop.DBus.Error.LimitsExceeded", ErrorCode::Exhausted},
});

}  // namespace

std::string device_path(std::string_view device_id) {
  return encode(kDevicePrefix, device_id);
}
std::string condition_path(std::string_view condition_id) {
  return encode(kConditionPrefix, condition_id);
}
std::string action_path(std::string_view action_id) {
  return encode(kActionPrefix, action_id);
}
std::string job_path(std::string_view job_id) {
  return encode(kJobPrefix, job_id);
}

const char* error_name(ErrorCode code) {
  for (const auto& row : kErrors) {
    if (row.code == code) return row.name;
  }
  return error_name(ErrorCode::Internal);
}

ErrorCode error_code(std::string_view dbus_error_name) {
  for (const auto& row : kErrors) {
    if (row.name == dbus_error_name) return row.code;
  }
  // Whatever keeps a service from being started (Spawn.ExecFailed, systemd1.NoSuchUnit, …) means that it is not there.
  if (dbus_error_name.starts_with("org.freedesktop.DBus.Error.Spawn.") ||
      dbus_error_name.starts_with("org.freedesktop.systemd1."))
    return ErrorCode::Unavailable;
  return ErrorCode::Internal;
}

}  // namespace gpuhealth::dbus
