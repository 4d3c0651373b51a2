#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `coraclectl get pods` compared with Debian's newest kubectl, in turns: the time from the start of the program to its end, with
# the discovery cache of each filled before. The median, its ratio to kubectl's, and the size of the stripped program have limits.
. "$(dirname "$0")/lib.sh"
quick && rounds=5 || rounds=200
limit_ms=8 limit_ratio=0.1 limit_bytes=6000000
kubectl=$("$(dirname "$0")/../e2e/fetch_kubectl.sh" "$cache/kubectl" 2>/dev/null | awk '$1 == "sid" {print $2}')
[ -n "$kubectl" ] || skip_all "Debian sid's kubectl cannot be had"
start_machine
in_ns "$driver" pods "$T/etc/admin.kubeconfig" 3 || exit 1
strip -o "$T/stripped" "$coraclectl"

in_ns env HOME="$T" KUBECONFIG="$T/etc/admin.kubeconfig" python3 - "$rounds" "$T/times" "$T/stripped" "$kubectl" <<'P' || exit 1
import os, statistics, sys, time

rounds, results, programs = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
silent = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]

def run(program):
    begun = time.monotonic_ns()
    pid = os.posix_spawn(program, [program, "get", "pods"], os.environ, file_actions=silent)
    status = os.waitpid(pid, 0)[1]
    if status:
        sys.exit(f"{program} get pods: status {status}")
    return (time.monotonic_ns() - begun) / 1e6

for program in programs * 2:
    run(program)
times = [[run(program) for program in programs] for _ in range(rounds)]
ours, theirs = (statistics.median(each) for each in zip(*times))
ratio = statistics.median(own / other for own, other in times)
with open(results, "w") as file:
    print(f"{ours:.2f} {theirs:.2f} {ratio:.3f}", file=file)
P
read -r ours theirs ratio <"$T/times"
bytes=$(stat -c %s "$T/stripped")
echo "bench: coraclectl get pods: $ours ms (limit $limit_ms), kubectl $theirs ms, $ratio of it (limit $limit_ratio); $bytes bytes (limit $limit_bytes)"
at_most() { awk -v a="$1" -v b="$2" 'BEGIN {exit !(a <= b)}'; }
check "get pods takes at most $limit_ms ms" at_most "$ours" $limit_ms
check "get pods takes at most $limit_ratio of kubectl's time" at_most "$ratio" $limit_ratio
check "the program has at most $limit_bytes bytes" at_most "$bytes" $limit_bytes
