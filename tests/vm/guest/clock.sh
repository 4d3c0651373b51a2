# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Functions for tests/vm/clock.sh, beside those of lib.sh.
start_daemon() { setsid coracled --config /etc/coracle/config.yaml >>/run/log 2>&1 </dev/null & until_true 120 coraclectl get namespace default; }
kill_daemon() { pkill -KILL -x coracled; until_true 10 eval '! pgrep -x coracled'; }

template='terminationGracePeriodSeconds: 0, containers: [{name: c, image: localhost/busybox:latest, command: [sh, -c,'
deployment() {
  coraclectl apply -f - <<Y
{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 2, selector: {matchLabels: {app: web}},
  template: {metadata: {labels: {app: web}}, spec: {$template "sleep 1000000"]}]}}}}
Y
}
job() {  # job NAME TTL [DEADLINE COMMAND]
  coraclectl apply -f - <<Y
{apiVersion: batch/v1, kind: Job, metadata: {name: $1}, spec: {$([ "$2" = 0 ] || echo "ttlSecondsAfterFinished: $2,") $([ -z "${3:-}" ] || echo "activeDeadlineSeconds: $3,")
  template: {spec: {restartPolicy: Never, $template "${4:-true}"]}]}}}}
Y
}
cron() { cron_in "$1" "$2" ""; }  # cron NAME SCHEDULE
cron_in() {  # cron_in NAME SCHEDULE ZONE
  coraclectl apply -f - <<Y
{apiVersion: batch/v1, kind: CronJob, metadata: {name: $1}, spec: {schedule: "$2", $([ -z "$3" ] || echo "timeZone: $3,") successfulJobsHistoryLimit: 100,
  jobTemplate: {spec: {template: {metadata: {labels: {cron: $1}}, spec: {restartPolicy: Never, $template "true"]}]}}}}}}
Y
}
crashing() {
  coraclectl apply -f - <<Y
{apiVersion: v1, kind: Pod, metadata: {name: crashing}, spec: {$template "exit 1"]}]}}
Y
}
available() { is "$(coraclectl get deployment web -o 'jsonpath={.status.availableReplicas}')" 2; }
job_complete() { is "$(coraclectl get job "$1" -o 'jsonpath={.status.conditions[?(@.type=="Complete")].status}')" True; }
restarts() { of_pod "$1" '{.status.containerStatuses[0].restartCount}'; }
waits_in_back_off() { is "$(of_pod crashing '{.status.containerStatuses[0].state.waiting.reason}')" CrashLoopBackOff; }
pod_uids() { coraclectl get pods -l app=web -o 'jsonpath={range .items[*]}{.metadata.uid}{" "}{.status.containerStatuses[0].restartCount}{"\n"}{end}' | sort; }
lease_is_of() { coraclectl get lease -n kube-node-lease -o 'jsonpath={.items[0].spec.renewTime}' | grep -q "^$1"; }
fresh_answer() { coraclectl get --raw /readyz && coraclectl exec deploy/web -- sh -c :; }
# The scheduled times of a CronJob's jobs, one line each.
scheduled_times() {
  coraclectl get jobs -o 'jsonpath={range .items[*]}{.metadata.ownerReferences[0].name}{" "}{.metadata.annotations.batch\.kubernetes\.io/cronjob-scheduled-timestamp}{"\n"}{end}' |
    awk -v name="$1" '$1 == name {print $2}'
}
runs_of() { scheduled_times "$1" | grep -c .; }
runs_of_at_least() { [ "$(runs_of "$1")" -ge "$2" ]; }
# The last one by creation, not by name.
newest_scheduled() { coraclectl get cronjob "$1" -o 'jsonpath={.status.lastScheduleTime}'; echo; }
