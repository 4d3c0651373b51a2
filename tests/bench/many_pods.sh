#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Many pods in one go: how many a second come to run, the daemon's memory meanwhile, and after they are gone.
. "$(dirname "$0")/lib.sh"
quick && { pods=20 seconds=2; } || { pods=500 seconds=60; }
EXTRA_CONFIG=$(printf 'maxPods: %s\npodCIDR: 10.244.0.0/22' $((pods + 10)))  # the defaults are 110, and 253 addresses
start_machine
in_ns "$driver" many-pods "$T/etc/admin.kubeconfig" "$daemon_pid" "$pods" "$seconds" || failures=1
