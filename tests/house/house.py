#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The rules of the house, checked on the text of the tree.

usage: house.py RULE ROOT     one rule on a tree; prints what breaks it, exit code 1
       house.py self-test     every rule on a small tree that breaks it, and on one that does not
"""
import pathlib
import re
import subprocess
import sys
import tempfile

# A room may use itself and any room before it (docs/architecture.md).
ORDER = ["core", "store", "telemetry", "canary", "grub", "health", "policy", "actions", "dbus", "daemon"]
MAY_USE = {room: set(ORDER[: i + 1]) for i, room in enumerate(ORDER)}
MAY_USE["cli"] = set(ORDER[:-1]) | {"cli"}
MAY_USE["desktop"] = {"core", "dbus", "desktop"}
MAY_USE["exporter"] = {"core", "canary", "dbus", "exporter"}
MAY_USE["sim"] = set(ORDER[:-1]) | {"sim"}

INCLUDE = re.compile(r'^\s*#\s*include\s+[<"]([^>"]+)[>"]', re.M)
VENDOR = re.compile(r"^(rocm_smi|amd_smi|hip|hiprtc|CL|nvml|cuda|amdgpu|libdrm|xf86drm|amdgpu_drm)\b")
VENDOR_ROOMS = {"telemetry", "canary", "sim"}  # canary runs GPU code through the same libraries, sim answers in the kernel's place
SPDX = "SPDX-License-Identifier: Apache-2.0"
SPDX_MODULE = "SPDX-License-Identifier: GPL-2.0"
# Written in pieces, so that this file does not break its own rule.
MACHINE_PATH = re.compile("(?<![\\w.])/(" + "|".join(["wo" + "rk", "fa" + "rm", "tmp/" + "sr"]) + ")/")
MAX_LINES = 600


def files(root):
    listed = subprocess.run(["git", "-C", str(root), "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True)
    names = listed.stdout.split("\n") if listed.returncode == 0 else [
        str(p.relative_to(root)) for p in root.rglob("*") if "build" not in p.relative_to(root).parts]
    return [root / name for name in names if name and (root / name).is_file() and not (root / name).is_symlink()]


def text(path):
    try:
        return path.read_text()
    except UnicodeDecodeError:
        return ""  # not text: nothing of ours to judge


def is_code(path):
    return path.suffix in {".cpp", ".hpp", ".h", ".c", ".def"}


def is_source(path):
    return is_code(path) or path.name == "CMakeLists.txt" or path.suffix in {".py", ".sh", ".cmake"} or text(path)[:2] == "#!"


def room_of(path, root):
    return path.relative_to(root).parts[0]


def rooms(root):
    for path in filter(is_code, files(root)):
        room = room_of(path, root)
        for used in INCLUDE.findall(text(path)) if room in MAY_USE else []:
            target = used.split("/")[0] if "/" in used else room
            if target in MAY_USE and target not in MAY_USE[room]:
                yield path, f"room {room} may not include {used}"


def vendors(root):
    for path in filter(is_code, files(root)):
        room = room_of(path, root)
        if room not in MAY_USE or room in VENDOR_ROOMS:
            continue
        for used in INCLUDE.findall(text(path)):
            if VENDOR.match(used):
                yield path, f"{used} belongs to telemetry/"


def spdx(root):
    for path in filter(is_source, files(root)):
        kernel_module = path.parent.name == "userptr" and path.suffix == ".c"  # a module that uses GPL symbols
        if (SPDX_MODULE if kernel_module else SPDX) not in "\n".join(text(path).split("\n")[:3]):
            yield path, "no SPDX line on top"


def paths(root):
    for path in files(root):
        for number, line in enumerate(text(path).split("\n"), 1):
            if MACHINE_PATH.search(line):
                yield path, f"line {number} names a path of some machine: {line.strip()[:80]}"


def asio(root):
    for path in files(root):
        if path.suffix in {".hpp", ".h"} and "boost/asio.hpp" in INCLUDE.findall(text(path)):
            yield path, "includes <boost/asio.hpp>; take the narrow headers"


def lengths(root):
    for path in filter(is_code, files(root)):
        lines = text(path).count("\n")
        if lengths_apply(path) and lines > MAX_LINES:
            yield path, f"{lines} lines; a file has one subject and at most {MAX_LINES}"


def lengths_apply(path):
    return path.suffix != ".def"  # a table is as long as its facts


def scenarios(root):
    page = root / "docs/simulator.md"
    said = text(page) if page.is_file() else ""
    for path in files(root):
        if path.parent != root / "sim/scenarios" or path.suffix != ".yaml":
            continue
        about = re.search(r"^about: (.*)$", text(path), re.M)
        row = f"| `{path.stem}` | {about.group(1) if about else ''} |"
        if row not in said:
            yield path, f"docs/simulator.md lacks its row: {row}"


PROGRAM = re.compile(r"^\s*gpuhealth_program\((\S+)([^)]*)\)", re.M)
OPTION = re.compile(r'"(?:-\w,)?(--[a-z][a-z-]+)"|^\s*[^\w"]*\{"([a-z][a-z-]+)", (?:no|required)_argument', re.M)


def manuals(root):
    """Every program that is installed has a page, and the page every option that its own sources name."""
    for lists in files(root):
        for name, rest in PROGRAM.findall(text(lists)) if lists.name == "CMakeLists.txt" else []:
            words = rest.split()
            if "INSTALL" not in words:
                continue
            pages = [root / f"docs/man/{name}.{section}" for section in (1, 8)]
            pages = [page for page in pages if page.is_file()]
            if not pages:
                yield lists, f"{name} is installed and has no page in docs/man"
                continue
            said = text(pages[0]).replace("\\-", "-")
            for source in [lists.parent / word for word in words if word.endswith(".cpp")]:
                for long, bare in OPTION.findall(text(source)):
                    option = long or "--" + bare
                    if not re.search(re.escape(option) + r"(?![a-z-])", said):
                        yield source, f"{option} is not in {pages[0].relative_to(root)}"


RULES = {"rooms": rooms, "vendors": vendors, "spdx": spdx, "paths": paths, "asio": asio, "lengths": lengths,
         "scenarios": scenarios, "manuals": manuals}

# For each rule: (file, content) that breaks it, and one that does not.
TOP = f"// {SPDX}\n"
SAMPLES = {
    "rooms": (("store/a.cpp", TOP + '#include "health/engine.hpp"\n'), ("health/a.cpp", TOP + '#include "store/database.hpp"\n')),
    "vendors": (("health/a.cpp", TOP + "#include <rocm_smi/rocm_smi.h>\n"), ("telemetry/a.cpp", TOP + "#include <xf86drm.h>\n")),
    "spdx": (("core/a.cpp", "int a;\n"), ("core/a.cpp", TOP)),
    "paths": (("docs/a.md", "see /wo" + "rk/main\n"), ("docs/a.md", "see /var/lib/gpuhealthd and ./work/a\n")),
    "asio": (("dbus/a.hpp", TOP + "#include <boost/asio.hpp>\n"), ("dbus/a.hpp", TOP + "#include <boost/asio/io_context.hpp>\n")),
    "scenarios": (("sim/scenarios/a.yaml", "about: A fan stops.\n"), ("docs/examples/a.yaml", "about: A fan stops.\n")),
    "manuals": (("a/CMakeLists.txt", f"# {SPDX}\ngpuhealth_program(a USES core SOURCES main.cpp INSTALL bin)\n"),
                ("a/CMakeLists.txt", f"# {SPDX}\ngpuhealth_program(a USES core SOURCES main.cpp)\n")),
    "lengths": (("core/a.cpp", TOP + "\n" * 600), ("core/a.cpp", TOP + "\n" * 599)),
}
EXTRA_BREAKS = [("rooms", "cli/a.cpp", '#include "daemon/loop.hpp"\n'), ("rooms", "exporter/a.cpp", '#include "health/engine.hpp"\n'),
                ("rooms", "dbus/a.cpp", '#include "cli/status.hpp"\n'), ("spdx", "scripts/a", "#!/bin/sh\n")]


def broken_by(rule, name, content):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / name
        path.parent.mkdir(parents=True)
        path.write_text(content)
        return list(RULES[rule](pathlib.Path(folder)))


def self_test():
    bad = 0
    for rule, (breaks, holds) in SAMPLES.items():
        bad += not broken_by(rule, *breaks)
        bad += bool(broken_by(rule, *holds))
    bad += sum(not broken_by(rule, name, content) for rule, name, content in EXTRA_BREAKS)
    print(f"{bad} rules do not see what they are for")
    return bad


def main():
    if sys.argv[1:] == ["self-test"]:
        return 1 if self_test() else 0
    if len(sys.argv) != 3 or sys.argv[1] not in RULES:
        sys.exit(__doc__)
    root = pathlib.Path(sys.argv[2]).resolve()
    found = list(RULES[sys.argv[1]](root))
    for path, why in found:
        print(f"{path.relative_to(root)}: {why}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
