#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the commands of a table with kubectl and with coraclectl against one server, and compares exit codes, outputs and the objects
that are there afterwards. Prints TAP: a test for each part of the table.

  outputs.py KUBECTL CORACLECTL KUBECONFIG TABLE [--long] [--peer] [--only REGEX] [--all]

A line of the table is a command, as a shell splits it; " < FILE" gives it a standard input. "= TITLE WORD..." begins a part:
  read   nothing changes: commands run at the same time, in the namespace "shown"
  own    each program has a namespace of its own, and commands run one after the other; ^ is the program's letter, for names of
         objects that have no namespace. In the end both namespaces have to hold the same
  long   the part is left out without --long
--peer: the server is not ours, and no pod runs there: commands that wait for one are left out, and differences that KNOWN explains
may be absent.
"@KEY" before a command: the difference that KNOWN explains. It has to exist. The exit codes may differ only where
OTHER_CODE has the key. A program that does not end in time, or that a signal ends, fails the part whatever the other one does.
"~" before a command: kubectl prints the lines in the order of a Go map, which is another one each time; they are sorted before they
are compared.
--all shows each difference whole.

Exit code: 0, or FAILED if a test failed. Anything else (1 is Python's own, of an exception) means that the comparison broke off.
"""
import argparse
import concurrent.futures
import difflib
import json
import os
import re
import shlex
import subprocess
import sys

KNOWN = {
    "help": "help is in our own words",
    "advice": "ours adds what can be done, or which names there are",
    "parser": "words of another parser of JSON, YAML, times or flags",
    "partial": "one unknown kind among several: ours still shows the others",
    "sort": "kubectl takes a --sort-by that no object has for an empty list, ours for an error",
    "version": "kubectl shows another version than the one that was asked for",
    "annotation": "ours leaves the last applied configuration out: it repeats the file, and the values of a Secret",
    "tar": "kubectl returns 0 though the file was not there",
    "note": "kubectl does not say that nothing was changed: it was a dry run",
    "hpa": "kubectl tells of the version that it tried next, not that there is one already",
}

# At a server that is not ours, by the beginning of the commands.
KNOWN_AT_PEER = {
    "explain": "ours explains the fields of its own version of Kubernetes, in its own words",
    "get hpa": "ours reads autoscalers in v2beta2, with all their metrics: the server warns of it",
    "get all": "as above",
    "delete hpa": "as above",
    "describe hpa": "as above",
    "describe service": "ours reads EndpointSlices in v1beta1, kubectl shows none: the server warns of it",
    "describe ipaddress": "ours knows the kind, and the server says that it does not",
    "describe servicecidr": "as above",
    "describe pod/done pod/lost": "kubectl takes the second of two words for a prefix, and shows nothing of the first",
    "create -f wrong-type.yaml": "the server says what is wrong, not the client",
    "apply -f wrong-type.yaml": "as above",
    "create -f unknown-field.yaml --validate=warn": "kubectl notes that it cannot warn",
}
OTHER_CODE = {"sort", "tar", "explain"}  # of both: the exit code is the difference, or a part of it
FAILED = 3          # our own exit code
# They need pods that run, or controllers; and of two autoscalers that kubectl 1.36 makes in v1 none comes to be.
LEFT_OUT_AT_PEER = re.compile(r"(logs|exec|attach|port-forward|cp|debug|run|wait|drain|rollout status|autoscale)\b")

TRIES = 3           # ages differ from run to run
SHOWN_LINES = 30    # of one difference
DIFFERENCES = 60    # shown in one part
LIMIT_SECONDS = 180  # of one command
NO_END = -1000      # the status of one that took longer; -N is that of one that signal N ended

AGE = r"(?:\d+y)?(?:\d+d)?(?:\d+h)?(?:\d+m)?(?:\d+s|(?<=[ydhm]))"
MASKS = [(re.compile(pattern, re.M), by) for pattern, by in [
    (r"coraclectl", "kubectl"),
    (r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "UID"),
    (r"\"?\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)\"?", "TIME"),
    (r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4}", "DATE"),
    (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[.\d]* [+-]\d{4} \w+", "DATE"),
    (r"(resourceVersion\"?: ?)\"?\d+\"?", r"\1N"),
    (r"^([EWI])\d{4} [\d:.]+ +\d+ [^]]*\] ", r"\1 "),
    (r"/tmp/(LIVE|MERGED)-\w+", r"/tmp/\1"),
    (r"^((?:---|\+\+\+) /tmp/\S+)\t.*", r"\1"),
    (r"(\.(?:yaml|json|txt)):\d+\b", r"\1"),  # ours also names the line of the document
    (r"^tar: removing leading '/' from member names\n", ""),  # kubectl passes it on, but often ends before it has come
    (r"(?<![\w.:=-])" + AGE + r"(?= |$|\)| ago)( +(?=\S))?", "AGE "),
]]
OBJECT_MASK = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "generation", "selfLink")


class Line:
    """A command of the table."""

    def __init__(self, text):
        self.text = text
        self.key_at_peer = ""
        known = re.match(r"@([\w-]+) +(.*)", text)
        self.key, command = known.groups() if known else ("", text)
        self.in_any_order = command.startswith("~ ")
        command = command.removeprefix("~ ")
        words = shlex.split(command)
        self.input = None
        if len(words) > 2 and words[-2] == "<":
            self.input, words = words[-1], words[:-2]
        self.words = words


class Part:
    """Lines of the table under one title."""

    def __init__(self, title, kinds):
        self.title, self.kinds, self.lines = title, kinds, []


def read_table(path):
    parts = []
    with open(path, encoding="utf-8") as table:
        for text in table:
            text = text.rstrip("\n")
            if not text.strip() or text.startswith("#"):
                continue
            if text.startswith("= "):
                words = text[2:].split()
                kinds = [word for word in words if word in ("read", "own", "long")]
                parts.append(Part(" ".join(words[:len(words) - len(kinds)]), kinds))
            else:
                parts[-1].lines.append(Line(text))
    return parts


class Client:
    """One of the two programs."""

    def __init__(self, letter, program, kubeconfig, home):
        self.letter, self.program = letter, program
        self.namespace = f"outputs-{letter}"
        os.makedirs(home, exist_ok=True)
        self.environment = {"HOME": home, "PATH": os.environ["PATH"], "KUBECONFIG": kubeconfig, "KUBE_EDITOR": "true", "TZ": "UTC"}

    def run(self, line, namespace):
        """(status, output, messages), normalised."""
        words = [word.replace("^", self.letter) for word in line.words]
        words[1:1] = ["-n", namespace]
        with open(line.input or "/dev/null", "rb") as given:
            try:
                done = subprocess.run([self.program, *words], env=self.environment, stdin=given, timeout=LIMIT_SECONDS,
                                      capture_output=True, check=False)
            except subprocess.TimeoutExpired:
                return (NO_END, "", "")
        messages = [text for text in done.stderr.decode(errors="replace").split("\n") if "memcache.go" not in text]
        warnings = sorted(text for text in messages if text.startswith("Warning: "))  # kubectl has them in the order of a Go map
        errors = "\n".join(warnings + [text for text in messages if not text.startswith("Warning: ")])
        output = self.normal(done.stdout.decode(errors="replace"))
        if line.in_any_order:
            output = "".join(sorted(output.splitlines(keepends=True)))
        return (done.returncode, output, self.normal(errors))

    def normal(self, text):
        text = re.sub(rf"\boutputs-{self.letter}\b", "NAMESPACE", text)
        text = re.sub(rf"(\w-){self.letter}\b", r"\1X", text)
        for pattern, by in MASKS:
            text = pattern.sub(by, text)
        return text

    def objects(self):
        """All objects in the program's own namespace, without what differs from run to run."""
        kinds = "configmaps,secrets,services,deployments.apps,statefulsets.apps,jobs.batch,cronjobs.batch,serviceaccounts,roles," \
                "rolebindings,ingresses,horizontalpodautoscalers,poddisruptionbudgets.policy,resourcequotas,persistentvolumeclaims"
        done = subprocess.run([self.program, "-n", self.namespace, "get", kinds, "-o", "json"], env=self.environment,
                              capture_output=True, check=False, timeout=LIMIT_SECONDS)
        items = json.loads(done.stdout)["items"]
        for item in items:
            for field in OBJECT_MASK:
                item["metadata"].pop(field, None)
            item.pop("status", None)
            spec = item.get("spec", {})
            for field in ("clusterIP", "clusterIPs"):
                if spec.get(field) not in ("None", ["None"]):
                    spec.pop(field, None)
            for port in spec.get("ports", []):
                port.pop("nodePort", None)
        return self.normal(json.dumps(items, indent=1, sort_keys=True))


class Difference:
    """How two runs of a command differ. `of_code`: in their exit codes too. `broken`: one of them came to no end of its own."""

    def __init__(self, theirs, ours):
        codes = theirs[0], ours[0]
        self.of_code = codes[0] != codes[1]
        self.broken = any(code < 0 for code in codes)
        texts = [f"status {status}\n{output}{'' if output.endswith(chr(10)) or not output else chr(10)}== messages\n{errors}"
                 for status, output, errors in (theirs, ours)]
        self.lines = list(difflib.unified_diff(texts[0].splitlines(), texts[1].splitlines(), "kubectl", "coraclectl", lineterm="",
                                               n=1))[2:] or texts[0].splitlines()

    def is_explained_by(self, key):
        return bool(key) and not self.broken and (not self.of_code or key in OTHER_CODE)


def compare(clients, line, namespaces, tries):
    """None, or the Difference."""
    for _ in range(tries):
        with concurrent.futures.ThreadPoolExecutor(2) as both:
            theirs, ours = both.map(lambda pair: pair[0].run(line, pair[1]), zip(clients, namespaces))
        difference = Difference(theirs, ours)
        if theirs == ours and not difference.broken:
            return None
    return difference


class Report:
    """What was found, as TAP."""

    def __init__(self, whole, needs_keys):
        self.whole, self.needs_keys, self.number, self.failed, self.used = whole, needs_keys, 0, 0, set()
        self.commands = self.explained = 0

    def test(self, good, title, details=()):
        self.number += 1
        self.failed += 0 if good else 1
        print(f"{'ok' if good else 'not ok'} {self.number} - {title}", flush=True)
        for text in details:
            print(f"  | {text}")

    def part(self, part, differences):
        details, wrong = [], 0
        for line, difference in zip(part.lines, differences):
            self.commands += 1
            if difference is None and not (line.key and self.needs_keys):
                continue
            key = next((key for key in (line.key, line.key_at_peer) if difference and difference.is_explained_by(key)), None)
            if key:
                self.used.add(key)
                self.explained += 1
                continue
            wrong += 1
            if wrong <= DIFFERENCES or self.whole:
                shown = difference.lines if difference is not None else [f"there is no difference any more: take @{line.key} away"]
                details.append(f"--- {line.text}")
                details += shown if self.whole else shown[:SHOWN_LINES]
        title = f"{part.title}: {len(part.lines)} commands" if not wrong else f"{part.title}: {wrong} of {len(part.lines)} commands differ"
        self.test(not wrong, title, details)


def main():
    parser = argparse.ArgumentParser()
    for name in ("kubectl", "coraclectl", "kubeconfig", "table"):
        parser.add_argument(name)
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--peer", action="store_true")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    home = os.path.join(os.getcwd(), "home")
    clients = [Client("k", given.kubectl, given.kubeconfig, home + "-k"), Client("c", given.coraclectl, given.kubeconfig, home + "-c")]
    report = Report(given.all, not given.peer)
    parts = [part for part in read_table(given.table) if re.search(given.only, part.title) and (given.long or "long" not in part.kinds)]
    if given.peer:
        for part in parts:
            part.lines = [line for line in part.lines if not LEFT_OUT_AT_PEER.match(" ".join(line.words))]
            for line in part.lines:
                line.key_at_peer = next((key for key in KNOWN_AT_PEER if line.text.startswith(key)), "")
    for part in parts:
        if "read" in part.kinds:
            with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
                differences = list(pool.map(lambda line: compare(clients, line, ["shown", "shown"], TRIES), part.lines))
            report.part(part, differences)
            continue
        report.part(part, [compare(clients, line, [client.namespace for client in clients], 1) for line in part.lines])
        theirs, ours = (client.objects() for client in clients)
        difference = difflib.unified_diff(theirs.splitlines(), ours.splitlines(), "kubectl", "coraclectl", lineterm="", n=4)
        report.test(theirs == ours, f"{part.title}: the same objects", list(difference)[:SHOWN_LINES])
    if not given.only:
        used = {line.key for part in parts for line in part.lines if line.key}
        unknown = used - set(KNOWN)
        unused = set(KNOWN) - report.used if given.long and not given.peer else set()
        report.test(not unknown and not unused, "each difference is explained, and each explanation needed",
                    [*(f"unknown: {key}" for key in unknown), *(f"unused: {key}" for key in unused)])
    print(f"# {report.commands} commands compared; {report.explained} differ for {len(report.used)} known reasons")
    print(f"1..{report.number}")
    return FAILED if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
