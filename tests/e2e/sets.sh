#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# StatefulSets, DaemonSets and their revisions with real pods: the lines of Kubernetes' conformance suite about them, each under
# its name, and the handling of claims and orphans.
# for: daemon/controller/workload/stateful_set daemon/controller/workload/daemon_set daemon/controller/workload/history daemon/controller/storage/volume_protection
. "$(dirname "$0")/lib.sh"
start_machine
c image pack "$T/rootfs" localhost/busybox:two --cmd sh >/dev/null

one=localhost/busybox:latest two=localhost/busybox:two
get() { k get "$1" "$2" -o "jsonpath={$3}"; }                              # get KIND NAME PATH
is() { [ "$(get "$1" "$2" "$3" 2>/dev/null)" = "$4" ]; }                   # is KIND NAME PATH VALUE
names() { k get "$1" -l "app=$2" -o 'jsonpath={.items[*].metadata.name}'; }
count() { [ "$(names "$1" "$2" | wc -w)" = "$3" ]; }                       # count KIND APP NUMBER
have() { [ "$(names "$1" "$2")" = "$3" ]; }                                # have KIND APP NAMES
gone() { is_absent "$1" "$2"; }
images() { k get pods -l "app=$1" -o 'jsonpath={.items[*].spec.containers[0].image}'; }
has_ready() { is statefulset "$1" .status.readyReplicas "$2"; }          # has_ready SET NUMBER
events() { k get events -o 'jsonpath={range .items[*]}{.reason}{" "}{.message}{"\n"}{end}'; }
status() { k get --raw "/apis/apps/v1/namespaces/default/$1/status"; }
patch_status() { k patch "$1" "$2" --subresource=status --type=merge -p "$3" >/dev/null; }
has_condition() { is "$1" "$2" '.status.conditions[?(@.type=="StatusUpdate")].status' True; }

stateful() {  # stateful NAME REPLICAS [SPEC] [IMAGE] [POD-SPEC]: each pod is ready while it has its file
  c apply -f - >/dev/null <<Y
{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: $1, labels: {app: $1}}, spec: {replicas: $2, ${3:-}${3:+,} serviceName: $1, selector: {matchLabels: {app: $1}},
  template: {metadata: {labels: {app: $1}}, spec: {${5:-}${5:+,} terminationGracePeriodSeconds: 0, containers: [{name: c, image: "${4:-$one}",
    command: [sh, -c, "touch /tmp/ready; exec sleep 100000"], readinessProbe: {exec: {command: [cat, /tmp/ready]}, periodSeconds: 1, timeoutSeconds: 20, failureThreshold: 1}}]}}}}
Y
}
daemon() {  # daemon NAME [SPEC] [IMAGE] [POD-SPEC]
  c apply -f - >/dev/null <<Y
{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: $1, labels: {app: $1}}, spec: {${2:-}${2:+,} selector: {matchLabels: {app: $1}},
  template: {metadata: {labels: {app: $1}}, spec: {${4:-}${4:+,} terminationGracePeriodSeconds: 0, containers: [{name: c, image: "${3:-$one}", command: [sleep, "100000"]}]}}}}
Y
}
set_image() { k patch "$1" "$2" --type=json -p '[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"'"$3"'"}]' >/dev/null; }
scale() { k patch statefulset "$1" --type=merge -p '{"spec":{"replicas":'"$2"'}}' >/dev/null; }
partition() { k patch statefulset "$1" --type=merge -p '{"spec":{"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"partition":'"$2"'}}}}' >/dev/null; }
break_pods() { local pod; for pod in $(names pods "$1"); do c exec "$pod" -- rm -f /tmp/ready; done; }
mend_pods() { local pod; for pod in $(names pods "$1"); do c exec "$pod" -- touch /tmp/ready; done; }
unready() { is statefulset "$1" .status.readyReplicas ""; }
hash() { get "$1" "$2" .metadata.labels.controller-revision-hash; }
remove() { k delete "$1" "$2" --wait=false >/dev/null; until_true 30 count pods "$2" 0; }
stays() { sleep 4; "$@"; }  # stays COMMAND...: waits, since there is no event for "nothing happens"

field() { sed -n "s/.*$1: *\"\{0,1\}\([^\" ]*\).*/\1/p" "$T/etc/admin.kubeconfig" | head -n 1 | base64 -d > "$2"; }
field certificate-authority-data "$T/ca.crt"; field client-certificate-data "$T/admin.crt"; field client-key-data "$T/admin.key"
put() { in_ns curl -sf --cacert "$T/ca.crt" --cert "$T/admin.crt" --key "$T/admin.key" --max-time 60 -X PUT -H 'Content-Type: application/json' -d @- "https://127.0.0.1:6443$1"; }

echo "# [sig-apps] StatefulSet Basic StatefulSet functionality [StatefulSetBasic] Burst scaling should run to completion even with unhealthy pods [Slow] [Conformance]"
stateful burst 1 "podManagementPolicy: Parallel"
check "a pod is ready" until_true 30 has_ready burst 1
break_pods burst
check "then it is not" until_true 20 unready burst
scale burst 3
check "all the same the others come" until_true 20 have pods burst "burst-0 burst-1 burst-2"
mend_pods burst
check "and get ready" until_true 30 has_ready burst 3
break_pods burst
until_true 20 unready burst
scale burst 0
check "they all go, unhealthy as they are" until_true 30 count pods burst 0
check "and the status says so" until_true 10 is statefulset burst .status.replicas 0
remove statefulset burst

echo "# [sig-apps] StatefulSet Basic StatefulSet functionality [StatefulSetBasic] Scaling should happen in predictable order and halt if any stateful pod is unhealthy [Slow] [Conformance]"
stateful order 1
check "a pod is ready" until_true 30 has_ready order 1
expect "its name, number and host's name" "order-0 0 order-0 order" eval 'echo $(k get pod order-0 -o "jsonpath={.metadata.labels.statefulset\.kubernetes\.io/pod-name} {.metadata.labels.apps\.kubernetes\.io/pod-index} {.spec.hostname} {.spec.subdomain}")'
expect "as the pod sees it" "order-0" c exec order-0 -- hostname
break_pods order; until_true 20 unready order
scale order 3
check "no other comes while it is not well" stays have pods order "order-0"
mend_pods order
check "then they come" until_true 40 has_ready order 3
made() { k get pods -l app=order --sort-by=.metadata.creationTimestamp -o 'jsonpath={.items[*].metadata.name}'; }
expect "in order" "order-0 order-1 order-2" made
break_pods order; until_true 20 unready order
scale order 0
check "none goes while one is not well" stays have pods order "order-0 order-1 order-2"
mend_pods order
check "then they go" until_true 30 count pods order 0
removals() { events | sed -n 's/^SuccessfulDelete delete Pod \(order-[0-9]\) in StatefulSet order successful/\1/p'; }
check "and events tell" until_true 10 eval '[ "$(removals | sort -u | wc -l)" = 3 ]'
soon expect "the last first" "order-2 order-1 order-0" eval 'echo $(k get events -o "jsonpath={range .items[?(@.reason==\"SuccessfulDelete\")]}{.metadata.resourceVersion} {.message}{\"\n\"}{end}" | sort -n | grep -o "order-[0-9]")'
remove statefulset order

echo "# [sig-apps] StatefulSet Basic StatefulSet functionality [StatefulSetBasic] Should recreate evicted statefulset [Conformance]"
port='ports: [{containerPort: 21017, hostPort: 21017}]'
c apply -f - >/dev/null <<Y
{apiVersion: v1, kind: Pod, metadata: {name: taker}, spec: {nodeName: edge, terminationGracePeriodSeconds: 0, containers: [{name: c, image: "$one", command: [sleep, "100000"], $port}]}}
Y
until_true 20 is pod taker .status.phase Running
c apply -f - >/dev/null <<Y
{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: evicted}, spec: {serviceName: evicted, selector: {matchLabels: {app: evicted}}, template: {metadata: {labels: {app: evicted}},
  spec: {nodeName: edge, terminationGracePeriodSeconds: 0, containers: [{name: c, image: "$one", command: [sleep, "100000"], $port}]}}}}
Y
check "a pod is refused by its node" until_true 20 is pod evicted-0 .status.phase Failed
uid=$(get pod evicted-0 .metadata.uid)
check "another comes under its name" until_true 60 eval 'now=$(get pod evicted-0 .metadata.uid 2>/dev/null) && [ -n "$now" ] && [ "$now" != "$uid" ]'
k delete pod taker >/dev/null
check "and one runs when there is space" until_true 90 has_ready evicted 1
remove statefulset evicted

echo "# [sig-apps] StatefulSet Basic StatefulSet functionality [StatefulSetBasic] should have a working scale subresource [Conformance]"
stateful scaled 1
scaled=/apis/apps/v1/namespaces/default/statefulsets/scaled/scale
check "it says how many there are" until_true 30 eval 'k get --raw "$scaled" | grep -Eq "\"status\": *\{[^}]*\"replicas\": *1"'
rescale() { k get --raw "$scaled" | sed 's/"replicas": *1/"replicas": 2/' | put "$scaled"; }  # it may be changed meanwhile
check "and takes how many there shall be" until_true 10 rescale
expect "which the set has" 2 get statefulset scaled .spec.replicas
check "a patch of it too" k patch statefulset scaled --subresource=scale --type=merge -p '{"spec":{"replicas":4}}'
expect "is the set's" 4 get statefulset scaled .spec.replicas
remove statefulset scaled

echo "# [sig-apps] StatefulSet Basic StatefulSet functionality [StatefulSetBasic] should list, patch and delete a collection of StatefulSets [Conformance]"
stateful listed 1
until_true 30 has_ready listed 1
expect "it is listed by its label" "listed" eval 'k get statefulsets -A -l app=listed -o "jsonpath={.items[*].metadata.name}"'
k patch statefulset listed --type=strategic -p '{"metadata":{"labels":{"patched":"yes"}},"spec":{"replicas":2,"template":{"spec":{"containers":[{"name":"c","image":"'$two'"}]}}}}' >/dev/null
check "patched, it goes to what it says" until_true 40 eval '[ "$(images listed)" = "$two $two" ] && has_ready listed 2'
k delete statefulsets -l patched=yes --wait=false >/dev/null
check "the collection goes" until_true 20 count statefulsets listed 0
check "and its pods" until_true 30 count pods listed 0

echo "# [sig-apps] StatefulSet Basic StatefulSet functionality [StatefulSetBasic] should perform canary updates and phased rolling updates of template modifications [Conformance]"
stateful canary 3 "updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 3}}"
until_true 40 has_ready canary 3
current=$(get statefulset canary .status.currentRevision)
set_image statefulset canary $two
check "a new template has a revision" until_true 10 eval '[ "$(get statefulset canary .status.updateRevision)" != "$current" ]'
check "no pod is below the partition" stays eval '[ "$(images canary)" = "$one $one $one" ]'
partition canary 2
check "the canary is updated" until_true 30 eval '[ "$(images canary)" = "$one $one $two" ] && has_ready canary 3'
expect "and labelled" "$(get statefulset canary .status.updateRevision)" hash pod canary-2
k delete pods canary-0 canary-2 >/dev/null
check "pods that are made again have the revision of their number" until_true 40 eval '[ "$(images canary)" = "$one $one $two" ] && has_ready canary 3'
for step in 1 0; do
  partition canary $step
  check "the next phase: from $step on" until_true 40 eval '[ "$(k get pods -l app=canary,controller-revision-hash='"$current"' -o name | wc -l)" = '$step' ] && has_ready canary 3'
done
check "then the new revision is the current one" until_true 10 eval 'is statefulset canary .status.currentRevision "$(get statefulset canary .status.updateRevision)"'
remove statefulset canary

echo "# [sig-apps] StatefulSet Basic StatefulSet functionality [StatefulSetBasic] should perform rolling updates and roll backs of template modifications [Conformance]"
stateful rolled 3
until_true 40 has_ready rolled 3
first=$(get statefulset rolled .status.currentRevision)
set_image statefulset rolled $two
check "all pods are updated" until_true 60 eval '[ "$(images rolled)" = "$two $two $two" ] && is statefulset rolled .status.currentRevision "$(get statefulset rolled .status.updateRevision)"'
check "kubectl sees it" k rollout status statefulset/rolled --timeout=120s
soon expect "the last first" "rolled-2 rolled-1 rolled-0" eval 'echo $(k get events -o "jsonpath={range .items[?(@.reason==\"SuccessfulDelete\")]}{.metadata.resourceVersion} {.message}{\"\n\"}{end}" | sort -n | grep -o "rolled-[0-9]")'
set_image statefulset rolled $one
check "and back" until_true 60 eval '[ "$(images rolled)" = "$one $one $one" ] && is statefulset rolled .status.currentRevision "$first"'
expect "the earlier revision has another number" 3 get controllerrevision "$first" .revision
expect "there are no more than two" 2 eval 'names controllerrevisions rolled | wc -w'
remove statefulset rolled
check "which go with the set" until_true 20 count controllerrevisions rolled 0

echo "# [sig-apps] StatefulSet Basic StatefulSet functionality [StatefulSetBasic] should validate Statefulset Status endpoints [Conformance]"
stateful told 1
until_true 30 has_ready told 1
check "the status is read" eval 'status statefulsets/told | grep -q "\"readyReplicas\": *1"'
patch_status statefulset told '{"status":{"conditions":[{"type":"StatusUpdate","status":"True","reason":"E2E","message":"Set by e2e test"}]}}'
check "and written" has_condition statefulset told
scale told 2
until_true 30 has_ready told 2
check "what others wrote stays" has_condition statefulset told
remove statefulset told

echo "# a StatefulSet's claims"
claims='volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}}]'
stateful claimed 1 "$claims, persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete, whenScaled: Retain}"
check "each pod has a claim of its own" until_true 20 have pvc claimed data-claimed-0
soon expect "which its volume names" data-claimed-0 get pod claimed-0 '.spec.volumes[?(@.name=="data")].persistentVolumeClaim.claimName'
expect "and the set owns" claimed get pvc data-claimed-0 '.metadata.ownerReferences[0].name'
remove statefulset claimed
check "so that it goes with it" until_true 20 count pvc claimed 0
stateful kept 1 "$claims"
check "unless it is kept" until_true 20 have pvc kept data-kept-0
remove statefulset kept
check "it stays" stays have pvc kept data-kept-0
k delete pvc data-kept-0 --wait=false >/dev/null

echo "# a StatefulSet's orphans"
stateful orphans 2
until_true 30 has_ready orphans 2
before=$(k get pods -l app=orphans -o 'jsonpath={.items[*].metadata.uid}')
k delete statefulset orphans --cascade=orphan >/dev/null
check "its pods stay" until_true 20 eval '[ -z "$(get pod orphans-0 .metadata.ownerReferences)" ] && gone statefulset orphans'
stateful orphans 2
check "and are the next one's" until_true 20 eval '[ -n "$(get pod orphans-0 .metadata.ownerReferences)" ] && has_ready orphans 2'
expect "the same" "$before" eval 'k get pods -l app=orphans -o "jsonpath={.items[*].metadata.uid}"'
k delete statefulset orphans --cascade=foreground --wait=false >/dev/null
check "in the foreground the pods go first" until_true 30 eval 'gone statefulset orphans && count pods orphans 0'

runs() { is daemonset "$1" .status.numberAvailable "$2" && is daemonset "$1" .status.desiredNumberScheduled "$2"; }

echo "# [sig-apps] Daemon set [Serial] should run and stop simple daemon [Conformance]"
daemon simple
check "it runs on every node" until_true 30 runs simple 1
pod=$(names pods simple)
expect "bound by affinity" "edge" get pod "$pod" '.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchFields[0].values[0]'
k delete pod "$pod" >/dev/null
check "stopped, it is revived" until_true 30 eval 'runs simple 1 && [ "$(names pods simple)" != "$pod" ]'
remove daemonset simple

echo "# [sig-apps] Daemon set [Serial] should run and stop complex daemon [Conformance]"
k label node edge color- >/dev/null 2>&1
daemon complex "updateStrategy: {type: RollingUpdate}" $one "nodeSelector: {color: blue}"
check "it runs nowhere" until_true 10 is daemonset complex .status.desiredNumberScheduled 0
k label node edge color=blue >/dev/null
check "until a node is labelled" until_true 30 runs complex 1
k label node edge color=green --overwrite >/dev/null
check "labelled otherwise, it stops" until_true 30 eval 'count pods complex 0 && is daemonset complex .status.desiredNumberScheduled 0'
daemon complex "updateStrategy: {type: RollingUpdate}" $one "nodeSelector: {color: green}"
check "until the set says the same" until_true 30 runs complex 1
k label node edge color- >/dev/null
remove daemonset complex

echo "# [sig-apps] Daemon set [Serial] should retry creating failed daemon pods [Conformance]"
daemon failed
until_true 30 runs failed 1
pod=$(names pods failed)
fail_it() { patch_status pod "$pod" '{"status":{"phase":"Failed"}}' 2>/dev/null; gone pod "$pod"; }  # its node reverts this
check "what failed goes" until_true 30 fail_it
check "and another comes" until_true 30 runs failed 1
soon expect_match "an event tells" "FailedDaemonPod Found failed daemon pod default/$pod on node edge, will try to kill it" events
remove daemonset failed

echo "# [sig-apps] Daemon set [Serial] should update pod when spec was updated and update strategy is RollingUpdate [Conformance]"
daemon updated "updateStrategy: {type: RollingUpdate}"
until_true 30 runs updated 1
revisions() { k get controllerrevisions -l "app=$1" --sort-by=.revision -o 'jsonpath={range .items[*]}{.revision}{":"}{.metadata.labels.controller-revision-hash}{" "}{end}'; }
first=$(hash pod "$(names pods updated)")
expect "its first revision" "1:$first" eval 'echo $(revisions updated)'
expect "the pod says of which template it is" 1 get pod "$(names pods updated)" .metadata.labels.pod-template-generation
set_image daemonset updated $two
check "the pod is replaced" until_true 30 eval '[ "$(images updated)" = "$two" ] && runs updated 1 && is daemonset updated .status.updatedNumberScheduled 1'
expect "its second revision" "1:$first 2:$(hash pod "$(names pods updated)")" eval 'echo $(revisions updated)'
expect "and generation" 2 get pod "$(names pods updated)" .metadata.labels.pod-template-generation
check "kubectl sees it" k rollout status daemonset/updated --timeout=120s
remove daemonset updated

echo "# [sig-apps] Daemon set [Serial] should rollback without unnecessary restarts [Conformance]"
hollow second
daemon back "updateStrategy: {type: RollingUpdate}"
check "it runs on two nodes" until_true 30 runs back 2
before=$(k get pods -l app=back -o 'jsonpath={.items[*].metadata.uid}')
set_image daemonset back localhost/nobody:none
check "a pod of a broken image comes" until_true 30 eval 'images back | grep -q nobody && [ "$(images back | wc -w)" = 2 ]'
kept=$(k get pods -l app=back -o 'jsonpath={range .items[*]}{.spec.containers[0].image}{" "}{.metadata.uid}{"\n"}{end}' | sed -n "s|^$one ||p")
check "another one of before is there" grep -q "$kept" <<<"$before"
set_image daemonset back $one
check "back, both run" until_true 30 eval '[ "$(images back)" = "$one $one" ] && runs back 2'
expect_match "and that one was not restarted" "$kept" eval 'k get pods -l app=back -o "jsonpath={.items[*].metadata.uid}"'
k patch daemonset back --type=json -p '[{"op":"replace","path":"/spec/updateStrategy","value":{"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":0,"maxSurge":1}}},
  {"op":"replace","path":"/spec/template/spec/containers/0/image","value":"'$two'"}]' >/dev/null
check "with a surge it is updated as well" until_true 40 eval '[ "$(images back)" = "$two $two" ] && runs back 2'
k taint node second e2e=here:NoExecute >/dev/null
check "it leaves a node that no pod may be on" until_true 30 runs back 1
remove daemonset back
hollow_leave second

echo "# [sig-apps] Daemon set [Serial] should list and delete a collection of DaemonSets [Conformance]"
daemon several
until_true 30 runs several 1
expect "it is listed by its label" several eval 'k get daemonsets -A -l app=several -o "jsonpath={.items[*].metadata.name}"'
k delete daemonsets -l app=several --wait=false >/dev/null
check "the collection goes" until_true 20 count daemonsets several 0
check "and its pods" until_true 30 count pods several 0

echo "# [sig-apps] Daemon set [Serial] should verify changes to a daemon set status [Conformance]"
daemon verified
until_true 30 runs verified 1
check "the status is read" eval 'status daemonsets/verified | grep -q "\"numberReady\": *1"'
patch_status daemonset verified '{"status":{"conditions":[{"type":"StatusUpdate","status":"True","reason":"E2E","message":"Set by e2e test"}]}}'
check "and written" has_condition daemonset verified
set_image daemonset verified $two
until_true 30 eval '[ "$(images verified)" = "$two" ] && runs verified 1'
check "what others wrote stays" has_condition daemonset verified
remove daemonset verified

echo "# [sig-apps] ControllerRevision [Serial] should manage the lifecycle of a ControllerRevision [Conformance]"
of_queue() { k get --raw /metrics | sed -n "s/^workqueue_$1{name=\"daemonset\"} //p"; }  # of the sets' controller
# handled_since ADDS: it has been called since, and is done
handled_since() { [ "$(of_queue adds_total)" -gt "$1" ] && [ "$(of_queue depth) $(of_queue unfinished_work_seconds)" = "0 0" ]; }
daemon history
until_true 30 runs history 1
first=$(names controllerrevisions history)
expect "the first revision" 1 get controllerrevision "$first" .revision
check "is the set's" is controllerrevision "$first" '.metadata.ownerReferences[0].kind' DaemonSet
before=$(of_queue adds_total)
k label controllerrevision "$first" patched=yes >/dev/null
check "can be patched" is controllerrevision "$first" .metadata.labels.patched yes
until_true 20 handled_since "$before"
k get controllerrevision "$first" -o json | sed -e 's/"name": *"'"$first"'"/"name": "twin"/' -e 's/^\( *\)"revision": *1/\1"revision": 2/' -e '/"resourceVersion"/d' > "$T/twin.json"
check "another is made" k create -f "$T/twin.json"
check "there are two" count controllerrevisions history 2
k delete controllerrevision "$first" >/dev/null
check "then one" until_true 10 have controllerrevisions history twin
k label controllerrevision twin patched=updated --overwrite >/dev/null
check "it can be updated" is controllerrevision twin .metadata.labels.patched updated
k patch daemonset history --type=strategic -p '{"spec":{"template":{"spec":{"terminationGracePeriodSeconds":1}}}}' >/dev/null
check "another template, another revision" until_true 20 count controllerrevisions history 2
k delete controllerrevisions -l patched=updated >/dev/null
check "a collection of them goes" until_true 10 count controllerrevisions history 1
expect "the third is left" 3 get controllerrevision "$(names controllerrevisions history)" .revision
expect_fail "what one says cannot be changed" 'data: Invalid value|field is immutable' k patch controllerrevision "$(names controllerrevisions history)" --type=merge -p '{"data":{"other":1}}'
remove daemonset history
check "they go with the set" until_true 20 count controllerrevisions history 0
