#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: tests/house/manuals_test.sh SOURCE_DIR BUILD_DIR
# Each program that is installed has a manual page that man likes and that names every option of its --help.
set -uo pipefail
source=$1 bin=$2/bin rc=0
complain() { echo "$*" >&2; rc=1; }
for program in gpuhealthd gpuhealthctl gpuhealth-sim gpuhealth-notify gpuhealth-exporter gpuhealth-canary gpuhealth-reader gpuhealth-act; do
  page=$(ls "$source/docs/man/$program".[18] 2>/dev/null)
  [ -n "$page" ] || { complain "$program has no page in docs/man"; continue; }
  words=$(sed 's/\\-/-/g; s/\\f[BIRP]//g' "$page")
  while read -r option; do
    grep -qE -- "(^|[^a-z-])$option([^a-z-]|$)" <<<"$words" || complain "$(basename "$page") does not name $option"
  done < <("$bin/$program" --help 2>&1 | grep -oE -- '--[a-z][a-z-]+' | grep -vx -- --help | sort -u)
done
for page in "$source"/docs/man/*.[0-9]; do
  grep -q "^\.so " "$page" && continue  # another page under this name
  said=$(LC_ALL=C.UTF-8 MANROFFSEQ='' MANWIDTH=80 man --warnings -E UTF-8 -l -Tutf8 -Z "$page" 2>&1 >/dev/null)
  [ -z "$said" ] || complain "$(basename "$page"): $said"
done
exit "$rc"
