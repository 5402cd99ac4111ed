// SPDX-License-Identifier: Apache-2.0
#include "actions/text.hpp"

#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

namespace gpuhealth::actions {

std::string fill_template(const Asked& asked, const std::string& text) {
  const ActionRequest& request = *asked.request;
  const std::string pci = asked.target ? asked.target->pci : std::string();
  const std::array<std::pair<std::string_view, std::string>, 8> names = {
      {{"device", request.device},
       {"pci", pci},
       {"name", asked.target ? asked.target->info.name : std::string()},
       {"condition", request.condition},
       {"rule", request.rule},
       {"policy", request.policy},
       {"reason", request.reason},
       {"host", asked.machine->outside.host}}};
  std::string out;
  std::string_view rest = text.empty() ? std::string_view("{reason}") : std::string_view(text);
  while (!rest.empty()) {
    const auto open = rest.find('{');
    const auto close = rest.find('}', open == std::string_view::npos ? 0 : open);
    if (open == std::string_view::npos || close == std::string_view::npos) break;
    out += rest.substr(0, open);
    const auto name = rest.substr(open + 1, close - open - 1);
    const auto* const found = std::ranges::find(names, name, &std::pair<std::string_view, std::string>::first);
    if (found != names.end()) {
      out += found->second;
    } else {
      out += rest.substr(open, close - open + 1);
    }
    rest.remove_prefix(close + 1);
  }
  out += rest;
  std::ranges::replace_if(out, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, ' ');
  if (out.empty()) out = std::string(to_string(request.kind)) + (request.rule.empty() ? " by hand" : " by a rule");
  return out;
}

std::string event_json(const Asked& asked) {
  const ActionRequest& request = *asked.request;
  using Object = nlohmann::ordered_json;
  Object event = Object::parse(asked.event, nullptr, false);
  if (event.is_discarded()) event = nullptr;
  const Object out = {{"host", asked.machine->outside.host},
                      {"action", to_string(request.kind)},
                      {"device", request.device},
                      {"pci", asked.target ? asked.target->pci : std::string()},
                      {"policy", request.policy},
                      {"rule", request.rule},
                      {"condition", request.condition},
                      {"reason", request.reason},
                      {"event", event}};
  return out.dump(-1, ' ', true, Object::error_handler_t::replace);
}

}  // namespace gpuhealth::actions
