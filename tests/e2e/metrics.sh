#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The usage of pods and nodes, measured by the live daemon for real containers: metrics.k8s.io as clients see it, top with kubectl
# 1.20, 1.32, 1.36 and coraclectl, and an autoscaler that scales a busy Deployment up and an idle one down. And the size and cost of
# /metrics, of the fresh machine and at the end: the cost is processor time of the daemon, which other tests hardly change.
# for: daemon/node/meter daemon/node/metrics daemon/api/metrics daemon/controller/autoscaler/horizontal_autoscaler runtime/cgroup/stats ctl/top
. "$(dirname "$0")/lib.sh"
start_machine

# scrapes WHEN KILOBYTES MILLISECONDS: limits of the size of /metrics, and of the daemon's processor time for one answer
cpu_ticks() { sed 's/.*) //' "/proc/$daemon_pid/stat" | { read -r -a fields; echo $((fields[11] + fields[12])); }; }
scrapes() {
  local bytes before after count=100 i cost_us
  bytes=$(c get --raw /metrics | wc -c)
  before=$(cpu_ticks)
  for ((i = 0; i < count; i++)); do c get --raw /metrics; done >/dev/null
  after=$(cpu_ticks)
  # A handshake each time is not part of the bar, but of what is measured. 10 ms for a tick, and a hundred of scrapes.
  cost_us=$(((after - before) * 1000000 / $(getconf CLK_TCK) / count))
  echo "bench: $1: /metrics is $bytes bytes (bar $2 KB), and takes $cost_us us of the daemon's processor time with its connection (bar $3 ms)"
  check "$1: /metrics is not too large" [ "$bytes" -gt 10000 -a "$bytes" -le $(($2 * 1000)) ]
  check "$1: and is cheap" [ "$cost_us" -le $(($3 * 1000)) ]
}
scrapes "the fresh machine" 200 5

raw() { c get --raw "/apis/metrics.k8s.io/v1beta1/$1"; }

deployment() {  # deployment NAME COMMAND
  cat <<Y
apiVersion: apps/v1
kind: Deployment
metadata: {name: $1}
spec:
  replicas: 1
  selector: {matchLabels: {app: $1}}
  template:
    metadata: {labels: {app: $1}}
    spec:
      terminationGracePeriodSeconds: 0
      containers:
      - {name: main, image: "localhost/busybox:latest", command: [sh, -c, "$2"], resources: {requests: {cpu: 100m}}}
      - {name: beside, image: "localhost/busybox:latest", command: [sleep, "100000"], resources: {requests: {cpu: 10m}}}
Y
}
# Works in bursts while the file exists, so that the test itself gets some processor time.
work='touch /tmp/busy; while true; do if [ -e /tmp/busy ]; then i=0; while [ $i -lt 40000 ]; do i=$((i+1)); done; sleep 0.1; else sleep 1; fi; done'
deployment busy "$work" | c apply -f - >/dev/null
deployment idle "exec sleep 100000" | c apply -f - >/dev/null
check "two deployments run" c rollout status deployment/busy deployment/idle --timeout=120s
busy=$(c get pods -l app=busy -o 'jsonpath={.items[0].metadata.name}')
idle=$(c get pods -l app=idle -o 'jsonpath={.items[0].metadata.name}')

nanos() {  # nanos QUANTITY: of cpu
  case $1 in *n) echo "${1%n}" ;; *u) echo $((${1%u} * 1000)) ;; *m) echo $((${1%m} * 1000000)) ;; *) echo $(($1 * 1000000000)) ;; esac
}
cpu_of() { nanos "$(raw "namespaces/default/pods/$1" | jq -r '.containers[] | select(.name == "main") | .usage.cpu')"; }
busier() { [ "$(cpu_of "$busy")" -gt 50000000 ] && [ "$(cpu_of "$idle")" -lt 10000000 ]; }
check "a busy pod uses cpu, an idle one does not" until_true 30 busier
expect "containers are told apart" "beside main" eval "raw namespaces/default/pods/$busy | jq -r '[.containers[].name] | sort | join(\" \")'"
expect_match "memory is told" '^[1-9][0-9]*(Ki|Mi)?$' eval "raw namespaces/default/pods/$busy | jq -r '.containers[0].usage.memory'"
expect_match "and over which span" '^[1-9][0-9.]*s$|^1m0s$' eval "raw namespaces/default/pods/$busy | jq -r .window"
expect "by label" "$busy" eval "raw 'namespaces/default/pods?labelSelector=app%3Dbusy' | jq -r '.items[].metadata.name'"
expect "in all namespaces" "2" eval "raw pods | jq '.items | length'"
expect_match "the node" '^[1-9][0-9]*[num]?$' eval "raw nodes/edge | jq -r .usage.cpu"
expect_fail "a pod that is not there" 'NotFound' raw namespaces/default/pods/none
expect "discovery" "nodes:NodeMetrics:get,list pods:PodMetrics:get,list" eval "raw '' | jq -r '[.resources[] | .name + \":\" + .kind + \":\" + (.verbs | join(\",\"))] | join(\" \")'"
expect_fail "nothing can be written" 'the server does not allow this method|MethodNotAllowed' c delete podmetrics "$busy"
revision() { c get --raw '/api/v1/namespaces?limit=1' | jq -r .metadata.resourceVersion; }
asks_quietly() { local before; before=$(revision); raw pods >/dev/null; raw nodes >/dev/null; [ "$before" = "$(revision)" ]; }
check "asking writes nothing" until_true 20 asks_quietly

top() {  # top CLIENT
  local who=$1
  expect_match "$who: top pods" '^NAME +CPU\(cores\) +MEMORY\(bytes\) *$' k top pods
  expect_match "$who: top pods has the pod" "^$busy +[0-9]+m +[0-9]+Mi *$" k top pods
  expect_match "$who: top pod NAME" "^$idle +[0-9]+m +[0-9]+Mi *$" k top pod "$idle" --no-headers
  expect_match "$who: top pods --containers" "^$busy +beside +[0-9]+m +[0-9]+Mi *$" k top pods --containers
  expect_match "$who: top pods -A" "^default +$busy +[0-9]+m +[0-9]+Mi *$" k top pods -A
  expect "$who: top pods -l" "1" eval "k top pods -l app=idle --no-headers | wc -l"
  expect_match "$who: top pods --sort-by" "^$busy" eval "k top pods --sort-by=cpu --no-headers | head -n 1"
  expect_match "$who: top nodes" '^NAME +CPU\(cores\) +(CPU%|CPU\(%\)) +MEMORY\(bytes\) +(MEMORY%|MEMORY\(%\)) *$' k top nodes
  expect_match "$who: top nodes has the node" '^edge +[0-9]+m +[0-9]+% +[0-9]+Mi +[0-9]+% *$' k top nodes
  expect_match "$who: get podmetrics" '^NAME +CPU +MEMORY +WINDOW *$' k get podmetrics
  expect_match "$who: get pods are still pods" '^NAME +READY +STATUS +RESTARTS +AGE *$' k get pods
}
while read -r suite path version; do
  KUBECTL=$path top "kubectl ${version:-$suite}"
done < <("$here/fetch_kubectl.sh" "$cache/kubectl" 2>"$T/fetch.log")
top coraclectl
expect_match "coraclectl: top pods --sum" '^ +[0-9]+m +[0-9]+Mi *$' c top pods --sum

c apply -f - >/dev/null <<Y
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: busy}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: busy}
  minReplicas: 1
  maxReplicas: 3
  metrics:
  - {type: ContainerResource, containerResource: {name: cpu, container: main, target: {type: Utilization, averageUtilization: 20}}}
  behavior:
    scaleDown:
      stabilizationWindowSeconds: 0
      policies: [{type: Percent, value: 100, periodSeconds: 15}]
---
apiVersion: autoscaling/v1
kind: HorizontalPodAutoscaler
metadata: {name: idle}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: idle}
  maxReplicas: 3
  targetCPUUtilizationPercentage: 50
Y
replicas() { [ "$(c get deployment "$1" -o 'jsonpath={.spec.replicas}')" = "$2" ]; }
condition() { c get hpa "$1" -o "jsonpath={.status.conditions[?(@.type==\"$2\")].reason}"; }
check "a busy deployment is scaled up" until_true 60 replicas busy 3
soon expect_match "and an event says so" 'New size: 3; reason: cpu container resource utilization \(percentage of request\) above target' c get events
check "its pods run" c rollout status deployment/busy --timeout=120s
check "what is measured is valid" until_true 40 eval '[ "$(condition busy ScalingActive)" = ValidMetricFound ]'
check "an idle one is left alone" eval 'until_true 40 eval "[ \"\$(condition idle ScalingActive)\" = ValidMetricFound ]" && replicas idle 1'
shown() { c get hpa busy | grep -Eq '^busy +Deployment/busy +.*[0-9]+%/20% +1 +3 +3 '; }
check "get hpa shows what is measured" until_true 40 shown
for pod in $(c get pods -l app=busy -o 'jsonpath={.items[*].metadata.name}'); do c exec "$pod" -c main -- rm -f /tmp/busy; done
check "when the work is done it is scaled down" until_true 120 replicas busy 1
soon expect_match "and an event says so" 'New size: 1; reason: All metrics below target' c get events
deployment lone "exec sleep 100000" | c apply -f - >/dev/null
c apply -f - >/dev/null <<Y
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: lone}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: lone}
  maxReplicas: 3
  metrics: [{type: External, external: {metric: {name: queue}, target: {type: AverageValue, averageValue: 10}}}]
Y
check "a metric that nobody serves is told" until_true 40 eval '[ "$(condition lone ScalingActive)" = FailedGetExternalMetric ]'
soon expect_match "in Kubernetes' words" 'unable to get external metric default/queue/nil: unable to fetch metrics from external metrics API' c get events
c delete deployment busy >/dev/null
check "a target that is gone is told" until_true 40 eval '[ "$(condition busy AbleToScale)" = FailedGetScale ]'

# Each client, resource, verb and answer once more, since that is what the number of series depends on.
use_everything() {
  local resource
  for resource in $(c api-resources -o name --verbs=list); do
    c get "$resource" -A; c get "$resource" -o json; c get "$resource" none; c get "$resource" -l a=b --limit=1 -A
    in_ns timeout 1 "$coraclectl" --kubeconfig "$T/etc/admin.kubeconfig" get "$resource" -A --watch-only --request-timeout=100ms
    c delete "$resource" none; c label "$resource" none a=b; c patch "$resource" none -p '{}'; c create -f - <<<"{kind: $resource}"
  done
}
use_everything >/dev/null 2>&1
scrapes "the used machine" 500 20

echo "1..$test_number"
