#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: service.py OUT_DIR

The daemon under real systemd as PID 1, with the unit as installed, on a synthetic machine below /srv: start, watchdog, kill, stop, sandbox,
journal, state, bus. OUT_DIR holds what build_image made. One line a fact; exit 1 when one does not hold."""
import json
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from kernel_selection import fact, failures  # noqa: E402
from machine import Machine, overlay, product_of, settle, unpack_product  # noqa: E402

DROP_IN = """[Service]
ExecStart=
ExecStart=/usr/sbin/gpuhealthd --sysroot /srv/machine
"""


def show(vm, key):
    return vm.run(f"systemctl show gpuhealthd -p {key} --value")[1]


def until(vm, script, seconds=90):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if vm.run(script)[0] == 0:
            return True
        time.sleep(1)
    return False


def start(vm):
    vm.run("gpuhealth-mktree /srv/machine >/dev/null; mkdir -p /etc/systemd/system/gpuhealthd.service.d; systemd-sysusers; "
           f"systemd-tmpfiles --create; printf '%s' '{DROP_IN}' >/etc/systemd/system/gpuhealthd.service.d/machine.conf; "
           "systemctl daemon-reload; systemctl reload dbus", check=True)
    status, output = vm.run("systemctl start gpuhealthd")
    fact("the service starts, which means that it said READY", status == 0, output + vm.run("journalctl -u gpuhealthd --no-pager")[1])
    print("      started in", vm.run("systemd-analyze blame --no-pager 2>/dev/null | grep gpuhealthd || "
                                     "systemctl show gpuhealthd -p ActiveEnterTimestampMonotonic -p InactiveExitTimestampMonotonic")[1])


def sandbox(vm):
    pid = show(vm, "MainPID")
    status = dict(line.split(":\t", 1) for line in vm.run(f"cat /proc/{pid}/status", check=True)[1].splitlines() if ":\t" in line)
    reading_only = 1 << 34 | 1 << 19 | 1 << 2  # CAP_SYSLOG, CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH
    fact("no capability but those to read", int(status["CapBnd"], 16) == reading_only, status["CapBnd"])
    fact("system calls are filtered", status["Seccomp"].strip() == "2", status["Seccomp"])
    fact("no new privileges", status["NoNewPrivs"].strip() == "1")
    fact("/sys, /usr and /etc are read-only to it", vm.run(
        f"for d in /sys /usr /etc; do nsenter -t {pid} -m findmnt -nro OPTIONS -T $d | grep -q '^ro' || exit 1; done")[0] == 0)
    status, output = vm.run("systemd-analyze security gpuhealthd --no-pager | tail -n 1")
    print("      " + output)


def people(vm):
    fact("three cards are shown", until(vm, "[ $(gpuhealthctl devices --json | grep -c '\"pci\"') = 3 ]"), vm.run("gpuhealthctl devices")[1])
    fact("the hot one is found", until(vm, "gpuhealthctl conditions --json | grep -q overheating"), vm.run("gpuhealthctl status")[1])
    fact("anybody may look", vm.run("setpriv --reuid nobody --regid nogroup --clear-groups gpuhealthctl devices")[0] == 0)
    condition = "$(gpuhealthctl conditions --json | sed -nE 's/.*\"id\": \"(overheating[^\"]*)\".*/\\1/p' | head -n 1)"
    status, output = vm.run(f"setpriv --reuid nobody --regid nogroup --clear-groups gpuhealthctl acknowledge {condition}")
    fact("a person without rights may not change", status == 6, f"{status}: {output}")
    status, output = vm.run(f"gpuhealthctl acknowledge {condition}")
    fact("root may", status == 0, f"{status}: {output}")


def journal(vm):
    lines = [json.loads(line) for line in vm.run("journalctl -u gpuhealthd -o json --no-pager")[1].splitlines()]
    ours = [line for line in lines if "gpuhealthd" in line.get("_COMM", "")]
    fact("it writes to the journal", bool(ours), len(lines))
    fact("each line has a priority", all("PRIORITY" in line for line in ours))


def hard_ends(vm):
    since = vm.run("gpuhealthctl conditions --json | grep -m1 since")[1]
    pid = show(vm, "MainPID")
    vm.run(f"kill -9 {pid}")
    fact("killed, it is started again", until(vm, f"[ $(systemctl show gpuhealthd -p MainPID --value) != {pid} ] && "
                                              "systemctl is-active -q gpuhealthd"), show(vm, "ActiveState"))
    fact("and remembers its conditions", until(vm, f"gpuhealthctl conditions --json | grep -qF '{since}'"),
         vm.run("gpuhealthctl conditions --json")[1][:400])
    pid = show(vm, "MainPID")
    vm.run(f"kill -STOP {pid}")
    fact("frozen, the watchdog ends it and it is started again", until(
        vm, f"[ $(systemctl show gpuhealthd -p MainPID --value) != {pid} ] && systemctl is-active -q gpuhealthd", 120), show(vm, "Result"))
    before = time.monotonic()
    vm.run("systemctl stop gpuhealthd", check=True)
    took = time.monotonic() - before
    fact("it stops within 5 s, emulation included", took < 5, took)
    fact("without a failure", show(vm, "Result") == "success", show(vm, "Result"))
    fact("and leaves no process", vm.run("pgrep -f 'gpuhealth(d|-reader)'")[0] == 1)


def activation(vm):
    fact("the bus starts it when somebody asks", vm.run("gpuhealthctl devices")[0] == 0 and show(vm, "ActiveState") == "active")


def main():
    out = sys.argv[1]
    if not os.path.exists(os.path.join(out, "base.qcow2")):
        settle(out)
    disk = overlay(os.path.join(out, "base.qcow2"), os.path.join(out, "service.qcow2"))
    with Machine(disk, limit=3000, console=os.path.join(out, "service.console"), product=product_of(out)) as vm:
        vm.wait_boot()
        unpack_product(vm)
        for part in (start, sandbox, people, journal, hard_ends, activation):
            print(f"== {part.__name__}", flush=True)
            part(vm)
        vm.power_off()
    return failures()


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main())
