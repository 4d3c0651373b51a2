#!/bin/sh
# The life cycle of containers with coracle-oci, as a caller of any OCI runtime would use it.
#   oci_live.sh CORACLE_OCI
oci=$1
if [ "$(id -u)" != 0 ]; then echo "skipped: needs root"; exit 77; fi
busybox=$(command -v busybox) || { echo "skipped: needs busybox-static"; exit 77; }
grep -q ' - cgroup2 ' /proc/self/mountinfo || { echo "skipped: needs cgroup v2"; exit 77; }

work=$(mktemp -d /tmp/coracle-oci-XXXXXX)
failed=0
run() { "$oci" --root "$work/root" "$@"; }
expect() { # NAME WANT GOT
  if [ "$2" = "$3" ]; then echo "ok - $1"; else echo "not ok - $1: want '$2', got '$3'"; failed=1; fi
}
clean() {
  for id in $(run list -f json | grep -o '"id":"[^"]*"' | cut -d'"' -f4); do run delete --force "$id"; done
  rm -rf "$work"
}
trap clean EXIT

mkdir -p "$work/b/rootfs/bin"
cp "$busybox" "$work/b/rootfs/bin/busybox"
ln -s busybox "$work/b/rootfs/bin/sh"
for name in sleep cat echo hostname id ls grep; do ln -s busybox "$work/b/rootfs/bin/$name"; done

run spec --bundle "$work/b"
expect "spec writes a configuration" 0 $?
run spec --bundle "$work/b" 2>/dev/null
expect "spec does not overwrite" 1 $?
wait_stopped() { # wait_stopped ID: waits at most a minute
  for _ in $(seq 1200); do run state "$1" | grep -q '"stopped"' && return; sleep 0.05; done
  echo "not ok - $1 does not stop"; failed=1
}
set_args() { # set_args JSON: replaces the list of arguments
  awk -v args="$1" '/"args": \[/ { print "        \"args\": " args ","; skip = 1; next }
                    skip && /\]/ { skip = 0; next } !skip { print }' "$work/b/config.json.base" > "$work/b/config.json"
}
sed 's/"terminal": true/"terminal": false/' "$work/b/config.json" > "$work/b/config.json.base"

set_args '["sh", "-c", "echo from $(hostname); exit 3"]'
out=$(run run --bundle "$work/b" one)
expect "run gives the exit code" 3 $?
expect "run passes its output on" "from coracle" "$out"
run state one 2>/dev/null
expect "run leaves nothing" 1 $?

set_args '["sleep", "1000"]'
run run -d --bundle "$work/b" --pid-file "$work/pid" two
expect "run --detach returns" 0 $?
expect "state says running" '"running"' "$(run state two | sed -n 's/.*"status": \(.*\),/\1/p')"
expect "the pid file names the process" "sleep" "$(cut -d' ' -f1 < /proc/"$(cat "$work/pid")"/comm)"
expect "exec runs beside it" "hi there" "$(run exec -e WHO=there two sh -c 'echo hi $WHO')"
run exec two sh -c 'exit 5'
expect "exec gives the exit code" 5 $?
run delete two 2>/dev/null
expect "delete refuses what runs" 1 $?
run kill two KILL
expect "kill" 0 $?
wait_stopped two
run delete two
expect "delete" 0 $?

# Without a pid namespace, kill signals all processes of the cgroup, and a process may exit before its turn.
tr -d '\n' < "$work/b/config.json" | sed 's/{ *"type": "pid" *},//' > "$work/b/config.json.new"
mv "$work/b/config.json.new" "$work/b/config.json"
refused=
for _ in $(seq 20); do
  taskset 1 "$oci" --root "$work/root" run --bundle "$work/b" shared &  # it waits for the process and reaps it at once
  for _ in $(seq 3000); do run state shared 2>/dev/null | grep -q '"running"' && break; sleep 0.02; done
  refused=$refused$(taskset 1 nice -n 19 "$oci" --root "$work/root" kill shared KILL 2>&1)
  wait $!
done
expect "kill of what shares its caller's processes" "" "$refused"

set_args '["sh", "-c", "echo started > /dev/shm/x; cat /dev/shm/x"]'
run create --bundle "$work/b" three > "$work/out"
expect "create" 0 $?
expect "create does not start" "" "$(cat "$work/out")"
expect "state says created" '"created"' "$(run state three | sed -n 's/.*"status": \(.*\),/\1/p')"
expect "what waits to be started is closed to its container" "" "$(run exec three sh -c 'cat /proc/1/environ /proc/1/maps; ls /proc/1/root/; ls -l /proc/1/exe /proc/1/fd/ | grep -e "->"' 2> /dev/null)"
run start three
expect "start" 0 $?
wait_stopped three
expect "it ran then" "started" "$(cat "$work/out")"
run start three 2>/dev/null
expect "start works once" 1 $?
run delete three

set_args '["cat", "/proc/self/status"]'
out=$(trap '' PIPE HUP; run run --bundle "$work/b" deaf)
expect "signals that the caller ignores are heard" "SigIgn: 0000000000000000" "$(echo "$out" | grep SigIgn | tr '\t' ' ')"

out=$(python3 -c 'import os, signal, sys; signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals()); os.execv(sys.argv[1], sys.argv[1:])' "$oci" --root "$work/root" run --bundle "$work/b" deaf)
expect "and those that it blocks" "SigBlk: 0000000000000000" "$(echo "$out" | grep SigBlk | tr '\t' ' ')"

set_args '["no-such-program"]'
out=$(run run --bundle "$work/b" four 2>&1)
expect "a missing program fails" 1 $?
echo "$out" | grep -q 'exec: "no-such-program": executable file not found in $PATH' || { echo "not ok - message: $out"; failed=1; }
expect "and leaves nothing" "[]" "$(run list -f json)"
# config.json needs a process only for start.
python3 -c 'import json, sys; c = json.load(open(sys.argv[1])); del c["process"]; json.dump(c, open(sys.argv[2], "w"))' "$work/b/config.json.base" "$work/b/config.json"
run create --bundle "$work/b" empty </dev/null >/dev/null
expect "create without a process" 0 $?
expect "exec in a container without a process" "here" "$(run exec empty /bin/echo here)"
out=$(run start empty 2>&1)
expect "start without a process" 0 $?
expect "start says that there was nothing" "coracle-oci: config.json has no process: there was nothing to start" "$out"
wait_stopped empty
run delete empty
expect "delete after start without a process" 0 $?
expect "run without a process is refused" 'coracle-oci: process: missing: there is nothing to run' "$(run run --bundle "$work/b" empty 2>&1)"
expect "an unknown command is named" 'coracle-oci: unknown command "creat" (see coracle-oci --help)' "$(run creat x 2>&1)"
expect "what is missing is named" 'coracle-oci: container-id is required (see coracle-oci --help)' "$(run create 2>&1)"
run create 2> /dev/null
expect "usage errors are errors" 1 $?
run features | grep -q ociVersionMax || { echo "not ok - features"; failed=1; }
exit $failed
