// SPDX-License-Identifier: Apache-2.0
#include "grub/interpreter.hpp"

#include <algorithm>
#include <array>

namespace gpuhealth::grub {
namespace {

constexpr std::size_t kBudget = 200'000;  // statements; a menu of a thousand entries needs thirty thousand
constexpr int kMaxRounds = 10'000;        // of all loops together
constexpr int kMaxDepth = 64;
constexpr std::size_t kMaxText = std::size_t{64} << 10;
constexpr char kSaved = '\x01';  // in front of a name: its value in grubenv, not in memory

// Set by GRUB, from what a running system does not see.
bool only_grub_knows(std::string_view name) {
  static constexpr std::array<std::string_view, 9> kNames = {"root",     "cmdpath",    "lang",      "grub_cpu", "theme",
                                                             "lockdown", "secureboot", "shim_lock", "?"};
  return std::ranges::find(kNames, name) != kNames.end() || name.starts_with("net_") || name.starts_with("pxe");
}

bool is_assignment(std::string_view word) {
  const auto equals = word.find('=');
  if (equals == std::string_view::npos || equals == 0) return false;
  return std::ranges::all_of(word.substr(0, equals), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '?';
  });
}

}  // namespace

Interpreter::Interpreter(const Machine& machine) : machine_(machine), budget_(kBudget) {
  exported_ = {"root", "prefix", "cmdpath", "lang", "grub_cpu", "grub_platform", "chosen", "debug", "color_normal"};
  set("prefix", Value{machine.folder, true, {}});
  set("config_directory", Value{machine.folder, true, {}});
  set("config_file", Value{machine.folder + "/grub.cfg", true, {}});
  if (machine.platform.empty()) {
    set("grub_platform", Value{"${grub_platform}", false, {}});
  } else {
    set("grub_platform", Value{machine.platform, true, {}});
  }
}

void Interpreter::run(const std::shared_ptr<const Script>& script, bool bodies) {
  filling_ = &menu_;
  cut_ = cut_ || script->cut;
  for (const ScriptNote& note : script->notes) notes_.push_back("line " + std::to_string(note.line) + ": " + note.text);
  scripts_.push_back(script);
  (void)run_block(script->block);
  flow_ = Flow::Go;
  look_at_bodies(menu_, bodies);
}

std::optional<std::string> Interpreter::obscured() const {
  if (cut_) return "the configuration ends in the middle: it is damaged or a part of one";
  if (exhausted_) return "the configuration is too long or ends early in a way that only GRUB knows";
  if (direct_) return "the configuration loads a kernel without a menu";
  return std::nullopt;
}

// --- variables

Value Interpreter::look_up(std::string_view name) const {
  const auto found = variables_.find(std::string(name));
  if (found != variables_.end()) return found->second;
  if (!parameters_.empty() && name.size() == 1) {
    const Arguments& given = parameters_.back();
    if (name == "#") return {std::to_string(given.size()), true, {}};
    if (name[0] >= '1' && name[0] <= '9') {
      const auto index = static_cast<std::size_t>(name[0] - '1');
      return index < given.size() ? given[index] : Value{};
    }
  }
  if (only_grub_knows(name)) return {"${" + std::string(name) + "}", false, std::string(name)};
  if (name.starts_with("feature_")) return {"y", true, {}};
  // An excerpt without the header that sets it.
  if (name == "menuentry_id_option") return {"--id", true, {}};
  return {};
}

void Interpreter::set(const std::string& name, std::optional<Value> value) {
  if (name.empty() || name == std::string(1, kSaved)) return;
  const auto found = variables_.find(name);
  if (watched_ > 0) undo_.emplace_back(name, found == variables_.end() ? std::nullopt : std::optional(found->second));
  if (!value) {
    if (found != variables_.end()) variables_.erase(found);
  } else {
    if (value->text.size() > kMaxText) value = Value{"${" + name + "}", false, {}};
    variables_.insert_or_assign(name, std::move(*value));
  }
}

void Interpreter::roll_back(std::size_t mark) {
  while (undo_.size() > mark) {
    auto [name, value] = std::move(undo_.back());
    undo_.pop_back();
    if (value) {
      variables_.insert_or_assign(name, std::move(*value));
    } else {
      variables_.erase(name);
    }
  }
}

Interpreter::Changed Interpreter::try_out(const std::function<void()>& way) {
  const std::size_t mark = undo_.size();
  ++watched_;
  ++uncertain_;
  way();
  if (flow_ != Flow::Go && flow_ != Flow::Break && flow_ != Flow::Continue && steps_ == nullptr) exhausted_ = true;
  flow_ = Flow::Go;
  Changed changed;
  for (std::size_t i = mark; i < undo_.size(); ++i) {
    const auto now = variables_.find(undo_[i].first);
    changed[undo_[i].first] = now == variables_.end() ? std::nullopt : std::optional(now->second);
  }
  roll_back(mark);
  --uncertain_;
  --watched_;
  return changed;
}

void Interpreter::merge(const std::vector<Changed>& ways) {
  std::set<std::string> names;
  for (const Changed& way : ways)
    for (const auto& [name, value] : way) names.insert(name);
  for (const std::string& name : names) {
    const auto now = variables_.find(name);
    const auto before = now == variables_.end() ? std::nullopt : std::optional(now->second);
    bool same = true;
    std::optional<Value> first;
    for (std::size_t i = 0; i < ways.size(); ++i) {
      const auto found = ways[i].find(name);
      const std::optional<Value> value = found == ways[i].end() ? before : found->second;
      if (i == 0) first = value;
      const Value empty;
      same = same && value.value_or(empty) == first.value_or(empty);
    }
    if (same && (!first || first->known)) {
      set(name, first);
    } else {
      set(name, Value{"${" + (name.front() == kSaved ? name.substr(1) : name) + "}", false, name});
    }
  }
}

void Interpreter::expand(const Word& word, Arguments& out) const {
  Value value;
  bool any = false;  // a quoted piece, or text: the word exists even when empty
  for (const WordPart& part : word) {
    if (!part.variable) {
      value.text += part.text;
      any = any || part.quoted || !part.text.empty();
      continue;
    }
    if (!part.quoted && (part.text == "@" || part.text == "*") && !parameters_.empty()) {
      for (const Value& given : parameters_.back()) out.push_back(given);
      continue;
    }
    const Value found = look_up(part.text);
    value.known = value.known && found.known;
    // A variable alone, or NAME=variable: the value is that variable's.
    const bool alone = word.size() == 1 || (word.size() == 2 && &part == &word[1] && word[0].text.ends_with('='));
    if (alone) value.origin = std::string(part.text);
    if (part.quoted || found.text.find_first_of(" \t\n") == std::string::npos) {
      value.text += found.text;
      any = any || part.quoted || !found.text.empty();
      continue;
    }
    std::string_view rest = found.text;  // unquoted: split at white space
    while (true) {
      const auto end = rest.find_first_of(" \t\n");
      value.text += rest.substr(0, end);
      any = any || !value.text.empty();
      if (end == std::string_view::npos) break;
      if (any) out.push_back(value);
      value = Value{{}, found.known, {}};
      any = false;
      rest.remove_prefix(end + 1);
    }
  }
  if (value.text.size() > kMaxText) value = Value{"${…}", false, {}};
  if (any) out.push_back(std::move(value));
}

Arguments Interpreter::expand(const std::vector<Word>& words) const {
  Arguments out;
  out.reserve(words.size());
  for (const Word& word : words) expand(word, out);
  return out;
}

// --- statements

Tri Interpreter::run_block(const Block& block) {
  Tri status = Tri::Yes;
  for (const Statement& statement : block) {
    if (flow_ != Flow::Go) break;
    if (budget_ == 0) {
      exhausted_ = true;
      break;
    }
    --budget_;
    status = run_statement(statement);
    if (statement.negated && status != Tri::Unknown) status = status == Tri::Yes ? Tri::No : Tri::Yes;
  }
  return status;
}

Tri Interpreter::run_statement(const Statement& statement) {
  if (depth_ >= kMaxDepth) {
    exhausted_ = true;
    return Tri::Unknown;
  }
  ++depth_;
  Tri status = Tri::Yes;
  switch (statement.kind) {
    case Statement::Kind::Command:
      status = run_command(statement);
      break;
    case Statement::Kind::If:
      status = run_if(statement);
      break;
    case Statement::Kind::For:
    case Statement::Kind::While:
    case Statement::Kind::Until:
      status = run_loop(statement);
      break;
    case Statement::Kind::Function: {
      const Arguments name = expand(statement.words);
      if (!name.empty() && !statement.branches.empty()) functions_[name.front().text] = &statement;
      break;
    }
  }
  --depth_;
  return status;
}

Tri Interpreter::run_if(const Statement& statement) {
  std::vector<Changed> ways;
  bool open = true;  // no branch is sure to be taken
  for (const Branch& branch : statement.branches) {
    const Tri status = branch.condition.empty() ? Tri::Yes : run_block(branch.condition);
    if (flow_ != Flow::Go) return Tri::Unknown;
    if (status == Tri::No) continue;
    if (status == Tri::Yes && ways.empty()) return run_block(branch.body);
    ways.push_back(try_out([&] { (void)run_block(branch.body); }));
    if (status == Tri::Yes) {
      open = false;
      break;
    }
  }
  if (ways.empty()) return Tri::Yes;
  if (open) ways.emplace_back();
  merge(ways);
  return Tri::Unknown;
}

Tri Interpreter::run_loop(const Statement& statement) {
  if (statement.branches.empty()) return Tri::Yes;
  const Branch& loop = statement.branches.front();
  const auto left = [&] {
    const Flow flow = flow_;
    if (flow_ == Flow::Break || flow_ == Flow::Continue) flow_ = Flow::Go;
    return flow != Flow::Go && flow != Flow::Continue;
  };
  if (statement.kind == Statement::Kind::For) {
    const Arguments words = expand(statement.words);
    for (std::size_t i = 1; i < words.size() && budget_ > 0; ++i) {
      set(words.front().text, words[i]);
      (void)run_block(loop.body);
      if (left()) break;
    }
    return Tri::Yes;
  }
  while (budget_ > 0 && ++rounds_ < kMaxRounds) {
    const Tri status = run_block(loop.condition);
    if (status == Tri::Unknown) {
      merge({try_out([&] { (void)run_block(loop.body); }), {}});
      return Tri::Unknown;
    }
    if ((status == Tri::Yes) != (statement.kind == Statement::Kind::While)) return Tri::Yes;
    (void)run_block(loop.body);
    if (left()) return Tri::Yes;
  }
  exhausted_ = true;
  return Tri::Unknown;
}

Tri Interpreter::run_command(const Statement& statement) {
  Arguments arguments = expand(statement.words);
  if (arguments.empty()) return Tri::Yes;
  if (is_assignment(arguments.front().text)) return builtin("set", arguments);
  if (!arguments.front().known) return Tri::Unknown;
  const std::string name = std::move(arguments.front().text);
  arguments.erase(arguments.begin());
  if ((name == "menuentry" || name == "submenu") && statement.has_block) {
    add_entry(statement, arguments);
    return Tri::Yes;
  }
  if (const auto function = functions_.find(name); function != functions_.end())
    return call(*function->second, std::move(arguments));
  return builtin(name, arguments);
}

Tri Interpreter::call(const Statement& function, Arguments arguments) {
  parameters_.push_back(std::move(arguments));
  const Tri status = run_block(function.branches.front().body);
  if (flow_ == Flow::Return) flow_ = Flow::Go;
  parameters_.pop_back();
  return status;
}

}  // namespace gpuhealth::grub
