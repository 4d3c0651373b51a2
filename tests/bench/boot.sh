#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The start of a machine, as far as it is ours: the pods have ended in good order (`systemctl stop coracle-pods`), and the daemon is
# started. From its first instruction to the first instruction of the last of 20 pods, ten times; the median has a limit.
. "$(dirname "$0")/lib.sh"
start_machine
quick && { pods=5 rounds=2; } || { pods=20 rounds=10; }
limit_ms=400
in_ns "$driver" pods "$T/etc/admin.kubeconfig" "$pods" || exit 1

launch_timed() {  # as launch, and $T/begun gets the time (CLOCK_MONOTONIC, as the pods' stamps) at which the daemon begins
  in_main_shell
  nsenter --net="/run/netns/$ns" -- env $unit_environment python3 -c 'import os, sys, time
with open(sys.argv[1], "w") as file: file.write(str(time.monotonic_ns()))
os.execv(sys.argv[2], sys.argv[2:])' "$T/begun" "$coracled" --config "$T/etc/config.yaml" >>"$T/coracled.log" 2>&1 &
  daemon_pid=$!
}
stamps() {  # the last stamp of each pod
  local directory
  for directory in "$T"/log/default_*/c; do tail -n 1 "$(ls -v "$directory"/*.log | tail -n 1)" | awk '{print $NF}'; done
}
all_have_begun() { [ -s "$T/begun" ] && [ "$(stamps | awk -v begun="$(cat "$T/begun")" '$1 > begun' | wc -l)" -ge "$pods" ]; }

: >"$T/times"
for round in $(seq "$rounds"); do
  stop_daemon
  in_ns "$coracled" --config "$T/etc/config.yaml" --end-pods >>"$T/coracled.log" 2>&1 || { not_ok "round $round: the pods end"; break; }
  rm -f "$T/begun"
  launch_timed
  if ! until_true 60 all_have_begun; then not_ok "round $round: all pods run again"; tail -n 20 "$T/coracled.log" | sed 's/^/  | /'; break; fi
  stamps | sort -n | tail -n 1 | awk -v begun="$(cat "$T/begun")" '{printf "%d\n", ($1 - begun) / 1000000}' >>"$T/times"
done
median=$(sort -n "$T/times" | awk '{line[NR] = $1} END {print line[int((NR + 1) / 2)]}')
echo "bench: boot: from the daemon's start to $pods pods running: median $median ms of $(sort -n "$T/times" | tr '\n' ' ')"
check "the median is at most $limit_ms ms" test "${median:-$((limit_ms + 1))}" -le $limit_ms
