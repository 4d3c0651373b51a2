#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The installed service in a virtual machine: Debian with systemd and cgroup v2 under qemu, which emulates every instruction. It
# boots, runs the hello manifest, enforces limits, survives restarts of the daemon, shuts down cleanly, comes back after a reboot,
# and after power cuts with everything that was acknowledged. TAP; skipped as a whole, with the reason, without qemu. It takes
# some minutes on 2 idle cores, twenty if they are busy; the first time, a few more for the machine's Debian.
#   CORACLE_LONG=1   hundreds of power cuts instead of a few (CORACLE_VM_CUTS: how many); machine.sh describes further settings
set -uo pipefail
title="virtual machine"
. "$(dirname "$0")/machine.sh"
. "$root/tests/progress.sh"
cuts=${CORACLE_VM_CUTS:-$([ "${CORACLE_LONG:-0}" = 1 ] && echo 200 || echo 3)}

diagnose() { on 60 'systemctl status coracled --no-pager -l | head -n 30; journalctl -u coracled --no-pager -n 40; coraclectl get pods -A -o wide; coraclectl get events' | sed 's/^/  | /'; }

# ---- installed files ----

payload_of_build lib.sh writer.sh
words=lib.sh
chmod +x "$T/payload/root/writer.sh"
pack
boot

# ---- install, hello ----

check "the machine boots" 300 'state=$(timeout 800 systemctl is-system-running --wait); [ "$state" = running ] || { echo "$state"; systemctl --failed; exit 1; }; mountpoint -q /sys/fs/cgroup && grep -qw memory /sys/fs/cgroup/cgroup.controllers' || exit 1
check "files are installed" 60 "$unpack"'. /root/lib.sh && coracled --version && ! ldd /usr/bin/coracled | grep "not found"' || exit 1
check "systemd-analyze verify is clean" 60 'systemd-analyze verify --man=no /usr/lib/systemd/system/coracled.service /usr/lib/systemd/system/coracle-pods.service >/tmp/v 2>&1; [ ! -s /tmp/v ] || { cat /tmp/v; false; }'
check "the service starts and says that it is ready" 120 'systemctl daemon-reload; systemd-tmpfiles --create coracle.conf; echo "podPidsLimit: 64" >/etc/coracle/config.yaml; systemctl enable --quiet --now coracled && is "$(systemctl is-active coracled)" active && systemctl show -p StatusText coracled | grep -q https' || { diagnose; exit 1; }
check "the node becomes ready, and can hold every limit" 60 'until_true 50 ready && is "$(coraclectl get nodes -o "jsonpath={.items[0].status.conditions[?(@.type==\"LimitsUnenforced\")].status}")" False && ! journalctl -b -u coracled --no-pager | grep "not enforced"' || { diagnose; exit 1; }
check "it is healthy, and a check that it runs says so" 90 'is "$(coraclectl health --wait --timeout=60s)" healthy && ! coraclectl health --pods --server https://127.0.0.1:1 >/tmp/h && grep "^the API: " /tmp/h'
check "its state is private" 20 'is "$(stat -c %a /var/lib/coracle /run/coracle | tr "\n" " ")" "700 700 "'
check "what it logs has fields of its own" 20 'journalctl --sync; journalctl -b -u coracled -o export CORACLE_COMPONENT=main | grep -qx "SYSLOG_IDENTIFIER=coracled" && journalctl -b -o export CORACLE_COMPONENT=main | grep -qx "CORACLE_MS=[0-9]*"'
check "an image is made on the spot" 60 'rootfs /root/box && coraclectl image pack /root/box localhost/busybox:latest --cmd sh && coraclectl image list | grep -q localhost/busybox' || { diagnose; exit 1; }
check "the hello manifest runs" 180 'coraclectl apply -f /usr/share/coracle/hello.yaml && until_true 150 hello_runs' || { diagnose; exit 1; }
check "its Service answers" 60 'until_true 30 hello_answers'
check "its log is there" 30 'pod=$(coraclectl get pods -l app=hello -o "jsonpath={.items[0].metadata.name}"); coraclectl logs $pod | grep -q "^$pod serves on "'
check "exec works" 30 'is "$(coraclectl exec deploy/hello -- sh -c "echo hi")" hi'
check "the pods stand in the cgroup of their service" 30 'systemctl status coracle-pods --no-pager | grep -q "coracle-pause" && is "$(systemctl show -p ControlGroup --value coracle-pods)" "${pods_cgroup#/sys/fs/cgroup}" && ! [ -e /sys/fs/cgroup/coracle ]'

# ---- limits ----

pod() {  # pod NAME RESOURCES COMMAND: one container
  cat <<Y
---
apiVersion: v1
kind: Pod
metadata: {name: $1}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  containers:
  - {name: c, image: localhost/busybox:latest, resources: {$2}, command: [sh, -c, '$3']}
Y
}
check "pods with limits are taken" 30 "coraclectl apply -f - <<'Y'
$(pod hog 'limits: {memory: 24Mi}' 'tail /dev/zero; echo ended with \$?; exit 3')
$(pod spin 'requests: {cpu: 100m}, limits: {cpu: 200m, memory: 32Mi}' 'while :; do :; done')
$(pod many '' 'while sleep 300 & do :; done')
Y"
check "a memory limit ends its container with OOMKilled and 137" 90 "until_true 60 phase_is hog Failed; is \"\$(of_pod hog '{.status.containerStatuses[0].state.terminated.reason} {.status.containerStatuses[0].state.terminated.exitCode}')\" 'OOMKilled 137'" || diagnose
check "limits reach the kernel: the container's and the pod's" 60 'until_true 60 phase_is spin Running; group=$(group_of spin)
is "$(limits_of $group/c-c-0)" "memory.max=33554432 memory.swap.max=0 memory.oom.group=1 cpu.max=20000 100000 cpu.weight=17 pids.max=max " &&
is "$(limits_of $group)" "memory.max=33554432 memory.swap.max=max memory.oom.group=0 cpu.max=20000 100000 cpu.weight=17 pids.max=64 "' || diagnose
check "a cpu limit is a quota" 60 'used() { awk "\$1 == \"usage_usec\" {print \$2}" $(group_of spin)/cpu.stat; }
a=$(used); start=${EPOCHREALTIME/./}; sleep 10; b=$(used); share=$(((b - a) * 1000 / (${EPOCHREALTIME/./} - start))); echo "used $share/1000 of a core"; [ $share -gt 50 ] && [ $share -lt 300 ]' || diagnose
check "a pod cannot have more processes than podPidsLimit" 60 'until_true 50 phase_is many Failed; coraclectl logs many | grep "can.t fork"' || diagnose
check "nothing is said of limits that could not be held" 20 '! coraclectl get events | grep LimitsNotEnforced'
check "such pods can be deleted" 60 'coraclectl delete pod hog spin many --wait=false >/dev/null; until_true 50 eval "[ \$(coraclectl get pods -o name | grep -cE \"hog|spin|many\") = 0 ]"' || diagnose

# ---- the daemon comes and goes; the pods do not notice ----

before=$(on 30 container_pids)
undisturbed="is \"\$(container_pids)\" '$before'"
[ "$(wc -w <<<"$before")" = 2 ] || not_ok "there are two containers, not: $before"
check "restart: no container is disturbed" 120 "systemctl restart coracled && until_true 60 ready && $undisturbed && hello_runs && is \"\$(coraclectl get pods -l app=hello -o 'jsonpath={.items[*].status.containerStatuses[0].restartCount}')\" '0 0'"
check "stop: pods run on and answer" 60 "address=\$(coraclectl get service hello -o 'jsonpath={.spec.clusterIP}'); systemctl stop coracled && $undisturbed && is \"\$(fetch \$address)\" 'Hello from Coracle!' && systemctl start coracled"
check "SIGKILL: systemd starts it again, no container is disturbed" 120 "until_true 60 ready; systemctl kill -s KILL --kill-who=main coracled; sleep 1; until_true 60 ready && $undisturbed"
check "upgrade in place: the same files installed over the running ones" 120 "tar -C / -xf /dev/vdb usr && systemctl daemon-reload && systemctl restart coracled && until_true 60 ready && $undisturbed"
check "systemd reloads and executes itself anew: it leaves the pods' cgroups as they are" 120 "before=\$(all_groups; cat \$pods_cgroup/*/*/memory.max); systemctl daemon-reload; systemctl daemon-reexec; systemctl set-property --runtime coracle-pods MemoryMax=800M; until_true 30 ready && is \"\$(all_groups; cat \$pods_cgroup/*/*/memory.max)\" \"\$before\" && is \"\$(cat \$pods_cgroup/memory.max)\" 838860800 && $undisturbed"
check "watchdog: a daemon that hangs is started again, no container is disturbed" 120 "mkdir -p /run/systemd/system/coracled.service.d; printf '[Service]\nWatchdogSec=8\n' >/run/systemd/system/coracled.service.d/watch.conf; systemctl daemon-reload; systemctl restart coracled
until_true 30 ready; sleep 10; pid=\$(systemctl show -p MainPID --value coracled); is \"\$(systemctl show -p NRestarts --value coracled)\" 0 || exit 1
kill -STOP \$pid; until_true 40 eval '[ \$(systemctl show -p MainPID --value coracled) -gt 0 ] && [ \$(systemctl show -p MainPID --value coracled) != '\$pid' ]' && until_true 60 ready && $undisturbed
s=\$?; rm -r /run/systemd/system/coracled.service.d; systemctl daemon-reload; exit \$s"

check "a configuration that is wrong is told at the console and in the journal, no container is disturbed" 120 "cp /etc/coracle/config.yaml /root/config.kept; echo 'nonsense: 1' >>/etc/coracle/config.yaml; ! systemctl restart coracled && until_true 10 eval 'agetty --show-issue </dev/ttyS0 | grep nonsense' && agetty --show-issue </dev/ttyS0 | grep 'does not start until' && journalctl -b -p err -u coracled --no-pager | grep 'unknown field' && $undisturbed
s=\$?; cp /root/config.kept /etc/coracle/config.yaml; systemctl start coracled && until_true 60 ready && ! [ -e /run/coracle/start.issue ] && $undisturbed && exit \$s"

# ---- good order ----

check "a pod that wants to end in good order" 90 "mkdir -p /root/data; coraclectl apply -f - <<'Y'
apiVersion: v1
kind: Pod
metadata: {name: database}
spec:
  containers:
  - name: c
    image: localhost/busybox:latest
    command: [sh, -c, 'trap \"sleep 2; date >>/data/closed; sync; exit 5\" TERM; date >>/data/opened; while :; do sleep 1 & wait \$!; done']
    volumeMounts: [{name: data, mountPath: /data}]
  volumes: [{name: data, hostPath: {path: /root/data}}]
Y
until_true 60 test -s /root/data/opened" || diagnose
check "systemctl stop coracle-pods ends all in good order" 120 'systemctl stop coracle-pods && is "$(systemctl is-active coracled)" inactive && is "$(wc -l </root/data/closed)" 1 && ! pgrep -x coracle-pause && ! [ -e $pods_cgroup ]'
check "… and systemctl start coracled brings all back" 180 'systemctl start coracled && until_true 60 ready && until_true 100 hello_runs && until_true 60 hello_answers && until_true 60 eval "[ \$(wc -l </root/data/opened) = 2 ]"' || diagnose
check "… and what came of them is known" 30 'until_true 20 eval "is \"\$(of_pod database \"{.status.containerStatuses[0].restartCount} {.status.containerStatuses[0].lastState.terminated.exitCode}\")\" \"1 5\""' || diagnose
on 30 'systemctl --no-block reboot' >/dev/null 2>&1
"$vm/vm.py" wait-off "$T" 300 || not_ok "the machine goes down"
boot
check "after a reboot the pods come back" 400 'until_true 120 ready && until_true 200 hello_runs && until_true 60 hello_answers' || diagnose
# Not asserted: how long it takes depends on what else this machine does.
check "… and coracled's own part of the boot is known" 150 'timeout 400 systemctl is-system-running --wait >/dev/null; of() { systemctl show -p "$1" --value $2; }
own=$(($(of ActiveEnterTimestampMonotonic coracled) - $(of InactiveExitTimestampMonotonic coracled))) all=$(of FinishTimestampMonotonic); echo "measured: coracled takes $((own / 1000)) ms of the boot, which takes $((all / 1000)) ms"; [ $own -gt 0 ] && [ $all -gt $own ]'
check "… whose course coraclectl boot shows" 60 'coraclectl boot >/tmp/b; cat /tmp/b; grep " s  the API is ready$" /tmp/b && is "$(grep -c " s  pod default/hello-.* is ready" /tmp/b)" 2' || diagnose
check "… and the shutdown had ended them in good order" 60 'is "$(wc -l </root/data/closed)" 2'
check "… and remembered what came of them" 60 'until_true 40 eval "is \"\$(of_pod database \"{.status.containerStatuses[0].restartCount} {.status.containerStatuses[0].lastState.terminated.exitCode}\")\" \"2 5\""' || diagnose
check "… and the node has the address that came after the daemon's start" 60 'until_true 40 settled && until_true 40 eval "coraclectl get nodes -o wide | grep -qw 10.0.2.15"' || diagnose

# ---- power cuts ----
#
# A writer reports acknowledged writes on a serial line of its own. From time to time the machine is paused and its disk copied,
# with the list of acknowledged writes: this is exactly the state after a power cut at that moment. At the end of a round, the
# power is really cut. The copies are checked in a machine that runs little else than coracled; the state after the real cut is
# checked in the same machine.

# The acknowledged objects that are not being deleted, from the file of acknowledgements $1.
acknowledged() { sort -u "$1" | awk '$1 ~ /^go/ {gone[$2]; next} {line[++n] = $0} END {for (i = 1; i <= n; i++) {split(line[i], w, " "); if (!(w[2] in gone)) print line[i]}}'; }
wait_for_acks() {  # wait_for_acks COUNT
  local waited
  for ((waited = 0; waited < 1800; waited++)); do
    if [ "$(wc -l <"$T/acks")" -ge "$1" ]; then return 0; fi
    sleep 0.1
  done
  return 1
}
what_is_there='whole_images; told 60 coraclectl get configmaps -o name | sed "s#^configmap/#object #"; told 60 coraclectl image list | awk "NR > 1 {print \"image \" \$1 \":\" \$2}"'
acked_all=0 judged=0 judged_before=$(done_before power-cuts)
[ "$judged_before" -lt "$cuts" ] || judged_before=0  # all were done: start again
judge() {  # judge ACKS THERE: no acknowledged object is missing; what is listed, acknowledged or not, is complete
  local wanted missing undead acked said=$1.said
  judged=$((judged + 1))
  grep -x '\(object\|going\|gone\|image\) [^ ]*' "$1" >"$said"  # the last line may be incomplete; the file may be open
  wanted=$(acknowledged "$said")
  missing=$(comm -23 <({ echo "$wanted"; sed -n 's#^image localhost/cut:#whole localhost/cut:#p' <<<"$2"; } | sort -u) <(sort -u <<<"$2"))
  undead=$(comm -12 <(awk '$1 == "gone" {print "object " $2}' "$said" | sort) <(sort <<<"$2"))
  acked=$(grep -c . <<<"$wanted")
  acked_all=$((acked_all + acked))
  if [ "$acked" -gt 0 ] && [ -z "$missing" ] && [ -z "$undead" ] && ! grep -qiE 'damaged|half-made' <<<"$2"; then
    ok "power cut $judged: all $acked acknowledged objects and images are there, nothing is half-made"
    return 0
  fi
  not_ok "power cut $judged: of $acked acknowledged, missing: $(echo $missing | cut -c1-300) undeleted: $(echo $undead | cut -c1-300)"
  sed 's/^/  | /' <<<"$2" | tail -n 30
  return 1
}
judge_copy() {  # judge_copy DIRECTORY: in a separate machine
  local there
  CORACLE_VM_APPEND=test.light "$vm/vm.py" start "$1" "$image" || bail "qemu starts" "$(cat "$1/qemu.log")"
  there=$("$vm/vm.py" run "$1" 900 '. /root/lib.sh; setsid coracled --config /etc/coracle/config.yaml >/run/log 2>&1 </dev/null & until_true 240 coraclectl get namespace default >/dev/null || cat /run/log;'" $what_is_there; grep -i damaged /run/log")
  "$vm/vm.py" cut "$1"
  judge "$1/acks" "$there" || tail -n 5 "$1/console.log" | sed 's/^/  | /'
  rm -rf "$1"
}
run_image() {  # run_image ROUND IMAGE: runs a pod of it that prints what the image was made of
  check "… and the image $2 runs" 120 "coraclectl apply -f - <<'Y'
apiVersion: v1
kind: Pod
metadata: {name: whole-$1}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 0
  containers: [{name: c, image: '$2', imagePullPolicy: Never, command: [cat, /round]}]
Y
until_true 60 phase_is whole-$1 Succeeded && is \"\$(coraclectl logs whole-$1)\" '${2#localhost/cut:}'; s=\$?; coraclectl delete pod whole-$1 >/dev/null; exit \$s"
}
clean_up='coraclectl get configmaps -o name | grep /cut- | xargs -r coraclectl delete >/dev/null; for i in $(coraclectl image list | awk "\$1 ~ /cut/ {print \$1 \":\" \$2}"); do coraclectl image remove $i; done'
copies_per_round=24
left() { echo $((cuts - judged_before - judged)); }
for ((round = 1; $(left) > 0; round++)); do
  time_is_left || break
  : >"$T/acks"
  on 240 "until_true 200 ready; systemd-run --quiet --unit=writer-$round /root/writer.sh $round" >/dev/null && wait_for_acks 6 ||
    { not_ok "round $round of power cuts: something is written"; diagnose; break; }
  copies=()
  for ((copy = 1; copy <= copies_per_round && copy < $(left); copy++)); do
    sleep "$((RANDOM % 3)).$((RANDOM % 10))"
    "$vm/vm.py" copy "$T" "$T/cut-$copy" && copies+=("$T/cut-$copy")
  done
  sleep "$((RANDOM % 3)).$((RANDOM % 10))"
  "$vm/vm.py" cut "$T"
  for copy in "${copies[@]}"; do if time_is_left; then judge_copy "$copy"; else rm -rf "$copy"; fi; done
  boot
  there=$(on 300 'until_true 150 settled >/dev/null;'" $what_is_there; journalctl -b -u coracled --no-pager | grep -i damaged")
  judge "$T/acks" "$there" || { diagnose; break; }
  last=$(acknowledged "$T/acks" | awk '$1 == "image" {print $2}' | sort -V | tail -n 1)
  if [ -n "$last" ]; then run_image "$round" "$last" || diagnose; else not_ok "round $round: an image was acknowledged"; fi
  [ "$(left)" -le 0 ] || on 240 "$clean_up" >/dev/null 2>&1
  keep_count power-cuts $((judged_before + judged))
done
echo "measured: $judged power cuts, $acked_all acknowledged objects and images"
[ "$judged" = "$cuts" ] || echo "measured: $((judged_before + judged)) of $cuts power cuts, with those of earlier runs"
check "after all that the pods run" 300 'until_true 200 hello_runs && until_true 60 hello_answers' || diagnose

# ---- uninstall ----

check "uninstall leaves nothing of ours in the kernel" 120 'systemctl stop coracle-pods && systemctl disable --quiet coracled && ! [ -e $pods_cgroup ] && ! [ -e /sys/fs/cgroup/coracle ] && ! pgrep coracle && ! ip -o link | grep -i coracle && ! nft list tables | grep -i coracle && ! grep -E " /(run|var/lib)/coracle" /proc/self/mountinfo'
echo "1..$n"
[ "$failures" -eq 0 ]
