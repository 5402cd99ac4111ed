// SPDX-License-Identifier: Apache-2.0
#include "telemetry/klog/classifier.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "telemetry/klog/false_counts.hpp"

namespace gpuhealth::klog {
namespace {

constexpr auto npos = std::string_view::npos;
constexpr std::size_t kMostText = 1024;

template <class Number>
std::optional<Number> number_at(std::string_view text, int base = 10) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc{}) return std::nullopt;
  return value;
}

struct Program {
  std::string_view name;
  std::uint32_t pid = 0;
};

// "process chrome pid 2379 thread …", "Process python pid 5578"; a name may be empty ("process  pid 0") or have blanks.
std::optional<Program> amd_program(std::string_view text) {
  constexpr std::string_view kHeading = "Process information: ";
  if (text.starts_with(kHeading)) text.remove_prefix(kHeading.size());
  auto at = text.find("rocess ");
  if (at == npos || at == 0 || (text[at - 1] | 0x20) != 'p') return std::nullopt;
  at += 7;
  const auto pid = text.find(" pid ", at - 1);
  if (pid == npos) return std::nullopt;
  const auto number = number_at<std::uint32_t>(text.substr(pid + 5));
  if (!number) return std::nullopt;
  return Program{pid > at ? text.substr(at, pid - at) : std::string_view(), *number};
}

// i915 and xe: "… in Xorg [1234]"; "in no process [-1]".
std::optional<Program> intel_program(std::string_view text) {
  const auto at = text.rfind(" in ");
  const auto open = text.rfind(" [");
  if (at == npos || open == npos || open < at + 4) return std::nullopt;
  const auto number = number_at<std::uint32_t>(text.substr(open + 2));
  if (!number) return std::nullopt;
  return Program{text.substr(at + 4, open - at - 4), *number};
}

// NVRM: "pid=1234, name=python, Ch 00000008"; "pid='<unknown>'".
std::optional<Program> nvidia_program(std::string_view text) {
  const auto pid = text.find("pid=");
  if (pid == npos) return std::nullopt;
  const auto number = number_at<std::uint32_t>(text.substr(pid + 4));
  if (!number) return std::nullopt;
  Program out{{}, *number};
  if (const auto name = text.find("name=", pid); name != npos) {
    out.name = text.substr(name + 5);
    out.name = out.name.substr(0, out.name.find(','));
  }
  return out;
}

// "PCI:0000:65:00", "0000:03:00", "PCI:0000:c1:00.0": function 0 where none stands.
std::optional<PciAddress> nvidia_address(std::string_view text) {
  if (text.starts_with("PCI:")) text.remove_prefix(4);
  std::string whole(text.substr(0, text.find(')')));
  if (whole.size() > 20) return std::nullopt;
  if (whole.find('.') == npos) whole += ".0";
  std::size_t length = 0;
  return address_at(whole, length);
}

// "1048560 correctable hardware errors": what a query of a sleeping GPU reads. The number stands before the word.
bool is_false_ras(Type type, std::string_view text) {
  if (type != Type::RasCorrectable && type != Type::RasUncorrectable && type != Type::RasDeferred) return false;
  for (const std::string_view word : {" new ", " correctable", " uncorrectable", " deferred"}) {
    const auto end = text.find(word);
    if (end == npos) continue;
    const auto begin = text.find_last_not_of("0123456789", end == 0 ? 0 : end - 1);
    const auto count = number_at<std::uint64_t>(text.substr(begin == npos ? 0 : begin + 1));
    return count && is_false_count(*count);
  }
  return false;
}

}  // namespace

Event Classifier::event_of(const Parsed& parsed) const {
  Event event;
  event.line = number_;
  event.text = parsed.line.message.substr(0, kMostText);
  event.time = parsed.line.time;
  event.from = parsed.origin.from;
  event.device = parsed.origin.device;
  if (!event.device) event.device = card_of(parsed.origin.text);
  return event;
}

// "/sys/class/drm/card1/…": the device, where the log has said which one card 1 is.
std::optional<PciAddress> Classifier::card_of(std::string_view text) const {
  const auto at = text.find("card");
  if (at == npos) return std::nullopt;
  const auto number = number_at<unsigned>(text.substr(at + 4));
  return number ? facts_.minor(*number) : std::nullopt;
}

bool Classifier::parse(std::string_view text, Parsed& out) {
  if (has_escapes(text)) {
    clean_ = strip_escapes(text);
    text = clean_;
  }
  out.line = parse_line(text);
  if (!out.line.kernel) return false;
  out.origin = parse_origin(out.line.message);
  return true;
}

bool Classifier::learn(std::string_view text) {
  find_candidates(text, candidates_);
  if (candidates_.none()) return false;
  Parsed parsed;
  if (!parse(text, parsed)) return false;
  const auto& origin = parsed.origin;
  if ((origin.from & kGpuDrivers) != 0) {
    facts_.saw_gpu_driver();
    if (origin.device) facts_.add_gpu(*origin.device);
  }
  const auto message = parsed.line.message;
  std::size_t length = 0;
  if (candidates_.has(Hook::Process) && (origin.from & (Amd | Bare)) != 0) {
    if (const auto program = amd_program(origin.text)) facts_.add_program(program->name, program->pid);
  }
  if ((origin.from & (I915 | Xe)) != 0) {
    if (const auto program = intel_program(origin.text)) facts_.add_program(program->name, program->pid);
  }
  if (candidates_.has(Hook::Xid)) {
    if (const auto program = nvidia_program(origin.text)) facts_.add_program(program->name, program->pid);
  }
  if (candidates_.has(Hook::Minor)) {
    const auto at = message.find(" for ");
    const auto minor = message.find(" on minor ");
    const auto address = at == npos ? std::nullopt : address_at(message.substr(at + 5), length);
    const auto number = minor == npos ? std::nullopt : number_at<unsigned>(message.substr(minor + 10));
    if (address && number) {
      facts_.add_minor(*number, *address);
      facts_.add_gpu(*address);
      facts_.saw_gpu_driver();
    }
  }
  if (candidates_.has(Hook::Enumerated) && message.starts_with("pci ")) {
    const auto address = address_at(message.substr(4), length);
    const auto ids = message.find(": [");
    const auto code = message.find(" class 0x");
    if (address && ids != npos && code != npos) {
      const auto base_class = number_at<unsigned>(message.substr(code + 9, 2), 16).value_or(0);
      const auto vendor = number_at<std::uint32_t>(message.substr(ids + 3, 4), 16).value_or(0);
      const auto device = number_at<std::uint32_t>(message.substr(ids + 8, 4), 16).value_or(0);
      facts_.add_function(*address, base_class == 0x03 || base_class == 0x12);
      facts_.add_port_ids(*address, vendor, device);
    }
  }
  if (candidates_.has(Hook::Bridge) && message.starts_with("pci ")) {
    const auto address = address_at(message.substr(4), length);
    const auto at = message.find("[bus ");
    const auto first = number_at<std::uint8_t>(message.substr(at + 5, 2), 16);
    const auto last = at + 8 < message.size() && message[at + 7] == '-'
                          ? number_at<std::uint8_t>(message.substr(at + 8, 2), 16)
                          : first;
    if (address && first && last) facts_.add_bridge(*address, *first, *last);
  }
  if (candidates_.has(Hook::Aer)) learn_pcie(origin, facts_);
  return true;
}

void Classifier::feed(std::string_view text, std::uint64_t number) {
  number_ = number;
  find_candidates(text, candidates_);
  if (candidates_.none()) return;
  Parsed parsed;
  if (!parse(text, parsed)) return;
  const Folding::Place place{parsed.line.stamp, number};
  folding_.advance(place);
  rows(parsed, place);
  if (candidates_.hooks != 0) hooks(parsed, place);
}

void Classifier::rows(const Parsed& parsed, const Folding::Place& place) {
  const auto& origin = parsed.origin;
  for (const auto id : candidates_.rows) {
    const auto& row = all_patterns()[id];
    const bool about_pci =
        (row.from & Pci) != 0 && origin.device && ((origin.from & kGpuDrivers) != 0 || facts_.gpu_slot(*origin.device));
    if ((row.from & origin.from) == 0 && !about_pci) continue;
    Match match;
    match.row = &row;
    if (!fits(row.pattern, origin.text, match)) continue;
    if (row.weight == Weight::Quiet) return;
    auto event = event_of(parsed);
    event.type = row.type;
    event.severity = row.severity;
    event.subject = match.subject.substr(0, 64);
    if (match.device) event.device = match.device;
    // One sign of two: the GPU itself has not said anything.
    if (row.type == Type::BusLost && (origin.from & kGpuDrivers) == 0 && (row.from & Pci) != 0)
      event.severity = Severity::Warning;
    if (is_false_ras(row.type, origin.text)) event.severity = Severity::Info;
    if ((origin.from & (I915 | Xe)) != 0) {
      if (const auto program = intel_program(origin.text)) {
        event.process = program->name;
        event.pid = program->pid;
      }
    }
    folding_.add(std::move(event), row.weight, place);
    return;
  }
}

void Classifier::hooks(const Parsed& parsed, const Folding::Place& place) {
  const auto& origin = parsed.origin;
  const auto text = origin.text;
  if (candidates_.has(Hook::Process)) process(parsed, place);
  if (candidates_.has(Hook::Xid) && (origin.from & (Nvidia | Nouveau | Bare)) != 0) xid(parsed, place);
  if (candidates_.has(Hook::Aer)) {
    if (auto finding = read_pcie(event_of(parsed), origin, facts_, place)) add(std::move(*finding));
  }
  if (candidates_.has(Hook::Ghes) && origin.from == Bare) {
    if (auto finding = ghes_.line(event_of(parsed), text, facts_, place)) add(std::move(*finding));
  }
  // An end may stand in the line of a frame; a head is never a frame of the trace before it.
  if (candidates_.has(Hook::Trace) && origin.from == Bare) add(traces_.head(event_of(parsed), text, place));
  if (candidates_.has(Hook::Frame)) add(traces_.frame(parsed.line.message, place));
  if (candidates_.has(Hook::TraceEnd)) traces_.end();
  if (candidates_.has(Hook::Oom)) {
    bool echo = false;
    auto found = traces_.out_of_memory(event_of(parsed), parsed.line.message, facts_, place, echo);
    add(std::move(found), echo ? Weight::Echo : Weight::Line);
  }
}

void Classifier::process(const Parsed& parsed, const Folding::Place& place) {
  if ((parsed.origin.from & (Amd | Bare)) == 0) return;
  const auto program = amd_program(parsed.origin.text);
  if (program && program->pid != 0)
    folding_.name_process(parsed.origin.device, program->name.substr(0, 64), program->pid, place);
}

void Classifier::xid(const Parsed& parsed, const Folding::Place& place) {
  const auto text = parsed.origin.text;
  auto event = event_of(parsed);
  event.type = Type::Xid;
  if (text.starts_with("Xid (")) {
    const auto close = text.find("): ");
    if (close == npos) return;
    const auto number = number_at<unsigned>(text.substr(close + 3));
    if (!number) return;
    event.device = nvidia_address(text.substr(5));
    event.severity = xid_severity(*number);
    event.subject = std::to_string(*number);
    // 154 carries its own verdict.
    if (*number == 154 && text.find("(None)") != npos) event.severity = Severity::Info;
    if (*number == 154 && (text.find("Reset Required") != npos || text.find("Reboot Required") != npos))
      event.severity = Severity::Critical;
  } else if (const auto at = text.find("SXid ("); at != npos && text.starts_with("nvidia-nvswitch")) {
    const auto close = text.find("): ", at);
    if (close == npos) return;
    const auto number = number_at<unsigned>(text.substr(close + 3));
    if (!number) return;
    event.device = nvidia_address(text.substr(at + 6));
    event.severity =
        text.find("Non-fatal") == npos && text.find(", Fatal") != npos ? Severity::Critical : Severity::Warning;
    event.subject = "S" + std::to_string(*number);
  } else if (text.starts_with("gsp: rc ")) {  // nouveau: r535_gsp_rc_triggered
    const auto type = text.find("type:");
    const auto number = type == npos ? std::nullopt : number_at<unsigned>(text.substr(type + 5));
    if (!number) return;
    event.severity = xid_severity(*number);
    event.subject = std::to_string(*number);
  } else {
    return;
  }
  if (const auto program = nvidia_program(text)) {
    event.process = program->name.substr(0, 64);
    event.pid = program->pid;
  }
  folding_.add(std::move(event), Weight::Line, place);
}

void Classifier::add(PcieFinding finding) {
  folding_.add(std::move(finding.event), finding.weight, finding.place);
}

void Classifier::add(Traces::Found found, Weight weight) {
  if (found) folding_.add(std::move(found->first), weight, found->second);
}

void Classifier::finish() {
  if (auto finding = ghes_.finish(facts_)) add(std::move(*finding));
  folding_.finish();
}

std::vector<Event> classify(std::string_view log) {
  struct Hit {
    std::uint64_t number;
    std::string_view text;
  };
  Classifier classifier;
  std::vector<Hit> hits;
  std::uint64_t number = 0;
  while (!log.empty()) {
    const auto end = log.find('\n');
    const auto text = log.substr(0, end);
    log.remove_prefix(end == npos ? log.size() : end + 1);
    ++number;
    if (classifier.learn(text)) hits.push_back({number, text});
  }
  for (const auto& hit : hits) classifier.feed(hit.text, hit.number);
  classifier.finish();
  auto events = classifier.take_closed();
  std::ranges::sort(events, {}, [](const Event& event) { return std::pair(event.line, event.type); });
  return events;
}

}  // namespace gpuhealth::klog
