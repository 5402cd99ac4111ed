// SPDX-License-Identifier: Apache-2.0
#include "actions/service.hpp"

#include <algorithm>
#include <utility>

#include "actions/request.hpp"
#include "actions/state.hpp"
#include "core/json.hpp"
#include "grub/tool.hpp"

namespace gpuhealth::actions {
namespace {

constexpr Duration kDeadline = std::chrono::seconds(120);
constexpr Duration kKernelDeadline = grub::kOperationMost;
constexpr Duration kAgain = std::chrono::minutes(1);
constexpr std::size_t kRecordsKept = 256;
constexpr std::size_t kFinishedAdopted = 32;  // of an earlier run, that are shown
constexpr std::size_t kMostWaiting = 64;

Duration deadline_of(const Order& order) {
  const Actuator* actuator = actuator_for(order.request.kind);
  if (actuator != nullptr && actuator->own_ledger) return kKernelDeadline;
  const auto params = Params::read(order.request);
  return kDeadline + (params ? std::chrono::duration_cast<Duration>(params->span("deadline")) : Duration{});
}

std::string text_in(const Json& json, const char* key) {
  return json.contains(key) && json[key].is_string() ? json[key].get<std::string>() : std::string();
}

bool in_force(const ActionRecord& record) {
  return record.state == to_string(ActionState::Applied) || record.state == to_string(ActionState::Confirmed);
}

// grub/ keeps its own entries, which have no other state.
bool is_done_by_the_boot_loader(const ActionRecord& record) {
  const Actuator* actuator = actuator_for(record.request.kind);
  return actuator != nullptr && actuator->own_ledger && record.state == to_string(ActionState::Done) &&
         !record.unwanted;
}

bool goes_on(const ActionRecord& record) {
  if (record.state == "queued" || record.state == "running" || in_force(record)) return true;
  return record.state == to_string(ActionState::Intended) || record.state == to_string(ActionState::FailedToRevert);
}

WallTime time_in(const LedgerEntry& entry, const char* key) {
  const auto found = entry.times.find(key);
  return found == entry.times.end() ? WallTime{} : utc_from(found->second).value_or(WallTime{});
}

Result<void> result_of(const std::string& said) {
  const Json json = parse_json<Json>(said);
  if (!json.is_object()) return fail(ErrorCode::Unavailable, "gpuhealth-act did not come to its end");
  if (!json.contains("error")) return {};
  ErrorCode code = ErrorCode::Unavailable;
  for (int i = 0; i <= static_cast<int>(ErrorCode::Internal); ++i)
    if (to_string(static_cast<ErrorCode>(i)) == text_in(json["error"], "code")) code = static_cast<ErrorCode>(i);
  return fail(code, text_in(json["error"], "text"));
}

bool same_wish(const ActionRequest& a, const ActionRequest& b) {
  return a.kind == b.kind && a.policy == b.policy && a.rule == b.rule && a.device == b.device;
}

}  // namespace

ActionService::ActionService(const Clock& clock, Handlers handlers) : clock_(clock), handlers_(std::move(handlers)) {}

void ActionService::start() {
  look_at_ledger();
  put({{"device", "recover"}, "", kDeadline, 0, {}});
}

void ActionService::make_room() {
  while (records_.size() > kRecordsKept) {
    auto victim = std::ranges::find_if(records_, [](const ActionRecord& r) { return !goes_on(r); });
    if (victim == records_.end()) victim = records_.begin();
    records_.erase(victim);
  }
}

ActionRecord& ActionService::add(ActionRecord record) {
  record.number = ++last_number_;
  records_.push_back(std::move(record));
  make_room();
  return records_.back();
}

void ActionService::submit(Order order, WallTime fault) {
  if (order.request.kind == ActionKind::RunCanary) {
    handlers_.run_canary(order.request);
    return;
  }
  ActionRecord fresh;
  fresh.request = order.request;
  fresh.state = "queued";
  fresh.fault = fault;
  fresh.detected = clock_.now().wall;
  if (queue_.size() >= kMostWaiting) {
    fresh.state = "refused";
    fresh.text = "too many actions wait";
    handlers_.log(Severity::Warning, fresh.text + ": " + std::string(to_string(fresh.request.kind)));
  }
  order.times["fault"] = utc_text(fault);
  order.times["detected"] = utc_text(fresh.detected);
  const ActionRecord& record = add(std::move(fresh));
  const bool queued = record.state == "queued";
  const std::size_t number = record.number;
  handlers_.changed(record);
  if (queued) put({{"device", "run", "--request", "-"}, order_json(order).dump(), deadline_of(order), number, {}});
}

void ActionService::condition_cleared(const std::string& condition) {
  std::vector<std::string> good;
  for (const ActionRecord& record : records_)
    if (!condition.empty() && record.request.condition == condition && !record.ledger.empty() && !record.unwanted &&
        record.state == to_string(ActionState::Applied))
      good.push_back(record.ledger);
  for (const std::string& ledger : good) {
    confirm_by_.erase(ledger);
    put({{"device", "confirm", ledger}, "", kDeadline, 0, {}});
  }
}

void ActionService::episodes_ended(const std::function<bool(const ActionRequest&)>& over) {
  std::vector<std::string> good;
  for (const ActionRecord& record : records_) {
    const bool waits = record.state == to_string(ActionState::Applied) && record.request.condition.empty() &&
                       !record.request.rule.empty() && !record.unwanted;
    if (waits && confirm_by_.contains(record.ledger) && over(record.request)) good.push_back(record.ledger);
  }
  for (const std::string& ledger : good) {
    confirm_by_.erase(ledger);
    put({{"device", "confirm", ledger}, "", kDeadline, 0, {}});
  }
}

void ActionService::no_longer_wanted(const ActionRequest& request) {
  // The newest first: each brings back what it found.
  std::vector<std::string> back;
  for (auto record = records_.rbegin(); record != records_.rend(); ++record) {
    if (!same_wish(record->request, request)) continue;
    if (record->state == "queued" || record->state == "running") {
      record->unwanted = true;
    } else if ((in_force(*record) || is_done_by_the_boot_loader(*record)) && !record->ledger.empty()) {
      record->unwanted = true;
      back.push_back(record->ledger);
    }
  }
  for (const std::string& ledger : back) {
    confirm_by_.erase(ledger);
    put({{"device", "revert", ledger, "--by-rule"}, "", kDeadline, 0, {}});
  }
}

void ActionService::canary_passed(const std::string& device) {
  std::vector<std::string> passed;
  for (ActionRecord& record : records_) {
    const bool done = in_force(record) || record.state == to_string(ActionState::Done);
    if (record.request.device != device || !done || record.verified != WallTime{}) continue;
    record.verified = clock_.now().wall;
    if (!record.ledger.empty()) passed.push_back(record.ledger);
    handlers_.changed(record);
  }
  for (const std::string& ledger : passed) put({{"device", "verified", ledger}, "", kDeadline, 0, {}});
}

void ActionService::device_came_back(const std::string& device) {
  const bool ours =
      std::ranges::any_of(records_, [&](const ActionRecord& r) { return r.request.device == device && in_force(r); });
  if (ours) put({{"device", "again", "--device", device}, "", kDeadline, 0, {}});
}

void ActionService::tick() {
  const WallTime now = clock_.now().wall;
  const bool over = std::ranges::any_of(confirm_by_, [&](const auto& item) { return item.second <= now; });
  if (!over) return;
  // What is not resolved then is looked for again by its own time.
  for (auto& [id, time] : confirm_by_)
    if (time <= now) time = now + kAgain;
  confirm_by_.erase("again");
  put({{"device", "recover"}, "", kDeadline, 0, {}});
}

void ActionService::confirm(const std::string& id, Then then) {
  put({{"device", "confirm", id}, "", kDeadline, 0, std::move(then)});
}

void ActionService::revert(const std::string& id, Then then) {
  put({{"device", "revert", id}, "", kKernelDeadline, 0, std::move(then)});
}

void ActionService::leave_safe_mode(Then then) {
  put({{"device", "resume"}, "", kDeadline, 0, std::move(then)});
}

void ActionService::look_at_ledger() {
  if (!handlers_.ledger) return;
  const auto entries = handlers_.ledger();
  std::size_t finished = 0;
  std::vector<const LedgerEntry*> wanted;
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
    const bool live = is_open(*entry) || actions::in_force(*entry);
    if (!live && find(entry->id) == nullptr && ++finished > kFinishedAdopted) continue;
    wanted.push_back(&*entry);
  }
  for (auto entry = wanted.rbegin(); entry != wanted.rend(); ++entry) adopt(**entry);
}

void ActionService::adopt(const LedgerEntry& entry) {
  const auto kind = action_kind_from(entry.action);
  // Being done right now: the answer tells more.
  const bool ours_now = running_ && entry.state == to_string(ActionState::Intended);
  if (!kind || entry.owner != "actions" || ours_now) return;
  ActionRecord* record = find(entry.id);
  if (record == nullptr) {
    ActionRecord fresh;
    fresh.request = {*kind, entry.device, entry.params, entry.policy, entry.rule, entry.condition, entry.reason};
    fresh.ledger = entry.id;
    record = &add(std::move(fresh));
  }
  const bool same = record->state == entry.state && record->after == entry.after;
  record->state = entry.state;
  record->before = entry.before, record->wanted = entry.wanted, record->after = entry.after;
  if (!entry.note.empty()) record->text = entry.note;
  for (const auto& [key, field] : {std::pair{"fault", &record->fault},
                                   {"detected", &record->detected},
                                   {"applied", &record->acted},
                                   {"verified", &record->verified}})
    if (const WallTime time = time_in(entry, key); time != WallTime{} && *field == WallTime{}) *field = time;
  const auto by = utc_from(entry.confirm_by);
  const bool waits = entry.state == to_string(ActionState::Applied) && by;
  record->confirm_by = waits ? *by : WallTime{};
  if (waits) {
    confirm_by_.try_emplace(entry.id, *by);
  } else {
    confirm_by_.erase(entry.id);
  }
  if (!same) handlers_.changed(*record);
}

void ActionService::put(Job job) {
  queue_.push_back(std::move(job));
  next();
}

void ActionService::next() {
  while (!running_ && !queue_.empty()) {
    const Job job = std::move(queue_.front());
    queue_.pop_front();
    if (ActionRecord* record = find(job.number)) {
      record->state = record->unwanted ? "withdrawn" : "running";
      if (record->unwanted) record->text = "its reason was gone before it was begun";
      handlers_.changed(*record);
      if (record->state == "withdrawn") continue;
    }
    running_ = true;
    handlers_.act(job.words, job.input, job.deadline, [this, job](int code, const std::string& said) {
      running_ = false;
      ended(job, code, said);
      look_at_ledger();
      next();
    });
  }
}

void ActionService::ended(const Job& job, int code, const std::string& said) {
  if (ActionRecord* record = find(job.number)) {
    learn(*record, code, said);
  } else {
    take_answer(job, said);
  }
  if (job.then) job.then(result_of(said));
}

void ActionService::take_answer(const Job& job, const std::string& said) {
  const std::string& verb = job.words.at(1);
  const Json json = parse_json<Json>(said);
  if (!json.is_object() || json.contains("error")) {
    const std::string text = json.is_object() ? text_in(json["error"], "text") : "it did not answer";
    handlers_.log(Severity::Warning, "gpuhealth-act " + verb + ": " + text);
    if (verb == "recover") confirm_by_["again"] = clock_.now().wall + kAgain;
    return;
  }
  // "000003-power-cap: reverted, nobody found it good by …"
  for (const Json& item : json.value("resolved", Json::array())) {
    if (!item.is_string()) continue;
    const std::string line = item.get<std::string>();
    handlers_.log(Severity::Info, line);
    const auto colon = line.find(": ");
    if (ActionRecord* record = find(line.substr(0, colon));
        record != nullptr && colon != std::string::npos && verb == "recover") {
      record->state = line.substr(colon + 2, line.find(',', colon) - colon - 2);
      handlers_.changed(*record);
    }
  }
  for (const Json& item : json.value("warnings", Json::array()))
    if (item.is_string()) handlers_.log(Severity::Warning, item.get<std::string>());
  // Something is left open: a GPU that sleeps or is being reset. It is tried again.
  if (verb == "recover" && !json.value("warnings", Json::array()).empty())
    confirm_by_["again"] = clock_.now().wall + kAgain;
  if (ActionRecord* record = find(text_in(json, "ledger"))) {
    record->state = text_in(json, "state");
    if (!in_force(*record)) confirm_by_.erase(record->ledger);
    handlers_.changed(*record);
  }
}

void ActionService::learn(ActionRecord& record, int code, const std::string& said) {
  const Json json = parse_json<Json>(said);
  if (!json.is_object() || json.contains("error") || code != 0) {
    record.state = "refused";
    record.text = json.is_object() && json.contains("error") ? text_in(json["error"], "text")
                                                             : "gpuhealth-act did not come to its end";
    handlers_.log(Severity::Warning, std::string(to_string(record.request.kind)) + ": " + record.text);
    handlers_.changed(record);
    // Killed in the middle: what it left is resolved at once, not at the next start.
    if (code < 0) queue_.push_front({{"device", "recover"}, "", kDeadline, 0, {}});
    return;
  }
  record.state = text_in(json, "state");
  record.ledger = text_in(json, "ledger");
  record.text = text_in(json, "text");
  record.before = text_in(json, "before"), record.wanted = text_in(json, "wanted");
  record.after = text_in(json, "after");
  record.acted = clock_.now().wall;
  if (const auto by = utc_from(text_in(json, "confirm_by"))) {
    confirm_by_[record.ledger] = *by;
    record.confirm_by = *by;
  }
  handlers_.changed(record);
  if (record.unwanted && in_force(record)) {
    confirm_by_.erase(record.ledger);
    queue_.push_front({{"device", "revert", record.ledger, "--by-rule"}, "", kDeadline, 0, {}});
    return;
  }
  const bool changed = in_force(record) || record.state == to_string(ActionState::Done);
  if (changed && !record.request.device.empty() && info(record.request.kind).risk != ActionRisk::None)
    handlers_.run_canary(record.request);
}

ActionRecord* ActionService::find(std::size_t number) {
  const auto found = std::ranges::find(records_, number, &ActionRecord::number);
  return number == 0 || found == records_.end() ? nullptr : &*found;
}

ActionRecord* ActionService::find(const std::string& ledger) {
  if (ledger.empty()) return nullptr;
  const auto found = std::ranges::find(records_, ledger, &ActionRecord::ledger);
  return found == records_.end() ? nullptr : &*found;
}

}  // namespace gpuhealth::actions
