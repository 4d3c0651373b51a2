#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The cost of a token compared with a certificate: GETs of a pod of 4 KB over 8 connections, with the administrator's certificate
# and with the token of a service account with the same rights, in turns; the median of the rounds' ratios.
. "$(dirname "$0")/lib.sh"
start_machine
quick && { rounds=2 seconds=1; } || { rounds=9 seconds=3; }
c create serviceaccount bench >/dev/null || exit 1
c apply -f - >/dev/null <<'Y' || exit 1
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: bench},
 roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin},
 subjects: [{kind: ServiceAccount, name: bench, namespace: default}]}
Y
token=$(c create token bench --duration=1h) || exit 1
in_ns "$driver" token "$T/etc/admin.kubeconfig" "$token" "$daemon_pid" "$rounds" "$seconds" || failures=1
