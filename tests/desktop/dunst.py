#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gpuhealth-notify on a real notification server: dunst under Xvfb, a private session bus, a daemon that shows what it
is told. Texts are compared through dunst's history; a picture of the screen is kept in PICTURES.

usage: dunst.py BIN_DIR SOURCE_DIR PICTURES [-v]
"""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import unittest

BIN, SOURCE, PICTURES = (pathlib.Path(word).resolve() for word in sys.argv[1:4])
sys.path.insert(0, str(SOURCE / "tests/support"))
from rig import PATIENCE, Rig  # noqa: E402

# Notices of a test stay until they are closed.
DUNST = """[global]
    width = 520
    height = 400
    offset = 20x20
    origin = top-right
    font = Sans 11
    notification_limit = 0
    padding = 14
    horizontal_padding = 14
    frame_width = 2
    gap_size = 8
    idle_threshold = 0
    show_age_threshold = -1
    markup = full
    format = "<b>%s</b>\\n%b"
    dmenu = {folder}/choose
[urgency_low]
    background = "#1f2933"
    foreground = "#e4e7eb"
    timeout = 0
[urgency_normal]
    background = "#243b53"
    foreground = "#f0f4f8"
    timeout = 0
[urgency_critical]
    background = "#610316"
    foreground = "#ffffff"
    frame_color = "#f86a6a"
    timeout = 0
[written-down]
    summary = "*"
    script = {folder}/told
"""


class Desktop(Rig):
    def setUp(self):
        super().setUp()
        self.system = self.start_bus("system")
        self.session = self.start_bus("session")
        out, into = os.pipe()
        self.start("Xvfb", "-displayfd", into, "-screen", "0", "1024x640x24", "-nolisten", "tcp", pass_fds=[into])
        os.close(into)
        with os.fdopen(out) as pipe:
            self.display = ":" + pipe.readline().strip()
        (self.dir / "dunstrc").write_text(DUNST.replace("{folder}", str(self.dir)))
        # What dunst gets: program, title, text, icon, urgency. And who chooses in its menu of buttons.
        self.program("told", f'printf "%s|%s\\n" "$2" "$5" >>{self.dir}/urgencies')
        self.program("choose", f'grep -m1 -F "$(cat {self.dir}/choice)"')
        self.environment = {**os.environ, "DISPLAY": self.display, "DBUS_SESSION_BUS_ADDRESS": self.session, "HOME": str(self.dir),
                            "XDG_RUNTIME_DIR": str(self.dir)}
        self.environment.pop("WAYLAND_DISPLAY", None)
        self.start_dunst()
        self.start(BIN / "test_fake_daemon", self.system)
        self.until(lambda: self.show("device", "card", Id="uid-1", Pci="0000:03:00.0", Health="ok") or True, "the daemon")

    def program(self, name, text):
        (self.dir / name).write_text(f"#!/bin/sh\n{text}\n")
        (self.dir / name).chmod(0o755)

    def start_dunst(self):
        self.dunst = self.start("dunst", "-config", self.dir / "dunstrc", env=self.environment)
        self.until(lambda: self.dunstctl("count", "displayed") or True, "dunst")

    def start_agent(self):
        self.program("details", f'echo "$1" >{self.dir}/detailed')
        self.agent = self.start(BIN / "gpuhealth-notify", "--bus", self.system, "--session-bus", self.session, "--details",
                                self.dir / "details", env=self.environment)
        return self.agent

    def seen(self):
        return f"shown: {self.history()}\n"

    def dunstctl(self, *words):
        return subprocess.run(["dunstctl", *words], env=self.environment, check=True, capture_output=True, text=True).stdout.strip()

    def shown(self):
        return int(self.dunstctl("count", "displayed"))

    def history(self):
        try:
            return [{k: v["data"] for k, v in entry.items()} for entry in json.loads(self.dunstctl("history"))["data"][0]]
        except subprocess.CalledProcessError:
            return []

    def condition(self, name="hot", **fields):
        self.show("condition", name, **{
            "Id": f"{name}-1", "Type": "overheating", "Severity": "critical", "State": "confirmed", "DeviceId": "uid-1",
            "DeviceLabel": "Radeon RX 7900 <XTX> & Co at 0000:03:00.0", "Detail": "112 C", "Acknowledged": "false", **fields})

    def clear(self, name="hot"):
        self.control("Remove", "ss", "condition", name)

    def calls(self):
        return re.findall(r'"([^"]*)"', self.control("Calls"))

    def wait_shown(self, count):
        self.until(lambda: self.shown() == count, f"{count} notices on the screen")

    # What the server knows, as text: closing puts it into the history.
    def texts(self):
        self.dunstctl("close-all")
        self.wait_shown(0)
        return [(e["summary"], e["body"]) for e in self.history()]

    def urgencies(self):
        path = self.dir / "urgencies"
        return path.read_text().splitlines() if path.exists() else []

    # A button, as a person chooses it in dunst's menu.
    def press(self, label):
        (self.dir / "choice").write_text(label)
        self.dunstctl("context")

    def picture(self, name):
        PICTURES.mkdir(parents=True, exist_ok=True)
        path = PICTURES / f"{name}.png"
        raw = subprocess.run(["xwd", "-root", "-silent", "-display", self.display], check=True, capture_output=True).stdout
        subprocess.run(["convert", "xwd:-", str(path)], input=raw, check=True)
        colours = subprocess.run(["identify", "-format", "%k", str(path)], check=True, capture_output=True, text=True).stdout
        self.assertGreater(int(colours), 50, "nothing is on the picture")

    def test_one_notice_a_condition_in_plain_words_and_gone_when_cleared(self):
        self.start_agent()
        self.condition()
        self.wait_shown(1)
        self.condition("drift", Type="performance-drift", Severity="warning")
        self.show("kernel", "", Running="7.0.12", LastKnownGood="7.0.11")
        self.condition("stall", Type="host-copy-stall")
        self.wait_shown(3)
        self.picture("notifications")
        self.condition(Detail="113 C")  # a number that moves
        self.clear("drift")
        self.wait_shown(2)
        self.clear("stall")
        self.wait_shown(1)
        newest = self.texts()[0]
        self.assertEqual(newest[0], "Your graphics card is too hot")
        self.assertIn("Radeon RX 7900 <XTX> & Co has reached the highest temperature that it can stand.",
                      newest[1].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
        self.assertIn("Your graphics card is too hot|CRITICAL", self.urgencies())
        self.assertIn("Your graphics card is slower than it was|NORMAL", self.urgencies())

    def test_the_manual_names_every_option(self):
        said = subprocess.run([BIN / "gpuhealth-notify", "--help"], check=True, capture_output=True, text=True, timeout=60).stdout
        options = set(re.findall(r"--[a-z-]+", said))
        self.assertGreater(len(options), 4)
        manual = (SOURCE / "docs/man/gpuhealth-notify.1").read_text().replace("\\-", "-")
        self.assertEqual({o for o in options if o not in manual}, set())

    def test_urgency_follows_severity_and_a_change_replaces_the_notice(self):
        self.start_agent()
        self.condition(Severity="warning")
        self.wait_shown(1)
        self.condition(Severity="critical")
        self.until(lambda: "Your graphics card is too hot|CRITICAL" in self.urgencies(), "the higher urgency")
        self.assertEqual(self.urgencies(), ["Your graphics card is too hot|NORMAL", "Your graphics card is too hot|CRITICAL"])
        self.assertEqual(self.shown(), 1)

    def test_what_the_person_closed_does_not_come_back(self):
        self.start_agent()
        self.condition()
        self.wait_shown(1)
        self.dunstctl("close")
        self.wait_shown(0)
        self.condition(Detail="114 C")
        self.condition("other", Type="pcie-errors", Severity="warning")
        self.wait_shown(1)
        self.assertEqual(self.texts()[0][0], "The connection to your graphics card has errors")

    def test_buttons_ask_the_daemon(self):
        self.start_agent()
        self.show("kernel", "", Running="7.0.12", LastKnownGood="7.0.11")
        self.condition("stall", Type="host-copy-stall")
        self.wait_shown(1)
        self.dunstctl("action", "0")  # a click on the notice: Details
        self.until(lambda: (self.dir / "detailed").exists() and (self.dir / "detailed").read_text() == "stall-1\n", "the details")

    def test_undo_and_the_other_kernel_go_to_the_daemon(self):
        self.start_agent()
        self.show("action", "1", Id="1-power-cap", Kind="power-cap", State="applied", Device="uid-1", Reversible="true",
                  DeviceLabel="Radeon RX 7900 XTX at 0000:03:00.0", Text="Its power limit was lowered", Before="303 W", After="250 W")
        self.wait_shown(1)
        self.press("Undo")
        self.until(lambda: "RevertAction 1-power-cap" in self.calls(), "the request")
        self.control("Remove", "ss", "action", "1")
        self.show("kernel", "", Running="7.0.12", Trial="7.0.11")
        self.wait_shown(1)
        self.press("Undo")
        self.until(lambda: "Unpin" in self.calls(), "the request to undo the trial")
        self.control("Remove", "ss", "kernel", "")
        self.show("kernel", "", Running="7.0.12", LastKnownGood="7.0.11")
        self.condition("stall", Type="host-copy-stall")
        self.wait_shown(1)
        self.press("Try the other kernel at next boot")
        self.until(lambda: "Trial 7.0.11" in self.calls(), "the request to try the other kernel")

    def test_a_refusal_is_told(self):
        self.start_agent()
        self.control("Refuse", "s", "org.gpuhealth1.Error.NotPermitted")
        self.show("action", "1", Id="1-power-cap", Kind="power-cap", State="applied", Device="uid-1", Reversible="true")
        self.wait_shown(1)
        self.press("Undo")
        self.until(lambda: "RevertAction 1-power-cap" in self.calls(), "the request")
        self.until(lambda: "That did not work|NORMAL" in self.urgencies(), "the refusal")
        self.assertEqual(self.texts()[0][0], "That did not work")

    def test_do_not_disturb_is_respected(self):
        self.dunstctl("set-paused", "true")
        self.start_agent()
        self.condition()
        self.until(lambda: self.dunstctl("count", "waiting") == "1", "a notice that waits")
        self.assertEqual(self.shown(), 0)
        self.dunstctl("set-paused", "false")
        self.wait_shown(1)

    def test_a_new_notification_server_shows_what_is_open(self):
        self.start_agent()
        self.condition()
        self.wait_shown(1)
        self.dunst.kill()
        self.dunst.wait()
        self.condition("other", Type="pcie-errors", Severity="warning")
        self.start_dunst()
        self.wait_shown(2)

    def test_a_new_session_bus_is_found(self):
        self.start_agent()
        self.condition()
        self.wait_shown(1)
        self.dunst.kill()
        self.session_process.kill()
        self.session_process.wait()
        (self.dir / "session.sock").unlink()
        self.start_bus("session")
        self.start_dunst()
        self.wait_shown(1)
        self.assertIsNone(self.agent.poll())

    def test_a_new_daemon_is_found(self):
        self.start_agent()
        self.condition()
        self.wait_shown(1)
        daemon = self.processes[-2]
        daemon.kill()
        daemon.wait()
        self.start(BIN / "test_fake_daemon", self.system)
        self.until(lambda: self.show("device", "card", Id="uid-1") or True, "the new daemon")
        self.wait_shown(0)  # it knows of no condition

    def test_a_second_one_in_a_session_ends_and_the_first_closes_what_it_showed(self):
        first = self.start_agent()
        self.condition()
        self.wait_shown(1)
        second = self.start(BIN / "gpuhealth-notify", "--bus", self.system, "--session-bus", self.session)
        self.assertEqual(second.wait(timeout=PATIENCE), 0)
        self.assertEqual(self.shown(), 1)
        first.send_signal(signal.SIGTERM)
        self.assertEqual(first.wait(timeout=PATIENCE), 0)
        self.wait_shown(0)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
