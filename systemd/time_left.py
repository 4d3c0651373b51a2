#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Estimates the rest of a build's time: reads ninja's output, and prints "about 3 minutes left" whenever that changes.

  ninja -C BUILD TARGETS... | time_left.py BUILD TARGETS...      (started before ninja: it queries ninja for the steps)

A step's share of the time is estimated from the size of its source; the machine's speed is measured during the build.
"""
import os
import re
import subprocess
import sys
import time

HEADERS_BYTES = 60_000  # the cost of a file's headers, as an equivalent number of bytes of our own source
LINK_BYTES = 10_000
SHOW_EVERY_SECONDS = 20
STEP = re.compile(r"^\[\d+/\d+\] (.*)$")


def compiled_bytes(build, path):
    """The size of an object's source; for a unity file, of the files that it includes."""
    match = re.match(r"(.*\.p)/(?:meson-generated_)?(.*)\.o$", path)
    if not match:
        return 0
    unit = os.path.join(build, *match.groups())
    try:
        with open(unit) as file:
            return sum(os.path.getsize(name) for name in re.findall(r"^#include\s*[<\"](.*)[>\"]", file.read(), re.M))
    except OSError:
        return 0


def weight(build, step):
    if step.startswith("Compiling"):
        return HEADERS_BYTES + compiled_bytes(build, step.split()[-1])
    return LINK_BYTES


def words_for(seconds):
    if seconds < 45:
        return "less than a minute left"
    minutes = round(seconds / 60)
    return f"about {minutes} minute{'' if minutes == 1 else 's'} left" if minutes < 90 else f"about {round(minutes / 60)} hours left"


def main():
    build, *targets = sys.argv[1:]
    plan = subprocess.run(["ninja", "-C", build, "-n", *targets], capture_output=True, text=True, check=False).stdout
    weights = {match.group(1): weight(build, match.group(1)) for match in map(STEP.match, plan.splitlines()) if match}
    whole, done = sum(weights.values()), 0
    started = time.monotonic()
    shown, shown_at = "", started
    for line in sys.stdin:
        match = STEP.match(line)
        if not match:
            continue
        done += weights.pop(match.group(1), 0)
        now = time.monotonic()
        if now - shown_at < SHOW_EVERY_SECONDS or done * 20 < whole:  # the first steps give no good estimate
            continue
        words = words_for((now - started) * (whole - done) / done)
        if words != shown:
            print(f"  {words}", flush=True)
            shown, shown_at = words, now


if __name__ == "__main__":
    main()
