#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What a request costs the daemon, counted: allocations, their bytes and system calls for a GET, an item of a LIST, a create, an
# update, patches of each type, and an event for one watch. The GET is also made by a service account with a role of its own: its
# rights are looked up.
. "$(dirname "$0")/lib.sh"
command -v strace >/dev/null || skip_all "strace is missing"
quick && count=100 || count=2000
unit_environment="$unit_environment LD_PRELOAD=$bin/tests/bench/liballocations.so ALLOCATIONS=$T/allocations"
start_machine
c create serviceaccount bench >/dev/null || exit 1
c create role bench --verb=get,list,watch --resource=pods >/dev/null || exit 1
c create rolebinding bench --role=bench --serviceaccount=default:bench >/dev/null || exit 1
token=$(c create token bench --duration=1h) || exit 1
in_ns "$driver" request-costs "$T/etc/admin.kubeconfig" "$token" "$T/allocations" "$daemon_pid" "$T/strace" "$count" || failures=1
