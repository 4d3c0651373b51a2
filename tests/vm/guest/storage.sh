# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Functions for tests/vm/storage.sh: a disk of its own for volumes, with project quotas, and an NFS server.
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
# fills POD MEBIBYTES: prints how much of that it can write, in MiB.
fills() { in_pod "$1" "/bin/busybox dd if=/dev/zero of=/data/filler bs=1048576 count=$2 2>/dev/null; /bin/busybox du -m /data/filler | /bin/busybox cut -f1"; }
# held_to MEBIBYTES POD: the pod can write so much and no more; sets "got".
held_to() { got=$(fills "$2" 64); echo "measured: $got of $1 MiB"; [ "$got" -le "$1" ]; }
capacity_is() { is "$(coraclectl get pvc "$1" -o 'jsonpath={.status.capacity.storage}')" "$2"; }
has_event() { events_of "$1" | grep "$2"; }
events_of() { coraclectl get events --field-selector "involvedObject.name=$1" -o 'jsonpath={range .items[*]}{.reason}: {.message}{"\n"}{end}'; }
place_of() { coraclectl get pv "$(coraclectl get pvc "$1" -o 'jsonpath={.spec.volumeName}')" -o 'jsonpath={.spec.local.path}'; }
project_of() { lsattr -pd "$1" | awk '{print $1}'; }
has_project() { is "$(project_of "$1")" "$2"; }
another_disk() {  # another_disk TYPE MEBIBYTES OPTIONS: volumes may be on such a disk too from now on
  mkdir -p "/srv/$1" && modprobe loop && truncate -s "${2}M" "/root/$1.img" && "mkfs.$1" -q "/root/$1.img" && mount -o "loop,$3" "/root/$1.img" "/srv/$1" &&
    sed -i "s#]#, /srv/$1]#" /etc/coracle/config.yaml && systemctl restart coracled && until_true 60 ready
}
is_empty() {  # is_empty DISK: it is mounted, and has no volume and no record of a volume's project
  local there records=
  mountpoint "$1" && there=$(ls -A "$1") && { [ ! -e "$1/.coracle.projects" ] || records=$(ls -A "$1/.coracle.projects"); } &&
    is "$(grep -v '^\.coracle' <<<"$there")$records" ""
}
has_no_quotas() {  # has_no_quotas DISK: only what belongs to no project, "#0", is counted
  local report
  report=$(xfs_quota -x -c 'report -p -n -N' "$1") && grep '^#0 ' <<<"$report" && is "$(awk '$1 != "#0" && $2 + $4 > 0' <<<"$report")" ""
}
block_claim() {  # block_claim: a claim for a block device, and the pod "raw" that has it as /dev/disk
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
nfs_server() {  # only version 4, which needs no rpcbind
  mkdir -p /srv/share /etc/nfs.conf.d && chmod 777 /srv/share && printf '[nfsd]\nvers3=n\n' >/etc/nfs.conf.d/four.conf &&
    echo '/srv/share *(rw,no_root_squash,no_subtree_check)' >/etc/exports && systemctl start nfs-server || { journalctl -u nfs-server -u nfs-mountd -n 20 --no-pager; false; }
}
share_claim() {
  coraclectl apply -f - <<Y
{apiVersion: v1, kind: PersistentVolume, metadata: {name: share}, spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteMany], storageClassName: "", mountOptions: [nfsvers=4.1], nfs: {server: 127.0.0.1, path: /srv/share}}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: share}, spec: {accessModes: [ReadWriteMany], storageClassName: "", volumeName: share, resources: {requests: {storage: 1Gi}}}}
Y
}
nfs_pod() {  # nfs_pod NAME VOLUME
  coraclectl apply -f - <<Y
{apiVersion: v1, kind: Pod, metadata: {name: $1}, spec: {terminationGracePeriodSeconds: 1, containers: [{name: c, image: localhost/busybox:latest,
  imagePullPolicy: Never, command: [/bin/busybox, sleep, "1000000"], volumeMounts: [{name: data, mountPath: /data}]}], volumes: [{name: data, $2}]}}
Y
}
shares() { grep " nfs4 " /proc/mounts | grep /var/lib/coracle/pods/; }
silence_server() { nft -f - <<<'table inet silence { chain input { type filter hook input priority -300; tcp dport 2049 drop; }; }'; }
hear_server() { nft delete table inet silence; }
