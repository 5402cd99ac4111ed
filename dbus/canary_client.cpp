// SPDX-License-Identifier: Apache-2.0
#include "dbus/canary_client.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "dbus/client_bus.hpp"
#include "dbus/names.hpp"
#include "dbus/records.hpp"
#include "dbus/sd.hpp"
#include "dbus/wire.hpp"

namespace gpuhealth::dbus {
namespace {

using std::chrono::milliseconds;

constexpr std::chrono::seconds kDialogueTime{120};
constexpr std::chrono::seconds kLook{5};  // after which a silent daemon is asked whether it is still there

std::uint64_t microseconds(milliseconds d) {
  return static_cast<std::uint64_t>(std::chrono::microseconds(d).count());
}

std::string* text_of(JobView& job, std::string_view name) {
  if (name == "Id") return &job.id;
  if (name == "Device") return &job.device;
  if (name == "DeviceLabel") return &job.device_label;
  if (name == "State") return &job.state;
  return name == "Reason" ? &job.reason : nullptr;
}

std::vector<std::string>* texts_of(JobView& job, std::string_view name) {
  if (name == "Only") return &job.only;
  return name == "Results" ? &job.results : nullptr;
}

WallTime* time_of(JobView& job, std::string_view name) {
  if (name == "Started") return &job.started;
  return name == "Ended" ? &job.ended : nullptr;
}

// Properties of a newer daemon are passed over.
JobView read_job(Reader& in) {
  JobView job;
  if (!in.enter('a', "{sv}")) return job;
  while (in.enter('e', "sv")) {
    const std::string name = in.text();
    const std::string type = in.variant_type();
    if (auto* text = text_of(job, name); text != nullptr && type == "s" && in.enter('v', "s")) {
      *text = in.text();
      in.leave();
    } else if (auto* texts = texts_of(job, name); texts != nullptr && type == "as" && in.enter('v', "as")) {
      *texts = read_texts(in);
      in.leave();
    } else if (auto* time = time_of(job, name); time != nullptr && type == "t" && in.enter('v', "t")) {
      *time = in.time();
      in.leave();
    } else if (name == "Tier" && type == "u" && in.enter('v', "u")) {
      job.tier = in.u32();
      in.leave();
    } else {
      in.skip("v");
    }
    in.leave();
  }
  in.leave();
  return job;
}

}  // namespace

struct CanaryClient::Impl {
  BusPtr bus;
  milliseconds deadline{};
  SlotPtr match;
  bool changed = false;

  Result<MessagePtr> call(sd_bus_message* message, milliseconds limit) const {
    BusError error;
    sd_bus_message* reply = nullptr;
    sd_bus_message_set_auto_start(message, 0);
    const int r = sd_bus_call(bus.get(), message, microseconds(limit), error.get(), &reply);
    if (r < 0) return tl::unexpected(from_bus(error, r));
    return MessagePtr(reply);
  }

  // Before the job begins, so that no result is missed.
  Result<void> listen() {
    if (match) return {};
    const auto note = [](sd_bus_message* /*message*/, void* userdata, sd_bus_error* /*error*/) {
      static_cast<Impl*>(userdata)->changed = true;
      return 0;
    };
    sd_bus_slot* slot = nullptr;
    const int r = sd_bus_add_match(
        bus.get(), &slot, "type='signal',sender='org.gpuhealth1',path_namespace='/org/gpuhealth1/job'", note, this);
    match.reset(slot);
    if (r < 0) return fail(ErrorCode::Unavailable, std::string("cannot listen on the bus: ") + std::strerror(-r), -r);
    return {};
  }

  Result<JobView> job(const std::string& path) const {
    sd_bus_message* raw = nullptr;
    int r = sd_bus_message_new_method_call(bus.get(), &raw, kBusName, path.c_str(), "org.freedesktop.DBus.Properties",
                                           "GetAll");
    const MessagePtr message(raw);
    if (r >= 0) r = Writer(raw).text(kJobInterface).error();
    if (r < 0) return fail(ErrorCode::Unavailable, "the bus is gone", -r);
    auto reply = call(raw, deadline);
    if (!reply) return tl::unexpected(reply.error());
    Reader in(reply->get());
    auto view = read_job(in);
    if (in.error() < 0 || view.state.empty())
      return fail(ErrorCode::InvalidInput,
                  "gpuhealthd's answer cannot be read; are its version and this program's the same?");
    return view;
  }
};

CanaryClient::CanaryClient(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
CanaryClient::CanaryClient(CanaryClient&&) noexcept = default;
CanaryClient& CanaryClient::operator=(CanaryClient&&) noexcept = default;
CanaryClient::~CanaryClient() = default;

Result<CanaryClient> CanaryClient::connect(const std::string& address, milliseconds deadline) {
  auto bus = connect_client(address, deadline);
  if (!bus) return tl::unexpected(bus.error());
  auto impl = std::make_unique<Impl>();
  impl->bus = std::move(*bus);
  impl->deadline = deadline;
  return CanaryClient(std::move(impl));
}

Result<std::string> CanaryClient::problem() {
  sd_bus_message* raw = nullptr;
  int r = sd_bus_message_new_method_call(impl_->bus.get(), &raw, kBusName, kCanaryPath,
                                         "org.freedesktop.DBus.Properties", "Get");
  const MessagePtr message(raw);
  if (r >= 0) r = Writer(raw).text(kCanaryInterface).text("Problem").error();
  if (r < 0) return fail(ErrorCode::Unavailable, "the bus is gone", -r);
  auto reply = impl_->call(raw, impl_->deadline);
  if (!reply) return tl::unexpected(reply.error());
  Reader in(reply->get());
  std::string text;
  if (in.enter('v', "s")) text = in.text();
  if (in.error() < 0) return fail(ErrorCode::InvalidInput, "gpuhealthd's answer cannot be read", -in.error());
  return text;
}

Result<std::string> CanaryClient::start(const JobRequest& request) {
  if (auto listening = impl_->listen(); !listening) return tl::unexpected(listening.error());
  sd_bus_message* raw = nullptr;
  int r = sd_bus_message_new_method_call(impl_->bus.get(), &raw, kBusName, kCanaryPath, kCanaryInterface, "Run");
  const MessagePtr message(raw);
  if (r >= 0) {
    Writer out(raw);
    out.text(request.device).u32(request.tier);
    write(out, request.only);
    r = out.error();
  }
  if (r >= 0) r = sd_bus_message_set_allow_interactive_authorization(raw, 1);
  if (r < 0) return fail(ErrorCode::Internal, "cannot write the call Run", -r);
  auto reply = impl_->call(raw, std::max<milliseconds>(impl_->deadline, kDialogueTime));
  if (!reply) return tl::unexpected(reply.error());
  Reader in(reply->get());
  const std::string path = in.path();
  if (in.error() < 0) return fail(ErrorCode::InvalidInput, "gpuhealthd's answer cannot be read", -in.error());
  auto job = impl_->job(path);
  if (!job) return tl::unexpected(job.error());
  return job->id;
}

Result<JobView> CanaryClient::follow(const std::string& id,
                                     const std::function<void(const std::string& line)>& on_result) {
  if (auto listening = impl_->listen(); !listening) return tl::unexpected(listening.error());
  const std::string path = job_path(id);
  std::size_t told = 0;
  for (;;) {
    auto job = impl_->job(path);
    for (; job && told < job->results.size(); ++told) {
      if (on_result) on_result(job->results[told]);
    }
    if (!job || is_over(*job)) return job;
    impl_->changed = false;
    while (!impl_->changed) {
      int r = sd_bus_process(impl_->bus.get(), nullptr);
      if (r > 0) continue;
      if (r == 0) r = sd_bus_wait(impl_->bus.get(), microseconds(kLook));
      if (r == 0) break;
      if (r < 0 && r != -EINTR)
        return fail(ErrorCode::Unavailable, std::string("the bus is gone: ") + std::strerror(-r), -r);
    }
  }
}

Result<void> CanaryClient::cancel(const std::string& id) {
  sd_bus_message* raw = nullptr;
  int r =
      sd_bus_message_new_method_call(impl_->bus.get(), &raw, kBusName, job_path(id).c_str(), kJobInterface, "Cancel");
  const MessagePtr message(raw);
  if (r >= 0) r = sd_bus_message_set_allow_interactive_authorization(raw, 1);
  if (r < 0) return fail(ErrorCode::Internal, "cannot write the call Cancel", -r);
  auto reply = impl_->call(raw, std::max<milliseconds>(impl_->deadline, kDialogueTime));
  if (!reply) return tl::unexpected(reply.error());
  return {};
}

}  // namespace gpuhealth::dbus
