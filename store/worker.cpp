// SPDX-License-Identifier: Apache-2.0
#include "store/worker.hpp"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "store/queue.hpp"
#include "store/sqlite.hpp"

namespace gpuhealth::store {
namespace {

using Steady = std::chrono::steady_clock;

constexpr auto kMaintenanceEvery = std::chrono::hours(1);
// Samples lead to a write once a minute: they wait for company, and wake the thread only when they become many.
constexpr auto kSamplesWait = std::chrono::seconds(30);
constexpr std::size_t kSamplesWake = Queue::kMostSamples / 2;
constexpr auto kFirstRetry = std::chrono::seconds(1);
constexpr auto kLastRetry = std::chrono::seconds(300);
constexpr auto kRecoveryEvery = std::chrono::seconds(10);
constexpr auto kFarewell = std::chrono::seconds(1);

// What history does not keep must not lie in the queue.
Sample slim(Sample sample) {
  std::erase_if(sample.readings, [](const Reading& reading) {
    const ReadingInfo* row = find_reading(reading.id);
    return reading.status != ReadingStatus::Valid || row == nullptr || row->keep != Keep::History;
  });
  sample.readings.shrink_to_fit();
  return sample;
}

struct Apply {
  Database& database;
  Result<void> operator()(const Sample& sample) const { return database.add(sample); }
  Result<void> operator()(const Event& event) const { return database.add(event); }
  Result<void> operator()(const Condition& condition) const { return database.put(condition); }
  Result<void> operator()(const SeenWork& w) const { return database.seen(w.device, w.label, w.boot_id, w.now); }
  Result<void> operator()(const ForgetWork& w) const { return database.forget_device(w.id); }
};

// The work itself is at fault; trying again would fail again.
bool is_hopeless(const Error& error) {
  return error.code == ErrorCode::Internal;
}

}  // namespace

struct Worker::Impl {
  Impl(Options options_, Deliver deliver_, std::function<void(Health)> on_health_,
       std::function<void(OpenReport)> on_open_)
      : options(std::move(options_)),
        deliver(std::move(deliver_)),
        on_health(std::move(on_health_)),
        on_open(std::move(on_open_)) {}

  // Owner's side.
  void start();
  void stop();
  void post(Work work);
  template <class T, class Read>
  void ask(std::function<void(Result<T>)> then, Read read);

  // Worker's side.
  void run();
  bool wait();  // false: time to stop
  void open();
  void write_all();
  void write_one(Work work);
  void answer_all();
  void maintain();
  void say_goodbye();
  void recover();
  void failed(const Error& error);
  void succeeded();
  void report();
  void hand_over(std::function<void()> what);
  [[nodiscard]] bool resting() const { return retry_at && Steady::now() < *retry_at; }
  [[nodiscard]] Steady::time_point next_deadline() const;

  const Options options;
  const Deliver deliver;
  const std::function<void(Health)> on_health;
  const std::function<void(OpenReport)> on_open;
  // Shared with what was delivered and has not run yet; only the owner's thread clears it.
  const std::shared_ptr<std::atomic<bool>> alive = std::make_shared<std::atomic<bool>>(true);
  Interrupt interrupt;

  std::mutex mutex;
  std::condition_variable changed;
  Queue queue;
  std::optional<Steady::time_point> samples_since;
  bool stopping = false;
  bool done = false;
  Steady::time_point stop_by;

  // The worker's own.
  std::optional<Database> database;
  std::optional<Steady::time_point> retry_at;
  Steady::duration retry_after = kFirstRetry;
  Steady::time_point maintain_at;
  std::optional<Steady::time_point> last_recovery;
  std::uint64_t lost = 0;
  std::string problem;
  std::uint64_t last_size = 0;
  std::optional<Health> reported;

  std::thread thread;
};

// The owner's side

void Worker::Impl::start() {
  // Signals are the owner's business; SIGXFSZ too becomes an error of the write.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread = std::thread([this] { run(); });
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  pthread_setname_np(thread.native_handle(), "history");
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Worker::Impl::stop() {
  alive->store(false);
  {
    std::unique_lock lock(mutex);
    stopping = true;
    stop_by = Steady::now() + kFarewell;
    changed.notify_all();
    changed.wait_until(lock, stop_by, [this] { return done; });
  }
  interrupt.stop();
  thread.join();
}

void Worker::Impl::post(Work work) {
  const std::lock_guard lock(mutex);
  const bool is_sample = std::holds_alternative<Sample>(work);
  queue.push(std::move(work));
  if (!is_sample) {
    changed.notify_all();
    return;
  }
  if (!samples_since) {
    samples_since = Steady::now();
    changed.notify_all();  // so that its deadline is waited for
  } else if (queue.samples() == kSamplesWake) {
    changed.notify_all();
  }
}

template <class T, class Read>
void Worker::Impl::ask(std::function<void(Result<T>)> then, Read read) {
  const auto shared = std::make_shared<std::function<void(Result<T>)>>(std::move(then));
  Query query = [this, shared, read = std::move(read)](Database* db) {
    Result<T> answer = db != nullptr ? read(*db) : fail(ErrorCode::Unavailable, "no history: " + problem);
    hand_over([shared, answer = std::move(answer)] { (*shared)(answer); });
  };
  bool taken = false;
  {
    const std::lock_guard lock(mutex);
    taken = queue.push(std::move(query));
    changed.notify_all();
  }
  if (!taken)
    hand_over([shared] { (*shared)(fail(ErrorCode::Exhausted, "too many questions to the history at once")); });
}

void Worker::Impl::hand_over(std::function<void()> what) {
  if (!alive->load()) return;
  deliver([alive = alive, what = std::move(what)] {
    if (alive->load()) what();
  });
}

// The worker's side

void Worker::Impl::run() {
  maintain_at = Steady::now();
  while (wait()) {
    if (!resting()) {
      if (!database) open();
      if (database) write_all();
      if (database && !resting() && Steady::now() >= maintain_at) maintain();
    }
    answer_all();
    report();
  }
  say_goodbye();
  const std::lock_guard lock(mutex);
  done = true;
  changed.notify_all();
}

Steady::time_point Worker::Impl::next_deadline() const {
  if (retry_at) return *retry_at;
  if (!database) return Steady::time_point::min();
  return samples_since ? std::min(maintain_at, *samples_since + kSamplesWait) : maintain_at;
}

bool Worker::Impl::wait() {
  std::unique_lock lock(mutex);
  while (!stopping) {
    if (queue.has_queries()) break;
    if (!retry_at && (queue.has_records() || queue.samples() >= kSamplesWake)) break;
    const auto deadline = next_deadline();
    if (Steady::now() >= deadline) break;
    changed.wait_until(lock, deadline);
  }
  return !stopping;
}

void Worker::Impl::open() {
  OpenReport opened;
  auto result = Database::open(options, opened, &interrupt);
  if (!result) return failed(result.error());
  database = std::move(*result);
  succeeded();
  hand_over([this, opened] { on_open(opened); });
}

void Worker::Impl::write_all() {
  // What waited through a failure of its own is tried first.
  if (retry_at) {
    if (auto flushed = database->flush(); !flushed) return failed(flushed.error());
    succeeded();
  }
  for (;;) {
    std::optional<Work> work;
    {
      const std::lock_guard lock(mutex);
      if (stopping && Steady::now() >= stop_by) return;
      work = queue.pop();
      if (!work) samples_since.reset();
    }
    if (!work) return;
    write_one(std::move(*work));
    if (!database || retry_at) return;
  }
}

void Worker::Impl::write_one(Work work) {
  auto written = std::visit(Apply{*database}, work);
  if (written) return;
  if (std::holds_alternative<Sample>(work)) return failed(written.error());  // it is in the database's memory already
  if (is_hopeless(written.error())) {
    ++lost;
    return;
  }
  failed(written.error());
  const std::lock_guard lock(mutex);
  queue.push_front(std::move(work));
}

void Worker::Impl::answer_all() {
  for (;;) {
    std::optional<Query> query;
    bool write_first = false;  // an answer covers all that was posted before its question
    {
      const std::lock_guard lock(mutex);
      if (stopping) return;
      write_first = queue.has_queries() && queue.has_work() && database && !retry_at;
      if (!write_first) query = queue.pop_query();
    }
    if (write_first) {
      write_all();
      continue;
    }
    if (!query) return;
    (*query)(database ? &*database : nullptr);
    if (database && database->damaged()) failed({ErrorCode::InvalidInput, options.path + ": damaged", 0});
  }
}

void Worker::Impl::maintain() {
  const auto more = database->maintain(SystemClock().now().wall);
  if (!more) return failed(more.error());
  maintain_at = *more ? Steady::now() : Steady::now() + kMaintenanceEvery;
  if (!*more) last_size = database->size_bytes();
}

void Worker::Impl::say_goodbye() {
  retry_at.reset();
  if (!database && !interrupt.stopped()) open();
  if (database) write_all();
  if (!database) return;
  if (const auto flushed = database->flush(); !flushed && database->damaged()) recover();
  if (database) static_cast<void>(database->flush());
  database.reset();
}

void Worker::Impl::recover() {
  OpenReport opened;
  Database broken = std::move(*database);
  const auto reason = problem.empty() ? options.path + ": damaged" : problem;
  lost += broken.dropped();
  database.reset();
  auto fresh = Database::replace(std::move(broken), reason, opened);
  if (!fresh) return failed(fresh.error());
  database = std::move(*fresh);
  lost -= database->dropped();
  succeeded();
  maintain_at = Steady::now();
  hand_over([this, opened] { on_open(opened); });
}

void Worker::Impl::failed(const Error& error) {
  problem = error.text;
  if (database && database->damaged()) {
    const auto now = Steady::now();
    const bool again = last_recovery && now < *last_recovery + kRecoveryEvery;
    last_recovery = now;
    if (!again) return recover();
    // New files are damaged as fast as they are made: rest, then open() looks at this one.
    lost += database->dropped();
    database.reset();
  }
  retry_at = Steady::now() + retry_after;
  retry_after = std::min<Steady::duration>(retry_after * 2, kLastRetry);
}

void Worker::Impl::succeeded() {
  problem.clear();
  retry_at.reset();
  retry_after = kFirstRetry;
}

void Worker::Impl::report() {
  Health health;
  health.working = problem.empty();
  health.problem = problem;
  health.size_bytes = last_size;
  health.dropped = lost + (database ? database->dropped() : 0);
  {
    const std::lock_guard lock(mutex);
    health.dropped += queue.dropped();
  }
  if (reported && reported->working == health.working && reported->problem == health.problem &&
      reported->dropped == health.dropped && reported->size_bytes == health.size_bytes)
    return;
  reported = health;
  hand_over([this, health] { on_health(health); });
}

// Worker

Worker::Worker(Options options, Deliver deliver, std::function<void(Health)> on_health,
               std::function<void(OpenReport)> on_open)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(deliver), std::move(on_health), std::move(on_open))) {
  impl_->start();
}

Worker::~Worker() {
  impl_->stop();
}

void Worker::add(Sample sample) {
  impl_->post(slim(std::move(sample)));
}
void Worker::add(Event event) {
  impl_->post(std::move(event));
}
void Worker::put(Condition condition) {
  impl_->post(std::move(condition));
}
void Worker::seen(DeviceInfo device, std::string label, std::string boot_id, WallTime now) {
  impl_->post(SeenWork{std::move(device), std::move(label), std::move(boot_id), now});
}
void Worker::forget_device(std::string id) {
  impl_->post(ForgetWork{std::move(id)});
}

void Worker::history(HistoryQuery query, std::function<void(Result<std::vector<HistoryPoint>>)> then) {
  impl_->ask(std::move(then), [query = std::move(query)](Database& db) { return db.history(query); });
}
void Worker::events(WallTime since, WallTime until, std::uint32_t limit,
                    std::function<void(Result<std::vector<Event>>)> then) {
  impl_->ask(std::move(then), [=](Database& db) { return db.events(since, until, limit); });
}
void Worker::conditions(WallTime since, std::uint32_t limit, std::function<void(Result<std::vector<Condition>>)> then) {
  impl_->ask(std::move(then), [=](Database& db) { return db.conditions(since, limit); });
}
void Worker::open_conditions(std::function<void(Result<std::vector<Condition>>)> then) {
  impl_->ask(std::move(then), [](Database& db) { return db.open_conditions(); });
}
void Worker::known_devices(std::function<void(Result<std::vector<KnownDevice>>)> then) {
  impl_->ask(std::move(then), [](Database& db) { return db.known_devices(); });
}

}  // namespace gpuhealth::store
