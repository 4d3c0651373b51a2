# SPDX-License-Identifier: Apache-2.0
"""A running pod: its log, and exec over the library's WebSocket."""
import json

import yaml
from kubernetes import client, watch
from kubernetes.stream import stream
from kubernetes.stream.ws_client import ERROR_CHANNEL

from check import check, matches, refused, same, until


def run(ns, image):
    core = client.CoreV1Api()

    @check("a pod runs: a watch until it is ready")
    def _():
        core.create_namespaced_pod(ns, {"metadata": {"name": "worker"}, "spec": {"terminationGracePeriodSeconds": 0, "containers": [
            {"name": "main", "image": image, "imagePullPolicy": "IfNotPresent", "command": ["sh", "-c", "echo one; echo two; exec sleep 100000"]}]}})
        watcher = watch.Watch()
        for event in watcher.stream(core.list_namespaced_pod, ns, field_selector="metadata.name=worker", timeout_seconds=100):
            if any(c.type == "Ready" and c.status == "True" for c in event["object"].status.conditions or []):
                watcher.stop()
                return
        raise AssertionError("not ready: %s" % core.read_namespaced_pod("worker", ns).status)

    @check("its log: whole, the last line, followed")
    def _():
        until("two lines", lambda: core.read_namespaced_pod_log("worker", ns) == "one\ntwo\n" or core.read_namespaced_pod_log("worker", ns))
        same("last", core.read_namespaced_pod_log("worker", ns, tail_lines=1), "two\n")
        watcher, lines = watch.Watch(), []
        for line in watcher.stream(core.read_namespaced_pod_log, "worker", ns, follow=True):
            lines.append(line)
            if len(lines) == 2:
                watcher.stop()
                break
        same("followed", lines, ["one", "two"])
        refused(400, "BadRequest", "container other is not valid for pod worker", core.read_namespaced_pod_log, "worker", ns, container="other")

    def execute(*command, **how):
        how = {"stdout": True, "stderr": True, "stdin": False, "tty": False, **how}
        return stream(core.connect_get_namespaced_pod_exec, "worker", ns, command=list(command), **how)

    @check("exec: the output as text; both outputs and the exit code as streams")
    def _():
        same("text", execute("sh", "-c", "echo out; echo more"), "out\nmore\n")
        running = execute("sh", "-c", "echo out; echo err >&2; exit 7", _preload_content=False)
        running.run_forever(timeout=100)
        same("outputs", (running.read_stdout(timeout=0), running.read_stderr(timeout=0)), ("out\n", "err\n"))
        same("exit code", running.returncode, 7)

    @check("exec: standard input, a line at a time, and the end")
    def _():
        running = execute("sh", "-c", 'while read line; do echo "got $line"; [ "$line" = end ] && exit 0; done', stdin=True, _preload_content=False)
        for word in ("a", "b", "end"):
            running.write_stdin(word + "\n")
            same("answer", running.readline_stdout(timeout=60), "got " + word)
        running.run_forever(timeout=60)
        same("exit code", running.returncode, 0)

    @check("exec: a terminal")
    def _():
        matches("terminal", execute("sh", "-c", "tty", tty=True), r"^/dev/(pts/\d+|console)\s+$")

    @check("exec: the error channel carries a Status")
    def _():
        running = execute("true", _preload_content=False)
        running.run_forever(timeout=100)
        same("status", yaml.safe_load(running.read_channel(ERROR_CHANNEL)), json.loads('{"metadata":{},"status":"Success"}'))

    @check("the pod is deleted, and a watch says so")
    def _():
        now = core.list_namespaced_pod(ns).metadata.resource_version
        core.delete_namespaced_pod("worker", ns, grace_period_seconds=0)
        for event in watch.Watch().stream(core.list_namespaced_pod, ns, resource_version=now, timeout_seconds=100):
            if event["type"] == "DELETED":
                return
        raise AssertionError("no deletion came")
