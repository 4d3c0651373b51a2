#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Many writes at once on an SD card that needs 200 ms for each (slow_card.cc): as many creates of Services, of pods in a namespace
# with a quota, and of ConfigMaps, share the time of a few commits, with and without an audit log on the same card; reads do not
# wait for it.
. "$(dirname "$0")/lib.sh"
quick && { count=16 ms=50; } || { count=64 ms=200; }
cat >"$T/policy.yaml" <<'Y'
{apiVersion: audit.k8s.io/v1, kind: Policy, omitStages: [RequestReceived], rules: [{level: None, verbs: [get, list, watch]}, {level: RequestResponse}]}
Y
unit_environment="$unit_environment LD_PRELOAD=$bin/tests/bench/libslow_card.so SLOW_CARD=$T/card"
start_machine
in_ns "$driver" at-once "$T/etc/admin.kubeconfig" "$T/card" "$ms" "$count" plain || failures=1
stop_daemon
printf 'auditPolicyFile: %s\nauditLogPath: %s\n' "$T/policy.yaml" "$T/audit.log" >>"$T/etc/config.yaml"
start_daemon
in_ns "$driver" at-once "$T/etc/admin.kubeconfig" "$T/card" "$ms" "$count" audited || failures=1
grep -q '"resource":"services"' "$T/audit.log" || { echo "not ok - nothing was audited"; failures=1; }
