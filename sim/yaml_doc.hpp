// SPDX-License-Identifier: Apache-2.0
// A YAML file read with care: every mistake is collected with its place, unknown and repeated keys among them.
#pragma once

#include <yaml-cpp/yaml.h>

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"

namespace gpuhealth::sim {

class YamlDoc {
 public:
  explicit YamlDoc(std::string file) : file_(std::move(file)) {}

  void say(const YAML::Node& where, const std::string& what) { say(where.Mark(), what); }
  void say(const YAML::Mark& where, const std::string& what);

  // The keys of a map; nothing for what is not one. Keys that are not in `known` are mistakes.
  std::map<std::string, YAML::Node> map(const YAML::Node& node, std::string_view what,
                                        std::span<const std::string_view> known);
  std::vector<YAML::Node> list(const YAML::Node& node, std::string_view what);
  std::string text(const YAML::Node& node, std::string_view what);
  bool flag(const YAML::Node& node, std::string_view what);
  double number(const YAML::Node& node, std::string_view what, double low, double high);
  double seconds(const YAML::Node& node, std::string_view what);
  // The word's place in `words`, which are said when it is none of them; then 0.
  std::size_t one_of(const YAML::Node& node, std::string_view what, std::span<const std::string_view> words);

  [[nodiscard]] bool sound() const { return errors_.empty(); }
  [[nodiscard]] Error error() const;

 private:
  std::string file_;
  std::vector<std::string> errors_;
};

}  // namespace gpuhealth::sim
