#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# usage: units_test.sh verify|exposure|sysusers|tmpfiles|exporter SOURCE_DIR BUILD_DIR
# The unit as systemd's own tools see it. The program need not be installed: a copy names /bin/true.
set -euo pipefail
what=$1 source_dir=$2 build_dir=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unit=$work/gpuhealthd.service
sed 's|^ExecStart=.*|ExecStart=/bin/true|' "$build_dir/units/gpuhealthd.service" >"$unit"

case $what in
  verify)
    grep -q '^ExecStart=/.*sbin/gpuhealthd$' "$build_dir/units/gpuhealthd.service"
    systemd-analyze verify --recursive-errors=no --man=no "$unit"
    sed 's|^ExecStart=.*|ExecStart=/bin/true|' "$build_dir/units/gpuhealth-qualified.service" >"$work/gpuhealth-qualified.service"
    grep -q '^ExecStart=/.*bin/gpuhealthctl kernel wait ' "$build_dir/units/gpuhealth-qualified.service"
    cp "$source_dir/units/gpuhealth-qualified.target" "$work"
    systemd-analyze verify --recursive-errors=no --man=no "$work/gpuhealth-qualified.target" "$work/gpuhealth-qualified.service"
    # The same call must refuse a key that systemd does not know, else it proves nothing.
    echo 'NoSuchKey=yes' >>"$unit"
    sed -i 's/^WatchdogSec=.*/WatchdogSec=often/' "$unit"
    ! systemd-analyze verify --recursive-errors=no --man=no "$unit" 2>/dev/null
    ;;
  exposure)  # 0.5 of it is to see other users' processes: who uses a GPU
    systemd-analyze security --offline=yes --threshold=22 --no-pager "$unit"
    sed -i '/^CapabilityBoundingSet=/d; /^SystemCallFilter=/d' "$unit"
    ! systemd-analyze security --offline=yes --threshold=22 --no-pager "$unit" >/dev/null 2>&1
    ;;
  exporter)  # what is left: it has an address family that reaches the network, and its own user's
    exporter=$work/gpuhealth-exporter.service
    sed 's|^ExecStart=.*|ExecStart=/bin/true|' "$build_dir/exporter/gpuhealth-exporter.service" >"$exporter"
    systemd-analyze verify --recursive-errors=no --man=no "$exporter"
    systemd-analyze security --offline=yes --threshold=15 --no-pager "$exporter"
    sed -i '/^DynamicUser=/d; /^SystemCallFilter=/d; /^IPAddressDeny=/d' "$exporter"
    ! systemd-analyze security --offline=yes --threshold=15 --no-pager "$exporter" >/dev/null 2>&1
    ;;
  sysusers)
    said=$(systemd-sysusers --dry-run --root="$work" "$source_dir/units/gpuhealthd.sysusers.conf" 2>&1)
    grep -q "group 'gpuhealth'" <<<"$said" || { echo "$said"; exit 1; }
    ;;
  tmpfiles)
    # The folder and its mode; the access list needs the group, which no test may add to the machine.
    grep -v '^a+' "$source_dir/units/gpuhealthd.tmpfiles.conf" >"$work/tmpfiles.conf"
    if [ "$(id -u)" -ne 0 ]; then sed -i 's/ root root / - - /' "$work/tmpfiles.conf"; fi
    systemd-tmpfiles --root="$work" --create "$work/tmpfiles.conf"
    [ "$(stat -c %a "$work/var/lib/gpuhealthd")" = 750 ]
    ;;
  *)
    exit 2
    ;;
esac
