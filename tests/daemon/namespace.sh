#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# namespace.sh BIN_DIR: the unmodified daemon, without --sysroot, where a made-up machine's /sys is mounted, in a mount and
# pid namespace of its own with a private bus. Needs root, unshare, dbus, busctl. Leaves nothing behind.
set -eu
if [ -z "${INSIDE:-}" ]; then
  INSIDE=1 exec unshare -mpf --propagation private --kill-child --mount-proc bash "$0" "$@"
fi
bin=$1
fail() { echo "FAILED: $*" >&2; cat "$home"/*.log >&2 || :; exit 1; }
# has WANTED COMMAND…: a part of what it prints.
has() {
  local wanted=$1 out rc=0; shift
  out=$("$@" 2>&1) || rc=$?
  [[ $out == *"$wanted"* ]] || fail "$*: wanted '$wanted', got rc $rc: $out"
  echo "ok: ${1##*/} ${*: -1}: $wanted"
}

home=$(mktemp -d)
mount -t tmpfs none "$home"  # goes with the namespace
# Only the mount point lies outside of it: taken away at once by a name that the mount does not hold.
trap 'umount -l "$home" && rmdir "$home"' EXIT
mkdir "$home/state" "$home/config" "$home/machine"
"$bin/gpuhealth-mktree" "$home/machine" >/dev/null
mount --bind "$home/machine/sys" /sys
cat > "$home/config/gpuhealthd.yaml" <<'YAML'
sampling: {interval: 500ms, slow-every: 1}
health:
  overheating: {for: 1}
YAML
cat > "$home/bus.conf" <<XML
<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-BUS Bus Configuration 1.0//EN" "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>custom</type><listen>unix:path=$home/bus</listen><auth>EXTERNAL</auth>
<policy context="default"><allow user="*"/><allow own="*"/><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/></policy></busconfig>
XML
address=unix:path=$home/bus
exec 5< <(exec dbus-daemon --config-file="$home/bus.conf" --nofork --nopidfile --nosyslog --print-address=1 2>"$home/bus.log")
read -rt 20 _ <&5 || fail "dbus-daemon did not start"

# Watches before there is anything to see.
exec 6< <(exec busctl --address="$address" monitor org.gpuhealth1 2>&1)
read -rt 20 _ <&6 || fail "busctl monitor did not start"

"$bin/gpuhealthd" --bus "$address" --state-dir "$home/state" --config-dir "$home/config" 2>"$home/gpuhealthd.log" &
daemon=$!
waits=" InterfacesAdded PropertiesChanged ConditionChanged overheating "
while [ -n "${waits// /}" ]; do
  read -rt 40 line <&6 || fail "busctl monitor did not see:$waits"
  for word in $waits; do [[ $line != *"$word"* ]] || waits=${waits/ $word / }; done
done
echo "ok: busctl monitor: InterfacesAdded, PropertiesChanged, ConditionChanged"

# The machine that gpuhealth-mktree makes: the second card is too hot.
ctl() { "$bin/gpuhealthctl" --bus "$address" "$@"; }
has 'overheating' ctl conditions
has 'RX 7900 XTX' ctl status
has '"overheating"' ctl conditions --json
path=$(busctl --address="$address" tree --list org.gpuhealth1 | grep -m1 /device/)
has '.RuntimeStatus' busctl --address="$address" introspect org.gpuhealth1 "$path"
has '"active"' busctl --address="$address" get-property org.gpuhealth1 "$path" org.gpuhealth1.Device RuntimeStatus
has 'ConditionChanged' busctl --address="$address" introspect org.gpuhealth1 /org/gpuhealth1
has "$(cat /proc/sys/kernel/random/boot_id)" busctl --address="$address" get-property org.gpuhealth1 /org/gpuhealth1 org.gpuhealth1.Manager BootId
kill "$daemon"
wait "$daemon" || fail "the daemon ended with $?"
echo "all held"
