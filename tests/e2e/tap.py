# SPDX-License-Identifier: Apache-2.0
# Prints results as TAP, for the scripts in this directory.
import json, sys

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


def expect(name, want, got):
    """Reports whether an answer of the API, (status, body), has one of the wanted statuses and, as an error, is a complete Status."""
    status, body = got
    good = status in want
    if good and status >= 400 and status != 404 and body[:1] == b"{":  # an error in JSON is a complete Status
        try:
            shown = json.loads(body.decode("utf-8", "strict"))
            good = shown.get("kind") == "Status" and shown.get("code") == status and bool(shown.get("message"))
        except ValueError:
            good = False
    told(good, name, "want %s, got %d" % (sorted(want), status), body)


def leave():
    """Prints the plan and ends the program: 1 when something failed."""
    print("1..%d" % _count)
    sys.exit(_failures > 0)
