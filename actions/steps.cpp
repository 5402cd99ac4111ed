// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "actions/actuator.hpp"
#include "actions/pci_config.hpp"

namespace gpuhealth::actions {
namespace {

constexpr std::chrono::milliseconds kTrainingPause{10};
constexpr int kTrainingLooks = 100;

enum class StepKind : std::uint8_t {
#define STEP(id, name, does) id,
#include "actions/steps.def"
#undef STEP
};
std::optional<StepKind> kind_from(std::string_view name) {
#define STEP(id, text, does) \
  if (name == text) return StepKind::id;
#include "actions/steps.def"
#undef STEP
  return std::nullopt;
}

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> out;
  std::size_t at = 0;
  while (at <= text.size()) {
    const auto end = std::min(text.find('\n', at), text.size());
    out.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

unsigned value_of_bits(const LedgerStep& step) {
  return static_cast<unsigned>(number_of(step.value).value_or(0)) & step.mask;
}

Result<void> set_bits(const Machine& machine, const LedgerStep& step) {
  const auto now = read_config(machine, step.path, step.offset);
  if (!now) return tl::unexpected<Error>(now.error());
  return write_config(machine, step.path, step.offset, (*now & ~step.mask) | value_of_bits(step));
}

// `offset` is the PCI Express capability's.
Result<void> retrain(const Machine& machine, const LedgerStep& step) {
  const auto control = read_config(machine, step.path, step.offset + kLinkControl);
  if (!control) return tl::unexpected<Error>(control.error());
  if (auto set = write_config(machine, step.path, step.offset + kLinkControl, *control | kRetrainLink); !set)
    return set;
  for (int look = 0; look < kTrainingLooks; ++look) {
    const auto status = read_config(machine, step.path, step.offset + kLinkStatus);
    if (!status) return tl::unexpected<Error>(status.error());
    if ((*status & kLinkTraining) == 0) return {};
    machine.outside.pause(kTrainingPause);
  }
  return fail(ErrorCode::Unavailable, step.path + ": the link is still being trained after a second", ETIMEDOUT);
}

Result<void> run(const Machine& machine, const LedgerStep& step) {
  ProgramRun program;
  program.words = lines(step.value);
  const auto end = machine.outside.run(program);
  if (!end) return tl::unexpected<Error>(end.error());
  if (end->late) return fail(ErrorCode::Unavailable, program.words.front() + " did not end in time");
  if (end->code == 0) return {};
  return fail(ErrorCode::Unavailable,
              program.words.front() + " failed with exit code " + std::to_string(end->code) + ": " + end->said);
}

Result<void> read_zero(const Machine& machine, const LedgerStep& step) {
  const auto said = machine.outside.system->read_that_acts(machine.hardware, step.path);
  if (!said) return tl::unexpected<Error>(said.error());
  const auto line = said->substr(0, said->find('\n'));
  // Kernels before 6.0 print "gpu recover N".
  const auto number = number_of(line.substr(line.rfind(' ') == std::string::npos ? 0 : line.rfind(' ') + 1));
  if (number == 0) return {};
  return fail(ErrorCode::Unavailable, step.path + " says " + line + "; 0 would be success");
}

Result<void> put(const Machine& machine, const LedgerStep& step) {
  const auto slash = step.path.rfind('/');
  const std::string folder = step.path.substr(0, slash);
  if (!machine.files.is_folder(folder)) {
    if (auto made = machine.outside.system->make_folder(machine.files, folder, 0755); !made) return made;
  }
  return put_file(machine.files, *machine.outside.system, step.path, {true, step.value, 0644});
}

std::string printable(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  while (text.ends_with(' ')) text.pop_back();
  return text;
}

std::string hex(unsigned value) {
  char buffer[16];
  (void)std::snprintf(buffer, sizeof buffer, "0x%x", value);
  return buffer;
}

}  // namespace

LedgerStep value_step(std::string path, std::string value) {
  return {"value", std::move(path), 0, 0, std::move(value)};
}

LedgerStep program_step(const std::vector<std::string>& words) {
  std::string joined;
  for (const std::string& word : words) {
    std::string flat = word;
    std::ranges::replace(flat, '\n', ' ');
    joined += (joined.empty() ? "" : "\n") + flat;
  }
  return {"program", words.front(), 0, 0, joined};
}

Result<void> do_step(const Machine& machine, const LedgerStep& step) {
  const auto kind = kind_from(step.kind);
  if (!kind) return fail(ErrorCode::InvalidInput, "the ledger names a step of an unknown kind: " + step.kind);
  System& system = *machine.outside.system;
  switch (*kind) {
    case StepKind::Value:
      return system.write_value(machine.hardware, step.path, step.value);
    case StepKind::Cooling: {
      auto written = system.write_value(machine.hardware, step.path, step.value);
      if (!written && written.error().sys_errno == EAGAIN) return {};
      return written;
    }
    case StepKind::Bits:
      return set_bits(machine, step);
    case StepKind::Retrain:
      return retrain(machine, step);
    case StepKind::File:
      return put(machine, step);
    case StepKind::NoFile:
      return put_file(machine.files, system, step.path, {});
    case StepKind::Program:
      return run(machine, step);
    case StepKind::Read:
      return read_zero(machine, step);
  }
  return {};
}

std::string describe(const LedgerStep& step) {
  const auto kind = kind_from(step.kind);
  if (!kind) return step.kind;
  switch (*kind) {
    case StepKind::Value:
    case StepKind::Cooling:
      return "write " + printable(step.value) + " to " + step.path;
    case StepKind::Bits:
      return "set bits " + hex(step.mask) + " at " + hex(step.offset) + " of " + step.path + " to " +
             hex(value_of_bits(step));
    case StepKind::Retrain:
      return "train the link of " + step.path + " again";
    case StepKind::File:
      return "put " + step.path + " in place: " + printable(step.value);
    case StepKind::NoFile:
      return "remove " + step.path;
    case StepKind::Program:
      return "run " + printable(step.value);
    case StepKind::Read:
      return "read " + step.path + ", which acts";
  }
  return step.kind;
}

}  // namespace gpuhealth::actions
