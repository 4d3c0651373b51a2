# SPDX-License-Identifier: Apache-2.0
"""The framework of the checks: each has a descriptive name, and fails by an exception. The output is a line for each
("ok - NAME", "not ok - NAME") that clients.sh turns into TAP."""
import json
import os
import re
import sys
import threading
import time
import traceback

from kubernetes.client.exceptions import ApiException

ONLY = re.compile(os.environ.get("CLIENTS_ONLY", ""))
PATIENCE = 120  # seconds; the machine may be a busy one


def check(name):
    """Decorates a function that is one check; it runs at once, with a deadline."""
    def run(body):
        title = "python: " + name
        if not ONLY.search(title):
            return body
        failure = []

        def guarded():
            try:
                body()
            except BaseException as error:  # any exception is a failure of the check
                where = traceback.extract_tb(error.__traceback__)[-1]
                inside = next((f for f in reversed(traceback.extract_tb(error.__traceback__)) if f.filename.startswith(sys.path[0])), where)
                failure.append("%s:%d: %s: %s" % (os.path.basename(inside.filename), inside.lineno, type(error).__name__, error))

        thread = threading.Thread(target=guarded, daemon=True)
        thread.start()
        thread.join(PATIENCE)
        if thread.is_alive():
            failure.append("no end after %d s" % PATIENCE)
        print(("not ok - " if failure else "ok - ") + title, flush=True)
        for line in "\n".join(failure).splitlines()[:20]:
            print("| " + line[:600], flush=True)
        return body
    return run


def ask(word):
    """Requests a stop ("stop") or start ("start") of the daemon; returns when that is done."""
    print("!" + word, flush=True)
    answer = sys.stdin.readline()
    assert answer == "done\n", answer


def same(what, got, want):
    if got != want:
        raise AssertionError("%s: want %r, got %r" % (what, want, got))


def matches(what, text, expression):
    if not re.search(expression, str(text)):
        raise AssertionError("%s: want a match of %r, got %r" % (what, expression, text))


def until(what, so):
    """Polls until the condition holds."""
    end = time.monotonic() + PATIENCE - 5
    while True:
        seen = so()
        if seen is True:
            return
        if time.monotonic() > end:
            raise AssertionError("not so in time: %s; last seen: %r" % (what, seen))
        time.sleep(0.05)


def refused(code, reason, message, call, *arguments, **named):
    """The call must fail with a Status of Kubernetes, which is returned."""
    try:
        call(*arguments, **named)
    except ApiException as error:
        status = json.loads(error.body)
        same("status", (error.status, status.get("reason"), status.get("kind"), status.get("code")), (code, reason, "Status", code))
        if message is not None:
            same("message", status["message"], message)
        return status
    raise AssertionError("was accepted; want %d %s" % (code, reason))
