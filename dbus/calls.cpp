// SPDX-License-Identifier: Apache-2.0
#include "dbus/calls.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "dbus/model.hpp"
#include "dbus/names.hpp"
#include "dbus/records.hpp"
#include "dbus/wire.hpp"

namespace gpuhealth::dbus {
namespace {

int refuse(sd_bus_message* call, const char* name, const std::string& text) {
  BusError error;
  sd_bus_error_set(error.get(), name, bus_text(text).c_str());
  return sd_bus_reply_method_error(call, error.get());
}

int refuse(sd_bus_message* call, ErrorCode code, const std::string& text) {
  return refuse(call, error_name(code), text);
}

template <class Write>
int answer(sd_bus_message* call, const Write& write_to) {
  sd_bus_message* raw = nullptr;
  if (const int r = sd_bus_message_new_method_return(call, &raw); r < 0) return r;
  const MessagePtr reply(raw);
  Writer out(raw);
  write_to(out);
  if (out.error() < 0) return out.error();
  return sd_bus_send(nullptr, raw, nullptr);
}

constexpr std::size_t kMostCanaries = 64;

struct ObjectPath {
  std::string value;
};
void write(Writer& out, const ObjectPath& path) {
  out.path(path.value);
}

}  // namespace

struct Calls::Shared {
  std::function<void()> sent;
  std::multiset<std::string> open;  // senders
};

// A call that is answered once, later. One that is dropped unanswered says so to its caller.
class Calls::Pending {
 public:
  Pending(std::shared_ptr<Shared> shared, sd_bus_message* call)
      : shared_(std::move(shared)), call_(sd_bus_message_ref(call)), place_(shared_->open.insert(sender(call))) {}
  ~Pending() {
    if (call_) finish(Error{ErrorCode::Unavailable, "the daemon dropped this request; it may be stopping"});
  }
  Pending(const Pending&) = delete;
  Pending& operator=(const Pending&) = delete;

  static std::string sender(sd_bus_message* call) {
    const char* name = sd_bus_message_get_sender(call);
    return name != nullptr ? name : "";
  }

  [[nodiscard]] sd_bus_message* call() const { return call_.get(); }

  void finish(const Error& error) {
    if (!call_) return;
    refuse(call_.get(), error.code, error.text);
    done();
  }
  void finish(const Refusal& refusal) {
    if (!call_) return;
    refuse(call_.get(), refusal.name.c_str(), refusal.text);
    done();
  }
  void finish() {
    if (!call_) return;
    sd_bus_reply_method_return(call_.get(), "");
    done();
  }
  template <class Rows>
  void finish(const Rows& rows) {
    if (!call_) return;
    if (answer(call_.get(), [&](Writer& out) { write(out, rows); }) < 0)
      refuse(call_.get(), ErrorCode::Internal, "the answer could not be written");
    done();
  }
  void finish(const Result<void>& result) { result ? finish() : finish(result.error()); }

 private:
  void done() {
    call_.reset();
    shared_->open.erase(place_);
    if (shared_->sent) shared_->sent();
  }

  std::shared_ptr<Shared> shared_;
  MessagePtr call_;
  std::multiset<std::string>::iterator place_;
};

// Who asked for a job: without them it is cancelled.
struct Calls::Asker {
  struct Unref {
    void operator()(sd_bus_track* followed) const { sd_bus_track_unref(followed); }
  };
  Calls* owner = nullptr;
  std::unique_ptr<sd_bus_track, Unref> track;
  std::string job;  // empty: not started yet
  bool waits = true;
  bool gone = false;
};

Calls::Calls(sd_bus* bus, const Model& model, const Requests& requests, std::function<void()> sent)
    : model_(model), requests_(requests), shared_(std::make_shared<Shared>()), authority_(bus) {
  shared_->sent = std::move(sent);
}

Calls::~Calls() {
  for (const auto& asker : askers_) asker->owner = nullptr;
  shared_->sent = nullptr;  // what is still open answers into a closed connection
}

// Null when too much is open; the caller has been told.
std::shared_ptr<Calls::Pending> Calls::open(sd_bus_message* call) {
  if (shared_->open.size() >= kMaxOpenCalls || shared_->open.count(Pending::sender(call)) >= kMaxOpenCallsOfOneClient) {
    refuse(call, ErrorCode::Exhausted, "too many requests at once; wait for the answers of the earlier ones");
    return nullptr;
  }
  return std::make_shared<Pending>(shared_, call);
}

int Calls::history(sd_bus_message* call) {
  Reader in(call);
  store::HistoryQuery query;
  query.device = in.text();
  const std::string name = in.text();
  query.since = in.time();
  query.until = in.time();
  query.max_points = std::min(in.u32(), kMaxHistoryPoints);
  if (in.error() < 0) return in.error();
  const ReadingInfo* reading = find_reading(name);
  // One that has left may have a history yet; the store tells.
  const bool known = model_.device(query.device) != nullptr;
  if (reading == nullptr) return refuse(call, ErrorCode::NotFound, "no reading has the name \"" + name + "\"");
  if (reading->keep != Keep::History)
    return refuse(call, ErrorCode::InvalidInput, "\"" + name + "\" is not kept in history, only its last value is");
  if (query.since >= query.until) return refuse(call, ErrorCode::InvalidInput, "since must be before until");
  if (query.max_points == 0) return refuse(call, ErrorCode::InvalidInput, "max_points must be 1 to 4096");
  query.reading = reading->id;
  if (!requests_.history) return refuse(call, ErrorCode::Unavailable, "this daemon keeps no history");
  if (auto pending = open(call))
    requests_.history(query, [pending, known, device = query.device,
                              most = query.max_points](Result<std::vector<store::HistoryPoint>> points) {
      if (!points) return pending->finish(points.error());
      if (!known && points->empty())
        return pending->finish(Error{ErrorCode::NotFound, "no device has the id \"" + device +
                                                              "\", and history has nothing of it in this time"});
      if (points->size() > most) points->resize(most);
      pending->finish(*points);
    });
  return 1;
}

int Calls::events(sd_bus_message* call) {
  Reader in(call);
  const WallTime since = in.time();
  const WallTime until = in.time();
  const std::uint32_t limit = std::min(in.u32(), kMaxEvents);
  if (in.error() < 0) return in.error();
  if (since >= until) return refuse(call, ErrorCode::InvalidInput, "since must be before until");
  if (limit == 0) return refuse(call, ErrorCode::InvalidInput, "limit must be 1 to 4096");
  if (!requests_.events) return refuse(call, ErrorCode::Unavailable, "this daemon keeps no events");
  if (auto pending = open(call))
    requests_.events(since, until, limit, [pending, limit](Result<std::vector<Event>> events) {
      if (!events) return pending->finish(events.error());
      if (events->size() > limit) events->resize(limit);
      pending->finish(*events);
    });
  return 1;
}

int Calls::past_conditions(sd_bus_message* call) {
  Reader in(call);
  const WallTime since = in.time();
  const std::uint32_t limit = std::min(in.u32(), kMaxPastConditions);
  if (in.error() < 0) return in.error();
  if (limit == 0) return refuse(call, ErrorCode::InvalidInput, "limit must be 1 to 1024");
  if (!requests_.past_conditions) return refuse(call, ErrorCode::Unavailable, "this daemon keeps no conditions");
  if (auto pending = open(call))
    requests_.past_conditions(since, limit, [pending, limit](Result<std::vector<Condition>> conditions) {
      if (!conditions) return pending->finish(conditions.error());
      if (conditions->size() > limit) conditions->resize(limit);
      pending->finish(*conditions);
    });
  return 1;
}

int Calls::acknowledge(sd_bus_message* call) {
  Reader in(call);
  const std::string id = in.text();
  if (in.error() < 0) return in.error();
  return acknowledge(call, id);
}

int Calls::acknowledge(sd_bus_message* call, const std::string& condition) {
  if (model_.condition(condition) == nullptr)
    return refuse(call, ErrorCode::NotFound, "no open condition has the id \"" + condition + "\"");
  if (!requests_.acknowledge) return refuse(call, ErrorCode::Unavailable, "this daemon cannot acknowledge conditions");
  auto pending = open(call);
  if (!pending) return 1;
  authority_.check(call, kPolkitManageDevice, [this, pending, condition](const std::optional<Refusal>& refusal) {
    if (refusal) return pending->finish(*refusal);
    requests_.acknowledge(condition, [pending](const Result<void>& result) { pending->finish(result); });
  });
  return 1;
}

int Calls::change(sd_bus_message* call, const char* polkit_action, std::function<void(Then)> work) {
  if (!work) return refuse(call, ErrorCode::Unavailable, "this daemon cannot do that");
  auto pending = open(call);
  if (!pending) return 1;
  authority_.check(call, polkit_action, [pending, work = std::move(work)](const std::optional<Refusal>& refusal) {
    if (refusal) return pending->finish(*refusal);
    work([pending](const Result<void>& result) { pending->finish(result); });
  });
  return 1;
}

int Calls::kernel(sd_bus_message* call, KernelRequest request) {
  if (!requests_.kernel) return refuse(call, ErrorCode::Unavailable, "this daemon does not look after kernels");
  return change(call, kPolkitManageKernel,
                [this, request = std::move(request)](Then then) { requests_.kernel(request, std::move(then)); });
}

bool Calls::is_past(const std::string& job) const {
  const auto it = model_.jobs.find(job_path(job));
  return it == model_.jobs.end() || is_over(it->second.job);
}

void Calls::asker_left(Asker& asker) {
  asker.gone = true;
  if (asker.job.empty() || is_past(asker.job) || !requests_.cancel_canary) return;
  (void)requests_.cancel_canary(asker.job, "its asker left the bus");
}

void Calls::everybody_left() {
  for (const auto& asker : askers_) asker_left(*asker);
}

int Calls::run_canary(sd_bus_message* call) {
  Reader in(call);
  JobRequest request;
  request.device = in.text();
  request.tier = in.u32();
  request.only = read_texts(in);
  if (in.error() < 0) return in.error();
  if (request.tier > 3) return refuse(call, ErrorCode::InvalidInput, "a tier is 0, 1, 2 or 3");
  if (request.only.size() > kMostCanaries) return refuse(call, ErrorCode::InvalidInput, "too many canaries are named");
  if (!requests_.run_canary) return refuse(call, ErrorCode::Unavailable, "this daemon runs no canaries");
  auto pending = open(call);
  if (!pending) return 1;
  const auto is_done = [this](const auto& asker) { return asker->job.empty() ? !asker->waits : is_past(asker->job); };
  std::erase_if(askers_, is_done);
  auto asker = std::make_shared<Asker>();
  asker->owner = this;
  const auto left = [](sd_bus_track* /*track*/, void* userdata) {
    auto* self = static_cast<Asker*>(userdata);
    if (self->owner != nullptr) self->owner->asker_left(*self);
    return 1;  // 0 asks to be called again, at once and for ever
  };
  sd_bus_track* track = nullptr;
  int r = sd_bus_track_new(sd_bus_message_get_bus(call), &track, left, asker.get());
  asker->track.reset(track);
  if (r >= 0) r = sd_bus_track_add_sender(track, call);
  if (r < 0) {
    pending->finish(Error{ErrorCode::Internal, "the bus does not say when the asker leaves", -r});
    return 1;
  }
  askers_.push_back(asker);
  authority_.check(call, kPolkitRunCanary, [this, pending, asker, request](const std::optional<Refusal>& refusal) {
    asker->waits = false;
    if (refusal) return pending->finish(*refusal);
    requests_.run_canary(request, [pending, asker](const Result<std::string>& job) {
      if (!job) return pending->finish(job.error());
      asker->job = *job;
      pending->finish(ObjectPath{job_path(*job)});
      if (asker->gone && asker->owner != nullptr) asker->owner->asker_left(*asker);
    });
  });
  return 1;
}

int Calls::cancel_canary(sd_bus_message* call, const std::string& job) {
  if (!requests_.cancel_canary) return refuse(call, ErrorCode::Unavailable, "this daemon runs no canaries");
  return change(call, kPolkitRunCanary,
                [this, job](const Then& then) { then(requests_.cancel_canary(job, "cancelled")); });
}

int Calls::reload(sd_bus_message* call) {
  return change(call, kPolkitManageDevice, requests_.reload);
}

int Calls::reload_policy(sd_bus_message* call) {
  return change(call, kPolkitManagePolicy, requests_.reload_policy);
}

int Calls::reset_breaker(sd_bus_message* call) {
  return change(call, kPolkitManagePolicy, requests_.reset_breaker);
}

namespace {

// With the id that the message holds.
template <class Request>
std::function<void(std::function<void(Result<void>)>)> about(const Request& request, std::string id) {
  if (!request) return {};
  return [request, id = std::move(id)](std::function<void(Result<void>)> then) { request(id, std::move(then)); };
}

}  // namespace

int Calls::confirm_action(sd_bus_message* call) {
  Reader in(call);
  const std::string id = in.text();
  if (in.error() < 0) return in.error();
  return change(call, kPolkitManageDevice, about(requests_.confirm_action, id));
}

int Calls::revert_action(sd_bus_message* call) {
  Reader in(call);
  const std::string id = in.text();
  if (in.error() < 0) return in.error();
  return change(call, kPolkitManageDevice, about(requests_.revert_action, id));
}

}  // namespace gpuhealth::dbus
