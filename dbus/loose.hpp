// SPDX-License-Identifier: Apache-2.0
// Objects as the bus tells them, property by property: for what an older daemon does not have and a newer one has more
// of. What is absent is absent, never an error.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "dbus/wire.hpp"

namespace gpuhealth::dbus {

// Numbers of all widths are doubles: exact up to 2^53, which holds times in microseconds.
using LooseValue = std::variant<std::string, double, bool, std::vector<std::string>>;
using Properties = std::map<std::string, LooseValue, std::less<>>;

struct LooseObject {
  std::string path;
  std::string interface;
  Properties properties;  // of types other than those above: left out
};

// Of a{sv}; of GetManagedObjects' answer, those interfaces alone that `wanted` names.
Properties read_loose_properties(Reader& in);
std::vector<LooseObject> read_loose_objects(Reader& in, const std::vector<std::string_view>& wanted);

// Empty, nothing or false where the property is absent or of another type.
std::string text(const Properties& properties, std::string_view name);
double number(const Properties& properties, std::string_view name);
bool flag(const Properties& properties, std::string_view name);
std::vector<std::string> texts(const Properties& properties, std::string_view name);
bool has(const Properties& properties, std::string_view name);

}  // namespace gpuhealth::dbus
