#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The memory that work leaves in the daemon a minute later, and the memory for clients that never read.
. "$(dirname "$0")/lib.sh"
start_machine
quick && { objects=500 pods=10 seconds=40 watchers=20; } || { objects=10000 pods=200 seconds=60 watchers=100; }
in_ns "$driver" pods "$T/etc/admin.kubeconfig" 2 || exit 1
in_ns "$driver" comes-back "$T/etc/admin.kubeconfig" "$daemon_pid" "$objects" "$pods" "$seconds" || failures=1
in_ns "$driver" stalled "$T/etc/admin.kubeconfig" "$daemon_pid" "$watchers" || failures=1
