#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What one change costs the daemon among thousands of objects, beside the same change among a hundred: the request, and the
# processor time of the daemon with all that follows from the change in it (controllers, service rules).
. "$(dirname "$0")/lib.sh"
start_machine
quick && { count=20 services=300 objects=600; } || { count=100 services=5000 objects=10000; }
in_ns "$driver" growth "$T/etc/admin.kubeconfig" "$daemon_pid" "$count" "$services" "$objects" || failures=1
