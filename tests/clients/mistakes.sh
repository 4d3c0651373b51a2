#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Wrong invocations of coraclectl, and of kubectl where it can be had: mistyped kinds, flags, values, files and kubeconfigs. See
# mistakes.py.
# for: ctl store/client
. "$(dirname "$0")/../e2e/lib.sh"
source=$(cd "$(dirname "$0")" && pwd)
kubectl=$("$source/../e2e/fetch_kubectl.sh" "$cache/kubectl" 2>/dev/null | awk '$1 == "sid" {print $2}')
start_machine
c apply -f - >/dev/null <<'Y' || exit 1
{apiVersion: v1, kind: Pod, metadata: {name: talker, labels: {app: talker}}, spec: {containers: [{name: main,
 image: "localhost/busybox:latest", imagePullPolicy: Never, command: [sleep, "100000"]}]}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {a: "1"}}
---
{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {selector: {app: web}, ports: [{port: 80}]}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 0, selector: {matchLabels: {app: web}},
 template: {metadata: {labels: {app: web}}, spec: {containers: [{name: main, image: "localhost/busybox:latest"}]}}}}
Y
c wait --for=condition=Ready pod/talker --timeout=60s >/dev/null || exit 1
in_ns python3 "$source/mistakes.py" "$coraclectl" "$kubectl" "$T/etc/admin.kubeconfig" "$source/mistakes.txt" || failures=1
