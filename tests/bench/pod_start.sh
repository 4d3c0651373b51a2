#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The time from the POST of a pod to its container's first instruction, through the API, the disk, the scheduler, the network and
# pause, in turns with `runc run` of the same root file system, command and seccomp profile; then the recovery of killed, deleted
# and crashed containers.
. "$(dirname "$0")/lib.sh"
start_machine
make_bundle || { echo "Bail out! no bundle for runc"; exit 1; }
quick && count=10 || count=200
in_ns "$driver" pod-start "$T/etc/admin.kubeconfig" "$T/log" "$T/bundle" "$count" || failures=1
in_ns "$driver" killed "$T/etc/admin.kubeconfig" "$T/log" $((count / 5)) || failures=1
in_ns "$driver" replaced "$T/etc/admin.kubeconfig" $((count / 5)) || failures=1
in_ns "$driver" crash "$T/etc/admin.kubeconfig" "$T/log" "$T/bundle" $((count / 5)) || failures=1
