// SPDX-License-Identifier: Apache-2.0
#include "grub/menu_script.hpp"

#include <algorithm>
#include <cctype>

namespace gpuhealth::grub {
namespace {

constexpr const char* kHead = R"(#!/bin/sh
# Made by gpuhealth-act for gpuhealthctl kernel; gpuhealthctl kernel unpin takes it away.
# Writes the first entries of the menu: entry 0 is where GRUB goes whenever it does not find what it looks for.
set -e
here=$(dirname "$0")

# body RELEASE: what the distribution's own script writes for it now; savedefault would change the user's choice.
body() {
  for script in "$here"/10_*; do
    case $script in *~ | *.dpkg-* | *.rpm* | *.bak) continue ;; esac
    [ -x "$script" ] || continue
    "$script" 2>/dev/null || true
  done | awk -v want="'gnulinux-$1-advanced-" '
    !on && /^[ \t]*menuentry / && index($0, want) { on = 1; next }
    on && /^[ \t]*}[ \t]*$/ { exit }
    on && !/^[ \t]*savedefault[ \t]*$/ { sub(/^\t/, ""); print }'
}

# entry ID TITLE RELEASE STORED ARGUMENTS
entry() {
  [ -e "/boot/vmlinuz-$3" ] || [ "$6" = elsewhere ] || {
    echo "gpuhealth: kernel $3 is no longer in /boot" >&2
    return 0
  }
  text=$(body "$3")
  case $text in *linux*) ;; *) text=$($4) ;; esac
  [ -n "$text" ] || return 0
  printf "menuentry '%s' --class gnu-linux --class gnu --class os --id '%s' {\n" "$2" "$1"
  # Tells a trial that was started from one that was not: GRUB writes it before the kernel runs.
  [ "$1" != gpuhealth-trial ] || printf '\tset gpuhealth_trial=started\n\tsave_env gpuhealth_trial\n'
  printf '%s\n' "$text" | awk -v more="$5" '/^[ \t]*linux(16|efi)?[ \t]/ && more != "" { $0 = $0 " " more } { print }'
  printf '}\n'
}
)";

constexpr const char* kTrialArguments =
    "panic=10 oops=panic softlockup_panic=1 hung_task_panic=1 systemd.watchdog_sec=60 gpuhealth.trial=1";

std::string stored(const std::string& name, const std::string& body) {
  return name + "() {\n  cat <<'GPUHEALTH_END'\n" + body + (body.ends_with('\n') || body.empty() ? "" : "\n") +
         "GPUHEALTH_END\n}\n";
}

std::string call(const std::string& id, const std::string& title, const MenuScriptEntry& entry, const std::string& name,
                 const std::string& arguments) {
  // A kernel whose image has another name than Debian's is looked for by GRUB alone.
  const bool elsewhere = entry.body.find("/vmlinuz-" + entry.release) == std::string::npos;
  return "entry " + id + " '" + title + " " + entry.release + "' '" + entry.release + "' " + name + " '" + arguments +
         "' " + (elsewhere ? "elsewhere" : "here") + "\n";
}

}  // namespace

bool is_plain_release(const std::string& release) {
  return !release.empty() && release.size() < 128 &&
         std::ranges::all_of(
             release,
             [](unsigned char c) {
               return std::isalnum(c) != 0 || c == '.' || c == '+' || c == '~' || c == '_' || c == '-';
             });
}

std::string menu_script(const MenuScriptEntry& pinned, const MenuScriptEntry& trial) {
  std::string out = kHead;
  if (!pinned.release.empty()) out += stored("stored_pinned", pinned.body);
  if (!trial.release.empty()) out += stored("stored_trial", trial.body);
  if (!pinned.release.empty()) {
    out += call("gpuhealth-pinned", "Linux", pinned, "stored_pinned", "");
    // Behind 00_header, so that neither a number nor a later drop-in decides; a one-shot still does.
    out +=
        "cat <<'GPUHEALTH_END'\nif [ -z \"${boot_once}\" ]; then\n  set default=gpuhealth-pinned\nfi\nGPUHEALTH_END\n";
  }
  if (!trial.release.empty()) {
    out += call("gpuhealth-trial", "Trial of Linux", trial, "stored_trial", kTrialArguments);
    out +=
        "cat <<'GPUHEALTH_END'\nif [ \"${default}\" = gpuhealth-trial ]; then\n  set fallback=0\nfi\nGPUHEALTH_END\n";
  }
  return out;
}

}  // namespace gpuhealth::grub
