// SPDX-License-Identifier: Apache-2.0
#include "grub/script.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace gpuhealth::grub {
namespace {

constexpr int kMaxDepth = 64;  // a menu has three levels; deeper is not made by any tool

enum class TokenKind : std::uint8_t { Word, Separator, Open, Close, Other, End };

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}
bool ends_word(char c) {
  return is_blank(c) || c == '\n' || c == ';' || c == '{' || c == '}' || c == '|' || c == '&' || c == '<' || c == '>';
}
bool is_name(char c, bool first) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (!first && c >= '0' && c <= '9');
}

class Lexer {
 public:
  Lexer(std::string_view text, Script& script) : text_(text), script_(script) {}

  TokenKind kind = TokenKind::End;
  Word word;
  bool plain = false;  // the word is one piece of unquoted text: it may be a reserved one
  std::uint32_t line = 1;

  void next() {
    skip_blanks();
    line = line_;
    if (at_ >= text_.size()) {
      kind = TokenKind::End;
      return;
    }
    const char c = text_[at_];
    if (c == '\n' || c == ';') {
      kind = TokenKind::Separator;
      step();
    } else if (c == '{' || c == '}') {
      kind = c == '{' ? TokenKind::Open : TokenKind::Close;
      step();
    } else if (c == '|' || c == '&' || c == '<' || c == '>') {
      kind = TokenKind::Other;
      while (at_ < text_.size() && text_[at_] == c) step();
    } else {
      kind = TokenKind::Word;
      read_word();
    }
  }

 private:
  void step() {
    if (text_[at_] == '\n') ++line_;
    ++at_;
  }
  [[nodiscard]] bool continues() const {  // a backslash before the line's end
    return at_ + 1 < text_.size() && text_[at_] == '\\' && text_[at_ + 1] == '\n';
  }
  void skip_blanks() {
    while (at_ < text_.size()) {
      if (is_blank(text_[at_])) {
        step();
      } else if (continues()) {
        step();
        step();
      } else if (text_[at_] == '#') {
        while (at_ < text_.size() && text_[at_] != '\n') step();
      } else {
        return;
      }
    }
  }

  void add_text(std::string_view text, bool quoted) {
    if (!text.empty() || quoted) word.push_back({false, quoted, text});
  }
  std::string_view keep(std::string text) {
    script_.texts.push_back(std::move(text));
    return script_.texts.back();
  }

  void read_word() {
    word.clear();
    plain = true;
    while (at_ < text_.size() && !ends_word(text_[at_])) {
      const char c = text_[at_];
      if (c == '\'') {
        plain = false;
        read_single();
      } else if (c == '"') {
        plain = false;
        read_double();
      } else if (c == '$') {
        plain = false;
        read_variable(false);
      } else if (c == '\\') {
        plain = false;
        step();
        if (at_ >= text_.size()) break;
        if (text_[at_] != '\n') add_text(text_.substr(at_, 1), true);
        step();
      } else {
        read_plain();
      }
    }
    plain = plain && word.size() == 1;
  }

  void read_plain() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && !ends_word(text_[at_]) && text_[at_] != '\'' && text_[at_] != '"' &&
           text_[at_] != '$' && text_[at_] != '\\')
      ++at_;
    add_text(text_.substr(begin, at_ - begin), false);
  }

  void read_single() {
    step();
    const std::size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != '\'') step();
    add_text(text_.substr(begin, at_ - begin), true);
    close_quote();
  }

  void close_quote() {
    if (at_ < text_.size()) {
      step();
    } else {
      script_.cut = true;
      script_.notes.push_back({line, "a quotation is not closed"});
    }
  }

  void read_double() {
    step();
    std::string changed;  // only needed where a backslash was taken away
    std::size_t begin = at_;
    bool any = false;
    const auto flush = [&] {
      const std::string_view rest = text_.substr(begin, at_ - begin);
      if (changed.empty()) {
        if (!rest.empty()) add_text(rest, true), any = true;
      } else {
        changed.append(rest);
        add_text(keep(std::move(changed)), true);
        changed.clear();
        any = true;
      }
    };
    while (at_ < text_.size() && text_[at_] != '"') {
      if (text_[at_] == '$') {
        flush();
        read_variable(true);
        any = true;
        begin = at_;
      } else if (text_[at_] == '\\' && at_ + 1 < text_.size()) {
        const char escaped = text_[at_ + 1];
        const bool drop = escaped == '$' || escaped == '"' || escaped == '\\' || escaped == '\n';
        changed.append(text_.substr(begin, at_ - begin));
        if (!drop) changed += '\\';
        step();
        if (escaped != '\n') changed += escaped;
        step();
        begin = at_;
      } else {
        step();
      }
    }
    flush();
    if (!any) add_text({}, true);
    close_quote();
  }

  void read_variable(bool quoted) {
    const std::size_t dollar = at_;
    step();
    if (at_ < text_.size() && text_[at_] == '{') {
      const std::size_t close = text_.find_first_of("}\n", at_);
      if (close != std::string_view::npos && text_[close] == '}') {
        word.push_back({true, quoted, text_.substr(at_ + 1, close - at_ - 1)});
        at_ = close + 1;
        return;
      }
    } else if (at_ < text_.size() && is_name(text_[at_], true)) {
      const std::size_t begin = at_;
      while (at_ < text_.size() && is_name(text_[at_], false)) ++at_;
      word.push_back({true, quoted, text_.substr(begin, at_ - begin)});
      return;
    } else if (at_ < text_.size() && (std::string_view("@*#?").find(text_[at_]) != std::string_view::npos ||
                                      (text_[at_] >= '0' && text_[at_] <= '9'))) {
      word.push_back({true, quoted, text_.substr(at_, 1)});
      ++at_;
      return;
    } else if (!quoted && at_ < text_.size() && (text_[at_] == '"' || text_[at_] == '\'')) {
      return;  // $"…" and $'…' are texts to translate
    }
    add_text(text_.substr(dollar, 1), quoted);
  }

  std::string_view text_;
  Script& script_;
  std::size_t at_ = 0;
  std::uint32_t line_ = 1;
};

constexpr std::array<std::string_view, 11> kReserved = {"then", "elif", "else",  "fi",    "do",      "done",
                                                        "if",   "for",  "while", "until", "function"};

class Parser {
 public:
  explicit Parser(Script& script) : script_(script), lexer_(*script.source, script) { lexer_.next(); }

  Block parse() {
    Block block = parse_block();
    while (lexer_.kind != TokenKind::End) {
      note("'" + std::string(closer()) + "' closes nothing");
      lexer_.next();
      Block rest = parse_block();
      std::ranges::move(rest, std::back_inserter(block));
    }
    return block;
  }

 private:
  [[nodiscard]] std::string_view closer() const {
    return lexer_.kind == TokenKind::Close ? std::string_view("}") : lexer_.word.front().text;
  }
  void note(std::string text) {
    if (script_.notes.size() < 100) script_.notes.push_back({lexer_.line, std::move(text)});
  }
  [[nodiscard]] std::string_view reserved() const {
    if (lexer_.kind != TokenKind::Word || !lexer_.plain) return {};
    const std::string_view text = lexer_.word.front().text;
    return std::ranges::find(kReserved, text) != kReserved.end() ? text : std::string_view();
  }

  // Ends before the first thing that closes: } or a word such as fi. Whoever opened looks at which it is.
  Block parse_block() {
    Block block;
    while (lexer_.kind != TokenKind::End) {
      if (lexer_.kind == TokenKind::Separator) {
        lexer_.next();
        continue;
      }
      if (lexer_.kind == TokenKind::Other) {
        note("an operator that GRUB does not have");
        lexer_.next();
        continue;
      }
      if (lexer_.kind == TokenKind::Open) {
        note("'{' without a command");
        lexer_.next();
        continue;
      }
      if (lexer_.kind == TokenKind::Close) return block;
      const std::string_view word = reserved();
      if (!word.empty() && word != "if" && word != "for" && word != "while" && word != "until" && word != "function")
        return block;
      if (depth_ >= kMaxDepth) {
        note("too deeply nested");
        while (lexer_.kind != TokenKind::End) lexer_.next();
        script_.cut = true;
        return block;
      }
      ++depth_;
      block.push_back(parse_statement(word));
      --depth_;
    }
    return block;
  }

  Statement parse_statement(std::string_view word) {
    Statement statement;
    statement.line = lexer_.line;
    if (word == "if") {
      parse_if(statement);
    } else if (word == "while" || word == "until") {
      statement.kind = word == "while" ? Statement::Kind::While : Statement::Kind::Until;
      lexer_.next();
      Branch branch;
      branch.condition = parse_block();
      branch.body = parse_do();
      statement.branches.push_back(std::move(branch));
    } else if (word == "for") {
      statement.kind = Statement::Kind::For;
      lexer_.next();
      take_words(statement);
      if (statement.words.size() > 1 && statement.words[1].size() == 1 && statement.words[1].front().text == "in")
        statement.words.erase(statement.words.begin() + 1);
      while (lexer_.kind == TokenKind::Separator) lexer_.next();
      statement.branches.push_back({{}, parse_do()});
    } else if (word == "function") {
      statement.kind = Statement::Kind::Function;
      lexer_.next();
      if (lexer_.kind == TokenKind::Word) {
        statement.words.push_back(lexer_.word);
        lexer_.next();
      }
      while (lexer_.kind == TokenKind::Separator) lexer_.next();
      if (lexer_.kind == TokenKind::Open) statement.branches.push_back({{}, parse_braces()});
    } else {
      parse_command(statement);
    }
    return statement;
  }

  void take_words(Statement& statement) {
    while (lexer_.kind == TokenKind::Word) {
      statement.words.push_back(std::move(lexer_.word));
      lexer_.next();
    }
  }

  void parse_command(Statement& statement) {
    if (lexer_.plain && lexer_.word.front().text == "!") {
      statement.negated = true;
      lexer_.next();
    }
    take_words(statement);
    if (lexer_.kind != TokenKind::Open) return;
    statement.has_block = true;
    statement.branches.push_back({{}, parse_braces()});
  }

  Block parse_braces() {
    lexer_.next();
    Block block = parse_block();
    while (lexer_.kind == TokenKind::Word) {  // a fi or done too many
      note("'" + std::string(closer()) + "' closes nothing");
      lexer_.next();
      Block rest = parse_block();
      std::ranges::move(rest, std::back_inserter(block));
    }
    if (lexer_.kind == TokenKind::Close) {
      lexer_.next();
    } else {
      missing("}");
    }
    return block;
  }

  void missing(std::string_view what) {
    if (lexer_.kind == TokenKind::End) script_.cut = true;
    note("'" + std::string(what) + "' is missing");
  }

  bool take(std::string_view word) {
    if (reserved() != word) {
      missing(word);
      return false;
    }
    lexer_.next();
    return true;
  }

  Block parse_do() {
    if (!take("do")) return {};
    Block block = parse_block();
    take("done");
    return block;
  }

  void parse_if(Statement& statement) {
    statement.kind = Statement::Kind::If;
    std::string_view word = "if";
    while (word == "if" || word == "elif") {
      lexer_.next();
      Branch branch;
      branch.condition = parse_block();
      if (!take("then")) return;
      branch.body = parse_block();
      statement.branches.push_back(std::move(branch));
      word = reserved();
    }
    if (word == "else") {
      lexer_.next();
      statement.branches.push_back({{}, parse_block()});
    }
    take("fi");
  }

  Script& script_;
  Lexer lexer_;
  int depth_ = 0;
};

}  // namespace

Script parse_script(std::string text) {
  Script script;
  std::erase(text, '\0');
  script.source = std::make_unique<const std::string>(std::move(text));
  script.block = Parser(script).parse();
  return script;
}

}  // namespace gpuhealth::grub
