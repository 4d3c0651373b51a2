#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the commands and flags of coraclectl with kubectl's, by the help that both print: every command and subcommand of
kubectl, and of each the flags with their short and long names and defaults. Prints TAP. No server is needed.

  help.py KUBECTL CORACLECTL [--list]     --list prints the differences only, one a line

A difference fails, unless KNOWN explains it.
"""
import os
import re
import subprocess
import sys
import tempfile

# "COMMAND --flag": why ours differs. "*" stands for any command, or with an empty flag for the whole command.
KNOWN = {
    "options --cache-dir": "the default depends on the home directory; nothing is kept in ours",
    "config set-cluster --server": "ours takes -s too: kubectl's global flag of this name is hidden there",
}

FLAG = re.compile(r"^ +(?:-(\w), |    )?--([\w-]+)=(.*?):?(?:  .*)?$")


class Help:
    """What one program says of its commands."""

    def __init__(self, program, home):
        self.program = program
        self.environment = {"HOME": home, "PATH": "/usr/bin:/bin", "KUBECONFIG": "/dev/null", "COLUMNS": "1000"}

    def text(self, *words):
        done = subprocess.run([self.program, *words], env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=60, check=False)
        return done.stdout.decode() if done.returncode == 0 else ""

    def of(self, path):
        """The help of a command; "" where there is none such."""
        text = self.text(*path, "--help")
        return text if not path or re.search(r"^  \w+ctl " + re.escape(" ".join(path)) + r"\b", text, re.M) else ""

    @staticmethod
    def commands(text):
        """Names of the commands below, in the order of the help."""
        found, within = [], False
        for line in text.splitlines():
            if not line.startswith(" "):
                within = bool(re.search(r"Commands[^:]*:$", line)) if line else within
            elif within:
                name = re.match(r"^  ([a-z][\w-]*)(?: {2,}|$)", line)
                if name:
                    found.append(name.group(1))
        return found

    @staticmethod
    def flags(text):
        """Long names, each with the short one and the default."""
        found = {}
        for line in text.splitlines():
            flag = FLAG.match(line)
            if flag:
                short, name, default = flag.groups()
                found[name] = (short or "", default.strip("'"))
        return found


def shown(name, flag):
    short, default = flag
    return (f"-{short}, " if short else "") + f"--{name}={default}"


def compare(theirs, ours, path, differences):
    """`differences` gets ("COMMAND --flag", text). Goes on with the commands below."""
    text = theirs.of(path)
    own_text = ours.of(path)
    command = " ".join(path)
    if not own_text:
        differences.append((f"{command} ", "the command is missing"))
        return 1
    count = 1
    own_flags = ours.flags(own_text)
    for name, flag in theirs.flags(text).items():
        own = own_flags.get(name)
        if own is None:
            differences.append((f"{command} --{name}", f"missing: {shown(name, flag)}"))
        elif own != flag:
            differences.append((f"{command} --{name}", f"{shown(name, flag)}, ours {shown(name, own)}"))
    for name in theirs.commands(text):
        count += compare(theirs, ours, path + [name], differences)
    return count


def explained(key):
    command, _, flag = key.partition(" --")
    return KNOWN.get(key) or KNOWN.get(f"{command} ") or KNOWN.get(f"* --{flag}")


def main():
    with tempfile.TemporaryDirectory() as home:
        theirs, ours = Help(sys.argv[1], home), Help(sys.argv[2], home)
        differences = []
        count = compare(theirs, ours, [], differences)
        globals_, own_globals = theirs.flags(theirs.text("options")), ours.flags(ours.text("options"))
        for name, flag in globals_.items():
            own = own_globals.get(name)
            if own != flag:
                differences.append((f"options --{name}", f"{shown(name, flag)}, ours {shown(name, own) if own else 'missing'}"))
    if "--list" in sys.argv:
        for key, text in differences:
            print(f"{key}\t{text}\t{explained(key) or ''}")
        return 0
    failed = [(key, text) for key, text in differences if not explained(key)]
    used = {explained(key) for key, _ in differences}
    unused = [key for key, why in KNOWN.items() if why not in used]
    checks = [(f"kubectl's {count} commands and their flags are coraclectl's", count > 60 and not failed),
              ("the differences are at most a dozen", len(KNOWN) <= 12),
              ("each explained difference exists", not unused),
              ("the help of the global flags was read", len(globals_) > 25)]
    for number, (name, good) in enumerate(checks, 1):
        print(f"{'ok' if good else 'not ok'} {number} - {name}")
        if number == 1:
            for key, text in failed:
                print(f"  | {key}: {text}")
        elif not good and unused:
            print("  | " + ", ".join(unused))
    print(f"1..{len(checks)}")
    return 0 if all(good for _, good in checks) else 1


if __name__ == "__main__":
    os.environ.pop("KUBERC", None)
    sys.exit(main())
