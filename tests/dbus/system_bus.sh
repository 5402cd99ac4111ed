#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# system_bus.sh SERVER DBUS_DIR: the installed files under the system's own dbus-daemon and polkitd, in a mount and pid
# namespace of their own. Needs root, unshare, dbus and polkitd. Leaves nothing behind.
set -eu
if [ -z "${INSIDE:-}" ]; then
  INSIDE=1 exec unshare -mpf --propagation private --kill-child --mount-proc bash "$0" "$@"
fi
server=$1 files=$2
manager=(org.gpuhealth1 /org/gpuhealth1 org.gpuhealth1.Manager)
hot=overheating-uid-49afc8b43a8a6d30-1764515000
hot_path=/org/gpuhealth1/condition/overheating_2duid_2d49afc8b43a8a6d30_2d1764515000
card_path=/org/gpuhealth1/device/uid_2d49afc8b43a8a6d30

mount -t tmpfs -o mode=755 none /run
mkdir -p /run/dbus /run/polkit-1
for dir in dbus-1/system.d dbus-1/system-services polkit-1/actions polkit-1/rules.d; do
  upper=/run/overlay/${dir//\//_}
  mkdir -p "$upper/upper" "$upper/work" "/usr/share/$dir"
  mount -t overlay overlay -o "lowerdir=/usr/share/$dir,upperdir=$upper/upper,workdir=$upper/work" "/usr/share/$dir"
  chmod 755 "$upper/upper"
done
cp "$files/org.gpuhealth1.conf" /usr/share/dbus-1/system.d/
cp "$files/org.gpuhealth1.policy" /usr/share/polkit-1/actions/
# An administrator's rule: the user "games" may, to see that polkit is what decides.
cat > /usr/share/polkit-1/rules.d/50-test.rules <<'RULE'
polkit.addRule(function(action, subject) {
  if (action.id == "org.gpuhealth1.device.manage" && subject.user == "games") return polkit.Result.YES;
});
RULE
cp "$server" /run/test_dbus_server  # where all users may run it
chmod 755 /run/test_dbus_server

fail() { echo "FAILED: $*" >&2; exit 1; }
# shellcheck disable=SC2016  # the inner shell expands its own arguments
# Asks the bus again and again until somebody owns a name.
await_name() { timeout 20 bash -c 'until busctl --system --timeout=1 call org.freedesktop.DBus /org/freedesktop/DBus \
  org.freedesktop.DBus GetNameOwner s "$1" >/dev/null 2>&1; do read -rt 0.02 <> <(:) || :; done' _ "$1" || fail "$1 did not come up"; }
as() { local user=$1; shift; setpriv --reuid "$user" --regid "$(id -g "$user")" --clear-groups "$@"; }
# expect USER WANTED COMMAND…: WANTED is a part of what it prints, or "-" followed by a part of the error.
expect() {
  local user=$1 wanted=$2 out rc=0; shift 2
  out=$(as "$user" "$@" 2>&1) || rc=$?
  case $wanted in
    -*) if [ $rc -eq 0 ] || [[ $out != *"${wanted#-}"* ]]; then fail "$user: $*: wanted error '${wanted#-}', got rc $rc: $out"; fi ;;
    *) if [ $rc -ne 0 ] || [[ $out != *"$wanted"* ]]; then fail "$user: $*: wanted '$wanted', got rc $rc: $out"; fi ;;
  esac
  echo "ok: $user: ${*: -3}: ${wanted}"
}

exec 5< <(exec dbus-daemon --system --nofork --nopidfile --nosyslog --print-address=1 2>/run/dbus.log)
read -rt 20 _ <&5 || fail "dbus-daemon did not start: $(cat /run/dbus.log)"
/usr/lib/polkit-1/polkitd --no-debug >/run/polkitd.log 2>&1 &
await_name org.freedesktop.PolicyKit1

# Before the daemon is there: nobody cannot take its place.
exec 6< <(exec setpriv --reuid nobody --regid nogroup --clear-groups /run/test_dbus_server)
thief=$!
read -rt 20 line <&6 || fail "the thief said nothing"
[[ $line == *"problem: not-permitted: the bus refuses the name org.gpuhealth1"* ]] || fail "thief: $line"
echo "ok: nobody: own org.gpuhealth1: $line"
kill "$thief"

/run/test_dbus_server &
await_name org.gpuhealth1

# Reading is open to all.
for user in root nobody; do
  expect $user '"Navi 3x"' busctl --system get-property org.gpuhealth1 $card_path org.gpuhealth1.Device Family
  expect $user "$hot_path" busctl --system call org.gpuhealth1 /org/gpuhealth1 org.freedesktop.DBus.ObjectManager GetManagedObjects
  expect $user 'Acknowledge' busctl --system introspect org.gpuhealth1 $hot_path org.gpuhealth1.Condition
  expect $user '-no reading has the name' busctl --system call "${manager[@]}" GetHistory ssttu uid-49afc8b43a8a6d30 nose 0 1 1
done

# Changing asks polkit.
expect nobody '-polkit' busctl --system call "${manager[@]}" AcknowledgeCondition s $hot
expect nobody '-polkit' busctl --system call org.gpuhealth1 $hot_path org.gpuhealth1.Condition Acknowledge
expect nobody '-polkit' busctl --system call "${manager[@]}" Reload
expect nobody 'b false' busctl --system get-property org.gpuhealth1 $hot_path org.gpuhealth1.Condition Acknowledged
expect games '' busctl --system call "${manager[@]}" Reload
expect root '' busctl --system call org.gpuhealth1 $hot_path org.gpuhealth1.Condition Acknowledge
expect nobody 'b true' busctl --system get-property org.gpuhealth1 $hot_path org.gpuhealth1.Condition Acknowledged
expect nobody '"ok"' busctl --system get-property "${manager[@]}" Health

# An interface that the policy does not name does not reach the daemon.
expect nobody '-Access denied' busctl --system call org.gpuhealth1 /org/gpuhealth1 org.freedesktop.DBus.Debug.Stats GetStats
echo "all held"
