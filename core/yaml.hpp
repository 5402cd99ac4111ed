// SPDX-License-Identifier: Apache-2.0
// YAML from outside as a plain tree with the place of every word: bounded in size, depth and number of nodes (aliases
// are copied and counted), one document, never a loop. Library gh_yaml; yaml-cpp stays behind it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpuhealth::yaml {

struct Place {
  int line = 0;  // from 1; 0: the file as a whole
  int column = 0;
  friend auto operator<=>(const Place&, const Place&) = default;
};

enum class Kind : unsigned char { Null, Scalar, List, Map };

struct Node {
  Kind kind = Kind::Null;
  Place at;
  std::string text;         // of a scalar
  bool quoted = false;      // "5" and not 5
  std::vector<Node> keys;   // of a map; keys[i] belongs to items[i]
  std::vector<Node> items;  // of a list or map
};

struct Mistake {
  Place at;
  std::string text;   // what is wrong
  std::string found;  // the offending text as it stands there; may be empty
  std::string hint;   // what was meant or what to do; may be empty
};

struct Limits {
  std::size_t bytes = 256U << 10U;
  int depth = 24;
  std::size_t nodes = 50'000;
};

struct Parsed {
  std::optional<Node> root;  // nothing when there are mistakes; Null of an empty text
  std::vector<Mistake> mistakes;
};
Parsed parse(std::string_view text, const Limits& limits = {});

// Short, in quotes, one line, nothing that a terminal obeys.
std::string shown(std::string_view text);
// "FILE:LINE:COLUMN: TEXT; HINT" (without the place of what concerns the file as a whole).
std::string line_of(std::string_view file, const Mistake& mistake);

}  // namespace gpuhealth::yaml
