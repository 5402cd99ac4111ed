// SPDX-License-Identifier: Apache-2.0
// GRUB's test command (commands/test.c), with a third answer where an operand is unknown.
#include <array>
#include <charconv>
#include <cstddef>

#include "grub/interpreter.hpp"

namespace gpuhealth::grub {
namespace {

Tri from(bool value) {
  return value ? Tri::Yes : Tri::No;
}
Tri negate(Tri value) {
  return value == Tri::Unknown ? value : from(value == Tri::No);
}
Tri both(Tri a, Tri b) {
  if (a == Tri::No || b == Tri::No) return Tri::No;
  return a == Tri::Yes && b == Tri::Yes ? Tri::Yes : Tri::Unknown;
}
Tri either(Tri a, Tri b) {
  return negate(both(negate(a), negate(b)));
}

long number(std::string_view text) {
  long value = 0;
  if (text.starts_with('+')) text.remove_prefix(1);
  (void)std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

struct Operator {
  std::string_view name;
  bool numeric;
  bool (*holds)(int order);
};
constexpr std::array<Operator, 13> kOperators = {{
    {"=", false, [](int o) { return o == 0; }},
    {"==", false, [](int o) { return o == 0; }},
    {"!=", false, [](int o) { return o != 0; }},
    {"<", false, [](int o) { return o < 0; }},
    {"<=", false, [](int o) { return o <= 0; }},
    {">", false, [](int o) { return o > 0; }},
    {">=", false, [](int o) { return o >= 0; }},
    {"-eq", true, [](int o) { return o == 0; }},
    {"-ne", true, [](int o) { return o != 0; }},
    {"-lt", true, [](int o) { return o < 0; }},
    {"-le", true, [](int o) { return o <= 0; }},
    {"-gt", true, [](int o) { return o > 0; }},
    {"-ge", true, [](int o) { return o >= 0; }},
}};

const Operator* find_operator(const Value& value) {
  for (const Operator& op : kOperators) {
    if (value.known && op.name == value.text) return &op;
  }
  return nullptr;
}

class Test {
 public:
  Test(const Arguments& arguments, const std::function<Tri(const Value&, bool)>& exists)
      : arguments_(arguments), exists_(exists) {}

  Tri any() {
    Tri out = all();
    while (take("-o")) out = either(out, all());
    return out;
  }
  [[nodiscard]] bool done() const { return at_ >= arguments_.size(); }

 private:
  bool take(std::string_view word) {
    if (done() || arguments_[at_].text != word) return false;
    ++at_;
    return true;
  }
  Tri all() {
    Tri out = primary();
    while (take("-a")) out = both(out, primary());
    return out;
  }
  [[nodiscard]] std::size_t left() const { return arguments_.size() - at_; }

  Tri primary() {
    if (done()) return Tri::No;
    if (left() >= 3 || (left() >= 2 && find_operator(arguments_[at_ + 1]) != nullptr)) {
      if (const Operator* op = find_operator(arguments_[at_ + 1]); op != nullptr && left() >= 3) return binary(*op);
    }
    if (depth_ > 32) return Tri::Unknown;
    if (take("!")) {
      ++depth_;
      const Tri out = negate(primary());
      --depth_;
      return out;
    }
    if (take("(")) {
      ++depth_;
      const Tri out = any();
      --depth_;
      (void)take(")");
      return out;
    }
    return unary();
  }

  Tri binary(const Operator& op) {
    const Value& a = arguments_[at_];
    const Value& b = arguments_[at_ + 2];
    at_ += 3;
    if (!a.known || !b.known) return Tri::Unknown;
    if (!op.numeric) return from(op.holds(a.text.compare(b.text)));
    const long x = number(a.text);
    const long y = number(b.text);
    return from(op.holds(x < y ? -1 : x > y ? 1 : 0));
  }

  Tri unary() {
    const Value& first = arguments_[at_++];
    if (done() || !first.known) return first.known ? from(!first.text.empty()) : Tri::Unknown;
    if (first.text == "-n" || first.text == "-z") {
      const Value& value = arguments_[at_++];
      if (!value.known) return Tri::Unknown;
      return from(value.text.empty() == (first.text == "-z"));
    }
    if (first.text == "-e" || first.text == "-f" || first.text == "-s" || first.text == "-d")
      return exists_(arguments_[at_++], first.text == "-s");
    return from(!first.text.empty());
  }

  const Arguments& arguments_;
  const std::function<Tri(const Value&, bool)>& exists_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

Tri evaluate_test(const Arguments& arguments, const std::function<Tri(const Value& path, bool not_empty)>& exists) {
  Test test(arguments, exists);
  const Tri out = test.any();
  return test.done() ? out : Tri::Unknown;
}

}  // namespace gpuhealth::grub
