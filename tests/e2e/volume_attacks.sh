#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Volumes with an attacker in the pods: links that lead outside and change during the lookup, special files, very large trees,
# very long names, full disks, and a daemon that is killed meanwhile. Nothing of the host is read or created, no other pod waits,
# nothing is left behind. Among the attacks are CVE-2017-1002101 and CVE-2021-25741 (subpaths of a volume through links),
# CVE-2017-1002102 (a deletion that follows links), CVE-2025-9566 (a volume that the node writes through links). CORACLE_LONG=1:
# ten million entries (or as many as the disk has inodes for) instead of 50,000, and limits for the waiting time of other pods. volume_archives.sh covers archives;
# tests/attacks/ covers links in a container's file system.
# for: daemon/volume daemon/node/volume/volumes daemon/node/volume/atomic_writer daemon/node/files daemon/node/container_text runtime/sys/file runtime/sys/tree_removal
. "$(dirname "$0")/lib.sh"
command -v python3 >/dev/null || skip_all "python3 is missing"
disk=$T/disk
finish() { local status=$?; mountpoint -q "$disk" && umount -l "$disk"; (exit $status); cleanup; }
start_machine
trap finish EXIT

apply() { c apply -f - >"$T/apply.log" 2>&1; }
claim() {  # claim NAME [NAMESPACE]
  apply <<Y
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: $1, namespace: ${2:-default}}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 64Mi}}}}
Y
}
pod() {  # pod NAME CONTAINERS VOLUMES [MORE OF THE SPEC] [NAMESPACE]
  apply <<Y
{apiVersion: v1, kind: Pod, metadata: {name: $1, namespace: ${5:-default}}, spec: {terminationGracePeriodSeconds: 0${4:+, $4}, containers: [$2], volumes: [$3]}}
Y
}
container() {  # container NAME COMMAND MOUNTS [MORE]: one of several containers of a pod, with a comma at its end
  printf '{name: %s, image: "localhost/busybox:latest", command: [sh, -c, "%s"], volumeMounts: [%s]%s}' "$1" "$2" "$3" "${4:+, $4}"
}
of_claim() { echo "{name: data, persistentVolumeClaim: {claimName: $1}}"; }
in_data='{name: data, mountPath: /data}'
phase_is() { [ "$(c get "$1" "$2" -o 'jsonpath={.status.phase}' 2>/dev/null)" = "$3" ]; }
place_of() { c get pv "$(c get pvc "$@" -o 'jsonpath={.spec.volumeName}')" -o 'jsonpath={.spec.local.path}'; }
events_of() { c get events --field-selector "involvedObject.name=$1" -o 'jsonpath={range .items[*]}{.message}{"\n"}{end}'; }
gone() { is_absent "$@"; }
volumes=$T/state/volumes
left_of() { ls -A "$volumes" | grep -- "_$1_"; }
deleted() { gone pvc "$1" && ! left_of "$1"; }
milliseconds() { echo $(($(date +%s%N) / 1000000)); }
settled() {  # settled POD NUMBER: waits until so many of its containers have ended or cannot be created
  [ "$(c get pod "$1" -o 'jsonpath={range .status.containerStatuses[*]}{.state}{"\n"}{end}' 2>/dev/null | grep -cE 'terminated|CreateContainerConfigError|CreateContainerError|RunContainerError')" = "$2" ]
}
ready_in_time() {  # ready_in_time NAME: starts an ordinary pod; prints the milliseconds until it runs
  local began end=$((SECONDS + 60)); began=$(milliseconds)
  pod "$1" "$(container c 'echo x >/data/x && sleep 1000' "$in_data")" '{name: data, emptyDir: {}}'
  until phase_is pod "$1" Running; do [ "$SECONDS" -lt "$end" ] || return 1; done
  echo $(($(milliseconds) - began))
  c delete pod "$1" --wait=false >/dev/null
}

# A directory of the host: nobody may see the marker, and nothing may be created beside it.
outside=$T/outside
mkdir -p "$outside/inner" "$T/host"
echo "the host's" | tee "$outside/marker" >"$outside/inner/marker"
look_outside() { (cd "$outside" && find . -printf '%P %y %m %U:%G %s %T@\n' | sort && cat marker inner/marker); }
before=$(look_outside)
untouched() { expect "$1" "$before" look_outside; }
up=../../../../../../../../../..

echo "# a part of a volume whose way leads out"
claim ways
pod planter "$(container c "cd /data; mkdir -p real/inner; echo mine >real/marker;
  ln -s $outside absolute; ln -s $up$outside relative; ln -s .. above; ln -s /proc/self/root$outside own-root; ln -s /proc/1/root$outside first-root;
  ln -s /proc/self/cwd cwd; ln -s /proc/self/fd/3 descriptor; ln -s nowhere dangling; ln -s round round; ln -s absolute twice; ln -s real within;
  mkdir proc; ln -s / proc/self; mkfifo pipe; touch planted; sleep 1000" "$in_data")" "$(of_claim ways)"
check "a pod plants links in a claim's volume" until_true 20 phase_is pod planter Running
place=$(place_of ways)
check "all of them" until_true 10 test -e "$place/planted"
mknod "$place/device" b 7 0; mknod "$place/zero" c 1 5
python3 -c 'import socket, os, sys; os.chdir(sys.argv[1]); socket.socket(socket.AF_UNIX).bind("socket")' "$place"
look='(cat /data/marker; ls /data) 2>&1; touch /data/made-by-it; true'
ways="absolute relative own-root first-root cwd descriptor dangling round twice absolute/inner relative/inner absolute/new/er twice/inner above/above/new within/inner/new"
containers="" number=0
for way in $ways; do number=$((number + 1)) containers="$containers${containers:+,}$(container "way$number" "$look" "{name: data, mountPath: /data, subPath: $way}")"; done
check "a pod has one of them in each of its containers" pod ways "$containers" "$(of_claim ways)" 'restartPolicy: Never'
check "each is started or is not" until_true 30 settled ways "$number"
outcomes() {  # outcomes POD WAY...: the results of its containers way1, way2 …
  local name=$1 each=0 way; shift
  for way; do
    each=$((each + 1))
    printf '%s: ' "$way"
    c get pod "$name" -o "jsonpath={.status.containerStatuses[?(@.name=='way$each')].state}" | grep -oE 'CreateContainerConfigError|CreateContainerError|Completed|Error' | head -n 1
  done
}
expect "those that lead out are not, those that lead up or about are" "absolute: CreateContainerConfigError
relative: CreateContainerConfigError
own-root: CreateContainerConfigError
first-root: CreateContainerConfigError
cwd: CreateContainerConfigError
descriptor: CreateContainerConfigError
dangling: CreateContainerConfigError
round: CreateContainerConfigError
twice: CreateContainerConfigError
absolute/inner: CreateContainerConfigError
relative/inner: CreateContainerConfigError
absolute/new/er: CreateContainerConfigError
twice/inner: CreateContainerConfigError
above/above/new: Completed
within/inner/new: Completed" outcomes ways $ways
expect_match "which is told, with the container" 'failed to create subPath directory for volumeMount "data" of container "way1"' events_of ways
expect "no one saw the host's file" "" eval 'for each in $(seq $number); do c logs ways -c "way$each" 2>/dev/null | grep "the host"; done'
expect "what was missing was made in the volume" "new new/made-by-it real/inner/new real/inner/new/made-by-it" eval 'cd "$place" && echo $(find . -name new -printf "%P " -o -name made-by-it -printf "%P " | tr " " "\n" | sort)'
untouched "and nothing outside"
c delete pod ways --wait=false >/dev/null
mkdir "$T/host/parts"
for volume in 'emptyDir: {}' "hostPath: {path: $T/host/parts, type: Directory}"; do
  kind=${volume%%:*} containers="" number=0
  for way in absolute relative/inner absolute/inner/new made/new; do number=$((number + 1)) containers="$containers${containers:+,}$(container "way$number" "$look" "{name: data, mountPath: /data, subPath: $way}")"; done
  pod "${kind,,}" "$containers" "{name: data, $volume}" "restartPolicy: Never, initContainers: [$(container first "cd /data; ln -s $outside absolute; ln -s $up$outside relative" "$in_data")]"
  until_true 30 settled "${kind,,}" "$number"
  expect "so it is in a volume of the kind $kind" "absolute: CreateContainerConfigError
relative/inner: CreateContainerConfigError
absolute/inner/new: CreateContainerConfigError
made/new: Completed" outcomes "${kind,,}" absolute relative/inner absolute/inner/new made/new
  c delete pod "${kind,,}" --wait=false >/dev/null
done
untouched "and still nothing outside"

echo "# a part of a volume that is no directory"
kinds="pipe:test_-p_/data socket:test_-S_/data zero:test_-c_/data device:test_-b_/data planted:test_-f_/data"
containers=
for kind in $kinds; do
  test=${kind#*:}
  containers="$containers${containers:+,}$(container "${kind%:*}" "${test//_/ } && echo it is; (head -c 1 /data >/dev/null 2>/tmp/why; touch /tmp/done) & n=0;
    until [ -e /tmp/done ] || [ \$n -ge 50 ]; do sleep 0.1; n=\$((n + 1)); done; cat /tmp/why; true" "{name: data, mountPath: /data, subPath: ${kind%:*}}")"
done
check "pods have a pipe, a socket, devices and a file" pod kinds "$containers" "$(of_claim ways)" 'restartPolicy: Never'
check "nothing waits for the pipe's other end" until_true 30 settled kinds 5
expect "each is what it is" "pipe: it is
socket: it is
zero: it is
device: it is
planted: it is" eval 'for kind in $kinds; do printf "%s: " "${kind%:*}"; c logs kinds -c "${kind%:*}" | head -n 1; done'
expect_match "a disk is not to be read" 'Operation not permitted|Permission denied' c logs kinds -c device
check "an ordinary pod starts" ready_in_time ordinary1
c delete pod kinds --wait=false >/dev/null

echo "# files with variables that are none"
pod variables "$(for one in pipe link up device; do container "$one" 'echo $A' "" "env: [{name: A, valueFrom: {fileKeyRef: {volumeName: data, path: $one, key: A}}}]"; printf ,; done)" '{name: data, emptyDir: {}}' \
  "restartPolicy: Never, initContainers: [$(container first "cd /data; mkfifo pipe; ln -s $outside/marker link; ln -s $up$outside/marker up; mknod device c 1 3" "$in_data")]"
check "a pipe, links out and a device" until_true 30 settled variables 4
expect_match "a pipe is not opened" 'pipe.*(no|not a) regular file|not a regular file' events_of variables
expect "nothing of it is a variable" "" eval 'for one in pipe link up device; do c logs variables -c $one 2>/dev/null; done'
c delete pod variables --wait=false >/dev/null

echo "# a way that changes while it is followed"
# The name is a directory, a link and absent in turn. The former directory exists for a while under another name.
swap="cd /data; mkdir were; touch begins; i=0; passes=0; end=\$((\$(date +%s) + 600)); while [ ! -e stop ] && [ \$(date +%s) -lt \$end ]; do
    for to in $outside $up$outside /proc/1/root$outside were/..; do i=\$(((i + 1) % 100)); rm -rf were/\$i; mv door were/\$i; ln -s \$to door; ls -d door door door; rm -f door;
      mkdir -p door/inner; echo mine >door/inner/marker; passes=\$((passes + 1)); done >/dev/null 2>&1; done; echo \$passes >passes; touch ended; sleep 1000"
claim swapped
pod swapper "$(container c "$swap" "$in_data")" "$(of_claim swapped)"
check "a pod exchanges a directory with links" until_true 20 phase_is pod swapper Running
swapped=$(place_of swapped)
check "without an end" until_true 10 test -e "$swapped/begins"
rounds=4 each=10
[ "${CORACLE_LONG:-0}" = 0 ] || rounds=100
seen="" started=0 refused=0
for round in $(seq $rounds); do
  containers=
  for i in $(seq $each); do
    way='subPath: door/inner' more=
    [ $((i % 2)) = 0 ] || way='subPathExpr: $(WAY)/new/$(POD)' more="env: [{name: WAY, value: door}, {name: POD, value: p$round-$i}]"
    containers="$containers${containers:+,}$(container "c$i" "$look" "{name: data, mountPath: /data, $way}" "$more")"
  done
  pod "race$round" "$containers" "$(of_claim swapped)" 'restartPolicy: Never'
  until_true 30 settled "race$round" "$each" || seen="$seen race$round:waits"
  for i in $(seq $each); do c logs "race$round" -c "c$i" 2>/dev/null; done >"$T/race.log"
  started=$((started + $(c get pod "race$round" -o 'jsonpath={range .status.containerStatuses[*]}{.state}{"\n"}{end}' | grep -c Completed)))
  refused=$((refused + $(events_of "race$round" | grep -c "failed to prepare subPath\|mounts: /data")))
  ! grep "the host" "$T/race.log" || seen="$seen race$round:host"
  c delete pod "race$round" --wait=false >/dev/null
done
check "it did so to the end" test ! -e "$swapped/ended"
touch "$swapped/stop"
until_true 10 test -e "$swapped/ended"
echo "# $started of $((rounds * each)) containers found a directory, $refused times there was none; it was a link $(cat "$swapped/passes") times"
check "often" test "$(cat "$swapped/passes")" -gt $((rounds * each))
expect "containers whose part of the volume lies behind it see the volume or nothing" "" echo "$seen"
untouched "and nothing is made outside"

echo "# places of the host that are something else"
mkdir "$T/host/directory"; echo text >"$T/host/file"; mkfifo "$T/host/pipe"; mknod "$T/host/null" c 1 3; mknod "$T/host/disk" b 7 0; ln -s "$outside/new" "$T/host/dangling"
python3 -c 'import socket, os, sys; os.chdir(sys.argv[1]); socket.socket(socket.AF_UNIX).bind("socket")' "$T/host"
wrong="File:directory File:pipe File:null Directory:file Directory:socket Socket:file Socket:pipe CharDevice:disk CharDevice:pipe BlockDevice:null BlockDevice:file FileOrCreate:directory FileOrCreate:pipe FileOrCreate:dangling DirectoryOrCreate:file DirectoryOrCreate:dangling Directory:missing Socket:missing"
host_pod() {  # host_pod NAME TYPE PATH
  pod "$1" "$(container c 'sleep 1000' "$in_data")" "{name: data, hostPath: {path: $3, type: $2}}"
}
for one in $wrong; do host_pod "$(tr 'A-Z:' 'a-z-' <<<"$one")" "${one%:*}" "$T/host/${one#*:}"; done
says() { events_of "$(tr 'A-Z:' 'a-z-' <<<"$1")" | grep -Eq 'hostPath type check failed|make directory|No such file|exists'; }
all_say() { silent=; for one in $wrong; do says "$one" || silent="$silent $one"; done; [ -z "$silent" ]; }
until_true 30 all_say; all_say
expect "a volume of each type is refused there" "" echo "$silent"
expect "and no such pod runs" "" eval 'for one in $wrong; do phase_is pod "$(tr A-Z: a-z- <<<"$one")" Running && echo "$one"; done'
untouched "a link to nothing is not followed to make something"
c delete pod $(tr 'A-Z:' 'a-z-' <<<"$wrong") --wait=false >/dev/null
right="File:file Directory:directory Socket:socket CharDevice:null BlockDevice:disk FileOrCreate:new-file DirectoryOrCreate:new-directory"
for one in $right; do host_pod "right-$(tr 'A-Z:' 'a-z-' <<<"$one")" "${one%:*}" "$T/host/${one#*:}"; done
all_run() { for one in $right; do phase_is pod "right-$(tr 'A-Z:' 'a-z-' <<<"$one")" Running || return 1; done; }
check "what is right runs" until_true 30 all_run
c delete pod $(for one in $right; do echo "right-$(tr 'A-Z:' 'a-z-' <<<"$one")"; done) --wait=false >/dev/null
expect_fail "a place above is refused" "must not contain '..'" eval 'host_pod above Directory "$T/host/../outside" || { cat "$T/apply.log"; false; }'
for part in 'subPath: ../outside' 'subPath: a/../../b' 'subPath: /etc' 'subPathExpr: $(A)/../b'; do
  expect_fail "so is a part above: $part" "subPath(Expr)?: Invalid value" eval 'pod above "$(container c true "{name: data, mountPath: /data, $part}" "env: [{name: A, value: a}]")" "{name: data, emptyDir: {}}" || { cat "$T/apply.log"; false; }'
done

echo "# volumes that the node writes"
c create configmap shown --from-literal=key=first --from-literal=marker=first >/dev/null
for volume in 'configMap: {name: shown, items: [{key: key, path: ../out}]}' 'secret: {secretName: s, items: [{key: key, path: a/../../out}]}' \
  'downwardAPI: {items: [{path: ../out, fieldRef: {fieldPath: metadata.name}}]}' 'projected: {sources: [{configMap: {name: shown, items: [{key: key, path: /out}]}}]}' \
  'projected: {sources: [{serviceAccountToken: {path: ../out}}]}' 'configMap: {name: shown, items: [{key: key, path: ..data}]}'; do
  expect_fail "a path that leads out of one is refused: ${volume%%:*}" 'path: Invalid value' eval 'pod paths "$(container c true "$in_data")" "{name: data, $volume}" || { cat "$T/apply.log"; false; }'
done
# Without a user namespace, a privileged container is the host's root. With one, it has full control over its own mount tree.
spoil="until [ -e /data/key ]; do sleep 0.1; done; mount -o remount,rw,bind /data; cd /data; for name in ..data key marker; do rm -rf \$name; done;
  ln -s $outside ..data; ln -s $outside/marker key; ln -s $outside/marker marker; echo done; end=\$((\$(date +%s) + 60));
  while [ \$(date +%s) -lt \$end ]; do for made in ..2*; do [ ! -d \$made ] || [ -L \$made ] || { mv \$made ..was\$made && ln -s $outside \$made; }; done; done 2>/dev/null"
pod spoiler "$(container plain "$spoil" "$in_data")" '{name: data, configMap: {name: shown}}'
pod own-users "$(container privileged "$spoil" "$in_data" 'securityContext: {privileged: true}')" '{name: data, configMap: {name: shown}}' 'hostUsers: false'
check "a container tries to plant links in a configMap's volume" until_true 30 eval 'c logs spoiler | grep -qx done'
check "… one with users of its own and every capability too" until_true 30 eval 'c logs own-users | grep -qx done'
expect_match "who has no power over mounts cannot" 'Read-only file system' c logs spoiler
expect_match "nor who has power over those of his own" 'Read-only file system' c logs own-users
shows() { [ "$(c exec spoiler -- cat /data/key)" = "$1" ]; }
wrong=
for value in second third fourth fifth; do
  c patch configmap shown --type=merge -p "{\"data\":{\"key\":\"$value\",\"marker\":\"$value\"}}" >/dev/null
  until_true 10 shows "$value" || wrong="$wrong $value"
done
expect "what the volume shows is brought up to date" "" echo "$wrong"
untouched "and nothing is written outside"
c delete pod spoiler own-users --wait=false >/dev/null

echo "# files that the node keeps for a container"
mkdir -p "$T/host/links"; ln -sf "$outside/marker" "$T/host/links/message"
pod message "$(container c "rm -f /etc/hosts; ln -sf $outside/marker /etc/hosts; rm -f /data/message; ln -sf $outside/marker /data/message; echo \$(cat /data/message) mine >>/data/message; exit 3" "$in_data" 'terminationMessagePath: /data/message'),$(container link "echo through >/link/message; exit 3" '{name: links, mountPath: /link}' 'terminationMessagePath: /link/message')" \
  "{name: data, emptyDir: {}}, {name: links, hostPath: {path: $T/host/links}}" 'restartPolicy: Never'
check "containers put links where their last words are read" until_true 30 settled message 2
expect "what they said is what they wrote" "mine" c get pod message -o "jsonpath={.status.containerStatuses[?(@.name=='c')].state.terminated.message}"
untouched "and the host's file is as it was"
c delete pod message --wait=false >/dev/null

echo "# volumes with very much in them"
field() { sed -n "s/.*$1: *\"\{0,1\}\([^\" ]*\).*/\1/p" "$T/etc/admin.kubeconfig" | head -n 1 | base64 -d > "$2"; }
field certificate-authority-data "$T/ca.crt"; field client-certificate-data "$T/admin.crt"; field client-key-data "$T/admin.key"
cat >"$T/ask.py" <<'P'
# The longest that a small request waits, in milliseconds, until the file STOP is there: one after another on one connection.
import http.client, os, ssl, sys, time
ca, certificate, key, path, stop = sys.argv[1:]
context = ssl.create_default_context(cafile=ca)
context.load_cert_chain(certificate, key)
connection = http.client.HTTPSConnection("127.0.0.1", 6443, context=context)
worst = count = 0
while not os.path.exists(stop):
    began = time.monotonic()
    connection.request("GET", path)
    connection.getresponse().read()
    worst, count = max(worst, time.monotonic() - began), count + 1
    time.sleep(0.01)
print(f"{worst * 1000:.0f} {count}")
P
ask() {  # ask COMMAND...: runs it; `worst` is how long another client waited meanwhile
  rm -f "$T/stop"
  in_ns python3 "$T/ask.py" "$T/ca.crt" "$T/admin.crt" "$T/admin.key" /api/v1/namespaces/default/pods/planter "$T/stop" >"$T/ask.out" 2>&1 &
  local asking=$!
  "$@"; local status=$?
  touch "$T/stop"; wait "$asking"
  return $status
}
worst() { cut -d ' ' -f 1 "$T/ask.out"; }
entries=50000 deep=10000 pods=1
space=$(df --output=iavail "$T" | tail -n 1)
if [ "${CORACLE_LONG:-0}" != 0 ]; then
  pods=5 entries=$((space * 9 / 10 / 10000 * 10000))  # ten million, or what the disk has inodes for
  [ "$entries" -le 10000000 ] || entries=10000000
  [ "$entries" -ge 50000 ] || entries=50000
fi
usual_time() {  # usual_time NAME: the milliseconds until an ordinary pod runs, the median of several
  local i
  for i in $(seq $pods); do ready_in_time "$1-$i"; done | sort -n | sed -n "$(((pods + 1) / 2))p"
}
fill() {  # fill ENTRIES: a container's command that creates so many entries in one directory
  echo "cd /data; i=0; while [ \$i -lt $(($1 / 10000)) ]; do seq \$((i * 10000)) \$((i * 10000 + 9999)) | xargs touch; i=\$((i + 1)); done; touch filled; sleep 1000"
}
dig() {  # dig LEVELS: the same, for so many nested directories
  echo "cd /data; i=0; while [ \$i -lt $(($1 / 1000)) ]; do mkdir -p $way; cd -P $way 2>/dev/null; i=\$((i + 1)); done; touch deepest; touch /data/filled; sleep 1000"
}
way=$(printf 'd/%.0s' $(seq 1000))
for one in large deep twin; do claim "$one"; done
pod large "$(container c "$(fill $entries)" "$in_data")" "$(of_claim large)"
pod twin "$(container c "$(fill 20000)" "$in_data")" "$(of_claim twin)"
pod deep "$(container c "$(dig $deep)" "$in_data")" "$(of_claim deep)"
filled() { [ -e "$(place_of "$1")/filled" ]; }
for one in large deep twin; do check "a pod fills its volume: $one" until_true $((entries / 1000 + 30)) filled "$one"; done
depth_of() { python3 -c '
import os, sys
os.chdir(sys.argv[1]); depth = 0
while os.path.isdir("d"): os.chdir("d"); depth += 1
print(depth)' "$1"; }
expect "a tree is as deep as that" "$deep" depth_of "$(place_of deep)"
quiet=$(usual_time ordinary2)
ask sleep 1; echo "# before: a pod is ready after ${quiet} ms, a small request waits for $(worst) ms at most"
held() { left_of large || left_of deep || left_of twin; }
delete_all() {
  c delete pod large deep twin >/dev/null
  c delete pvc large deep twin --wait=false >/dev/null
  usual_time ordinary3 >"$T/meanwhile"
  until_true $((entries / 1000 + 30)) eval '! held'
}
check "all are deleted, and leave nothing" ask delete_all
meanwhile=$(cat "$T/meanwhile")
echo "# while $entries entries and a tree $deep deep go: a pod is ready after $meanwhile ms, a small request waits for $(worst) ms at most"
check "meanwhile a pod starts" test "$meanwhile" -gt 0
[ "${CORACLE_LONG:-0}" = 0 ] || check "and nobody waits 50 ms longer" test "$(worst)" -le 50 -a "$meanwhile" -le $((quiet + 50))
check "the log knows of nothing that stays" eval '! grep "what was in .* stays" "$T/coracled.log"' 

echo "# the same in volumes of the pods' own, of more pods than the node works on at once"
owners="own1 own2 own3 own4 own5 own6"
for one in $owners; do pod "$one" "$(container c "$(fill 20000)" "$in_data"),$(container d "$(dig 1000)" '{name: more, mountPath: /data}')" '{name: data, emptyDir: {}}, {name: more, emptyDir: {}}'; done
own_volumes=$(for one in $owners; do echo "$T/state/pods/$(c get pod "$one" -o 'jsonpath={.metadata.uid}')/volumes"; done)
all_filled() { local one; for one in $own_volumes; do [ -e "$one/data/filled" ] && [ -e "$one/more/filled" ] || return 1; done; }
check "pods fill them" until_true 60 all_filled
all_gone() { local one; for one in $owners; do gone pod "$one" || return 1; done; ! ls -d $own_volumes 2>/dev/null && ! ls -A "$T/state/pods/.removed" 2>/dev/null | grep .; }
delete_own() {
  c delete pod $owners --wait=false >/dev/null
  usual_time ordinary4 >"$T/meanwhile"
  until_true 60 all_gone
}
check "all are deleted, and leave nothing" ask delete_own
echo "# meanwhile a pod is ready after $(cat "$T/meanwhile") ms, a small request waits for $(worst) ms at most"
check "meanwhile a pod starts" test "$(cat "$T/meanwhile")" -gt 0
[ "${CORACLE_LONG:-0}" = 0 ] || check "and nobody waits 50 ms longer" test "$(worst)" -le 50 -a "$(cat "$T/meanwhile")" -le $((quiet + 50))

echo "# killed over them"
[ "$entries" -le 500000 ] || entries=500000
for one in large deep; do claim "$one"; done
pod large "$(container c "$(fill $entries)" "$in_data")" "$(of_claim large)"
pod deep "$(container c "$(dig $deep)" "$in_data")" "$(of_claim deep)"
for one in large deep; do until_true $((entries / 1000 + 30)) filled "$one"; done
c delete pod large deep >/dev/null
c delete pvc large deep --wait=false >/dev/null
catch() {  # waits until the pod is being deleted
  local end=$((SECONDS + 10))
  until ls -A "$volumes" | grep -q "^.removed_" || [ "$SECONDS" -ge "$end" ]; do :; done
}
catch; kill_daemon
echo "# left when the daemon is killed: $(ls -A "$volumes" | grep -E 'large|deep' | sed 's/_[^_]*$//' | xargs)"
start_daemon
check "a daemon that is killed while it deletes goes on" until_true $((entries / 1000 + 30)) eval 'deleted large && deleted deep'
expect "and has lost nothing of others" "mine" cat "$place/real/marker"
catch_new() {  # waits until a directory for the claim exists, or its volume does
  local end=$((SECONDS + 10))
  until left_of "$1" >/dev/null || [ "$SECONDS" -ge "$end" ]; do :; done
}
wrong=
for i in 1 2 3; do
  claim "cut$i"; pod "cut$i" "$(container c "echo $i >>/data/file; sleep 1000" "$in_data")" "$(of_claim "cut$i")"
  catch_new "cut$i"; kill_daemon; start_daemon
  until_true 20 phase_is pod "cut$i" Running || wrong="$wrong cut$i:waits"
  until_true 5 eval '[ "$(c exec cut'$i' -- cat /data/file)" = '$i' ]' || wrong="$wrong cut$i:data"
  [ "$(left_of "cut$i" | wc -l)" = 1 ] || wrong="$wrong cut$i:$(left_of "cut$i" | xargs)"
done
expect "one that is killed while it makes a volume makes it, once" "" echo "$wrong"
c delete pod cut1 cut2 cut3 --wait=false >/dev/null; c delete pvc cut1 cut2 cut3 --wait=false >/dev/null
check "which is deleted as others are" until_true 20 eval 'deleted cut1 && deleted cut2 && deleted cut3'

echo "# the longest names"
space=$(printf 'n%.0s' $(seq 63)) name=$(printf 'c%.0s' $(seq 253))
c create namespace "$space" >/dev/null
until_true 10 c get serviceaccount default -n "$space"
claim "$name" "$space"
pod long "$(container c 'echo kept >/data/file; sleep 1000' "$in_data")" "$(of_claim "$name")" "" "$space"
long_runs() { [ "$(c get pod long -n "$space" -o 'jsonpath={.status.phase}')" = Running ]; }
check "a claim with a name of 253 characters in a namespace of 63 has a volume, and a pod uses it" until_true 20 long_runs
long_place=$(place_of "$name" -n "$space")
check "its directory is there" until_true 5 grep -qx kept "$long_place/file"
c delete pod long -n "$space" >/dev/null; c delete pvc "$name" -n "$space" --wait=false >/dev/null
check "and goes with it" until_true 20 eval '! ls -A "$volumes" | grep -q "$space"'
c delete namespace "$space" --wait=false >/dev/null

echo "# volumes that are full of links"
c delete pod planter swapper >/dev/null; c delete pvc ways swapped --wait=false >/dev/null
check "they are deleted, with pipes, sockets and devices" until_true 20 eval 'deleted ways && deleted swapped'
untouched "and nothing that the links lead to"

echo "# a pod that fills what it has"
pod memory "$(container c 'dd if=/dev/zero of=/data/all bs=64k; ls -l /data; sleep 1000' "$in_data")" '{name: data, emptyDir: {medium: Memory, sizeLimit: 2Mi}}'
soon expect_match "a volume in memory ends at its size" 'No space left' c logs memory
soon expect_match "with what fits" ' 2097152 ' c logs memory
check "another pod writes meanwhile" ready_in_time ordinary5
c delete pod memory --wait=false >/dev/null
fills='dd if=/dev/zero of=/data/all bs=1M count=100 2>&1; sync; echo; du -m /data/all; sleep 1000'
mkdir "$disk"
truncate -s 96M "$T/disk.img"
if mkfs.ext4 -q -O quota,project -E quotatype=prjquota "$T/disk.img" >"$T/mkfs.log" 2>&1 && mount -o loop,prjquota "$T/disk.img" "$disk" 2>>"$T/mkfs.log"; then
  limit=64 holds="holds it to its size" others="another claim's pod writes beside it"
else
  echo "# no file system here that counts by projects: $(grep -m 1 mount "$T/mkfs.log")"
  mount -t tmpfs -o size=32m none "$disk"
  limit=32 holds="ends with its disk" others=
fi
mkdir "$disk/volumes"
stop_daemon; echo "volumeDirs: [$disk/volumes]" >>"$T/etc/config.yaml"; start_daemon
claim full; claim beside
pod beside "$(container c 'sleep 1000' "$in_data")" "$(of_claim beside)"
pod full "$(container c "$fills" "$in_data")" "$(of_claim full)"
check "a pod writes more than its volume holds" until_true 30 eval 'c logs full 2>/dev/null | grep -q "No space left\|quota exceeded"'
until_true 20 eval 'c logs full | grep -q "/data/all$"'
got=$(c logs full | sed -n 's/^\([0-9]*\)\t.*all$/\1/p')
check "which $holds" test "$got" -le "$limit" -a "$got" -ge $((limit / 2))
if [ -n "$others" ]; then check "$others" until_true 20 eval 'c exec beside -- sh -c "echo x >/data/x && sync"'; fi
check "pods with volumes elsewhere write" ready_in_time ordinary6
check "and the node keeps what it is told" eval 'c create configmap later --from-literal=a=b && c get configmap later'
c delete pod full beside >/dev/null; c delete pvc full beside --wait=false >/dev/null
check "when the claim is deleted the space is there again" until_true 20 eval '[ "$(df -m --output=used "$disk" | tail -n 1)" -lt 8 ]'
untouched "through all of it nothing was made outside"
