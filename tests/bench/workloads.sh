#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The cost of idle workloads: 200 Deployments with a pod each, 50 CronJobs that are not due, 20 HorizontalPodAutoscalers that sync
# every 15 seconds.
. "$(dirname "$0")/lib.sh"
EXTRA_CONFIG="maxPods: 250"  # the default is 110
start_machine
quick && { deployments=10 crons=5 scalers=2 seconds=20 settle=20; } || { deployments=200 crons=50 scalers=20 seconds=300 settle=90; }
others=$(pgrep -x coracle-pause | sort)  # of other pods

objects() {
  local i
  for ((i = 1; i <= deployments; i++)); do
    cat <<Y
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: web-$i}, spec: {selector: {matchLabels: {app: web-$i}}, template: {metadata: {labels: {app: web-$i}},
  spec: {terminationGracePeriodSeconds: 0, containers: [{name: c, image: localhost/stamp:latest, command: [/stamp, stay], resources: {requests: {cpu: 1m}}}]}}}}
Y
  done
  for ((i = 1; i <= crons; i++)); do
    cat <<Y
---
{apiVersion: batch/v1, kind: CronJob, metadata: {name: yearly-$i}, spec: {schedule: "0 0 1 1 *", jobTemplate: {spec: {template: {spec: {restartPolicy: Never,
  containers: [{name: c, image: localhost/stamp:latest, command: [/stamp, "0"]}]}}}}}}
Y
  done
  for ((i = 1; i <= scalers; i++)); do
    cat <<Y
---
{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: web-$i}, spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web-$i},
  minReplicas: 1, maxReplicas: 3, metrics: [{type: Resource, resource: {name: cpu, target: {type: AverageValue, averageValue: 500m}}}]}}
Y
  done
}
objects >"$T/objects.yaml"
c apply -f "$T/objects.yaml" >"$T/applied" || { echo "Bail out! $(tail -n 3 "$T/applied")"; exit 1; }
available() { [ "$(c get deployments -o 'jsonpath={range .items[*]}{.status.availableReplicas}{"\n"}{end}' | grep -cx 1)" = "$deployments" ]; }
check "$deployments Deployments are available" until_true 120 available
active() { [ "$(c get hpa -o 'jsonpath={range .items[*]}{.status.conditions[?(@.type=="ScalingActive")].status}{"\n"}{end}' | grep -cx True)" = "$scalers" ]; }
check "$scalers autoscalers know what theirs use" until_true 60 active
read -r -t "$settle" <> <(:) || true
pauses=$(comm -13 <(echo "$others") <(pgrep -x coracle-pause | sort))
"$driver" quiet "$seconds" "$daemon_pid" $pauses || failures=1
echo "1..$test_number"
