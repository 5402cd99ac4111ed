// SPDX-License-Identifier: Apache-2.0
#include "policy/schema.hpp"

#include <nlohmann/json.hpp>

#include "core/action.hpp"
#include "policy/keys.hpp"
#include "policy/policy.hpp"

namespace gpuhealth::policy {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kDuration = "^[0-9]+(\\.[0-9]+)? ?(ms|s|m|min|h|d|w)$";
constexpr const char* kBytes = "^[0-9]+(\\.[0-9]+)? ?(B|KiB|MiB|GiB|TiB)$";
constexpr const char* kName = "^[A-Za-z0-9._-]{1,64}$";

// "rule" of "a rule".
std::string definition(SectionId section) {
  const auto name = name_of(section);
  return std::string(
      name.substr(name.starts_with("a") && name.find(' ') != std::string_view::npos ? name.find(' ') + 1 : 0));
}
Json reference(SectionId section) {
  return {{"$ref", "#/$defs/" + definition(section)}};
}
Json pattern(const char* text) {
  return {{"type", "string"}, {"pattern", text}};
}
Json one_or_more(const Json& item) {
  return {{"oneOf", {item, {{"type", "array"}, {"minItems", 1}, {"items", item}}}}};
}
Json words(ValueKind kind) {
  return {{"enum", words_of(kind)}};
}

Json value_of(const ActionParam& param) {
  switch (param.kind) {
    case ParamKind::Flag:
      return {{"type", "boolean"}};
    case ParamKind::Number:
      return {{"type", {"number", "string"}}};
    case ParamKind::Words:
      return one_or_more({{"type", "string"}});
    case ParamKind::TimeSpan:
      return pattern(kDuration);
    case ParamKind::Bytes:
      return pattern(kBytes);
    case ParamKind::Urgency:
      return {{"enum", {"low", "normal", "critical"}}};
    case ParamKind::Word:
    case ParamKind::Text:
    case ParamKind::Window:
      return {{"type", "string"}};
  }
  return Json::object();
}

Json actions() {
  Json names = Json::array(), with_params = Json::object();
  for (const ActionInfo& action : all_actions()) {
    Json params = Json::object(), required = Json::array();
    for (const ActionParam& param : params_of(action.kind)) {
      Json value = value_of(param);
      value["description"] = param.meaning;
      params[std::string(param.name)] = std::move(value);
      if (param.required) required.push_back(param.name);
    }
    if (required.empty()) names.push_back(action.name);
    Json one = {{"description", action.does},
                {"type", {"object", "null"}},
                {"properties", params},
                {"additionalProperties", false}};
    if (!required.empty()) one["required"] = required;
    with_params[std::string(action.name)] = std::move(one);
  }
  const Json map = {{"type", "object"},
                    {"minProperties", 1},
                    {"maxProperties", 1},
                    {"properties", with_params},
                    {"additionalProperties", false}};
  return {{"type", "array"}, {"minItems", 1}, {"maxItems", 16}, {"items", {{"oneOf", {{{"enum", names}}, map}}}}};
}

Json value_of(const KeyInfo& key) {
  switch (key.value) {
    case ValueKind::Section:
      return reference(key.child);
    case ValueKind::SectionList:
      return {{"type", "array"}, {"minItems", 1}, {"items", reference(key.child)}};
    case ValueKind::ConditionOr:
      return {{"oneOf", {words(ValueKind::Condition), reference(key.child)}}};
    case ValueKind::Actions:
      return actions();
    case ValueKind::Name:
    case ValueKind::RuleName:
    case ValueKind::Advisory:
      return pattern(kName);
    case ValueKind::Text:
      return {{"type", "string"}};
    case ValueKind::Serial:
      return {{"type", "integer"}, {"minimum", 1}};
    case ValueKind::Count:
      return {{"type", "integer"}, {"minimum", 1}, {"maximum", 1000}};
    case ValueKind::Day:
      return pattern("^[0-9]{4}-[0-9]{2}-[0-9]{2}$");
    case ValueKind::Duration:
      return pattern(kDuration);
    case ValueKind::Bytes:
      return pattern(kBytes);
    case ValueKind::Quantity:
      return {{"type", {"string", "number"}}};
    case ValueKind::Times:
      return pattern("^[0-9]+(\\.[0-9]+)? ?x$");
    case ValueKind::Flag:
      return {{"type", "boolean"}};
    case ValueKind::Globs:
    case ValueKind::Windows:
      return one_or_more({{"type", "string"}});
    case ValueKind::Vendors:
      return one_or_more(words(key.value));
    case ValueKind::Labels:
      return {{"type", "object"},
              {"minProperties", 1},
              {"additionalProperties", {{"type", {"string", "number", "boolean"}}}}};
    default:
      return words(key.value);
  }
}

Json section(SectionId id) {
  Json properties = Json::object(), required = Json::array();
  for (const KeyInfo& key : keys_of(id)) {
    Json value = value_of(key);
    value["description"] = key.meaning;
    if (!key.standard.empty())
      value["description"] = std::string(key.meaning) + "; default " + std::string(key.standard);
    properties[std::string(key.key)] = std::move(value);
    if (key.required) required.push_back(key.key);
  }
  Json out = {{"title", name_of(id)}, {"type", "object"}, {"properties", properties}, {"additionalProperties", false}};
  if (!required.empty()) out["required"] = required;
  if (id == SectionId::When) out["minProperties"] = 1, out["maxProperties"] = 1;
  return out;
}

}  // namespace

std::string json_schema() {
  Json out = {{"$schema", "https://json-schema.org/draft/2020-12/schema"}, {"title", "gpuhealthd policy"}};
  out.update(section(SectionId::File));
  out["title"] = "gpuhealthd policy";
  for (int i = static_cast<int>(SectionId::Metadata); i < static_cast<int>(SectionId::Count); ++i)
    out["$defs"][definition(static_cast<SectionId>(i))] = section(static_cast<SectionId>(i));
  return out.dump(2, ' ', true);
}

}  // namespace gpuhealth::policy
