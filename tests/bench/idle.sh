#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The cost of 100 idle pods: memory of the daemon and of the other processes, CPU, bytes written.
. "$(dirname "$0")/lib.sh"
start_machine
quick && { count=10 seconds=10 settle=2; } || { count=100 seconds=300 settle=30; }
kernel=$("$driver" kernel-kib)
others=$(pgrep -x coracle-pause | sort)  # of other pods
in_ns "$driver" pods "$T/etc/admin.kubeconfig" "$count" || exit 1
read -r -t "$settle" <> <(:) || true
pauses=$(comm -13 <(echo "$others") <(pgrep -x coracle-pause | sort))
"$driver" idle "$seconds" "$kernel" "$daemon_pid" $pauses || failures=1
