# SPDX-License-Identifier: Apache-2.0
"""For tests that run the same scenario with two runtimes (podman.py, containerd.py): commands and what they end with, on a terminal
too; what a scenario notes of them; and where two scenarios' notes differ."""
import fcntl
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
    """Runs a command in / on a terminal of its own, where something is typed once there is a prompt ("> "). What it ends with, or None: it
    does not end."""
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


class Notes:
    """What one scenario has seen with one runtime: `notes`, by label; `unexpected`, where that is not what the peer has to do; `log`, its
    commands."""

    def __init__(self):
        self.notes, self.unexpected, self.log = {}, [], []

    def plain(self, text):
        """Without what differs from run to run."""
        return text

    def see(self, label, value, expected=None):
        """Notes a value, to be the same with both; where one is expected (a value or a regular expression), the peer has to have it."""
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
        """Waits until what() is as expected; notes nothing, returns the last answer."""
        end = time.monotonic() + seconds * PATIENCE
        while True:
            value = what()
            if value == expected or callable(expected) and expected(value) or time.monotonic() > end:
                return value
            time.sleep(0.1)

    def failed_commands(self):
        return [line for line in self.log if not re.search(r": 0 $", line)][:4]


def differences(peer, ours):
    """The labels of what they saw differently."""
    return [label for label in {**peer.notes, **ours.notes} if peer.notes.get(label) != ours.notes.get(label)]


def print_differences(title, peer_name, peer, ours, labels):
    print(f"not ok {title}")
    for label in labels[:12]:
        print(f"  | {label}:\n  |   {peer_name + ':':<12} {peer.notes.get(label)!r}\n  |   {OURS}: {ours.notes.get(label)!r}")
    for line in ours.failed_commands():
        print(f"  | {line[:400]}")
    sys.stdout.flush()
