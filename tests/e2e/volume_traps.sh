#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Traps in volumes, for a node that walks through them: while it gives one to a group or copies it for another claim there are links
# that lead out and change, pipes, devices and sockets; while it deletes one there are mounts of a privileged container in it, and
# files that cannot be removed; parts of volumes that it writes itself have the names of its own links there. The host's files stay
# as they are, nobody else waits, nothing is left. Neither does anybody wait for a path that does not answer. More of this kind: volume_attacks.sh, volume_archives.sh.
# for: daemon/volume daemon/node/volume/volumes daemon/node/volume/atomic_writer runtime/sys/tree runtime/sys/mount
. "$(dirname "$0")/lib.sh"
command -v python3 >/dev/null || skip_all "python3 is missing"
# Where systemd runs, all mounts are shared: what a container mounts in a volume of Bidirectional propagation is mounted on the host.
mkdir -p "$T/state" && mount --bind "$T/state" "$T/state" && mount --make-shared "$T/state" || skip_all "cannot mount"
start_machine
hung=$T/hung hanging=
finish() {
  local status=$?
  [ -z "$hanging" ] || { kill "$hanging"; umount -l "$hung"; } 2>/dev/null
  (exit $status); cleanup
}
trap finish EXIT

apply() { c apply -f - >"$T/apply.log" 2>&1; }
claim() {  # claim NAME [MORE OF THE SPEC]
  apply <<Y
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: $1}, spec: {accessModes: [${3:-ReadWriteOnce}], resources: {requests: {storage: 64Mi}}${2:+, $2}}}
Y
}
pod() {  # pod NAME COMMAND MOUNTS VOLUMES [MORE OF THE SPEC] [MORE OF THE CONTAINER]
  apply <<Y
{apiVersion: v1, kind: Pod, metadata: {name: $1}, spec: {terminationGracePeriodSeconds: 0${5:+, $5}, volumes: [$4], containers: [
  {name: c, image: "localhost/busybox:latest", command: [sh, -c, "$2"], volumeMounts: [$3]${6:+, $6}}]}}
Y
}
of_claim() { echo "{name: data, persistentVolumeClaim: {claimName: $1}}"; }
in_data='{name: data, mountPath: /data}'
phase_is() { [ "$(c get "$1" "$2" -o 'jsonpath={.status.phase}' 2>/dev/null)" = "$3" ]; }
place_of() { c get pv "$(c get pvc "$1" -o 'jsonpath={.spec.volumeName}')" -o 'jsonpath={.spec.local.path}'; }
events_of() { c get events --field-selector "involvedObject.name=$1" -o 'jsonpath={range .items[*]}{.reason}: {.message}{"\n"}{end}'; }
gone() { is_absent "$@"; }
volumes=$T/state/volumes
left_of() { ls -A "$volumes" | grep -- "_$1_"; }
deleted() { gone pvc "$1" && ! left_of "$1"; }

outside=$T/outside
mkdir -p "$outside/inner" "$T/host"
echo "the host's" | tee "$outside/marker" >"$outside/inner/marker"
chmod 0700 "$outside" "$outside/inner"; chmod 0600 "$outside/marker"
look_outside() { (cd "$outside" && find . -printf '%P %y %m %U:%G %s %T@\n' | sort && cat marker inner/marker); }
before=$(look_outside)
untouched() { expect "$1" "$before" look_outside; }
up=../../../../../../../../../..

echo "# volumes that are given to a group"
plant="cd /data; mkdir -p real/inner; echo mine >real/marker; chmod 600 real/marker; ln -s $outside absolute; ln -s $up$outside relative; ln -s $outside/marker file;
  ln -s /proc/self/root$outside own-root; ln -s . round; ln real/marker twice; mkfifo pipe; mknod null c 1 3; mkdir -p odd; touch odd/-rf 'odd/a b'; touch planted; sleep 1000"
claim group
pod planter "$plant" "$in_data" "$(of_claim group)"
check "a pod plants links, pipes and devices in a claim's volume" until_true 20 phase_is pod planter Running
place=$(place_of group)
check "all of them" until_true 10 test -e "$place/planted"
python3 -c 'import socket, os, sys; os.chdir(sys.argv[1]); socket.socket(socket.AF_UNIX).bind("socket")' "$place"
pod member 'cat /data/real/marker && echo more >>/data/real/marker && sleep 1000' "$in_data" "$(of_claim group)" 'securityContext: {runAsUser: 1000, fsGroup: 4321}'
check "a pod of another user gets it as its group's" until_true 20 eval '[ "$(c logs member)" = mine ]'
expect "all is the group's" "4321" eval 'find "$place" -printf "%G\n" | sort -u'
untouched "but nothing that the links lead to"
c delete pod planter member >/dev/null
# Each turn is a directory, a file and links in one place. The inner loop is in the volume alone.
swap="cd /data; mkdir -p deep; for i in \$(seq 200); do mkdir -p deep/\$i; touch deep/\$i/file; done; touch begins; end=\$((\$(date +%s) + 600));
  while [ ! -e stop ] && [ \$(date +%s) -lt \$end ]; do for i in \$(seq 200); do rm -rf deep/\$i; ln -s $outside deep/\$i; rm -f deep/\$i; ln -s $outside/marker deep/\$i; rm -f deep/\$i;
    mkfifo deep/\$i; rm -f deep/\$i; mkdir -p deep/\$i; ln -s $outside/marker deep/\$i/file; done; done 2>/dev/null; touch ended; sleep 1000"
pod swapper "$swap" "$in_data" "$(of_claim group)"
check "another exchanges directories with links" until_true 20 test -e "$place/begins"
wrong=
for i in 1 2 3 4 5 6; do
  pod "member$i" 'sleep 1000' "$in_data" "$(of_claim group)" "securityContext: {runAsUser: 1000, fsGroup: 500$i}"
  until_true 20 phase_is pod "member$i" Running || wrong="$wrong member$i"
done
expect "while it does, pods with other groups get the volume" "" echo "$wrong"
check "it did so to the end" test ! -e "$place/ended"
touch "$place/stop"; until_true 10 test -e "$place/ended"
untouched "and still nothing outside is theirs"
c delete pod swapper member1 member2 member3 member4 member5 member6 >/dev/null

echo "# volumes that are copied"
claim twin 'dataSource: {kind: PersistentVolumeClaim, name: group}'
pod reader 'cat /data/real/marker; readlink /data/absolute; test -p /data/pipe && test -c /data/null && test ! -e /data/socket && echo special; sleep 1000' "$in_data" "$(of_claim twin)"
check "a claim begins as a copy of it, and nothing waits for a pipe" until_true 30 phase_is pod reader Running
soon expect "links are links in it, pipes and devices what they were, and sockets are left out, as tar does" "mine
more
$outside
special" c logs reader
twin=$(place_of twin)
expect "nothing of the host is in it" "" grep -rIls --devices=skip "the host's" "$twin"
expect "a file with two names is one" "$(stat -c %i "$twin/real/marker")" stat -c %i "$twin/twice"
untouched "and nothing outside is touched"
c delete pod reader >/dev/null; c delete pvc twin group --wait=false >/dev/null
check "both are deleted" until_true 20 eval 'deleted twin && deleted group'

echo "# mounts that a container leaves in a volume"
leave="mkdir -p /data/in/ner /data/memory; echo mine >/data/in/file; touch /data/in/over; mount --bind /out /data/in/ner && mount --bind /out/marker /data/in/over && mount -t tmpfs none /data/memory && touch /data/memory/left && touch /data/mounted; sleep 1000"
shared='{name: data, mountPath: /data, mountPropagation: Bidirectional}, {name: out, mountPath: /out}'
out="{name: out, hostPath: {path: $outside}}"
claim left
pod leaver "$leave" "$shared" "{name: data, emptyDir: {}}, $out" '' 'securityContext: {privileged: true}'
pod leaver-claim "$leave" "$shared" "$(of_claim left), $out" '' 'securityContext: {privileged: true}'
own=$T/state/pods/$(c get pod leaver -o 'jsonpath={.metadata.uid}')/volumes/data
check "a privileged container mounts the host's directory in its volume" until_true 20 test -e "$own/mounted"
check "and another in a claim's" until_true 20 eval 'test -e "$(place_of left)/mounted"'
check "the host has these mounts" eval 'mountpoint -q "$own/in/ner" && mountpoint -q "$(place_of left)/in/ner"'
c delete pod leaver leaver-claim --wait=false >/dev/null
check "the pods go" until_true 20 eval 'gone pod leaver && gone pod leaver-claim'
check "the emptyDir with its pod" until_true 10 test ! -e "${own%/volumes/data}"
c delete pvc left --wait=false >/dev/null
check "the claim's volume with the claim" until_true 20 deleted left
expect "no mount is left" "" eval 'grep -E "/in/(ner|over) |/memory " /proc/self/mountinfo | grep "$T/state"'
untouched "and what was mounted is whole"
check "the log knows of nothing that stays" eval '! grep "stays:" "$T/coracled.log"'

echo "# files that nobody can remove"
claim firm; claim other
pod firm 'echo mine >/data/firm; sleep 1000' "$in_data" "$(of_claim firm)"
pod other 'echo mine >/data/file; sleep 1000' "$in_data" "$(of_claim other)"
check "two claims" until_true 20 eval 'test -s "$(place_of firm)/firm" && test -s "$(place_of other)/file"'
if chattr +i "$(place_of firm)/firm" 2>/dev/null; then
  c delete pod firm other >/dev/null; c delete pvc firm other --wait=false >/dev/null
  check "one of them has an immutable file: the other is deleted" until_true 20 deleted other
  check "its own claim is gone" until_true 10 gone pvc firm
  check "what stays is told" until_true 10 grep -q 'remove .*firm.*: Operation not permitted' "$T/coracled.log"
  chattr -i "$volumes"/.removed_*_firm_*/firm
  stop_daemon; start_daemon
  check "when it can be removed, it is" until_true 20 eval '! left_of firm'
else
  echo "# no immutable files here"
  c delete pod firm other >/dev/null; c delete pvc firm other --wait=false >/dev/null
fi

echo "# parts of volumes that the node writes"
mounts="" number=0
for part in ..data ..data/x ..new ..new/x ..2026_01_01 key..data x_tmp x x/y "$(printf 'p%.0s' $(seq 250))" "$(printf 'd/%.0s' $(seq 200))e"; do
  number=$((number + 1)) mounts="$mounts${mounts:+, }{name: data, mountPath: /part/$number, subPath: $part}"
done
pod parts 'sleep 1000' "$mounts, $in_data" '{name: data, configMap: {name: late, optional: true}}'
check "a pod has parts of a configMap that is not there" until_true 20 phase_is pod parts Running
expect "each is a directory" "$number" c exec parts -- sh -c 'n=0; for each in /part/*; do [ -d $each ] && n=$((n + 1)); done; echo $n'
expect "without files" "" c exec parts -- find /part/ -type f
expect_match "that cannot be written to" 'Read-only file system' c exec parts -- sh -c 'touch /part/8/y 2>&1; true'
c create configmap late --from-literal=x=first --from-literal=x_tmp=second --from-literal=key=third >/dev/null
shows() { [ "$(c exec parts -- cat "/data/$1" 2>/dev/null)" = "$2" ]; }
check "when it comes, the volume shows it" until_true 10 eval 'shows key third && shows x_tmp second'
c patch configmap late --type=merge -p '{"data":{"key":"fourth"}}' >/dev/null
check "and what becomes of it" until_true 10 shows key fourth
expect "no event tells of a trouble" "" eval 'events_of parts | grep Failed'
pod firm-parts 'sleep 1000' "{name: data, mountPath: /part, subPath: key}" '{name: data, secret: {secretName: none}}'
soon expect_match "of one that is not optional a pod waits for the whole" '^FailedMount: MountVolume.SetUp failed for volume "data" : secret "none" not found$' events_of firm-parts
soon expect "as ContainerCreating" ContainerCreating c get pod firm-parts -o 'jsonpath={.status.containerStatuses[0].state.waiting.reason}'
c delete pod parts firm-parts --wait=false >/dev/null

echo "# a claim for one pod, and two that name the node"
claim alone '' ReadWriteOncePod
pod first 'echo first >/data/file; sleep 1000' "$in_data" "$(of_claim alone)"
check "the first has it" until_true 20 eval 'grep -q first "$(place_of alone)/file"'
pod second 'echo second >/data/file; sleep 1000' "$in_data" "$(of_claim alone)" 'nodeName: edge'
soon expect_match "the second waits, though no scheduler was asked" "^FailedMount: MountVolume.SetUp failed for volume \"$(c get pvc alone -o 'jsonpath={.spec.volumeName}')\" : volume uses the ReadWriteOncePod access mode and is already in use by another pod" events_of second
pod third 'sleep 1000' "$in_data" "$(of_claim alone)"
soon expect_match "so does one that the scheduler is asked for" '^FailedScheduling: .*node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode' events_of third
kill_daemon; start_daemon
expect "nothing was written beside the first" first cat "$(place_of alone)/file"
check "a new daemon lets it wait, too" eval 'sleep 3; phase_is pod second Pending'
c delete pod third >/dev/null; c delete pod first >/dev/null
check "it runs when the first has ended" until_true 20 phase_is pod second Running
c delete pod second >/dev/null; c delete pvc alone --wait=false >/dev/null
check "and the volume goes" until_true 20 deleted alone

echo "# a place of the host that does not answer"
cat >"$T/hang.py" <<'P'
# Mounts a file system of a program that never answers, as the one of a server that is away.
import ctypes, os, sys, time
device = os.open("/dev/fuse", os.O_RDWR)
libc = ctypes.CDLL(None, use_errno=True)
options = f"fd={device},rootmode=40000,user_id=0,group_id=0".encode()
if libc.mount(b"hung", sys.argv[1].encode(), b"fuse", 6, options) != 0: sys.exit(os.strerror(ctypes.get_errno()))
print("mounted", flush=True)
time.sleep(1000)
P
mkdir "$hung"
python3 "$T/hang.py" "$hung" >"$T/hang.log" 2>&1 &
hanging=$!
until_true 20 grep -q . "$T/hang.log"
if grep -qx mounted "$T/hang.log"; then
  held="held1 held2 held3 held4 held5 held6"  # more than the node works on at once
  for one in $held; do pod "$one" 'sleep 1000' "$in_data" "{name: data, hostPath: {path: $hung/$one}}"; done
  soon expect_match "a pod waits for it, and says so" "^FailedMount: MountVolume.SetUp failed for volume \"data\" : $hung/held1 does not answer" events_of held1
  tells_of_limit() { for one in $held; do events_of "$one"; done | grep -q "was not asked: 4 calls to $hung, or 32 in all, have got no answer"; }
  check "only some ask at once, which is said, too" until_true 20 tells_of_limit
  pod quick 'sleep 1000' "$in_data" "{name: data, hostPath: {path: $T/host}}"
  check "a pod with a place beside it runs" until_true 20 phase_is pod quick Running
  claim gone; pod user 'sleep 1000' "$in_data" "$(of_claim gone)"
  check "one with a claim, too" until_true 20 phase_is pod user Running
  apply <<Y
{apiVersion: v1, kind: PersistentVolume, metadata: {name: hung}, spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], storageClassName: none, hostPath: {path: $hung/volume}}}
Y
  c delete pod user >/dev/null; c delete pvc gone --wait=false >/dev/null
  check "a claim's volume is deleted, though another volume is there" until_true 20 deleted gone
  check "a pod that waits is deleted" eval 'c delete pod held6 --timeout=120s'
  stop_daemon; start_daemon
  check "the daemon ends and begins anew" ready
  check "others run as before" phase_is pod quick Running
  kill "$hanging"; wait "$hanging" 2>/dev/null
  umount -l "$hung"; hanging=
  all_held_run() { for one in held1 held2 held3 held4 held5; do phase_is pod "$one" Running || return 1; done; }
  check "when it answers, all run" until_true 40 all_held_run
  c delete pod held1 held2 held3 held4 held5 quick --wait=false >/dev/null
else
  echo "# no file system of a program here: $(cat "$T/hang.log")"
fi
untouched "through all of it nothing outside was touched"
