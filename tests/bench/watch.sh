#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The time of an event to the last of 1, 50 and 300 watchers of one object, each on its own TLS connection.
. "$(dirname "$0")/lib.sh"
start_machine
quick && changes=10 || changes=200
in_ns "$driver" last-watcher "$T/etc/admin.kubeconfig" "$changes" || failures=1
