# SPDX-License-Identifier: Apache-2.0
"""What tests of whole programs share: a folder, private buses, processes that end with the test, and waiting for what
is to come. GPUHEALTH_PATIENCE: how long, in seconds (60)."""
import os
import pathlib
import subprocess
import tempfile
import time
import unittest

PATIENCE = float(os.environ.get("GPUHEALTH_PATIENCE", "60"))
BUS_CONFIG = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-BUS Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>session</type><listen>unix:path={socket}</listen><auth>EXTERNAL</auth>
<policy context="default"><allow user="*"/><allow own="*"/><allow send_destination="*" eavesdrop="true"/>
<allow eavesdrop="true"/></policy></busconfig>
"""


class Rig(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.dir = pathlib.Path(self.folder.name)
        self.processes = []
        self.addCleanup(self.stop_all)

    def start(self, *words, **more):
        log = open(self.dir / f"log-{len(self.processes)}", "wb")
        self.addCleanup(log.close)
        process = subprocess.Popen([str(w) for w in words], stderr=log, **{"stdout": log, **more})
        self.processes.append(process)
        return process

    def stop_all(self):
        for process in reversed(self.processes):
            process.kill()
            process.wait()

    def start_bus(self, name):
        path = self.dir / f"{name}.sock"
        (self.dir / f"{name}.conf").write_text(BUS_CONFIG.format(socket=path))
        bus = self.start("dbus-daemon", f"--config-file={self.dir}/{name}.conf", "--nofork", "--nopidfile", "--print-address=1",
                         stdout=subprocess.PIPE)
        bus.stdout.readline()
        self.addCleanup(bus.stdout.close)
        setattr(self, f"{name}_process", bus)
        return f"unix:path={path}"

    def until(self, what, text):
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            try:
                value = what()
                if value:
                    return value
            except (OSError, subprocess.CalledProcessError):  # what is asked does not answer yet
                pass
            time.sleep(0.05)
        logs = "\n".join(f"{p.name}: {p.read_text(errors='replace')[-2000:]}" for p in sorted(self.dir.glob("log-*")))
        self.fail(f"{text} did not come in {PATIENCE} s\n{self.seen()}{logs}")

    def seen(self):
        return ""

    # The daemon that shows what a test tells it to, on the bus at self.system.
    def control(self, method, *arguments):
        return subprocess.run(["busctl", f"--address={self.system}", "call", "org.gpuhealth1", "/control", "test.Control", method,
                               *arguments], check=True, capture_output=True, text=True).stdout

    def show(self, kind, name, **fields):
        words = [word for pair in fields.items() for word in pair]
        self.control("Set", "ssa{ss}", kind, name, str(len(fields)), *words)
