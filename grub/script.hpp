// SPDX-License-Identifier: Apache-2.0
// The text of a grub.cfg as a tree of statements, as GRUB's own lexer and grammar (script.l, parser.y) read it.
// Nothing is run and no variable is looked up here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace gpuhealth::grub {

// A word is pieces set next to each other: text, and variables whose value is known only when it runs.
struct WordPart {
  bool variable = false;
  bool quoted = false;    // an unquoted variable is split at white space
  std::string_view text;  // the text, or the variable's name
};
using Word = std::vector<WordPart>;

struct Statement;
using Block = std::vector<Statement>;

struct Branch {
  Block condition;  // empty for else, and for the body of for, function and menuentry
  Block body;
};

struct Statement {
  enum class Kind : std::uint8_t { Command, If, For, While, Until, Function };
  Kind kind = Kind::Command;
  bool negated = false;
  bool has_block = false;        // a command with {…} behind it: menuentry, submenu
  std::uint32_t line = 0;        // from 1
  std::vector<Word> words;       // Command: name and arguments; For: variable, then items; Function: name
  std::vector<Branch> branches;  // If: one each; While, Until: one; For, Function, Command with a block: one
};

struct ScriptNote {
  std::uint32_t line = 0;
  std::string text;
};

struct Script {
  std::unique_ptr<const std::string> source;  // the words point into it, or into `texts`
  std::deque<std::string> texts;
  Block block;
  std::vector<ScriptNote> notes;  // what GRUB would reject; the tree is then what could be made of it
  bool cut = false;               // the text ends inside a block or a quotation
};

Script parse_script(std::string text);

}  // namespace gpuhealth::grub
