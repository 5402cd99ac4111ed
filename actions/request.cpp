// SPDX-License-Identifier: Apache-2.0
#include "actions/request.hpp"

#include "core/json.hpp"

namespace gpuhealth::actions {
namespace {

tl::unexpected<Error> wrong(const std::string& what) {
  return fail(ErrorCode::InvalidInput, "the request cannot be used: " + what);
}

Json or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

Json words(const std::vector<std::string>& list) {
  return list.empty() ? Json::array() : Json(list);
}

Json map_json(const std::map<std::string, std::string>& map) {
  Json out = Json::object();
  for (const auto& [key, value] : map) out[key] = value;
  return out;
}

Result<void> read_map(const Json& json, const char* key, std::map<std::string, std::string>& out) {
  if (!json.contains(key)) return {};
  if (!json[key].is_object()) return wrong(std::string(key) + " is no object");
  for (const auto& [name, value] : json[key].items()) {
    if (value.is_string()) {
      out[name] = value.get<std::string>();
    } else if (value.is_boolean() || value.is_number()) {
      out[name] = value.dump();
    } else {
      return wrong(std::string(key) + "." + name + " is no text, number or truth value");
    }
  }
  return {};
}

Json steps_json(const std::vector<LedgerStep>& steps) {
  Json out = Json::array();
  for (const LedgerStep& step : steps) out.push_back(describe(step));
  return out;
}

}  // namespace

Result<Order> order_from(std::string_view text) {
  const Json json = parse_json<Json>(text);
  if (!json.is_object()) return wrong("it is no JSON object");
  Order out;
  std::string action;
  for (auto [key, field] : {std::pair{"action", &action}, std::pair{"device", &out.request.device},
                            std::pair{"policy", &out.request.policy}, std::pair{"rule", &out.request.rule},
                            std::pair{"condition", &out.request.condition}, std::pair{"reason", &out.request.reason}}) {
    if (!json.contains(key)) continue;
    if (!json[key].is_string()) return wrong(std::string(key) + " is no text");
    *field = json[key].get<std::string>();
  }
  const auto kind = action_kind_from(action);
  if (!kind) return wrong("there is no action \"" + action + "\"");
  out.request.kind = *kind;
  if (auto read = read_map(json, "params", out.request.params); !read) return tl::unexpected<Error>(read.error());
  if (auto read = read_map(json, "times", out.times); !read) return tl::unexpected<Error>(read.error());
  if (json.contains("event")) out.event = json["event"].dump(-1, ' ', true, Json::error_handler_t::replace);
  if (json.contains("probation_s")) {
    if (!json["probation_s"].is_number_unsigned() ||
        json["probation_s"].get<std::uint64_t>() > std::uint64_t{7} * 86'400)
      return wrong("probation_s is no number of seconds up to a week");
    out.probation = std::chrono::seconds(json["probation_s"].get<std::int64_t>());
  }
  return out;
}

Json order_json(const Order& order) {
  Json out = {{"action", to_string(order.request.kind)},
              {"device", order.request.device},
              {"params", map_json(order.request.params)},
              {"policy", order.request.policy},
              {"rule", order.request.rule},
              {"condition", order.request.condition},
              {"reason", order.request.reason},
              {"times", map_json(order.times)},
              {"probation_s", order.probation.count()}};
  Json event = parse_json<Json>(order.event);
  if (!event.is_discarded()) out["event"] = std::move(event);
  return out;
}

Json outcome_json(const Outcome& out) {
  return {{"action", out.action},
          {"device", or_null(out.device)},
          {"pci", or_null(out.pci)},
          {"state", out.state},
          {"ledger", or_null(out.ledger)},
          {"before", or_null(out.before)},
          {"wanted", or_null(out.wanted)},
          {"after", or_null(out.after)},
          {"confirm_by", or_null(out.confirm_by)},
          {"text", or_null(out.text)},
          {"steps", words(out.steps)},
          {"files", words(out.files)},
          {"warnings", words(out.warnings)},
          {"resolved", words(out.resolved)}};
}

Json entry_json(const LedgerEntry& entry) {
  Json files = Json::array();
  for (const auto& [path, state] : entry.prior) files.push_back(path);
  return {{"id", entry.id},
          {"owner", entry.owner},
          {"action", entry.action},
          {"state", entry.state},
          {"open", is_open(entry)},
          {"in_force", in_force(entry)},
          {"device", or_null(entry.device)},
          {"target", or_null(entry.target)},
          {"params", map_json(entry.params)},
          {"policy", or_null(entry.policy)},
          {"rule", or_null(entry.rule)},
          {"condition", or_null(entry.condition)},
          {"reason", or_null(entry.reason)},
          {"before", or_null(entry.before)},
          {"wanted", or_null(entry.wanted)},
          {"after", or_null(entry.after)},
          {"started", entry.started},
          {"confirm_by", or_null(entry.confirm_by)},
          {"times", map_json(entry.times)},
          {"boot_id", or_null(entry.boot_id)},
          {"lasting", entry.lasting},
          {"note", or_null(entry.note)},
          {"steps", steps_json(entry.steps)},
          {"back", steps_json(entry.back)},
          {"files", files},
          {"warnings", words(entry.warnings)}};
}

Json error_json(const Error& error) {
  Json out = {{"error", {{"code", to_string(error.code)}, {"text", error.text}}}};
  if (error.sys_errno != 0) out["error"]["errno"] = error.sys_errno;
  return out;
}

Result<void> add_param(ActionRequest& request, const std::string& word) {
  const auto equals = word.find('=');
  if (equals == std::string::npos || equals == 0)
    return fail(ErrorCode::InvalidInput, "\"" + word + "\" is not NAME=VALUE");
  const std::string name = word.substr(0, equals);
  if (request.params.contains(name))
    return fail(ErrorCode::InvalidInput,
                name + " is given twice: " + request.params[name] + " and " + word.substr(equals + 1));
  request.params[name] = word.substr(equals + 1);
  return {};
}

}  // namespace gpuhealth::actions
