#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs test programs side by side, and counts their results.

  runner.py targets BUILD TESTS...                             prints the ninja targets for those tests of meson
  runner.py list BUILD TESTS... [--prefix P] [--factor N]      prints their jobs, one JSON object a line
  runner.py job NAME SECONDS PRIORITY [NAME=VALUE...] COMMAND  prints one more job
  runner.py run --jobs N --totals FILE JOBS                    runs the jobs of that file

TESTS: "suite", all of its tests, or "suite/name".

A job: {"name", "seconds" (its limit), "alone", "priority", "cmd": [...], "cwd", "env": {...}}. Jobs of the highest priority start
first: in a suite that is the test's priority in meson.build; longer tests have a higher one, so that a short one ends last. Jobs
that are "alone" (`is_parallel: false`: they measure time, or count resources of the whole machine) run after the others, one at a
time.

A program reports its results by GoogleTest's summary, by TAP lines ("ok", "not ok", "ok … # SKIP reason"), or by its exit status
alone (77 is skipped). Its output is shown if it fails; if it passes, only the skips with their reasons and the measurements. FILE
gets a line per job: passed, failed, skipped, seconds, name.
"""
import argparse
import json
import os
import re
import selectors
import signal
import subprocess
import sys
import tempfile
import time

GRACE_SECONDS = 20      # between SIGTERM and SIGKILL: the end-to-end tests clean up meanwhile
SECONDS_MIN = 180       # a test's limit should only end one that hangs, whatever the machine's load
# The C library fills memory that is freed: what uses it afterwards fails each time, not by chance. As meson test has it.
FREED_MEMORY_IS_FILLED = {"MALLOC_PERTURB_": "165"}
SHOWN_LINES_MAX = 400   # lines of a failing test's output; of a longer output the failures and the end are shown


# ---- jobs ----

def introspect(build, what):
    return json.loads(subprocess.run(["meson", "introspect", build, what], check=True, capture_output=True).stdout)


def tests_of(build, wanted):
    """[(suite, test)]"""
    all_tests = [(test["suite"][0].split(":")[-1], test) for test in introspect(build, "--tests")]
    return [(suite, test) for suite, test in all_tests if suite in wanted or f"{suite}/{test['name']}" in wanted]


def print_targets(build, wanted):
    files = {target["id"]: target["filename"] for target in introspect(build, "--targets")}
    needed = {name for _, test in tests_of(build, wanted) for each in test["depends"] for name in files.get(each, [])}
    for name in sorted(needed):
        print(os.path.relpath(name, build))


def print_jobs(build, wanted, prefix, factor):
    for suite, test in tests_of(build, wanted):
        print(json.dumps({
            "name": f"{prefix or suite}/{test['name']}", "seconds": max(int(test["timeout"] or 30), SECONDS_MIN) * factor, "alone": not test["is_parallel"],
            "priority": test["priority"], "cmd": test["cmd"], "env": {**(FREED_MEMORY_IS_FILLED if suite == "unit" else {}), **test["env"]},
            "cwd": test["workdir"] or build}))


# ---- counting ----

def count(name, text, status):
    """(passed, failed, skipped, one more line to show, or None)."""
    passed = sum(int(n) for n in re.findall(r"^\[  PASSED  \] (\d+) tests?\.", text, re.M))
    failed = sum(int(n) for n in re.findall(r"^\[  FAILED  \] (\d+) tests?, listed below", text, re.M))
    skipped = sum(int(n) for n in re.findall(r"^\[  SKIPPED \] (\d+) tests?, listed below", text, re.M))
    for line in text.splitlines():
        if line.startswith("not ok "):
            failed += 1
        elif line.startswith("ok "):
            if "# SKIP" in line:
                skipped += 1
            else:
                passed += 1
    if status not in (0, 77) and failed == 0:  # it ended without a result
        return passed, 1, skipped, f"not ok {name}: ended with status {status}"
    if status == 77 and skipped == 0:
        skipped = 1
    if passed == failed == skipped == 0:
        if re.search(r"^\[==========\]", text, re.M):
            return 0, 1, 0, f"not ok {name}: ran no test"
        passed = 1  # a program with one test or a fuzzer's corpus: the exit status is the result
    return passed, failed, skipped, None


def shown(text, is_bad):
    """The part of a program's output that is shown."""
    lines = text.splitlines()
    if not is_bad:
        out = [line for line in lines if "# SKIP" in line or re.match(r"(Skipped|skipped):", line)]
        if not out:  # GoogleTest prints the reason on the line after the place
            for i, line in enumerate(lines):
                if line.endswith(": Skipped") or re.match(r"\[  SKIPPED \] [A-Z]", line):
                    out += [each for each in lines[i:i + 2] if each not in out]
            out = out[:20]
        return out + [line for line in lines if re.match(r"(# )?(bench|measured):", line)]
    if len(lines) <= SHOWN_LINES_MAX:
        return lines
    failures = []
    until = -1
    for i, line in enumerate(lines):
        if re.match(r"not ok", line) or re.search(r"Failure$|ERROR: |WARNING: ThreadSanitizer", line):
            until = i + 8
        if i <= until:
            failures.append(line)
    return failures[:200] + ["…"] + lines[-150:]


# ---- running ----

class Running:
    def __init__(self, job):
        self.job = job
        self.started = time.monotonic()
        self.limit = self.started + job["seconds"]
        self.killed_at = None
        self.is_stopped = False  # together with the run, before its limit
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen(job["cmd"], stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, cwd=job.get("cwd"),
                                        env={**os.environ, **job.get("env", {})}, start_new_session=True)
        self.pidfd = os.pidfd_open(self.process.pid)

    def signal(self, number):
        try:
            os.killpg(self.process.pid, number)
        except ProcessLookupError:
            pass

    def next_event(self):
        return self.limit if self.killed_at is None else self.killed_at + GRACE_SECONDS

    def enforce(self, now):
        if now < self.next_event():
            return
        if self.killed_at is None:
            self.killed_at = now
            self.signal(signal.SIGTERM)
        else:
            self.killed_at = now
            self.signal(signal.SIGKILL)

    def finish(self):
        """Prints the results; returns (passed, failed, skipped, seconds)."""
        status = self.process.wait()
        os.close(self.pidfd)
        self.log.seek(0)
        text = self.log.read().decode(errors="replace")
        name = self.job["name"]
        if self.killed_at is not None:
            why = "stopped" if self.is_stopped else f"no end after {self.job['seconds']} s"
            text += f"\nnot ok {name}: {why}\n"
        seconds = time.monotonic() - self.started
        passed, failed, skipped, more = count(name, text, 128 - status if status < 0 else status)
        for line in shown(text, failed > 0) + ([more] if more else []):
            print(line)
        print(f"{name:<32} {passed:4} passed {failed:3} failed {skipped:3} skipped {seconds:6.0f} s", flush=True)
        return passed, failed, skipped, seconds


def run_jobs(jobs, slots, totals):
    waiting = sorted(jobs, key=lambda job: (job.get("alone", False), -job.get("priority", 0)))
    running = []
    stopped = []

    def stop(number, _frame):
        stopped.append(number)
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    with selectors.DefaultSelector() as selector:
        while waiting or running:
            while waiting and not stopped and len(running) < slots:
                is_alone = waiting[0].get("alone", False)
                if running and (is_alone or running[0].job.get("alone", False)):
                    break
                each = Running(waiting.pop(0))
                running.append(each)
                selector.register(each.pidfd, selectors.EVENT_READ, each)
            if not running:
                break
            until = min(each.next_event() for each in running)
            ready = selector.select(max(0.0, min(1.0, until - time.monotonic())))
            for key, _ in ready:
                each = key.data
                selector.unregister(each.pidfd)
                running.remove(each)
                passed, failed, skipped, seconds = each.finish()
                with open(totals, "a") as file:
                    file.write(f"{passed}\t{failed}\t{skipped}\t{seconds:.1f}\t{each.job['name']}\n")
            now = time.monotonic()
            for each in running:
                if stopped and each.killed_at is None:
                    each.is_stopped = True
                    each.limit = min(each.limit, now)
                each.enforce(now)
    return 128 + stopped[0] if stopped else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verb = verbs.add_parser("targets")
    verb.add_argument("build")
    verb.add_argument("tests", nargs="+")
    verb = verbs.add_parser("list")
    verb.add_argument("build")
    verb.add_argument("tests", nargs="+")
    verb.add_argument("--prefix")
    verb.add_argument("--factor", type=int, default=1)
    verb = verbs.add_parser("job")
    verb.add_argument("name")
    verb.add_argument("seconds", type=int)
    verb.add_argument("priority", type=int)
    verb.add_argument("command", nargs=argparse.REMAINDER)
    verb = verbs.add_parser("run")
    verb.add_argument("--jobs", type=int, default=os.cpu_count())
    verb.add_argument("--totals", required=True)
    verb.add_argument("file")
    arguments = parser.parse_args()
    if arguments.verb == "targets":
        print_targets(arguments.build, arguments.tests)
    elif arguments.verb == "list":
        print_jobs(arguments.build, arguments.tests, arguments.prefix, arguments.factor)
    elif arguments.verb == "job":
        print(json.dumps({"name": arguments.name, "seconds": arguments.seconds, "priority": arguments.priority,
                          "cmd": ["env", *arguments.command]}))
    else:
        with open(arguments.file) as file:
            jobs = [json.loads(line) for line in file]
        return run_jobs(jobs, arguments.jobs, arguments.totals)
    return 0


if __name__ == "__main__":
    sys.exit(main())
