// SPDX-License-Identifier: Apache-2.0
#include "cli/kernel.hpp"
#include "grub/last_good.hpp"

namespace gpuhealth::cli {
namespace {

Json words(std::span<const std::string> list) {
  Json out = Json::array();
  for (const std::string& word : list) out.push_back(word);
  return out;
}

Json json_choice(const KernelView& view, const grub::Choice& choice) {
  Json out = {{"path", nullptr}, {"title", nullptr}, {"release", nullptr}, {"reason", choice.reason}};
  if (!choice.known) return out;
  for (const grub::FlatEntry& entry : view.entries) {
    if (entry.path != choice.path) continue;
    out["path"] = entry.path_text;
    out["title"] = entry.entry->title;
    out["release"] = text_or_null(entry.release);
  }
  return out;
}

Json json_entry(const KernelView& view, const grub::FlatEntry& entry) {
  const grub::Boot& boot = view.inventory.boot;
  const grub::BootSteps& steps = entry.entry->steps;
  const auto is = [&](const grub::Choice& choice) { return choice.known && choice.path == entry.path; };
  return {{"id", entry.entry->id},
          {"path", entry.path_text},
          {"title", entry.entry->title},
          {"release", text_or_null(entry.release)},
          {"kind", to_string(entry.kind)},
          {"default", is(boot.lasting)},
          {"next", is(boot.next)},
          {"certain", entry.entry->certain},
          {"restricted", entry.entry->restricted},
          {"image", text_or_null(steps.linux_image.empty() ? steps.chainloader : steps.linux_image)},
          {"arguments", text_or_null(steps.arguments)},
          {"initrds", words(steps.initrds)}};
}

Json json_match(const grub::AdvisoryMatch& found) {
  const grub::Advisory& a = *found.advisory;
  return {{"id", a.id},
          {"title", a.title},
          {"severity", a.severity},
          {"confidence", a.confidence},
          {"applies", found.applies == grub::Tri::Yes ? Json(true) : Json(nullptr)},
          {"why", found.why},
          {"symptom", a.symptom},
          {"workarounds", words(a.workarounds)},
          {"remedies", words(a.remedies)},
          {"links", words(a.links)}};
}

Json json_matches(std::span<const grub::AdvisoryMatch> matches) {
  Json out = Json::array();
  for (const auto& found : matches) out.push_back(json_match(found));
  return out;
}

Json json_kernel(const KernelView& view, const grub::Kernel& kernel) {
  Json package = nullptr;
  if (kernel.package)
    package = {{"name", kernel.package->name},
               {"version", kernel.package->version},
               {"source", text_or_null(kernel.package->source)},
               {"configured", kernel.package->configured}};
  const auto verdict = view.qualifications.kernels.find(kernel.release);
  const auto matches = view.matches.find(kernel.release);
  Json advisories = Json::array();
  if (matches != view.matches.end())
    for (const auto& found : matches->second)
      advisories.push_back({{"id", found.advisory->id},
                            {"severity", found.advisory->severity},
                            {"applies", found.applies == grub::Tri::Yes ? Json(true) : Json(nullptr)}});
  return {{"release", kernel.release},
          {"build", text_or_null(kernel.build)},
          {"package", package},
          {"image", text_or_null(kernel.image)},
          {"signed", kernel.image.empty() ? Json(nullptr) : Json(kernel.image_signed)},
          {"initramfs", text_or_null(kernel.initramfs)},
          {"modules", kernel.modules},
          {"amdgpu", to_string(kernel.amdgpu)},
          {"dkms_version", text_or_null(kernel.dkms_version)},
          {"running", kernel.running},
          {"next", kernel.next},
          {"default", kernel.lasting},
          {"installed",
           kernel.installed == 0 ? Json(nullptr) : time_or_null(wall_from_microseconds(kernel.installed * 1'000'000))},
          {"qualification",
           verdict == view.qualifications.kernels.end() ? Json("installed") : Json(to_string(verdict->second.state))},
          {"entries", words(kernel.entries)},
          {"problems", words(kernel.problems)},
          {"advisories", advisories}};
}

Json json_choices(const KernelView& view) {
  const grub::Choices& choices = view.choices;
  return {{"pinned", text_or_null(choices.pinned)},   {"temporary", choices.temporary},
          {"trial", text_or_null(choices.trial)},     {"hold", choices.hold},
          {"expires", text_or_null(choices.expires)}, {"expired", view.pin_over},
          {"protect", words(choices.protect)}};
}

void add_boot(const KernelView& view, Json& out) {
  const grub::Boot& boot = view.inventory.boot;
  out["loader"] = to_string(boot.loader);
  out["unsupported"] = text_or_null(boot.unsupported);
  out["refusal"] = text_or_null(boot.refusal);
  out["config"] = text_or_null(boot.config);
}

void add_choices(const KernelView& view, Json& out) {
  const grub::Boot& boot = view.inventory.boot;
  out["default"] = json_choice(view, boot.lasting);
  out["next"] = json_choice(view, boot.next);
  out["afterwards"] = boot.afterwards ? json_choice(view, *boot.afterwards) : Json(nullptr);
}

}  // namespace

Json json_kernel_list(const KernelView& view) {
  Json out;
  out["root"] = view.root;
  add_boot(view, out);
  out["entries"] = Json::array();
  for (const grub::FlatEntry& entry : view.entries) out["entries"].push_back(json_entry(view, entry));
  add_choices(view, out);
  out["kernels"] = Json::array();
  for (const grub::Kernel& kernel : view.inventory.kernels) out["kernels"].push_back(json_kernel(view, kernel));
  out["choices"] = json_choices(view);
  out["warnings"] = words(view.inventory.boot.warnings);
  return out;
}

Json json_kernel_status(const KernelView& view) {
  Json out;
  out["summary"] = next_boot_line(view);
  add_boot(view, out);
  out["running"] = text_or_null(view.inventory.running);
  add_choices(view, out);
  out["choices"] = json_choices(view);
  out["verdicts"] = Json::array();
  for (const auto& [release, known] : view.qualifications.kernels)
    out["verdicts"].push_back(
        {{"release", release},
         {"state", to_string(known.state)},
         {"reason", text_or_null(known.reason)},
         {"since", known.since == 0 ? Json(nullptr) : time_or_null(wall_from_microseconds(known.since * 1'000'000))},
         {"on_trial", known.on_trial()},
         {"trials", known.trials},
         {"gpus", words(known.gpus)}});
  out["last_known_good"] = text_or_null(grub::last_known_good(view.inventory, view.qualifications, {}));
  out["advisories"] = Json::array();
  for (const grub::Kernel& kernel : view.inventory.kernels) {
    const auto matches = view.matches.find(kernel.release);
    if (matches == view.matches.end()) continue;
    for (const auto& found : matches->second) {
      Json one = json_match(found);
      one["release"] = kernel.release;
      out["advisories"].push_back(std::move(one));
    }
  }
  out["warnings"] = words(view.inventory.boot.warnings);
  return out;
}

Json json_kernel_plan(const KernelView& view, const grub::Plan& plan, std::string_view operation) {
  return {{"operation", operation},
          {"loader", to_string(view.inventory.boot.loader)},
          {"pinned", text_or_null(plan.wish.pinned)},
          {"trial", text_or_null(plan.wish.trial)},
          {"steps", words(plan.steps)},
          {"files", words(plan.files)},
          {"warnings", words(plan.warnings)}};
}

Json json_kernel_advisories(const KernelView& view) {
  Json out;
  out["gfx"] = words(view.gfx);
  out["advisories"] = Json::array();
  for (const grub::Advisory& a : view.advisories.advisories) {
    Json kernels = Json::array();
    for (const auto& [release, matches] : view.matches)
      for (const auto& found : matches)
        if (found.advisory == &a)
          kernels.push_back({{"release", release},
                             {"applies", found.applies == grub::Tri::Yes ? Json(true) : Json(nullptr)},
                             {"why", found.why}});
    out["advisories"].push_back({{"id", a.id},
                                 {"title", a.title},
                                 {"vendor", a.vendor},
                                 {"severity", a.severity},
                                 {"confidence", a.confidence},
                                 {"gfx", words(a.gfx)},
                                 {"symptom", a.symptom},
                                 {"canary", text_or_null(a.canary)},
                                 {"workarounds", words(a.workarounds)},
                                 {"remedies", words(a.remedies)},
                                 {"introduced_by", text_or_null(a.introduced_by)},
                                 {"fixed_by", text_or_null(a.fixed_by)},
                                 {"links", words(a.links)},
                                 {"kernels", kernels}});
  }
  out["mistakes"] = words(view.advisories.mistakes);
  return out;
}

Json json_safe_to_update(const SafeToUpdate& answer) {
  return {{"answer", answer.answer},
          {"candidate", text_or_null(answer.candidate)},
          {"reason", answer.reason},
          {"advisories", json_matches(answer.matches)}};
}

Json json_kernel_log(std::span<const LedgerEntry> entries) {
  Json out;
  out["changes"] = Json::array();
  for (const LedgerEntry& entry : entries) {
    Json files = Json::array();
    for (const auto& [path, state] : entry.prior) files.push_back(path);
    out["changes"].push_back({{"id", entry.id},
                              {"action", entry.action},
                              {"release", text_or_null(entry.target)},
                              {"state", entry.state},
                              {"started", entry.started},
                              {"note", text_or_null(entry.note)},
                              {"files", files}});
  }
  return out;
}

}  // namespace gpuhealth::cli
