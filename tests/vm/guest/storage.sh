# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Words for tests/vm/storage.sh: a disk of its own for volumes, which counts by projects.
volumes=/srv/volumes
disk_of_volumes() { mkdir -p $volumes && modprobe loop && { [ -e /root/volumes.img ] || { truncate -s "${1}M" /root/volumes.img && mke2fs -q -F -t ext4 -O quota,project -E quotatype=prjquota /root/volumes.img; }; } && mount -o loop,prjquota /root/volumes.img $volumes; }
claim() { echo "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: $1}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: $2}}}}" | coraclectl apply -f - ; }
pod() {  # pod NAME CLAIM COMMAND
  coraclectl apply -f - <<Y
{apiVersion: v1, kind: Pod, metadata: {name: $1}, spec: {terminationGracePeriodSeconds: 1, containers: [{name: c, image: localhost/busybox:latest,
  imagePullPolicy: Never, command: [/bin/busybox, sh, -c, '$3'], volumeMounts: [{name: data, mountPath: /data}]}], volumes: [{name: data, persistentVolumeClaim: {claimName: $2}}]}}
Y
}
in_pod() { coraclectl exec "$1" -- /bin/busybox sh -c "$2"; }
# fills POD MEBIBYTES: how much of so much it can write, in MiB.
fills() { in_pod "$1" "/bin/busybox dd if=/dev/zero of=/data/filler bs=1048576 count=$2 2>/dev/null; /bin/busybox du -m /data/filler | /bin/busybox cut -f1"; }
events_of() { coraclectl get events --field-selector "involvedObject.name=$1" -o 'jsonpath={range .items[*]}{.reason}: {.message}{"\n"}{end}'; }
block_claim() {  # a claim that is a block device, and the pod "raw" that has it as /dev/disk
  truncate -s 8M /root/block.img
  coraclectl apply -f - <<Y
{apiVersion: v1, kind: PersistentVolume, metadata: {name: block}, spec: {capacity: {storage: 8Mi}, accessModes: [ReadWriteOnce], volumeMode: Block, storageClassName: by-hand,
  persistentVolumeReclaimPolicy: Retain, local: {path: $(losetup -f --show /root/block.img)}, nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: Exists}]}]}}}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: block}, spec: {accessModes: [ReadWriteOnce], volumeMode: Block, storageClassName: by-hand, resources: {requests: {storage: 8Mi}}}}
---
{apiVersion: v1, kind: Pod, metadata: {name: raw}, spec: {terminationGracePeriodSeconds: 1, containers: [{name: c, image: localhost/busybox:latest, imagePullPolicy: Never,
  command: [/bin/busybox, sh, -c, "sleep 1000000"], volumeDevices: [{name: data, devicePath: /dev/disk}]}], volumes: [{name: data, persistentVolumeClaim: {claimName: block}}]}}
Y
}
