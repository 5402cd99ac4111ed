// SPDX-License-Identifier: Apache-2.0
#include "sim/scenario.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <fstream>
#include <sstream>

#include "canary/measurement.hpp"
#include "core/action.hpp"
#include "sim/scenario_names.hpp"
#include "sim/state_fields.hpp"
#include "sim/yaml_doc.hpp"

namespace gpuhealth::sim {
namespace {

constexpr std::size_t kLargest = 1U << 20U;

class Parser {
 public:
  explicit Parser(std::string file) : doc_(std::move(file)) {}

  Result<Scenario> parse(const std::string& text) {
    try {
      const YAML::Node root = YAML::Load(text);
      read(root);
    } catch (const YAML::Exception& e) {
      doc_.say(e.mark, "is not YAML: " + e.msg);
    }
    if (!doc_.sound()) return tl::unexpected<Error>(doc_.error());
    return std::move(out_);
  }

 private:
  using Map = std::map<std::string, YAML::Node>;

  template <class Use>
  static bool with(const Map& map, const char* key, Use use) {
    const auto it = map.find(key);
    if (it == map.end()) return false;
    use(it->second);
    return true;
  }

  void read(const YAML::Node& root) {
    constexpr std::array<string_view, 21> known = {
        "about",      "boot",   "cards",         "cmdline",  "config",  "dkms",      "duration",
        "ends_early", "expect", "kernel",        "name",     "noise",   "opencl",    "policies",
        "polkit",     "seed",   "speed_at_most", "timeline", "userptr", "variables", "writes"};
    const auto top = doc_.map(root, "a scenario", known);
    with(top, "name", [&](auto& n) { out_.name = doc_.text(n, "name"); });
    with(top, "about", [&](auto& n) { out_.about = doc_.text(n, "about"); });
    with(top, "duration", [&](auto& n) { out_.duration_s = doc_.seconds(n, "duration"); });
    with(top, "seed", [&](auto& n) { out_.seed = static_cast<unsigned>(doc_.number(n, "seed", 0, 4294967295.0)); });
    with(top, "noise", [&](auto& n) { out_.noise = doc_.flag(n, "noise"); });
    with(top, "kernel", [&](auto& n) { out_.facts.kernel_release = doc_.text(n, "kernel"); });
    with(top, "dkms", [&](auto& n) { out_.facts.dkms_version = doc_.text(n, "dkms"); });
    with(top, "config", [&](auto& n) { out_.config = doc_.text(n, "config"); });
    with(top, "policies", [&](auto& n) { read_policies(n); });
    with(top, "userptr", [&](auto& n) { out_.userptr = read_userptr(n); });
    with(top, "opencl", [&](auto& n) { out_.opencl = doc_.flag(n, "opencl"); });
    out_.needs_nodes = out_.opencl || top.contains("userptr");
    with(top, "speed_at_most", [&](auto& n) { out_.speed_at_most = doc_.number(n, "speed_at_most", 1, 100); });
    with(top, "ends_early", [&](auto& n) { out_.ends_early = doc_.flag(n, "ends_early"); });
    with(top, "variables", [&](auto& n) { read_variables(n); });
    with(top, "polkit",
         [&](auto& n) { out_.polkit = kPolkits.at(doc_.one_of(n, "polkit", names_of(kPolkits))).value; });
    with(top, "cmdline", [&](auto& n) { out_.cmdline = doc_.text(n, "cmdline"); });
    with(top, "boot", [&](auto& n) { read_boot(n); });
    with(top, "writes", [&](auto& n) {
      constexpr std::array<string_view, 2> choice = {"none", "allowed"};
      out_.writes_allowed = doc_.one_of(n, "writes", choice) == 1;
    });
    if (!with(top, "cards", [&](auto& n) { read_cards(n); })) doc_.say(root, "a scenario needs cards");
    with(top, "timeline", [&](auto& n) {
      for (const auto& step : doc_.list(n, "timeline")) read_step(step);
    });
    with(top, "expect", [&](auto& n) {
      for (const auto& entry : doc_.list(n, "expect")) read_expectation(entry);
    });
  }

  // "stall", or {form: stall, slot: 1ms, cow_slot: 12ms}.
  UserptrPath read_userptr(const YAML::Node& node) {
    UserptrPath out;
    const auto form = [&](auto& n) { out.form = kForms.at(doc_.one_of(n, "userptr", names_of(kForms))).value; };
    if (!node.IsMap()) {
      form(node);
      return out;
    }
    constexpr std::array<string_view, 3> known = {"form", "slot", "cow_slot"};
    const auto map = doc_.map(node, "userptr", known);
    with(map, "form", form);
    with(map, "slot", [&](auto& n) { out.slot_ms = doc_.seconds(n, "slot") * 1000; });
    out.cow_slot_ms = out.slot_ms;
    with(map, "cow_slot", [&](auto& n) { out.cow_slot_ms = doc_.seconds(n, "cow_slot") * 1000; });
    return out;
  }

  void read_variables(const YAML::Node& node) {
    if (!node.IsMap()) return doc_.say(node, "variables must hold names and values, as in \"HSA_XNACK: 1\"");
    for (const auto& entry : node) {
      const auto name = doc_.text(entry.first, "the name of a variable");
      const auto value = doc_.text(entry.second, "the value of a variable");
      if ((name + value).find_first_of(" \t\n'\"\\$`;&|=") != std::string::npos)
        doc_.say(entry.first, "a variable's name and value are one plain word each");
      out_.variables[name] = value;
    }
  }

  void read_policies(const YAML::Node& node) {
    if (!node.IsMap()) return doc_.say(node, "policies must hold a text for each file, as in \"50-a.yaml: |\"");
    for (const auto& entry : node) {
      const auto name = doc_.text(entry.first, "the name of a policy file");
      if (name.find('/') != std::string::npos || !name.ends_with(".yaml"))
        doc_.say(entry.first, "a policy file's name has no slash and ends with .yaml");
      out_.policies[name] = doc_.text(entry.second, "a policy");
    }
  }

  void read_boot(const YAML::Node& node) {
    if (!node.IsMap()) return doc_.say(node, "boot must hold files and their content");
    for (const auto& entry : node) {
      const auto file = doc_.text(entry.first, "a file of /boot");
      if (file.empty() || file.front() == '/' || file.find("..") != std::string::npos)
        doc_.say(entry.first, "a file of /boot is named from there, as in \"grub/grub.cfg\"");
      out_.boot[file] = doc_.text(entry.second, "the content of a file");
    }
  }

  // --- cards ---------------------------------------------------------------------------------------------------------

  void read_cards(const YAML::Node& node) {
    if (!node.IsMap()) return doc_.say(node, "cards must hold a name for each card, as in \"a: {model: rx7900xtx}\"");
    unsigned slot = 0;
    for (const auto& entry : node) {
      const auto name = doc_.text(entry.first, "the name of a card");
      if (std::ranges::find(out_.cards, name, &ScenarioCard::name) != out_.cards.end())
        doc_.say(entry.first, "two cards have this name");
      if (slot == 64) return doc_.say(entry.first, "a machine has at most 64 cards");
      out_.cards.push_back({name, read_card(entry.second, slot++)});
    }
  }

  Card read_card(const YAML::Node& node, unsigned slot) {
    constexpr std::array<string_view, 3> known = {"model", "load", "state"};
    const auto map = doc_.map(node, "a card", known);
    CardModel model = rx7900xtx();
    if (!with(map, "model", [&](auto& n) { model = kModels.at(doc_.one_of(n, "model", names_of(kModels))).value(); }))
      doc_.say(node, "a card needs a model");
    bool load = false;
    with(map, "load", [&](auto& n) { load = doc_.flag(n, "load"); });
    Card card = load ? loaded_card(std::move(model), slot) : idle_card(std::move(model), slot);
    with(map, "state", [&](auto& n) {
      const SetState state = read_state(n);
      for (const auto& [name, ramp] : state.numbers) find_state_field(name)->set(card.state, ramp.to);
      if (state.performance_level) card.state.performance_level = *state.performance_level;
      if (state.runtime_status) card.state.runtime_status = *state.runtime_status;
      if (state.driver_bound) card.state.driver_bound = *state.driver_bound;
      card.state.ras = state.ras;
    });
    return card;
  }

  SetState read_state(const YAML::Node& node) {
    std::vector<string_view> known = {"performance_level", "runtime_status", "driver_bound", "ras"};
    for (const auto& field : all_state_fields()) known.push_back(field.name);
    SetState out;
    for (const auto& [name, value] : doc_.map(node, "the state of a card", known)) {
      if (const auto* field = find_state_field(name)) {
        out.numbers[name] = read_ramp(value, *field);
      } else if (name == "performance_level") {
        out.performance_level = doc_.text(value, name);
      } else if (name == "runtime_status") {
        constexpr std::array<string_view, 4> states = {"active", "suspended", "suspending", "resuming"};
        out.runtime_status = states.at(doc_.one_of(value, name, states));
      } else if (name == "driver_bound") {
        out.driver_bound = doc_.flag(value, name);
      } else {
        read_ras(value, out.ras);
      }
    }
    return out;
  }

  Ramp read_ramp(const YAML::Node& node, const StateField& field) {
    const std::string what = fmt::format("{} ({})", field.name, field.unit);
    if (!node.IsMap()) return {doc_.number(node, what, field.low, field.high), 0};
    constexpr std::array<string_view, 2> known = {"to", "over"};
    Ramp out;
    const auto map = doc_.map(node, what, known);
    if (!with(map, "to", [&](auto& n) { out.to = doc_.number(n, what, field.low, field.high); }))
      doc_.say(node, what + " needs \"to\"");
    with(map, "over", [&](auto& n) { out.over_s = doc_.seconds(n, "over"); });
    return out;
  }

  void read_ras(const YAML::Node& node, std::vector<RasCount>& out) {
    if (!node.IsMap()) return doc_.say(node, "ras must hold blocks, as in \"umc: {correctable: 3}\"");
    for (const auto& entry : node) {
      constexpr std::array<string_view, 3> known = {"correctable", "uncorrectable", "deferred"};
      RasCount count;
      count.block = doc_.text(entry.first, "a RAS block");
      const auto map = doc_.map(entry.second, "a RAS block", known);
      const auto whole = [&](auto& n) { return static_cast<std::uint64_t>(doc_.number(n, "a count", 0, 1e15)); };
      with(map, "correctable", [&](auto& n) { count.correctable = whole(n); });
      with(map, "uncorrectable", [&](auto& n) { count.uncorrectable = whole(n); });
      with(map, "deferred", [&](auto& n) { count.deferred = whole(n); });
      out.push_back(std::move(count));
    }
  }

  std::string read_card_name(const YAML::Node& node) {
    std::vector<string_view> known;
    known.reserve(out_.cards.size());
    for (const auto& card : out_.cards) known.push_back(card.name);
    if (known.empty()) return {};
    return std::string(known.at(doc_.one_of(node, "card", known)));
  }

  // --- timeline ------------------------------------------------------------------------------------------------------

  void read_step(const YAML::Node& node) {
    constexpr std::array<string_view, 15> known = {"at",     "card",   "set",  "fault",  "write",
                                                   "remove", "unplug", "plug", "reboot", "daemon",
                                                   "bus",    "log",    "kfd",  "uevent", "sleep"};
    const auto map = doc_.map(node, "a step", known);
    Step step;
    if (!with(map, "at", [&](auto& n) { step.at_s = doc_.seconds(n, "at"); })) doc_.say(node, "a step needs \"at\"");
    with(map, "card", [&](auto& n) { step.card = read_card_name(n); });
    int actions = 0;
    const auto action = [&](const char* key, bool of_card, auto make) {
      with(map, key, [&](auto& n) {
        ++actions;
        if (of_card && step.card.empty()) doc_.say(n, fmt::format("\"{}\" needs a card", key));
        step.what = make(n);
      });
    };
    action("set", true, [&](auto& n) { return read_state(n); });
    action("fault", true, [&](auto& n) { return read_fault(n); });
    action("write", true, [&](auto& n) { return read_write(n); });
    action("remove", true, [&](auto& n) { return WriteFile{doc_.text(n, "remove"), std::nullopt}; });
    action("unplug", true, [&](auto& n) {
      if (!doc_.flag(n, "unplug")) doc_.say(n, "unplug can only be true; \"plug\" brings a card back");
      return Unplug{};
    });
    action("plug", true, [&](auto& n) {
      constexpr std::array<string_view, 1> slot = {"slot"};
      Plug plug;
      with(doc_.map(n, "plug", slot), "slot",
           [&](auto& s) { plug.slot = static_cast<unsigned>(doc_.number(s, "slot", 0, 63)); });
      return plug;
    });
    action("reboot", false, [&](auto& n) { return read_reboot(n); });
    action("daemon", false,
           [&](auto& n) { return kDaemonSteps.at(doc_.one_of(n, "daemon", names_of(kDaemonSteps))).value; });
    action("bus", false, [&](auto& n) { return kBusSteps.at(doc_.one_of(n, "bus", names_of(kBusSteps))).value; });
    action("log", false, [&](auto& n) { return read_log(n); });
    action("kfd", true, [&](auto& n) {
      out_.needs_nodes = true;
      return KfdRecord{doc_.text(n, "kfd")};
    });
    action("uevent", true, [&](auto& n) { return read_uevent(n); });
    action("sleep", false, [&](auto& n) { return Sleep{doc_.seconds(n, "sleep")}; });
    if (actions != 1)
      doc_.say(
          node,
          "a step does one thing: set, fault, write, remove, unplug, plug, reboot, daemon, bus, log, kfd, uevent or "
          "sleep");
    // By time; of one moment in the order of the file.
    const auto later = std::upper_bound(out_.timeline.begin(), out_.timeline.end(), step.at_s,
                                        [](double at_s, const Step& other) { return at_s < other.at_s; });
    out_.timeline.insert(later, std::move(step));
  }

  // "amdgpu 0000:03:00.0: GPU reset begin!", or {text: …, priority: 3}.
  LogLine read_log(const YAML::Node& node) {
    LogLine out;
    if (!node.IsMap()) {
      out.text = doc_.text(node, "log");
    } else {
      constexpr std::array<string_view, 2> known = {"text", "priority"};
      const auto map = doc_.map(node, "log", known);
      if (!with(map, "text", [&](auto& n) { out.text = doc_.text(n, "text"); })) doc_.say(node, "log needs a text");
      with(map, "priority", [&](auto& n) { out.priority = static_cast<unsigned>(doc_.number(n, "priority", 0, 7)); });
    }
    if (out.text.find('\n') != std::string::npos) doc_.say(node, "a line of the log is one line");
    return out;
  }

  Uevent read_uevent(const YAML::Node& node) {
    constexpr std::array<string_view, 3> known = {"action", "subsystem", "properties"};
    const auto map = doc_.map(node, "uevent", known);
    Uevent out;
    out_.needs_uevents = true;
    with(map, "action", [&](auto& n) { out.action = doc_.text(n, "action"); });
    with(map, "subsystem", [&](auto& n) { out.subsystem = doc_.text(n, "subsystem"); });
    with(map, "properties", [&](auto& n) {
      if (!n.IsMap()) return doc_.say(n, "properties must hold names and values, as in {WEDGED: none}");
      for (const auto& entry : n)
        out.properties[doc_.text(entry.first, "a property")] = doc_.text(entry.second, "the value of a property");
    });
    return out;
  }

  // The order of the cards, or {cards: […], kernel: RELEASE, userptr: …}.
  Reboot read_reboot(const YAML::Node& node) {
    Reboot out;
    const auto order = [&](auto& n) {
      for (const auto& name : doc_.list(n, "reboot")) out.order.push_back(read_card_name(name));
    };
    if (!node.IsMap()) {
      order(node);
      return out;
    }
    constexpr std::array<string_view, 3> known = {"cards", "kernel", "userptr"};
    const auto map = doc_.map(node, "reboot", known);
    if (!with(map, "cards", order)) {
      for (const auto& card : out_.cards) out.order.push_back(card.name);
    }
    with(map, "kernel", [&](auto& n) { out.kernel = doc_.text(n, "kernel"); });
    with(map, "userptr", [&](auto& n) {
      out.userptr = read_userptr(n);
      out_.needs_nodes = true;
    });
    return out;
  }

  SetFault read_fault(const YAML::Node& node) {
    constexpr std::array<string_view, 9> known = {"files", "error", "open_error", "write_error", "delay",
                                                  "hang",  "short", "for",        "end"};
    const auto map = doc_.map(node, "a fault", known);
    SetFault out;
    const auto read_files = [&](auto& n) {
      if (!n.IsSequence()) return out.files.push_back(doc_.text(n, "files"));
      for (const auto& one : doc_.list(n, "files")) out.files.push_back(doc_.text(one, "files"));
    };
    if (!with(map, "files", read_files)) doc_.say(node, "a fault needs files");
    with(map, "for", [&](auto& n) { out.for_s = doc_.seconds(n, "for"); });
    int kinds = 0;
    const auto kind = [&](const char* key, Fault::Kind is, auto value) {
      with(map, key, [&](auto& n) {
        ++kinds;
        out.fault = Fault{is, value(n)};
      });
    };
    const auto error = [&](auto& n) { return kErrors.at(doc_.one_of(n, "error", names_of(kErrors))).value; };
    kind("error", Fault::Kind::ReadError, error);
    kind("open_error", Fault::Kind::OpenError, error);
    kind("write_error", Fault::Kind::WriteError, error);
    kind("delay", Fault::Kind::Delay, [&](auto& n) { return static_cast<int>(doc_.seconds(n, "delay") * 1000); });
    kind("short", Fault::Kind::Short, [&](auto& n) { return static_cast<int>(doc_.number(n, "short", 0, 65536)); });
    kind("hang", Fault::Kind::Hang, [&](auto& n) { return doc_.flag(n, "hang") ? 0 : 1; });
    with(map, "end", [&](auto& n) {
      ++kinds;
      if (!doc_.flag(n, "end")) doc_.say(n, "end can only be true");
    });
    if (kinds != 1) doc_.say(node, "a fault is one of error, open_error, write_error, delay, hang, short, or end");
    return out;
  }

  WriteFile read_write(const YAML::Node& node) {
    constexpr std::array<string_view, 2> known = {"file", "text"};
    const auto map = doc_.map(node, "write", known);
    WriteFile out;
    out.text = "";
    if (!with(map, "file", [&](auto& n) { out.file = doc_.text(n, "file"); })) doc_.say(node, "write needs a file");
    with(map, "text", [&](auto& n) { out.text = doc_.text(n, "text"); });
    return out;
  }

  // --- expectations --------------------------------------------------------------------------------------------------

  void read_expectation(const YAML::Node& node) {
    constexpr std::array<string_view, 26> known = {
        "at_least", "at_most", "backend",  "by",     "canary", "card",  "cleared_by", "condition", "confirmed_by",
        "device",   "event",   "from",     "kernel", "ledger", "never", "opens",      "present",   "reading",
        "reads",    "says",    "severity", "state",  "status", "times", "to",         "writes"};
    const auto map = doc_.map(node, "an expectation", known);
    Expectation out;
    YAML::Emitter emitter;
    emitter.SetMapFormat(YAML::Flow);
    emitter.SetSeqFormat(YAML::Flow);
    emitter << node;
    out.text = emitter.c_str();
    out.line = node.Mark().line + 1;
    std::string card;
    with(map, "card", [&](auto& n) { card = read_card_name(n); });
    int kinds = 0;
    with(map, "condition", [&](auto& n) {
      ++kinds;
      out.what = read_condition(n, map, card);
    });
    with(map, "reading", [&](auto& n) {
      ++kinds;
      out.what = read_reading(n, map, card);
    });
    with(map, "canary", [&](auto& n) {
      ++kinds;
      out.what = read_canary(n, map, card);
    });
    with(map, "ledger", [&](auto& n) {
      ++kinds;
      out.what = read_ledger_rule(n, map);
    });
    with(map, "event", [&](auto& n) {
      ++kinds;
      out.what = read_event(n, map, card);
    });
    with(map, "device", [&](auto& n) {
      ++kinds;
      ExpectDevice device{read_card_name(n), true, out_.duration_s};
      with(map, "present", [&](auto& p) { device.present = doc_.flag(p, "present"); });
      with(map, "by", [&](auto& b) { device.by_s = doc_.seconds(b, "by"); });
      out.what = device;
    });
    for (const auto& row : kAccesses) {
      with(map, std::string(row.name).c_str(), [&](auto& n) {
        ++kinds;
        ExpectAccess access;
        access.kind = row.value;
        access.card = card;
        access.files = doc_.text(n, row.name);
        with(map, "from", [&](auto& f) { access.from_s = doc_.seconds(f, "from"); });
        with(map, "to", [&](auto& t) { access.to_s = doc_.seconds(t, "to"); });
        const auto count = [&](auto& c) { return static_cast<std::size_t>(doc_.number(c, "a count", 0, 1e9)); };
        with(map, "at_least", [&](auto& c) { access.at_least = count(c); });
        with(map, "at_most", [&](auto& c) { access.at_most = count(c); });
        if (!access.at_least && !access.at_most) doc_.say(node, fmt::format("{} needs at_least or at_most", row.name));
        out.what = access;
      });
    }
    if (kinds != 1)
      doc_.say(node,
               "an expectation is about a condition, an event, a reading, a canary, a device, the ledger, opens, reads "
               "or writes");
    out_.expectations.push_back(std::move(out));
  }

  ExpectCondition read_condition(const YAML::Node& node, const Map& map, const std::string& card) {
    std::vector<string_view> types;
    for (const auto& row : all_conditions()) types.push_back(row.name);
    ExpectCondition out;
    out.type = all_conditions()[doc_.one_of(node, "condition", types)].type;
    out.card = card;
    with(map, "from", [&](auto& n) { out.from_s = doc_.seconds(n, "from"); });
    with(map, "confirmed_by", [&](auto& n) { out.confirmed_by_s = doc_.seconds(n, "confirmed_by"); });
    with(map, "cleared_by", [&](auto& n) { out.cleared_by_s = doc_.seconds(n, "cleared_by"); });
    with(map, "severity", [&](auto& n) {
      constexpr std::array<string_view, 3> severities = {"info", "warning", "critical"};
      out.severity = severity_from(severities.at(doc_.one_of(n, "severity", severities)));
    });
    with(map, "never", [&](auto& n) { out.never = doc_.flag(n, "never"); });
    with(map, "says", [&](auto& n) { out.says = read_texts(n, "says"); });
    if (!out.never && !out.confirmed_by_s && !out.cleared_by_s)
      doc_.say(node, "a condition needs confirmed_by, cleared_by or never: true");
    return out;
  }

  ExpectLedger read_ledger_rule(const YAML::Node& node, const Map& map) {
    std::vector<string_view> names;
    for (const auto& row : all_actions()) names.push_back(row.name);
    ExpectLedger out;
    out.action = names.at(doc_.one_of(node, "ledger", names));
    with(map, "state", [&](auto& n) { out.state = doc_.text(n, "state"); });
    with(map, "times", [&](auto& n) { out.times = read_texts(n, "times"); });
    const auto count = [&](auto& c) { return static_cast<std::size_t>(doc_.number(c, "a count", 0, 1e6)); };
    with(map, "at_least", [&](auto& c) { out.at_least = count(c); });
    with(map, "at_most", [&](auto& c) { out.at_most = count(c); });
    if (!out.at_least && !out.at_most) doc_.say(node, "ledger needs at_least or at_most");
    return out;
  }

  std::vector<std::string> read_texts(const YAML::Node& node, const char* what) {
    if (!node.IsSequence()) return {doc_.text(node, what)};
    std::vector<std::string> out;
    for (const auto& one : doc_.list(node, what)) out.push_back(doc_.text(one, what));
    return out;
  }

  ExpectEvent read_event(const YAML::Node& node, const Map& map, const std::string& card) {
    ExpectEvent out;
    out.type = doc_.text(node, "event");
    out.card = card;
    out.by_s = out_.duration_s;
    const auto count = [&](auto& n) { return static_cast<std::size_t>(doc_.number(n, "a count", 0, 1e6)); };
    with(map, "by", [&](auto& n) { out.by_s = doc_.seconds(n, "by"); });
    with(map, "says", [&](auto& n) { out.says = doc_.text(n, "says"); });
    with(map, "at_most", [&](auto& n) {
      out.at_most = count(n);
      out.at_least = std::min<std::size_t>(1, *out.at_most);
    });
    with(map, "at_least", [&](auto& n) { out.at_least = count(n); });
    with(map, "severity", [&](auto& n) {
      constexpr std::array<string_view, 3> severities = {"info", "warning", "critical"};
      out.severity = severity_from(severities.at(doc_.one_of(n, "severity", severities)));
    });
    return out;
  }

  ExpectCanary read_canary(const YAML::Node& node, const Map& map, const std::string& card) {
    ExpectCanary out;
    const auto names = canary::canary_names(3);
    out.canary = names.at(doc_.one_of(node, "canary", names));
    out.card = card;
    with(map, "backend", [&](auto& n) { out.backend = doc_.text(n, "backend"); });
    with(map, "kernel", [&](auto& n) { out.kernel = doc_.text(n, "kernel"); });
    with(map, "status", [&](auto& n) { out.status = read_texts(n, "status"); });
    for (const auto& status : out.status) {
      if (!canary::status_from(status)) doc_.say(node, "there is no such status of a canary: " + status);
    }
    with(map, "at_least",
         [&](auto& n) { out.at_least = static_cast<std::size_t>(doc_.number(n, "at_least", 0, 1e6)); });
    return out;
  }

  ExpectReading read_reading(const YAML::Node& node, const Map& map, const std::string& card) {
    ExpectReading out;
    out.card = card;
    if (card.empty()) doc_.say(node, "a reading needs a card");
    std::vector<string_view> names;
    for (const auto& row : all_readings()) names.push_back(row.name);
    out.id = all_readings()[doc_.one_of(node, "reading", names)].id;
    out.by_s = out_.duration_s;
    with(map, "by", [&](auto& n) { out.by_s = doc_.seconds(n, "by"); });
    with(map, "from", [&](auto& n) { out.from_s = doc_.seconds(n, "from"); });
    with(map, "status", [&](auto& n) {
      out.status = reading_status_from(doc_.text(n, "status"));
      if (!out.status) doc_.say(n, "there is no such status of a reading");
    });
    with(map, "at_least", [&](auto& n) { out.at_least = doc_.number(n, "at_least", -1e18, 1e18); });
    with(map, "at_most", [&](auto& n) { out.at_most = doc_.number(n, "at_most", -1e18, 1e18); });
    if (!out.status && !out.at_least && !out.at_most) doc_.say(node, "a reading needs status, at_least or at_most");
    return out;
  }

  YamlDoc doc_;
  Scenario out_;
};

}  // namespace

std::optional<double> parse_seconds(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (error != std::errc{} || std::isnan(number) || number < 0 || number > 1e9) return std::nullopt;
  const auto unit = text.substr(static_cast<std::size_t>(end - text.data()));
  constexpr auto units =
      std::to_array<Named<double>>({{"", 1}, {"s", 1}, {"ms", 0.001}, {"min", 60}, {"h", 3600}, {"d", 86400}});
  const auto row = std::ranges::find(units, unit, &Named<double>::name);
  if (row == units.end()) return std::nullopt;
  return number * row->value;
}

Result<Scenario> parse_scenario(const std::string& text, const std::string& file_name) {
  if (text.size() > kLargest)
    return fail(ErrorCode::InvalidInput, file_name + ": is larger than 1 MiB; no scenario is");
  return Parser(file_name).parse(text);
}

Result<Scenario> load_scenario(const std::string& path) {
  std::ifstream file(path);
  if (!file) return fail_errno("cannot open " + path, errno);
  std::stringstream text;
  text << file.rdbuf();
  if (file.bad()) return fail_errno("cannot read " + path, errno);
  return parse_scenario(text.str(), path);
}

}  // namespace gpuhealth::sim
