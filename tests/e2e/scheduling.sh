#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Scheduling with the running daemon: the [sig-scheduling] lines of Kubernetes' conformance suite, each under its name, and the
# extensions of this scheduler. Capacity is an extended resource that the node gets through the API, as in that suite.
# for: daemon/scheduler daemon/placement daemon/registry/binding
. "$(dirname "$0")/lib.sh"
start_machine

res=example.com/fakecpu
phase() { k get pod "$1" -o 'jsonpath={.status.phase}'; }
running() { [ "$(phase "$1")" = Running ]; }
node_of() { k get pod "$1" -o 'jsonpath={.spec.nodeName}'; }
on_edge() { [ "$(node_of "$1")" = edge ]; }
gone() { is_absent pod "$1"; }
why() { k get pod "$1" -o 'jsonpath={.status.conditions[?(@.type=="PodScheduled")].message}'; }
refused() { why "$1" | grep -q "$2"; }
events_of() { k get events --field-selector "involvedObject.name=$1" -o 'jsonpath={range .items[*]}{.reason}: {.message}{"\n"}{end}'; }
clear_pods() { k delete pods --all --grace-period=0 --force >/dev/null 2>&1; until_true 20 eval '[ -z "$(k get pods -o name)" ]'; }
pod() {  # pod NAME SPEC: the rest of the spec, in flow style
  c apply -f - >/dev/null <<Y
{apiVersion: v1, kind: Pod, metadata: {name: $1, labels: {name: $1}}, spec: {terminationGracePeriodSeconds: ${grace:-0}, $2
  containers: [{name: c, image: localhost/busybox:latest, command: [sleep, "1000"], resources: {${3:-}} ${4:-}}]}}
Y
}
asks() { echo "requests: {$res: $1}, limits: {$res: $1}"; }
class() { c apply -f - >/dev/null <<<"{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: $1}, value: $2}"; }

c patch node edge --subresource=status --type=merge -p "{\"status\":{\"capacity\":{\"$res\":\"10\"},\"allocatable\":{\"$res\":\"10\"}}}" >/dev/null
class low 1; class medium 100; class high 1000

echo "# [sig-scheduling] SchedulerPredicates [Serial] validates resource limits of pods that are allowed to run [Conformance]"
pod fills "" "$(asks 7)"
check "a pod that fits runs" until_true 20 running fills
pod additional "" "$(asks 4)"
check "one that does not is told so" until_true 10 refused additional "^0/1 nodes are available: 1 Insufficient $res."
expect_match "with the figures" "node edge: $res requested 4, free 3 of 10" why additional
soon expect_match "in an event too" "^FailedScheduling: 0/1 nodes are available: 1 Insufficient $res" events_of additional
k delete pod fills --grace-period=0 --force >/dev/null 2>&1
check "and gets the space when it is free" until_true 20 running additional
expect "the node agent leaves alone what others say the node has" 10 k get node edge -o "jsonpath={.status.allocatable.example\.com/fakecpu}"
clear_pods

echo "# [sig-scheduling] SchedulerPredicates [Serial] validates that NodeSelector is respected if not matching [Conformance]"
pod restricted "nodeSelector: {label: nonempty},"
check "it waits" until_true 10 refused restricted "1 node(s) didn't match Pod's node affinity/selector"
expect "on no node" "" node_of restricted

echo "# [sig-scheduling] SchedulerPredicates [Serial] validates that NodeSelector is respected if matching [Conformance]"
k label node edge label=nonempty >/dev/null
check "and is placed when a node has the label" until_true 20 on_edge restricted
k label node edge label- >/dev/null
clear_pods

echo "# [sig-scheduling] SchedulerPredicates [Serial] validates that there exists conflict between pods with same hostPort and protocol but one using 0.0.0.0 hostIP [Conformance]"
pod everywhere "" "" ", ports: [{containerPort: 8080, hostPort: 54322, protocol: TCP, hostIP: 0.0.0.0}]"
check "a pod has a port on all addresses" until_true 20 on_edge everywhere
pod somewhere "" "" ", ports: [{containerPort: 8080, hostPort: 54322, protocol: TCP, hostIP: 127.0.0.1}]"
check "another cannot have it on one of them" until_true 10 refused somewhere "1 node(s) didn't have free ports for the requested pod ports"
pod other "" "" ", ports: [{containerPort: 8080, hostPort: 54322, protocol: UDP, hostIP: 127.0.0.1}]"
check "but for another protocol" until_true 20 on_edge other
clear_pods

echo "# [sig-scheduling] SchedulerPreemption [Serial] validates basic preemption works [Conformance]"
pod lower "priorityClassName: low," "$(asks 4)"
pod middle "priorityClassName: medium," "$(asks 6)"
check "the node is full" until_true 20 eval 'running lower && running middle'
pod preemptor "priorityClassName: high," "$(asks 4)"
check "the least important pod goes" until_true 20 gone lower
check "the important one runs" until_true 20 running preemptor
check "the other one stays" running middle
clear_pods

echo "# [sig-scheduling] SchedulerPreemption [Serial] validates lower priority pod preemption by critical pod [Conformance]"
pod lower "priorityClassName: low," "$(asks 8)"
until_true 20 running lower
k -n kube-system delete pod critical --ignore-not-found >/dev/null
c apply -f - >/dev/null <<Y
{apiVersion: v1, kind: Pod, metadata: {name: critical, namespace: kube-system}, spec: {terminationGracePeriodSeconds: 0, priorityClassName: system-cluster-critical,
  containers: [{name: c, image: localhost/busybox:latest, command: [sleep, "1000"], resources: {$(asks 8)}}]}}
Y
check "the lesser pod goes" until_true 20 gone lower
check "the critical one is placed" until_true 20 eval '[ "$(k -n kube-system get pod critical -o "jsonpath={.spec.nodeName}")" = edge ]'
k -n kube-system delete pod critical --grace-period=0 --force >/dev/null 2>&1
clear_pods

echo "# [sig-scheduling] SchedulerPreemption [Serial] validates pod disruption condition is added to the preempted pod [Conformance]"
c apply -f - >/dev/null <<Y
{apiVersion: v1, kind: Pod, metadata: {name: victim, finalizers: [example.com/test-finalizer]}, spec: {priorityClassName: low, terminationGracePeriodSeconds: 1,
  containers: [{name: c, image: localhost/busybox:latest, command: [sleep, "1000"], resources: {$(asks 8)}}]}}
Y
check "the victim runs" until_true 20 running victim
pod preemptor "priorityClassName: high," "$(asks 8)"
disruption() { k get pod victim -o 'jsonpath={.status.conditions[?(@.type=="DisruptionTarget")].reason}'; }
check "it is told why it goes" until_true 20 eval '[ "$(disruption)" = PreemptionByScheduler ]'
check "it is being deleted" until_true 10 eval '[ -n "$(k get pod victim -o "jsonpath={.metadata.deletionTimestamp}")" ]'
soon expect "the space is kept for the preemptor" edge k get pod preemptor -o 'jsonpath={.status.nominatedNodeName}'
check "an event says so" until_true 10 eval 'events_of victim | grep -q "^Preempted: Preempted by pod $(k get pod preemptor -o "jsonpath={.metadata.uid}") on node edge"'
c patch pod victim --type=merge -p '{"metadata":{"finalizers":null}}' >/dev/null
check "and it runs there when the victim has gone" until_true 20 running preemptor
clear_pods

echo "# [sig-scheduling] SchedulerPreemption [Serial] PreemptionExecutionPath runs ReplicaSets to verify preemption running path [Conformance]"
replicas() {  # replicas NAME CLASS COUNT AMOUNT
  c apply -f - >/dev/null <<Y
{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: $1}, spec: {replicas: $3, selector: {matchLabels: {set: $1}}, template: {metadata: {labels: {set: $1}},
  spec: {priorityClassName: $2, terminationGracePeriodSeconds: 0, containers: [{name: c, image: localhost/busybox:latest, command: [sleep, "1000"], resources: {$(asks "$4")}}]}}}}
Y
}
up() { [ "$(k get pods -l "set=$1" -o 'jsonpath={range .items[*]}{.status.phase}{"\n"}{end}' | grep -c Running)" = "$2" ]; }
replicas rs1 low 5 1
check "five of the first set run" until_true 30 up rs1 5
replicas rs2 medium 4 1
check "four of the second run beside them" until_true 30 up rs2 4
replicas rs3 high 3 2
check "three larger ones of the third make themselves space" until_true 30 up rs3 3
check "from the first set alone" until_true 30 eval 'up rs2 4 && up rs1 0'
for one in rs1 rs2 rs3; do k delete rs $one >/dev/null; done
clear_pods

echo "# [sig-scheduling] SchedulerPreemption [Serial] PriorityClass endpoints verify PriorityClass endpoints can be operated with different HTTP methods [Conformance]"
classes=/apis/scheduling.k8s.io/v1/priorityclasses
class p1 1; class p2 2
expect_match "they are listed" "priorityclass.scheduling.k8s.io/p2|^p2" k get priorityclass -o name
expect "each is read" 2 k get priorityclass p2 -o 'jsonpath={.value}'
expect_fail "a value does not change" "Forbidden|may not be changed|immutable" c patch priorityclass p1 --type=merge -p '{"value":7}'
c patch priorityclass p1 --type=merge -p '{"description":"patched"}' >/dev/null
expect "a description does" patched k get priorityclass p1 -o 'jsonpath={.description}'
k delete priorityclass p1 p2 >/dev/null
check "they can be deleted" is_absent priorityclass p1

echo "# [sig-scheduling] LimitRange should create a LimitRange with defaults and ensure pod has those defaults applied. [Conformance]"
k create namespace limited >/dev/null
c apply -f - >/dev/null <<Y
{apiVersion: v1, kind: LimitRange, metadata: {name: limits, namespace: limited, labels: {team: a}}, spec: {limits: [{type: Container, min: {cpu: 50m}, max: {cpu: 500m},
  default: {cpu: 300m}, defaultRequest: {cpu: 100m}}]}}
Y
limited() { c apply -f - <<<"{apiVersion: v1, kind: Pod, metadata: {name: $1, namespace: limited}, spec: {containers: [{name: c, image: localhost/busybox:latest, command: [sleep, '9'], resources: {$2}}]}}"; }
until_true 10 k -n limited get serviceaccount default  # without it, admission refuses pods
limited plain "" >/dev/null
of_limited() { k -n limited get pod "$1" -o 'jsonpath={.spec.containers[0].resources.requests.cpu} {.spec.containers[0].resources.limits.cpu}'; }
expect "a pod has the defaults" "100m 300m" of_limited plain
limited partial "requests: {cpu: 200m}" >/dev/null
expect "and keeps what it says itself" "200m 300m" of_limited partial
expect_fail "less than the minimum is refused" "minimum cpu usage per Container is 50m" limited small "requests: {cpu: 10m}"
expect_fail "more than the maximum is refused" "maximum cpu usage per Container is 500m" limited large "requests: {cpu: 600m}, limits: {cpu: 600m}"

echo "# [sig-scheduling] LimitRange should list, patch and delete a LimitRange by collection [Conformance]"
expect_match "it is listed by its label" "limits" k get limitrange -A -l team=a -o name
c -n limited patch limitrange limits --type=merge -p '{"metadata":{"labels":{"team":"b"}}}' >/dev/null
expect_match "patched" "limits" k get limitrange -A -l team=b -o name
k -n limited delete limitrange -l team=b >/dev/null
expect "and deleted by it" "" k get limitrange -A -l team=b -o name
k delete namespace limited --wait=false >/dev/null 2>&1

echo "# [sig-architecture] Conformance Tests should have at least two untainted nodes [Conformance]"
hollow second
untainted() { k get nodes -o 'jsonpath={range .items[*]}{.metadata.name}{" "}{.spec.taints}{"\n"}{end}' | grep -Ec '^[a-z]+ *$'; }
check "two nodes take pods" until_true 20 eval '[ "$(untainted)" -ge 2 ]'

echo "# what this scheduler adds"
c apply -f - >/dev/null <<Y
{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: wide}, spec: {replicas: 4, selector: {matchLabels: {set: wide}}, template: {metadata: {labels: {set: wide}},
  spec: {topologySpreadConstraints: [{maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {set: wide}}}],
    terminationGracePeriodSeconds: 0, containers: [{name: c, image: localhost/busybox:latest, command: [sleep, "1000"]}]}}}}
Y
spread() { k get pods -l set=wide -o 'jsonpath={range .items[*]}{.spec.nodeName}{"\n"}{end}' | sort | uniq -c | tr -s ' \n' ' '; }
check "pods stand level over two nodes" until_true 20 eval '[ "$(spread)" = " 2 edge 2 second " ]'
k delete rs wide >/dev/null
clear_pods
pod far "affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {name: near}}}]}},"
check "a pod waits for company" until_true 10 refused far "2 node(s) didn't match pod affinity rules"
pod near "nodeSelector: {kubernetes.io/hostname: second},"
check "and follows it" until_true 20 eval '[ "$(node_of far)" = second ]'
clear_pods

stop_daemon
cat > "$T/etc/scheduler.yaml" <<Y
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- {}
- schedulerName: blind
  plugins: {multiPoint: {disabled: [{name: NodeAffinity}]}}
Y
echo "schedulerConfigFile: $T/etc/scheduler.yaml" >> "$T/etc/config.yaml"
start_daemon
pod picky "nodeSelector: {no: such},"
pod blind "schedulerName: blind, nodeSelector: {no: such},"
check "a profile without NodeAffinity does not mind a selector" until_true 20 eval '[ -n "$(node_of blind)" ]'
check "the default one does" until_true 10 refused picky "didn't match Pod's node affinity/selector"
stop_daemon
sed -i 's/disabled/disable/' "$T/etc/scheduler.yaml"
expect_fail "a mistake in the configuration is named" "scheduler.yaml: profiles\[1\].plugins.multiPoint.disable: unknown field" in_ns timeout 60 "$coracled" --config "$T/etc/config.yaml"
sed -i 's/disable:/disabled:/' "$T/etc/scheduler.yaml"
start_daemon

echo "1..$test_number"
