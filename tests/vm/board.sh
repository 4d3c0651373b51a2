#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Problems of a small board, in a virtual machine with systemd and cgroup v2: processors that all pods compete for, a program that
# takes all memory, a disk that is completely full or read-only, shutdown while pods run. Figures are printed as comments. TAP;
# skipped as a whole, with the reason, without qemu.
#   CORACLE_VM_RESTARTS   number of restarts of the daemon on the full disk (default: 100)
set -uo pipefail
title="an owner's board"
. "$(dirname "$0")/machine.sh"
. "$root/tests/progress.sh"
restarts=${CORACLE_VM_RESTARTS:-100}

diagnose() { on 60 'systemctl status coracled --no-pager -l | head -n 30; journalctl -u coracled --no-pager -n 40; coraclectl get pods -A -o wide; coraclectl get events | tail -n 30; df -h /var/lib/coracle' | sed 's/^/  | /'; }
install='systemctl daemon-reload; systemd-tmpfiles --create coracle.conf; systemctl enable --quiet --now coracled && until_true 100 ready && rootfs /root/box && coraclectl image pack /root/box localhost/busybox:latest --cmd sh'

payload_of_build lib.sh board.sh
pack
boot

check "files are installed" 120 "$unpack"'. /root/lib.sh && coracled --version' || exit 1
check "a state directory on a small disk of its own; the node is ready" 300 "small_disk 160 && $install" || { diagnose; exit 1; }

# ---- processors ----
#
# Two loops in each pod, so that all compete for both processors. The share of each pod is compared with that of the same loops in
# cgroups that are created by hand, with the kubelet's weights.

check "pods of three classes want all processors" 180 'loops="while :; do :; done & while :; do :; done"
{ pod guaranteed "" "resources: {requests: {cpu: 500m, memory: 16Mi}, limits: {cpu: 500m, memory: 16Mi}}," "$loops"
  pod one "" "resources: {requests: {cpu: 300m}}," "$loops"; pod two "" "resources: {requests: {cpu: 600m}}," "$loops"
  pod none "" "" "$loops"; } | coraclectl apply -f - && until_true 100 eval "[ \$(running_pods) = 4 ]"
shares $(for p in guaranteed one two none; do group_of $p; done) >/run/shares && cat /run/shares' || diagnose
check "such pods can be deleted" 120 'coraclectl delete pod --all --grace-period=1 >/dev/null; until_true 60 eval "[ \$(running_pods) = 0 ]"' || diagnose

check "… and they had what the kubelet's weights give" 180 'reference >/run/reference; echo "measured: thousandths of the processors: Guaranteed $(sed -n 1p /run/shares), Burstable $(sed -n 2p /run/shares) and $(sed -n 3p /run/shares), BestEffort $(sed -n 4p /run/shares); by hand $(tr "\n" " " </run/reference)"
paste /run/shares /run/reference | awk "{d = \$1 - \$2; if (d < 0) d = -d; if (d > \$2 / 10 && d > 3) bad = 1} END {exit bad || NR != 4}"' || diagnose

# ---- the disk is full ----

check "pods that run and restart" 180 '{ pod steady "" "" "sleep 1000000"; pod restarting "terminationGracePeriodSeconds: 1," "" "sleep 3; exit 1"; } | coraclectl apply -f - && until_true 100 phase_is steady Running && until_true 60 eval "[ \$(restarts restarting) -ge 1 ]"' || diagnose
check "a disk that fills is told within 10 s" 120 'dd if=/dev/zero of=$store/filler bs=1M count=$(($(df -m --output=avail $store | tail -n 1) - 8)) 2>/dev/null; took=$(seconds_until 20 eval "[ \$(condition DiskPressure) = True ]") && echo "measured: DiskPressure after $(tenths $took)" && [ "$took" -le 100 ]' || diagnose
check "full to the last byte: what has to be on it is refused, with the reason" 120 'fill_disk; sync; disk_is_full && ! coraclectl create configmap refused 2>/run/said; cat /run/said; grep -qi "no space left" /run/said' || diagnose
check "… reads are served, the pod that ran runs on" 60 'coraclectl get pods >/dev/null && phase_is steady Running' || diagnose
before=$(on 30 'of_pod steady "{.status.containerStatuses[0].containerID}{.status.containerStatuses[0].restartCount}"')
count=0
while [ $count -lt "$restarts" ] && time_is_left; do
  check "… and $((count + 10 < restarts ? 10 : restarts - count)) starts of the daemon, the last by a kill" 900 "for i in \$(seq $((count + 10 < restarts ? 10 : restarts - count))); do disk_is_full || fill_disk; if [ \$((i % 2)) = 0 ]; then systemctl kill -s KILL --kill-who=main coracled; sleep 0.5; else systemctl restart coracled || exit 1; fi; until_true 60 ready || exit 1; done" || { diagnose; break; }
  count=$((count + 10))
done
echo "# $count starts with the disk full"
check "the pod that ran was not disturbed" 60 "is \"\$(of_pod steady '{.status.containerStatuses[0].containerID}{.status.containerStatuses[0].restartCount}')\" '$before'" || diagnose
check "the other restarts all the same" 400 'now=$(restarts restarting); until_true 310 eval "[ \$(restarts restarting) -gt $now ]"' || diagnose
check "with space it heals by itself" 120 'empty_disk; until_true 60 coraclectl create configmap healed' || diagnose

# ---- the disk is read-only ----

refused='! coraclectl create configmap refused 2>/run/said; cat /run/said; grep -qi "read-only file system" /run/said && coraclectl get configmap healed && phase_is steady Running'
check "the daemon starts on a disk that can only be read, and serves what it holds" 240 "systemctl stop coracled; sync; echo u >/proc/sysrq-trigger; sleep 2; mount -o remount,rw /; systemctl start coracled && until_true 60 ready && $refused" || diagnose
check "… again after a kill" 240 "systemctl kill -s KILL --kill-who=main coracled; sleep 1; until_true 60 ready && $refused" || diagnose
check "when it can be written to again, it heals by itself" 240 'mount -o remount,rw $store; until_true 60 coraclectl create configmap written; now=$(restarts restarting); until_true 310 eval "[ \$(restarts restarting) -gt $now ]"' || diagnose
check "… and what was written is there after another start" 120 'systemctl restart coracled && until_true 60 ready && coraclectl get configmap written healed && coraclectl store check' || diagnose
check "a disk that becomes read-only by errors, under the daemon: the same" 120 "sync; mount -o remount,abort \$store; sleep 1; ! touch \$store/x 2>/dev/null && $refused" || diagnose
check "the pod that ran was not disturbed by all that" 60 "is \"\$(of_pod steady '{.status.containerStatuses[0].containerID}{.status.containerStatuses[0].restartCount}')\" '$before'" || diagnose
check "after the repair all is there" 240 'systemctl stop coracle-pods; umount $store && { e2fsck -fp /root/state.ext4 >/run/said; [ $? -le 1 ] || { cat /run/said; false; }; } && mount -o loop /root/state.ext4 $store && systemctl start coracled && until_true 60 ready && coraclectl get configmap written healed && until_true 60 phase_is steady Running && coraclectl delete pod --all --grace-period=1 >/dev/null && until_true 60 eval "[ \$(running_pods) = 0 ]"' || diagnose

# ---- shutdown ----

check "twenty pods, one deaf to TERM with a grace of 5 s, one with a hook of 3 s" 300 '{ pod deaf "terminationGracePeriodSeconds: 5," "" "trap : TERM; while :; do sleep 1; done"
pod hooked "terminationGracePeriodSeconds: 20," "lifecycle: {preStop: {exec: {command: [sh, -c, \"sleep 3\"]}}}," "trap \"exit 7\" TERM; while :; do sleep 1 & wait; done"
for i in $(seq 18); do pod ordinary-$i "" "" "trap \"exit $i\" TERM; while :; do sleep 1000 & wait; done"; done; } | coraclectl apply -f - >/dev/null && until_true 200 eval "[ \$(running_pods) = 20 ]"' || diagnose
on 30 'systemctl --no-block reboot' >/dev/null 2>&1
"$vm/vm.py" wait-off "$T" 300 || not_ok "the machine goes down"
boot
check "the machine is up again" 400 'mkdir -p $store; mount -o loop /root/state.ext4 $store; systemctl restart coracled; until_true 120 ready' || diagnose
check "the pods' end took no more than 8 s" 60 'times=$(journalctl -b -1 -o short-unix --no-pager _PID=1 | awk "/Stopping (coracled|Coracle,)/ {a = \$1} /Stopped (coracle-pods|Pods of Coracle)/ {b = \$1} END {print a, b}"); took=$(awk "{printf \"%d\", (\$2 - \$1) * 10}" <<<"$times"); echo "measured: twenty pods ended in $(tenths $took)"; [ "$took" -ge 40 ] && [ "$took" -le $((80 * slower)) ]' || diagnose
check "every exit code is known" 240 'until_true 100 eval "[ \$(running_pods) = 20 ]"; last="{.status.containerStatuses[0].lastState.terminated.exitCode}"; is "$(of_pod deaf "$last") $(of_pod hooked "$last")" "137 7" && for i in $(seq 18); do is "$(of_pod ordinary-$i "$last")" $i || exit 1; done' || diagnose
"$vm/vm.py" cut "$T"

# ---- memory: a machine of 512 MB ----

rm -f "$T/disk.qcow2"
"$vm/vm.py" start "$T" "$image" -m 512 -drive "file=$T/payload.tar,if=virtio,format=raw,readonly=on" || bail "qemu starts" "$(cat "$T/qemu.log")"
check "a machine of 512 MB boots" 400 'timeout 900 systemctl is-system-running --wait; [ $(awk "/MemTotal/ {print \$2}" /proc/meminfo) -lt 524288 ]' || exit 1
check "files are installed there, the node is ready" 300 "$unpack . /root/lib.sh; $install" || { diagnose; exit 1; }
check "no more memory is allocatable than all pods may hold" 60 'bound=$(cat $pods_cgroup/memory.max); total=$(awk "/MemTotal/ {print \$2}" /proc/meminfo); echo "measured: $((bound / 1048576)) of $((total / 1024)) MiB for pods"; is "$(coraclectl get nodes -o "jsonpath={.items[0].status.allocatable.memory}")" "$((bound / 1024))Ki" && [ $((bound / 1024)) -lt $((total * 81 / 100)) ]' || diagnose
check "a program that takes all memory is ended soon, and the daemon answers meanwhile" 240 'coraclectl create configmap answers >/dev/null; pod hog "restartPolicy: Never," "" "sleep 2; date +%s; tail /dev/zero" | coraclectl apply -f -
until_true 60 eval "coraclectl logs hog | grep -q ." && took=$(seconds_until 20 phase_is hog Failed) && echo "measured: ended after $(tenths $took)" && is "$(of_pod hog "{.status.containerStatuses[0].state.terminated.reason}")" OOMKilled && coraclectl get configmap answers' || diagnose
echo "1..$n"
[ "$failures" -eq 0 ]
