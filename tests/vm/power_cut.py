#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: power_cut.py OUT_DIR [POINTS] [BOOTS]

The power goes at any write of pin, trial, bless, reject and unpin. QEMU records every block write of one run (blklogwrites); each prefix of
that record is a disk as a power cut may leave it. POINTS of them (240) are given to real GRUB with kernels that are stubs: they print their
release and switch the machine off. On BOOTS of them (12) the real kernel boots, and the next start has to put things in order. One line a
fact; exit 1 when one does not hold."""
import collections
import os
import re
import shutil
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from kernel_selection import fact, failures, releases_of  # noqa: E402
from machine import SLOW, Machine, product_of, settle, unpack_product  # noqa: E402

PARTITION = 1048576
SECTOR = 512
DISCARD = 4
Write = collections.namedtuple("Write", "sector data")


def read_log(path, sizes):
    """All writes, and at which of them each mark of `sizes` (bytes of the log) lies."""
    writes, marks = [], []
    with open(path, "rb") as f:
        magic, version, _, sector = struct.unpack("<QQQI", f.read(28))
        if (magic, version, sector) != (0x6A736677736872, 1, SECTOR):
            sys.exit(f"{path} is no record of writes")
        end = os.path.getsize(path)
        at = SECTOR
        while at + 32 <= end:
            while len(marks) < len(sizes) and at >= sizes[len(marks)]:
                marks.append(len(writes))
            f.seek(at)
            where, count, flags, _ = struct.unpack("<QQQQ", f.read(32))
            at += SECTOR
            if flags & DISCARD or count == 0:
                continue
            f.seek(at)
            writes.append(Write(where, f.read(count * SECTOR)))
            at += count * SECTOR
    while len(marks) < len(sizes):
        marks.append(len(writes))
    return writes, marks


def record(out, disk, log, old, new):
    """One run, with a mark before and after each change."""
    shutil.copyfile(disk, disk + ".before")
    open(log, "wb").close()
    sizes = []
    with Machine(disk, limit=3000, console=os.path.join(out, "power.console"), product=product_of(out), log=log) as vm:
        vm.wait_boot(900)
        unpack_product(vm)
        vm.run(f"gpuhealthctl kernel bless {old}", check=True)  # so that the rejection has a kernel to go back to
        for words in (f"pin {old}", f"trial {new}", f"bless {new}", f"reject {new}", "unpin"):
            vm.run("sync", check=True)
            time.sleep(1)
            sizes.append(os.path.getsize(log))
            status, output = vm.run("gpuhealthctl kernel " + words)
            vm.run("sync", check=True)
            fact(f"gpuhealthctl kernel {words}", status == 0, output)
            sizes.append(os.path.getsize(log))
        vm.cut_power()
    return sizes


def place_of(disk, path, offset):
    """Where byte `offset` of a file lies on the disk."""
    listed = subprocess.run(["debugfs", "-R", f"blocks {path}", f"{disk}?offset={PARTITION}"], check=True, capture_output=True, text=True)
    blocks = [int(word) for word in listed.stdout.split()]
    return PARTITION + blocks[offset // 4096] * 4096 + offset % 4096


def stub(release):
    """Prints STUB and the release to the first serial port, then ends QEMU; 32-bit code that knows no address."""
    code = b"\xba\xf8\x03\x00\x00"  # mov edx, 0x3f8
    for byte in f"STUB {release}\n".encode():
        code += b"\xb0" + bytes([byte]) + b"\xee"  # mov al, byte; out dx, al
    return code + b"\xba\x01\x05\x00\x00\xb0\x01\xee\xf4\xeb\xfd"  # isa-debug-exit at 0x501; hlt


def stubs(disk, releases):
    """Bytes to write over the entry of each kernel: GRUB jumps to the begin of the part behind the set-up sectors."""
    out = []
    for release in releases:
        path = f"/boot/vmlinuz-{release}"
        with open(disk, "rb") as f:
            f.seek(place_of(disk, path, 0x1F1))
            sectors = f.read(1)[0] or 4
        code = stub(release)
        at = place_of(disk, path, (sectors + 1) * SECTOR)
        if at % 4096 + len(code) > 4096:
            sys.exit("a stub does not fit into one block")
        out.append((at, code))
    return out


def grub_chooses(disk):
    """The release that GRUB starts, or what it said."""
    # No kernel runs: where a nested KVM is too poor for Linux, it is good enough for firmware, GRUB and the stub.
    command = ["qemu-system-x86_64", "-machine", "pc", "-accel", "kvm", "-accel", "tcg", "-m", "512", "-display", "none", "-monitor", "none",
               "-nodefaults", "-no-user-config", "-no-reboot", "-drive", f"file={disk},if=virtio,format=raw,snapshot=on",
               "-device", "isa-debug-exit,iobase=0x501,iosize=0x04", "-serial", "stdio"]
    try:
        said = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=90 * SLOW).stdout.decode(errors="replace")
    except subprocess.TimeoutExpired as late:
        said = (late.stdout or b"").decode(errors="replace") + " (nothing more within 90 s)"
    found = re.search(r"STUB (\S+)", said)
    return found.group(1) if found else said[-300:]


def apply(f, writes):
    for write in writes:
        f.seek(write.sector * SECTOR)
        f.write(write.data)


def points_of(marks, count):
    """Prefixes to look at, spread over all changes: lengths of the record."""
    inside = []
    for begin, end in zip(marks[::2], marks[1::2]):
        inside += list(range(begin, end + 1))
    if len(inside) <= count:
        return inside
    return sorted({inside[round(i * (len(inside) - 1) / (count - 1))] for i in range(count)})


def allowed(marks, choices, point):
    """What may start after `point` writes: before a change the old, after it the new, within it one of the two. `choices` has what starts
    before the first change and after each; a change without a write of its own leaves a point in which both are right."""
    out = set()
    for i, (begin, end) in enumerate(zip(marks[::2], marks[1::2])):
        if begin < end and point in (begin, end):
            out.add(choices[i] if point == begin else choices[i + 1])
        elif begin <= point <= end:
            out.update(choices[i:i + 2])
    return out


def full_boot(out, disk, old, new, point):
    """The real kernel boots what is left, and the start puts it in order."""
    path = os.path.join(out, "power-boot.qcow2")
    if os.path.exists(path):
        os.unlink(path)
    subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", "-b", os.path.abspath(disk), "-F", "raw", path], check=True)
    with Machine(path, limit=1500, console=os.path.join(out, "power-boot.console")) as vm:
        boot = vm.wait_boot(900)
        fact(f"power cut at write {point}: {boot.release} boots", boot.release in (old, new), boot)
        status, output = vm.run("/usr/libexec/gpuhealth-act kernel start")
        fact("the start puts in order what is left", status == 0, output)
        status, log = vm.run("gpuhealthctl kernel log --json")
        fact("the ledger says what happened", status == 0 and '"intended"' not in log, log[-400:])
        fact("the menu is whole", vm.run("grub-script-check /boot/grub/grub.cfg")[0] == 0)
        vm.cut_power()
    os.unlink(path)


def main():
    out = sys.argv[1]
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 240
    full = int(sys.argv[3]) if len(sys.argv) > 3 else 12
    if not os.path.exists(os.path.join(out, "base.qcow2")):
        settle(out)
    old, new, _ = releases_of(out)
    disk, log = os.path.join(out, "power.img"), os.path.join(out, "power.log")
    subprocess.run(["qemu-img", "convert", "-O", "raw", os.path.join(out, "base.qcow2"), disk], check=True)
    writes, marks = read_log(log, record(out, disk, log, old, new))
    os.replace(disk + ".before", disk)
    points = points_of(marks, count)
    print(f"      {len(writes)} writes, {sum(e - b for b, e in zip(marks[::2], marks[1::2]))} of them in five changes", flush=True)
    boots = {points[round(i * (len(points) - 1) / max(full - 1, 1))] for i in range(full)} if full else set()
    seen, wrong, applied = collections.Counter(), 0, 0
    choices = (new, old, new, new, old, new)  # at first, then after pin old, trial new, bless new, reject new, unpin
    whole = {}  # what the stubs replace
    for at, code in stubs(disk, (old, new)):
        with open(disk, "rb") as f:
            f.seek(at)
            whole[at] = (f.read(len(code)), code)

    def patch(f, which):
        for at, pair in whole.items():
            f.seek(at)
            f.write(pair[which])

    for point in points:
        with open(disk, "r+b") as f:
            apply(f, writes[applied:point])
            patch(f, 1)
        applied = point
        choice = grub_chooses(disk)
        seen[choice if choice in (old, new) else "nothing"] += 1
        right = allowed(marks, choices, point)
        if choice not in right:
            wrong += 1
            fact(f"power cut at write {point}: GRUB starts {' or '.join(sorted(right))}", False, choice)
        if point in boots:
            with open(disk, "r+b") as f:
                patch(f, 0)
            full_boot(out, disk, old, new, point)
    fact(f"{len(points)} power cuts: GRUB starts the old or the new choice of that change each time", wrong == 0, wrong)
    print("      " + ", ".join(f"{release} {times}" for release, times in seen.items()))
    fact("both choices were seen", seen[old] > 0 and seen[new] > 0, seen)
    for path in (disk, log):
        os.unlink(path)
    return failures()


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main())
