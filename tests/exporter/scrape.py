#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The exporter as it is used: a private bus, a daemon that shows what it is told, the program, promtool, and a real
Prometheus that scrapes it and evaluates our alert rules. Loopback only.

usage: scrape.py BIN_DIR SOURCE_DIR [-v]
"""
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request

BIN, SOURCE = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
sys.path.insert(0, str(SOURCE / "tests/support"))
from rig import Rig  # noqa: E402


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def get(url):
    with urllib.request.urlopen(url, timeout=10) as answer:
        return answer.read().decode()


class Scrape(Rig):
    def setUp(self):
        super().setUp()
        self.system = self.start_bus("system")

    def start_daemon(self):
        daemon = self.start(BIN / "test_fake_daemon", self.system)
        self.until(lambda: self.show("device", "card", Id="uid-1", Pci="0000:03:00.0", Name="Radeon RX 7900 XTX", Health="ok",
                                     RuntimeStatus="active", Sampled=str(int(time.time() * 1e6))) or True, "the daemon")
        return daemon

    def start_exporter(self, *more):
        self.port = free_port()
        exporter = self.start(BIN / "gpuhealth-exporter", "--bus", self.system, "--listen", f"127.0.0.1:{self.port}",
                              "--interval", "0.2", "--canary-results", self.dir / "results.jsonl", *more)
        self.until(self.metrics, "an answer of the exporter")
        return exporter

    def metrics(self):
        return get(f"http://127.0.0.1:{self.port}/metrics")

    def until_metrics(self, pattern, absent=False):
        return self.until(lambda: bool(re.search(pattern, self.metrics(), re.M)) != absent,
                          f"{pattern} {'gone' if absent else 'there'}")

    def condition(self):
        self.show("condition", "hot", Id="hot-1", Type="overheating", Severity="critical", State="confirmed", DeviceId="uid-1",
                  DeviceLabel="Radeon RX 7900 XTX at 0000:03:00.0", Detail="112 C", Acknowledged="false",
                  Since=str(1764515000 * 10**6))

    def test_what_is_served_passes_promtool(self):
        self.start_daemon()
        self.condition()
        self.show("action", "1", Id="1", Kind="power-cap", State="applied", Device="uid-1")
        self.show("kernel", "", Running="7.0.12", LastKnownGood="7.0.11", State="qualifying")
        self.start_exporter()
        self.until_metrics(r'^gpuhealth_actions\{device="uid-1",kind="power-cap",state="applied"\} 1$')
        text = self.metrics()
        self.assertIn('gpuhealth_kernel_info{running="7.0.12"', text)
        self.assertIn('gpuhealth_temperature_edge_celsius{device="uid-1",pci="0000:03:00.0"} 45', text)
        checked = subprocess.run(["promtool", "check", "metrics"], input=text, text=True, capture_output=True)
        self.assertEqual((checked.returncode, checked.stdout, checked.stderr), (0, "", ""))

    def test_the_manual_names_every_option(self):
        said = subprocess.run([BIN / "gpuhealth-exporter", "--help"], check=True, capture_output=True, text=True, timeout=60).stdout
        options = set(re.findall(r"--[a-z-]+", said))
        self.assertGreater(len(options), 4)
        manual = (SOURCE / "docs/man/gpuhealth-exporter.8").read_text().replace("\\-", "-")
        self.assertEqual({o for o in options if o not in manual}, set())

    def test_promtool_sees_what_is_wrong(self):
        wrong = "# TYPE gpuhealth_temperature_fahrenheit_total gauge\ngpuhealth_temperature_fahrenheit_total 1\n"
        self.assertNotEqual(subprocess.run(["promtool", "check", "metrics"], input=wrong, text=True, capture_output=True).returncode, 0)

    def test_the_rules_pass_promtool(self):
        checked = subprocess.run(["promtool", "check", "rules", SOURCE / "exporter/gpuhealth.rules.yml"], capture_output=True)
        self.assertEqual(checked.returncode, 0, checked.stderr)

    def test_the_dashboard_asks_for_metrics_that_exist(self):
        self.start_daemon()
        self.condition()
        self.start_exporter()
        self.until_metrics("^gpuhealth_condition")
        dashboard = json.loads((SOURCE / "exporter/gpuhealth-dashboard.json").read_text())
        asked = set(re.findall(r"gpuhealth_[a-z_]+", json.dumps(dashboard["panels"])))
        rules = set(re.findall(r"gpuhealth_[a-z_]+", (SOURCE / "exporter/gpuhealth.rules.yml").read_text()))
        documented = set(re.findall(r"gpuhealth_[a-z_]+", (SOURCE / "docs/prometheus.md").read_text()))
        self.assertEqual(asked - documented, set())
        self.assertEqual(rules - documented, set())
        served = set(re.findall(r"^(gpuhealth_[a-z_]+)", self.metrics(), re.M))
        self.assertEqual(served - documented, set())

    def test_series_come_and_go_with_conditions_devices_and_the_daemon(self):
        daemon = self.start_daemon()
        self.start_exporter()
        self.until_metrics(r"^gpuhealth_daemon_up 1$")
        self.until_metrics(r'^gpuhealth_fan_rpm\{device="uid-1"')
        self.condition()
        self.until_metrics(r"^gpuhealth_condition\{")
        self.control("Remove", "ss", "condition", "hot")
        self.until_metrics(r"^gpuhealth_condition\{", absent=True)
        self.control("Remove", "ss", "device", "card")
        self.until_metrics(r"uid-1", absent=True)
        daemon.kill()
        self.until_metrics(r"^gpuhealth_daemon_up 0$")
        self.start_daemon()
        self.until_metrics(r'^gpuhealth_fan_rpm\{device="uid-1"')

    def test_a_scrape_does_not_wait_for_a_daemon_that_hangs(self):
        daemon = self.start_daemon()
        self.start_exporter("--deadline", "600")
        self.until_metrics(r'^gpuhealth_fan_rpm\{device="uid-1"')
        daemon.send_signal(signal.SIGSTOP)
        begin = time.monotonic()
        while time.monotonic() - begin < 1:  # it has asked by then, and waits for an answer
            asked = time.monotonic()
            self.assertIn("gpuhealth_fan_rpm", self.metrics())
            self.assertLess(time.monotonic() - asked, 5)
        daemon.send_signal(signal.SIGCONT)

    def test_a_daemon_that_hangs_is_not_up(self):
        daemon = self.start_daemon()
        self.start_exporter("--deadline", "0.5")
        self.until_metrics(r"^gpuhealth_daemon_up 1$")
        daemon.send_signal(signal.SIGSTOP)
        self.until_metrics(r"^gpuhealth_daemon_up 0$")
        daemon.send_signal(signal.SIGCONT)
        self.until_metrics(r"^gpuhealth_daemon_up 1$")

    def test_the_textfile_is_written_and_passes_promtool(self):
        self.start_daemon()
        done = subprocess.run([BIN / "gpuhealth-exporter", "--bus", self.system, "--textfile", self.dir / "gpu.prom", "--once"],
                              capture_output=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        text = (self.dir / "gpu.prom").read_text()
        self.assertIn("gpuhealth_daemon_up 1", text)
        self.assertEqual(subprocess.run(["promtool", "check", "metrics"], input=text, text=True, capture_output=True).returncode, 0)

    def test_without_a_daemon_the_textfile_says_so(self):
        done = subprocess.run([BIN / "gpuhealth-exporter", "--bus", self.system, "--textfile", self.dir / "gpu.prom", "--once"],
                              capture_output=True, timeout=60)
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertIn("gpuhealth_daemon_up 0", (self.dir / "gpu.prom").read_text())

    def test_what_is_no_loopback_must_be_asked_for_by_address(self):
        for words in (["--listen", "9836"], ["--listen", ":9836"], ["--listen", "localhost:9836"], ["--listen", "127.0.0.1:99999"],
                      ["--once"], ["--textfile", "gpu.txt"], ["--interval", "0"], ["surplus"]):
            done = subprocess.run([BIN / "gpuhealth-exporter", *words], capture_output=True, timeout=60)
            self.assertEqual(done.returncode, 2, words)

    def test_a_port_in_use_is_unavailable(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            s.listen()
            done = subprocess.run([BIN / "gpuhealth-exporter", "--bus", self.system, "--listen", f"127.0.0.1:{s.getsockname()[1]}"],
                                  capture_output=True, timeout=60)
        self.assertEqual(done.returncode, 4, done.stderr)

    def query(self, text):
        answer = json.loads(get(f"http://127.0.0.1:{self.prometheus}/api/v1/query?query={urllib.parse.quote(text)}"))
        return answer["data"]["result"]

    def test_a_real_prometheus_scrapes_it_and_raises_our_alert(self):
        self.start_daemon()
        self.condition()
        self.start_exporter()
        self.prometheus = free_port()
        (self.dir / "prometheus.yml").write_text(json.dumps({
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(SOURCE / "exporter/gpuhealth.rules.yml")],
            "scrape_configs": [{"job_name": "gpuhealth", "static_configs": [{"targets": [f"127.0.0.1:{self.port}"]}]}]}))
        self.start("prometheus", f"--config.file={self.dir}/prometheus.yml", f"--storage.tsdb.path={self.dir}/tsdb",
                   f"--web.listen-address=127.0.0.1:{self.prometheus}", cwd=self.dir, env={**os.environ, "GOMAXPROCS": "1"})
        self.until(lambda: [r for r in self.query('gpuhealth_temperature_edge_celsius{device="uid-1"}') if r["value"][1] == "45"],
                   "the temperature in Prometheus")
        self.assertEqual(self.query("up")[0]["value"][1], "1")
        self.until(lambda: [a for a in self.query('ALERTS{alertname="GpuConditionCritical",device="uid-1",type="overheating"}')],
                   "the alert in Prometheus")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
