#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Many pods in one go: how many a second come to run, the daemon's memory meanwhile, and after they are gone. A node takes at most
# 250 (maxPods).
. "$(dirname "$0")/lib.sh"
quick && { pods=20 seconds=2; } || { pods=240 seconds=60; }
EXTRA_CONFIG="maxPods: $((pods + 10))"  # the default is 110
start_machine
in_ns "$driver" many-pods "$T/etc/admin.kubeconfig" "$daemon_pid" "$pods" "$seconds" || failures=1
