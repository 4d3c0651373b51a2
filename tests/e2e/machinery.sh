#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The API machinery together with its controllers: the lines of Kubernetes' conformance suite about garbage collection and
# namespaces, each under its name. Lines that need no controllers are in tests/daemon/api/conformance_test.cc.
# for: daemon/controller/garbage/garbage daemon/controller/namespace/namespace daemon/registry daemon/api/discovery daemon/api/watch store/engine daemon/informer daemon/queue
. "$(dirname "$0")/lib.sh"
start_machine

admin() { in_ns curl -s --cacert "$T/ca.crt" --cert "$T/admin.crt" --key "$T/admin.key" --max-time 60 "$@"; }
field() { sed -n "s/.*$1: *\"\{0,1\}\([^\" ]*\).*/\1/p" "$T/etc/admin.kubeconfig" | head -n 1 | base64 -d > "$2"; }
field certificate-authority-data "$T/ca.crt"; field client-certificate-data "$T/admin.crt"; field client-key-data "$T/admin.key"
api=https://127.0.0.1:6443
apps=$api/apis/apps/v1/namespaces/default
code() { admin -o /dev/null -w '%{http_code}' "$@"; }
is() { [ "$(code "$2")" = "$1" ]; }                       # is CODE URL
delete() { admin -X DELETE -H 'Content-Type: application/json' -d "$2" "$1"; }
# count URL: number of items of a list in pretty-printed JSON; nothing if there is no list
count() { local list; list=$(admin --fail "$1") && grep -c '^      "metadata": {' <<<"$list"; }
none() { [ "$(count "$1")" = 0 ]; }
some() { [ "$(count "$1")" -gt 0 ]; }
# lacks URL FIELD: what is there has no such field
lacks() { local there; there=$(admin "$1") && grep -q '"uid"' <<<"$there" && ! grep -q "$2" <<<"$there"; }

deployment() {
  c apply -f - >/dev/null <<EOF
{apiVersion: apps/v1, kind: Deployment, metadata: {name: $1}, spec: {replicas: 2, selector: {matchLabels: {app: $1}},
  template: {metadata: {labels: {app: $1}}, spec: {terminationGracePeriodSeconds: 0, containers: [{name: c, image: localhost/busybox:latest, command: [sleep, "1000"]}]}}}}
EOF
}

echo "# [sig-api-machinery] Garbage collector should delete RS created by deployment when not orphaning [Conformance]"
deployment one
check "a deployment has a replica set" until_true 20 some "$apps/replicasets?labelSelector=app%3Done"
delete "$apps/deployments/one" '{"propagationPolicy":"Background"}' >/dev/null
check "which goes when its deployment has gone" until_true 20 none "$apps/replicasets?labelSelector=app%3Done"
check "and so do the pods" until_true 30 none "$api/api/v1/namespaces/default/pods?labelSelector=app%3Done"

echo "# [sig-api-machinery] Garbage collector should orphan RS created by deployment when deleteOptions.PropagationPolicy is Orphan [Conformance]"
deployment two
until_true 20 some "$apps/replicasets?labelSelector=app%3Dtwo"
delete "$apps/deployments/two" '{"propagationPolicy":"Orphan"}' >/dev/null
check "the deployment goes" until_true 20 is 404 "$apps/deployments/two"
check "its replica set stays" some "$apps/replicasets?labelSelector=app%3Dtwo"
check "without an owner" lacks "$apps/replicasets?labelSelector=app%3Dtwo" ownerReferences
delete "$apps/replicasets?labelSelector=app%3Dtwo" '{"propagationPolicy":"Foreground"}' >/dev/null
check "and goes in the foreground, its pods first" until_true 30 none "$apps/replicasets?labelSelector=app%3Dtwo"
check "with nothing left" none "$api/api/v1/namespaces/default/pods?labelSelector=app%3Dtwo"

pods=$api/api/v1/namespaces/default/pods
controllers=$api/api/v1/namespaces/default/replicationcontrollers
rc() {  # rc NAME [FINALIZERS-OF-ITS-PODS]
  c apply -f - >/dev/null <<EOF
{apiVersion: v1, kind: ReplicationController, metadata: {name: $1}, spec: {replicas: 4, selector: {rc: $1},
  template: {metadata: {labels: {rc: $1}, finalizers: [${2:-}]}, spec: {terminationGracePeriodSeconds: 0,
    containers: [{name: c, image: localhost/busybox:latest, command: [sleep, "1000"]}]}}}}
EOF
}
of() { echo "$pods?labelSelector=rc%3D$1"; }
has_pods() { [ "$(count "$(of "$1")")" = "$2" ]; }
names_of() { k get pods -l "rc=$1" -o 'jsonpath={.items[*].metadata.name}'; }
owners() { k get pod "$1" -o 'jsonpath={range .metadata.ownerReferences[*]}{.name}{"\n"}{end}' | sort; }
release() { admin -X PATCH -H 'Content-Type: application/merge-patch+json' -d '{"metadata":{"finalizers":null}}' "$1" >/dev/null; }
deleting() { admin "$1" | grep -q deletionTimestamp; }

echo "# [sig-api-machinery] Garbage collector should delete pods created by rc when not orphaning [Conformance]"
rc simple
check "a replication controller makes its pods" until_true 20 has_pods simple 4
delete "$controllers/simple" '{"propagationPolicy":"Background"}' >/dev/null
check "they go when it has gone" until_true 30 has_pods simple 0
check "and it is gone" is 404 "$controllers/simple"

echo "# [sig-api-machinery] Garbage collector should orphan pods created by rc if delete options say so [Serial] [Conformance]"
rc orphans
check "a replication controller makes its pods" until_true 20 has_pods orphans 4
before=$(names_of orphans)
delete "$controllers/orphans" '{"propagationPolicy":"Orphan"}' >/dev/null
check "it goes" until_true 20 is 404 "$controllers/orphans"
check "its pods are without an owner" eval 'for one in $before; do [ -z "$(owners "$one")" ] || exit 1; done'
# The collector handles deletions in order: once this one is done, the earlier ones are too.
rc after; until_true 20 has_pods after 4; delete "$controllers/after" '{"propagationPolicy":"Background"}' >/dev/null; until_true 30 has_pods after 0
expect "and stay" "$before" names_of orphans
admin -X DELETE "$(of orphans)" >/dev/null

echo "# [sig-api-machinery] Garbage collector should keep the rc around until all its pods are deleted if the deleteOptions says so [Serial] [Conformance]"
rc waits example.com/hold
check "a replication controller makes its pods" until_true 20 has_pods waits 4
all=$(names_of waits); last=${all##* }
delete "$controllers/waits" '{"propagationPolicy":"Foreground"}' >/dev/null
check "its pods are asked to go" until_true 20 deleting "$pods/$last"
for one in ${all% *}; do until_true 10 deleting "$pods/$one"; release "$pods/$one"; done
check "one is left" until_true 20 has_pods waits 1
check "and the controller with it" deleting "$controllers/waits"
release "$pods/$last"
check "then it goes as well" until_true 20 is 404 "$controllers/waits"
check "with no pod left" has_pods waits 0

echo "# [sig-api-machinery] Garbage collector should not delete dependents that have both valid owner and owner that's waiting for dependents to be deleted [Serial] [Conformance]"
rc goes; rc stays
check "two replication controllers make their pods" until_true 20 eval 'has_pods goes 4 && has_pods stays 4'
uid=$(k get rc stays -o 'jsonpath={.metadata.uid}')
shared=$(names_of goes | cut -d' ' -f1,2)
for one in $shared; do
  admin -o /dev/null -X PATCH -H 'Content-Type: application/strategic-merge-patch+json' "$pods/$one" \
    -d '{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ReplicationController","name":"stays","uid":"'"$uid"'"}]}}'
done
expect "two pods of the one are the other's too" "goes stays" eval 'echo $(owners "${shared% *}")'
delete "$controllers/goes" '{"propagationPolicy":"Foreground"}' >/dev/null
check "the one goes" until_true 30 is 404 "$controllers/goes"
expect "and leaves what the other has" "$shared" names_of goes
expect "which it has alone" "stays stays" eval 'echo $(for one in $shared; do owners "$one"; done)'
delete "$controllers/stays" '{"propagationPolicy":"Background"}' >/dev/null
check "until it goes itself" until_true 30 eval 'has_pods goes 0 && has_pods stays 0'

echo "# [sig-api-machinery] Garbage collector should not be blocked by dependency circle [Conformance]"
for one in 1 2 3; do
  c apply -f - >/dev/null <<EOF
{apiVersion: v1, kind: Pod, metadata: {name: ring$one, labels: {rc: ring}}, spec: {terminationGracePeriodSeconds: 0,
  containers: [{name: c, image: localhost/busybox:latest, command: [sleep, "1000"]}]}}
EOF
done
owned_by() {  # owned_by POD OWNER
  admin -o /dev/null -X PATCH -H 'Content-Type: application/strategic-merge-patch+json' "$pods/$1" -d '{"metadata":{"ownerReferences":[{"apiVersion":"v1",
    "kind":"Pod","name":"'"$2"'","uid":"'"$(k get pod "$2" -o 'jsonpath={.metadata.uid}')"'","controller":true,"blockOwnerDeletion":true}]}}'
}
owned_by ring1 ring3; owned_by ring2 ring1; owned_by ring3 ring2
expect "three pods own each other" "ring3 ring1 ring2" eval 'echo $(owners ring1) $(owners ring2) $(owners ring3)'
delete "$pods/ring1" '{"propagationPolicy":"Foreground"}' >/dev/null
check "all go when one does" until_true 30 has_pods ring 0

space() { c create namespace "$1" >/dev/null; until_true 10 is 200 "$api/api/v1/namespaces/$1/serviceaccounts/default"; }
pod() {  # pod NAMESPACE NAME [FINALIZERS]
  c apply -f - >/dev/null <<EOF
{apiVersion: v1, kind: Pod, metadata: {name: $2, namespace: $1, finalizers: [${3:-}]}, spec: {terminationGracePeriodSeconds: 0,
  containers: [{name: c, image: localhost/busybox:latest, command: [sleep, "1000"]}]}}
EOF
}

echo "# [sig-api-machinery] Namespaces [Serial] should ensure that all pods are removed when a namespace is deleted [Conformance]"
space with-pods; pod with-pods p
running() { admin "$1" | grep -q '"phase": "Running"'; }
check "a pod runs" until_true 30 running "$api/api/v1/namespaces/with-pods/pods/p"
delete "$api/api/v1/namespaces/with-pods" '{}' >/dev/null
check "the namespace goes" until_true 40 is 404 "$api/api/v1/namespaces/with-pods"
space with-pods
check "made again, it is empty" none "$api/api/v1/namespaces/with-pods/pods"

echo "# [sig-api-machinery] Namespaces [Serial] should ensure that all services are removed when a namespace is deleted [Conformance]"
space with-services
c apply -f - >/dev/null <<<'{apiVersion: v1, kind: Service, metadata: {name: s, namespace: with-services}, spec: {selector: {a: b}, ports: [{port: 80}]}}'
delete "$api/api/v1/namespaces/with-services" '{}' >/dev/null
check "the namespace goes" until_true 40 is 404 "$api/api/v1/namespaces/with-services"
space with-services
check "made again, it has no services" none "$api/api/v1/namespaces/with-services/services"

echo "# [sig-api-machinery] OrderedNamespaceDeletion namespace deletion should delete pod first [Conformance]"
space ordered; pod ordered p example.com/hold
check "a pod runs" until_true 30 running "$api/api/v1/namespaces/ordered/pods/p"
c apply -f - >/dev/null <<<'{apiVersion: v1, kind: ConfigMap, metadata: {name: m, namespace: ordered, finalizers: [example.com/hold]}}'
delete "$api/api/v1/namespaces/ordered" '{}' >/dev/null
check "the pod is asked to go" until_true 20 deleting "$api/api/v1/namespaces/ordered/pods/p"
sleep 3
check "while it is there, the rest is left alone" lacks "$api/api/v1/namespaces/ordered/configmaps/m" deletionTimestamp
expect "nothing new is made in what is ending" 403 code -X POST -H 'Content-Type: application/json' -d '{"metadata":{"name":"late"}}' "$api/api/v1/namespaces/ordered/configmaps"
reports() { admin "$api/api/v1/namespaces/ordered" | grep -q -- "$1"; }
check "the namespace is ending" reports '"phase": "Terminating"'
check "and says how its contents' deletion goes" until_true 10 reports '"type": "NamespaceDeletionContentFailure"'
check "the namespace says what remains" until_true 10 reports 'Some resources are remaining: pods. has 1 resource instances'
check "and what holds it" reports 'Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances'
release "$api/api/v1/namespaces/ordered/pods/p"
check "then the rest is asked to go" until_true 20 deleting "$api/api/v1/namespaces/ordered/configmaps/m"
release "$api/api/v1/namespaces/ordered/configmaps/m"
check "and the namespace goes" until_true 30 is 404 "$api/api/v1/namespaces/ordered"

metrics=$(admin "$api/metrics")
for line in 'workqueue_adds_total[{]name="replicaset"[}] [1-9]' 'workqueue_depth[{]name="deployment"[}] [0-9]' 'workqueue_work_duration_seconds_count[{]name="replicationcontroller"[}] [1-9]' \
  'workqueue_queue_duration_seconds_bucket[{]name="replicaset",le="[+]Inf"[}] [1-9]' 'process_open_fds [1-9]' 'process_max_fds [1-9]'; do
  check "/metrics has $line" grep -Eq "^$line" <<<"$metrics"
done
