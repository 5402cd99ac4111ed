// SPDX-License-Identifier: Apache-2.0
#include "dbus/loose.hpp"

#include <algorithm>
#include <utility>

#include "dbus/records.hpp"

namespace gpuhealth::dbus {
namespace {

// The variant that comes next; false where it was of a type that is not kept, and was passed over.
bool read_variant(Reader& in, LooseValue& to) {
  const std::string type = in.variant_type();
  const auto read = [&](const char* of, auto get) {
    if (type != of || !in.enter('v', of)) return false;
    to = get();
    in.leave();
    return true;
  };
  if (read("s", [&] { return LooseValue(in.text()); }) || read("o", [&] { return LooseValue(in.path()); }) ||
      read("b", [&] { return LooseValue(in.flag()); }) || read("d", [&] { return LooseValue(in.number()); }) ||
      read("t", [&] { return LooseValue(static_cast<double>(in.u64())); }) ||
      read("x", [&] { return LooseValue(static_cast<double>(in.i64())); }) ||
      read("u", [&] { return LooseValue(static_cast<double>(in.u32())); }) ||
      read("i", [&] { return LooseValue(static_cast<double>(in.i32())); }) ||
      read("as", [&] { return LooseValue(read_texts(in)); }))
    return true;
  in.skip("v");
  return false;
}

template <class T>
const T* value_of(const Properties& properties, std::string_view name) {
  const auto it = properties.find(name);
  return it == properties.end() ? nullptr : std::get_if<T>(&it->second);
}

}  // namespace

Properties read_loose_properties(Reader& in) {
  Properties out;
  if (!in.enter('a', "{sv}")) return out;
  while (in.enter('e', "sv")) {
    std::string name = in.text();
    LooseValue value;
    if (read_variant(in, value)) out.insert_or_assign(std::move(name), std::move(value));
    in.leave();
  }
  in.leave();
  return out;
}

std::vector<LooseObject> read_loose_objects(Reader& in, const std::vector<std::string_view>& wanted) {
  std::vector<LooseObject> out;
  if (!in.enter('a', "{oa{sa{sv}}}")) return out;
  while (in.enter('e', "oa{sa{sv}}")) {
    const std::string path = in.path();
    in.enter('a', "{sa{sv}}");
    while (in.enter('e', "sa{sv}")) {
      std::string interface = in.text();
      if (std::ranges::find(wanted, interface) == wanted.end())
        in.skip("a{sv}");
      else
        out.push_back({path, std::move(interface), read_loose_properties(in)});
      in.leave();
    }
    in.leave();
    in.leave();
  }
  in.leave();
  return out;
}

std::string text(const Properties& properties, std::string_view name) {
  const auto* value = value_of<std::string>(properties, name);
  return value == nullptr ? std::string() : *value;
}

double number(const Properties& properties, std::string_view name) {
  const auto* value = value_of<double>(properties, name);
  return value == nullptr ? 0 : *value;
}

bool flag(const Properties& properties, std::string_view name) {
  const auto* value = value_of<bool>(properties, name);
  return value != nullptr && *value;
}

std::vector<std::string> texts(const Properties& properties, std::string_view name) {
  const auto* value = value_of<std::vector<std::string>>(properties, name);
  return value == nullptr ? std::vector<std::string>() : *value;
}

bool has(const Properties& properties, std::string_view name) {
  return properties.contains(name);
}

}  // namespace gpuhealth::dbus
