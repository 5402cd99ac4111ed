#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: doc_commands.py SOURCE_DIR GPUHEALTHCTL

Every gpuhealthctl command that the documents show is one: its words are commands, its options are options of these."""
import functools
import glob
import os
import re
import subprocess
import sys


@functools.lru_cache(maxsize=None)
def help_of(program, words):
    text = subprocess.run([program, *words, "--help"], capture_output=True, text=True).stdout
    commands = re.search(r"^Subcommands:\n((?:  .*\n)+)", text, re.M)
    names = re.findall(r"^  ([a-z][a-z-]*)", commands[1], re.M) if commands else []
    return set(names), set(re.findall(r"(?:^|[ ,])(-{1,2}[a-z][a-z-]*)", text)), bool(re.search(r"^Positionals:", text, re.M))


def snippets(text):
    """Lines of code blocks, and spans of code."""
    for block in re.findall(r"```[a-z]*\n(.*?)```|((?:^    .*\n)+)", text, re.S | re.M):
        yield from (block[0] or block[1]).split("\n")
    yield from re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.S))


def faults(program, line):
    for call in re.findall(r"\bgpuhealthctl((?: +[^\s|;&#`)(>]+)*)", line):
        words, out = (), []
        names, options, positionals = help_of(program, ())
        for word in call.split():
            if re.fullmatch(r"[a-z][a-z-]*", word) and names:
                if word not in names:
                    if positionals or not words:
                        break  # prose, or a value
                    out.append(f"there is no gpuhealthctl {' '.join(words)} {word}")
                    break
                words += (word,)
                names, options, positionals = help_of(program, words)
            elif re.fullmatch(r"--[a-z][a-z-]*(=.*)?", word):
                option = word.split("=")[0]
                if option not in options | help_of(program, ())[1]:
                    out.append(f"gpuhealthctl {' '.join(words)} has no {option}")
        if not words and re.match(r" +[a-z][a-z-]+( |$)", call) and line.strip().startswith(("gpuhealthctl", "sudo", "$")):
            out.append(f"there is no gpuhealthctl{call}")
        yield from out


def main(source, program):
    assert list(faults(program, "gpuhealthctl nonsense")) and list(faults(program, "gpuhealthctl kernel nonsense"))
    assert list(faults(program, "sudo gpuhealthctl status --nonsense")) and not list(faults(program, "gpuhealthctl kernel pin 6.1 --json"))
    found, seen = [], 0
    for path in sorted(glob.glob(f"{source}/docs/*.md") + [f"{source}/README.md", f"{source}/SECURITY.md", f"{source}/CHANGELOG.md"]):
        for line in snippets(open(path).read()):
            seen += "gpuhealthctl" in line
            found += [f"{os.path.relpath(path, source)}: {fault}: {line.strip()}" for fault in faults(program, line)]
    if seen < 100:
        found.append(f"only {seen} commands were seen")
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
