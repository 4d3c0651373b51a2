#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Latencies for clients: ConfigMaps created one after another, each on disk before the response; and a list of many pods.
. "$(dirname "$0")/lib.sh"
start_machine
quick && { objects=100 pods=100; } || { objects=1000 pods=1000; }
in_ns "$driver" objects "$T/etc/admin.kubeconfig" "$objects" || failures=1
in_ns "$driver" list "$T/etc/admin.kubeconfig" "$pods" || failures=1
