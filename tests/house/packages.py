#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: packages.py SOURCE_DIR BUILD_DIR

Every file that is installed is in exactly one Debian package and one rpm, and neither names one that is not. scripts/check-packages installs
the packages; this is what can be known without building them."""
import fnmatch
import os
import re
import subprocess
import sys
import tempfile

MACROS = {
    "_sysconfdir": "etc", "_prefix": "usr", "_unitdir": "usr/lib/systemd/system", "_userunitdir": "usr/lib/systemd/user",
    "_sysusersdir": "usr/lib/sysusers.d", "_tmpfilesdir": "usr/lib/tmpfiles.d", "_libexecdir": "usr/libexec", "_sbindir": "usr/sbin",
    "_bindir": "usr/bin", "_datadir": "usr/share", "_docdir": "usr/share/doc", "_mandir": "usr/share/man", "name": "gpuhealthd",
}


def installed(build):
    """Paths as a package has them, whatever prefix the build was configured with."""
    with tempfile.TemporaryDirectory() as stage:
        environment = dict(os.environ, DESTDIR=stage, CMAKE_INSTALL_MODE="ABS_SYMLINK")
        subprocess.run(["cmake", "--install", build], env=environment, check=True, stdout=subprocess.DEVNULL)
        out = set()
        for folder, folders, files in os.walk(stage):
            for name in files + [f for f in folders if os.path.islink(os.path.join(folder, f))]:
                path = os.path.relpath(os.path.join(folder, name), stage)
                out.add(re.sub(r"^usr/local/(etc/)?", lambda m: m[1] or "usr/", path))
        return out


def debian(source):
    folder = os.path.join(source, "packaging/debian")
    for name in sorted(os.listdir(folder)):
        if re.search(r"\.install(\.in)?$", name):
            for line in open(os.path.join(folder, name)):
                if line.strip():
                    yield name.split(".")[0], line.split()[0].replace("@units@", "usr/lib/systemd/system")


def rpm(source):
    package = None
    for line in open(os.path.join(source, "packaging/rpm/gpuhealthd.spec")):
        line = line.strip()
        if line.startswith("%files"):
            package = line.split()[-1] if "-n" in line else "gpuhealthd"
        elif package and line and not line.startswith("%license"):
            path = re.sub(r"%\{(\w+)\}", lambda m: MACROS[m[1]], line.split()[-1])
            yield package, path


def faults(files, patterns, what):
    out = []
    homes = {path: set() for path in files}
    for package, pattern in patterns:
        hits = [path for path in files if path.startswith(pattern + "/") or fnmatch.fnmatchcase(path, pattern)]
        if not hits:
            out.append(f"{what}: {package} names {pattern}, which is not installed")
        for path in hits:
            homes[path].add(package)
    for path, packages in sorted(homes.items()):
        if len(packages) != 1:
            out.append(f"{what}: {path} is in {', '.join(sorted(packages)) or 'no package'}")
    return out


def main(source, build):
    # It can fail: a file too many, one too few, one in two packages.
    assert faults({"usr/bin/a"}, [], "x") and faults(set(), [("p", "usr/bin/a")], "x")
    assert faults({"usr/bin/a"}, [("p", "usr/bin"), ("q", "usr/bin/a")], "x") and not faults({"usr/bin/a"}, [("p", "usr/bin")], "x")
    files = installed(build)
    out = faults(files, list(debian(source)), "Debian") + faults(files, list(rpm(source)), "rpm")
    folder = os.path.join(source, "packaging/debian")
    for name in sorted(os.listdir(folder)):
        if re.search(r"\.(pre|post)(inst|rm)$", name):
            checked = subprocess.run(["sh", "-n", os.path.join(folder, name)], capture_output=True, text=True)
            if checked.returncode != 0:
                out.append(f"{name}: {checked.stderr}")
    print("\n".join(out))
    return 1 if out else 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
