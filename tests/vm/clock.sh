#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A board without a clock battery, in a virtual machine: it starts in 1970, gets the time, gets a correction of it, and goes
# through both changes of daylight-saving time. The expectations for CronJobs, leases, certificates, back-offs and TTLs are
# checked one by one. TAP; skipped as a whole, with the reason, without qemu.
set -uo pipefail
title="clock scenarios"
. "$(dirname "$0")/machine.sh"

diagnose() { on 60 'date; tail -n 25 /run/log; coraclectl get cronjobs,jobs,pods -A; coraclectl get events | tail -n 25' | sed 's/^/  | /'; }

payload_of_build lib.sh clock.sh
mkdir -p "$T/payload/usr/share/zoneinfo/Europe"
cp /usr/share/zoneinfo/Europe/Berlin "$T/payload/usr/share/zoneinfo/Europe/" || bail "tzdata is there"
pack
image=$("$vm/image.sh" "$cache") || bail "a Debian for the machine can be made"
CORACLE_VM_APPEND=test.light "$vm/vm.py" start "$T" "$image" -drive "file=$T/payload.tar,if=virtio,format=raw,readonly=on" || bail "qemu starts" "$(cat "$T/qemu.log")"

# ---- 1970 ----

check "files are installed" 120 "$unpack"'. /root/lib.sh && coracled --version' || exit 1
check "it starts in 1970" 240 'date -s @30; mkdir -p /etc/coracle; echo "podPidsLimit: 64" >/etc/coracle/config.yaml; start_daemon' || { diagnose; exit 1; }
check "the node is ready, an image is made" 120 'until_true 60 ready && rootfs /root/box && coraclectl image pack /root/box localhost/busybox:latest --cmd sh' || { diagnose; exit 1; }
check "a Deployment, and a Job that is done" 120 'deployment; job done 86400; until_true 60 available && until_true 60 job_complete done' || diagnose
check "a container that crashes waits out its back-off" 120 'crashing; until_true 60 waits_in_back_off' || diagnose
check "a CronJob of every minute runs in 1970" 180 'cron every "* * * * *"; cron daily "30 12 * * *"; until_true 60 runs_of_at_least every 1; is "$(date +%Y)" 1970' || diagnose

# ---- the clock is set ----

check "the clock jumps to today: the certificates are good, and the same key still opens" 120 'pods_before=$(pod_uids); runs=$(runs_of every); date -s "2026-11-23 10:00:20 UTC"; echo "$pods_before" >/run/pods; echo "$runs" >/run/runs; until_true 30 ready && fresh_answer' || diagnose
check "no pod was evicted, restarted or made anew for it" 60 'sleep 5; is "$(pod_uids)" "$(cat /run/pods)" && ready' || diagnose
check "the lease is renewed by the new clock" 60 'until_true 40 lease_is_of 2026' || diagnose
check "56 years of missed runs are one run, at most" 60 'sleep 10; now=$(runs_of every); [ $((now - $(cat /run/runs))) -le 1 ]; [ "$(runs_of daily)" -le 1 ]' || diagnose
check "and the next comes with the next minute" 150 'now=$(runs_of every); until_true 70 runs_of_at_least every $((now + 1))' || diagnose
check "the back-off of a crash did not get longer, and the container runs again" 200 'r=$(restarts crashing); until_true 70 eval "[ \$(restarts crashing) -gt $r ]"' || diagnose
check "what was to stay for a day after its end stays, though 56 years have passed by the clock" 60 'sleep 5; coraclectl get job done' || diagnose
check "a Job that must end within a minute is not ended by the jump that came before it" 120 'job slow 0 60 "sleep 5"; until_true 60 job_complete slow' || diagnose

# ---- the clock is corrected ----

check "the clock goes back an hour: nothing runs twice for one time" 180 'date -s "2026-11-23 12:10:50 UTC"; sleep 15; scheduled_times every >/run/before; date -s "2026-11-23 11:10:50 UTC"; sleep 25
  scheduled_times every | sort | uniq -d | grep . && exit 1; until_true 30 ready' || diagnose
check "no pod was evicted or restarted for it" 30 'is "$(pod_uids)" "$(cat /run/pods)" && until_true 20 ready' || diagnose
check "the lease is renewed though its time is in the future" 90 'until_true 60 lease_is_of 2026-11-23T11' || diagnose

check "once the clock has passed what ran already, the next comes with the next minute" 150 'date -s "2026-11-23 12:11:50 UTC"; until_true 40 eval "newest_scheduled every | grep -qx 2026-11-23T12:12:00Z"' || diagnose

# ---- daylight-saving time ----

check "spring: an hour that there is not is no reason to run" 120 'cron_in berlin "30 2 * * *" Europe/Berlin; date -s "2027-03-28 00:50:00 UTC"; sleep 12; before=$(runs_of berlin); date -s "2027-03-28 00:59:55 UTC"; sleep 20; is "$(runs_of berlin)" "$before"' || diagnose
check "the day after it runs at its time" 120 'date -s "2027-03-29 00:29:55 UTC"; until_true 40 eval "newest_scheduled berlin | grep -qx 2027-03-29T00:30:00Z"' || diagnose
check "autumn: it runs in the hour that comes twice" 120 'date -s "2027-10-31 00:29:55 UTC"; until_true 40 eval "newest_scheduled berlin | grep -qx 2027-10-31T00:30:00Z"' || diagnose
check "in winter it is an hour later by UTC" 120 'date -s "2027-11-01 01:29:55 UTC"; until_true 40 eval "newest_scheduled berlin | grep -qx 2027-11-01T01:30:00Z"' || diagnose

# ---- a power failure resets the clock ----

check "back in 1970 after a power cut: the daemon starts, the pods run, nothing is run for the past" 240 'runs_of every >/run/runs; kill_daemon; date -s @60; start_daemon && until_true 60 ready && until_true 60 available; sleep 10; [ $(runs_of every) -le $(($(cat /run/runs) + 1)) ]' || diagnose
echo "1..$n"
[ "$failures" -eq 0 ]
