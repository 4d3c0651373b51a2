#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The same ctr commands with runc and with coracle-oci: their exit status and output must be the same.

  containerd.py --work DIRECTORY --rootfs DIRECTORY --address SOCKET [--only PATTERN,…] runc=COMMAND coracle-oci=COMMAND

Each scenario runs once with each runtime and records its results, without random names, numbers and times. Prints a TAP line
per scenario: equal, or the differences. A scenario that runc itself fails on this machine is skipped, with its result.
"""
import argparse
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import time

from peers import COMMAND_SECONDS, OURS, Notes, Ran, chosen, differences, print_differences, run_on_terminal

PEER = "runc"


class Engine(Notes):
    """ctr with one runtime, for one scenario."""

    def __init__(self, options, runtime, command, scenario):
        super().__init__()
        self.options, self.runtime, self.command = options, runtime, command
        self.name = f"{scenario}-{'ours' if runtime == OURS else runtime}"

    def argv(self, arguments):
        return ["ctr", "-a", self.options.address, "-n", "test", *[str(each) for each in arguments]]

    def __call__(self, *arguments, stdin=None):
        try:
            ran = subprocess.run(self.argv(arguments), input=stdin, stdin=None if stdin is not None else subprocess.DEVNULL, capture_output=True, text=True,
                                 errors="replace", timeout=COMMAND_SECONDS)
            out = Ran(ran.returncode, ran.stdout, ran.stderr)
        except subprocess.TimeoutExpired:
            out = Ran(-1, "", "it does not end")
        self.log.append(f"ctr {' '.join(map(str, arguments))}: {out.status} {out.err[-600:]}")
        return out

    def terminal(self, *arguments, typed=""):
        """The same on a terminal: see run_on_terminal()."""
        ran = run_on_terminal(self.argv(arguments), typed) or Ran(-1, "", "it does not end")
        self.log.append(f"ctr {' '.join(map(str, arguments))} (on a terminal): {ran.status} {ran.out[-300:]!r}")
        ran.out = "\n".join(line for line in ran.out.split("\n") if "resize pty" not in line)  # ctr's own race with a short command
        return ran

    def run(self, script, *options, terminal=False, name=None, **more):
        arguments = ["run", "--runc-binary", self.command, "--env", "PATH=/bin", *(["-t"] if terminal else []), *options, "--rootfs", self.options.rootfs, name or self.name, "sh", "-c", script]
        return self.terminal(*arguments, **more) if terminal else self(*arguments, **more)

    def box(self, *options, script="sleep 1000"):
        ran = self.run(script, "-d", *options)
        self.see("it starts", ran.status, 0)

    def plain(self, text):
        return text.replace(self.name, "NAME")

    def see_run(self, label, ran, status=None, out=None):
        self.see(f"{label}: exit status", ran.status, status)
        self.see(f"{label}: output", ran.out, out)

    def with_output(self, call):
        """ctr loses the output of a program that ends before ctr has opened its pipes, with either runtime: then once more."""
        for _ in range(5):
            ran = call()
            if ran.out:
                break
        return ran

    def status(self):
        return next((line.split()[2] for line in self("task", "ls").out.splitlines()[1:] if line.split()[0] == self.name), "none")

    def update(self, name=None, **resources):
        """The API's Update of a task, which ctr has no command for. Returns the status of the call: "0" is success."""
        field = lambda number, data: bytes([number << 3 | 2]) + length(len(data)) + data
        length = lambda n: bytes([n]) if n < 128 else bytes([n & 127 | 128]) + length(n >> 7)
        linux = field(1, b"types.containerd.io/opencontainers/runtime-spec/1/LinuxResources") + field(2, json.dumps(resources).encode())
        request = field(1, (name or self.name).encode()) + field(2, linux)
        ran = subprocess.run(["curl", "-sS", "--max-time", str(COMMAND_SECONDS), "--http2-prior-knowledge", "--unix-socket", self.options.address, "-H", "content-type: application/grpc", "-H", "te: trailers",
                              "-H", "containerd-namespace: test", "--data-binary", "@-", "-D", "-", "-o", "/dev/null", "http://localhost/containerd.services.tasks.v1.Tasks/Update"],
                             input=b"\0" + struct.pack(">I", len(request)) + request, capture_output=True)
        said = ran.stdout.decode(errors="replace") + ran.stderr.decode(errors="replace")
        self.log.append(f"update {resources}: {said[-600:]!r}")
        return (re.findall(r"grpc-status: (\d+)", said) or ["no answer"])[0]

    def clean_up(self):
        self("task", "rm", "-f", self.name)
        self("container", "rm", self.name)


SCENARIOS = {}


def scenario(function):
    SCENARIOS[function.__name__.replace("_", "-")] = function
    return function


@scenario
def run(p):
    p.see_run("output and status", p.with_output(lambda: p.run("echo hi; echo err >&2; exit 7", "--rm")), 7, "hi")
    p.see_run("no such program", p("run", "--rm", "--runc-binary", p.command, "--rootfs", p.options.rootfs, p.name, "/no/such"))
    p.see_run("killed by a signal", p.run("kill -9 $$; sh -c 'kill -9 1'; echo alive", "--rm"))
    p.see_run("environment, directory", p.with_output(lambda: p.run("echo $A; pwd", "--rm", "--env", "A=1 2", "--cwd", "/tmp")), 0, "1 2\n/tmp")
    p.see_run("read-only", p.run("touch /x", "--rm", "--read-only"), 1)
    p.see("gone after --rm", p.name in p("container", "ls", "-q").out.split(), False)


@scenario
def terminal(p):
    p.see_run("run -t", p.run("tty; printf '> '; read x; echo got $x; exit 3", "--rm", terminal=True, typed="word\n"), 3, r".*/dev/.*\n> word\ngot word")


@scenario
def exec(p):
    p.box("--env", "A=1")
    ran = lambda *words, **more: p("task", "exec", "--exec-id", f"e{len(p.log)}", *words, **more)
    writes = lambda *words, **more: p.with_output(lambda: ran(*words, **more))
    p.see_run("plain", writes(p.name, "sh", "-c", "echo $A; id; grep -E '^(Cap|Seccomp:|NoNewPrivs)' /proc/self/status"), 0, r"1\nuid=0.*")
    p.see_run("status", ran(p.name, "sh", "-c", "exit 9"), 9)
    p.see_run("user", writes("--user", "1001", p.name, "id", "-u"), 0, "1001")
    p.see_run("directory", writes("--cwd", "/tmp", p.name, "pwd"), 0, "/tmp")
    p.see_run("no such program", ran(p.name, "/no/such"))
    p.see_run("standard input", writes(p.name, "cat", stdin="in\n"), 0, "in")
    p.see_run("terminal", p.terminal("task", "exec", "-t", "--exec-id", "t", p.name, "sh", "-c", "tty; printf '> '; read x; echo got $x; exit 4", typed="word\n"), 4, r".*/dev/.*\n> word\ngot word")
    p.see("detached", ran("-d", p.name, "sh", "-c", "echo done >/tmp/done").status, 0)
    p.see("has run", p.until(lambda: ran(p.name, "cat", "/tmp/done").out, "done"), "done")
    os.path.exists(f"{p.options.rootfs}/tmp/done") and os.unlink(f"{p.options.rootfs}/tmp/done")


@scenario
def life(p):
    p.box(script="trap 'echo heard; exit 5' TERM; while :; do sleep 0.1; done")
    p.see("runs", p.status(), "RUNNING")
    p.see("pause", p("task", "pause", p.name).status, 0)
    p.see("is paused", p.status(), "PAUSED")
    p.see("resume", p("task", "resume", p.name).status, 0)
    p.see("runs again", p.status(), "RUNNING")
    p.see("processes", len(p("task", "ps", p.name).out.splitlines()) >= 2, True)
    p.see("kill", p("task", "kill", "-s", "SIGTERM", p.name).status, 0)
    p.see("has ended", p.until(p.status, "STOPPED"), "STOPPED")
    p.see_run("remove", p("task", "rm", p.name))
    p.see("container remove", p("container", "rm", p.name).status, 0)


@scenario
def update(p):
    if not shutil.which("curl"):
        p.unexpected.append("curl is missing")
        return
    p.box("--memory-limit", "67108864", "--cpu-quota", "20000")
    pid = next((line.split()[1] for line in p("task", "ls").out.splitlines()[1:] if line.split()[0] == p.name), "0")
    files = ["memory.limit_in_bytes", "memory.max", "memory.soft_limit_in_bytes", "memory.low", "pids.max", "cpu.cfs_quota_us", "cpu.max", "cpu.shares", "cpu.weight"]
    # 1024 and 512 shares have the weights 39 and 20 by the line from 2 shares (weight 1) to 262144 shares (weight 10000), as of
    # runc 1.1; ours are by the curve through 1024 shares (weight 100).
    plain = lambda name, value: {"39": "100", "20": "59"}.get(value, value) if name == "cpu.weight" else value
    limits = lambda: {name: plain(name, value) for name in files for value in [limit_of(pid, name)] if value is not None}
    before = limits()
    p.see("limits before", before)
    p.see("update", p.update(memory={"limit": 50331648, "reservation": 33554432}, cpu={"quota": 30000, "period": 100000, "shares": 512}, pids={"limit": 33}), "0")
    p.see("limits after", limits())
    p.see("they have changed", limits() != before, True)
    p.see("update of one", p.update(pids={"limit": 44}), "0")
    p.see("changes no other", limits())
    p.see("a wrong limit", p.update(cpu={"cpus": "1000"}) != "0", True)
    p.see("no such container", p.update("none", pids={"limit": 44}) != "0", True)
    p.see("still runs", p.status(), "RUNNING")


def limit_of(pid, name):
    """The file of the process's cgroup, in whichever hierarchy has it; None if it is in none."""
    controller = name.split(".")[0]
    with open(f"/proc/{pid}/cgroup") as lines:
        for line in lines:
            _, controllers, path = line.strip().split(":", 2)
            tops = [f"/sys/fs/cgroup/{controller}"] if controller in controllers.split(",") else ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"] if not controllers else []
            for top in tops:
                if os.path.exists(f"{top}{path}/{name}"):
                    return open(f"{top}{path}/{name}").read().strip()
    return None


@scenario
def attach(p):
    # It stays for a moment, because ctr also loses what is still in its pipes when a program ends.
    p.box(script="read x; echo got $x; sleep 1; exit 8")
    p.see_run("attach", p("task", "attach", p.name, stdin="word\n"), 8, "got word")


@scenario
def kill_all(p):
    p.box(script="sleep 1000 & sleep 1000 & wait")
    p.see("kill", p("task", "kill", "-a", "-s", "SIGKILL", p.name).status, 0)
    p.see("has ended", p.until(p.status, "STOPPED"), "STOPPED")
    p.see_run("remove", p("task", "rm", p.name))


@scenario
def metrics(p):
    p.box(script="i=0; while :; do i=$((i + 1)); done")
    time.sleep(1)
    ran = p("task", "metrics", "--format", "json", p.name)
    p.see("metrics", ran.status, 0)
    try:
        said = json.loads(ran.out)
    except ValueError:
        said = {}
    number = lambda *names: next((value for name in names for value in [find(said, name)] if value is not None), None)
    p.see("processes", number("current"))
    p.see("processor time was counted", (number("total", "usage_usec") or 0) > 0, True)


def find(value, name):
    if isinstance(value, dict):
        if isinstance(value.get(name), (int, float)):
            return value[name]
        value = list(value.values())
    return next((found for each in value for found in [find(each, name)] if found is not None), None) if isinstance(value, list) else None


@scenario
def events(p):
    path = f"{p.options.work}/{p.name}.events"
    with open(path, "w") as file:
        listener = subprocess.Popen(p.argv(["events"]), stdout=file, stderr=subprocess.DEVNULL, text=True)
    seen = lambda: open(path).read()
    p("namespaces", "create", "test")  # unless an earlier scenario has made it
    p.until(lambda: p("namespaces", "label", "test", f"beat={len(p.log)}").status == 0 and seen() != "", True)  # it listens
    p.run("exit 6", "--rm")
    p.until(lambda: any("/containers/delete" in line and f'"{p.name}"' in line for line in seen().splitlines()), True)
    listener.terminate()
    listener.wait(COMMAND_SECONDS)
    out = seen()
    p.see("events", [(topic, re.sub(r".*exit_status\"?:(\d+).*", r"\1", line)[:3] if "exit" in topic else "")
                     for line in out.splitlines() if f'"{p.name}"' in line for topic in re.findall(r"/[a-z]+/[a-z]+(?:-[a-z]+)?", line)[:1]])


@scenario
def options(p):
    os.makedirs(f"{p.options.work}/v", exist_ok=True)
    with open(f"{p.options.work}/v/f", "w") as file:
        file.write("text\n")
    run = lambda *words: p.with_output(lambda: p.run(*words))
    p.see_run("mount", run("cat /v/f; touch /v/x 2>&1", "--rm", "--mount", f"type=bind,src={p.options.work}/v,dst=/v,options=rbind:ro"), 1, r"text\n.*")
    p.see_run("capabilities", run("grep Cap /proc/self/status", "--rm", "--cap-drop", "CAP_CHOWN", "--cap-add", "CAP_SYS_ADMIN"), 0)
    p.see_run("privileged", run("grep -E 'CapEff|Seccomp:' /proc/self/status; ls /dev | grep -vc core", "--rm", "--privileged"), 0)
    p.see_run("seccomp", run("grep Seccomp: /proc/self/status; unshare -U true 2>&1", "--rm", "--seccomp"))
    p.see_run("the machine's network", run("readlink /proc/self/ns/net", "--rm", "--net-host"), 0, re.escape(os.readlink("/proc/self/ns/net")))
    p.see_run("without a pivot", run("ls /", "--rm", "--no-pivot"), 0)
    p.see_run("device", run("ls -l /dev/own; head -c 1 /dev/kmsg >/dev/null 2>&1; echo $?", "--rm", "--device", "/dev/full"))
    p.see_run("limits", run("cat /proc/self/cgroup | wc -l >/dev/null; echo ran", "--rm", "--memory-limit", "67108864", "--cpu-quota", "20000"), 0, "ran")
    path = f"{p.options.work}/{p.name}.pid"
    p.box("--pid-file", path)
    p.see("pid file", os.path.exists(f"/proc/{open(path).read().strip()}") if os.path.exists(path) else None, True)


def main():
    arguments = argparse.ArgumentParser()
    for name in ("work", "rootfs", "address"):
        arguments.add_argument(f"--{name}", required=True)
    arguments.add_argument("--only", default="*")
    arguments.add_argument("runtimes", nargs="+")
    options = arguments.parse_args()
    runtimes = dict(each.split("=", 1) for each in options.runtimes)
    names = chosen(list(SCENARIOS), options.only)
    failures = 0
    for count, name in enumerate(names, 1):
        engines = {}
        for runtime, command in runtimes.items():
            engine = engines[runtime] = Engine(options, runtime, command, name)
            try:
                SCENARIOS[name](engine)
            except (OSError, subprocess.SubprocessError, ValueError, IndexError) as error:
                engine.see("went wrong", f"{type(error).__name__}: {error}")
            finally:
                engine.clean_up()
        peer, ours = engines[PEER], engines[OURS]
        if peer.unexpected:
            print(f"ok {count} - containerd {name} # SKIP runc itself: {'; '.join(peer.unexpected)[:600]}", flush=True)
            continue
        differ = differences(peer, ours)
        if not differ:
            print(f"ok {count} - containerd {name} ({len(peer.notes)} things seen)", flush=True)
            continue
        failures += 1
        print_differences(f"{count} - containerd {name}", PEER, peer, ours, differ)
    print(f"1..{len(names)}")
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
