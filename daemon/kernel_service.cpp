// SPDX-License-Identifier: Apache-2.0
#include "daemon/kernel_service.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <memory>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/json.hpp"

namespace gpuhealth::daemon {
namespace {

using Json = nlohmann::json;
using Answer = health::KernelJudgement::Answer;

constexpr std::size_t kMostWaiting = 16;

// What a kernel on trial must not bring. A GPU without a driver may have had none before; it is not measured.
constexpr auto kFaults = std::to_array({ConditionType::GpuMissing, ConditionType::GpuHang, ConditionType::ResetLoop,
                                        ConditionType::DeviceLost, ConditionType::SmuDead, ConditionType::SourceStuck});

std::string text_in(const Json& json, const char* key) {
  return json.is_object() && json.contains(key) && json[key].is_string() ? json[key].get<std::string>() : std::string();
}

Json answer_of(const std::string& said) {
  return parse_json<Json>(said);
}

// What gpuhealth-act answered, as a Result.
Result<void> outcome_of(int code, const std::string& said) {
  const Json json = answer_of(said);
  if (!json.is_object()) return fail(ErrorCode::Unavailable, "gpuhealth-act did not come to its end");
  if (json.contains("error")) {
    ErrorCode kind = ErrorCode::Unavailable;
    for (int i = 0; i <= static_cast<int>(ErrorCode::Internal); ++i)
      if (to_string(static_cast<ErrorCode>(i)) == text_in(json["error"], "code")) kind = static_cast<ErrorCode>(i);
    return fail(kind, text_in(json["error"], "text"));
  }
  if (code != 0) return fail(ErrorCode::Unavailable, "gpuhealth-act ended with " + std::to_string(code));
  return {};
}

// When any of the files was last written.
std::int64_t stamp_of(const std::vector<std::string>& files) {
  std::int64_t out = 0;
  for (const std::string& file : files) {
    struct stat info{};
    if (::stat(file.c_str(), &info) == 0)
      out = std::max(out, std::int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec);
  }
  return out;
}

KernelService::Words words_of(const dbus::KernelRequest& request, const dbus::KernelState& state) {
  using V = dbus::KernelRequest::Verb;
  switch (request.verb) {
    case V::Pin:
      if (request.expires.empty()) return {"kernel", "pin", request.release};
      return {"kernel", "pin", request.release, "--expires", request.expires};
    case V::Unpin:
      return {"kernel", "unpin"};
    case V::Trial:
      return {"kernel", "trial", request.release};
    case V::Hold:
      return {"kernel", request.on ? "hold-on" : "hold-off"};
    case V::Bless:
      return {"kernel", "bless", state.running};
    case V::Reject:
      return {"kernel", "reject", state.running};
    case V::Qualify:
      break;
  }
  return {"kernel", "qualify", state.running, "--reason", "a person asked"};
}

}  // namespace

KernelService::KernelService(const Clock& clock, Options options, Handlers handlers)
    : clock_(clock), options_(std::move(options)), handlers_(std::move(handlers)) {}

void KernelService::start() {
  std::string ended;
  std::getline(std::ifstream(options_.mark), ended);
  (void)std::remove(options_.mark.c_str());  // the end of this boot is not known yet
  Words words = {"kernel", "start"};
  if (!ended.empty()) words.insert(words.end(), {"--ended-in-order", ended});
  put(std::move(words), [this](int code, const std::string& said) { on_start(code, said); });
}

void KernelService::stopped() {
  std::ofstream(options_.mark) << options_.boot_id << "\n";
}

void KernelService::put(Words words, Ended ended) {
  queue_.push_back({std::move(words), std::move(ended)});
  next();
}

void KernelService::next() {
  if (running_ || queue_.empty()) return;
  running_ = true;
  auto job = std::make_shared<Job>(std::move(queue_.front()));
  queue_.pop_front();
  handlers_.act(job->words, [this, job](int code, const std::string& said) {
    running_ = false;
    job->ended(code, said);
    next();
  });
}

void KernelService::on_start(int code, const std::string& said) {
  if (const auto done = outcome_of(code, said); !done) {
    handlers_.event(Severity::Warning, "kernel.start",
                    "what became of the last boot was not found out: " + done.error().text);
  }
  const Json json = answer_of(said);
  for (const Json& one : json.is_object() ? json.value("became", Json::array()) : Json::array()) {
    const std::string event = text_in(one, "event");
    const bool bad = event == "seen-other";
    if (!bad && event != "seen-away" && event != "build-changed") continue;
    handlers_.event(bad ? Severity::Warning : Severity::Info, bad ? "kernel.never-came-back" : "kernel." + event,
                    text_in(one, "release") + ": " + text_in(one, "reason"));
  }
  for (const char* list : {"undone", "warnings"}) {
    for (const Json& one : json.is_object() ? json.value(list, Json::array()) : Json::array())
      if (one.is_string())
        handlers_.event(Severity::Warning, "kernel.start",
                        std::string(list) == "undone"
                            ? "a change that was cut off is put back: " + one.get<std::string>()
                            : one.get<std::string>());
  }
  refresh();
}

void KernelService::refresh() {
  if (std::exchange(looking_, true)) return;
  next_refresh_ = clock_.now().steady + options_.refresh;
  Words words = {"kernel", "show"};
  for (const std::string& gfx : handlers_.gfx()) words.insert(words.end(), {"--gfx", gfx});
  handlers_.look(std::move(words), [this](int code, const std::string& said) {
    looking_ = false;
    on_state(code, said);
  });
}

void KernelService::on_state(int code, const std::string& said) {
  const Json json = answer_of(said);
  if (code != 0 || !json.is_object()) return;
  dbus::KernelState now;
  now.running = text_in(json, "running");
  now.state = text_in(json, "state");
  now.next = text_in(json, "next");
  now.next_reason = text_in(json, "next_reason");
  now.last_known_good = text_in(json, "last_known_good");
  now.pinned = text_in(json, "pinned");
  now.trial = text_in(json, "trial");
  now.hold = json.value("hold", Json()) == Json(true);
  for (const Json& id : json.value("advisories", Json::array()))
    if (id.is_string()) now.advisories.push_back(id.get<std::string>());
  on_trial_ = json.value("on_trial", Json()) == Json(true);
  const bool blessed = now.state == "blessed" && state_.state != "blessed";
  state_ = std::move(now);
  handlers_.changed(state_);
  if (blessed) handlers_.qualified();
  begin();
}

// The running kernel has no verdict: its canaries are asked.
void KernelService::begin() {
  const bool open = state_.state == "booted" || state_.state == "qualifying";
  if (!open || verdict_ || deciding_) return;
  if (!handlers_.run_canary) {
    const std::string text = state_.running + " gets no verdict: no canaries run by themselves (canary.interval)";
    if (std::exchange(said_waiting_, text) != text)
      handlers_.event(on_trial_ ? Severity::Warning : Severity::Info, "kernel.no-verdict", text);
    return;
  }
  verdict_.emplace(options_.verdict, clock_.now().steady);
  next_run_ = clock_.now().steady;
  if (state_.state == "qualifying") return;
  put({"kernel", "qualifying", state_.running}, [this](int code, const std::string& said) {
    if (const auto done = outcome_of(code, said); !done)
      handlers_.event(Severity::Warning, "kernel.qualifying", done.error().text);
    refresh();
  });
  if (on_trial_)
    handlers_.event(Severity::Info, "kernel.qualifying", state_.running + " is on trial: its canaries run");
}

void KernelService::measured(const canary::Measurement& m, const health::CanaryOutcome& outcome) {
  if (!verdict_) return;
  verdict_->measured(m, outcome, handlers_.baselines());
}

void KernelService::run_ended(const std::string& device) {
  if (!verdict_) return;
  verdict_->run_ended(device);
  judge();
}

void KernelService::confirmed(const Condition& condition) {
  if (!verdict_ || !on_trial_ || std::ranges::find(kFaults, condition.type) == kFaults.end()) return;
  verdict_->fault(condition.device_label + ": " + std::string(info(condition.type).title) + ". " + condition.detail);
  judge();
}

void KernelService::tick() {
  const SteadyTime now = clock_.now().steady;
  if (now >= next_stamp_) {
    next_stamp_ = now + std::chrono::seconds(10);
    const std::int64_t stamp = stamp_of(options_.watched);
    if (std::exchange(stamp_, stamp) != stamp) next_refresh_ = std::min(next_refresh_, now);
  }
  if (now >= next_refresh_ && next_refresh_.us != 0) refresh();
  if (!verdict_ || state_.state != "qualifying" || now < next_run_) return;
  next_run_ = now + options_.again;
  for (const std::string& gpu : handlers_.gpus()) handlers_.run_canary(gpu);
  judge();
}

void KernelService::judge() {
  if (!verdict_ || deciding_ || state_.state != "qualifying") return;
  verdict_->gpus(handlers_.gpus());
  const auto judgement = verdict_->judge(clock_.now().steady);
  if (judgement.answer != Answer::Waiting) return give_verdict(judgement.answer == Answer::Passed, judgement.why);
}

void KernelService::give_verdict(bool good, const std::string& why) {
  deciding_ = true;  // the judgement is kept until it is written down
  Words words = {"kernel", good ? "bless" : "reject", state_.running, "--by-canaries", "--reason", why};
  for (const std::string& id : handlers_.gpu_ids()) words.insert(words.end(), {"--gpu", id});
  state_.state.clear();  // until it is read back
  // A slow machine makes its menu for minutes; what is read back meanwhile no longer calls it a trial.
  const bool trial = on_trial_;
  put(std::move(words), [this, good, why, trial](int code, const std::string& said) {
    on_trial_ = trial;
    on_verdict(good, why, code, said);
  });
}

void KernelService::on_verdict(bool good, const std::string& why, int code, const std::string& said) {
  deciding_ = false;
  const auto done = outcome_of(code, said);
  if (!done) {
    next_run_ = clock_.now().steady + std::chrono::minutes(1);  // then it is tried again
    handlers_.event(Severity::Warning, "kernel.verdict",
                    "the verdict on " + state_.running + " could not be written down: " + done.error().text);
    return refresh();
  }
  verdict_.reset();
  const bool trial = std::exchange(on_trial_, false);
  if (good) {
    handlers_.event(Severity::Info, "kernel.blessed", state_.running + " is good: " + why);
    return refresh();
  }
  const std::string next = text_in(answer_of(said), "default");
  handlers_.event(Severity::Critical, "kernel.rejected",
                  state_.running + " is rejected: " + why + ". " +
                      (next.empty() || next == state_.running ? "There is no other kernel that is known to be good"
                                                              : next + " starts at the next boot"));
  refresh();
  if (!trial || next.empty() || next == state_.running) return;
  if (!options_.reboot) {
    handlers_.event(Severity::Warning, "kernel.stays",
                    "the machine stays on " + state_.running + ": reboot it, or set kernel.failed-trial to reboot");
    return;
  }
  put({"device", "run", "reboot", "notice=1m"}, [this](int rc, const std::string& answer) {
    const auto rebooted = outcome_of(rc, answer);
    handlers_.event(Severity::Warning, "kernel.reboot",
                    rebooted ? "the machine goes back to the good kernel in a minute"
                             : "the machine does not go back to the good kernel by itself: " + rebooted.error().text);
  });
}

void KernelService::asked(const dbus::KernelRequest& request, std::function<void(Result<void>)> then) {
  if (queue_.size() >= kMostWaiting) return then(fail(ErrorCode::Exhausted, "too many changes wait"));
  using V = dbus::KernelRequest::Verb;
  const bool qualify = request.verb == V::Qualify;
  if (qualify && !handlers_.run_canary)
    return then(fail(ErrorCode::Unavailable, "no canaries run by themselves: set canary.interval"));
  if (state_.running.empty()) return then(fail(ErrorCode::Unavailable, "it is not known yet which kernel runs"));
  if (request.verb == V::Bless || request.verb == V::Reject || qualify) verdict_.reset();
  put(words_of(request, state_), [this, then = std::move(then)](int code, const std::string& said) {
    then(outcome_of(code, said));
    refresh();
  });
}

}  // namespace gpuhealth::daemon
