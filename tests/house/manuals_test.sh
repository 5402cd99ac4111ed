#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: tests/house/manuals_test.sh SOURCE_DIR
# man has nothing to say against our pages.
set -uo pipefail
rc=0
for page in "$1"/docs/man/*.[0-9]; do
  grep -q '^\.so ' "$page" && continue  # another page under this name
  said=$(LC_ALL=C.UTF-8 MANROFFSEQ='' MANWIDTH=80 man --warnings -E UTF-8 -l -Tutf8 -Z "$page" 2>&1 >/dev/null)
  [ -z "$said" ] || { echo "$(basename "$page"): $said" >&2; rc=1; }
done
exit "$rc"
