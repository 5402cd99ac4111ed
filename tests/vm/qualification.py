#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: qualification.py OUT_DIR [PART...]

The daemon judges kernels on a machine with real GRUB, kernels and systemd, with the units as installed: a kernel that is good, one whose
canaries are slower, one that panics, one that is reset while it is judged, a trial that does not take place. The GPU is an old card of
QEMU's without a driver, and the canary a script (guest/canary) whose numbers the test chooses; daemon, judge, gpuhealth-act and boot menu
are the real ones. One line a fact; exit 1 when one does not hold."""
import base64
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from kernel_selection import boots, fact, failures, kernel, releases_of  # noqa: E402
from machine import SLOW, Machine, MachineError, overlay, product_of, settle, unpack_product  # noqa: E402

CONFIG = """canary:
  interval: 30s
  tier: 1
kernel:
  failed-trial: reboot
"""
# Emulation on a busy machine is slow; no other line of the installed unit is changed.
PATIENCE = """[Service]
TimeoutStartSec=300
WatchdogSec=300
"""
JOB_RUNNER = """[Unit]
Requires=gpuhealth-qualified.target
After=gpuhealth-qualified.target
[Service]
ExecStart=/bin/sleep infinity
[Install]
WantedBy=multi-user.target
"""


def put(vm, path, text, mode="644"):
    encoded = base64.b64encode(text.encode()).decode()
    vm.run(f"mkdir -p $(dirname {path}); echo {encoded} | base64 -d >{path}; chmod {mode} {path}", check=True)


def state(vm, release):
    """What qualification.json says of a kernel: state and reason."""
    script = (f"sed -n '/\"{release}\"/,/}}/p' /var/lib/gpuhealthd/qualification.json | sed -nE "
              "'s/.*\"(state|reason)\": \"([^\"]*)\".*/\\2/p'")
    lines = vm.run(script)[1].splitlines()
    return (lines + ["", ""])[:2]


def verdict(vm, release, wanted, seconds=600):
    """Until the kernel has it."""
    end = time.monotonic() + seconds * SLOW
    while time.monotonic() < end:
        if state(vm, release)[0] == wanted:
            return True
        time.sleep(3)
    return False


def settled(vm, seconds=600):
    """Until no change is being made."""
    vm.run(f"timeout {seconds * SLOW:.0f} sh -c 'while pgrep -f [l]ibexec/gpuhealth-act; do sleep 2; done' >/dev/null")


def journal(vm):
    return vm.run("journalctl -b -u gpuhealthd -u 'run-*' --no-pager -o cat | tail -n 25")[1]


def active(vm, unit):
    return vm.run(f"systemctl is-active {unit}")[1] == "active"


def prepare(vm, old, new):
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "guest/canary")) as f:
        put(vm, "/usr/libexec/gpuhealth-canary", f.read(), "755")
    put(vm, "/etc/gpuhealthd/gpuhealthd.yaml.d/vm.yaml", CONFIG)
    put(vm, "/etc/systemd/system/job-runner.service", JOB_RUNNER)
    put(vm, "/etc/systemd/system/gpuhealthd.service.d/patience.conf", PATIENCE)
    vm.run("mkdir -p /srv/canary; systemctl daemon-reload; systemctl reload dbus; systemctl enable gpuhealthd job-runner; sync", check=True)
    status, output = vm.run("systemctl start gpuhealthd && systemctl start --no-block job-runner")
    fact("the daemon starts", status == 0, output)


def first(vm, old, new):
    """The first kernel has nothing to be compared with."""
    fact("a job runner waits for the verdict", not active(vm, "job-runner"))
    fact(f"{new} is blessed by its canaries", verdict(vm, new, "blessed"), (state(vm, new), journal(vm)))
    fact("the job runner starts then", vm.run("timeout 60 sh -c 'until systemctl is-active -q job-runner; do sleep 1; done'")[0] == 0)
    text = vm.run("busctl get-property org.gpuhealth1 /org/gpuhealth1/kernel org.gpuhealth1.Kernel Running LastKnownGood State")[1]
    fact("the bus says so", text.count(new) == 2 and "blessed" in text, text)
    status, output = vm.run("setpriv --reuid nobody --regid nogroup --clear-groups gpuhealthctl kernel unpin")
    fact("a person without rights may not change it", status == 6, f"{status}: {output}")


def good(vm, old, new):
    """A trial that is good."""
    kernel(vm, f"trial {old}")
    boots(vm, old, "a trial")
    fact("the job runner waits", not active(vm, "job-runner"))
    fact(f"{old} is blessed by its canaries", verdict(vm, old, "blessed"), (state(vm, old), journal(vm)))
    fact("compared with the last known good kernel", "as good as" in state(vm, old)[1], state(vm, old))
    settled(vm)  # the verdict is written first, the menu is made anew after it
    fact("the trial's entry is gone", vm.run("grep -q gpuhealth-trial /boot/grub/grub.cfg")[0] != 0)
    boots(vm, new, "the distribution's own choice is back")


def slower(vm, old, new):
    """A trial whose canaries are twice as slow: back on the good kernel, without a person."""
    vm.run(f"echo 500 >/srv/canary/{old}; sync", check=True)
    kernel(vm, f"trial {old}")
    boots(vm, old, "a trial")
    since = time.monotonic()
    vm.process.wait(900 * SLOW)  # the daemon reboots it
    vm.power_on()
    boot = vm.wait_boot(600)
    fact(f"canaries that fail: {new} boots, without a person", boot.release == new, boot)
    print(f"      {time.monotonic() - since:.0f} s after the trial had booted")
    fact(f"{old} is rejected", state(vm, old)[0] == "rejected", state(vm, old))
    fact("and why is said", "of its usual time" in state(vm, old)[1], state(vm, old))
    vm.run(f"rm /srv/canary/{old}; sync", check=True)


def panics(vm, old, new):
    """A trial that panics."""
    kernel(vm, f"trial {old}")
    vm.run(f"cp /boot/initrd.img-{old} /root/good; head -c 4096 /dev/urandom >/boot/initrd.img-{old}; sync", check=True)
    boots(vm, new, "a trial that panics, without a person", resets=1, timeout=600)
    vm.run(f"cp /root/good /boot/initrd.img-{old}; sync", check=True)
    fact(f"{old} never came back", verdict(vm, old, "never-came-back", 120), (state(vm, old), journal(vm)))
    fact("its entry was started, it is said", "was started" in state(vm, old)[1], state(vm, old))
    fact("the job runner runs on the good kernel", vm.run("timeout 60 sh -c 'until systemctl is-active -q job-runner; do sleep 1; done'")[0] == 0)


def reset(vm, old, new):
    """A trial that is reset while its canaries run."""
    kernel(vm, f"trial {old}")
    boots(vm, old, "a trial")
    fact("it is being judged", verdict(vm, old, "qualifying", 120), state(vm, old))
    vm.cut_power()
    vm.power_on()
    fact(f"a trial that is reset: {new} boots", vm.wait_boot().release == new)
    fact(f"{old} never came back", verdict(vm, old, "never-came-back", 120), (state(vm, old), journal(vm)))
    fact("while its canaries ran, it is said", "while its canaries ran" in state(vm, old)[1], state(vm, old))


def away(vm, old, new):
    """Something else was chosen in the boot menu."""
    kernel(vm, f"trial {old}")
    vm.run("grub-editenv /boot/grub/grubenv set next_entry=; sync", check=True)  # as GRUB leaves it when another entry is chosen
    boots(vm, new, "another entry")
    fact("a trial that did not take place is not never-came-back", verdict(vm, old, "installed", 120), (state(vm, old), journal(vm)))


PARTS = {"first": first, "good": good, "slower": slower, "panics": panics, "reset": reset, "away": away}


def main():
    out, wanted = sys.argv[1], sys.argv[2:] or list(PARTS)
    if not os.path.exists(os.path.join(out, "base.qcow2")):
        settle(out)
    old, new, _ = releases_of(out)
    disk = overlay(os.path.join(out, "base.qcow2"), os.path.join(out, "qualification.qcow2"))
    with Machine(disk, limit=7000, console=os.path.join(out, "qualification.console"), product=product_of(out),
                 extra=["-device", "ati-vga,romfile="]) as vm:
        vm.wait_boot()
        unpack_product(vm)
        prepare(vm, old, new)
        for name in wanted:
            print(f"== {name}: {PARTS[name].__doc__}", flush=True)
            try:
                settled(vm)
                PARTS[name](vm, old, new)
            except MachineError as error:
                fact(f"{name} comes to its end", False, error)
                break
        vm.power_off()
    return failures()


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main())
