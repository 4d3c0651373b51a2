#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The installed service in a machine of its own: Debian with systemd and cgroup v2 under qemu. It boots, runs the hello manifest,
# holds limits, outlives its daemon, stops in good order, comes back after a reboot, and after power cuts with everything it had
# acknowledged. TAP; skipped as a whole, with the reason, where there is no qemu.
#   CORACLE_BUILD_DIR   the build (default: build)      CORACLE_VM_FILES   or a tree of installed files
#   CORACLE_LONG=1      hundreds of power cuts instead of a few (CORACLE_VM_CUTS: how many)
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
build=${CORACLE_BUILD_DIR:-$root/build}
cache=${CORACLE_TEST_CACHE:-/var/tmp/coracle-tests}
cuts=${CORACLE_VM_CUTS:-$([ "${CORACLE_LONG:-0}" = 1 ] && echo 200 || echo 3)}
n=0 failures=0

skip_all() { echo "ok 1 - virtual machine # SKIP $*"; exit 77; }
[ "$(id -u)" = 0 ] || skip_all "needs root (to make a Debian)"
[ "$(uname -m)" = x86_64 ] || skip_all "the machine is made for x86_64"
for program in qemu-system-x86_64 qemu-img mmdebstrap mke2fs python3; do
  command -v "$program" >/dev/null || skip_all "$program is missing"
done

T=$(mktemp -d "${TMPDIR:-/var/tmp}/coracle-vm.XXXXXX")
finish() {
  "$here/vm.py" cut "$T" 2>/dev/null
  if [ "$failures" -gt 0 ]; then echo "# the console's end:"; tail -n 20 "$T/console.log" 2>/dev/null | sed 's/^/# /'; fi
  rm -rf "$T"
}
trap finish EXIT

ok() { n=$((n + 1)); echo "ok $n - $*"; }
not_ok() { n=$((n + 1)); failures=$((failures + 1)); echo "not ok $n - $*"; }
bail() { not_ok "$1"; shift; printf '%s\n' "$@" | sed 's/^/  | /' | tail -n 60; exit 1; }
on() { local seconds=$1; shift; "$here/vm.py" run "$T" "$seconds" ". /root/lib.sh 2>/dev/null; $*"; }  # on SECONDS SCRIPT
check() {  # check NAME SECONDS SCRIPT: it succeeds in the machine
  local name=$1 seconds=$2 out status
  shift 2
  out=$(on "$seconds" "$@" 2>&1); status=$?
  if [ $status -eq 0 ]; then ok "$name"; return 0; fi
  not_ok "$name"; echo "$out" | sed 's/^/  | /' | tail -n 40; echo "  | (status $status) $*" | cut -c1-300
  return 1
}
diagnose() { on 60 'systemctl status coracled --no-pager -l | head -n 30; journalctl -u coracled --no-pager -n 40; coraclectl get pods -A -o wide; coraclectl get events' | sed 's/^/  | /'; }
boot() {
  "$here/vm.py" start "$T" "$image" -drive "file=$T/payload.tar,if=virtio,format=raw,readonly=on" || bail "qemu starts" "$(cat "$T/qemu.log")"
}

# ---- what is installed ----

mkdir -p "$T/payload/root"
if [ -n "${CORACLE_VM_FILES:-}" ]; then  # a tree that is installed already
  cp -a "$CORACLE_VM_FILES/." "$T/payload/"
else
  [ -x "$build/daemon/coracled" ] || bail "there is something to install" "$build/daemon/coracled is missing: build first"
  DESTDIR=$T/payload meson install -C "$build" --no-rebuild --quiet >"$T/install.log" 2>&1 || bail "meson install" "$(cat "$T/install.log")"
fi
if [ -d "$T/payload/usr/local/bin" ]; then  # a build for another prefix; the units know /usr
  cp -a "$T/payload/usr/local/." "$T/payload/usr/" && rm -rf "$T/payload/usr/local"
fi
strip "$T"/payload/usr/bin/* 2>/dev/null
cp "$here/guest/lib.sh" "$here/guest/writer.sh" "$T/payload/root/"
chmod +x "$T/payload/root/writer.sh"
tar -C "$T/payload" --owner=0 --group=0 -cf "$T/payload.tar" usr root || bail "payload"

image=$("$here/image.sh" "$cache") || bail "a Debian for the machine can be made"
boot

# ---- install, hello ----

check "the machine boots" 300 'systemctl is-system-running --wait | grep -qx running; mountpoint -q /sys/fs/cgroup && grep -qw memory /sys/fs/cgroup/cgroup.controllers' || exit 1
check "files are installed" 60 'tar -C / -xf /dev/vdb usr root && . /root/lib.sh && coracled --version && ldd /usr/bin/coracled | grep "not found"; [ $? = 1 ]' || exit 1
check "systemd-analyze verify is clean" 60 'systemd-analyze verify --man=no /usr/lib/systemd/system/coracled.service /usr/lib/systemd/system/coracle-pods.service >/tmp/v 2>&1; [ ! -s /tmp/v ] || { cat /tmp/v; false; }'
check "the service starts and says that it is ready" 120 'systemctl daemon-reload; systemd-tmpfiles --create coracle.conf; systemctl enable --now coracled && is "$(systemctl is-active coracled)" active && systemctl show -p StatusText coracled | grep -q https' || { diagnose; exit 1; }
check "the node becomes ready" 60 'until_true 50 ready' || { diagnose; exit 1; }
check "its state is private" 20 'is "$(stat -c %a /var/lib/coracle /run/coracle | tr "\n" " ")" "700 700 "'
check "an image is made on the spot" 60 'rootfs /root/box && coraclectl image pack /root/box localhost/busybox:latest --cmd sh && coraclectl image list | grep -q localhost/busybox' || { diagnose; exit 1; }
check "the hello manifest runs" 180 'coraclectl apply -f /usr/share/coracle/hello.yaml && until_true 150 hello_runs' || { diagnose; exit 1; }
check "its Service answers" 60 'until_true 30 hello_answers'
check "its log is there" 30 'pod=$(coraclectl get pods -l app=hello -o "jsonpath={.items[0].metadata.name}"); coraclectl logs $pod | grep -q "^$pod serves on "'
check "exec works" 30 'is "$(coraclectl exec deploy/hello -- echo hi)" hi'

# ---- limits ----

pod() {  # pod NAME LIMITS COMMAND: one container
  cat <<Y
apiVersion: v1
kind: Pod
metadata: {name: $1}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  containers:
  - {name: c, image: localhost/busybox:latest, resources: {limits: {$2}}, command: [sh, -c, '$3']}
Y
}
check "a memory limit ends its container with OOMKilled and 137" 90 "coraclectl apply -f - <<'Y'
$(pod hog 'memory: 24Mi' 'tail /dev/zero; echo ended with \$?; exit 3')
Y
until_true 60 phase_is hog Failed; is \"\$(of_pod hog '{.status.containerStatuses[0].state.terminated.reason} {.status.containerStatuses[0].state.terminated.exitCode}')\" 'OOMKilled 137'" || diagnose
check "a cpu limit is a quota" 90 "coraclectl apply -f - <<'Y'
$(pod spin 'cpu: 200m' 'while :; do :; done')
Y
until_true 60 phase_is spin Running
group=\$(dirname \$(grep -lx '20000 100000' \$(find /sys/fs/cgroup/coracle -name cpu.max) | tail -n 1)) || exit 1
used() { awk '\$1 == \"usage_usec\" {print \$2}' \$group/cpu.stat; }
a=\$(used); sleep 5; b=\$(used); echo \"used \$((b - a)) us of 5 s\"; [ \$((b - a)) -gt 300000 ] && [ \$((b - a)) -lt 1500000 ]" || diagnose
check "a pod has a limit of processes" 60 'pid=$(container_pids | cut -d" " -f1); group=/sys/fs/cgroup$(sed -n "s/^0:://p" /proc/$pid/cgroup); while [ "$group" != /sys/fs/cgroup ]; do
  max=$(cat $group/pids.max); echo "$group: $max"; [ "$max" = max ] || exit 0; group=$(dirname $group); done; false' || diagnose
check "such pods can be deleted" 60 'coraclectl delete pod hog spin --wait=false >/dev/null; until_true 50 eval "[ \$(coraclectl get pods -o name | grep -cE \"hog|spin\") = 0 ]"' || diagnose

# ---- the daemon comes and goes; the pods do not notice ----

before=$(on 30 container_pids)
check "restart: no container is disturbed" 120 "systemctl restart coracled && until_true 60 ready && is \"\$(container_pids)\" '$before' && hello_runs && is \"\$(coraclectl get pods -l app=hello -o 'jsonpath={.items[*].status.containerStatuses[0].restartCount}')\" '0 0'"
check "stop: pods run on and answer" 60 "address=\$(coraclectl get service hello -o 'jsonpath={.spec.clusterIP}'); systemctl stop coracled && is \"\$(container_pids)\" '$before' && is \"\$(busybox wget -qO- -T 3 http://\$address)\" 'Hello from Coracle!' && systemctl start coracled"
check "SIGKILL: systemd starts it again, no container is disturbed" 120 "until_true 60 ready; systemctl kill -s KILL --kill-who=main coracled; sleep 1; until_true 60 ready && is \"\$(container_pids)\" '$before'"
check "upgrade in place: the same files installed over the running ones" 120 "tar -C / -xf /dev/vdb usr && systemctl daemon-reload && systemctl restart coracled && until_true 60 ready && is \"\$(container_pids)\" '$before'"

# ---- good order ----

check "a pod that wants to end in good order" 90 "mkdir -p /root/data; coraclectl apply -f - <<'Y'
apiVersion: v1
kind: Pod
metadata: {name: database}
spec:
  containers:
  - name: c
    image: localhost/busybox:latest
    command: [sh, -c, 'trap \"sleep 2; date >>/data/closed; sync; exit 0\" TERM; date >>/data/opened; while :; do sleep 1 & wait \$!; done']
    volumeMounts: [{name: data, mountPath: /data}]
  volumes: [{name: data, hostPath: {path: /root/data}}]
Y
until_true 60 test -s /root/data/opened" || diagnose
check "systemctl stop coracle-pods ends all in good order" 120 'systemctl stop coracle-pods && is "$(systemctl is-active coracled)" inactive && is "$(wc -l </root/data/closed)" 1 && ! pgrep -x coracle-pause'
check "… and systemctl start coracled brings all back" 180 'systemctl start coracled && until_true 60 ready && until_true 100 hello_runs && until_true 60 hello_answers && until_true 60 eval "[ \$(wc -l </root/data/opened) = 2 ]"' || diagnose
on 30 'systemctl --no-block reboot' >/dev/null
"$here/vm.py" wait-off "$T" 150 || not_ok "the machine goes down"
boot
check "after a reboot the pods come back" 400 'until_true 120 ready && until_true 200 hello_runs && until_true 60 hello_answers' || diagnose
check "… and the shutdown had ended them in good order" 60 'is "$(wc -l </root/data/closed)" 2'

# ---- power cuts ----

# What round $1 acknowledged must be there, what it acknowledged as deleted must not.
acknowledged() { sort -u "$T/acks" | awk '$1 == "gone" {gone[$2]} {line[NR] = $0} END {for (i = 1; i <= NR; i++) {split(line[i], w, " "); if (w[1] != "gone" && !(w[2] in gone)) print line[i]}}'; }
lost=0
for ((round = 1; round <= cuts; round++)); do
  : >"$T/acks"
  on 120 "until_true 100 ready; systemd-run --quiet --unit=writer-$round /root/writer.sh $round" >/dev/null || { not_ok "power cut $round: the writer starts"; diagnose; break; }
  for ((waited = 0; waited < 600; waited++)); do  # from its first acknowledgement on
    [ "$(wc -l <"$T/acks")" -lt 12 ] || break
    sleep 0.1
  done
  sleep "$((RANDOM % 4)).$((RANDOM % 10))"
  "$here/vm.py" cut "$T"
  sed -i '/^\(object\|gone\|image\) [^ ]*$/!d' "$T/acks"  # the last line may be half
  wanted=$(acknowledged)
  boot
  there=$(on 300 'until_true 200 ready >/dev/null; coraclectl get configmaps -o name | sed "s#^configmap/#object #"; coraclectl image list | awk "NR > 1 {print \"image \" \$1 \":\" \$2}"; journalctl -b -u coracled --no-pager | grep -i damaged')
  missing=$(comm -23 <(echo "$wanted" | sort) <(echo "$there" | sort))
  undead=$(comm -12 <(awk '$1 == "gone" {print "object " $2}' "$T/acks" | sort) <(echo "$there" | sort))
  last=$(echo "$wanted" | awk '$1 == "image" {print $2}' | sort -V | tail -n 1)
  acked=$(echo "$wanted" | grep -c .)
  if [ "$acked" -gt 0 ] && [ -z "$missing" ] && [ -z "$undead" ] && ! grep -qi damaged <<<"$there"; then
    ok "power cut $round: all $acked acknowledged objects and images are there"
  else
    not_ok "power cut $round: of $acked acknowledged, missing: $(echo $missing | cut -c1-300) undeleted: $(echo $undead | cut -c1-300)"
    lost=1; diagnose; break
  fi
  [ -z "$last" ] || check "… and the image $last is whole" 120 "coraclectl delete pod whole >/dev/null 2>&1; until_true 60 eval '! coraclectl get pod whole'
coraclectl apply -f - <<'Y'
apiVersion: v1
kind: Pod
metadata: {name: whole}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 0
  containers: [{name: c, image: '$last', imagePullPolicy: Never, command: [cat, /round]}]
Y
until_true 60 phase_is whole Succeeded && is \"\$(coraclectl logs whole)\" '${last#localhost/cut:}'" || diagnose
  on 120 'coraclectl get configmaps -o name | grep /cut- | xargs -r coraclectl delete >/dev/null; for i in $(coraclectl image list | awk "\$1 ~ /cut/ {print \$1 \":\" \$2}"); do coraclectl image remove $i; done' >/dev/null 2>&1
done
[ "$lost" = 1 ] || check "after all that the pods run" 300 'until_true 200 hello_runs && until_true 60 hello_answers' || diagnose

# ---- and away ----

check "uninstall leaves nothing of ours in the kernel" 120 'systemctl stop coracle-pods; systemctl disable --quiet coracled; find /sys/fs/cgroup/coracle -depth -type d -exec rmdir {} + 2>/dev/null; ! pgrep coracle && ! ip -o link | grep -i coracle && ! nft list tables | grep -i coracle && ! grep -E " /(run|var/lib)/coracle" /proc/self/mountinfo'
echo "1..$n"
[ "$failures" -eq 0 ]
