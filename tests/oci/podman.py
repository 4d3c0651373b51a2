#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The same podman commands with coracle-oci and with its peers: their exit status and output must be the same.

  podman.py --work DIRECTORY --cgroups v1|v2 [--rootless USER] [--systemd TREE] [--jobs N] [--only PATTERN,…]
            PEER=COMMAND... coracle-oci=COMMAND

PEER: crun, runc. TREE: a Debian with systemd, to be run in a container.

Each scenario runs with each runtime and records its results, without random names, numbers and times. Prints a TAP line per
scenario and peer: equal, or the differences. coracle-oci runs it once; a peer whose result is not the expected one runs it again,
three times in all. If it is not the expected one then, the peer fails the scenario on this machine: it is skipped for this peer,
with that result, because there is nothing to compare. podman_explained.txt has the differences that are meant, with reasons.
CONTAINERS_CONF is podman's configuration.
"""
import argparse
import concurrent.futures
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import threading

from peers import COMMAND_SECONDS, OURS, PATIENCE, Notes, Ran, chosen, differences, print_differences, run_on_terminal
from progress import Progress

# A shell's words that print the size of its terminal: podman sets it after it has started the program. Until then stty prints
# nothing, or zeros, and succeeds.
SIZE_OF_TERMINAL = "i=0; until s=$(stty size 2>/dev/null); case $s in ''|'0 0') [ $((i += 1)) -gt 20 ];; esac; do sleep 0.3; done; echo $s"
PEER_REPEATS = 2  # of a scenario in which a peer does not do what is expected
THINGS_MIN = 75  # compared by a whole run, or too much was skipped to tell


class Hangs(Exception):
    """A command that does not end; the rest of the scenario is not run."""


class Engine(Notes):
    """podman with one runtime, for one scenario."""

    def __init__(self, options, runtime, command, scenario):
        self.options, self.runtime, self.command = options, runtime, command
        self.name = f"{scenario}-{runtime.replace('coracle-oci', 'ours')}"
        self.work = f"{options.work}/{self.name}"
        os.makedirs(self.work, exist_ok=True)
        if options.rootless:
            os.chmod(self.work, 0o777)
        super().__init__()
        self.named, self.has_pods = set(), False

    def argv(self, arguments):
        return [*self.options.prefix, "podman", "--runtime", self.command, *arguments]

    def __call__(self, *arguments, stdin=None, seconds=None):
        """Runs a podman command to its end."""
        arguments = [str(each) for each in arguments]
        if "--name" in arguments and "--rm" not in arguments:
            self.named.add(arguments[arguments.index("--name") + 1])
        self.has_pods |= arguments[0] in ("pod", "kube")
        process = subprocess.Popen(self.argv(arguments), stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, errors="replace", start_new_session=True, cwd="/")
        try:
            out, err = process.communicate(stdin, timeout=(seconds * PATIENCE) if seconds else COMMAND_SECONDS)
            ran = Ran(process.returncode, out, err)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            try:  # conmon is in a session of its own, and may hold the pipes
                out, err = process.communicate(timeout=5)
            except subprocess.TimeoutExpired as hangs:
                out, err = ((each or b"").decode(errors="replace") for each in (hangs.stdout, hangs.stderr))
                process.stdout.close(), process.stderr.close()
            self.named.add(self.name)
            raise Hangs(f"podman {' '.join(arguments)}: {out[-300:]!r} {err[-1500:]!r}")
        self.log.append(f"podman {' '.join(arguments)}: {ran.status} {ran.err[-1500:]}")
        return ran

    def terminal(self, *arguments, typed="", rows=33, columns=101):
        """The same on a terminal: see run_on_terminal()."""
        ran = run_on_terminal(self.argv([str(each) for each in arguments]), typed, rows, columns)
        if ran is None:
            self.named.add(self.name)
            raise Hangs(f"podman {' '.join(map(str, arguments))}")
        self.log.append(f"podman {' '.join(map(str, arguments))} (on a terminal): {ran.status} {ran.out[-300:]}")
        return ran

    def box(self, *options, script="sleep 1000", name=None):
        """A container that keeps running, with the image box."""
        ran = self("run", "-d", "--name", name or self.name, *options, "localhost/box", "sh", "-c", script)
        self.see("it starts", ran.status, 0)
        return name or self.name

    def see_run(self, label, ran, status=None, out=None):
        self.see(f"{label}: exit status", ran.status, status)
        self.see(f"{label}: output", ran.out if ran.status == 0 or out is not None else "", out)

    def plain(self, text):
        text = text.replace(self.name, "NAME").replace(self.work, "WORK").replace(self.command, "RUNTIME").replace(self.runtime, "RUNTIME")
        text = re.sub(r"\b[0-9a-f]{64}\b", "ID", text)
        return re.sub(r"\b[0-9a-f]{12}\b", "ID", text)

    def inspect(self, form, name=None):
        return self("inspect", "--format", form, name or self.name).out

    def clean_up(self):
        """Removes only what this scenario created: every command takes seconds where instructions are emulated."""
        if self.has_pods:
            self("pod", "rm", "-f", "-t", "0", "--ignore", self.name)
        if self.named:
            self("rm", "-f", "-t", "0", "--ignore", *sorted(self.named))


SCENARIOS = {}


def scenario(needs="", name=None):
    """needs: v2 (for limits that are checked), root, rootless, network, userns, systemd, both (also rootless), alone."""
    def take(function):
        SCENARIOS[(name or function.__name__).replace("_", "-")] = (function, set(needs.split()))
        return function
    return take


def one_line(name, options, script, expected=None, needs="", status=0, user=None):
    """A scenario with one `podman run --rm OPTIONS localhost/box sh -c SCRIPT`."""
    def run(p):
        p.see_run("run", p("run", "--rm", "--name", p.name, *[each.replace("WORK", p.work) for each in options.split()], "localhost/box", "sh", "-c", script),
                  status, expected)
    SCENARIOS[name] = (run, set(needs.split()))


# ---- run and exit codes ----

@scenario("both")
def run(p):
    p.see_run("output and status", p("run", "--rm", "--name", p.name, "localhost/box", "echo", "hi"), 0, "hi")
    p.see_run("a status of its own", p("run", "--rm", "localhost/box", "sh", "-c", "exit 7"), 7)
    p.see_run("no such program", p("run", "--rm", "localhost/box", "/no/such"), 127)
    p.see_run("not a program", p("run", "--rm", "localhost/box", "/etc/passwd"), 126)
    p.see_run("no such working directory", p("run", "--rm", "--workdir", "/etc/passwd", "localhost/box", "true"))
    p.see_run("standard input", p("run", "--rm", "-i", "localhost/box", "cat", stdin="one\ntwo\n"), 0, "one\ntwo")
    both = p("run", "--rm", "localhost/box", "sh", "-c", "echo out; echo err >&2")
    p.see("standard error", (both.out, both.err), ("out", "err"))
    p.see_run("killed by a signal", p("run", "--rm", "--init", "localhost/box", "sh", "-c", "kill -9 $$"), 137)
    p.see("gone after --rm", p("container", "exists", p.name).status, 1)


@scenario("both")
def terminal(p):
    for _ in range(3):  # podman sets the size once, and loses it if the terminal does not exist yet
        ran = p.terminal("run", "-it", "--rm", "--name", p.name, "localhost/box", "sh", "-c", f"tty; {SIZE_OF_TERMINAL}; printf '> '; read x; echo got $x; ls -l /proc/self/fd/0 | grep -o '/dev.*'; exit 3", typed="word\n")
        if "33 101" in ran.out:
            break
    p.see_run("run -it", ran, 3, r"/dev/(pts/0|console)\n33 101\n> word\ngot word\n.*")
    p.box("-t", script="stty size >/tmp/size; sleep 1000")
    for _ in range(3):
        ran = p.terminal("exec", "-it", p.name, "sh", "-c", f"{SIZE_OF_TERMINAL}; printf '> '; read x; echo got $x; exit 4", typed="word\n")
        if ran.out.startswith("33 101"):
            break
    p.see_run("exec -it", ran, 4, r"33 101\n> word\ngot word")


@scenario("both")
def exec(p):
    p.box("--env", "A=1", "--workdir", "/tmp")
    p.see_run("plain", p("exec", p.name, "sh", "-c", "pwd; echo $A; id; cat /proc/self/attr/current 2>/dev/null; grep -E '^(Cap|Seccomp:|NoNewPrivs)' /proc/self/status"), 0, r"/tmp\n1\nuid=0.*")
    p.see_run("status", p("exec", p.name, "sh", "-c", "exit 9"), 9)
    p.see_run("--user by name", p("exec", "--user", "alice", p.name, "id"), 0, r"uid=1001\(alice\) gid=1001\(alice\) groups=.*")
    p.see_run("--user by number", p("exec", "--user", "1234:5678", p.name, "sh", "-c", "id; grep Cap /proc/self/status"), 0, r"uid=1234 gid=5678.*")
    p.see_run("--env", p("exec", "--env", "A=2", "--env", "B=3 4", p.name, "sh", "-c", "echo $A $B"), 0, "2 3 4")
    p.see_run("--workdir", p("exec", "--workdir", "/etc", p.name, "pwd"), 0, "/etc")
    p.see_run("--workdir that is not there", p("exec", "--workdir", "/nowhere", p.name, "pwd"))
    p.see_run("--privileged", p("exec", "--privileged", p.name, "grep", "CapEff", "/proc/self/status"), 0)
    p.see_run("no such program", p("exec", p.name, "/no/such"), 127)
    p.see_run("not a program", p("exec", p.name, "/etc/passwd"), 126)
    p.see_run("-i", p("exec", "-i", p.name, "cat", stdin="in\n"), 0, "in")
    p.see("-d", p("exec", "-d", p.name, "sh", "-c", "echo done >/tmp/done").status, 0)
    p.see("-d has run", p.until(lambda: p("exec", p.name, "cat", "/tmp/done").out, "done"), "done")
    p.see_run("its namespaces are the container's", p("exec", p.name, "sh", "-c", "for n in ipc mnt net pid uts cgroup user; do [ $(readlink /proc/1/ns/$n) = $(readlink /proc/self/ns/$n) ] || echo $n differs; done"), 0, "")
    p.see_run("in the container's cgroup", p("exec", p.name, "sh", "-c", "cmp /proc/1/cgroup /proc/self/cgroup && echo same"))
    p("kill", p.name)
    p.see_run("in one that has ended", p("exec", p.name, "true"), 255)


@scenario("both")
def stop(p):
    has_set = lambda name: p.until(lambda: p("exec", name, "test", "-e", "/tmp/set").status, 0)  # set by its trap
    p.box(script="trap 'echo ended; exit 5' TERM; touch /tmp/set; while :; do sleep 0.1; done")
    has_set(p.name)
    p.see("asked to end", p("stop", "-t", "20", p.name).status, 0)
    p.see("its own status", p.inspect("{{.State.ExitCode}} {{.State.Status}}"), r"5 (exited|stopped)")
    p.see_run("it was told", p("logs", p.name), 0, "ended")
    deaf = p.box(script="trap '' TERM; while :; do sleep 1; done", name=p.name + "-deaf")
    p.see("does not hear", p("stop", "-t", "1", deaf).status, 0)
    p.see("killed", p.inspect("{{.State.ExitCode}} {{.State.Status}}", deaf), r"137 (exited|stopped)")
    quits = p.box("--stop-signal", "USR1", script="trap 'exit 6' USR1; touch /tmp/set; while :; do sleep 0.1; done", name=p.name + "-usr1")
    has_set(quits)
    p.see("--stop-signal", (p("stop", quits).status, p.inspect("{{.State.ExitCode}}", quits)), (0, "6"))


@scenario("both")
def kill(p):
    p.box(script="trap 'echo usr1' USR1; echo ready; while :; do sleep 0.1; done")
    p.until(lambda: p("logs", p.name).out, "ready")
    p.see("USR1", p("kill", "-s", "USR1", p.name).status, 0)
    p.see("heard", p.until(lambda: p("logs", p.name).out, "ready\nusr1"), "ready\nusr1")
    p.see("KILL", p("kill", p.name).status, 0)
    p.see("status", p("wait", p.name).out, "137")
    p.see("one that has ended", p("kill", p.name).status != 0, True)
    p.see("a signal that is none", p("kill", "-s", "NONE", p.name).status != 0, True)


@scenario("both")
def pause(p):
    p.box(script="i=0; while :; do i=$((i + 1)); echo $i >/tmp/n; sleep 0.05; done")
    p.see("pause", p("pause", p.name).status, 0)
    p.see("state", p.inspect("{{.State.Status}}"), "paused")
    p.see("exec into it", p("exec", p.name, "true").status != 0, True)
    p.see("twice", p("pause", p.name).status != 0, True)
    p.see("unpause", p("unpause", p.name).status, 0)
    p.see("goes on", p.inspect("{{.State.Status}}"), "running")
    first = p("exec", p.name, "cat", "/tmp/n").out
    p.see("counts on", p.until(lambda: p("exec", p.name, "cat", "/tmp/n").out != first, True), True)
    p("pause", p.name)
    p.see("a paused one is removed", p("rm", "-f", "-t", "0", p.name).status, 0)


@scenario("both")
def top(p):
    p.box(script="sleep 1000 & sleep 1000")
    p.see_run("top", p("top", p.name, "user", "args"), 0, r"USER +COMMAND\nroot .*sleep 1000.*")
    p.see("by ps", len(p("top", p.name, "-eo", "pid").out.split()), 4)


@scenario("both v2")
def stats(p):
    p.box("--memory", "64m", script="sleep 1000 & sleep 1000; true")  # otherwise the shell may be replaced by the last command
    said = p.until(lambda: p("stats", "--no-stream", "--format", "{{.PIDs}} {{.MemUsage}}", p.name).out, lambda out: out.startswith("3 "))
    p.see("what", re.sub(r"[0-9.]+ *k?i?B /", "N /", said), r"3 N / 67.*")


@scenario("both")
def logs(p):
    # The two streams come through two pipes: without the pause, --tail may get them in any order.
    p("run", "--name", p.name, "localhost/box", "sh", "-c",
      "echo err >&2; sleep 1; for i in 1 2 3 4; do echo out $i; done; printf 'no end'")
    ran = p("logs", p.name)
    p.see("both streams", (ran.out, ran.err), ("out 1\nout 2\nout 3\nout 4\nno end", "err"))
    p.see_run("--tail", p("logs", "--tail", "2", p.name))
    follow = p.box(script="for i in 1 2 3; do echo $i; sleep 0.2; done", name=p.name + "-follow")
    p.see_run("--follow", p("logs", "-f", follow), 0, "1\n2\n3")


@scenario("both")
def healthcheck(p):
    p.box("--health-cmd", "test -e /tmp/well", "--health-interval", "disable", "--health-retries", "1")
    p.see("unhealthy", p("healthcheck", "run", p.name).status, 1)
    p("exec", p.name, "touch", "/tmp/well")
    p.see("healthy", p("healthcheck", "run", p.name).status, 0)
    p.see("said so", p.inspect("{{.State.Health.Status}}") or p.inspect("{{.State.Healthcheck.Status}}"), "healthy")


@scenario("both")
def life(p):
    """create, init, start, wait, restart, rename, ps, inspect, rm."""
    p.see("create", p("create", "--name", p.name, "localhost/box", "sh", "-c", "echo $((1 + 1)); sleep 0.3; exit 4").status, 0)
    p.see("created", p.inspect("{{.State.Status}} {{.State.Pid}}"), "created 0")
    p.see("init", p("init", p.name).status, 0)
    p.see("initialised", p.inspect("{{.State.Status}}"), "initialized|created")
    p.see("has a process, that waits", p.inspect("{{.State.Pid}}") != "0", True)
    p.see_run("start -a", p("start", "-a", p.name), 4, "2")
    p.see("ended", p.until(lambda: p.inspect("{{.State.Status}} {{.State.ExitCode}} {{.State.Running}} {{.State.Pid}} {{.State.OOMKilled}}"),
                           "exited 4 false 0 false"), "exited 4 false 0 false")  # "stopped" before podman has cleaned up
    p.see("again", p("start", p.name).status, 0)
    p.see("wait", p("wait", p.name).out, "4")
    p.see("ps", p("ps", "-a", "--filter", f"name={p.name}", "--format", "{{.State}} {{.ExitCode}}").out.lower().split()[0], "exited")
    p.see("rm", p("rm", p.name).status, 0)
    p.box()
    p.see("running", p.inspect("{{.State.Status}} {{.State.Running}} {{.State.ExitCode}}"), "running true 0")
    p.see("ps of running ones", p("ps", "--filter", f"name={p.name}", "--format", "{{.Names}} {{.State}}").out.split()[0], "NAME")
    pid = p.inspect("{{.State.Pid}}")
    p.see("its parent is conmon", parent_of(pid), "conmon")
    p.see("restart", p("restart", "-t", "0", p.name).status, 0)
    p.see("is another process", p.inspect("{{.State.Pid}}") not in ("0", pid), True)
    p.see("a running one is not removed", p("rm", p.name).status != 0, True)
    p.see("checkpoint", p("container", "checkpoint", p.name).status != 0)
    p.see("rm -f", p("rm", "-f", "-t", "0", p.name).status, 0)
    p.see("gone", p("container", "exists", p.name).status, 1)


def parent_of(pid):
    try:
        parent = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[1]
        return open(f"/proc/{parent}/comm").read().strip()
    except (OSError, IndexError):
        return "?"


@scenario("both")
def attach(p):
    p("create", "-i", "--name", p.name, "localhost/box", "sh", "-c", "read x; echo got $x; exit 8")
    p.see_run("start -a -i", p("start", "-a", "-i", p.name, stdin="word\n"), 8, "got word")


@scenario("both")
def restart_policy(p):
    p("run", "-d", "--name", p.name, "--restart", "on-failure:2", "localhost/box", "sh", "-c", "echo x; exit 1")
    p.see("restarts", p.until(lambda: p.inspect("{{.RestartCount}} {{.State.Status}}"), "2 exited"), "2 exited")
    p.see_run("ran three times", p("logs", p.name), 0, "x\nx\nx")


# ---- pods ----

SHOW_NAMESPACES = "for n in ipc net uts pid mnt; do readlink /proc/self/ns/$n; done"


@scenario("both")
def pod(p):
    p.see("create", p("pod", "create", "--name", p.name, "--share", "ipc,net,uts,pid", "--hostname", "inside").status, 0)
    for each in ("a", "b"):
        p.see(f"run {each}", p("run", "-d", "--pod", p.name, "--name", f"{p.name}-{each}", "localhost/box", "sleep", "1000").status, 0)
    a, b = ([line.split(":")[1] for line in p("exec", f"{p.name}-{each}", "sh", "-c", SHOW_NAMESPACES).out.split()] for each in "ab")
    p.see("shared: ipc net uts pid, not mnt", [one == other for one, other in zip(a, b)], [True, True, True, True, False])
    p.see_run("one sees the other", p("exec", f"{p.name}-a", "sh", "-c", "ps -o args | grep -c '^sleep 1000'; hostname"), 0, "2\ninside")
    p.see("status", p("pod", "ps", "--filter", f"name={p.name}", "--format", "{{.Status}}").out, "Running")
    p.see("pause", p("pod", "pause", p.name).status, 0)
    p.see("unpause", p("pod", "unpause", p.name).status, 0)
    p.see("stop", p("pod", "stop", "-t", "1", p.name).status, 0)
    p.see("stopped", p("pod", "ps", "--filter", f"name={p.name}", "--format", "{{.Status}}").out, "Exited")
    p.see("start", p("pod", "start", p.name).status, 0)
    p.see_run("runs again", p("exec", f"{p.name}-b", "hostname"), 0, "inside")
    p.see("rm -f", p("pod", "rm", "-f", "-t", "0", p.name).status, 0)


@scenario("both")
def kube(p):
    path = f"{p.work}/pod.yaml"
    with open(path, "w") as file:
        file.write(f"""apiVersion: v1
kind: Pod
metadata: {{name: {p.name}}}
spec:
  hostname: web
  restartPolicy: Never
  containers:
  - name: one
    image: localhost/box:latest
    imagePullPolicy: Never
    command: [sh, -c, 'hostname; id -u; touch /x 2>/dev/null || echo read-only; grep NoNewPrivs /proc/self/status; echo "$WORD"; sleep 1000']
    env: [{{name: WORD, value: from kube}}]
    securityContext: {{runAsUser: 1001, readOnlyRootFilesystem: true, allowPrivilegeEscalation: false, capabilities: {{drop: [ALL]}}}}
    volumeMounts: [{{name: shared, mountPath: /shared}}]
  - name: two
    image: localhost/box:latest
    imagePullPolicy: Never
    command: [sleep, '1000']
    volumeMounts: [{{name: shared, mountPath: /shared}}]
  volumes: [{{name: shared, emptyDir: {{}}}}]
""")
    p.see("play", p("kube", "play", *(["--network", "none"] if p.options.cgroups == "v1" else []), path).status, 0)
    p.see("runs", p.until(lambda: p("logs", f"{p.name}-one").out.count("\n"), 4))
    p.see_run("says", p("logs", f"{p.name}-one"), 0, r"web\n1001\nread-only\nNoNewPrivs:\s1\nfrom kube")
    p.see_run("the other runs too", p("exec", f"{p.name}-two", "sh", "-c", "echo here >/shared/f; cat /shared/f"), 0, "here")
    p.see("down", p("kube", "down", path).status, 0)
    p.see("gone", p("pod", "exists", p.name).status, 1)


# ---- limits ----

def limits(options, files, expected, name, extra=""):
    script = f"{extra}cd /sys/fs/cgroup; for f in {files}; do echo $f=$(cat $f); done"
    one_line(name, options, script, expected, needs="both v2")


@scenario("root v1")
def limits_in_v1(p):
    """With cgroup v1 controllers, as seen from the machine: inside, crun's container has them at another path than ours."""
    def look():
        pid = p.inspect("{{.State.Pid}}")
        paths = {name: path for line in open(f"/proc/{pid}/cgroup").read().splitlines() for _, names, path in [line.split(":", 2)] for name in names.split(",")}
        files = (("memory", "memory.limit_in_bytes"), ("memory", "memory.memsw.limit_in_bytes"), ("memory", "memory.soft_limit_in_bytes"), ("pids", "pids.max"),
                 ("cpu", "cpu.shares"), ("cpu", "cpu.cfs_quota_us"), ("cpu", "cpu.cfs_period_us"), ("cpuset", "cpuset.cpus"))
        return [open(path).read().strip() for path in (f"/sys/fs/cgroup/{controller}{paths[controller]}/{file}" for controller, file in files) if os.path.exists(path)]
    p.box("--memory", "64m", "--memory-swap", "96m", "--memory-reservation", "32m", "--pids-limit", "50", "--cpu-shares", "512", "--cpu-quota", "20000", "--cpuset-cpus", "0")
    p.see("limits", look())
    p.see("not none", "67108864" in look(), True)
    p.see_run("exec is limited, too", p("exec", p.name, "sh", "-c", "grep -o 'pids:.*' /proc/self/cgroup | cut -c 1-5"), 0, "pids:")
    said = p.until(lambda: p("stats", "--no-stream", "--format", "{{.PIDs}} {{.MemUsage}}", p.name).out, lambda out: out.startswith("1 "))
    p.see("stats", re.sub(r"[0-9.]+ *k?i?B /", "N /", said), r"1 N / 67.*")
    p.see_run("memory runs out", p("run", "--rm", "--memory", "16m", "--memory-swap", "16m", "localhost/box", "sh", "-c", "x=$(head -c 64m /dev/zero | tr '\\0' a); echo $?"), 137)


limits("--memory 64m --memory-swap 64m", "memory.max memory.swap.max", "memory.max=67108864\nmemory.swap.max=0", "memory-64m")
limits("--memory 64m --memory-swap 128m --memory-reservation 32m", "memory.max memory.swap.max memory.low", "memory.max=67108864\nmemory.swap.max=67108864\nmemory.low=33554432", "memory-swap")
limits("--pids-limit 17", "pids.max", "pids.max=17", "pids-limit")
limits("--cpus 0.5", "cpu.max", "cpu.max=50000 100000", "cpus")
limits("--cpu-period 50000 --cpu-quota 20000", "cpu.max", "cpu.max=20000 50000", "cpu-quota")
limits("--cpuset-cpus 0", "cpuset.cpus", "cpuset.cpus=0", "cpuset")
limits("--cgroup-conf memory.high=50000000", "memory.high", "memory.high=49999872", "cgroup-conf")
limits("--blkio-weight 200", "$(ls io.weight io.bfq.weight 2>/dev/null)", None, "blkio-weight")


@scenario("both v2")
def cpu_shares(p):
    ran = p("run", "--rm", "--name", p.name, "--cpu-shares", "512", "localhost/box", "cat", "/sys/fs/cgroup/cpu.weight")
    # 20 is the result of the line from 2 shares (weight 1) to 262144 shares (weight 10000). crun since 1.23 and ours use the
    # curve through 1024 shares (weight 100).
    p.see("a weight by one of the two conversions", (ran.status, ran.out in ("20", "59")), (0, True))


for size in ("512k", "1m", "2m", "4m", "8m", "16m", "64m"):
    one_line(f"memory-{size}-runs", f"--memory {size}", "echo started", None, needs="both v2")


@scenario("both v2")
def out_of_memory(p):
    for again in range(6):
        ran = p("run", "--name", f"{p.name}-{again}", "--memory", "24m", "--memory-swap", "24m", "localhost/box", "tail", "/dev/zero")
        said = p.inspect("{{.State.OOMKilled}} {{.State.ExitCode}}", f"{p.name}-{again}")
        # conmon (2.1.12) stops checking once memory.events has changed without an oom, and checks once more at the end; if
        # systemd has removed the cgroup by then, it cannot tell.
        if ran.status != 137 or said == "true 137":
            break
    p.see("killed", ran.status, 137)
    p.see("said so", said, "true 137")


@scenario("both v2")
def too_many_processes(p):
    ran = p("run", "--rm", "--name", p.name, "--pids-limit", "6", "localhost/box", "sh", "-c", "for i in 1 2 3 4 5 6 7 8; do sleep 5 & done; echo all")
    p.see("fork fails", (ran.status, "fork" in ran.err), (2, True))


@scenario("both v2")
def update(p):
    p.box("--memory", "64m", "--pids-limit", "50")
    p.see("update", p("update", "--memory", "32m", "--pids-limit", "20", "--cpus", "0.25", p.name).status, 0)
    p.see_run("in force", p("exec", p.name, "sh", "-c", "cd /sys/fs/cgroup; cat memory.max pids.max cpu.max"), 0, "33554432\n20\n25000 100000")


one_line("cgroups-disabled", "--cgroups=disabled", "grep -c libpod- /proc/self/cgroup || echo in none of its own", needs="both")
one_line("cgroupns-host", "--cgroupns host", "grep -q libpod /proc/self/cgroup && echo seen from outside", "seen from outside", needs="both")
one_line("cgroupns-private", "--cgroupns private", "grep -E '^0::|memory' /proc/self/cgroup; mount | grep -o 'on /sys/fs/cgroup type.*' | head -n 1", needs="both v2")

# ---- identity and privileges ----

one_line("user", "--user alice", "id; grep Cap /proc/self/status; umask", r"uid=1001\(alice\) gid=1001\(alice\) groups=.*", needs="both")
one_line("group-add", "--user 1001:1001 --group-add extra --group-add 4242", "id -G | tr ' ' '\\n' | sort | tr '\\n' ' '", "1001 1002 4242", needs="root")
one_line("umask", "--umask 0077", "umask", "0077", needs="both")
STATUS = "grep -E '^(Cap|Seccomp:|NoNewPrivs)' /proc/self/status"
one_line("capabilities", "", STATUS, needs="both")
one_line("cap-add", "--cap-add NET_RAW --cap-add SYS_PTRACE --cap-drop CHOWN", STATUS, needs="both")
one_line("cap-drop-all", "--cap-drop ALL", STATUS, r"CapInh:\s0000000000000000\nCapPrm:\s0000000000000000.*", needs="both")
one_line("cap-add-user", "--user 1001 --cap-add NET_RAW", STATUS, needs="both")
one_line("privileged", "--privileged", STATUS + "; ls /dev | grep -v core | grep -c .; touch /proc/sys/kernel/hostname 2>/dev/null && echo may || echo may not", needs="both")
one_line("no-new-privileges", "--security-opt no-new-privileges", STATUS, r".*NoNewPrivs:\s1.*", needs="both")
one_line("seccomp-unconfined", "--security-opt seccomp=unconfined", STATUS, r".*Seccomp:\s0.*", needs="both")
one_line("label-disable", "--security-opt label=disable --security-opt apparmor=unconfined", "cat /proc/self/attr/current 2>/dev/null; echo runs", r".*runs", needs="both")
one_line("mask", "--security-opt mask=/proc/version:/etc/group", "cat /proc/version /etc/group | wc -c; cat /proc/kcore | wc -c; echo x 2>/dev/null >/proc/sys/kernel/hostname || echo refused; ls /sys/firmware | wc -l", r"0\n0\nrefused\n0", needs="both")
one_line("unmask", "--security-opt unmask=ALL", "ls -l /proc/acpi /proc/keys 2>&1 | wc -l; mount | grep -cE ' /proc/(sys|bus|irq) ' || true", needs="both")
one_line("proc-opts", "--security-opt proc-opts=hidepid=2", "mount | grep '^proc on /proc ' | grep -o hidepid=[a-z0-9]*", r"hidepid=(2|invisible)", needs="both")


@scenario("both")
def seccomp_file(p):
    profile = f"{p.work}/seccomp.json"
    with open(profile, "w") as file:
        json.dump({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [
            {"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO", "errnoRet": 38},
            {"names": ["chmod", "fchmodat"], "action": "SCMP_ACT_ERRNO", "args": []},
            {"names": ["sethostname"], "action": "SCMP_ACT_KILL_PROCESS"},
            {"names": ["personality"], "action": "SCMP_ACT_ERRNO", "errnoRet": 22, "args": [{"index": 0, "value": 8, "op": "SCMP_CMP_EQ"}]}]}, file)
    p.see_run("run", p("run", "--rm", "--security-opt", f"seccomp={profile}", "--cap-add", "SYS_ADMIN", "localhost/box", "sh", "-c",
                       "mkdir /tmp/x 2>&1; chmod 700 /tmp 2>&1; hostname y; echo $?; linux32 true; echo $?; " + STATUS),
              0, r"mkdir: .*Function not implemented\nchmod: .*not permitted\n.*Seccomp:\s2.*")
    p.box("--security-opt", f"seccomp={profile}")
    p.see_run("exec", p("exec", p.name, "mkdir", "/tmp/x"), 1)
    with open(profile, "w") as file:
        file.write('{"defaultAction": "SCMP_ACT_NONSENSE"}')
    p.see("nonsense is refused", p("run", "--rm", "--security-opt", f"seccomp={profile}", "localhost/box", "true").status != 0, True)


one_line("oom-score-adj", "--oom-score-adj 500", "cat /proc/self/oom_score_adj", "500", needs="both")
one_line("ulimit", "--ulimit nproc=1000:1000 --ulimit nofile=100:200 --ulimit core=0 --ulimit stack=1048576:2097152", "ulimit -Sn; ulimit -Hn; ulimit -c; ulimit -Ss", "100\n200\n0\n1024", needs="both")
one_line("hostname", "--hostname other", "hostname; cat /etc/hostname", "other\nother", needs="both")
one_line("sysctl", "--sysctl net.ipv4.ip_default_ttl=33 --sysctl kernel.msgmax=9000", "cat /proc/sys/net/ipv4/ip_default_ttl /proc/sys/kernel/msgmax", "33\n9000", needs="both")
one_line("personality", "--personality LINUX32", "uname -m", needs="root")
one_line("env", "--env A=b --env-host=false", "env | sort", needs="both")
one_line("init", "--init", "cat /proc/1/comm; cat /proc/$$/comm; (sleep 0.1 & exit 0); sleep 0.3; ps -o args | grep -c '^sleep'", r"(catatonit|podman-init)\nsh\n0", status=1, needs="both")
one_line("init-passes-signals", "--init --timeout 2", "trap '' TERM; sleep 1000", status=None, needs="both")
one_line("preserve-nothing", "", "ls /proc/self/fd | wc -l", "4", needs="both")
one_line("keyring", "", "cat /proc/keys 2>&1 | wc -c", "0", needs="both")
one_line("no-setgroups-lost", "--user 1001", "id -G; cat /proc/self/setgroups 2>/dev/null", needs="both")

# ---- mounts and files ----

# The mount points, their types, and whether they are writable: other mount flags may differ between runtimes.
MOUNTS = "cut -d' ' -f 5- /proc/self/mountinfo | sed -E 's/(shared|master|propagate_from):[0-9]+/\\1/g; s#(lowerdir|upperdir|workdir)=[^, ]*##g; s#/dev/[a-z]+[0-9]+#DISK#g'"
# On a machine with cgroup v1 mounts, the peers show all of them, while ours shows those where the container has a cgroup.
one_line("mounts", "", "awk '$5 !~ \"^/sys/fs/cgroup\" {split($6, o, \",\"); for (i = 7; $i != \"-\"; ++i); print $5, o[1], $(i + 1)}' /proc/self/mountinfo | sort", needs="both")
one_line("dev", "", "cd /dev; ls -l | grep -v kcore | awk '{print $1, $3, $4, $5, $6, $NF}' | grep -v total; cat /dev/null; head -c 4 /dev/zero | wc -c", needs="both")
one_line("read-only", "--read-only", "touch /x 2>&1; touch /tmp/x /run/x /dev/shm/x && echo written; touch /dev/x 2>&1", r"touch: /x: Read-only file system\nwritten.*", needs="both")
one_line("read-only-all", "--read-only --read-only-tmpfs=false", "touch /x /tmp/x /run/x 2>&1", r".*Read-only.*", status=1, needs="both")
one_line("tmpfs", "--tmpfs /x:size=1m,mode=1750,noexec", "mount | grep -o ' /x .*' | sed 's/,inode64//'; stat -c %a /x; head -c 2000000 /dev/zero >/x/f 2>/dev/null || echo full", r".*size=1024k.*\n1750\nfull", needs="both")
one_line("tmpfs-copyup", "--mount type=tmpfs,destination=/etc,tmpfs-size=2m", "ls /etc | grep -c .", needs="both")
one_line("shm-size", "--shm-size 3m", "df -k /dev/shm | awk 'NR == 2 {print $2}'", "3072", needs="both")
one_line("device", "--device /dev/null:/dev/mine:rw", "echo x >/dev/mine && ls -l /dev/mine | cut -c 1; cat /dev/mine | wc -c", "c\n0", needs="root")
one_line("device-refused", "--cap-add MKNOD --cap-add SYSLOG", "mknod /tmp/d b 254 0 && cat /tmp/d 2>&1 | grep -o 'not permitted'; mknod /tmp/n c 1 3 && echo x >/tmp/n && echo null works; mknod /tmp/k c 1 11; head -c 1 /tmp/k 2>&1 | grep -o 'not permitted'", r"not permitted\nnull works\nnot permitted", needs="root v2")


@scenario("root v2")
def device_cgroup_rule(p):
    p.see_run("allowed by a rule", p("run", "--rm", "--cap-add", "MKNOD", "--cap-add", "SYSLOG", "--device-cgroup-rule", "c 1:11 r", "localhost/box", "sh", "-c",
                                     "mknod /tmp/k c 1 11; (exec 3</tmp/k) && echo read; (exec 3>/tmp/k) 2>&1 | grep -o 'not permitted'"), 0, r"read\nnot permitted")


one_line("network-none", "--network none", "cat /proc/net/dev | tail -n +3 | cut -d: -f 1 | tr -d ' ' | sort", r"lo.*", needs="both")
one_line("network-pasta", "--network pasta", "cut -d: -f 1 /proc/net/dev | tail -n +3 | wc -l; cat /etc/resolv.conf | grep -c nameserver", r"2\n[1-9]", needs="rootless network")
one_line("pid-private", "", "echo $$; cat /proc/1/comm; kill -0 2 2>&1", r"1\nsh\n.*", status=1, needs="both")


@scenario("both")
def host_namespaces(p):
    for kind, option in (("net", "--network"), ("pid", "--pid"), ("ipc", "--ipc"), ("uts", "--uts")):
        ran = p("run", "--rm", option, "host", "localhost/box", "readlink", f"/proc/self/ns/{kind}")
        p.see(f"{option} host", (ran.status, ran.out == os.readlink(f"/proc/self/ns/{kind}")), (0, True))
        ran = p("run", "--rm", "localhost/box", "readlink", f"/proc/self/ns/{kind}") if kind != "net" else p("run", "--rm", "--network", "none", "localhost/box", "readlink", f"/proc/self/ns/{kind}")
        p.see(f"{kind} of its own", (ran.status, ran.out != os.readlink(f"/proc/self/ns/{kind}")), (0, True))
    p.see_run("--userns host", p("run", "--rm", "--userns", "host", "localhost/box", "sh", "-c", "readlink /proc/self/ns/user >/dev/null; cat /proc/self/uid_map | tr -s ' '"))


@scenario("both")
def others_namespaces(p):
    p.box("--network", "none", "--ipc", "shareable", "--hostname", "first")
    for kind, option in (("net", "--network"), ("pid", "--pid"), ("ipc", "--ipc")):
        mine = p("exec", p.name, "readlink", f"/proc/self/ns/{kind}").out
        ran = p("run", "--rm", *(["--network", "none"] if kind != "net" else []), option, f"container:{p.name}", "localhost/box", "readlink", f"/proc/self/ns/{kind}")
        p.see(f"{option} container:", (ran.status, ran.out == mine), (0, True))


@scenario("both")
def volume(p):
    os.makedirs(f"{p.work}/v/sub", exist_ok=True)
    os.chmod(f"{p.work}/v", 0o777)
    with open(f"{p.work}/v/f", "w") as file:
        file.write("text\n")
    look = "; " + MOUNTS + " | grep ' *^/v ' || " + MOUNTS + " | grep '^/v ' | cut -d' ' -f 1-3"
    p.see_run("rw", p("run", "--rm", "-v", f"{p.work}/v:/v", "localhost/box", "sh", "-c", "cat /v/f; touch /v/new && echo written" + look), 0, r"text\nwritten\n.*")
    p.see_run("ro", p("run", "--rm", "-v", f"{p.work}/v:/v:ro", "localhost/box", "sh", "-c", "touch /v/new2 2>&1; true" + look), 0, r"touch: .*Read-only file system.*")
    for option in ("noexec", "nosuid,nodev", "rprivate", "rslave", "rshared", "shared", "slave", "rbind", "bind"):
        p.see_run(option, p("run", "--rm", "-v", f"{p.work}/v:/v:{option}", "localhost/box", "sh", "-c", "cat /v/f" + look))
    p.see_run("a file", p("run", "--rm", "-v", f"{p.work}/v/f:/etc/deep/down/f:ro", "localhost/box", "cat", "/etc/deep/down/f"), 0, "text")
    p.see_run("no such source", p("run", "--rm", "-v", f"{p.work}/none:/v", "localhost/box", "true"))
    p.see_run("named", p("run", "--rm", "-v", f"{p.name}:/v", "localhost/box", "sh", "-c", "touch /v/x; ls /v"), 0, "x")
    p("volume", "rm", "-f", p.name)


@scenario("root")
def volume_idmap(p):
    os.makedirs(f"{p.work}/v", exist_ok=True)
    with open(f"{p.work}/v/f", "w") as file:
        file.write("text\n")
    os.chown(f"{p.work}/v/f", 1001, 1001)
    p.see_run("idmap", p("run", "--rm", "--uidmap", "0:100000:65536", "--gidmap", "0:100000:65536", "-v", f"{p.work}/v:/v:idmap", "localhost/box", "sh", "-c",
                         "stat -c '%u %g' /v/f; touch /v/new; stat -c %u /v/new"))
    p.see("made outside as", [(name, os.stat(f"{p.work}/v/{name}").st_uid) for name in sorted(os.listdir(f"{p.work}/v"))])


# ---- user namespaces ----

MAPS = "cat /proc/self/uid_map /proc/self/gid_map | tr -s ' '; id -u; touch /tmp/x && stat -c %u /tmp/x"
one_line("userns-uidmap", "--uidmap 0:200000:1000 --gidmap 0:300000:2000", MAPS, r"0 200000 1000\n 0 300000 2000\n0\n0", needs="root")
one_line("userns-two-ranges", "--uidmap 0:200000:10 --uidmap 10:400000:3000 --gidmap 0:200000:65536", MAPS + "; mount | grep -c ' /proc '", needs="root")
# With "auto", podman takes its storage's locks in another order than elsewhere: beside another podman it may deadlock.
one_line("userns-auto", "--userns auto:size=4096", "cut -c 1-11 /proc/self/uid_map; id -u; ls -ld /root | awk '{print $3}'", needs="root alone")
one_line("userns-auto-hostname", "--userns auto --hostname u --sysctl net.ipv4.ip_default_ttl=44 --tmpfs /x", "hostname; cat /proc/sys/net/ipv4/ip_default_ttl; mount | grep -c ' /x '; cat /dev/null; ls /dev/pts", needs="root alone")
one_line("userns-keep-id", "--userns keep-id", "id -u; id -g; wc -l </proc/self/uid_map; cd ~ 2>&1; touch /tmp/x; stat -c %u /tmp/x", r"1000\n1000\n3.*", needs="rootless")
one_line("userns-keep-id-as", "--userns keep-id:uid=5,gid=6", "id -u; id -g", r"5\n6", needs="rootless")
one_line("userns-nomap", "--userns nomap", "id -u; tr -s ' ' </proc/self/uid_map", needs="rootless")
one_line("userns-rootless-default", "", "id -u; tr -s ' ' </proc/self/uid_map; cat /proc/self/setgroups", r"0\n.*", needs="rootless")


@scenario("both")
def hooks(p):
    """Which hooks run, in which order, and with which state: each records it."""
    directory = f"{p.work}/hooks.d"
    os.makedirs(directory, exist_ok=True)
    notes = f"{p.work}/notes"
    open(notes, "w").close()
    os.chmod(notes, 0o666)
    script = f"{p.work}/hook.sh"
    with open(script, "w") as file:
        file.write(f"#!/bin/sh\nstate=$(cat)\necho \"$1 $(echo \"$state\" | python3 -c 'import json, sys; s = json.load(sys.stdin); print(s[\"status\"], [k for k in (\"ociVersion\", \"id\", \"bundle\", \"annotations\") if k in s], s.get(\"pid\", 0) != 0)') $WORD\" >>{notes}\n")
    os.chmod(script, 0o755)
    for stage in ("prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop"):
        if stage in ("createContainer", "startContainer"):
            continue  # these look up the program, or run, inside the container
        with open(f"{directory}/{stage}.json", "w") as file:
            json.dump({"version": "1.0.0", "hook": {"path": script, "args": ["hook", stage], "env": ["WORD=x", "PATH=/usr/bin:/bin"]}, "when": {"always": True}, "stages": [stage]}, file)
    p.see_run("run", Ran(*[(ran := p("--hooks-dir", directory, "run", "--name", p.name, "localhost/box", "echo", "hi")).status, ran.out, ran.err]), 0, "hi")
    p("rm", "-f", "-t", "0", p.name)
    # createRuntime gets the status "creating" by the specification and from runc, "created" from crun. A newer podman passes
    # prestart hooks as createRuntime, in the order of their files.
    p.see("hooks", open(notes).read().replace("creating", "created"),
          r"(prestart created.*createRuntime|createRuntime created.*prestart) created.*poststart running.*poststop stopped.*")


# ---- systemd inside, images, networks: if the machine has what they need ----

@scenario("systemd root")
def systemd(p):
    ran = p("run", "-d", "--name", p.name, "--systemd=always", "--rootfs", f"{p.options.systemd}:O", "/sbin/init")
    p.see("starts", ran.status, 0)
    state = p.until(lambda: p("exec", p.name, "systemctl", "is-system-running").out, lambda value: value in ("running", "degraded"), seconds=40)
    p.see("comes up", state, "running|degraded")
    p.see_run("is the first process", p("exec", p.name, "cat", "/proc/1/comm"), 0, "systemd")
    p.see_run("its journal runs", p("exec", p.name, "systemctl", "is-active", "systemd-journald"), 0, "active")
    p.see_run("a unit of its own, with a limit", p("exec", p.name, "sh", "-c", "systemd-run --quiet --unit=x -p MemoryMax=30M sleep 1000; cat /sys/fs/cgroup/system.slice/x.service/memory.max"), 0, "31457280")
    p.see("stops in good order", p("stop", "-t", "60", p.name).status, 0)
    p.see("with status", p.inspect("{{.State.ExitCode}}"), "0|130|143")


@scenario("root")
def build(p):
    directory = f"{p.work}/context"
    os.makedirs(directory, exist_ok=True)
    with open(f"{directory}/Containerfile", "w") as file:
        file.write("FROM localhost/box\nRUN echo made >/made && id -u >>/made\nRUN cat /made\nCMD cat /made\n")
    p.see("build", p("build", "--network", "none", "--isolation", "oci", "-t", f"localhost/{p.name}", directory).status, 0)
    p.see_run("runs", p("run", "--rm", f"localhost/{p.name}"), 0, "made\n0")
    p("rmi", "-f", f"localhost/{p.name}")


@scenario("root buildah")
def buildah_run(p):
    def buildah(*arguments):
        ran = subprocess.run(["buildah", *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=COMMAND_SECONDS)
        p.log.append(f"buildah {' '.join(arguments)}: {ran.returncode} {ran.stderr[-1500:]}")
        return Ran(ran.returncode, ran.stdout, ran.stderr)
    p.see("from", buildah("from", "--name", p.name, "localhost/box").status, 0)
    p.see_run("run", buildah("run", "--runtime", p.command, "--isolation", "oci", "--network", "none", p.name, "sh", "-c", "echo x; id -u; exit 0"), 0, r"x\n0")
    p.see_run("a status of its own", buildah("run", "--runtime", p.command, "--isolation", "oci", "--network", "none", p.name, "sh", "-c", "exit 7"), 7)

    def inside(label, *options, script, expected=None):
        p.see_run(label, buildah("run", "--runtime", p.command, "--isolation", "oci", "--network", "none", *options, p.name, "sh", "-c", script), 0, expected)
    inside("--user", "--user", "alice", script="id; pwd; echo $HOME; grep Cap /proc/self/status", expected=r"uid=1001\(alice\).*")
    inside("--workingdir", "--workingdir", "/tmp", script="pwd", expected="/tmp")
    inside("--env", "--env", "A=b c", script="echo $A", expected="b c")
    inside("--hostname", "--hostname", "boat", script="hostname", expected="boat")
    inside("--cap-add and --cap-drop", "--cap-add", "SYS_ADMIN", "--cap-drop", "CHOWN", script="grep Cap /proc/self/status; chown 1:1 /etc/passwd 2>&1 | tail -c 24", expected=r".*not permitted")
    os.makedirs(f"{p.work}/data", exist_ok=True)
    inside("--volume", "--volume", f"{p.work}/data:/data:ro", script="touch /data/x 2>&1 | tail -c 22; grep ' /data ' /proc/self/mountinfo | cut -d ' ' -f 6", expected=r".*ead-only file system\nro.*")
    inside("--mount tmpfs", "--mount", "type=tmpfs,destination=/cache,tmpfs-mode=1777", script="stat -c %a /cache; grep -c ' /cache ' /proc/self/mountinfo", expected=r"1777\n1")
    inside("its namespaces", script="for n in ipc mnt net pid uts; do [ $(readlink /proc/self/ns/$n) != \"\" ] && echo $n; done; ls /proc | grep -c '^[0-9]'; ip -o link | cut -d : -f 2")
    inside("what it writes stays", script="echo kept >/root/kept")
    inside("in the next command, too", script="cat /root/kept", expected="kept")
    p.see_run("no such program", buildah("run", "--runtime", p.command, "--isolation", "oci", "--network", "none", p.name, "/no/such"))
    with open(f"{p.work}/Containerfile", "w") as file:
        file.write("FROM localhost/box\nENV A=1\nRUN echo $A >/one && id -u >>/one\nUSER alice\nWORKDIR /tmp\nRUN id -un >two && pwd >>two\nRUN --mount=type=cache,target=/cache echo c >/cache/c && ls /cache >>two\n")
    built = buildah("bud", "--runtime", p.command, "--isolation", "oci", "--network", "none", "--no-cache", "-t", f"localhost/{p.name}", p.work)
    p.see("bud", built.status, 0)
    p.see_run("what was built", p("run", "--rm", f"localhost/{p.name}", "sh", "-c", "cat /one /tmp/two; pwd"), 0, r"1\n0\nalice\n/tmp\nc\n/tmp")
    with open(f"{p.work}/Containerfile", "w") as file:
        file.write("FROM localhost/box\nRUN exit 9\n")
    p.see("a step that fails", buildah("bud", "--runtime", p.command, "--isolation", "oci", "--network", "none", "--no-cache", p.work).status, 9)
    buildah("rmi", f"localhost/{p.name}")
    buildah("rm", p.name)


@scenario("network root")
def bridge(p):
    p.box("--network", "podman", script="echo from here >/tmp/index.html; httpd -f -p 80 -h /tmp")
    address = p.inspect("{{.NetworkSettings.IPAddress}}")
    p.see_run("one reaches the other", p("run", "--rm", "--network", "podman", "localhost/box", "sh", "-c", f"for i in 1 2 3 4 5; do wget -q -O - http://{address}/index.html && break; sleep 1; done"), 0, "from here")


# ---- running and comparing ----

def run_scenario(options, name):
    function, _ = SCENARIOS[name]

    def run(runtime, command):
        engine = Engine(options, runtime, command, name)
        try:
            function(engine)
        except Hangs as hang:
            engine.see("it ends", f"not: {hang}", "")
        except (OSError, subprocess.SubprocessError, ValueError, IndexError, json.JSONDecodeError) as error:
            engine.see("went wrong", f"{type(error).__name__}: {error}")
        finally:
            try:
                engine.clean_up()
            except Hangs as hang:
                engine.see("it can be removed", f"not: {hang}", "")
        return engine

    engines = []
    for runtime, command in options.runtimes.items():
        engine = run(runtime, command)
        for _ in range(PEER_REPEATS):  # a peer that fails by chance would leave nothing to compare
            if runtime == OURS or not engine.unexpected:
                break
            engine = run(runtime, command)
        engines.append(engine)
    return engines


def wanted(options):
    for name in chosen(list(SCENARIOS), options.only):
        needs = SCENARIOS[name][1]
        if options.rootless and not needs & {"both", "rootless"} or not options.rootless and "rootless" in needs:
            continue
        missing = ""
        if "v1" in needs and options.cgroups != "v1":
            missing = "cgroup v1 holds no controllers here"
        if "v2" in needs and options.cgroups != "v2":
            missing = "the controllers of this machine are in cgroup v1"
        if "network" in needs and options.cgroups != "v2":
            missing = "the network of this machine is left alone"
        if "systemd" in needs and not options.systemd:
            missing = "there is no tree with systemd"
        if "buildah" in needs and subprocess.run(["sh", "-c", "command -v buildah"], capture_output=True).returncode:
            missing = "buildah is missing"
        yield name, missing


def read_explained(peer):
    """The explained differences from this peer: {scenario: (labels, why, whether they depend on the peer's version)}."""
    out = {}
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "podman_explained.txt")) as file:
        for line in file:
            if line.startswith("#") or not line.strip():
                continue
            place, why = line.strip().split(" :: ", 1)
            name, scenario, labels = place.split(": ", 2)
            if name.lstrip("?") == peer:
                out[scenario] = ({label.strip() for label in labels.split(",")}, why, name.startswith("?"))
    return out


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--work", required=True)
    arguments.add_argument("--cgroups", required=True)
    arguments.add_argument("--rootless", default="")
    arguments.add_argument("--systemd", default="")
    arguments.add_argument("--jobs", type=int, default=1)
    arguments.add_argument("--only", default="*")
    arguments.add_argument("runtimes", nargs="+")
    options = arguments.parse_args()
    options.runtimes = dict(each.split("=", 1) for each in options.runtimes)
    peers = [name for name in options.runtimes if name != OURS]
    options.prefix = []
    if options.rootless:
        user = options.rootless
        uid = subprocess.run(["id", "-u", user], capture_output=True, text=True, check=True).stdout.strip()
        options.prefix = ["runuser", "-u", user, "--", "env", f"HOME=/home/{user}", f"XDG_RUNTIME_DIR=/run/user/{uid}",
                          f"DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/{uid}/bus"]
    prefix = "rootless " if options.rootless else ""
    count = failures = begun = 0
    things = dict.fromkeys(peers, 0)
    explained = {peer: read_explained(peer) for peer in peers}
    lock = threading.Lock()
    progress = Progress("podman-rootless" if options.rootless else "podman")

    def judge(name, peer, ours):
        """Prints whether ours does what this peer does. Returns that; None if it is skipped."""
        nonlocal count
        count += 1
        title = f"{count} - podman {prefix}{name}, as with {peer.runtime}"
        if peer.unexpected:
            print(f"ok {title} # SKIP {peer.runtime} itself: {'; '.join(peer.unexpected)[:900]}", flush=True)
            for line in peer.failed_commands():
                print(f"#   {line[-400:]!r}")
            return None
        differ = differences(peer, ours) if ours else []
        things[peer.runtime] += len(peer.notes)
        labels, why, may_be_absent = explained[peer.runtime].get(name, (set(), "", True))
        if differ and set(differ) == labels:
            print(f"ok {title} ({len(peer.notes)} things seen; explained: {why})", flush=True)
        elif not differ and not may_be_absent:
            print(f"not ok {title}: podman_explained.txt has a difference that there is not: {why}", flush=True)
            return False
        elif not differ:
            print(f"ok {title} ({len(peer.notes)} things seen)", flush=True)
        elif any("is not compatible with NoCgroups" in line for line in ours.log):
            print(f"ok {title} # SKIP this podman knows by a runtime's name whether it may leave cgroups out", flush=True)
            return None
        else:
            print_differences(title, peer.runtime, peer, ours, differ)
            return False
        return True

    def judge_all(name, engines):
        nonlocal failures
        by_name = {engine.runtime: engine for engine in engines}
        with lock:
            same = [judge(name, by_name[peer], by_name.get(OURS)) for peer in peers]
            failures += same.count(False)
            if all(same):
                progress.has_passed(name)

    missing = dict(wanted(options))
    possible = [name for name in missing if not missing[name]]
    names = progress.left(possible)

    def run_in_time(name):
        return run_scenario(options, name) if progress.time_is_left() else None

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for name, peer in itertools.product((name for name in missing if missing[name]), peers):
            count += 1
            print(f"ok {count} - podman {prefix}{name}, as with {peer} # SKIP {missing[name]}")
        alone = [name for name in names if "alone" in SCENARIOS[name][1]]
        for those in [[name] for name in alone] + [[name for name in names if name not in alone]]:
            running = {pool.submit(run_in_time, name): name for name in those}
            for future in concurrent.futures.as_completed(running):
                if future.result() is not None:
                    begun += 1
                    judge_all(running[future], future.result())
    if begun < len(possible):
        print(f"measured: {begun} of {len(possible)} scenarios in this run, {len(names) - begun} are left")
    elif options.only == "*" and len(names) == len(possible) and not options.rootless:
        for peer in peers:
            count += 1
            enough = things[peer] >= THINGS_MIN
            failures += not enough
            print(f"{'ok' if enough else 'not ok'} {count} - podman: {things[peer]} things were compared with {peer}, of at least {THINGS_MIN}")
    print(f"1..{count}")
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
