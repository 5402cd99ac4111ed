// SPDX-License-Identifier: Apache-2.0
#include "policy/request.hpp"

#include <algorithm>

namespace gpuhealth::policy {
namespace {

constexpr std::size_t kMostFilled = 400;  // bytes of one fact that is filled in

std::string evidence_text(const Condition& condition) {
  std::string out;
  for (const Evidence& e : condition.evidence) out += (out.empty() ? "" : ", ") + e.name + " " + e.value;
  return out;
}

std::string filled(std::string_view name, const RequestContext& context) {
  const Condition* c = context.condition;
  if (name == "device") return context.device.label.empty() ? context.device.id : context.device.label;
  // Known when it is done: the actuator fills them in.
  if (name == "pci" || name == "name") return "{" + std::string(name) + "}";
  if (name == "rule") return context.rule.name;
  if (name == "policy") return context.policy.name;
  if (name == "host") return context.machine.host;
  if (name == "reason") return context.reason;
  if (c == nullptr) return name == "detail" ? context.reason : "";
  if (name == "condition") return std::string(info(c->type).name);
  if (name == "detail") return c->detail;
  if (name == "evidence") return evidence_text(*c);
  if (name == "advice") return std::string(info(c->type).advice);
  if (name == "cause") return cause_of(*c);
  return "";
}

std::string safe(std::string text) {
  if (text.size() > kMostFilled) {
    std::size_t end = kMostFilled;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80U) --end;
    text.resize(end);
  }
  std::ranges::replace_if(text, [](unsigned char c) { return c < 0x20 || c == 0x7f; }, ' ');
  return text;
}

}  // namespace

std::string key_of(const Policy& policy, const Rule& rule) {
  return policy.name + "/" + rule.name;
}

std::string sentence(const Why& why, Duration hold) {
  std::string out;
  for (const auto& part : why.parts) {
    if (out.ends_with('.')) out.pop_back();
    out += (out.empty() ? "" : "; ") + part;
  }
  if (out.empty()) out = "what the rule asks for holds";
  if (out.ends_with('.')) out.pop_back();  // of a condition's sentence
  if (hold.count() > 0) out += "; for " + text_of(hold);
  return out;
}

std::string expand(const std::string& text, const RequestContext& context) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const auto open = text.find('{', at);
    const auto close = open == std::string::npos ? open : text.find('}', open);
    if (close == std::string::npos) return out + text.substr(at);
    out +=
        text.substr(at, open - at) + safe(filled(std::string_view(text).substr(open + 1, close - open - 1), context));
    at = close + 1;
  }
  return out;
}

ActionRequest make_request(const PlannedAction& action, const RequestContext& context) {
  ActionRequest out;
  out.kind = action.kind;
  if (!concerns_machine(action.kind)) out.device = context.device.id;
  out.params = action.params;
  for (const ActionParam& param : params_of(action.kind)) {
    const auto it = out.params.find(std::string(param.name));
    if (it != out.params.end() && param.kind == ParamKind::Text) it->second = expand(it->second, context);
  }
  out.policy = context.policy.name;
  out.rule = context.rule.name;
  if (context.condition != nullptr) out.condition = context.condition->id;
  out.reason = safe(context.reason);
  return out;
}

}  // namespace gpuhealth::policy
