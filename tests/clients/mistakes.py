# SPDX-License-Identifier: Apache-2.0
# Runs the wrong invocations of mistakes.txt: mistakes.py CORACLECTL KUBECTL KUBECONFIG TABLE. Each must exit with 1, say why in few
# lines on standard error, and leave the objects as they are; kubectl ("": there is none) must find them wrong too. TAP.
import os, shlex, subprocess, sys, tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
from tap import told

LINES_MAX, LINE_BYTES_MAX = 8, 700
BEGINNINGS = (
    "error: ",
    "Error",
    "The ",
    "Unable to connect to the server",
    "You must specify the type of resource",
    "resource mapping not found",
    "the server doesn't have a resource type",
    "Warning: ",
)


def read_table(path):
    parts, files, name = {}, {}, None
    for line in open(path):
        if line.startswith("file: "):
            name = line[6:].strip()
            files[name] = ""
        elif name:
            files[name] += line
        elif line.startswith("= "):
            lines = parts.setdefault(line[2:].strip(), [])
        elif line.strip() and not line.startswith("#"):
            lines.append(line.rstrip("\n"))
    return parts, files


def run(program, kubeconfig, line):
    words = shlex.split(line)
    if "--kubeconfig" not in words:
        words = ["--kubeconfig", kubeconfig] + words
    return subprocess.run([program] + words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)


def objects(program, kubeconfig):
    """What commands change of objects, without what the daemon itself writes."""
    fields = ["kind"] + ["metadata." + name for name in ("namespace", "name", "labels", "annotations", "deletionTimestamp")]
    fields += ["spec", "data", "rules", "roleRef", "value"]
    template = "{range .items[*]}%s{\"\\n\"}{end}" % " ".join("{.%s}" % field for field in fields)
    seen = []
    for kinds in (
        "pods,deployments,configmaps,secrets,services,serviceaccounts,roles,rolebindings,resourcequotas,jobs,cronjobs,ingresses",
        "namespaces,nodes,clusterroles,clusterrolebindings,priorityclasses,poddisruptionbudgets,horizontalpodautoscalers",
    ):
        done = run(program, kubeconfig, f"get {kinds} -A -o 'jsonpath={template}'")
        assert done.returncode == 0, done.stderr
        seen += done.stdout.splitlines()
    return sorted(seen)


def faults(done):
    lines = done.stderr.strip().splitlines()
    if done.returncode != 1:
        yield f"exit code {done.returncode}"
    if not lines:
        yield "it says nothing on standard error"
    elif len(lines) > LINES_MAX or max(map(len, lines)) > LINE_BYTES_MAX:
        yield f"it says too much: {len(lines)} lines"
    elif not lines[0].startswith(BEGINNINGS):
        yield "it does not begin as an error"


def main():
    coraclectl, kubectl, kubeconfig, table = sys.argv[1:]
    parts, files = read_table(table)
    told(sum(map(len, parts.values())) >= 200, "there are at least 200")
    os.environ.pop("KUBECONFIG", None)
    with tempfile.TemporaryDirectory() as directory:
        os.chdir(directory)
        os.environ["HOME"] = directory
        for name, text in files.items():
            with open(name, "w") as file:
                file.write(text)
        before = objects(coraclectl, kubeconfig)
        for title, lines in parts.items():
            found = []
            for line in lines:
                is_strict, line = line.startswith("! "), line.removeprefix("! ")
                done = run(coraclectl, kubeconfig, line)
                found += [f"{line}: {fault}: {(done.stderr or done.stdout).strip()[:300]!r}" for fault in faults(done)]
                if kubectl and not is_strict and run(kubectl, kubeconfig, line).returncode == 0:
                    found.append(f"{line}: kubectl finds nothing wrong")
            told(not found, f"{title}: {len(lines)} mistakes", *found)
        after = objects(coraclectl, kubeconfig)
        told(before == after, "no object has changed", *sorted(set(before) ^ set(after)))


main()
