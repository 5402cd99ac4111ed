# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by the scripts: where the repository is, progress lines, logs.
# Output of compilers and package managers goes to build/logs/; a step that fails shows the end of its log.

repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
logs=$repo/build/logs
mkdir -p "$logs"

# The cache is shared by every clone of the repository.
export CCACHE_BASEDIR=$repo CCACHE_NOHASHDIR=1

step_number=0
step_total=${step_total:-0}

# say TEXT: one step's line.
say() {
  step_number=$((step_number + 1))
  printf '[%d/%d] %s\n' "$step_number" "$step_total" "$*"
}

# logged NAME COMMAND...: runs it with its output in build/logs/NAME.log; prints the seconds, or the end of the log.
logged() {
  local name=$1 start=$SECONDS rc=0
  shift
  "$@" >"$logs/$name.log" 2>&1 || rc=$?
  if [ "$rc" -eq 0 ]; then
    printf '      done in %d s\n' $((SECONDS - start))
  else
    printf '      failed after %d s; the end of build/logs/%s.log:\n' $((SECONDS - start)) "$name"
    tail -n "${log_lines:-30}" "$logs/$name.log" | sed 's/^/      | /'
  fi
  return "$rc"
}

die() {
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
  exit 1
}
