# SPDX-License-Identifier: Apache-2.0
"""For tests that run the same scenario with several runtimes (podman.py, containerd.py): commands and their exit status, also on
a terminal; the results of a scenario; and the differences of two results. For validation.py too: the scenarios that are wanted."""
import fcntl
import fnmatch
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time

PATIENCE = int(os.environ.get("CORACLE_PATIENCE", "1"))
COMMAND_SECONDS = 40 * PATIENCE
OURS = "coracle-oci"


class Ran:
    def __init__(self, status, out, err=""):
        self.status, self.out, self.err = status, out.strip(), err.strip()


def run_on_terminal(argv, typed="", rows=33, columns=101):
    """Runs a command in / on a terminal of its own, and types the input once there is a prompt ("> "). Returns the exit status,
    or None if it does not end."""
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir("/")
        os.execvp(argv[0], argv)
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    out, end = b"", time.monotonic() + COMMAND_SECONDS
    while time.monotonic() < end:
        if not select.select([fd], [], [], 1)[0]:
            continue
        try:
            piece = os.read(fd, 65536)
        except OSError:
            break
        if not piece:
            break
        out += piece
        if typed and out.endswith(b"> "):
            os.write(fd, typed.encode())
            typed = ""
    else:
        os.kill(pid, signal.SIGKILL)
        os.close(fd)
        os.waitpid(pid, 0)
        return None
    os.close(fd)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return Ran(status, out.decode(errors="replace").replace("\r", ""))


def chosen(names, patterns):
    """The names that one of the patterns ("a*,b") matches. Ends the program if one matches none: it is misspelt."""
    patterns = patterns.split(",")
    for pattern in patterns:
        if not fnmatch.filter(names, pattern):
            sys.exit(f"{os.path.basename(sys.argv[0])}: there is no {pattern!r}, only {' '.join(names)}")
    return [name for name in names if any(fnmatch.fnmatch(name, pattern) for pattern in patterns)]


class Notes:
    """The results of one scenario with one runtime: `notes`, by label; `unexpected`, the ones that the peer should not have;
    `log`, the commands."""

    def __init__(self):
        self.notes, self.unexpected, self.log = {}, [], []

    def plain(self, text):
        """Removes parts that differ between runs."""
        return text

    def see(self, label, value, expected=None):
        """Records a value, which must be the same with both; if one is expected (a value or a regular expression), the peer must
        have it."""
        if isinstance(value, str):
            value = self.plain(value)
        while label in self.notes:
            label += " "
        self.notes[label] = value
        if expected is None:
            return
        good = re.fullmatch(expected, value, re.S) if isinstance(expected, str) and isinstance(value, str) else value == expected
        if not good:
            self.unexpected.append(f"{label}: {value!r}")

    def until(self, what, expected, seconds=20):
        """Waits until what() is as expected; records nothing, returns the last result."""
        end = time.monotonic() + seconds * PATIENCE
        while True:
            value = what()
            if value == expected or callable(expected) and expected(value) or time.monotonic() > end:
                return value
            time.sleep(0.1)

    def failed_commands(self):
        return [line for line in self.log if not re.search(r": 0 $", line)][:4]


def differences(peer, ours):
    """The labels of the results that differ."""
    return [label for label in {**peer.notes, **ours.notes} if peer.notes.get(label) != ours.notes.get(label)]


def print_differences(title, peer_name, peer, ours, labels):
    print(f"not ok {title}")
    for label in labels[:12]:
        print(f"  | {label}:\n  |   {peer_name + ':':<12} {peer.notes.get(label)!r}\n  |   {OURS}: {ours.notes.get(label)!r}")
    for line in ours.failed_commands():
        print(f"  | {line[:400]}")
    sys.stdout.flush()
