#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""suites.py --list: the suites of tests/run, how long each took on two cores, and what it proves.
suites.py --names: the names of those that ./dev test runs in the same build.
suites.py --changed [COMMIT]: the suites that prove what differs from COMMIT, by the table of CONTRIBUTING.md. Without COMMIT, from the
branch main of origin, or here."""
import os
import re
import subprocess
import sys

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
# Suites that are no folder's own: what they prove.
OTHERS = {"tier": ["safe", "trace"], "sanitized": []}
# Those that run only when their names are asked for.
ASKED = {"real", "arm", "sanitized", "browser", "viewers"}
# What each suite may depend on.
EVERYTHING = ("include/", "meson.build", "meson_options.txt", "src/meson.build", "src/fathom.map", "tests/lib/", "tests/run", "tests/meson.build",
              "dev")
# Files that are neither code nor tests, and the suites that read them.
DOCUMENTS = {"README.md": ["words"], "examples/tour/": ["words"], "examples/jit/": ["proof"], "examples/": ["crash", "cli", "python"], "docs/man/": ["cli"], "docs/schema/": ["schema", "cli"],
             "packaging/": ["cli"], "python/": ["python", "cli", "calls"], "docs/python.md": ["python"], "tools/vendor_jit.py": ["publish"]}


def read(path):
    with open(os.path.join(TOP, path), encoding="utf-8") as f:
        return f.read()


def folders():
    """The folder of tests/ of each suite, in the order of tests/run."""
    found = {}
    for name, command in re.findall(r"^ *(?:case .*\) |\[.*\|\| )?suite ([\w-]+) (.*)$", read("tests/run"), re.M):
        folder = re.search(r"tests/([\w]+)/", command)
        found[name] = folder[1] if folder else name
    return found


def table():
    """What each folder of tests/ proves: words of its first row, and the rooms of all its rows."""
    found = {}
    for line in read("CONTRIBUTING.md").splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) == 5 and cells[1].startswith("`tests/"):
            for folder in re.findall(r"tests/(\w+)", cells[1]):
                words, rooms = found.get(folder, (cells[2], []))
                found[folder] = (words, rooms + cells[3].split())
    return found


def git(*words, check=True):
    try:
        done = subprocess.run(["git", *words], cwd=TOP, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        sys.exit(f"git {' '.join(words)}: git is not installed")
    if check and done.returncode:
        sys.exit(f"git {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout.split("\n")


def base():
    """The commit that changes are seen from."""
    head = git("rev-parse", "HEAD")[0]
    for name in ("origin/main", "main"):
        commit = git("merge-base", "HEAD", name, check=False)[0]
        if commit and commit != head:
            return commit
    return "HEAD"


def is_of(path, rooms):
    """Whether a file of src/ or cli/ is of one of the rooms."""
    place = path.removeprefix("src/")
    return any(room == "all" or (place + "/").startswith(room + "/") or place == room for room in rooms)


def proving(path, suites, proves):
    """The suites that prove the file."""
    if path.startswith(EVERYTHING):
        return list(suites)
    if path.startswith("tests/"):
        return [name for name, folder in suites.items() if path.startswith(f"tests/{folder}/")]
    if path.startswith(("src/", "cli/")):
        return [name for name, folder in suites.items()
                if is_of(path, OTHERS[name] if name in OTHERS else proves.get(folder, ("", []))[1])]
    return next((names for start, names in DOCUMENTS.items() if path.startswith(start)), [])


def main():
    suites, proves = folders(), table()
    if sys.argv[1:2] == ["--names"]:
        print("\n".join(name for name in suites if name not in ASKED))
        return 0
    if sys.argv[1:2] == ["--list"]:
        seconds = dict(line.split("\t") for line in read("tests/seconds").splitlines() if not line.startswith("#"))
        for name, folder in suites.items():
            print(f"{name:11} {seconds.get(name, '-'):>4} s  {proves.get(folder, ('', []))[0]}"[:79].rstrip())
        return 0
    if sys.argv[1:2] != ["--changed"]:
        sys.exit(__doc__)
    since = sys.argv[2] if len(sys.argv) > 2 else base()
    changed = [p for p in git("diff", "--name-only", since) + git("ls-files", "--others", "--exclude-standard") if p]
    wanted = {name for path in changed for name in proving(path, suites, proves)} - ASKED
    print(" ".join(name for name in suites if name in wanted))
    return 0


if __name__ == "__main__":
    sys.exit(main())
