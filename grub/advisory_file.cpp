// SPDX-License-Identifier: Apache-2.0
// Reads one file of advisories; each mistake is named with its place.
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <sstream>

#include "grub/advisories.hpp"

namespace gpuhealth::grub {
namespace {

constexpr std::size_t kMaxMistakes = 50;

// yaml-cpp calls itself for each level, and an alias can stand for a node that holds it: neither is allowed to come.
struct Shape : YAML::EventHandler {
  int depth = 0;
  bool too_deep = false;
  bool alias = false;
  void enter() { too_deep = too_deep || ++depth > 12; }
  void OnDocumentStart(const YAML::Mark& /*mark*/) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& /*mark*/, YAML::anchor_t /*anchor*/) override {}
  void OnAlias(const YAML::Mark& /*mark*/, YAML::anchor_t /*anchor*/) override { alias = true; }
  void OnScalar(const YAML::Mark& /*mark*/, const std::string& /*tag*/, YAML::anchor_t /*anchor*/,
                const std::string& /*value*/) override {}
  void OnSequenceStart(const YAML::Mark& /*mark*/, const std::string& /*tag*/, YAML::anchor_t /*anchor*/,
                       YAML::EmitterStyle::value /*style*/) override {
    enter();
  }
  void OnSequenceEnd() override { --depth; }
  void OnMapStart(const YAML::Mark& /*mark*/, const std::string& /*tag*/, YAML::anchor_t /*anchor*/,
                  YAML::EmitterStyle::value /*style*/) override {
    enter();
  }
  void OnMapEnd() override { --depth; }
};

class AdvisoryFile {
 public:
  AdvisoryFile(std::string_view file, std::vector<std::string>& mistakes) : file_(file), mistakes_(mistakes) {}

  std::vector<Advisory> read(const std::string& text) {
    try {
      std::istringstream in(text);
      YAML::Parser parser(in);
      Shape shape;
      if (!parser.HandleNextDocument(shape)) return say(YAML::Mark::null_mark(), "is empty"), std::vector<Advisory>();
      if (shape.too_deep || shape.alias)
        return say(YAML::Mark::null_mark(), "is nested too deep or has aliases"), std::vector<Advisory>();
      return document(YAML::Load(text));
    } catch (const YAML::Exception& e) {
      say(e.mark, "is not YAML: " + e.msg);
    }
    return {};
  }

 private:
  void say(const YAML::Mark& mark, const std::string& what) {
    if (mistakes_.size() >= kMaxMistakes) return;
    std::string text = file_;
    if (!mark.is_null()) text += ":" + std::to_string(mark.line + 1) + ":" + std::to_string(mark.column + 1);
    text += ": " + what;
    std::ranges::replace_if(text, [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
    mistakes_.push_back(std::move(text));
  }

  // Every key of a map with its value, unknown and repeated ones refused.
  template <class Take>
  void each(const YAML::Node& map, std::string_view what, Take take) {
    if (!map.IsMap()) return say(map.Mark(), std::string(what) + " must be a map");
    std::vector<std::string> seen;
    for (const auto& item : map) {
      if (!item.first.IsScalar()) {
        say(item.first.Mark(), "a key must be a word");
        continue;
      }
      const std::string& key = item.first.Scalar();
      if (std::ranges::find(seen, key) != seen.end()) say(item.first.Mark(), "the key " + key + " stands here twice");
      seen.push_back(key);
      if (!take(key, item.second)) say(item.first.Mark(), std::string(what) + " has no key " + key);
    }
  }

  bool text(const YAML::Node& node, std::string& out) {
    if (node.IsScalar() && !node.Scalar().empty()) {
      out = node.Scalar();
    } else {
      say(node.Mark(), "must be a text");
    }
    return true;
  }
  bool texts(const YAML::Node& node, std::vector<std::string>& out) {
    if (!node.IsSequence()) {
      say(node.Mark(), "must be a list");
      return true;
    }
    for (const auto& item : node) {
      std::string one;
      (void)text(item, one);
      if (!one.empty()) out.push_back(std::move(one));
    }
    return true;
  }
  void one_of(const YAML::Node& node, std::string_view key, const std::string& value,
              std::initializer_list<std::string_view> allowed) {
    if (std::ranges::find(allowed, value) != allowed.end()) return;
    std::string list;
    for (const std::string_view word : allowed) list += (list.empty() ? "" : ", ") + std::string(word);
    say(node.Mark(), std::string(key) + " must be one of " + list);
  }

  std::vector<Advisory> document(const YAML::Node& root) {
    std::vector<Advisory> out;
    each(root, "the file", [&](const std::string& key, const YAML::Node& value) {
      if (key == "schema") {
        if (!value.IsScalar() || value.Scalar() != "1")
          say(value.Mark(), "schema must be 1: this file is for another version");
        return true;
      }
      if (key != "advisories") return false;
      if (!value.IsSequence()) {
        say(value.Mark(), "advisories must be a list");
        return true;
      }
      for (const auto& item : value) out.push_back(advisory(item));
      return true;
    });
    return out;
  }

  Advisory advisory(const YAML::Node& node) {
    Advisory out;
    out.file = file_;
    each(node, "an advisory", [&](const std::string& key, const YAML::Node& value) {
      if (key == "id") return text(value, out.id);
      if (key == "title") return text(value, out.title);
      if (key == "severity") return text(value, out.severity);
      if (key == "confidence") return text(value, out.confidence);
      if (key == "vendor") return text(value, out.vendor);
      if (key == "gfx") return texts(value, out.gfx);
      if (key == "gpu_note") return text(value, out.gpu_note);
      if (key == "symptom") return text(value, out.symptom);
      if (key == "canary") return text(value, out.canary);
      if (key == "signs") return texts(value, out.signs);
      if (key == "workarounds") return texts(value, out.workarounds);
      if (key == "remedies") return texts(value, out.remedies);
      if (key == "introduced_by") return text(value, out.introduced_by);
      if (key == "fixed_by") return text(value, out.fixed_by);
      if (key == "links") return texts(value, out.links);
      if (key == "note") return text(value, out.note);
      if (key != "affected") return false;
      if (!value.IsSequence()) say(value.Mark(), "affected must be a list");
      if (value.IsSequence())
        for (const auto& item : value) out.affected.push_back(range(item));
      return true;
    });
    for (const auto& [name, value] :
         {std::pair{"id", &out.id}, std::pair{"title", &out.title}, std::pair{"symptom", &out.symptom}})
      if (value->empty()) say(node.Mark(), std::string("an advisory needs ") + name);
    one_of(node, "severity", out.severity, {"critical", "high", "medium", "low"});
    one_of(node, "confidence", out.confidence, {"confirmed", "several"});
    one_of(node, "vendor", out.vendor, {"amd", "nvidia", "intel"});
    if (out.affected.empty()) say(node.Mark(), "an advisory needs affected: nothing would ever match it");
    if (out.links.empty()) say(node.Mark(), "an advisory needs links: nobody could check it");
    return out;
  }

  AdvisoryRange range(const YAML::Node& node) {
    AdvisoryRange out;
    each(node, "a range", [&](const std::string& key, const YAML::Node& value) {
      if (key == "component") return text(value, out.component);
      if (key == "distribution") return text(value, out.distribution);
      if (key == "releases") return texts(value, out.releases);
      if (key == "stream") return text(value, out.stream);
      if (key == "series") return text(value, out.series);
      if (key == "first_bad") return text(value, out.first_bad);
      if (key == "first_fixed") return text(value, out.first_fixed);
      if (key == "last_bad") return text(value, out.last_bad);
      if (key == "inferred") return texts(value, out.inferred);
      if (key == "note") return text(value, out.note);
      if (key != "good") return false;
      out.good = value.IsScalar() && value.Scalar() == "true";
      if (!out.good) say(value.Mark(), "good can only be true");
      return true;
    });
    one_of(node, "component", out.component, {"kernel", "module", "firmware", "rocm", "driver"});
    if (out.component == "kernel" && out.distribution.empty())
      say(node.Mark(), "a range of kernels needs distribution (or upstream): versions mean nothing without it");
    const bool bounded = !out.first_bad.empty() || !out.first_fixed.empty() || !out.last_bad.empty();
    if (!out.good && !bounded && out.series.empty())
      say(node.Mark(), "a range needs first_bad, first_fixed, last_bad, series or good");
    if (out.good && bounded) say(node.Mark(), "a line that is good has no bounds");
    for (const std::string& bound : out.inferred)
      one_of(node, "inferred", bound, {"first_bad", "first_fixed", "last_bad", "distribution"});
    return out;
  }

  std::string file_;
  std::vector<std::string>& mistakes_;
};

}  // namespace

void read_advisories(AdvisorySet& set, std::string_view file, const std::string& text) {
  const std::size_t before = set.mistakes.size();
  std::vector<Advisory> read = AdvisoryFile(file, set.mistakes).read(text);
  if (set.mistakes.size() != before) return;
  for (Advisory& advisory : read) {
    const bool twice = std::ranges::any_of(set.advisories, [&](const Advisory& a) { return a.id == advisory.id; });
    if (twice) {
      set.mistakes.push_back(std::string(file) + ": the advisory " + advisory.id + " is there twice");
    } else {
      set.advisories.push_back(std::move(advisory));
    }
  }
}

}  // namespace gpuhealth::grub
