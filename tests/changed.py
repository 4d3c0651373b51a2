#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Finds the tests that a change can affect: `tests/run.sh --changed`.

  changed.py BUILD [BASE]     prints one "suite/name" per line; its reasons, and what is left out, go to standard error

A change is the difference between the commit BASE and the work tree, including untracked files. BASE is by default the commit
that was pushed last, otherwise HEAD.

  a program of a suite in PROGRAM_SUITES   if ninja's graph has a path from a changed file to it
  a test that reads the source tree        always
  an end-to-end script                     if its line "# for:" has a prefix of a changed path, or if it is changed itself, or Python of it
Nothing is built here: a program with a part that was never compiled counts as affected.
"""
import json
import os
import re
import subprocess
import sys

PROGRAM_SUITES = ("unit", "live", "fuzz")
LEFT_OUT = {"simulation": "tests/run.sh --only simulation", "oci": "tests/run.sh --only oci", "vm": "tests/run.sh --only vm"}


def output_of(*command, cwd=None):
    return subprocess.run(command, check=True, capture_output=True, text=True, cwd=cwd).stdout


def pushed_last(root):
    try:
        return output_of("git", "merge-base", "HEAD", "@{upstream}", cwd=root).strip()
    except subprocess.CalledProcessError:
        return "HEAD"


def changed_files(root, base):
    known = output_of("git", "diff", "--name-only", "-z", base, "--", cwd=root).split("\0")
    new = output_of("git", "ls-files", "-z", "--others", "--exclude-standard", cwd=root).split("\0")
    return sorted({name for name in known + new if name})


def header_dependencies(build):
    """The inputs of each object's last compilation, from ninja's log. Absolute paths."""
    found, current = {}, None
    for line in output_of("ninja", "-C", build, "-t", "deps").splitlines():
        if line.startswith("    "):
            current.add(os.path.realpath(os.path.join(build, line.strip())))
        elif ": #deps" in line:
            current = found.setdefault(line.split(": #deps")[0], set())
    return found


def inputs_of(build, programs, dependencies):
    """Paths of all inputs of the programs; None if a part was never compiled, since its inputs are then unknown."""
    names = set(output_of("ninja", "-C", build, "-t", "inputs", *programs).splitlines())
    names = {name for name in names if not name.startswith("ninja: ")}
    paths = {os.path.realpath(os.path.join(build, name)) for name in names}
    for name in names:
        if name in dependencies:
            paths |= dependencies[name]
        elif name.endswith(".o"):
            return None
    return paths


def scripts_for(root, changed):
    """The names of the end-to-end scripts whose "# for:" matches a changed file."""
    chosen = set()
    folder = os.path.join(root, "tests/e2e")
    for name in os.listdir(folder):
        if not name.endswith(".sh"):
            continue
        with open(os.path.join(folder, name)) as file:
            head = file.read(4000)
        for line in re.findall(r"^# for: (.*)$", head, re.M):
            if any(path.startswith(prefix) for prefix in line.split() for path in changed):
                chosen.add(name[:-3])
        used = {name, "lib.sh", *python_files(folder, head)}
        if any(f"tests/e2e/{each}" in changed for each in used):
            chosen.add(name[:-3])
    return chosen


def python_files(folder, script):
    """The files in Python that a script names, and those that these import."""
    found = set(re.findall(r"[\w.]+\.py\b", script))
    for name in list(found):
        if os.path.exists(os.path.join(folder, name)):
            with open(os.path.join(folder, name)) as file:
                found |= {module + ".py" for module in re.findall(r"^(?:from|import) (\w+)", file.read(), re.M)}
    return found


def main():
    build, root = sys.argv[1], os.path.realpath(os.path.join(os.path.dirname(__file__), ".."))
    base = sys.argv[2] if len(sys.argv) > 2 else pushed_last(root)
    try:
        commit = output_of("git", "rev-parse", "--verify", "--short", base + "^{commit}", cwd=root).strip()
    except subprocess.CalledProcessError:
        sys.exit(f"changed.py: there is no commit {base}")
    changed = changed_files(root, base)
    if not changed:
        print(f"nothing is changed since {commit}", file=sys.stderr)
        return
    print(f"{len(changed)} files are changed since {commit}: {' '.join(changed[:8])}{' …' if len(changed) > 8 else ''}", file=sys.stderr)
    paths = {os.path.join(root, name) for name in changed}
    is_setup_changed = any(os.path.basename(name) == "meson.build" for name in changed)
    dependencies = header_dependencies(build)
    tests = json.loads(output_of("meson", "introspect", build, "--tests"))
    files = {target["id"]: target["filename"] for target in json.loads(output_of("meson", "introspect", build, "--targets"))}
    scripts = scripts_for(root, changed)
    chosen, left = [], []
    for test in tests:
        suite = test["suite"][0].split(":")[-1]
        if suite in PROGRAM_SUITES:
            programs = [os.path.relpath(name, build) for each in test["depends"] for name in files.get(each, [])]
            inputs = inputs_of(build, programs, dependencies) if programs else set()
            is_touched = (is_setup_changed or inputs is None or "CORACLE_SOURCE" in test["env"]
                          or bool(paths & ({os.path.realpath(word) for word in test["cmd"]} | inputs)))
        elif suite == "e2e":
            is_touched = test["name"] in scripts
        else:
            continue
        (chosen if is_touched else left).append((suite, test["name"]))
    for suite, name in chosen:
        print(f"{suite}/{name}")
    for suite in (*PROGRAM_SUITES, "e2e"):
        names = [name for each, name in left if each == suite]
        if names:
            print(f"left out, untouched as far as one can tell: {suite}: {' '.join(sorted(names))}", file=sys.stderr)
    for suite, command in LEFT_OUT.items():
        print(f"left out: {suite} ({command})", file=sys.stderr)


if __name__ == "__main__":
    main()
