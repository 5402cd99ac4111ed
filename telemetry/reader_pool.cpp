// SPDX-License-Identifier: Apache-2.0
#include "telemetry/reader_pool.hpp"

#include <algorithm>
#include <map>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "telemetry/reader_process.hpp"
#include "telemetry/sampler.hpp"

namespace gpuhealth::telemetry {
namespace {

using Time = std::chrono::steady_clock::time_point;
using boost::asio::steady_timer;
using boost::system::error_code;

constexpr int kBusyMachine = 10;  // deadlines that a reader outside any read is given

}  // namespace

struct ReaderPool::Impl : std::enable_shared_from_this<Impl> {
  // One reader and the devices that it reads.
  struct Group {
    explicit Group(boost::asio::io_context& io) : watch(io) {}
    std::unique_ptr<ReaderProcess> process;
    std::vector<std::uint64_t> devices;
    bool asked = false;      // a request is out
    bool discovers = false;  // and it is a discovery
    bool reopen = false;     // the next request shall open files anew
    std::uint64_t tick = 0;
    std::uint64_t step = 0;  // the reader's step when it was last seen to move
    Time moved;
    steady_timer watch;
    bool watching = false;
  };
  // A device whose read did not return, and the process that is in it (null once that has gone).
  struct Stuck {
    explicit Stuck(boost::asio::io_context& io) : retry(io) {}
    std::unique_ptr<ReaderProcess> left_behind;
    std::chrono::milliseconds delay{};
    steady_timer retry;
    bool trying = false;  // a reader is at it again
  };
  using GroupPtr = std::shared_ptr<Group>;  // timers in flight hold it weakly

  Impl(boost::asio::io_context& context, Options o, Handlers h)
      : io(context), options(std::move(o)), handlers(std::move(h)), restart(context) {}

  boost::asio::io_context& io;
  Options options;
  Handlers handlers;
  std::vector<GroupPtr> groups;
  std::map<std::uint64_t, Stuck> stuck;
  std::uint64_t tick = 0;
  bool slow = false;  // of the tick that runs
  bool wants_discovery = false;
  Time last_trouble{};
  steady_timer restart;
  std::chrono::milliseconds restart_delay{0};
  bool closing = false;

  GroupPtr add_group(std::vector<std::uint64_t> devices);
  void start_process(const GroupPtr& group);
  void ask(const GroupPtr& group, RequestKind kind);
  void arm(const GroupPtr& group);
  void check(const GroupPtr& group);
  void split_off(const GroupPtr& group, std::uint64_t late);
  void spread(std::vector<std::uint64_t> devices);
  void mark_stuck(const GroupPtr& group, std::uint64_t device, const std::string& what);
  void left(std::uint64_t device);
  void try_again(std::uint64_t device);
  void ended(const GroupPtr& group, const std::string& how);
  void restart_later();
  void on_frame(const GroupPtr& group, Frame frame);
  void on_devices(const GroupPtr& group, const DevicesFrame& frame);
  void on_sample(const GroupPtr& group, SampleFrame& frame);
  void on_done(const GroupPtr& group, std::uint64_t done_tick);
  void merge_when_calm();
  void forget_device(std::uint64_t device);
  [[nodiscard]] GroupPtr discovering_group();
};

ReaderPool::Impl::GroupPtr ReaderPool::Impl::add_group(std::vector<std::uint64_t> devices) {
  auto group = std::make_shared<Group>(io);
  groups.push_back(group);
  group->devices = std::move(devices);
  start_process(group);
  return group;
}

void ReaderPool::Impl::start_process(const GroupPtr& group) {
  ReaderProcess::Handlers on;
  // The group owns the process, which calls nothing after its end; `this` outlives its groups.
  on.frame = [this, weak = std::weak_ptr(group)](Frame frame) {
    if (const auto alive = weak.lock()) on_frame(alive, std::move(frame));
  };
  on.ended = [this, weak = std::weak_ptr(group)](const std::string& how) {
    if (const auto alive = weak.lock()) ended(alive, how);
  };
  auto arguments = options.arguments;
  if (!options.sysroot.empty()) arguments.insert(arguments.end(), {"--sysroot", options.sysroot});
  auto process = ReaderProcess::start(io, options.program, std::move(arguments), std::move(on));
  if (!process) {
    handlers.log(Severity::Critical, process.error().text);
    restart_later();
    return;
  }
  group->process = std::move(*process);
  group->step = group->process->step();
}

void ReaderPool::Impl::ask(const GroupPtr& group, RequestKind kind) {
  if (!group->process || group->asked) return;
  Request request;
  request.kind = kind;
  request.slow = slow;
  request.reopen = std::exchange(group->reopen, false);
  request.tick = tick;
  if (kind == RequestKind::Sample) {
    request.devices = group->devices;
  } else {
    for (const auto& [device, state] : stuck) request.devices.push_back(device);
  }
  if (!group->process->send(request)) return;  // it has not even taken the last one; check() is watching it
  group->asked = true;
  group->discovers = kind == RequestKind::Discover;
  group->tick = tick;
  group->moved = std::chrono::steady_clock::now();
  arm(group);
}

void ReaderPool::Impl::arm(const GroupPtr& group) {
  if (group->watching) return;
  group->watching = true;
  group->watch.expires_after(options.patience);
  group->watch.async_wait([pool = weak_from_this(), weak = std::weak_ptr(group)](error_code error) {
    const auto self = pool.lock();
    const auto alive = weak.lock();
    if (error || !self || !alive || self->closing) return;
    alive->watching = false;
    self->check(alive);
  });
}

// Every `patience` while a request is out. A timer that finds nothing out is not armed again.
void ReaderPool::Impl::check(const GroupPtr& group) {
  if (!group->asked || !group->process) return;
  const auto now = std::chrono::steady_clock::now();
  const auto step = group->process->step();
  if (step != group->step) {
    group->step = step;
    group->moved = now;
    arm(group);
    return;
  }
  const auto where = group->process->where();
  if (now - group->moved < options.deadline) {
    if (where.device != Progress::kNoDevice && now - group->moved >= options.patience) split_off(group, where.device);
    arm(group);
    return;
  }
  if (where.device == Progress::kNoDevice) {
    // Not inside a read: it is starting, or the machine is too busy to run it. That is no fault of a GPU.
    if (now - group->moved < kBusyMachine * options.deadline) return arm(group);
    ended(group, "it does not answer");
    return;
  }
  mark_stuck(group, where.device, where.file);
}

// The late device keeps its reader; fresh ones read the others at once.
void ReaderPool::Impl::split_off(const GroupPtr& group, std::uint64_t late) {
  std::vector<std::uint64_t> others;
  std::ranges::copy_if(group->devices, std::back_inserter(others), [&](auto d) { return d != late; });
  if (others.empty()) return;
  std::erase_if(group->devices, [&](auto d) { return d != late; });  // in a discovery it may be none of ours
  last_trouble = std::chrono::steady_clock::now();
  spread(std::move(others));
}

// Two readers rather than one: when many devices hang, the good ones are reached after log2(n) waits, not after n.
void ReaderPool::Impl::spread(std::vector<std::uint64_t> devices) {
  const auto middle = devices.begin() + static_cast<std::ptrdiff_t>(devices.size() / 2);
  for (auto& half : {std::vector(devices.begin(), middle), std::vector(middle, devices.end())}) {
    if (!half.empty()) ask(add_group(half), RequestKind::Sample);
  }
}

void ReaderPool::Impl::mark_stuck(const GroupPtr& group, std::uint64_t device, const std::string& what) {
  last_trouble = std::chrono::steady_clock::now();
  auto& state = stuck.try_emplace(device, io).first->second;
  const bool known = state.delay.count() != 0;
  state.delay = known ? std::min(state.delay * 2, options.last_retry) : options.first_retry;
  state.trying = false;
  auto process = std::move(group->process);
  std::vector<std::uint64_t> others;
  std::ranges::copy_if(group->devices, std::back_inserter(others), [&](auto d) { return d != device; });
  const bool discovery = group->discovers;
  std::erase(groups, GroupPtr(group));
  process->on_exit([weak = weak_from_this(), device] {
    if (const auto self = weak.lock()) self->left(device);
  });
  process->kill();
  state.left_behind = std::move(process);
  if (!known) handlers.stuck(unpack(device), true, what);
  if (discovery) wants_discovery = true;
  spread(std::move(others));
  if (wants_discovery) ask(discovering_group(), RequestKind::Discover);
}

// The process that hung in this device is gone: its read has returned.
void ReaderPool::Impl::left(std::uint64_t device) {
  const auto it = stuck.find(device);
  if (it == stuck.end() || closing) return;
  it->second.left_behind.reset();
  it->second.retry.expires_after(it->second.delay);
  it->second.retry.async_wait([weak = weak_from_this(), device](error_code error) {
    const auto self = weak.lock();
    if (!error && self && !self->closing) self->try_again(device);
  });
}

void ReaderPool::Impl::try_again(std::uint64_t device) {
  const auto it = stuck.find(device);
  if (it == stuck.end()) return;
  it->second.trying = true;
  ask(add_group({device}), RequestKind::Sample);
}

// A reader ended by itself, or what it wrote made no sense. Where it was at a device, that one is the suspect.
void ReaderPool::Impl::ended(const GroupPtr& group, const std::string& how) {
  if (closing) return;
  const auto where = group->process ? group->process->where() : ReaderProcess::Where{0, Progress::kNoDevice, {}};
  const bool ours = std::ranges::find(group->devices, where.device) != group->devices.end();
  if (ours) {
    handlers.log(Severity::Warning,
                 "gpuhealth-reader " + how + " while reading " + where.file + " of " + to_string(unpack(where.device)));
    mark_stuck(group, where.device, where.file + " (it ended the reader)");
    return;
  }
  handlers.log(Severity::Warning, "gpuhealth-reader: " + how);
  if (group->discovers) wants_discovery = true;
  if (group->process) group->process->kill();
  group->process.reset();
  group->asked = false;
  restart_later();
}

void ReaderPool::Impl::restart_later() {
  restart_delay = std::min(std::max(restart_delay * 2, options.first_retry / 5), options.last_retry);
  restart.expires_after(restart_delay);
  restart.async_wait([weak = weak_from_this()](error_code error) {
    const auto self = weak.lock();
    if (error || !self || self->closing) return;
    for (const auto& group : std::vector(self->groups)) {
      if (!group->process) self->start_process(group);
    }
    if (self->wants_discovery) self->ask(self->discovering_group(), RequestKind::Discover);
  });
}

ReaderPool::Impl::GroupPtr ReaderPool::Impl::discovering_group() {
  const auto free = std::ranges::find_if(groups, [](const GroupPtr& g) { return g->process && !g->asked; });
  return free != groups.end() ? *free : add_group({});
}

void ReaderPool::Impl::on_frame(const GroupPtr& group, Frame frame) {
  if (auto* devices = std::get_if<DevicesFrame>(&frame)) on_devices(group, *devices);
  if (auto* sample = std::get_if<SampleFrame>(&frame)) on_sample(group, *sample);
  if (auto* users = std::get_if<ClientsFrame>(&frame); users != nullptr && handlers.clients)
    handlers.clients(unpack(users->device), users->look);
  if (auto* done = std::get_if<DoneFrame>(&frame)) on_done(group, done->tick);
}

void ReaderPool::Impl::forget_device(std::uint64_t device) {
  for (const auto& group : groups) std::erase(group->devices, device);
  stuck.erase(device);
}

// Devices that are new are read by the group that found them; those that left are dropped from all groups.
void ReaderPool::Impl::on_devices(const GroupPtr& group, const DevicesFrame& frame) {
  wants_discovery = false;
  if (frame.error.empty()) {
    std::vector<std::uint64_t> present = frame.untouched;
    for (const auto& d : frame.devices) present.push_back(pack(d.pci));
    std::vector<std::uint64_t> known;
    for (const auto& g : groups) known.insert(known.end(), g->devices.begin(), g->devices.end());
    for (const auto& [device, state] : stuck) known.push_back(device);
    for (const auto device : known) {
      if (std::ranges::find(present, device) == present.end()) forget_device(device);
    }
    for (const auto device : present) {
      if (std::ranges::find(known, device) == known.end()) group->devices.push_back(device);
    }
    for (const auto& g : groups) g->reopen = true;  // a driver may have been bound anew
  }
  handlers.devices(frame);
}

void ReaderPool::Impl::on_sample(const GroupPtr& group, SampleFrame& frame) {
  // A reader that was late goes on with devices that others have taken over.
  if (std::ranges::find(group->devices, frame.device) == group->devices.end()) return;
  if (const auto it = stuck.find(frame.device); it != stuck.end()) {
    stuck.erase(it);
    last_trouble = std::chrono::steady_clock::now();
    handlers.stuck(unpack(frame.device), false, {});
  }
  if (frame.present) {
    handlers.sample(unpack(frame.device), frame.sample);
  } else {
    handlers.gone(unpack(frame.device));
  }
}

void ReaderPool::Impl::on_done(const GroupPtr& group, std::uint64_t done_tick) {
  if (!group->asked || done_tick != group->tick) return;
  group->asked = false;
  restart_delay = std::chrono::milliseconds(0);
  if (wants_discovery && !group->discovers) ask(group, RequestKind::Discover);
}

// One process again for all devices, when nothing has gone wrong for a while.
void ReaderPool::Impl::merge_when_calm() {
  if (groups.size() < 2 || std::chrono::steady_clock::now() - last_trouble < options.calm) return;
  const auto first = groups.front();
  if (!first->process) return;
  std::erase_if(groups, [&](const GroupPtr& g) {
    if (g == first || g->asked) return false;
    first->devices.insert(first->devices.end(), g->devices.begin(), g->devices.end());
    return true;
  });
  std::ranges::sort(first->devices);
}

ReaderPool::ReaderPool(boost::asio::io_context& io, Options options, Handlers handlers)
    : impl_(std::make_shared<Impl>(io, std::move(options), std::move(handlers))) {}

ReaderPool::~ReaderPool() {
  impl_->closing = true;
  impl_->groups.clear();
  impl_->stuck.clear();
}

void ReaderPool::discover() {
  impl_->wants_discovery = true;
  impl_->ask(impl_->discovering_group(), RequestKind::Discover);
}

void ReaderPool::sample(bool slow) {
  auto& pool = *impl_;
  ++pool.tick;
  pool.slow = slow;
  pool.merge_when_calm();
  std::erase_if(pool.groups, [&](const auto& g) { return g->devices.empty() && !g->asked && pool.groups.size() > 1; });
  for (const auto& group : std::vector(pool.groups)) {
    if (!group->devices.empty()) pool.ask(group, RequestKind::Sample);
  }
}

std::size_t ReaderPool::processes() const {
  auto n = static_cast<std::size_t>(
      std::ranges::count_if(impl_->groups, [](const auto& g) { return g->process != nullptr; }));
  n += static_cast<std::size_t>(
      std::ranges::count_if(impl_->stuck, [](const auto& s) { return s.second.left_behind != nullptr; }));
  return n;
}

}  // namespace gpuhealth::telemetry
