#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# coraclectl why: the reason why an object is not in its desired state, down to the cause, on a daemon with real pods.
# for: ctl/why daemon/scheduler/decide
. "$(dirname "$0")/lib.sh"
start_machine

deployment() {  # deployment NAME CONTAINER-FIELDS [POD-FIELDS]
  c apply -f - <<Y
{apiVersion: apps/v1, kind: Deployment, metadata: {name: $1}, spec: {selector: {matchLabels: {app: $1}}, template: {metadata: {labels: {app: $1}}, spec: {${3:-}
  terminationGracePeriodSeconds: 0, containers: [{name: c, image: "localhost/busybox:latest", command: [sleep, "100000"] $2}]}}}}
Y
}
says() { c why "$1" | grep -Eq -- "$2"; }
told() { local what=$1 name=$2; shift 2; check "$name" until_true 20 says "$what" "$@"; [ -z "${SHOW:-}" ] || c why "$what" | sed 's/^/#   /'; }

echo "# a pod that is too large"
deployment large ', resources: {requests: {cpu: "500"}}' >/dev/null
told deployment/large "the pod of a Deployment that does not fit" '^ +pod/large-.*on no node'
told deployment/large "which filter refused it, and by how much" 'NodeResourcesFit +Insufficient cpu.*500'
told deployment/large "and what would cure it" '→ '
soon expect_match "the event has Kubernetes' words" "FailedScheduling.*0/1 nodes are available: 1 Insufficient cpu" c get events
echo "# a pod that wants another node"
deployment elsewhere '' 'nodeSelector: {disk: ssd},' >/dev/null
told deployment/elsewhere "the selector that no node matches" "NodeAffinity +node\(s\) didn't match Pod's node affinity/selector"
echo "# a pod that stands where it should"
deployment fine '' >/dev/null
check "it runs" c rollout status deployment fine --timeout=120s
pod=$(c get pods -l app=fine -o 'jsonpath={.items[0].metadata.name}')
told "pod/$pod" "filters that passed" 'TaintToleration +ok'
told "pod/$pod" "and the scores of its node" 'ImageLocality +[0-9]+ +[0-9]+ +1 +[0-9]+'
echo "# an image that is not there"
deployment imageless ', image: "127.0.0.1:1/none:1"' >/dev/null 2>&1 || deployment imageless '' >/dev/null
c set image deployment/imageless c=127.0.0.1:1/none:1 >/dev/null
told deployment/imageless "the container that waits for it" 'container c: waits: (ErrImagePull|ImagePullBackOff)'
told deployment/imageless "what to do without a network" 'coraclectl image import'
echo "# a probe that does not pass"
deployment unready ', readinessProbe: {exec: {command: ["false"]}, periodSeconds: 1}' >/dev/null
told deployment/unready "the probe" 'its readiness probe does not pass'
told deployment/unready "and what it said" 'event Unhealthy: Readiness probe'
echo "# a user who may not read events"
c create role watcher --verb=get,list --resource=pods,deployments.apps,replicasets.apps >/dev/null
c create rolebinding watcher --role=watcher --user=ann >/dev/null
expect_match "is told so" "not shown: events is forbidden: User \"ann\" cannot list" c --as=ann why deployment/unready
expect_match "and the rest" "its readiness probe does not pass" c --as=ann why deployment/unready
echo "# a quota that is used up"
c create namespace small >/dev/null
c -n small create quota few --hard=pods=1 >/dev/null
c -n small apply -f - >/dev/null <<'Y'
{apiVersion: apps/v1, kind: Deployment, metadata: {name: many}, spec: {replicas: 2, selector: {matchLabels: {app: many}}, template: {metadata: {labels: {app: many}},
  spec: {terminationGracePeriodSeconds: 0, containers: [{name: c, image: "localhost/busybox:latest", command: [sleep, "100000"]}]}}}}
Y
limited() { c -n small why deployment many | grep -Eq 'exceeded quota: few.*limited: pods=1'; }
check "the quota, from the ReplicaSet's condition" until_true 20 limited
echo "# a command that always fails"
deployment crashing '' >/dev/null; c patch deployment crashing -p '{"spec":{"template":{"spec":{"containers":[{"name":"c","command":["sh","-c","echo no luck; exit 7"]}]}}}}' >/dev/null
told deployment/crashing "how it ended" 'it ended before with 7, Error'
told deployment/crashing "where its last words are" 'coraclectl logs crashing-.* -c c --previous'
echo "# a service that nobody stands behind"
c create service clusterip nobody --tcp=80:80 >/dev/null
told service/nobody "says that no pod has its labels" 'no pod has these labels'
echo "# a volume that cannot be made"
c apply -f - >/dev/null <<'Y'
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: filled}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}},
  dataSource: {apiGroup: snapshot.storage.k8s.io, kind: VolumeSnapshot, name: none}}}
Y
deployment waits '' 'volumes: [{name: d, persistentVolumeClaim: {claimName: filled}}],' >/dev/null
told deployment/waits "which claim its pod waits for, and why" 'waits for a volume for the claim filled: failed to provision volume .*not from a VolumeSnapshot'
echo "# what is asked wrong"
expect_fail "a pod that is not there" 'pod "nope" not found' c why pod nope
expect_fail "nothing named" 'why what|required' c why pods
expect_fail "a kind that there is not" "resource type" c why nonsense x
echo "1..$test_number"
