#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The content of a claim's volume is copied to another claim by an archive: completely or not at all.
# for: daemon/node/volume/volume_archives daemon/api/volumes daemon/volume/local runtime/image/fetch/tree runtime/image/trees ctl/volume
. "$(dirname "$0")/lib.sh"
start_machine

apply() { c apply -f - >"$T/apply.log" 2>&1; }
claim() {  # claim NAME
  apply <<Y
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: $1}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}
Y
}
pod() {  # pod NAME CLAIM COMMAND
  apply <<Y
{apiVersion: v1, kind: Pod, metadata: {name: $1}, spec: {terminationGracePeriodSeconds: 1, restartPolicy: Never,
  containers: [{name: c, image: localhost/busybox:latest, command: [sh, -c, "$3"], volumeMounts: [{name: data, mountPath: /data}]}],
  volumes: [{name: data, persistentVolumeClaim: {claimName: $2}}]}}
Y
}
phase_is() { [ "$(c get "$1" "$2" -o 'jsonpath={.status.phase}' 2>/dev/null)" = "$3" ]; }
place_of() { c get pv "$(c get pvc "$1" -o 'jsonpath={.spec.volumeName}')" -o 'jsonpath={.spec.local.path}'; }
listing() { (cd "$1" && find . -printf '%P %y %m %U:%G %s %T@ %l\n' | sort; find . -type f | sort | xargs sha256sum); }

claim old
pod writer old 'mkdir -p /data/a/b; echo kept >/data/a/b/file; ln /data/a/b/file /data/linked; ln -s a/b/file /data/short; chown 70:70 /data/a; chmod 2750 /data/a; dd if=/dev/urandom of=/data/large bs=1M count=3; truncate -s 100M /data/sparse; sleep 1000'
check "a pod fills a volume" until_true 20 phase_is pod writer Running
place=$(place_of old)
check "to its end" until_true 10 test -e "$place/sparse"
expect_fail "while it runs nothing is exported" 'persistentvolumeclaim "old" is in use by pod writer' c volume export old "$T/old.tar.zst"
check "and no file is left" test ! -e "$T/old.tar.zst"
check "unless that is asked for" c volume export old "$T/running.tar.zst" --in-use
c delete pod writer >/dev/null
expect_match "it is exported" "exported old to $T/old.tar.zst: [0-9.]+[kM]B" c volume export old "$T/old.tar.zst"
check "in an archive that is small although a file is not" test "$(stat -c %s "$T/old.tar.zst")" -lt 8000000
expect_match "which others read" '^./a/b/file|^a/b/file' tar --zstd -tf "$T/old.tar.zst"
expect "and is its owner's alone" 600 stat -c %a "$T/old.tar.zst"
check "to standard output it is the same" eval 'c volume export old - >"$T/piped.tar.zst" && tar --zstd -tf "$T/piped.tar.zst" >"$T/piped" && tar --zstd -tf "$T/old.tar.zst" | cmp - "$T/piped"'
pod once old 'exit 0'
check "a pod that has ended" until_true 20 phase_is pod once Succeeded
check "uses nothing, though it is still there" until_true 10 eval 'c volume export old - >/dev/null'
c delete pod once >/dev/null
expect_fail "a claim that is not there is named" 'persistentvolumeclaim "nobody" not found in namespace "default"' c volume export nobody "$T/nobody.tar.zst"
expect_fail "a claim that nothing was written to, too" 'has no volume yet' eval 'claim empty; c volume export empty "$T/nobody.tar.zst"'

claim new
expect_match "a claim that waits for its first pod is filled" 'imported .*/old.tar.zst into new: 7 files and directories, 108MB' c volume import new "$T/old.tar.zst"
expect "with all of it" "$(listing "$place")" listing "$(place_of new)"
check "its holes are holes" test "$(du -sk "$(place_of new)" | cut -f 1)" -lt 10000
pod reader new 'cat /data/short; sleep 1000'
check "and a pod uses it" until_true 20 eval '[ "$(c logs reader 2>/dev/null)" = kept ]'
expect_fail "while it runs nothing is imported" 'persistentvolumeclaim "new" is in use by pod reader' c volume import new "$T/old.tar.zst" --replace
c delete pod reader >/dev/null
expect_fail "nor over what is there" 'is not empty' c volume import new "$T/old.tar.zst"
mkdir -p "$T/tree/etc"; echo tar >"$T/tree/etc/by"; tar -C "$T/tree" -czf "$T/tree.tgz" .
check "unless that is asked for, from an archive of another program" c volume import new "$T/tree.tgz" --replace
expect "which has taken its place" tar cat "$(place_of new)/etc/by"
check "whole" test ! -e "$(place_of new)/linked"
check "from standard input, too" eval 'c volume import new - --replace <"$T/old.tar.zst"'
check "what was there is gone from the disk" until_true 10 eval '! ls -A "$T/state/volumes" | grep -q removed'
before=$(listing "$(place_of new)")
wrong=
cuts="0 1 1000 1000000 3000000"
[ "${CORACLE_LONG:-0}" = 0 ] || cuts="$cuts $(size=$(stat -c %s "$T/old.tar.zst"); for i in $(seq 60); do echo $(((RANDOM * 32768 + RANDOM) % (size - 100))); done | xargs)"
for cut in $cuts; do
  head -c "$cut" "$T/old.tar.zst" >"$T/cut.tar.zst"
  c volume import new "$T/cut.tar.zst" --replace >"$T/cut.log" 2>&1 && wrong="$wrong $cut"
done
expect "an archive that is cut off is refused" "" echo "$wrong"
expect "and changes nothing" "$before" listing "$(place_of new)"
expect_fail "so is what is no archive" 'archive|format' c volume import new "$0" --replace
printf '' >"$T/outside"
tar -C "$T" --transform 's|^|../|' -P -cf "$T/hostile.tar" outside 2>/dev/null
expect_fail "and what leads out" '.' c volume import new "$T/hostile.tar" --replace

echo "# a claim that is filled from another"
apply <<Y
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: twin}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}},
  dataSource: {kind: PersistentVolumeClaim, name: new}}}
Y
pod holder new 'sleep 1000'
check "while a pod uses the source" until_true 20 phase_is pod holder Running
pod reader twin 'cat /data/short; sleep 1000'
check "its pod waits, and an event says why" until_true 20 eval 'c get events --field-selector involvedObject.name=twin -o "jsonpath={.items[*].message}" | grep -q "waits until no pod uses the PVC new"'
c delete pod holder >/dev/null
check "then it starts" until_true 20 eval '[ "$(c logs reader 2>/dev/null)" = kept ]'
expect "with all that the other has" "$(listing "$(place_of new)")" listing "$(place_of twin)"
soon expect_match "which is told" 'copied 7 files and directories, 10[0-9]+ bytes' c get events --field-selector involvedObject.name=twin -o 'jsonpath={.items[*].message}'
c delete pod reader >/dev/null

echo "# killed while it imports"
wrong=
kills=4
[ "${CORACLE_LONG:-0}" = 0 ] || kills=60
for i in $(seq $kills); do
  c volume import new "$T/tree.tgz" --replace >/dev/null 2>&1 &
  sleep "0.0$(printf %02d $((RANDOM % 100)))"; kill_daemon; wait $!; start_daemon
  now=$(listing "$(place_of new)")
  if [ "$now" != "$before" ]; then
    [ "$(cat "$(place_of new)/etc/by" 2>/dev/null)" = tar ] || wrong="$wrong $i"
    c volume import new "$T/old.tar.zst" --replace >/dev/null 2>&1 || wrong="$wrong again-$i"
  fi
done
expect "there is the old or the new, and nothing between" "" echo "$wrong"
check "and nothing else stays" until_true 10 eval '! ls -A "$T/state/volumes" | grep -qE "removed|staged"'
