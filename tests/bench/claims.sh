#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The resources that are left a minute after hundreds of claims, each with a pod, were deleted: directories, mounts, quota
# projects, and the daemon's memory. Then the time from the POST of a pod with a new claim of the default class to its first
# instruction, in turns with a pod with an emptyDir.
. "$(dirname "$0")/lib.sh"
start_machine
quick && { claims=20 at_once=10 seconds=10 count=10; } || { claims=500 at_once=50 seconds=60 count=100; }
in_ns "$driver" pods "$T/etc/admin.kubeconfig" 2 || exit 1
in_ns "$driver" claims-pass "$T/etc/admin.kubeconfig" "$daemon_pid" "$T/state" "$claims" "$at_once" "$seconds" || failures=1
in_ns "$driver" claim-start "$T/etc/admin.kubeconfig" "$T/log" "$count" || failures=1
