# SPDX-License-Identifier: Apache-2.0
# Prints results as TAP, for the scripts in this directory.
import sys

_count = _failures = 0


def told(good, name, *why):
    """Prints one result, and the details of a failure."""
    global _count, _failures
    _count += 1
    _failures += not good
    print("ok" if good else "not ok", _count, "-", name, flush=True)
    if not good:
        for line in why:
            print("  |", str(line)[:600], flush=True)


def leave():
    """Prints the plan and ends the program: 1 when something failed."""
    print("1..%d" % _count)
    sys.exit(_failures > 0)
