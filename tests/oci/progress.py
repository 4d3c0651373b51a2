# SPDX-License-Identifier: Apache-2.0
"""For tests of many parts in a long run (tests/run.sh --long): which parts are left, and when to start no more.

CORACLE_UNTIL: no part is started after this moment (seconds since 1970). CORACLE_PROGRESS: a directory that keeps the passed
parts between runs of one commit. Without them all parts are run. The same two as for tests/progress.sh.
"""
import os
import threading
import time


class Progress:
    def __init__(self, name):
        directory = os.environ.get("CORACLE_PROGRESS", "")
        self.path = os.path.join(directory, name) if directory else None
        self.until = float(os.environ.get("CORACLE_UNTIL") or "inf")
        self.lock = threading.Lock()
        self.before = set()
        if self.path and os.path.exists(self.path):
            with open(self.path) as file:
                self.before = set(file.read().split())
        self.passed = 0

    def left(self, names):
        """The parts that have not passed yet; all of them once all have."""
        names = list(names)
        return [name for name in names if name not in self.before] or names

    def time_is_left(self):
        return time.time() < self.until

    def has_passed(self, name):
        with self.lock:
            self.passed += 1
            if self.path:
                os.makedirs(os.path.dirname(self.path), exist_ok=True)
                with open(self.path, "a") as file:
                    file.write(name + "\n")
