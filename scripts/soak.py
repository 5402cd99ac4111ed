# SPDX-License-Identifier: Apache-2.0
"""Of scripts/soak: writes a scenario of random faults, and watches the daemon while it plays."""
import os
import random
import sys
import time

CARDS = ["a", "b", "c", "d"]
SENSORS = ["hwmon/temp1_input", "hwmon/power1_average", "gpu_metrics", "gpu_busy_percent", "mem_info_vram_used"]
ERRORS = ["EBUSY", "EPERM", "EIO", "EOPNOTSUPP", "ENODATA"]
GROWTH_KIB = 12288  # that the daemon's memory may have grown by the end, over its warm state
HISTORY_BYTES = 4 << 20  # history.size of the scenario
LOG_BYTES_AN_HOUR = 256 << 10


def steps(rng, seconds):
    at = 60.0
    while at < seconds - 120:
        card = rng.choice(CARDS)
        kind = rng.choice(["error", "delay", "hang", "hot", "set", "unplug", "bus", "log", "reload", "sleep", "kill", "short"])
        if kind == "error":
            yield at, f"card: {card}, fault: {{files: '{rng.choice(SENSORS)}', error: {rng.choice(ERRORS)}, for: {rng.randint(5, 90)}s}}"
        elif kind == "short":
            yield at, f"card: {card}, fault: {{files: gpu_metrics, short: {rng.randint(0, 100)}, for: {rng.randint(5, 90)}s}}"
        elif kind == "delay":
            yield at, f"card: {card}, fault: {{files: '{rng.choice(SENSORS)}', delay: 300ms, for: {rng.randint(5, 60)}s}}"
        elif kind == "hang":
            yield at, f"card: {card}, fault: {{files: '{rng.choice(SENSORS)}', hang: true, for: {rng.randint(5, 120)}s}}"
        elif kind == "hot":
            yield at, f"card: {card}, set: {{junction: {{to: 113, over: 20s}}}}"
            yield at + 100, f"card: {card}, set: {{junction: {{to: 70, over: 20s}}}}"
        elif kind == "set":
            yield at, f"card: {card}, set: {{busy: {rng.randint(0, 100)}, vram_used: {rng.randint(0, 15)}, aer_bad_tlp: {rng.randint(0, 5000)}}}"
        elif kind == "unplug":
            yield at, f"card: {card}, unplug: true"
            yield at + 30, f"card: {card}, plug: {{slot: {CARDS.index(card)}}}"
        elif kind == "bus":
            yield at, "bus: restart"
        elif kind == "log":
            for n in range(rng.randint(1, 20)):
                yield at, f"log: {{text: 'amdgpu 0000:03:00.0: amdgpu: ring gfx_0.0.0 timeout, signaled seq={n}', priority: 3}}"
        elif kind == "reload":
            yield at, "daemon: reload"
        elif kind == "sleep":
            yield at, f"sleep: {rng.randint(10, 90)}s"
        elif kind == "kill" and rng.random() < 0.2:
            yield at, "daemon: kill"
            yield at + 5, "daemon: start"
        at += rng.uniform(120, 900) if seconds > 7200 else rng.uniform(20, 60)


def scenario(seed, hours):
    rng = random.Random(seed)
    seconds = hours * 3600
    print("# SPDX-License-Identifier: Apache-2.0")
    print(f"name: soak\nabout: Random faults of seed {seed}.\nseed: {seed}\nduration: {seconds:.0f}s")
    print("config: |\n  history:\n    size: 4MiB\n  canary:\n    interval: 0")
    print("cards:")
    for card, model in zip(CARDS, ["rx7900xtx", "rx6900xt", "rx9070", "mi210"]):
        print(f"  {card}: {{model: {model}, load: {'true' if card in 'ac' else 'false'}}}")
    print("timeline:")
    for at, what in sorted(steps(rng, seconds), key=lambda step: step[0]):
        print(f"  - {{at: {at:.1f}s, {what}}}")


def daemon_pid():
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and open(f"/proc/{name}/comm").read().strip() == "gpuhealthd":
                return int(name)
        except OSError:
            pass
    return None


def look(pid):
    """Memory of its own (KiB), descriptors, children; None where it has gone meanwhile."""
    try:
        with open(f"/proc/{pid}/smaps_rollup") as file:
            own = sum(int(line.split()[1]) for line in file if line.startswith("Private_"))
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            children = len(file.read().split())
        return own, len(os.listdir(f"/proc/{pid}/fd")), children
    except OSError:
        return None


def base_folder():
    for folder in ["/mnt", "/media", "/srv", "/opt"]:
        if os.path.exists(folder + "/gpuhealthd.log"):
            return folder
    return None


def watch(hours, speed):
    begin = time.monotonic()
    end = begin + hours * 3600 / speed
    first, last, most_fds, most_children, seen_pid = None, None, 0, 0, None
    while time.monotonic() < end:
        time.sleep(0.2)
        pid = daemon_pid()
        if pid is None:
            continue
        if pid != seen_pid:  # it was started again: its warm state is another
            seen_pid, first, born = pid, None, time.monotonic()
        now = look(pid)
        if now is None:
            continue
        last = now
        most_fds, most_children = max(most_fds, now[1]), max(most_children, now[2])
        if first is None and time.monotonic() - born > 5:
            first = now
    folder = base_folder()
    history = sum(os.path.getsize(f"{folder}/state/{name}") for name in os.listdir(folder + "/state") if name.startswith("history.db"))
    log = os.path.getsize(folder + "/gpuhealthd.log")
    grown = last[0] - (first or last)[0] if last else 0
    print(f"soak: {hours:g} h simulated: memory {last[0] if last else 0} KiB, grown by {grown}; at most {most_fds} descriptors and "
          f"{most_children} children; history {history} bytes; log {log} bytes")
    problems = []
    if last is None:
        problems.append("the daemon was never seen")
    if grown > GROWTH_KIB:
        problems.append(f"its memory grew by {grown} KiB")
    if most_fds > 256:
        problems.append(f"it had {most_fds} descriptors")
    if most_children > 40:
        problems.append(f"it had {most_children} children")
    if history > HISTORY_BYTES * 2:  # the file and its write-ahead log
        problems.append(f"history has {history} bytes, its limit is {HISTORY_BYTES}")
    if log > LOG_BYTES_AN_HOUR * max(hours, 1):
        problems.append(f"the log has {log} bytes")
    with open(folder + "/gpuhealthd.log") as file:
        if any("/gpuhealthd.yaml:" in line for line in file):
            problems.append("its configuration was not taken")
    if daemon_pid() is None:
        problems.append("the daemon does not run at the end")
    for problem in problems:
        print("soak: FAILED: " + problem)
    return 1 if problems else 0


if __name__ == "__main__":
    if sys.argv[1] == "scenario":
        scenario(int(sys.argv[2]), float(sys.argv[3]))
    else:
        sys.exit(watch(float(sys.argv[2]), float(sys.argv[3])))
