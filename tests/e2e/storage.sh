#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Claims and their volumes over the life of pods and the daemon, as a user with a claim and a pod sees them.
# for: daemon/volume daemon/controller/storage/volume_binder daemon/controller/storage/ephemeral_volumes daemon/node/volume/volumes daemon/scheduler/plugins/volumes runtime/sys/project_quota
. "$(dirname "$0")/lib.sh"
start_machine

apply() { c apply -f - >"$T/apply.log" 2>&1; }
claim() {  # claim NAME [MORE OF THE SPEC]
  apply <<Y
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: $1}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}${2:+, $2}}}
Y
}
pod() {  # pod NAME CLAIM COMMAND [MORE OF THE SPEC]
  apply <<Y
{apiVersion: v1, kind: Pod, metadata: {name: $1}, spec: {terminationGracePeriodSeconds: 1${4:+, $4},
  containers: [{name: c, image: localhost/busybox:latest, command: [sh, -c, "$3"], volumeMounts: [{name: data, mountPath: /data}]}],
  volumes: [{name: data, persistentVolumeClaim: {claimName: $2}}]}}
Y
}
is() { [ "$(c get "${@:2}" 2>/dev/null)" = "$1" ]; }
phase() { is "$3" "$1" "$2" -o 'jsonpath={.status.phase}'; }
event() { c get events --field-selector "involvedObject.name=$1" -o 'jsonpath={range .items[*]}{.reason}: {.message}{"\n"}{end}'; }
stays() { sleep 1; c get pvc "${1:-data}" >/dev/null; }  # stays CLAIM: waits, since there is no event for "nothing happens"
gone() { is_absent "$@"; }
volumes=$T/state/volumes

expect "a daemon without volumes has no thread for them" "" eval 'cat /proc/"$daemon_pid"/task/*/comm | grep -x storage'

echo "# the default class, without any configuration"
expect "there is a default class" "true" c get storageclass directory -o 'jsonpath={.metadata.annotations.storageclass\.kubernetes\.io/is-default-class}'
check "a claim is taken" claim data
check "and waits for its first pod" until_true 10 phase pvc data Pending
soon expect_match "saying so" 'WaitForFirstConsumer: waiting for first consumer to be created before binding' event data
check "nothing is made for it yet" sh -c "! ls $volumes/* >/dev/null 2>&1"
check "a pod is taken that writes into it" pod writer data 'echo kept >/data/file && sleep 1000'
check "and runs" until_true 20 phase pod writer Running
check "its claim is bound" until_true 10 phase pvc data Bound
volume=$(c get pvc data -o 'jsonpath={.spec.volumeName}')
check "its volume too" phase pv "$volume" Bound
place=$(c get pv "$volume" -o 'jsonpath={.spec.local.path}')
expect "a person finds the directory by its name" "$volumes/default_data_$(c get pvc data -o 'jsonpath={.metadata.uid}')" echo "$place"
soon expect "and the file in it" kept cat "$place/file"
expect_match "get shows both" "^data +Bound +$volume +1Gi +RWO +directory " c get pvc data

soon expect_match "top says how full it is" "^data +[0-9]+[KMG]i +[0-9]+[KMG]?i? +[0-9]+[KMG]i +[0-9]+%" c top volumes
soon expect_match "and Prometheus may know" '^kubelet_volume_stats_used_bytes\{namespace="default",persistentvolumeclaim="data"\} ' c get --raw /metrics

c apply -f - >/dev/null <<'Y'
{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: careful}, provisioner: coracle.io/directory, volumeBindingMode: WaitForFirstConsumer, mountOptions: [noexec, nodev]}
Y
claim careful 'storageClassName: careful'; pod careful careful 'cp /bin/busybox /data/; /data/busybox true 2>/data/said; sleep 1000'
soon expect_match "a class's mount options hold: nothing in the volume is executed" 'Permission denied' c exec careful -- cat /data/said
c delete pod careful >/dev/null; c delete pvc careful >/dev/null

echo "# data outlives its pods, and the daemon"
check "the claim is deleted while the pod runs" c delete pvc data --wait=false
check "and stays" stays
expect "it is being deleted" "kubernetes.io/pvc-protection" c get pvc data -o 'jsonpath={.metadata.finalizers[0]}'
kill_daemon; start_daemon
check "after a SIGKILL the pod still has it" until_true 10 eval '[ "$(c exec writer -- cat /data/file)" = kept ]'
check "the pod is deleted" c delete pod writer
check "then the claim goes" until_true 10 gone pvc data
check "and its volume" until_true 10 gone pv "$volume"
check "and the data" until_true 10 sh -c "! ls -A $volumes | grep -vx -e .coracle -e .coracle.projects | grep -q ."
claim kept; pod one kept 'echo 1 >>/data/file; sleep 1000'
check "another pod writes" until_true 20 phase pod one Running
until_true 5 c exec one -- cat /data/file
c delete pod one >/dev/null
pod two kept 'echo 2 >>/data/file; cat /data/file; sleep 1000'
check "the next pod runs" until_true 20 phase pod two Running
soon expect "and finds what the first one wrote" "1
2" c logs two

echo "# people's own volumes"
mkdir -p "$T/disk/big" "$T/disk/small"
for size in big:10Gi small:2Gi; do
  apply <<Y
{apiVersion: v1, kind: PersistentVolume, metadata: {name: ${size%:*}}, spec: {capacity: {storage: ${size#*:}}, accessModes: [ReadWriteOnce],
  persistentVolumeReclaimPolicy: Retain, storageClassName: by-hand, hostPath: {path: $T/disk/${size%:*}}}}
Y
done
claim mine 'storageClassName: by-hand'
check "the smallest that suits is bound at once" until_true 10 is small pvc mine -o 'jsonpath={.spec.volumeName}'
pod user mine 'echo x >/data/file; sleep 1000'
check "a pod uses it" until_true 20 phase pod user Running
check "its file is on the disk" until_true 5 test -s "$T/disk/small/file"
c delete pod user >/dev/null; c delete pvc mine >/dev/null
check "without its claim the volume is released" until_true 10 phase pv small Released
check "and what is in it stays" test -s "$T/disk/small/file"
apply <<Y
{apiVersion: v1, kind: PersistentVolume, metadata: {name: worn}, spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce],
  persistentVolumeReclaimPolicy: Recycle, storageClassName: worn, hostPath: {path: $T/disk/small}}}
Y
claim worn 'storageClassName: worn'
check "a volume that is to be recycled is bound" until_true 10 phase pvc worn Bound
c delete pvc worn >/dev/null
check "nobody recycles it: it fails" until_true 10 phase pv worn Failed
soon expect_match "and says so" '^VolumeFailedRecycle: No recycler plugin found for the volume! Set persistentVolumeReclaimPolicy to' event worn
check "what is in it stays" test -s "$T/disk/small/file"
c delete pv worn >/dev/null

echo "# what cannot be"
pod lost nowhere 'sleep 1000'
soon expect_match "a pod without its claim says which" 'persistentvolumeclaim "nowhere" not found' event lost
claim never 'storageClassName: gone'
soon expect_match "a claim of no class says so" 'storageclass.storage.k8s.io "gone" not found' event never
rm -rf "$(c get pv "$(c get pvc kept -o 'jsonpath={.spec.volumeName}')" -o 'jsonpath={.spec.local.path}')"
c delete pod two >/dev/null; pod three kept 'sleep 1000'
soon expect_match "a directory that is gone is named, and not made anew" 'path ".*default_kept_.*" does not exist' event three

echo "# a volume of another node"
mkdir -p "$T/disk/afar"
apply <<Y
{apiVersion: v1, kind: PersistentVolume, metadata: {name: afar}, spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], storageClassName: "",
  local: {path: $T/disk/afar}, nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [elsewhere]}]}]}}}}
Y
claim afar 'storageClassName: "", volumeName: afar'
check "a claim may have one" until_true 10 phase pvc afar Bound
pod sent afar 'sleep 1000' 'nodeName: edge'
soon expect_match "a pod that names this node does not get what is at its path here" '^FailedMount: MountVolume.NodeAffinity check failed for volume "afar" : no matching NodeSelectorTerms' event sent
pod asks afar 'sleep 1000'
soon expect_match "and one that does not is told" "^FailedScheduling: .*1 node\(s\) didn't match PersistentVolume's node affinity" event asks
c delete pod sent asks >/dev/null; c delete pvc afar >/dev/null; c delete pv afar >/dev/null

echo "# a claim that grows, for a program that is not root"
claim grows
pod worker grows 'id; touch /data/mine && stat -c %g:%a /data /data/mine; sleep 1000' 'securityContext: {runAsUser: 1000, runAsNonRoot: true, fsGroup: 2000}'
check "it runs" until_true 20 phase pod worker Running
soon expect_match "and what it writes is the pod's group's" '^2000:644$' c logs worker
expect_match "in a directory that is too" '^2000:2777$' c logs worker
check "it asks for more" c patch pvc grows --type=merge -p '{"spec":{"resources":{"requests":{"storage":"3Gi"}}}}'
check "and gets it" until_true 10 is 3Gi pvc grows -o 'jsonpath={.status.capacity.storage}'
expect "the volume says so too" 3Gi c get pv "$(c get pvc grows -o 'jsonpath={.spec.volumeName}')" -o 'jsonpath={.spec.capacity.storage}'
expect "nothing of it is under way any more" 3Gi c get pvc grows -o 'jsonpath={.status.allocatedResources.storage}{.status.allocatedResourceStatuses}{.status.conditions}'
soon expect_match "the events tell of it" '^VolumeResizeSuccessful: Resize volume succeeded$' event grows
expect_fail "less is refused" 'spec.resources.requests.storage: Forbidden' c patch pvc grows --type=merge -p '{"spec":{"resources":{"requests":{"storage":"1Gi"}}}}'

echo "# a StatefulSet's claims"
apply <<Y
{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db}, spec: {serviceName: db, replicas: 2, selector: {matchLabels: {app: db}},
  persistentVolumeClaimRetentionPolicy: {whenScaled: Delete, whenDeleted: Retain},
  template: {metadata: {labels: {app: db}}, spec: {terminationGracePeriodSeconds: 1, containers: [{name: c, image: localhost/busybox:latest,
    command: [sh, -c, 'hostname >>/data/names; sleep 1000'], volumeMounts: [{name: data, mountPath: /data}]}]}},
  volumeClaimTemplates: [{metadata: {name: data}, spec: {storageClassName: local-path, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]}}
Y
check "both pods run" until_true 30 is 2 statefulset db -o 'jsonpath={.status.readyReplicas}'
c delete pod db-0 >/dev/null
check "one begins anew" until_true 30 eval '[ "$(c exec db-0 -- cat /data/names)" = "db-0
db-0" ]'
c scale statefulset db --replicas=1 >/dev/null
check "what is not needed goes" until_true 20 gone pvc data-db-1
c delete statefulset db >/dev/null
until_true 20 gone pod db-0
check "what is kept stays" phase pvc data-db-0 Bound

echo "# a pod's own claim"
apply <<Y
{apiVersion: v1, kind: Pod, metadata: {name: own}, spec: {terminationGracePeriodSeconds: 1,
  containers: [{name: c, image: localhost/busybox:latest, command: [sleep, "1000"], volumeMounts: [{name: scratch, mountPath: /data}]}],
  volumes: [{name: scratch, ephemeral: {volumeClaimTemplate: {metadata: {labels: {of: own}}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}}]}}
Y
check "it runs" until_true 20 phase pod own Running
expect "its claim is named after it" own-scratch c get pvc -l of=own -o 'jsonpath={.items[*].metadata.name}'
c delete pod own >/dev/null
check "and goes with it" until_true 20 gone pvc own-scratch

echo "# who keeps a claim"
claim ended
pod ended ended 'echo kept >/data/file' 'restartPolicy: Never'
check "a pod ends" until_true 20 phase pod ended Succeeded
c delete pvc ended --wait=false >/dev/null
check "its claim stays as long as it is there" stays ended
c delete pod ended >/dev/null
check "and no longer" until_true 10 gone pvc ended
claim bare
c patch pvc bare --type=merge -p '{"metadata":{"finalizers":null}}' >/dev/null
check "what protects a claim cannot be taken from it" until_true 10 is kubernetes.io/pvc-protection pvc bare -o 'jsonpath={.metadata.finalizers[0]}'
c delete pvc bare >/dev/null

echo "# killed at any moment"
rounds=5
[ "${CORACLE_LONG:-0}" = 0 ] || rounds=200
nap() { sleep "0.$(printf %03d $((RANDOM % 300)))"; }
ends() {  # ends CLAIM: waits until it, its volume and its data are gone
  local claims
  gone pvc "$1" && claims=$(c get pv -o 'jsonpath={range .items[*]}{.spec.claimRef.name}{"\n"}{end}') && ! grep -qx "$1" <<<"$claims" && ! ls -A "$volumes" | grep -q "_$1_"
}
written() { [ "$(c exec "k$1" -- cat /data/file)" = "$1" ]; }
wrong=
for i in $(seq $rounds); do
  claim "k$i"; pod "k$i" "k$i" "echo $i >>/data/file; sleep 1000"
  nap; kill_daemon; start_daemon
  until_true 20 phase pod "k$i" Running
  until_true 5 written "$i" || wrong="$wrong k$i:data"
  c delete pod "k$i" --wait=false >/dev/null; c delete pvc "k$i" --wait=false >/dev/null
  nap; kill_daemon; start_daemon
  until_true 20 ends "k$i" || wrong="$wrong k$i:stays"
done
expect "$rounds claims made and deleted through twice as many kills: each had its data, and left nothing" "" echo "$wrong"
