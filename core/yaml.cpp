// SPDX-License-Identifier: Apache-2.0
#include "core/yaml.hpp"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

namespace gpuhealth::yaml {
namespace {

constexpr std::size_t kMostShown = 60;

Place place_of(const YAML::Mark& mark) {
  return mark.is_null() ? Place{} : Place{mark.line + 1, mark.column + 1};
}

Node node_of(Kind kind, const YAML::Mark& mark) {
  Node out;
  out.kind = kind;
  out.at = place_of(mark);
  return out;
}

// Ends the parse; yaml-cpp passes it on.
struct Stop {
  Mistake mistake;
};

std::size_t count(const Node& node) {
  std::size_t n = 1;
  for (const Node& key : node.keys) n += count(key);
  for (const Node& item : node.items) n += count(item);
  return n;
}

int depth_of(const Node& node) {
  int deepest = 0;
  for (const Node& item : node.items) deepest = std::max(deepest, depth_of(item));
  for (const Node& key : node.keys) deepest = std::max(deepest, depth_of(key));
  return deepest + 1;
}

class Builder final : public YAML::EventHandler {
 public:
  explicit Builder(const Limits& limits) : limits_(limits) {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (seen_) throw Stop{{place_of(mark), "holds more than one document; keep one", "", ""}};
    seen_ = true;
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { take(node_of(Kind::Null, mark), anchor); }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    if (tag.size() > 1)
      throw Stop{{place_of(mark), "a tag says what kind of value this is; write the value alone", tag, ""}};
    take({Kind::Scalar, place_of(mark), value, tag == "!", {}, {}}, anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (open_anchors_.contains(anchor)) throw Stop{{place_of(mark), "an alias refers to what it stands in", "", ""}};
    const auto known = anchors_.find(anchor);
    if (known == anchors_.end()) throw Stop{{place_of(mark), "an alias refers to nothing", "", ""}};
    if (static_cast<int>(stack_.size()) + depth_of(known->second) > limits_.depth)
      throw Stop{{place_of(mark), "is nested too deep", "", ""}};
    spend(count(known->second), place_of(mark));
    place(Node(known->second));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    open(node_of(Kind::List, mark), anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    open(node_of(Kind::Map, mark), anchor);
  }
  void OnMapEnd() override { close(); }

  Node root;

 private:
  struct Open {
    Node node;
    YAML::anchor_t anchor = 0;
  };
  void spend(std::size_t nodes, Place at) {
    if (nodes > limits_.nodes - used_) throw Stop{{at, "holds too many values; no such file does", "", ""}};
    used_ += nodes;
  }
  void take(Node node, YAML::anchor_t anchor) {
    spend(1, node.at);
    if (anchor != 0) anchors_[anchor] = node;
    place(std::move(node));
  }
  void open(Node node, YAML::anchor_t anchor) {
    spend(1, node.at);
    if (static_cast<int>(stack_.size()) >= limits_.depth) throw Stop{{node.at, "is nested too deep", "", ""}};
    if (anchor != 0) open_anchors_.insert(anchor);
    stack_.push_back({std::move(node), anchor});
  }
  void close() {
    Open done = std::move(stack_.back());
    stack_.pop_back();
    if (done.anchor != 0) {
      open_anchors_.erase(done.anchor);
      spend(count(done.node), done.node.at);  // the copy that aliases are made from
      anchors_[done.anchor] = done.node;
    }
    place(std::move(done.node));
  }
  void place(Node node) {
    if (stack_.empty()) {
      root = std::move(node);
      return;
    }
    Node& parent = stack_.back().node;
    if (parent.kind == Kind::Map && parent.keys.size() == parent.items.size()) {
      parent.keys.push_back(std::move(node));
    } else {
      parent.items.push_back(std::move(node));
    }
  }

  const Limits& limits_;
  std::size_t used_ = 0;
  bool seen_ = false;
  std::vector<Open> stack_;
  std::map<YAML::anchor_t, Node> anchors_;
  std::set<YAML::anchor_t> open_anchors_;
};

std::string printable(std::string_view text) {
  std::string out(text);
  std::ranges::replace_if(out, [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
  return out;
}

}  // namespace

Parsed parse(std::string_view text, const Limits& limits) {
  Parsed out;
  if (text.size() > limits.bytes) {
    out.mistakes.push_back({{}, "is larger than " + std::to_string(limits.bytes >> 10U) + " KiB", "", ""});
    return out;
  }
  Builder builder(limits);
  try {
    std::istringstream in{std::string(text)};
    YAML::Parser parser(in);
    // The second call throws where a second document begins; yaml-cpp 0.7 finds some without end.
    if (parser.HandleNextDocument(builder)) (void)parser.HandleNextDocument(builder);
    out.root = std::move(builder.root);
  } catch (const Stop& stop) {
    out.mistakes.push_back(stop.mistake);
  } catch (const YAML::Exception& error) {
    out.mistakes.push_back({place_of(error.mark), "is not YAML: " + printable(error.msg), "", ""});
  }
  return out;
}

std::string shown(std::string_view text) {
  const bool cut = text.size() > kMostShown;
  auto end = std::min(text.size(), kMostShown);
  while (cut && end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80U) --end;  // not within a letter
  return "\"" + printable(text.substr(0, end)) + (cut ? "…\"" : "\"");
}

std::string line_of(std::string_view file, const Mistake& mistake) {
  std::string out = printable(file);
  if (mistake.at.line > 0) out += ":" + std::to_string(mistake.at.line) + ":" + std::to_string(mistake.at.column);
  out += ": " + mistake.text;
  if (!mistake.hint.empty()) out += "; " + mistake.hint;
  return out;
}

}  // namespace gpuhealth::yaml
