# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Functions for tests/vm/board.sh, beside those of lib.sh.
store=/var/lib/coracle

# small_disk MEGABYTES: puts the daemon's state on a file system of its own, before its first start.
small_disk() {
  mkdir -p $store && modprobe loop && truncate -s "${1}M" /root/state.ext4 && mke2fs -q -F -t ext4 /root/state.ext4 && mount -o loop /root/state.ext4 $store && chmod 700 $store
}
fill_disk() { dd if=/dev/zero of=$store/filler bs=64k >/dev/null 2>&1; dd if=/dev/zero of=$store/filler2 bs=1 count=8192 >/dev/null 2>&1; ! touch "$store/grows" 2>/dev/null || echo x >"$store/grows" 2>/dev/null || true; }
disk_is_full() { ! head -c 65536 /dev/zero >"$store/more" 2>/dev/null; local full=$?; rm -f "$store/more"; return $full; }
empty_disk() { rm -f $store/filler $store/filler2 $store/grows; }

# pod NAME SPEC CONTAINER COMMAND: SPEC and CONTAINER are members of the pod's spec and of its one container, each with a comma at
# its end.
pod() {
  cat <<Y
---
{apiVersion: v1, kind: Pod, metadata: {name: $1}, spec: {$2 containers: [{name: c, image: localhost/busybox:latest, imagePullPolicy: Never, $3 command: [sh, -c, '$4']}]}}
Y
}
condition() { coraclectl get nodes -o "jsonpath={.items[0].status.conditions[?(@.type==\"$1\")].status}"; }
restarts() { of_pod "$1" '{.status.containerStatuses[0].restartCount}'; }
running_pods() { coraclectl get pods --no-headers 2>/dev/null | grep -cw Running; }
used() { awk '$1 == "usage_usec" {print $2}' "$1/cpu.stat"; }
# shares CGROUP...: the share of each in the processor time that they use together in a minute, in thousandths; one line each.
shares() {
  local group before=() got=() all=0 i=0
  sleep 5
  for group in "$@"; do before+=("$(used "$group")"); done
  sleep 60
  for group in "$@"; do got+=($(($(used "$group") - before[i]))); all=$((all + got[i])); i=$((i + 1)); done
  for i in "${got[@]}"; do echo $((i * 1000 / all)); done
}
# The shares of two loops each in cgroups of classes, pods and containers, with the kubelet's weights for a Guaranteed pod of
# 500m, Burstable ones of 300m and 600m, and a BestEffort one.
weight() {  # weight MILLICORES: as the kubelet. Source: KEP-2254, opencontainers/cgroups ConvertCPUSharesToCgroupV2Value
  awk -v s=$(($1 * 1024 / 1000)) 'BEGIN {if (s <= 2) {print 1; exit} l = log(s) / log(2); w = exp(((l * l + 125 * l) / 612 - 7 / 34) * log(10)); print int(w) < w ? int(w) + 1 : int(w)}'
}
reference() {
  local top=/sys/fs/cgroup/reference pod loops=()
  mkdir -p $top && echo +cpu >$top/cgroup.subtree_control
  by_hand() {  # by_hand CGROUP WEIGHT
    mkdir -p "$top/$1" && echo "$2" >"$top/$1/cpu.weight" && echo +cpu >"$top/$1/cgroup.subtree_control"
  }
  by_hand burstable "$(weight 900)"; by_hand besteffort 1
  by_hand guaranteed "$(weight 500)"; by_hand burstable/one "$(weight 300)"; by_hand burstable/two "$(weight 600)"; by_hand besteffort/none 1
  for pod in guaranteed burstable/one burstable/two besteffort/none; do
    mkdir "$top/$pod/c" && cat "$top/$pod/cpu.weight" >"$top/$pod/c/cpu.weight"
    [ $pod != guaranteed ] || echo "50000 100000" | tee $top/$pod/cpu.max >$top/$pod/c/cpu.max
    for _ in 1 2; do busybox sh -c "echo \$\$ >$top/$pod/c/cgroup.procs; while :; do :; done" >/dev/null 2>&1 & loops+=($!); done
  done
  shares $top/guaranteed $top/burstable/one $top/burstable/two $top/besteffort/none
  kill -KILL "${loops[@]}"; wait 2>/dev/null
}
# seconds_until SECONDS COMMAND...: prints the time until the command succeeds, in tenths; fails after SECONDS.
seconds_until() {
  local start=${EPOCHREALTIME/./} end=$((SECONDS + $1 * time_factor))
  shift
  until "$@" >/dev/null 2>&1; do [ "$SECONDS" -lt "$end" ] || return 1; sleep 0.1; done
  echo $(((${EPOCHREALTIME/./} - start) / 100000))
}
slower=3  # every instruction is emulated
tenths() { echo "$(($1 / 10)).$(($1 % 10)) s"; }
