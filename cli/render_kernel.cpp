// SPDX-License-Identifier: Apache-2.0
#include "cli/kernel.hpp"
#include "cli/text.hpp"

namespace gpuhealth::cli {
namespace {

Tone tone_of_severity(std::string_view severity) {
  if (severity == "critical") return Tone::Critical;
  return severity == "high" ? Tone::Warning : Tone::Note;
}

std::string marks(const KernelView& view, const grub::Kernel& kernel) {
  std::string out;
  const auto add = [&](bool is, std::string_view word) {
    if (is) out += (out.empty() ? "" : ", ") + std::string(word);
  };
  add(kernel.running, "running");
  add(kernel.next, "next");
  add(kernel.lasting, "default");
  add(kernel.release == view.choices.pinned, "pinned");
  add(kernel.release == view.choices.trial, "trial");
  const auto verdict = view.qualifications.kernels.find(kernel.release);
  if (verdict != view.qualifications.kernels.end()) add(true, to_string(verdict->second.state));
  return out;
}

void add_matches(Page& page, const KernelView& view, const std::string& release, const Terminal& terminal) {
  const auto matches = view.matches.find(release);
  if (matches == view.matches.end()) return;
  for (const auto& found : matches->second) {
    const std::string sure = found.applies == grub::Tri::Yes ? "" : "perhaps: ";
    page.paragraph(
        {sure + found.advisory->title + " [" + found.advisory->id + "]", tone_of_severity(found.advisory->severity)}, 4,
        terminal.columns);
    page.paragraph({found.why}, 6, terminal.columns);
  }
}

void add_warnings(Page& page, std::span<const std::string> warnings, const Terminal& terminal) {
  for (const std::string& warning : warnings) page.paragraph({warning, Tone::Note}, 2, terminal.columns);
}

}  // namespace

Page render_kernel_status(const KernelView& view, const Terminal& terminal) {
  Page page;
  const grub::Boot& boot = view.inventory.boot;
  page.paragraph({next_boot_line(view), Tone::Heading}, 0, terminal.columns);
  if (boot.lasting.path != boot.next.path || boot.lasting.known != boot.next.known) {
    const std::string release = release_of_choice(view, boot.lasting);
    page.paragraph(
        {"After that: " + (release.empty() ? std::string("not known") : release) + ", " + boot.lasting.reason}, 0,
        terminal.columns);
  }
  if (boot.afterwards)
    page.paragraph({"But the boot after the next one will be " + release_of_choice(view, *boot.afterwards) + ": " +
                        boot.afterwards->reason,
                    Tone::Warning},
                   0, terminal.columns);
  page.line(
      {{"Boot loader: " + std::string(to_string(boot.loader)) + (boot.config.empty() ? "" : ", " + boot.config)}});
  if (!boot.refusal.empty()) page.paragraph({boot.refusal, Tone::Warning}, 0, terminal.columns);
  if (!view.choices.pinned.empty())
    page.line({{"Pinned: " + view.choices.pinned + (view.choices.temporary ? " (for the length of a trial)" : "") +
                (view.choices.expires.empty() ? "" : ", until " + view.choices.expires)}});
  if (view.pin_over)
    page.paragraph({"The time of the pin is over: gpuhealthctl kernel unpin gives the distribution its choice back.",
                    Tone::Warning},
                   0, terminal.columns);
  if (!view.choices.trial.empty()) page.line({{"Trial: " + view.choices.trial}});
  if (view.choices.hold) page.line({{"New kernels wait for a verdict (hold)."}});
  for (const auto& [release, known] : view.qualifications.kernels) {
    const bool running = release == view.inventory.running;
    const bool bad =
        known.state == grub::QualificationState::Rejected || known.state == grub::QualificationState::NeverCameBack;
    if (!running && !bad) continue;
    page.paragraph({release + (running ? " runs, and is " : " is ") + std::string(to_string(known.state)) +
                        (known.reason.empty() ? "" : ": " + known.reason),
                    bad ? Tone::Warning : Tone::Plain},
                   0, terminal.columns);
  }
  for (const grub::Kernel& kernel : view.inventory.kernels) {
    const auto matches = view.matches.find(kernel.release);
    if (matches == view.matches.end() || matches->second.empty()) continue;
    page.line({{kernel.release}, {kernel.next ? " (boots next)" : ""}});
    add_matches(page, view, kernel.release, terminal);
  }
  add_warnings(page, boot.warnings, terminal);
  return page;
}

Page render_kernel_list(const KernelView& view, const Terminal& terminal) {
  Page page;
  std::vector<Line> rows;
  for (const grub::Kernel& kernel : view.inventory.kernels) {
    const auto matches = view.matches.find(kernel.release);
    std::size_t sure = 0;
    if (matches != view.matches.end())
      for (const auto& found : matches->second) sure += found.applies == grub::Tri::Yes ? 1 : 0;
    rows.push_back({{kernel.release},
                    {kernel.package ? kernel.package->version : ""},
                    {to_string(kernel.amdgpu)},
                    {sure == 0 ? "" : std::to_string(sure), sure == 0 ? Tone::Plain : Tone::Warning},
                    {marks(view, kernel)},
                    {kernel.problems.empty() ? "" : kernel.problems.front(), Tone::Warning}});
  }
  if (rows.empty()) page.line({{"No kernel is installed here."}});
  if (!rows.empty())
    add_table(
        page,
        {{"kernel"}, {"package"}, {"amdgpu"}, {"advisories", Align::Right}, {"is"}, {"problem", Align::Left, true}},
        rows, terminal);
  page.line();
  rows.clear();
  for (const grub::FlatEntry& entry : view.entries) {
    const grub::Boot& boot = view.inventory.boot;
    const bool next = boot.next.known && boot.next.path == entry.path;
    const bool lasting = boot.lasting.known && boot.lasting.path == entry.path;
    rows.push_back({{next      ? "next"
                     : lasting ? "default"
                               : ""},
                    {to_string(entry.kind)},
                    {entry.release},
                    {entry.entry->title}});
  }
  if (!rows.empty()) add_table(page, {{""}, {"entry"}, {"kernel"}, {"title", Align::Left, true}}, rows, terminal);
  page.line();
  page.paragraph({next_boot_line(view)}, 0, terminal.columns);
  add_warnings(page, view.inventory.boot.warnings, terminal);
  return page;
}

Page render_kernel_plan(const grub::Plan& plan, const Terminal& terminal) {
  Page page;
  for (const std::string& step : plan.steps) page.paragraph({"- " + step}, 0, terminal.columns);
  page.line({{"Files: "}});
  for (const std::string& file : plan.files) page.line({{"  " + file}});
  add_warnings(page, plan.warnings, terminal);
  return page;
}

Page render_kernel_advisories(const KernelView& view, const Terminal& terminal) {
  Page page;
  bool any = false;
  for (const grub::Kernel& kernel : view.inventory.kernels) {
    const auto matches = view.matches.find(kernel.release);
    if (matches == view.matches.end() || matches->second.empty()) continue;
    any = true;
    page.line({{kernel.release, Tone::Heading}});
    for (const auto& found : matches->second) {
      const grub::Advisory& a = *found.advisory;
      page.paragraph({(found.applies == grub::Tri::Yes ? "" : "perhaps: ") + a.title + " [" + a.id + "]",
                      tone_of_severity(a.severity)},
                     2, terminal.columns);
      page.paragraph({a.symptom}, 4, terminal.columns);
      page.paragraph({found.why}, 4, terminal.columns);
      for (const std::string& text : a.workarounds) page.paragraph({"without reboot: " + text}, 4, terminal.columns);
      for (const std::string& text : a.remedies) page.paragraph({"remedy: " + text}, 4, terminal.columns);
      if (!a.links.empty()) page.line({{"    "}, whole(a.links.front())});
    }
  }
  if (!any)
    page.line({{"No advisory names a kernel that is installed here (" +
                std::to_string(view.advisories.advisories.size()) + " are known)."}});
  for (const std::string& mistake : view.advisories.mistakes)
    page.paragraph({mistake, Tone::Warning}, 0, terminal.columns);
  return page;
}

Page render_safe_to_update(const SafeToUpdate& answer, const Terminal& terminal) {
  Page page;
  const Tone tone = answer.answer == "no" ? Tone::Warning : answer.answer == "yes" ? Tone::Good : Tone::Note;
  page.paragraph(
      {answer.answer + (answer.candidate.empty() ? "" : ", " + answer.candidate) + ": " + answer.reason, tone}, 0,
      terminal.columns);
  for (const auto& found : answer.matches) {
    page.paragraph({(found.applies == grub::Tri::Yes ? "" : "perhaps: ") + found.advisory->title}, 2, terminal.columns);
    for (const std::string& text : found.advisory->workarounds)
      page.paragraph({"without reboot: " + text}, 4, terminal.columns);
  }
  return page;
}

Page render_kernel_log(std::span<const LedgerEntry> entries, const Terminal& terminal) {
  Page page;
  std::vector<Line> rows;
  for (const LedgerEntry& entry : entries)
    rows.push_back({{entry.started},
                    {entry.action},
                    {entry.target},
                    {entry.state, entry.state == "done" ? Tone::Plain : Tone::Warning},
                    {entry.note}});
  if (rows.empty()) page.line({{"Nothing was changed yet."}});
  if (!rows.empty())
    add_table(page, {{"when"}, {"what"}, {"kernel"}, {"state"}, {"note", Align::Left, true}}, rows, terminal);
  return page;
}

}  // namespace gpuhealth::cli
