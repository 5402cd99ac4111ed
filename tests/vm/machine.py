# SPDX-License-Identifier: Apache-2.0
"""A machine under QEMU's emulation (no KVM needed) with real firmware and real GRUB.

    with Machine("disk.qcow2") as vm:
        vm.wait_boot()                 # Boot(release, uptime, seconds, resets)
        status, output = vm.run("uname -r")
        vm.reboot()

Each reset of the guest ends QEMU (-no-reboot), and a new one is started over the same disk: a cold start is many times faster
under emulation than a warm one, and goes through firmware and GRUB just so. `limit` bounds the whole object's life.
"""
import base64
import collections
import os
import select
import shutil
import socket
import subprocess
import tempfile
import threading
import time

# Every limit times this: for a machine whose processors are busy with something else.
SLOW = float(os.environ.get("VM_SLOW", "1"))
Boot = collections.namedtuple("Boot", "release uptime seconds resets")


class MachineError(Exception):
    pass


class Machine:
    def __init__(self, disk, memory=512, cores=2, limit=1800, console=None, drive="cache=writeback", product=None, extra=(), log=None):
        self.dir = tempfile.mkdtemp(prefix="gpuhealth-vm.")
        self.console = console or os.path.join(self.dir, "console.log")
        open(self.console, "w").close()
        kind = "qcow2" if disk.endswith(".qcow2") else "raw"
        agent = os.path.join(self.dir, "agent")
        # `log`: every write of the guest is recorded there, in the form of the kernel's dm-log-writes.
        storage = ["-drive", f"file={disk},if=none,id=disk,format={kind},{drive}"]
        if log:
            storage = ["-blockdev", f"driver=file,filename={disk},node-name=raw", "-blockdev", f"driver=file,filename={log},node-name=log",
                       "-blockdev", "driver=blklogwrites,node-name=disk,file=raw,log=log,log-sector-size=512"]
        self.command = [
            "qemu-system-x86_64", "-machine", "pc", "-accel", "tcg", "-cpu", "qemu64", "-m", str(memory), "-smp", str(cores),
            "-display", "none", "-monitor", "none", "-nodefaults", "-no-user-config", "-no-reboot",
            *storage, "-device", "virtio-blk-pci,drive=disk,bootindex=0",
            "-device", "virtio-serial-pci", "-chardev", f"socket,id=agent,path={agent}",
            "-device", "virtserialport,chardev=agent,name=gpuhealth.agent",
            *(["-drive", f"file={product},if=virtio,format=raw,readonly=on"] if product else []), *extra,
            "-chardev", f"file,id=console,path={self.console},append=on", "-serial", "chardev:console"]
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(agent)
        self.listener.listen(1)
        limit *= SLOW
        self.deadline = time.monotonic() + limit
        self.process = self.channel = None
        self.number = 0
        self.timer = threading.Timer(limit, self.cut_power)
        self.timer.daemon = True
        self.timer.start()
        self.power_on()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.cut_power()
        self.timer.cancel()
        self.listener.close()
        shutil.rmtree(self.dir, ignore_errors=True)

    def power_on(self):
        if self.channel:
            self.channel.close()
        self.buffer = b""
        self.mark = os.path.getsize(self.console)
        self.started = time.monotonic()
        self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.listener.settimeout(60 * SLOW)
        try:
            self.channel, _ = self.listener.accept()
        except socket.timeout:
            self.cut_power()
            raise MachineError("QEMU did not start: " + self.process.stderr.read().decode()) from None

    def cut_power(self):
        """What QEMU wrote is on the disk; what the guest had only in its memory is lost."""
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def line(self, end):
        """The agent's next line; None when the machine went down."""
        while b"\n" not in self.buffer:
            left = min(end, self.deadline) - time.monotonic()
            if left <= 0:
                raise MachineError("no answer; the console since power on:\n" + self.said()[-1500:])
            ready, _, _ = select.select([self.channel], [], [], min(left, 0.5))
            if ready:
                try:
                    data = self.channel.recv(1 << 16)
                except OSError:
                    data = b""
                if not data:
                    self.process.wait(30)
                    return None
                self.buffer += data
            elif self.process.poll() is not None:
                return None
        line, self.buffer = self.buffer.split(b"\n", 1)
        return line.decode()

    def wait_boot(self, timeout=400, most_resets=3, since=None):
        """Waits for the agent; each reset of the guest (panic=N, watchdog, reboot) powers it on again."""
        since = since or self.started
        end = time.monotonic() + timeout * SLOW
        resets = 0
        while True:
            line = self.line(end)
            if line is None:
                resets += 1
                if resets > most_resets:
                    raise MachineError(f"{resets} resets; the console since power on:\n" + self.said()[-1500:])
                self.power_on()
            elif line.startswith("HELLO "):
                _, release, uptime = line.split()
                return Boot(release, float(uptime), round(time.monotonic() - since, 1), resets)

    def run(self, script, timeout=600, check=False):
        self.number += 1
        timeout *= SLOW
        self.channel.sendall(f"{self.number} {base64.b64encode(script.encode()).decode()}\n".encode())
        end = time.monotonic() + timeout
        while True:
            line = self.line(end)
            if line is None:
                raise MachineError("the machine went down while it ran: " + script)
            words = line.split(" ")
            if words[0] == str(self.number):
                status = int(words[1])
                output = base64.b64decode(words[2] if len(words) > 2 else "").decode(errors="replace").rstrip("\n")
                if check and status:
                    raise MachineError(f"{script!r} ended with {status}: {output}")
                return status, output

    def go_down(self, how="systemctl reboot", timeout=200):
        self.channel.sendall(f"0 {base64.b64encode(f'({how}) >/dev/null 2>&1 &'.encode()).decode()}\n".encode())
        try:
            self.process.wait(timeout * SLOW)
        except subprocess.TimeoutExpired:
            raise MachineError("the machine did not go down; the console:\n" + self.said()[-1500:]) from None

    def reboot(self, timeout=400, most_resets=3):
        since = time.monotonic()
        self.go_down()
        self.power_on()
        return self.wait_boot(timeout, most_resets, since)

    def power_off(self):
        try:
            self.go_down("systemctl poweroff")
        except MachineError:
            self.cut_power()

    def said(self):
        """The console's output since power on."""
        with open(self.console, errors="replace") as f:
            f.seek(self.mark)
            return f.read()


def product_of(out):
    """What build_product made, if it did."""
    path = os.path.join(out, "product.tar")
    return path if os.path.exists(path) else None


def unpack_product(vm):
    vm.run("[ -b /dev/vdb ] && tar -xf /dev/vdb -C / --no-same-owner --keep-directory-symlink && systemd-sysusers && "
           "systemd-tmpfiles --create; systemctl daemon-reload; systemctl reload dbus; sync", check=True)


def overlay(base, path):
    """A fresh disk over `base`, which stays as it is."""
    if os.path.exists(path):
        os.unlink(path)
    subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", "-b", os.path.abspath(base), "-F", "qcow2", path], check=True)
    return path


def settle(out):
    """First boot: the guest installs its own GRUB and writes its own menu. base.img -> base.qcow2."""
    base = os.path.join(out, "base.img")
    first = os.path.join(out, "first.img")
    subprocess.run(["cp", "--sparse=always", base, first], check=True)
    with Machine(first, limit=1500) as vm:
        vm.wait_boot()
        vm.run("grub-install /dev/vda && update-grub && systemd-sysusers && systemd-tmpfiles --create", check=True)
        vm.reboot()
        vm.power_off()
    subprocess.run(["qemu-img", "convert", "-O", "qcow2", first, os.path.join(out, "base.qcow2")], check=True)
    os.unlink(first)
