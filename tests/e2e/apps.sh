#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The lines of Kubernetes' conformance suite about Deployments, ReplicaSets, ReplicationControllers and disruption budgets, each
# under its name, against the running daemon and real pods. StatefulSets, DaemonSets and Jobs have their own scripts.
# for: daemon/controller/workload/deployment daemon/controller/workload/replica_set daemon/controller/pod/disruption daemon/controller/pod/node daemon/controller/pod/taint daemon/controller/workload/history daemon/registry/eviction store/kinds/workload store/kinds/disruption
EXTRA_CONFIG='nodeMonitorGracePeriod: 6'
. "$(dirname "$0")/lib.sh"
start_machine

admin() { in_ns curl -s --cacert "$T/ca.crt" --cert "$T/admin.crt" --key "$T/admin.key" --max-time 20 "$@"; }
field() { sed -n "s/.*$1: *\"\{0,1\}\([^\" ]*\).*/\1/p" "$T/etc/admin.kubeconfig" | head -n 1 | base64 -d > "$2"; }
field certificate-authority-data "$T/ca.crt"; field client-certificate-data "$T/admin.crt"; field client-key-data "$T/admin.key"
api=https://127.0.0.1:6443
apps=$api/apis/apps/v1/namespaces/default core=$api/api/v1/namespaces/default policy=$api/apis/policy/v1/namespaces/default
code() { admin -o /dev/null -w '%{http_code}' "$@"; }
send() { admin -X "$1" -H "Content-Type: application/${4:-json}" -d "$3" "$2"; }          # send METHOD URL BODY [TYPE]
code_of() { code -X "$1" -H "Content-Type: application/${4:-json}" -d "$3" "$2"; }        # the same, prints the status
merge() { send PATCH "$1" "$2" merge-patch+json; }
at() { k get "$1" -o "jsonpath={$2}"; }                                                  # at KIND/NAME PATH
is() { [ "$(at "$1" "$2")" = "$3" ]; }                                                   # is KIND/NAME PATH VALUE
# put_back URL: PUTs the object unchanged; fails if its controller wrote in between
put_back() { [ "$(code_of PUT "$1" "$(admin "$1")")" = 200 ]; }
is_gone() { [ "$(code "$1")" = 404 ]; }
pods() { k get pods -l "$1" -o "jsonpath={.items[*].metadata.name}"; }
has_pods() { [ "$(pods "$1" | wc -w)" = "$2" ]; }
has_event() { k get events | grep -Eq "$1"; }                                            # has_event REGEX: an event of any object
sleeper='containers: [{name: c, image: "localhost/busybox:latest", command: [sleep, "10000"]}]'
set_of() {  # set_of KIND NAME REPLICAS [MORE-OF-ITS-SPEC] [POD-SPEC]
  local version=apps/v1 selector="{matchLabels: {app: $2}}"
  [ "$1" != ReplicationController ] || version=v1 selector="{app: $2}"
  k apply -f - >/dev/null <<Y
{apiVersion: $version, kind: $1, metadata: {name: $2, labels: {app: $2}}, spec: {replicas: $3, selector: $selector, ${4:+$4, }
  template: {metadata: {labels: {app: $2}}, spec: {terminationGracePeriodSeconds: 0, ${5:-$sleeper}}}}}
Y
}
bare() {  # bare NAME LABELS: a pod without a controller
  k apply -f - >/dev/null <<Y
{apiVersion: v1, kind: Pod, metadata: {name: $1, labels: {$2}}, spec: {terminationGracePeriodSeconds: 0, $sleeper}}
Y
}
all_ready() { is "$1" .status.readyReplicas "$2"; }
drop() { k delete "$@" --wait=false >/dev/null 2>&1; }
controller_of() { at "pod/$1" '.metadata.ownerReferences[?(@.controller==true)].name'; }
scale_of() { admin "$1/scale" | sed -n 's/^ *"replicas": \([0-9]*\).*/\1/p' | head -n 1; }
http_server='containers: [{name: c, image: "localhost/busybox:latest", command: [sh, -c, "mkdir /tmp/w; hostname > /tmp/w/index.html; exec httpd -f -p 8080 -h /tmp/w"]}]'

# rescale URL: one replica to two, by PUT; fails if the controller wrote in between
rescale() { [ "$(code_of PUT "$1/scale" "$(admin "$1/scale" | sed 's/"replicas": 1/"replicas": 2/')")" = 200 ]; }
works_by_scale() {  # works_by_scale KIND/NAME URL: one replica, two by PUT, four by PATCH
  check "it has its replica" until_true 30 all_ready "$1" 1
  expect_match "scale is of autoscaling/v1" '"apiVersion": "autoscaling/v1"' admin "$2/scale"
  expect "and says how many" 1 scale_of "$2"
  check "which can be changed" until_true 10 rescale "$2"
  expect "which is seen" 2 at "$1" .spec.replicas
  check "and happens" until_true 30 all_ready "$1" 2
  expect "by a patch too" 200 code_of PATCH "$2/scale" '{"spec":{"replicas":4}}' merge-patch+json
  expect "which is seen" 4 at "$1" .spec.replicas
}
adopts() {  # adopts KIND: an existing pod
  bare "adopted-$1" "app: adopts-$1"
  set_of "$2" "adopts-$1" 1
  check "it takes the pod that matches" until_true 20 eval "[ \"\$(controller_of adopted-$1)\" = adopts-$1 ]"
  check "and makes none" has_pods "app=adopts-$1" 1
}
releases() {  # releases KIND NAME: a pod whose labels no longer match
  local one
  one=$(pods "app=$2" | cut -d' ' -f1)
  k label pod "$one" app=none --overwrite >/dev/null
  check "a pod that matches no more is let go" until_true 20 eval "[ -z \"\$(controller_of $one)\" ]"
  check "and another takes its place" until_true 20 has_pods "app=$2" 1
  drop "$1" "$2"; drop pod "$one"
}
answers_on_each() {  # answers_on_each KIND NAME
  set_of "$1" "$2" 2 "" "$http_server"
  check "its replicas run" until_true 40 all_ready "$1/$2" 2
  local one
  for one in $(pods "app=$2"); do
    check "and each answers with its name" until_true 10 eval "[ \"\$(in_ns curl -s --max-time 3 http://$(at "pod/$one" .status.podIP):8080/)\" = $one ]"
  done
  drop "$1" "$2"
}
status_endpoints() {  # status_endpoints KIND/NAME URL
  expect "its status can be read" 200 code "$2/status"
  local set='[{"op":"add","path":"/status/conditions","value":[{"type":"StatusUpdate","status":"True","reason":"E2E","message":"Set from e2e test"}]}]'
  expect "and patched" 200 code_of PATCH "$2/status" "$set" json-patch+json
  expect "by who may" 200 code_of PATCH "$2/status" '{"status":{"conditions":[{"type":"StatusPatched","status":"True"}]}}' merge-patch+json
  check "a PUT to it works" until_true 10 put_back "$2/status"
  expect_match "what it was given is there" 'StatusPatched|Available' admin "$2"
  expect "and its spec is out of reach there" "$(at "$1" .spec.replicas)" eval "merge $2/status '{\"spec\":{\"replicas\":9}}' >/dev/null; at $1 .spec.replicas"
}

# ---- Deployments ----
echo "# [sig-apps] Deployment Deployment should have a working scale subresource [Conformance]"
set_of Deployment scaled 1
works_by_scale deployment/scaled "$apps/deployments/scaled"
drop deployment scaled

echo "# [sig-apps] Deployment RecreateDeployment should delete old pods and create new ones [Conformance]"
set_of Deployment again 2 "strategy: {type: Recreate}"
check "it runs" until_true 30 all_ready deployment/again 2
old=$(pods app=again)
merge "$apps/deployments/again" '{"spec":{"template":{"metadata":{"annotations":{"turn":"2"}}}}}' >/dev/null
check "it runs anew" until_true 40 is deployment/again '.status.observedGeneration} {.status.updatedReplicas} {.status.readyReplicas' '2 2 2'
check "with none of the old pods" eval '[ -n "$old" ] && for one in $old; do is_absent pod $one || exit 1; done'
soon expect_match "the event says that the old set went to nothing" 'Scaled down replica set again-[a-z0-9]+ from 2 to 0' k get events
soon expect_match "before the new one came" 'Scaled up replica set again-[a-z0-9]+ from 0 to 2' k get events
drop deployment again

echo "# [sig-apps] Deployment RollingUpdateDeployment should delete old pods and create new ones [Conformance]"
k apply -f - >/dev/null <<Y
{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: rolled-old, labels: {app: rolled}, annotations: {deployment.kubernetes.io/revision: "3546343826724305832"}},
 spec: {replicas: 1, selector: {matchLabels: {app: rolled, turn: first}}, template: {metadata: {labels: {app: rolled, turn: first}}, spec: {terminationGracePeriodSeconds: 0, $sleeper}}}}
Y
check "a replica set runs" until_true 30 all_ready replicaset/rolled-old 1
set_of Deployment rolled 1
check "a deployment of its labels takes over" until_true 40 eval 'is deployment/rolled .status.updatedReplicas 1 && all_ready deployment/rolled 1 && is replicaset/rolled-old .spec.replicas 0'
expect "as its owner" rolled at replicaset/rolled-old '.metadata.ownerReferences[0].name'
expect "with the next revision" 3546343826724305833 at deployment/rolled '.metadata.annotations.deployment\.kubernetes\.io/revision'
check "the old pod goes" until_true 20 has_pods app=rolled 1
drop deployment rolled

echo "# [sig-apps] Deployment deployment should delete old replica sets [Conformance]"
k apply -f - >/dev/null <<Y
{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: history-old, labels: {app: history}},
 spec: {replicas: 1, selector: {matchLabels: {app: history, turn: first}}, template: {metadata: {labels: {app: history, turn: first}}, spec: {terminationGracePeriodSeconds: 0, $sleeper}}}}
Y
until_true 30 all_ready replicaset/history-old 1
set_of Deployment history 1 "revisionHistoryLimit: 0"
check "with a history of none, the old set goes once it is empty" until_true 40 is_gone "$apps/replicasets/history-old"
check "and the new one stays" until_true 20 all_ready deployment/history 1
drop deployment history

echo "# [sig-apps] Deployment deployment should support rollover [Conformance]"
set_of Deployment over 1 "minReadySeconds: 10, strategy: {rollingUpdate: {maxUnavailable: 0, maxSurge: 1}}"
until_true 30 all_ready deployment/over 1
first=$(k get rs -l app=over -o 'jsonpath={.items[0].metadata.name}')
k set image deployment/over c=localhost/nowhere:1 >/dev/null 2>&1 || merge "$apps/deployments/over" '{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"localhost/nowhere:1","imagePullPolicy":"Never"}]}}}}' >/dev/null
check "a change that cannot run makes a second set" until_true 20 eval '[ "$(k get rs -l app=over -o "jsonpath={.items[*].metadata.name}" | wc -w)" = 2 ]'
second=$(k get rs -l app=over -o 'jsonpath={.items[*].metadata.name}' | tr ' ' '\n' | grep -v "^$first$")
send PATCH "$apps/deployments/over" '{"spec":{"minReadySeconds":0,"template":{"metadata":{"annotations":{"turn":"3"}},"spec":{"containers":[{"name":"c","image":"localhost/busybox:latest","command":["sleep","10000"]}]}}}}' strategic-merge-patch+json >/dev/null
check "another change rolls over it" until_true 40 \
  is deployment/over '.status.observedGeneration} {.status.replicas} {.status.updatedReplicas} {.status.readyReplicas' '3 1 1 1'
check "and both old sets are empty" eval 'is rs/$first .spec.replicas 0 && is rs/$second .spec.replicas 0'
drop deployment over

echo "# [sig-apps] Deployment deployment should support proportional scaling [Conformance]"
set_of Deployment shares 10 "strategy: {rollingUpdate: {maxSurge: 3, maxUnavailable: 2}}"
check "ten run" until_true 90 all_ready deployment/shares 10
first=$(k get rs -l app=shares -o 'jsonpath={.items[0].metadata.name}')
send PATCH "$apps/deployments/shares" '{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"localhost/nowhere:404","imagePullPolicy":"Never"}]}}}}' strategic-merge-patch+json >/dev/null
second_of() { k get rs -l app=shares -o 'jsonpath={.items[*].metadata.name}' | tr ' ' '\n' | grep -v "^$first$"; }
check "a change that cannot run stops with eight of the old" until_true 40 is "rs/$first" .spec.replicas 8
second=$(second_of)
check "and five of the new" until_true 20 is "rs/$second" .spec.replicas 5
merge "$apps/deployments/shares/scale" '{"spec":{"replicas":30}}' >/dev/null
check "scaled to thirty, the old set gets its share" until_true 20 is "rs/$first" .spec.replicas 20
check "and so does the new one" until_true 20 is "rs/$second" .spec.replicas 13
k delete deployment shares --wait=false >/dev/null

echo "# [sig-apps] Deployment should run the lifecycle of a Deployment [Conformance]"
set_of Deployment life 1
check "it runs" until_true 40 all_ready deployment/life 1
merge "$apps/deployments/life" '{"metadata":{"labels":{"test-deployment":"patched"}},"spec":{"replicas":2,"template":{"spec":{"terminationGracePeriodSeconds":1}}}}' >/dev/null
check "a patch is carried out" until_true 40 \
  is deployment/life '.status.observedGeneration} {.status.replicas} {.status.updatedReplicas} {.status.readyReplicas' '2 2 2 2'
expect "it is found by its label in all namespaces" life k get deployments -A -l test-deployment=patched -o 'jsonpath={.items[*].metadata.name}'
expect "its status is patched" 200 code_of PATCH "$apps/deployments/life/status" '{"status":{"readyReplicas":2}}' merge-patch+json
relabelled() { [ "$(code_of PUT "$apps/deployments/life" "$(admin "$apps/deployments/life" | sed 's/"test-deployment": "patched"/"test-deployment": "updated"/')")" = 200 ]; }
until_true 10 relabelled  # its controller may write in between
expect "it is updated" updated at deployment/life '.metadata.labels.test-deployment'
check "and comes to rest" until_true 40 eval 'all_ready deployment/life 2 && is deployment/life .status.conditions[?\(@.type==\"Available\"\)].status True'
expect "a collection is deleted by label" 200 code -X DELETE "$apps/deployments?labelSelector=test-deployment%3Dupdated"
check "and goes" until_true 20 is_gone "$apps/deployments/life"

echo "# [sig-apps] Deployment should validate Deployment Status endpoints [Conformance]"
set_of Deployment said 1
check "it runs" until_true 40 all_ready deployment/said 1
status_endpoints deployment/said "$apps/deployments/said"
drop deployment said

# ---- ReplicaSets ----
echo "# [sig-apps] ReplicaSet should serve a basic image on each replica with a public image [Conformance]"
answers_on_each ReplicaSet served

echo "# [sig-apps] ReplicaSet should adopt matching pods on creation and release no longer matching pods [Conformance]"
adopts rs ReplicaSet
releases replicaset adopts-rs

echo "# [sig-apps] ReplicaSet Replicaset should have a working scale subresource [Conformance]"
set_of ReplicaSet scaled 1
works_by_scale replicaset/scaled "$apps/replicasets/scaled"
drop replicaset scaled

echo "# [sig-apps] ReplicaSet Replace and Patch tests [Conformance]"
set_of ReplicaSet patched 1
check "it runs" until_true 30 all_ready replicaset/patched 1
merge "$apps/replicasets/patched/scale" '{"spec":{"replicas":2}}' >/dev/null
check "scaled" until_true 30 all_ready replicaset/patched 2
merge "$apps/replicasets/patched" '{"metadata":{"labels":{"turn":"patched"}},"spec":{"replicas":3,"template":{"metadata":{"labels":{"turn":"patched"}},"spec":{"terminationGracePeriodSeconds":1}}}}' >/dev/null
check "patched, it makes the pods that its template describes now" until_true 30 has_pods app=patched,turn=patched 1
check "beside those it had" until_true 30 all_ready replicaset/patched 3
drop replicaset patched

echo "# [sig-apps] ReplicaSet should list and delete a collection of ReplicaSets [Conformance]"
for one in many-1 many-2 many-3; do set_of ReplicaSet $one 1; k label rs $one many=yes >/dev/null; done
expect "three are found by their label" 3 eval 'k get rs -A -l many=yes -o "jsonpath={.items[*].metadata.name}" | wc -w'
expect "and deleted together" 200 code -X DELETE "$apps/replicasets?labelSelector=many%3Dyes"
check "all go" until_true 20 eval '[ -z "$(k get rs -l many=yes -o "jsonpath={.items[*].metadata.name}")" ]'

echo "# [sig-apps] ReplicaSet should validate Replicaset Status endpoints [Conformance]"
set_of ReplicaSet said 1
check "it runs" until_true 30 all_ready replicaset/said 1
status_endpoints replicaset/said "$apps/replicasets/said"
drop replicaset said

# ---- ReplicationControllers ----
echo "# [sig-apps] ReplicationController should serve a basic image on each replica with a public image [Conformance]"
answers_on_each ReplicationController rc-served

echo "# [sig-apps] ReplicationController should adopt matching pods on creation [Conformance]"
adopts rc ReplicationController

echo "# [sig-apps] ReplicationController should release no longer matching pods [Conformance]"
releases rc adopts-rc

echo "# [sig-apps] ReplicationController should get and update a ReplicationController scale [Conformance]"
set_of ReplicationController rc-scaled 1
works_by_scale rc/rc-scaled "$core/replicationcontrollers/rc-scaled"
drop rc rc-scaled

echo "# [sig-apps] ReplicationController should surface a failure condition on a common issue like exceeded quota [Conformance]"
k create quota two --hard=pods=2 >/dev/null 2>&1 || k apply -f - >/dev/null <<<'{apiVersion: v1, kind: ResourceQuota, metadata: {name: two}, spec: {hard: {pods: "2"}}}'
until_true 60 eval '[ -z "$(k get pods -o "jsonpath={.items[*].metadata.name}")" ]'  # everything deleted above is gone
until_true 20 is resourcequota/two .status.used.pods 0
set_of ReplicationController over-quota 3
failure() { at rc/over-quota '.status.conditions[?(@.type=="ReplicaFailure")].reason'; }
check "what its quota refuses, it says" until_true 20 eval '[ "$(failure)" = FailedCreate ]'
merge "$core/replicationcontrollers/over-quota" '{"spec":{"replicas":2}}' >/dev/null
check "within the quota it says so no more" until_true 20 eval '[ -z "$(failure)" ]'
drop rc over-quota; k delete quota two >/dev/null

echo "# [sig-apps] ReplicationController should test the lifecycle of a ReplicationController [Conformance]"
set_of ReplicationController rc-life 1
check "it runs" until_true 30 all_ready rc/rc-life 1
merge "$core/replicationcontrollers/rc-life" '{"metadata":{"labels":{"test-rc-static":"true"}}}' >/dev/null
expect "it is patched" true at rc/rc-life '.metadata.labels.test-rc-static'
expect "its status too" 200 code_of PATCH "$core/replicationcontrollers/rc-life/status" '{"status":{"readyReplicas":0,"availableReplicas":0}}' merge-patch+json
check "which its controller corrects" until_true 20 all_ready rc/rc-life 1
expect "its scale is patched" 200 code_of PATCH "$core/replicationcontrollers/rc-life/scale" '{"spec":{"replicas":2}}' merge-patch+json
check "and carried out" until_true 30 all_ready rc/rc-life 2
expect "it is found in all namespaces" rc-life k get rc -A -l test-rc-static=true -o 'jsonpath={.items[*].metadata.name}'
expect "and deleted as a collection" 200 code -X DELETE "$core/replicationcontrollers?labelSelector=test-rc-static%3Dtrue"
check "it goes" until_true 20 is_gone "$core/replicationcontrollers/rc-life"

# ---- disruption budgets ----
budget() { k apply -f - >/dev/null <<<"{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: $1, labels: {of: ${3:-none}}}, spec: {$2, selector: {matchLabels: {app: guarded}}}}"; }
evict() { code_of POST "$core/pods/$1/eviction" '{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"'"$1"'"}}'; }

echo "# [sig-apps] DisruptionController should create a PodDisruptionBudget [Conformance]"
budget one "minAvailable: 1"
check "it is looked at" until_true 10 is pdb/one .status.observedGeneration 1
merge "$policy/poddisruptionbudgets/one" '{"spec":{"minAvailable":"2%"}}' >/dev/null
expect "changed" '2%' at pdb/one .spec.minAvailable
check "and looked at again" until_true 10 is pdb/one .status.observedGeneration 2
k delete pdb one >/dev/null
check "deleted" until_true 10 is_gone "$policy/poddisruptionbudgets/one"

echo "# [sig-apps] DisruptionController Listing PodDisruptionBudgets for all namespaces should list and delete a collection of PodDisruptionBudgets [Conformance]"
budget one "minAvailable: 1" these; budget two "maxUnavailable: 1" these
k create namespace elsewhere >/dev/null
k -n elsewhere apply -f - >/dev/null <<<'{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: three, labels: {of: these}}, spec: {minAvailable: 1, selector: {matchLabels: {a: b}}}}'
expect "three in all namespaces" 3 eval 'k get pdb -A -l of=these -o "jsonpath={.items[*].metadata.name}" | wc -w'
expect "two in this one are deleted" 200 code -X DELETE "$policy/poddisruptionbudgets?labelSelector=of%3Dthese"
expect "one is left" three eval 'k get pdb -A -l of=these -o "jsonpath={.items[*].metadata.name}"'

echo "# [sig-apps] DisruptionController should observe PodDisruptionBudget status updated [Conformance]"
set_of ReplicaSet guarded 3
budget watched "minAvailable: 1"
until_true 40 all_ready rs/guarded 3
check "it counts the pods it guards" until_true 20 eval 'is pdb/watched .status.currentHealthy 3 && is pdb/watched .status.expectedPods 3 && is pdb/watched .status.disruptionsAllowed 2'
expect "its condition says so" "True SufficientPods" eval 'echo $(at pdb/watched ".status.conditions[0].status") $(at pdb/watched ".status.conditions[0].reason")'

echo "# [sig-apps] DisruptionController should update/patch PodDisruptionBudget status [Conformance]"
expect "its status is patched" 200 code_of PATCH "$policy/poddisruptionbudgets/watched/status" '{"status":{"disruptedPods":{"none":"2020-01-01T00:00:00Z"}}}' merge-patch+json
check "and put" until_true 10 put_back "$policy/poddisruptionbudgets/watched/status"
check "what is none of its pods is dropped again" until_true 20 eval '[ -z "$(at pdb/watched .status.disruptedPods.none)" ]'

echo "# [sig-apps] DisruptionController should block an eviction until the PDB is updated to allow it [Conformance]"
merge "$policy/poddisruptionbudgets/watched" '{"spec":{"minAvailable":3}}' >/dev/null
check "none may go" until_true 20 is pdb/watched .status.disruptionsAllowed 0
one=$(pods app=guarded | cut -d' ' -f1)
expect "an eviction is refused" 429 evict "$one"
expect_match "with the reason" 'DisruptionBudget' send POST "$core/pods/$one/eviction" '{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"'"$one"'"}}'
merge "$policy/poddisruptionbudgets/watched" '{"spec":{"minAvailable":2}}' >/dev/null
check "one may go now" until_true 20 is pdb/watched .status.disruptionsAllowed 1
expect "and does" 201 evict "$one"
check "it goes" until_true 20 is_gone "$core/pods/$one"
drop rs guarded; k delete pdb watched >/dev/null

# ---- an unreachable node and its pods (not a line of the suite: those require disconnecting a node) ----
echo "# a node that falls silent"
tolerates_for() { echo "{key: node.kubernetes.io/$1, operator: Exists, effect: NoExecute, tolerationSeconds: $2}"; }
hollow far --labels kind=hollow --renew 1 || exit 1
k apply -f - >/dev/null <<Y
{apiVersion: apps/v1, kind: Deployment, metadata: {name: moved}, spec: {selector: {matchLabels: {app: moved}}, template: {metadata: {labels: {app: moved}},
  spec: {nodeSelector: {kind: hollow}, tolerations: [$(tolerates_for unreachable 2), $(tolerates_for not-ready 2)], $sleeper}}}}
Y
k apply -f - >/dev/null <<<'{apiVersion: v1, kind: Service, metadata: {name: moved}, spec: {selector: {app: moved}, ports: [{port: 80}]}}'
check "a pod runs on it" until_true 20 all_ready deployment/moved 1
one=$(pods app=moved)
ready_ends() { k get endpointslices -l kubernetes.io/service-name=moved -o 'jsonpath={range .items[*]}{.endpoints[*].conditions.ready}{end}'; }
check "and is an endpoint" until_true 10 eval '[ "$(ready_ends)" = true ]'
hollow_signal far USR1
condition() { at node/far ".status.conditions[?(@.type==\"$1\")].$2"; }
check "silent, it is not ready" until_true 30 eval '[ "$(condition Ready status) $(condition Ready reason)" = "Unknown NodeStatusUnknown" ]'
expect "nothing is known of its memory" Unknown condition MemoryPressure status
check "its pod is no endpoint any more" until_true 10 eval '[ "$(ready_ends)" != true ]'
check "and is asked to go when its time is over" until_true 20 eval '[ -n "$(at "pod/$one" .metadata.deletionTimestamp)" ]'
expect "for a reason" DeletionByTaintManager at "pod/$one" '.status.conditions[?(@.type=="DisruptionTarget")].reason'
soon expect_match "that an event tells" "TaintManagerEviction.*Marking for deletion Pod default/$one" k get events
expect "this machine's node is none the worse" True at node/edge '.status.conditions[?(@.type=="Ready")].status'
hollow_signal far USR2
check "it speaks again" until_true 30 eval '[ "$(condition Ready status)" = True ]'
check "without taints" until_true 20 eval '[ -z "$(at node/far .spec.taints)" ]'
check "and runs another pod" until_true 30 all_ready deployment/moved 1
k annotate node far hollow/conditions=DiskPressure=True,MemoryPressure=True >/dev/null
check "what presses it is a taint" until_true 20 eval '[ "$(at node/far ".spec.taints[*].key" | tr " " "\n" | sort | xargs)" = "node.kubernetes.io/disk-pressure node.kubernetes.io/memory-pressure" ]'
expect "no event is on the disk" "" eval 'k create configmap written >/dev/null; cat "$T"/state/state.db* | grep -ao TaintManagerEviction'
drop deployment moved
hollow_leave far
expect_fail "it leaves, and is no node any more" 'nodes "far" not found' k get node far
