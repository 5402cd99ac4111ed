// SPDX-License-Identifier: Apache-2.0
#include "policy/scenario_file.hpp"

#include <algorithm>
#include <array>

#include "policy/keys.hpp"

namespace gpuhealth::policy {
namespace {

constexpr auto kKeys = std::to_array<TestKeyInfo>({
#define TEST_KEY(section, key, required, meaning) {#section, key, required, meaning},
#include "policy/scenario.def"
#undef TEST_KEY
});
constexpr std::size_t kMostEntries = 10'000;
constexpr std::size_t kMostGpus = 64;

std::vector<KeyRow> rows_of(std::string_view section) {
  std::vector<KeyRow> out;
  for (const TestKeyInfo& row : kKeys)
    if (row.section == section) out.push_back({row.key, row.required});
  return out;
}

Condition* open_condition(DeviceState& gpu, ConditionType type) {
  const auto at = std::ranges::find(gpu.conditions, type, &Condition::type);
  return at == gpu.conditions.end() ? nullptr : &*at;
}

void confirm(Snapshot& s, std::size_t gpu, WallTime now, Condition condition) {
  DeviceState& device = s.devices.at(gpu);
  condition.device = device.id;
  condition.since = condition.last_seen = now;
  condition.id = condition_id(condition.type, device.id, now);
  condition.state = ConditionState::Confirmed;
  if (Condition* known = open_condition(device, condition.type)) {
    condition.id = known->id, condition.since = known->since;
    *known = std::move(condition);
    return;
  }
  s.events.push_back({now, "condition.confirmed", device.id, condition.type});
  device.conditions.push_back(std::move(condition));
}

void clear(Snapshot& s, std::size_t gpu, WallTime now, ConditionType type) {
  DeviceState& device = s.devices.at(gpu);
  if (std::erase_if(device.conditions, [&](const Condition& c) { return c.type == type; }) > 0)
    s.events.push_back({now, "condition.cleared", device.id, type});
}

void set_reading(Snapshot& s, std::size_t gpu, ReadingId id, std::optional<double> value) {
  auto& readings = s.devices.at(gpu).readings;
  std::erase_if(readings, [&](const Reading& r) { return r.id == id; });
  if (value) readings.push_back({id, ReadingStatus::Valid, 0, *value});
}

void boot(Snapshot& s, WallTime now) {
  s.machine.boot_id = "boot at " + text_of(now);
  for (DeviceState& device : s.devices)
    std::erase_if(device.conditions, [](const Condition& c) { return c.type != ConditionType::GpuMissing; });
}

class Reader {
 public:
  Reader(TestFile& out, Mistakes& mistakes) : out_(out), mistakes_(mistakes) {}

  void read(const yaml::Node& root) {
    const Fields fields = section(root, "a policy test", "test");
    fixed(fields, "apiVersion", "gpuhealth/v1");
    fixed(fields, "kind", "PolicyTest");
    if (const auto* node = fields.find("name")) out_.name = read_text(*node, "name", mistakes_).value_or("");
    if (const auto* node = fields.find("policy")) out_.policies = read_texts(*node, "policy", mistakes_);
    if (const auto* node = fields.find("mode"))
      if (const auto at = read_word(*node, "mode", words_of(ValueKind::Mode), mistakes_))
        out_.mode = static_cast<Mode>(*at);
    if (const auto* node = fields.find("start")) {
      const auto time = node->kind == yaml::Kind::Scalar ? parse_date_time(node->text) : std::nullopt;
      if (time) out_.start = *time;
      if (!time) mistakes_.value(*node, "start", "is no time; write 2026-11-30 09:00");
    }
    if (const auto* node = fields.find("step")) {
      out_.step = read_duration(*node, "step", mistakes_);
      if (out_.step && out_.step->count() < 1000) mistakes_.value(*node, "step", "must be 1ms or more");
    }
    if (const auto* node = fields.find("until")) out_.until = read_duration(*node, "until", mistakes_);
    if (const auto* node = fields.find("machine")) machine(*node);
    gpus(fields.find("gpus"));
    if (const auto* node = fields.find("timeline"))
      for (const auto* item : read_list(*node, "timeline", kMostEntries, mistakes_)) entry(*item);
    if (const auto* node = fields.find("expect");
        node != nullptr && (node->kind != yaml::Kind::List || !node->items.empty()))
      for (const auto* item : read_list(*node, "expect", kMostEntries, mistakes_)) expectation(*item);
  }

 private:
  Fields section(const yaml::Node& node, std::string_view what, std::string_view name) {
    return read_map(node, what, rows_of(name), mistakes_);
  }

  void fixed(const Fields& fields, std::string_view key, std::string_view wanted) {
    const auto* node = fields.find(key);
    if (node != nullptr && (node->kind != yaml::Kind::Scalar || node->text != wanted))
      mistakes_.value(*node, key, "is not known", "this program reads " + std::string(wanted));
  }

  void machine(const yaml::Node& node) {
    const Fields fields = section(node, "machine", "machine");
    MachineFacts& m = out_.snapshot.machine;
    for (const auto& [key, text] : {std::pair("host", &m.host),
                                    {"distribution", &m.distribution},
                                    {"version", &m.version},
                                    {"kernel", &m.kernel}})
      if (const auto* value = fields.find(key)) *text = read_text(*value, key, mistakes_).value_or("");
    const auto* labels = fields.find("labels");
    if (labels == nullptr) return;
    if (labels->kind != yaml::Kind::Map) return mistakes_.value(*labels, "labels", "is no map of keys and values");
    for (std::size_t i = 0; i < labels->keys.size(); ++i) m.labels[labels->keys[i].text] = labels->items[i].text;
  }

  void gpus(const yaml::Node* node) {
    auto& devices = out_.snapshot.devices;
    if (node == nullptr) {
      DeviceState gpu;
      gpu.id = "gpu0", gpu.vendor = "amd", gpu.busy = false;
      devices.push_back(std::move(gpu));
      return;
    }
    for (const auto* item : read_list(*node, "gpus", kMostGpus, mistakes_)) {
      const Fields fields = section(*item, "a GPU", "gpu");
      DeviceState gpu;
      gpu.vendor = "amd", gpu.busy = false;
      if (const auto* id = fields.find("id")) gpu.id = read_name(*id, "id", mistakes_).value_or("");
      if (const auto* vendor = fields.find("vendor"))
        if (read_word(*vendor, "vendor", words_of(ValueKind::Vendors), mistakes_)) gpu.vendor = vendor->text;
      if (const auto* gfx = fields.find("gfx")) gpu.gfx = read_text(*gfx, "gfx", mistakes_).value_or("");
      if (const auto* name = fields.find("name"))
        if (auto text = read_text(*name, "name", mistakes_)) gpu.label = *text, gpu.skus.push_back(std::move(*text));
      if (const auto* vram = fields.find("vram")) {
        const auto bytes = vram->kind == yaml::Kind::Scalar ? parse_bytes(vram->text)
                                                            : fail(ErrorCode::InvalidInput, "is no size; write 24GiB");
        if (bytes) gpu.vram = *bytes;
        if (!bytes) mistakes_.value(*vram, "vram", bytes.error().text);
      }
      if (std::ranges::any_of(devices, [&](const DeviceState& d) { return d.id == gpu.id; }))
        mistakes_.add(item->at, "there are two GPUs " + yaml::shown(gpu.id), gpu.id);
      devices.push_back(std::move(gpu));
    }
  }

  std::optional<std::size_t> gpu_named(const yaml::Node& node) {
    std::vector<std::string> ids;
    ids.reserve(out_.snapshot.devices.size());
    for (const auto& d : out_.snapshot.devices) ids.push_back(d.id);
    return read_word(node, "gpu", ids, mistakes_);
  }

  std::optional<ConditionType> condition_type(const yaml::Node& node, std::string_view key) {
    const auto at = read_word(node, key, words_of(ValueKind::Condition), mistakes_);
    return at ? std::optional(static_cast<ConditionType>(*at)) : std::nullopt;
  }

  std::optional<Condition> condition(const yaml::Node& node) {
    const bool plain = node.kind == yaml::Kind::Scalar;
    const Fields fields = plain ? Fields{} : section(node, "confirm", "condition");
    const auto* type_node = plain ? &node : fields.find("type");
    const auto type = type_node == nullptr ? std::nullopt : condition_type(*type_node, "confirm");
    if (!type) return std::nullopt;
    Condition out;
    out.type = *type;
    out.severity = info(*type).severity;
    out.detail = info(*type).title;
    if (const auto* severity = fields.find("severity"))
      if (const auto at = read_word(*severity, "severity", words_of(ValueKind::Severity), mistakes_))
        out.severity = static_cast<Severity>(*at);
    if (const auto* detail = fields.find("detail")) out.detail = read_text(*detail, "detail", mistakes_).value_or("");
    if (const auto* cause = fields.find("cause"))
      if (read_word(*cause, "cause", words_of(ValueKind::Cause), mistakes_))
        out.evidence.push_back({"cause", cause->text});
    return out;
  }

  std::optional<CanaryFact> canary(const yaml::Node& node) {
    const Fields fields = section(node, "canary", "canary");
    const auto* name = fields.find("name");
    const auto* finding = fields.find("finding");
    if (name == nullptr || finding == nullptr) return std::nullopt;
    const auto findings = words_of(ValueKind::Finding);
    const auto at = read_word(*finding, "finding", std::span(findings).first(findings.size() - 1), mistakes_);
    if (!read_word(*name, "canary", words_of(ValueKind::Canary), mistakes_) || !at) return std::nullopt;
    CanaryFact out{name->text, static_cast<canary::stats::FindingKind>(*at), std::nullopt, ""};
    if (const auto* slower = fields.find("slower")) {
      const auto times = parse_times(slower->text);
      if (times) out.ratio = *times;
      if (!times) mistakes_.value(*slower, "slower", times.error().text);
    }
    return out;
  }

  void readings(const yaml::Node& node, TestEntry& out) {
    if (node.kind != yaml::Kind::Map) return mistakes_.value(node, "readings", "is no map of names and values");
    for (std::size_t i = 0; i < node.keys.size(); ++i) {
      const auto at = read_word(node.keys[i], "readings", words_of(ValueKind::Reading), mistakes_);
      if (!at) continue;
      const ReadingInfo& info = all_readings()[*at];
      std::optional<double> value;
      if (node.items[i].text != "unknown") {
        const auto quantity = node.items[i].kind == yaml::Kind::Scalar ? parse_quantity(node.items[i].text, info.unit)
                                                                       : fail(ErrorCode::InvalidInput, "is no value");
        if (quantity) value = *quantity;
        if (!quantity) mistakes_.value(node.items[i], info.name, quantity.error().text);
      }
      out.gpu_changes.emplace_back(
          [id = info.id, value](Snapshot& s, std::size_t gpu, WallTime) { set_reading(s, gpu, id, value); });
    }
  }

  void entry(const yaml::Node& node) {
    const Fields fields = section(node, "an entry", "entry");
    TestEntry out;
    if (const auto* at = fields.find("at")) out.at = read_duration(*at, "at", mistakes_).value_or(Duration{});
    if (!out_.timeline.empty() && out.at < out_.timeline.back().at)
      mistakes_.add(node.at, "the timeline goes back to " + text_of(out.at), "", "write entries in the order of time");
    if (const auto* gpu = fields.find("gpu")) {
      if (const auto index = gpu_named(*gpu)) out.gpus.push_back(*index);
    } else {
      for (std::size_t i = 0; i < out_.snapshot.devices.size(); ++i) out.gpus.push_back(i);
    }
    if (const auto* value = fields.find("readings")) readings(*value, out);
    gpu_changes(fields, out);
    machine_changes(fields, out);
    out_.timeline.push_back(std::move(out));
  }

  void gpu_changes(const Fields& fields, TestEntry& out) {
    auto& changes = out.gpu_changes;
    if (const auto* node = fields.find("confirm"))
      if (auto c = condition(*node))
        changes.emplace_back(
            [c = std::move(*c)](Snapshot& s, std::size_t gpu, WallTime now) { confirm(s, gpu, now, c); });
    if (const auto* node = fields.find("acknowledge"))
      if (const auto type = condition_type(*node, "acknowledge"))
        changes.emplace_back([type](Snapshot& s, std::size_t gpu, WallTime) {
          if (Condition* c = open_condition(s.devices.at(gpu), *type)) c->acknowledged = true;
        });
    if (const auto* node = fields.find("clear"))
      if (const auto type = condition_type(*node, "clear"))
        changes.emplace_back([type](Snapshot& s, std::size_t gpu, WallTime now) { clear(s, gpu, now, *type); });
    if (const auto* node = fields.find("canary"))
      if (auto fact = canary(*node))
        changes.emplace_back([fact = std::move(*fact)](Snapshot& s, std::size_t gpu, WallTime) {
          s.devices.at(gpu).canaries.push_back(fact);
        });
    if (const auto* node = fields.find("recovered"))
      if (read_word(*node, "recovered", words_of(ValueKind::Canary), mistakes_))
        changes.emplace_back([name = node->text](Snapshot& s, std::size_t gpu, WallTime) {
          std::erase_if(s.devices.at(gpu).canaries,
                        [&](const CanaryFact& f) { return name == "any" || f.canary == name; });
        });
    if (const auto* node = fields.find("event"))
      if (read_word(*node, "event", words_of(ValueKind::EventType), mistakes_))
        changes.emplace_back([type = node->text](Snapshot& s, std::size_t gpu, WallTime now) {
          s.events.push_back({now, type, s.devices.at(gpu).id, std::nullopt});
        });
    if (const auto* node = fields.find("busy")) {
      const bool unknown = node->kind == yaml::Kind::Scalar && node->text == "unknown";
      const auto flag = unknown ? std::nullopt : read_flag(*node, "busy", mistakes_);
      changes.emplace_back([flag](Snapshot& s, std::size_t gpu, WallTime) { s.devices.at(gpu).busy = flag; });
    }
    if (const auto* node = fields.find("asleep"))
      if (const auto flag = read_flag(*node, "asleep", mistakes_))
        changes.emplace_back([flag](Snapshot& s, std::size_t gpu, WallTime) { s.devices.at(gpu).asleep = *flag; });
    if (const auto* node = fields.find("gone"))
      if (read_flag(*node, "gone", mistakes_).value_or(false))
        changes.emplace_back([](Snapshot& s, std::size_t gpu, WallTime) { s.devices.at(gpu).readings.clear(); });
  }

  void machine_changes(const Fields& fields, TestEntry& out) {
    if (const auto* node = fields.find("battery"))
      if (const auto flag = read_flag(*node, "battery", mistakes_))
        out.machine_changes.emplace_back([flag](Snapshot& s, WallTime) { s.on_battery = flag; });
    if (const auto* node = fields.find("advisory"))
      if (auto id = read_name(*node, "advisory", mistakes_))
        out.machine_changes.emplace_back([id = std::move(*id)](Snapshot& s, WallTime) { s.advisories.push_back(id); });
    if (const auto* node = fields.find("boot"))
      if (read_flag(*node, "boot", mistakes_).value_or(false)) out.machine_changes.emplace_back(boot);
  }

  void expectation(const yaml::Node& node) {
    const Fields fields = section(node, "an expectation", "expectation");
    Expectation out;
    out.line = node.at.line;
    if (const auto* at = fields.find("at")) out.at = read_duration(*at, "at", mistakes_).value_or(Duration{});
    if (const auto* rule = fields.find("rule")) out.rule = read_name(*rule, "rule", mistakes_).value_or("");
    if (const auto* gpu = fields.find("gpu"); gpu != nullptr && gpu_named(*gpu)) out.gpu = gpu->text;
    if (const auto* outcome = fields.find("decision")) {
      std::vector<std::string> words;
      for (int i = 0; i <= static_cast<int>(Outcome::Revert); ++i)
        words.emplace_back(to_string(static_cast<Outcome>(i)));
      if (const auto at = read_word(*outcome, "decision", words, mistakes_)) out.outcome = static_cast<Outcome>(*at);
    }
    if (const auto* block = fields.find("block")) {
      std::vector<std::string> words;
      for (int i = 1; i <= static_cast<int>(Block::Conflict); ++i) words.emplace_back(to_string(static_cast<Block>(i)));
      if (const auto at = read_word(*block, "block", words, mistakes_)) out.block = static_cast<Block>(*at + 1);
    }
    if (const auto* because = fields.find("because")) out.because = read_texts(*because, "because", mistakes_);
    if (const auto* actions = fields.find("do"))
      for (const auto* item : read_list(*actions, "do", 16, mistakes_)) expected_action(*item, out);
    out_.expect.push_back(std::move(out));
  }

  // A name, or a name with those of its parameters that matter.
  void expected_action(const yaml::Node& node, Expectation& out) {
    const auto nodes = action_nodes(node, mistakes_);
    if (!nodes) return;
    std::vector<std::string> names;
    for (const auto& row : all_actions()) names.emplace_back(row.name);
    const auto at = read_word(*nodes->name, "do", names, mistakes_);
    if (!at) return;
    const auto kind = static_cast<ActionKind>(*at);
    std::map<std::string, std::string> stated;
    std::vector<KeyRow> keys;
    for (const auto& param : params_of(kind)) keys.push_back({param.name, false});
    if (nodes->params != nullptr) {
      const Fields fields = read_map(*nodes->params, to_string(kind), keys, mistakes_);
      for (const auto& param : params_of(kind)) {
        const auto* value = fields.find(param.name);
        if (value == nullptr) continue;
        // A text is compared as it comes out, with its braces filled in.
        auto text = param.kind == ParamKind::Text ? read_text(*value, param.name, mistakes_)
                                                  : read_param(param, *value, mistakes_);
        if (text) stated[std::string(param.name)] = std::move(*text);
      }
    }
    out.actions.push_back(kind);
    out.params.push_back(std::move(stated));
  }

  TestFile& out_;
  Mistakes& mistakes_;
};

}  // namespace

std::span<const TestKeyInfo> all_test_keys() {
  return kKeys;
}

TestFile read_test(const yaml::Node& root, Mistakes& mistakes) {
  TestFile out;
  out.snapshot.machine.boot_id = "first boot";
  Reader(out, mistakes).read(root);
  return out;
}

}  // namespace gpuhealth::policy
