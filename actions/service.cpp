// SPDX-License-Identifier: Apache-2.0
#include "actions/service.hpp"

#include <algorithm>
#include <utility>

#include "actions/request.hpp"
#include "actions/state.hpp"

namespace gpuhealth::actions {
namespace {

constexpr Duration kDeadline = std::chrono::seconds(120);
constexpr Duration kKernelDeadline = std::chrono::seconds(600);  // grub-mkconfig takes its time
constexpr Duration kAgain = std::chrono::minutes(1);
constexpr std::size_t kRecordsKept = 256;
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

}  // namespace

ActionService::ActionService(const Clock& clock, Handlers handlers) : clock_(clock), handlers_(std::move(handlers)) {}

void ActionService::start() {
  put({{"device", "recover"}, "", kDeadline, 0});
}

void ActionService::submit(Order order, WallTime fault) {
  if (order.request.kind == ActionKind::RunCanary) {
    handlers_.run_canary(order.request);
    return;
  }
  ActionRecord record;
  record.request = order.request;
  record.state = "queued";
  record.fault = fault;
  record.detected = clock_.now().wall;
  if (queue_.size() >= kMostWaiting) {
    record.state = "refused";
    record.text = "too many actions wait";
    handlers_.log(Severity::Warning, record.text + ": " + std::string(to_string(record.request.kind)));
  }
  order.times["fault"] = utc_text(fault);
  order.times["detected"] = utc_text(record.detected);
  records_.push_back(record);
  if (records_.size() > kRecordsKept) {
    records_.pop_front();
    ++dropped_;
  }
  handlers_.changed(records_.back());
  if (record.state == "queued")
    put({{"device", "run", "--request", "-"},
         order_json(order).dump(),
         deadline_of(order),
         dropped_ + records_.size()});
}

void ActionService::condition_cleared(const std::string& condition) {
  for (const ActionRecord& record : records_) {
    if (record.request.condition != condition || record.state != to_string(ActionState::Applied)) continue;
    confirm_by_.erase(record.ledger);
    put({{"device", "confirm", record.ledger}, "", kDeadline, 0});
  }
}

void ActionService::no_longer_wanted(const std::string& rule, const std::string& device) {
  // The newest first: each brings back what it found.
  for (auto record = records_.rbegin(); record != records_.rend(); ++record) {
    if (record->request.rule != rule || record->request.device != device || !in_force(*record)) continue;
    confirm_by_.erase(record->ledger);
    put({{"device", "revert", record->ledger, "--by-rule"}, "", kDeadline, 0});
  }
}

void ActionService::canary_passed(const std::string& device) {
  for (ActionRecord& record : records_) {
    const bool done = in_force(record) || record.state == to_string(ActionState::Done);
    if (record.request.device != device || !done || record.verified != WallTime{}) continue;
    record.verified = clock_.now().wall;
    if (!record.ledger.empty()) put({{"device", "verified", record.ledger}, "", kDeadline, 0});
    handlers_.changed(record);
  }
}

void ActionService::device_came_back(const std::string& device) {
  const bool ours =
      std::ranges::any_of(records_, [&](const ActionRecord& r) { return r.request.device == device && in_force(r); });
  if (ours) put({{"device", "again", "--device", device}, "", kDeadline, 0});
}

void ActionService::tick() {
  const WallTime now = clock_.now().wall;
  const bool over = std::ranges::any_of(confirm_by_, [&](const auto& item) { return item.second <= now; });
  if (!over) return;
  std::erase_if(confirm_by_, [&](const auto& item) { return item.second <= now; });
  put({{"device", "recover"}, "", kDeadline, 0});
}

void ActionService::put(Job job) {
  queue_.push_back(std::move(job));
  next();
}

void ActionService::next() {
  if (running_ || queue_.empty()) return;
  running_ = true;
  const Job job = std::move(queue_.front());
  queue_.pop_front();
  if (ActionRecord* record = find(job.number)) {
    record->state = "running";
    handlers_.changed(*record);
  }
  handlers_.act(job.words, job.input, job.deadline, [this, job](int code, const std::string& said) {
    running_ = false;
    ended(job, code, said);
    next();
  });
}

void ActionService::ended(const Job& job, int code, const std::string& said) {
  if (ActionRecord* record = find(job.number)) {
    learn(*record, code, said);
    return;
  }
  const Json json = Json::parse(said, nullptr, false);
  if (!json.is_object() || json.contains("error")) {
    const std::string text = json.is_object() ? text_in(json["error"], "text") : "it did not answer";
    handlers_.log(Severity::Warning, "gpuhealth-act " + job.words.at(1) + ": " + text);
    return;
  }
  // "000003-power-cap: reverted, nobody found it good by …"
  for (const Json& item : json.value("resolved", Json::array())) {
    if (!item.is_string()) continue;
    const std::string line = item.get<std::string>();
    handlers_.log(Severity::Info, line);
    const auto colon = line.find(": ");
    if (ActionRecord* record = find(line.substr(0, colon));
        record != nullptr && colon != std::string::npos && job.words.at(1) == "recover") {
      record->state = line.substr(colon + 2, line.find(',', colon) - colon - 2);
      handlers_.changed(*record);
    }
  }
  for (const Json& item : json.value("warnings", Json::array()))
    if (item.is_string()) handlers_.log(Severity::Warning, item.get<std::string>());
  // Something is left open: a GPU that sleeps or is being reset. It is tried again.
  if (job.words.at(1) == "recover" && !json.value("warnings", Json::array()).empty())
    confirm_by_["again"] = clock_.now().wall + kAgain;
  if (ActionRecord* record = find(text_in(json, "ledger"))) {
    record->state = text_in(json, "state");
    handlers_.changed(*record);
  }
}

void ActionService::learn(ActionRecord& record, int code, const std::string& said) {
  const Json json = Json::parse(said, nullptr, false);
  if (!json.is_object() || json.contains("error") || code != 0) {
    record.state = "refused";
    record.text = json.is_object() && json.contains("error") ? text_in(json["error"], "text")
                                                             : "gpuhealth-act did not come to its end";
    handlers_.log(Severity::Warning, std::string(to_string(record.request.kind)) + ": " + record.text);
    handlers_.changed(record);
    // Killed in the middle: what it left is resolved at once, not at the next start.
    if (code < 0) queue_.push_front({{"device", "recover"}, "", kDeadline, 0});
    return;
  }
  record.state = text_in(json, "state");
  record.ledger = text_in(json, "ledger");
  record.text = text_in(json, "text");
  record.acted = clock_.now().wall;
  if (const auto by = utc_from(text_in(json, "confirm_by"))) confirm_by_[record.ledger] = *by;
  handlers_.changed(record);
  const bool changed = in_force(record) || record.state == to_string(ActionState::Done);
  if (changed && !record.request.device.empty() && info(record.request.kind).risk != ActionRisk::None)
    handlers_.run_canary(record.request);
}

ActionRecord* ActionService::find(std::size_t number) {
  if (number <= dropped_ || number - dropped_ > records_.size()) return nullptr;
  return &records_[number - dropped_ - 1];
}

ActionRecord* ActionService::find(const std::string& ledger) {
  if (ledger.empty()) return nullptr;
  const auto found = std::ranges::find(records_, ledger, &ActionRecord::ledger);
  return found == records_.end() ? nullptr : &*found;
}

}  // namespace gpuhealth::actions
