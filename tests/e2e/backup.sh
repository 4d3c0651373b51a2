#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Backup and restore of the running machine: the restored content, refusals, a full disk, a process that is killed halfway; and
# the store's own checks.
# for: daemon/backup daemon/api/store store/engine ctl/backup
. "$(dirname "$0")/lib.sh"

trap cleanup EXIT
make_network || skip_all "cannot make network namespaces with veth pairs"
mkdir -p "$T/state"
mount -t tmpfs -o size=320m,mode=700 tmpfs "$T/state" || skip_all "cannot mount a tmpfs"
write_config
start_daemon
note_log() { log_from=$(stat -c %s "$T/coracled.log"); }
daemon_says() { tail -c +$((log_from + 1)) "$T/coracled.log" | grep -Eq -- "$1"; }
value() { c get configmap "$1" -o 'jsonpath={.data.v}'; }
has_value() { [ "$(value "$1" 2>/dev/null)" = "$2" ]; }
left() { ls "$T/state" | grep -Ev '^(state\.db.*|pki|runtime|pods|seccomp)$' | tr '\n' ' '; }
nothing_left() { [ -z "$(left)" ]; }

# ---- backup and restore ----

c create configmap a --from-literal=v=then >/dev/null
c create configmap gone --from-literal=v=1 >/dev/null
check "backup answers" c backup "$T/one.db"
expect "the file is its owner's only" 600 stat -c %a "$T/one.db"
expect "nothing is left beside it" one.db eval 'ls -A "$T" | grep one.db'
expect "… nor in the machine's state" "" left
expect_fail "an existing file is not replaced" 'one.db exists; --force replaces it' c backup "$T/one.db"
check "… unless it is said" c backup --force "$T/one.db"
check "a backup goes through a pipe" eval 'c backup - 2>/dev/null | cat >"$T/piped.db"'
expect "… whole" "SQLite format 3" eval 'head -c 15 "$T/piped.db"'
uid=$(c get configmap a -o 'jsonpath={.metadata.uid}')
c create configmap new --from-literal=v=1 >/dev/null
c delete configmap gone >/dev/null
c patch configmap a -p '{"data":{"v":"now"}}' >/dev/null
before=$(c get configmap a -o 'jsonpath={.metadata.resourceVersion}')
in_ns timeout 60 "$coraclectl" --kubeconfig "$T/etc/admin.kubeconfig" get configmaps -w -o name >"$T/watch.out" 2>&1 & watcher=$!
until_true 10 test -s "$T/watch.out"
note_log
expect_match "restore says what it did" '^restored [0-9]+ objects of .*certificates and keys; coracled starts anew' c restore "$T/one.db"
check "the daemon starts anew" until_true 20 eval 'daemon_says "ready: node edge" && c get --raw /readyz'
check "what was there is back" has_value a then
check "… what was deleted too" has_value gone 1
expect_fail "… what came later is not" 'not found' value new
expect "objects are who they were" "$uid" eval "c get configmap a -o 'jsonpath={.metadata.uid}'"
check "revisions go on above" eval '[ "$(c get configmap a -o "jsonpath={.metadata.resourceVersion}")" -gt "$before" ]'
check "a watch of before has ended" until_true 10 eval '! kill -0 '$watcher
check "the daemon lives on in the same process" kill -0 "$daemon_pid"
kept=$(ls -d "$T"/state/before-restore-*)
check "the old store is kept" test -s "$kept/state.db"
check "… and is a backup itself" c restore --without-keys "$kept/state.db"
check "… that brings back what was replaced" until_true 20 has_value a now
check "from standard input too" eval 'c restore - <"$T/one.db"'
check "… and it is there" until_true 20 has_value a then
c create configmap after --from-literal=v=1 >/dev/null; kill_daemon; start_daemon
check "what is written stays after a kill" has_value after 1

# ---- invalid inputs: refused without any change ----

rm -rf --one-file-system "$T"/state/before-restore-*
head -c 20000 "$T/one.db" >"$T/cut.db"
expect_fail "a file that is cut off" 'damaged or cut off' c restore "$T/cut.db"
head -c 50000 /dev/urandom >"$T/noise.db"
expect_fail "a file that is no database" 'file is not a database' c restore "$T/noise.db"
: >"$T/empty.db"
expect_fail "an empty file" 'is empty' c restore "$T/empty.db"
cp "$T/one.db" "$T/newer.db"; printf '\0\0\0\2' | dd of="$T/newer.db" bs=1 seek=60 conv=notrunc status=none
expect_fail "a newer version's" 'has layout 2; this version of Coracle reads layout 1' c restore "$T/newer.db"
sed 's/"then"/"than"/' "$T/one.db" >"$T/turned.db"
expect_fail "a file with a byte that turned over" 'damaged: what it holds is not what was written' c restore "$T/turned.db"
expect_fail "a file that is not there" 'No such file' c restore "$T/nowhere.db"
expect_fail "a directory" 'is a directory' c restore "$T"
expect_fail "a directory that is not there" 'No such file' c backup "$T/nowhere/x.db"
expect "… and none of them left anything" "" left
check "the daemon serves what it served" has_value a then
check "… and takes writes" c create configmap goes-on --from-literal=v=1

# ---- without permission ----

c create namespace shop >/dev/null; until_true 10 c get serviceaccount default -n shop
token=$(c create token default -n shop 2>/dev/null || c create --raw /api/v1/namespaces/shop/serviceaccounts/default/token -f - <<<'{"spec":{}}' | sed 's/.*"token":"\([^"]*\)".*/\1/')
sed -e '/client-certificate-data/d' -e "s#client-key-data:.*#token: $token#" "$T/etc/admin.kubeconfig" >"$T/shop.kubeconfig"
as_shop() { in_ns "$coraclectl" --kubeconfig "$T/shop.kubeconfig" "$@"; }
expect_fail "a service account may not back up" 'forbidden|Forbidden' as_shop backup "$T/stolen.db"
expect_fail "… nor restore" 'forbidden|Forbidden|Failed|failed' as_shop restore "$T/one.db"
check "… and nothing was written" test ! -e "$T/stolen.db"

# ---- a full disk ----

free=$(df --output=avail -k "$T/state" | tail -1)
head -c $(((free - 20000) * 1024)) /dev/zero >"$T/state/filler"
expect_fail "no restore onto a disk that is nearly full" 'disk is nearly full|No space' c restore "$T/one.db"
rm -f "$T/state/filler"
expect "… leaves nothing" "" left
mkdir "$T/small" && mount -t tmpfs -o size=16k tmpfs "$T/small"
expect_fail "no backup onto a full disk" 'No space' c backup "$T/small/x.db"
expect "… leaves no part of one" "" ls -A "$T/small"
umount "$T/small"
check "the daemon still takes writes" c create configmap still --from-literal=v=1

# ---- killed halfway ----

for i in $(seq 1 300); do printf -- '---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: bulk-%s}\ndata: {v: "%s"}\n' "$i" "$(head -c 3000 /dev/zero | tr '\0' x)"; done >"$T/bulk.yaml"
c apply -f "$T/bulk.yaml" >/dev/null
check "a larger backup" c backup "$T/large.db"
c delete configmap bulk-1 >/dev/null
torn=0
for after in 0.01 0.05 0.1 0.2 0.3 0.5; do
  c restore --without-keys "$T/large.db" >/dev/null 2>&1 & client=$!
  sleep "$after"
  kill_daemon
  wait "$client" 2>/dev/null
  start_daemon
  old=no new=no
  c get configmap bulk-1 >/dev/null 2>&1 && new=yes
  [ "$(c get configmaps -o name | grep -c bulk-)" = 299 ] && old=yes
  [ "$new" = yes ] && [ "$(c get configmaps -o name | grep -c bulk-)" != 300 ] && torn=1
  [ "$new" = no ] && [ "$old" = no ] && torn=1
  [ -e "$T/state/restore" ] && torn=1
  [ "$new" = yes ] && c delete configmap bulk-1 >/dev/null
done
expect "kill -9 leaves the old store or the new one, whole" 0 echo "$torn"
c backup "$T/killed.db" >/dev/null 2>&1 & client=$!
kill -KILL "$client"; wait "$client" 2>/dev/null
check "a backup that is killed is no file" eval '! [ -e "$T/killed.db" ] || c restore "$T/killed.db"'
(sleep 0.02; kill -KILL "$daemon_pid") & c backup "$T/half.db" >/dev/null 2>&1
wait "$daemon_pid" 2>/dev/null; daemon_pid=
start_daemon
check "one whose daemon dies is no file, or a whole one" eval '! [ -e "$T/half.db" ] || c restore --without-keys "$T/half.db"'
until_true 20 c get --raw /readyz

# ---- integrity of the file ----

soon expect_match "a whole store is told so" '^whole, as of ' c store check
expect_match "its size is told" '^[0-9]+ objects in ' c store status
expect_match "… and what objects may take" '^they take [0-9]+ (bytes|kB|MB) of the [0-9]+ MB that storeMaxSize lets them$' c store status
c delete configmaps --all >/dev/null
check "compaction gives back what is unused" eval 'c store compact && [ "$(c get --raw /coracle/v1/store | sed "s/.*\"unusedBytes\":\([0-9]*\).*/\1/")" = 0 ]'
c create configmap marked --from-literal=v=treasuretreasure >/dev/null
stop_daemon; start_daemon
at=$(grep -abo treasuretreasure "$T/state/state.db" | head -1 | cut -d: -f1)
note_log
printf pleasure | dd of="$T/state/state.db" bs=1 seek="$at" conv=notrunc status=none
expect_fail "a byte that turned over on the disk is found" 'damaged: configmaps default/marked is not what was written' c store check
check "… and logged" until_true 10 daemon_says "store's file is damaged.*default/marked"
expect_match "… and told by the doctor" 'store .*damaged.*default/marked' c doctor --config "$T/etc/config.yaml"
check "what is served is right" has_value marked treasuretreasure
check "… and is saved right" c backup "$T/saved.db"
check "… and written anew" c restore --without-keys "$T/saved.db"
check "the new file is whole" until_true 20 eval 'c store check && has_value marked treasuretreasure'
