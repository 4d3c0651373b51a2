#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the OCI runtime-tools validation programs with several runtimes, and compares.

  validation.py --programs DIRECTORY --explained FILE --where PLACE [--only PATTERN,…] [--jobs N] NAME=COMMAND...

The current directory contains what the programs need: runtimetest and rootfs-ARCH.tar.gz. COMMAND is one path. The runtime
named coracle-oci is ours, the others are its peers.

A program reports its results as TAP lines, or, if it prints "1..0", as an "error" that follows, or by its exit status: each is
a line here. Prints for each program and runtime: "ok", or the failed lines. Then, as TAP:
  - each line that a peer passes, passes here;
  - each line that no runtime passes is in FILE with its reason, and no runtime passes the lines in FILE. FILE has lines
      PLACES: PROGRAM: LINE :: why
    where PLACES are words like v1 (several with a comma), and LINE is the failed line or its beginning with "…". Before PLACES,
    "~" marks a line that fails now and then, with any runtime: it is repeated until it passes where a peer passes it; "?" one
    that fails on some machines only; "!" one that a peer may pass, and ours need not. A why that begins with "NAME alone: " only
    explains the failure of the runtime NAME. In places that FILE does not contain, nothing of it is required.
"""
import argparse
import concurrent.futures
import os
import re
import signal
import subprocess
import sys
import threading
import time

from peers import chosen
from progress import Progress

OURS = "coracle-oci"
# These use the same cgroup name with every runtime.
SHARED = re.compile(r"cgroups|delete_(only_create_)?resources")
RACES = 12  # number of repetitions of a program with a known race
TIME_LIMIT_SECONDS = 60 * int(os.environ.get("CORACLE_PATIENCE", "1"))


def lines_of(status, out, err):
    """The results of one run: {line: passed}. A line that occurs several times has passed if each has."""
    said, plans, number = {}, [], 0

    def add(line, passed):
        said[line] = said.get(line, True) and passed

    for text in out.splitlines():
        # The output of runtimetest inside is in a YAML block, escaped; the line after it has the result.
        match = re.match(r"(not )?ok\b\s*(\d+)?\s*-?\s*(.*)", text)
        if match:
            number += 1
            if match[3].startswith("# SKIP"):
                continue
            add(re.sub(r"\s+", " ", without_chance(match[3])).strip() or f"line {number}", not match[1])
        elif re.match(r"1\.\.\d+", text):
            plans.append(int(text[3:].split()[0]))
        else:
            error = re.match(r'\s*"error": "(.*)"', text)
            if error and number == 0:
                add("error: " + without_chance(error[1].split("\\n")[0]), False)
    if plans and sum(plans) != number:
        add("as many lines as planned", False)
    if status != 0:
        last = without_chance(err.strip().splitlines()[-1]) if err.strip() else ""
        if re.match(r"Refer to: ", last):
            last = without_chance(err.strip().splitlines()[-2])
        add(f"exit status {status}" + (f": {last}" if last and not last.startswith("exit status") else ""), False)
    if not any(not passed for passed in said.values()):
        add("ends well", True)
    return said


def without_chance(text):
    """Removes parts that differ between runs."""
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UUID", text)
    text = re.sub(r"/tmp/[a-z-]+\d+", "/tmp/DIR", text)
    return re.sub(r'time=\\?"[^"]*"\s*', "", text)


class Runner:
    def __init__(self, programs):
        self.programs = programs
        self.shared = threading.Lock()

    def run(self, program, command):
        if SHARED.search(program):
            with self.shared:
                return self.run_alone(program, command)
        return self.run_alone(program, command)

    def run_alone(self, program, command):
        began = time.monotonic()
        process = subprocess.Popen([f"{self.programs}/{program}"], env={**os.environ, "RUNTIME": command}, text=True, errors="replace",
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        try:
            out, err = process.communicate(timeout=TIME_LIMIT_SECONDS)
            said = lines_of(process.returncode, out, err)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            said, err = {f"no end after {TIME_LIMIT_SECONDS} s": False}, ""
        return said, err, time.monotonic() - began


def failed(said):
    return [line for line, passed in said.items() if not passed]


class Explained:
    def __init__(self, path, place):
        self.entries, self.places, self.wrong = [], set(), []
        for number, text in enumerate(open(path), 1):
            text = text.strip()
            if not text or text.startswith("#"):
                continue
            parts = text.split(": ", 2)
            places = parts[0].lstrip("?!~").split(",")
            flags = parts[0][:len(parts[0]) - len(parts[0].lstrip("?!~"))]
            rest = parts[2] if len(parts) == 3 else ""
            line, found, why = rest.rpartition(" :: ")
            if len(parts) != 3 or not found or not why.strip():
                self.wrong.append(f"{os.path.basename(path)}:{number}: not PLACES: PROGRAM: LINE :: why")
                continue
            self.places |= set(places)
            if place in places:
                self.entries.append({"number": number, "program": parts[1], "line": line, "sometimes": "?" in flags or "~" in flags,
                                     "race": "~" in flags, "theirs": "!" in flags, "used": False,
                                     "only": only[1] if (only := re.match(r"([\w-]+) alone: ", why.strip())) else None})
        self.known_place = place in self.places

    def is_theirs(self, program, line):
        entry = self.of(program, line, OURS, theirs=True)
        if entry:
            entry["used"] = True
        return bool(entry)

    def of(self, program, line, runtime, theirs=False):
        for entry in self.entries:
            if entry["theirs"] != theirs or entry["only"] not in (None, runtime):
                continue
            wanted = entry["line"]
            if entry["program"] == program and (line == wanted or wanted.endswith("…") and line.startswith(wanted[:-1])):
                return entry
        return None


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--programs", required=True)
    arguments.add_argument("--explained", required=True)
    arguments.add_argument("--where", required=True)
    arguments.add_argument("--only", default="*")
    arguments.add_argument("--jobs", type=int, default=1)
    arguments.add_argument("runtimes", nargs="+")
    options = arguments.parse_args()
    runtimes = dict(each.split("=", 1) for each in options.runtimes)
    peers = [name for name in runtimes if name != OURS]
    runner = Runner(options.programs)
    progress = Progress("validation")
    programs = chosen(sorted(set(os.listdir(options.programs)) - {"runtimetest", "complete"}), options.only)

    all_programs, programs = programs, progress.left(programs)
    explained = Explained(options.explained, options.where)

    def run_all(program):
        """Repeats a program if ours fails what a peer passes, or a peer what nobody passes or explains: some programs have races."""
        if not progress.time_is_left():
            return None
        results = {name: runner.run(program, command) for name, command in runtimes.items()}
        passing = {line for said, _, _ in results.values() for line, passed in said.items() if passed}
        for name, command in runtimes.items():
            said = results[name][0]
            surprising = [line for line in failed(said) if line not in passing and not explained.of(program, line, name)]
            races = any((entry := explained.of(program, line, name)) and entry["race"] for line in failed(said))
            for _ in range(RACES if races else 1 if name == OURS else 3):
                if not any(not said.get(line, False) for line in passing) if name == OURS else not surprising:
                    break
                again = runner.run(program, command)
                if len(failed(again[0])) < len(failed(said)):
                    results[name] = again
                    said = again[0]
        return results

    answers = {}
    print("# program: runtime: what it said")
    pool = concurrent.futures.ThreadPoolExecutor(options.jobs)
    for program, results in zip(programs, pool.map(run_all, programs)):
        if results is None:
            continue
        answers[program] = results
        for name, (said, err, seconds) in results.items():
            bad = failed(said)
            good = len(said) - len(bad)
            print(f"# {program}: {name}: " + (f"ok ({seconds:.1f} s)" if not bad else f"failed {len(bad)} of {good + len(bad)}: " + "; ".join(bad)))
            if bad and name == OURS and err.strip():
                print(f"#   | {err.strip().splitlines()[-1][:300]}")
        sys.stdout.flush()
    for name in runtimes:
        whole = sum(1 for results in answers.values() if not failed(results[name][0]))
        print(f"measured: {name} passes {whole} of {len(answers)} programs ({options.where})")
    if len(answers) < len(all_programs):
        print(f"measured: {len(answers)} of {len(all_programs)} programs in this run, {len(programs) - len(answers)} are left")

    count = failures = 0

    def report(good, text, details=()):
        nonlocal count, failures
        count += 1
        failures += not good
        print(f"{'ok' if good else 'not ok'} {count} - {text}")
        for detail in details:
            print(f"  | {detail}")

    if explained.wrong:
        report(False, "the explanations can be read", explained.wrong)
    def passing_at_peers(results):
        return {line for peer in peers for line, passed in results[peer][0].items() if passed}

    unexplained = []
    for program, results in answers.items():
        if OURS in runtimes:
            ours = results[OURS][0]
            missing = [f"{line} ({', '.join(peer for peer in peers if results[peer][0].get(line))} passes it)"
                       for line in {line: None for peer in peers for line, passed in results[peer][0].items() if passed}
                       if not ours.get(line, False) and not explained.is_theirs(program, line)]
            more = [f"… and {len(missing) - 8} more"] if len(missing) > 8 else []
            more += [f"said here: {line}" for line in failed(ours)[:3] if line not in passing_at_peers(results)]
            if not missing:
                progress.has_passed(program)
            report(not missing, f"{program}: what a peer passes, passes here", missing[:8] + more)
        passing = {line for said, _, _ in results.values() for line, passed in said.items() if passed}
        for name, line in [(name, line) for name in runtimes for line in failed(results[name][0])]:
            if line in passing or explained.is_theirs(program, line):
                continue
            entry = explained.of(program, line, name)
            if entry:
                entry["used"] = True
            elif "ends well" not in passing:  # another runtime passes, so this is a failure
                unexplained.append(f"{program}: {line} ({name})")
    if explained.known_place:
        report(not unexplained, "what nobody passes is explained", unexplained)
        stale = [f"line {entry['number']}: {entry['program']}: {entry['line']}" for entry in explained.entries
                 if entry["program"] in answers and not entry["used"] and not entry["sometimes"]]
        report(not stale, "what is explained is passed by nobody", stale)
    else:
        print(f"# {os.path.basename(options.explained)} knows nothing of {options.where}: unexplained: {unexplained}")
    print(f"1..{count}")
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
