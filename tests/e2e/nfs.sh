#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# NFS volumes. A program in place of mount.nfs binds a directory, refuses or hangs as the test requests: the node's reaction to a
# server's behaviour. tests/vm/storage.sh uses a real server.
# for: daemon/nfs daemon/node/volume/nfs_mounts daemon/node/volume/volumes runtime/sys/run runtime/sys/mount
. "$(dirname "$0")/lib.sh"
mkdir -p "$T/bin" "$T/share"
had_program=$(command -v mount.nfs)
export PATH=$T/bin:$PATH
cat >"$T/mount.nfs" <<S
#!/bin/sh
echo "\$@" >>$T/nfs.calls
case \$(cat $T/nfs.mode) in
  refuse) echo "mount.nfs: access denied by server while mounting \$1" >&2; exit 32 ;;
  hang) exec sleep 9$$ ;;
esac
mount --bind $T/share "\$2"
S
chmod 755 "$T/mount.nfs"
start_machine

answer() { echo "$1" >"$T/nfs.mode"; }
pod() {  # pod NAME VOLUME COMMAND [MORE OF THE MOUNT]
  c apply -f - <<Y
{apiVersion: v1, kind: Pod, metadata: {name: $1}, spec: {terminationGracePeriodSeconds: 1,
  containers: [{name: c, image: localhost/busybox:latest, command: [sh, -c, "$3"], volumeMounts: [{name: data, mountPath: /data${4:+, $4}}]}],
  volumes: [{name: data, $2}]}}
Y
}
runs() { [ "$(c get pod "$1" -o 'jsonpath={.status.containerStatuses[0].state.running.startedAt}')" != "" ]; }
gone() { is_absent "$@"; }
event() { c get events --field-selector "involvedObject.name=$1" -o 'jsonpath={range .items[*]}{.reason}: {.message}{"\n"}{end}'; }
mounts() { grep -c " $T/state/pods/.*/volumes/data " /proc/self/mountinfo || true; }
hangs() { pgrep -f "^sleep 9$$\$"; }
share='nfs: {server: nas.lan, path: /export}'

echo "# the program that mounts"
answer fine
check "a pod with a share is taken" pod first "$share" 'echo written >/data/file; sleep 1000'
if [ -n "$had_program" ]; then
  echo "ok $((++test_number)) - without mount.nfs the pod waits # SKIP this machine has one"
else
  soon expect_match "without mount.nfs the pod waits, and an event names the package" 'FailedMount: MountVolume.SetUp failed for volume "data" : this machine has no mount.nfs: install the package nfs-common' event first
fi
mv "$T/mount.nfs" "$T/bin/"
check "once it is there, the pod runs" until_true 20 runs first
check "what it writes is on the share" until_true 5 grep -q written "$T/share/file"
expect_match "the share was asked for by its name" "^nas\.lan:/export $T/state/pods/[0-9a-f-]+/volumes/data -o retry=0\$" cat "$T/nfs.calls"

echo "# volumes of claims"
check "a volume that is a share, and a claim" c apply -f - <<'Y'
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: PersistentVolume, metadata: {name: share}, spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteMany], storageClassName: "", mountOptions: [nfsvers=4.2, hard], nfs: {server: "fd00::5", path: /srv}}}
- {apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: shared}, spec: {accessModes: [ReadWriteMany], storageClassName: "", resources: {requests: {storage: 1Gi}}}}
Y
check "a pod uses it, read-only, a directory of it" pod second 'persistentVolumeClaim: {claimName: shared, readOnly: true}' 'ls /data >/dev/termination-log; sleep 1000'
check "and runs" until_true 20 runs second
expect_match "by the volume's options" '^\[fd00::5\]:/srv .* -o ro,nfsvers=4\.2,hard,retry=0$' cat "$T/nfs.calls"
expect_match "it cannot write" 'Read-only file system' c exec second -- touch /data/no
check "another has a directory of it" pod third 'persistentVolumeClaim: {claimName: shared}' 'echo inside >/data/it; sleep 1000' 'subPath: a/b'
check "which is made there" until_true 20 grep -q inside "$T/share/a/b/it"

echo "# a server that refuses, and one that does not answer"
answer refuse
check "a pod whose server refuses" pod refused "$share" 'sleep 1000'
soon expect_match "is told what the program said" 'FailedMount: MountVolume.SetUp failed for volume "data" : mount failed: exit status 32: mount.nfs: access denied by server while mounting nas.lan:/export' event refused
answer hang
check "a pod whose server does not answer" pod waiting 'nfs: {server: dead.lan, path: /export}' 'sleep 1000'
check "is waited for" until_true 10 hangs
check "others start meanwhile" pod other 'emptyDir: {}' 'sleep 1000'
check "as fast as ever" until_true 10 runs other
program=$(hangs)
kill_daemon
check "killed, the daemon leaves no program that mounts later" until_true 10 sh -c "! kill -0 $program 2>/dev/null"
start_daemon
check "the next one asks again" until_true 15 hangs
check "a pod that goes meanwhile" c delete pod waiting --wait=false
check "is gone, and the program with it" until_true 15 eval 'gone pod waiting && ! hangs'
answer fine
check "the server that refused takes it: the pod runs" until_true 20 runs refused

echo "# over restarts, and gone with the pods"
expect "each share is mounted once" 4 mounts
kill_daemon; start_daemon
check "after a SIGKILL all is as before" until_true 10 c exec first -- cat /data/file
expect "and mounted once" 4 mounts
check "the pods go" c delete pod first second third refused other
check "and nothing is mounted any more" until_true 15 eval '[ "$(mounts)" = 0 ]'
expect "what they wrote is there" "written" cat "$T/share/file"
check "nothing is left of them" until_true 10 eval '[ -d "$T/state/pods" ] && ! ls -A "$T/state/pods" | grep -q .'
