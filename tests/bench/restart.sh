#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The daemon is killed and started again with 1000 objects and 100 pods: the time until it is ready, and that no pod is affected.
. "$(dirname "$0")/lib.sh"
start_machine
quick && { pods=10 objects=100 rounds=1; } || { pods=100 objects=1000 rounds=5; }
others=$(pgrep -x stamp | sort)  # of other tests
in_ns "$driver" objects "$T/etc/admin.kubeconfig" "$objects" || exit 1
in_ns "$driver" pods "$T/etc/admin.kubeconfig" "$pods" || exit 1
stamps=$(comm -13 <(echo "$others") <(pgrep -x stamp | sort) | paste -sd,)
containers() {  # containers: the running ones with their start times, and their status in the API
  for pid in ${stamps//,/ }; do cut -d' ' -f1,22 "/proc/$pid/stat"; done
  k get pods -o 'jsonpath={range .items[*]}{.metadata.name} {.status.containerStatuses[0].restartCount} {.status.podIP}{"\n"}{end}'
}
containers > "$T/before"
for round in $(seq "$rounds"); do
  kill_daemon
  out=$(in_ns "$driver" ready "$T/etc/admin.kubeconfig" "$T/coracled.log" "$coracled" --config "$T/etc/config.yaml") || failures=1
  echo "$out" | grep -v '^pid '
  daemon_pid=$(awk '$1 == "pid" {print $2}' <<<"$out")
done
# A status that was not on disk yet when the daemon was killed is observed again, which takes a moment.
same() { containers > "$T/after" && cmp -s "$T/before" "$T/after"; }
until_true 20 same
check "no pod was touched" diff "$T/before" "$T/after"
