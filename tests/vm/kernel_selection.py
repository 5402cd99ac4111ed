#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: kernel_selection.py OUT_DIR [NAME...]

Pin, trial, bless, unpin on a machine with real GRUB, real kernels and the distribution's own tools, through real reboots, panics and
power cuts. OUT_DIR holds what build_image made. One line a fact; exit 1 when one does not hold. NAME: only these groups (short: what a
short run plays)."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from machine import Machine, MachineError, overlay, product_of, settle, unpack_product  # noqa: E402

failed = 0


def fact(text, holds, seen=""):
    global failed
    failed += not holds
    print(("ok    " if holds else "FAILS ") + text + (f": {seen}" if seen != "" and not holds else ""), flush=True)


def failures():
    print(f"{failed} facts do not hold")
    return 1 if failed else 0


def kernel(vm, words, expect=0):
    status, output = vm.run("gpuhealthctl kernel " + words)
    fact(f"gpuhealthctl kernel {words} ends with {expect}", status == expect, f"{status}: {output}")
    return output


def boots(vm, release, why, resets=0, **options):
    boot = vm.reboot(**options)
    fact(f"{why}: {release} boots", boot.release == release, boot)
    if resets:
        fact(f"{why}: by itself, after {resets} reset", boot.resets == resets, boot)
    return boot


def files_of_ours(vm):
    return vm.run("ls /etc/grub.d/06_gpuhealth /etc/default/grub.d/zz-gpuhealth.cfg /etc/apt/apt.conf.d/52gpuhealth-kernel 2>/dev/null;"
                  " grep -l gpuhealth /boot/grub/grub.cfg")[1]


def menu(vm):
    return vm.run("sha256sum </boot/grub/grub.cfg", check=True)[1]


def pin_and_damage(vm, old, new, spare):
    """A pin, and every way in which GRUB can lose its mind."""
    before = menu(vm)
    environment = vm.run("cat /boot/grub/grubenv | sha256sum")[1]
    kernel(vm, f"pin {old}")
    fact("a pin leaves grubenv alone", vm.run("cat /boot/grub/grubenv | sha256sum")[1] == environment)
    boots(vm, old, "after a pin")
    status, output = vm.run("gpuhealthctl kernel status")
    fact("status names what boots next", status == 0 and old in output, output)
    fact("status needs no root", vm.run("setpriv --reuid nobody --clear-groups gpuhealthctl kernel status")[0] == 0)
    for name, damage in (("missing", "rm /boot/grub/grubenv"), ("zeroed", "truncate -s 0 /boot/grub/grubenv"),
                         ("bad", "printf XX | dd of=/boot/grub/grubenv conv=notrunc status=none"),
                         ("naming an entry that is not there", "grub-set-default nonsense")):
        vm.run(f"rm -f /boot/grub/grubenv; grub-editenv /boot/grub/grubenv create; {damage}; sync", check=True)
        boots(vm, old, f"pinned, grubenv {name}")
    vm.run("rm -f /boot/grub/grubenv; grub-editenv /boot/grub/grubenv create; sync", check=True)
    kernel(vm, "unpin")
    fact("unpin leaves nothing of ours", files_of_ours(vm) == "", files_of_ours(vm))
    fact("after unpin the menu is what it was, byte for byte", menu(vm) == before)
    vm.run("update-grub", check=True)
    fact("which is what the distribution's tool makes", menu(vm) == before)
    boots(vm, new, "after unpin")


def trial(vm, old, new, spare):
    """A trial that is good, one that panics, one that hangs."""
    kernel(vm, f"pin {old}")
    boots(vm, old, "after a pin")
    kernel(vm, f"trial {new}")
    boots(vm, new, "a trial")
    boots(vm, old, "a trial is for one boot")
    kernel(vm, f"trial {new}")
    boots(vm, new, "a second trial, by a person")
    kernel(vm, f"bless {new}")
    boots(vm, new, "after bless")
    kernel(vm, f"pin {old}")
    boots(vm, old, "pinned again")
    kernel(vm, f"trial {new}")
    vm.run(f"cp /boot/initrd.img-{new} /root/good; head -c 4096 /dev/urandom >/boot/initrd.img-{new}; sync", check=True)
    boots(vm, old, "a trial that panics, without a person", resets=1, timeout=600)
    vm.run(f"cp /root/good /boot/initrd.img-{new}; sync", check=True)
    kernel(vm, f"trial {new}")
    vm.run(f"mv /boot/vmlinuz-{new} /root/image; sync", check=True)
    boots(vm, old, "a trial whose kernel is gone")
    vm.run(f"mv /root/image /boot/vmlinuz-{new}; sync", check=True)
    kernel(vm, f"trial {new}")
    vm.go_down()
    vm.power_on()
    vm.wait_boot()
    vm.cut_power()
    vm.power_on()
    fact(f"a trial that is reset while it runs: {old} boots", vm.wait_boot().release == old)
    kernel(vm, "unpin")
    fact("unpin leaves nothing of ours", files_of_ours(vm) == "", files_of_ours(vm))
    boots(vm, new, "after unpin")


def would_remove(vm):
    """What apt's clean-up would remove. Its own care for the running kernel is off: it would keep the pinned one without us."""
    status, output = vm.run("apt-get -s -o APT::Protect-Kernels=false autoremove")
    fact("apt-get autoremove can be asked", status == 0, output[-300:])
    return "\n".join(line for line in output.splitlines() if line.startswith("Remv "))


def update(vm, old, new, spare):
    """A newer kernel arrives; the package manager cleans up."""
    kernel(vm, f"pin {old}")
    status, output = vm.run("DEBIAN_FRONTEND=noninteractive dpkg -i /opt/spare/linux-image-*.deb", timeout=1200)
    fact("the newer kernel installs", status == 0, output[-300:])
    boots(vm, old, "pinned, after a kernel update")
    vm.run("apt-mark auto linux-image-*; apt-mark showauto", check=True)
    fact("autoremove leaves the pinned kernel", f"linux-image-{old} " not in would_remove(vm))
    kernel(vm, "unpin")
    removed = would_remove(vm)
    fact("which it removes when nothing is pinned", f"linux-image-{old} " in removed, removed)
    boots(vm, spare, "after unpin, the distribution's own choice")


def hold(vm, old, new, spare):
    """With hold on, a kernel that arrives is not the default until it is blessed."""
    kernel(vm, "hold on")
    status, output = vm.run("DEBIAN_FRONTEND=noninteractive dpkg -i /opt/spare/linux-image-*.deb", timeout=1200)
    fact("the newer kernel installs", status == 0, output[-300:])
    boots(vm, new, "held: the kernel that was good")
    kernel(vm, f"trial {spare}")
    boots(vm, spare, "a trial of the held kernel")
    kernel(vm, f"bless {spare}")
    boots(vm, spare, "blessed")
    kernel(vm, "hold off")


def pull(vm, old, new, spare):
    """The plug is pulled while a pin or an unpin is being written."""
    for moment in (0.0, 0.3, 0.8, 1.5, 2.5, 4.0, 6.0, 9.0):
        vm.run(f"(sleep 1; gpuhealthctl kernel pin {old}) >/dev/null 2>&1 & sleep {1 + moment}", check=True)
        vm.cut_power()
        vm.power_on()
        boot = vm.wait_boot()
        fact(f"power cut {moment} s into a pin: a kernel boots", boot.release in (old, new), boot)
        status, output = vm.run("/usr/libexec/gpuhealth-act kernel recover")
        fact("what was left is put back", status == 0, output)
        status, log = vm.run("gpuhealthctl kernel log --json")
        fact("the ledger has no change without an end", status == 0 and '"intended"' not in log, log[-400:])
        status, output = vm.run("grub-script-check /boot/grub/grub.cfg")
        fact("the menu is whole", status == 0, output)
        kernel(vm, "unpin")


GROUPS = {"pin": pin_and_damage, "trial": trial, "update": update, "hold": hold, "pull": pull}


def releases_of(out):
    """The older and the newer kernel that are installed, and the one that comes later."""
    with open(os.path.join(out, "kernels")) as f:
        return f.read().split()


def main():
    out, wanted = sys.argv[1], sys.argv[2:] or list(GROUPS)
    if not os.path.exists(os.path.join(out, "base.qcow2")):
        settle(out)
    releases = releases_of(out)
    for name in wanted:
        print(f"== {name}: {GROUPS[name].__doc__}", flush=True)
        disk = overlay(os.path.join(out, "base.qcow2"), os.path.join(out, name + ".qcow2"))
        try:
            with Machine(disk, limit=5000, console=os.path.join(out, name + ".console"),
                         product=product_of(out)) as vm:
                vm.wait_boot()
                unpack_product(vm)
                GROUPS[name](vm, *releases)
                vm.power_off()
        except MachineError as error:
            fact(f"{name} comes to its end", False, error)
    return failures()


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main())
