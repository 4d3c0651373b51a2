#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The daemon is killed with SIGKILL, many times, while pods run, exit, crash and log: no container is disturbed, and no exit code,
# log line or acknowledged object is lost. Then it is stopped properly, and everything continues.
# for: daemon/node daemon/daemon daemon/main runtime/pause runtime/container store/engine
. "$(dirname "$0")/lib.sh"
start_machine
. "$here/../progress.sh"
tries=${CORACLE_KILLS:-50} tries_before=$(done_before kills)
[ "$tries_before" -lt "$tries" ] || tries_before=0  # all steps were done: start again

k apply -f - >/dev/null <<Y
apiVersion: v1
kind: Pod
metadata: {name: steady}
spec:
  terminationGracePeriodSeconds: 0
  containers: [{name: main, image: "localhost/busybox:latest", command: [sh, -c, "i=0; while :; do echo line \$i; i=\$((i+1)); usleep 20000; done"]}]
---
apiVersion: v1
kind: Pod
metadata: {name: quiet}
spec:
  terminationGracePeriodSeconds: 0
  containers: [{name: main, image: "localhost/busybox:latest", command: [sleep, "100000"]}]
Y
check "the pods run" until_true 20 eval "[ \"\$(k get pods -o 'jsonpath={.items[*].status.phase}')\" = 'Running Running' ]"
ids() { k get pods steady quiet -o 'jsonpath={.items[*].status.containerStatuses[0].containerID}'; }
before=$(ids)

acknowledged=0 runs=0
killed=0
for try in $(seq $((tries - tries_before))); do
  time_is_left || break
  killed=$((killed + 1))
  code=$((try % 200 + 1))
  if k apply -f - >/dev/null 2>&1 <<Y
apiVersion: v1
kind: Pod
metadata: {name: run-$try}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 0
  containers: [{name: main, image: "localhost/busybox:latest", command: [sh, -c, "echo begin; usleep $((RANDOM % 300))000; echo end; exit $code"]}]
Y
  then runs=$((runs + 1)); touch "$T/run-$try"; fi
  if k create configmap "ack-$try" --from-literal=n="$try" >/dev/null 2>&1; then acknowledged=$((acknowledged + 1)); touch "$T/ack-$try"; fi
  read -r -t "0.$((RANDOM % 10))$((RANDOM % 10))" <> <(:) || true
  kill_daemon
  read -r -t "0.$((RANDOM % 3))$((RANDOM % 10))" <> <(:) || true
  launch
  until_true 20 ready || { not_ok "ready again after kill $try"; tail -n 20 "$T/coracled.log"; break; }
done
keep_count kills $((tries_before + killed))
[ "$killed" = "$tries" ] || echo "measured: killed $killed times, $((tries_before + killed)) of $tries with earlier runs"
ok "killed $killed times; $runs pods and $acknowledged ConfigMaps were acknowledged in between"

lost=0
for file in "$T"/ack-*; do
  try=${file##*-}
  [ "$(k get configmap "ack-$try" -o 'jsonpath={.data.n}' 2>&1)" = "$try" ] || { lost=$((lost + 1)); echo "# lost: ack-$try"; }
done
expect "no acknowledged object is lost" 0 echo "$lost"
all_ended() { local all; all=$(k get pods --no-headers) && [ "$(grep -E '^run-' <<<"$all" | grep -cvE 'Completed|Error')" = 0 ]; }
check "every short pod has ended" until_true 60 all_ended
wrong=0
for file in "$T"/run-*; do
  try=${file##*-} code=$((${file##*-} % 200 + 1))
  got=$(k get pod "run-$try" -o 'jsonpath={.status.containerStatuses[0].state.terminated.exitCode} {.status.containerStatuses[0].restartCount}' 2>&1)
  [ "$got" = "$code 0" ] || {
    wrong=$((wrong + 1))
    echo "# run-$try: want exit code and restarts '$code 0', got '$got'"
    echo "# run-$try: $(k get pod "run-$try" -o 'jsonpath={.status.containerStatuses[0].state.terminated}' 2>&1)"
  }
  got=$(k logs "run-$try" 2>&1 | tr '\n' ' ')
  [ "$got" = "begin end " ] || { wrong=$((wrong + 1)); echo "# run-$try: log is '$got'"; }
done
expect "no exit code, restart or log line is wrong" 0 echo "$wrong"
expect "no running container was touched" "$before" ids
k logs steady > "$T/steady.log"
check "the log has every line, once, in order" awk -v bad=0 '{if ($2 != NR - 1) bad = 1} END {exit bad || NR < 50}' "$T/steady.log"

stop_daemon
start_daemon
expect "stopping the daemon stops no pod" "$before" ids

# All pods are ended without a daemon: their resources are released, and the next daemon starts them again.
k apply -f - >/dev/null <<Y
apiVersion: v1
kind: Pod
metadata: {name: mounts}
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - {name: one, image: "localhost/busybox:latest", command: [sleep, "10$$"], volumeMounts: [{name: memory, mountPath: /memory}]}
  - {name: two, image: "localhost/busybox:latest", command: [sleep, "10$$"]}
  volumes: [{name: memory, emptyDir: {medium: Memory}}]
Y
running() { [ "$(k get pods steady quiet mounts -o 'jsonpath={.items[*].status.phase}')" = 'Running Running Running' ]; }
ours() {  # ours: mounts, links and processes that exist because of pods
  awk -v below="$T/" 'index($5, below) == 1 {print "mount", $5}' /proc/self/mountinfo
  ip -n "$ns" -o link 2>/dev/null | grep -o coracle  # it complains about stale files in /run/netns
  pgrep -f "^sleep 10$$\$"
}
check "a pod with mounts of its own runs" until_true 20 running
stop_daemon
check "--remove-pods ends them all" in_ns "$coracled" --config "$T/etc/config.yaml" --remove-pods
soon expect "… and leaves no mount, link or process" "" ours
start_daemon
check "they come back with the daemon" until_true 30 running

# ---- shutdown of the machine: pods end gracefully ----

k delete pod steady quiet mounts --wait=false >/dev/null
k apply -f - >/dev/null <<Y
apiVersion: v1
kind: Pod
metadata: {name: ordered}
spec:
  initContainers:
  - name: sidecar
    image: "localhost/busybox:latest"
    restartPolicy: Always
    command: [sh, -c, 'trap "echo sidecar >>/seen/order; exit 3" TERM; while :; do sleep 0.1; done']
    volumeMounts: [{name: seen, mountPath: /seen}]
  containers:
  - name: main
    image: "localhost/busybox:latest"
    command: [sh, -c, 'trap "echo main >>/seen/order; exit 7" USR1; echo up >/seen/up; while :; do sleep 0.1; done']
    lifecycle: {stopSignal: SIGUSR1, preStop: {exec: {command: [sh, -c, 'echo hook >>/seen/order']}}}
    volumeMounts: [{name: seen, mountPath: /seen}]
  os: {name: linux}
  volumes: [{name: seen, hostPath: {path: "$T/seen", type: DirectoryOrCreate}}]
---
apiVersion: v1
kind: Pod
metadata: {name: done}
spec:
  restartPolicy: Never
  containers: [{name: main, image: "localhost/busybox:latest", command: [sh, -c, 'trap "exit 0" TERM; touch /seen/done; while :; do sleep 0.1; done'], volumeMounts: [{name: seen, mountPath: /seen}]}]
  volumes: [{name: seen, hostPath: {path: "$T/seen", type: DirectoryOrCreate}}]
---
apiVersion: v1
kind: Pod
metadata: {name: deaf}
spec:
  terminationGracePeriodSeconds: 600
  containers: [{name: main, image: "localhost/busybox:latest", command: [sh, -c, 'while :; do sleep 1000; done']}]
Y
check "three pods run" until_true 20 eval "[ -e $T/seen/up ] && [ -e $T/seen/done ] && [ \"\$(k get pods ordered done deaf -o 'jsonpath={.items[*].status.phase}')\" = 'Running Running Running' ]"
refused() { ! in_ns "$coracled" --config "$T/etc/config.yaml" --end-pods >"$T/end.log" 2>&1 && grep -q 'is coracled still running' "$T/end.log"; }
check "--end-pods leaves a running daemon's pods alone, and says so" refused
stop_daemon
check "--end-pods ends them, and waits for none that cannot hear its signal" in_ns timeout 120 "$coracled" --config "$T/etc/config.yaml" --end-pods
expect "… hook, main, sidecar: in this order" "hook main sidecar" eval "tr '\n' ' ' <$T/seen/order | sed 's/ \$//'"
soon expect "… and leaves no mount, link or process" "" ours
start_daemon
check "what may run again does" until_true 30 eval "[ \"\$(k get pods ordered deaf -o 'jsonpath={.items[*].status.phase}')\" = 'Running Running' ] && [ \"\$(k get pod ordered -o 'jsonpath={.status.containerStatuses[0].restartCount}')\" = 1 ]"
expect "… and its exit code is known" 7 k get pod ordered -o 'jsonpath={.status.containerStatuses[0].lastState.terminated.exitCode}'
expect "what was done is done" "Succeeded 0" k get pod done -o 'jsonpath={.status.phase} {.status.containerStatuses[0].state.terminated.exitCode}'
k delete pod ordered done deaf --grace-period=0 --force --wait=false >/dev/null 2>&1
