// SPDX-License-Identifier: Apache-2.0
#include "grub/settings.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace gpuhealth::grub {
namespace {

bool name_char(char c, bool first) {
  return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (!first && c >= '0' && c <= '9');
}
std::size_t name_length(std::string_view text) {
  std::size_t n = 0;
  while (n < text.size() && name_char(text[n], n == 0)) ++n;
  return n;
}

struct ShellWord {
  std::string text;
  std::string_view name;  // of NAME=…, when the word is an assignment
  bool known = true;
  bool plain = true;  // nothing of it was quoted or expanded
};

class Reader {
 public:
  Reader(Settings& settings, std::string_view file, std::string_view text)
      : settings_(settings), file_(file), text_(text) {}

  void run() {
    while (at_ < text_.size()) run_line();
  }

 private:
  void warn(const std::string& what) {
    if (settings_.warnings.size() < 100)
      settings_.warnings.push_back(std::string(file_) + ":" + std::to_string(start_) + ": " + what);
  }

  // --- text

  [[nodiscard]] bool more() const { return at_ < text_.size(); }
  [[nodiscard]] char now() const { return text_[at_]; }
  void step() {
    if (now() == '\n') ++line_;
    ++at_;
  }
  void skip_blanks() {
    while (more()) {
      if (now() == ' ' || now() == '\t' || now() == '\r') {
        step();
      } else if (now() == '\\' && at_ + 1 < text_.size() && text_[at_ + 1] == '\n') {
        step();
        step();
      } else {
        return;
      }
    }
  }
  void skip_comment() {
    while (more() && now() != '\n') step();
  }

  // Behind the closing character, quotes and nested brackets heeded.
  void skip_to(char close) {
    int depth = 1;
    const char open = close == ')' ? '(' : close == '}' ? '{' : '\0';
    while (more()) {
      const char c = now();
      step();
      if (c == '\\' && more()) {
        step();
      } else if (c == '\'' && close != '\'') {
        while (more() && now() != '\'') step();
        if (more()) step();
      } else if (open != '\0' && c == open) {
        ++depth;
      } else if (c == close && --depth == 0) {
        return;
      }
    }
  }

  // ${NAME}, ${NAME:-word} and the like, behind "${".
  void expand_braces(ShellWord& word) {
    const std::size_t begin = at_;
    skip_to('}');
    std::string_view inner = text_.substr(begin, at_ - begin);
    if (inner.ends_with('}')) inner.remove_suffix(1);
    const std::size_t n = name_length(inner);
    const std::string_view name = inner.substr(0, n);
    std::string_view rest = inner.substr(n);
    if (rest.empty()) return add_value(word, name);
    const bool colon = rest.starts_with(':');
    if (colon) rest.remove_prefix(1);
    const Setting* set = settings_.find(name);
    const bool plain = rest.find_first_of("$`'\"\\") == std::string_view::npos;
    if (n == 0 || rest.empty() || (rest.front() != '-' && rest.front() != '=') || !plain || (set && !set->value)) {
      word.known = false;
      return;
    }
    if (set != nullptr && (!colon || !set->value->empty())) {
      word.text += *set->value;
    } else {
      word.text += rest.substr(1);
    }
  }

  void add_value(ShellWord& word, std::string_view name) {
    // What these files do not set is empty: grub-mkconfig's own environment is.
    const Setting* set = settings_.find(name);
    if (name.empty() || (set != nullptr && !set->value)) {
      word.known = false;
    } else if (set != nullptr) {
      word.text += *set->value;
    }
  }

  void expand_dollar(ShellWord& word) {
    step();
    word.plain = false;
    if (more() && now() == '(') {
      step();
      skip_to(')');
      word.known = false;
    } else if (more() && now() == '{') {
      step();
      expand_braces(word);
    } else if (const std::size_t n = name_length(text_.substr(at_)); n > 0) {
      add_value(word, text_.substr(at_, n));
      at_ += n;
    } else if (more() && std::string_view("0123456789?$#@*!-").find(now()) != std::string_view::npos) {
      step();
      word.known = false;
    } else {
      word.text += '$';
    }
  }

  void read_double(ShellWord& word) {
    step();
    word.plain = false;
    while (more() && now() != '"') {
      if (now() == '$') {
        expand_dollar(word);
      } else if (now() == '`') {
        step();
        skip_to('`');
        word.known = false;
      } else if (now() == '\\' && at_ + 1 < text_.size()) {
        step();
        if (std::string_view("$`\"\\\n").find(now()) == std::string_view::npos) word.text += '\\';
        if (now() != '\n') word.text += now();
        step();
      } else {
        word.text += now();
        step();
      }
    }
    close_quotation(word);
  }

  void close_quotation(ShellWord& word) {
    if (more()) return step();
    warn("a quotation is not closed: the shell stops here");
    word.known = false;
  }

  void read_single(ShellWord& word) {
    step();
    word.plain = false;
    while (more() && now() != '\'') {
      word.text += now();
      step();
    }
    close_quotation(word);
  }

  ShellWord read_word() {
    ShellWord word;
    const std::size_t begin = at_;
    const std::size_t n = name_length(text_.substr(at_));
    if (n > 0 && at_ + n < text_.size() && text_[at_ + n] == '=') {
      word.name = text_.substr(begin, n);
      at_ += n + 1;
    }
    while (more() && std::string_view(" \t\r\n;|&<>()").find(now()) == std::string_view::npos) {
      switch (now()) {
        case '\'':
          read_single(word);
          break;
        case '"':
          read_double(word);
          break;
        case '$':
          expand_dollar(word);
          break;
        case '`':
          step();
          word.plain = false;
          skip_to('`');
          word.known = false;
          break;
        case '\\':
          step();
          word.plain = false;
          if (more() && now() != '\n') word.text += now();
          if (more()) step();
          break;
        default:
          word.text += now();
          step();
      }
    }
    return word;
  }

  // --- commands

  void run_line() {
    skip_blanks();
    if (!more()) return;
    if (now() == '#') return skip_comment();
    if (now() == '\n' || now() == ';' || now() == '(' || now() == ')') return step();
    if (now() == '|' || now() == '&') {
      // The command behind && or || runs or not.
      const bool chain = at_ + 1 < text_.size() && text_[at_ + 1] == now();
      step();
      if (chain) step();
      chained_ = chain;
      return;
    }
    start_ = line_;
    std::vector<ShellWord> words;
    bool redirected = false;
    while (more() && now() != '\n' && now() != ';' && now() != '|' && now() != '&' && now() != '(' && now() != ')') {
      if (now() == '#') {
        skip_comment();
        break;
      }
      if (now() == '<' || now() == '>') {
        redirected = true;
        while (more() && (now() == '<' || now() == '>' || now() == '&')) step();
        skip_blanks();
        if (more() && now() != '\n') (void)read_word();
      } else {
        const bool number = redirected;
        words.push_back(read_word());
        redirected = number;
      }
      skip_blanks();
    }
    run_words(words, redirected);
    chained_ = false;
  }

  void run_words(const std::vector<ShellWord>& words, bool redirected) {
    std::size_t first = 0;
    while (first < words.size() && !words[first].name.empty()) ++first;
    if (first == words.size()) {
      for (const ShellWord& word : words) assign(word);
      if (redirected && !words.empty())
        warn("an unquoted '<' or '>' is a redirection: " + std::string(words.back().name) + " is '" +
             words.back().text + "' without what follows it");
      return;
    }
    if (first > 0) {
      warn("'" + words[first].text + "' is run as a command; " + std::string(words[0].name) +
           " is set for that command only");
    }
    run_command(words, first);
  }

  void run_command(const std::vector<ShellWord>& words, std::size_t first) {
    static constexpr std::array<std::string_view, 4> kOpen = {"if", "case", "for", "while"};
    static constexpr std::array<std::string_view, 3> kClose = {"fi", "esac", "done"};
    static constexpr std::array<std::string_view, 5> kBetween = {"then", "else", "elif", "do", "{"};
    const std::string& name = words[first].text;
    const std::vector<ShellWord> rest(words.begin() + static_cast<std::ptrdiff_t>(first) + 1, words.end());
    if (words[first].plain && std::ranges::find(kOpen, name) != kOpen.end()) {
      ++conditional_;
    } else if (words[first].plain && std::ranges::find(kClose, name) != kClose.end()) {
      if (conditional_ > 0) --conditional_;
    } else if (words[first].plain && std::ranges::find(kBetween, name) != kBetween.end()) {
      if (!rest.empty()) run_words(rest, false);
    } else if (name == "export" || name == "readonly" || name == "local" || name == "declare") {
      for (const ShellWord& word : rest)
        if (!word.name.empty()) assign(word);
    } else if (name == "unset") {
      for (const ShellWord& word : rest) {
        if (conditional_ > 0 || chained_) {
          forget(word.text);
        } else {
          settings_.values.erase(word.text);
        }
      }
    } else if (name == "." || name == "source") {
      warn("reads another file, which is not followed here");
    } else if (const auto plus = name.find("+="); plus != std::string::npos && name_length(name) == plus) {
      warn("'+=' is not known to sh, which runs this line as a command");
    }
  }

  void assign(const ShellWord& word) {
    const bool sure = conditional_ == 0 && !chained_ && word.known;
    Setting setting{sure ? std::optional(word.text) : std::nullopt, std::string(file_), start_};
    settings_.values.insert_or_assign(std::string(word.name), std::move(setting));
  }
  void forget(const std::string& name) {
    settings_.values.insert_or_assign(name, Setting{std::nullopt, std::string(file_), start_});
  }

  Settings& settings_;
  std::string_view file_;
  std::string_view text_;
  std::size_t at_ = 0;
  std::uint32_t line_ = 1;
  std::uint32_t start_ = 1;  // of the command being read
  int conditional_ = 0;      // within if, case or a loop
  bool chained_ = false;     // behind && or ||
};

}  // namespace

const Setting* Settings::find(std::string_view name) const {
  const auto found = values.find(name);
  return found == values.end() ? nullptr : &found->second;
}

std::string Settings::value(std::string_view name) const {
  const Setting* setting = find(name);
  return setting != nullptr && setting->value ? *setting->value : std::string();
}

void read_settings(Settings& settings, std::string_view file, std::string_view text) {
  std::string clean(text);
  std::erase(clean, '\0');
  Reader(settings, file, clean).run();
}

}  // namespace gpuhealth::grub
