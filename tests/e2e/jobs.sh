#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Jobs and CronJobs with real pods: the lines of Kubernetes' conformance suite about them, each under its name; then problems of a
# small machine: a killed daemon, a clock that is set.
# for: daemon/controller/job/job daemon/controller/job/cron_job daemon/controller/job/ttl_after_finished daemon/controller/pod store/schema/schedule store/schema/time_zone store/kinds/job
. "$(dirname "$0")/lib.sh"
start_machine

admin() { in_ns curl -s --cacert "$T/ca.crt" --cert "$T/admin.crt" --key "$T/admin.key" --max-time 60 "$@"; }
field() { sed -n "s/.*$1: *\"\{0,1\}\([^\" ]*\).*/\1/p" "$T/etc/admin.kubeconfig" | head -n 1 | base64 -d > "$2"; }
field certificate-authority-data "$T/ca.crt"; field client-certificate-data "$T/admin.crt"; field client-key-data "$T/admin.key"
api=https://127.0.0.1:6443
batch=$api/apis/batch/v1/namespaces/default
pods=$api/api/v1/namespaces/default/pods
code() { admin -o /dev/null -w '%{http_code}' "$@"; }
is() { [ "$(code "$2")" = "$1" ]; }  # is CODE URL
merge() { admin -o "$T/answer" -w '%{http_code}' -X PATCH -H 'Content-Type: application/merge-patch+json' "$1" -d "$2"; }
mkdir -p "$T/shared"

# job NAME SPEC COMMAND [VOLUME]: a job whose pods run a shell command; $I is their index.
job() {
  local policy=Never volume=${4:-"emptyDir: {}"}
  [[ $2 != *restartPolicy* ]] || policy=OnFailure
  c apply -f - >/dev/null <<EOF
{apiVersion: batch/v1, kind: Job, metadata: {name: $1}, spec: {${2/restartPolicy,/} template: {metadata: {labels: {job: $1}}, spec: {
  restartPolicy: $policy, terminationGracePeriodSeconds: 1, volumes: [{name: v, $volume}],
  containers: [{name: c, image: localhost/busybox:latest, volumeMounts: [{name: v, mountPath: /data}], command: [sh, -c, "I=\$JOB_COMPLETION_INDEX; $3"]}]}}}}
EOF
}
of() { k get job "$1" -o "jsonpath={.status.$2}"; }
reason() { k get job "$1" -o "jsonpath={.status.conditions[?(@.type==\"$2\")].reason}"; }
holds() { [ "$(k get job "$1" -o "jsonpath={.status.conditions[?(@.type==\"$2\")].status}")" = True ]; }
pods_of() { k get pods -l "job=$1" -o 'jsonpath={range .items[*]}{.metadata.name}{"\n"}{end}'; }
running() { [ "$(k get pods -l "job=$1" -o 'jsonpath={range .items[*]}{.status.phase}{"\n"}{end}' | grep -c Running)" = "$2" ]; }
away() { c delete job "$1" --wait=false >/dev/null; until_true 30 is 404 "$batch/jobs/$1"; }
events_of() { k get events --field-selector "involvedObject.name=$1" -o 'jsonpath={range .items[*]}{.reason}: {.message}{"\n"}{end}'; }

# Cron jobs run beside the jobs, so that their minutes pass meanwhile.
cronjob() {  # cronjob NAME SPEC
  c apply -f - >/dev/null <<EOF
{apiVersion: batch/v1, kind: CronJob, metadata: {name: $1}, spec: {schedule: "*/1 * * * ?", $2 jobTemplate: {spec: {template: {metadata: {labels: {job: $1}}, spec: {
  restartPolicy: OnFailure, terminationGracePeriodSeconds: 1, containers: [{name: c, image: localhost/busybox:latest, command: [sleep, "3000"]}]}}}}}}
EOF
}
cronjob concurrent "concurrencyPolicy: Allow,"; cronjob forbid "concurrencyPolicy: Forbid,"
cronjob replace "concurrencyPolicy: Replace,"; cronjob suspended "suspend: true,"

echo "# [sig-apps] Job should run a job to completion when tasks sometimes fail and are locally restarted [Conformance]"
job local 'completions: 4, parallelism: 2, restartPolicy,' 'if [ -e /data/again ]; then exit 0; fi; touch /data/again; exit 1'
check "it completes" until_true 90 holds local Complete
expect "with as many successes as asked for, and no failed pod" "4 " eval 'echo "$(of local succeeded) $(of local failed)"'
expect_match "its pods were restarted in place" '^1$' k get pods -l job=local -o 'jsonpath={range .items[*]}{.status.containerStatuses[0].restartCount}{"\n"}{end}'

echo "# [sig-apps] Job should create pods for an Indexed job with completion indexes and specified hostname [Conformance]"
job indexed 'completions: 4, parallelism: 4, completionMode: Indexed,' '[ $(hostname) = indexed-$I ] && echo I am $I'
check "it completes" until_true 60 holds indexed Complete
expect "each index is there" "0 1 2 3" eval 'echo $(k get pods -l job=indexed -o "jsonpath={range .items[*]}{.metadata.annotations.batch\.kubernetes\.io/job-completion-index}{\"\n\"}{end}" | sort)'
expect "and is a label too" "0 1 2 3" eval 'echo $(k get pods -l job=indexed -o "jsonpath={range .items[*]}{.metadata.labels.batch\.kubernetes\.io/job-completion-index}{\"\n\"}{end}" | sort)'
if [ "$(pods_of indexed | wc -l)" != 4 ]; then  # some were replaced: print why
  k get pods -l job=indexed -o 'jsonpath={range .items[*]}{.metadata.name}: {.status}{"\n"}{end}' | sed 's/^/#   /'
fi
expect "each pod is named after its index, as its host" "indexed-0 indexed-1 indexed-2 indexed-3" eval 'echo $(k get pods -l job=indexed -o "jsonpath={range .items[*]}{.spec.hostname}{\"\n\"}{end}" | sort)'
expect "the status says so" "0-3" of indexed completedIndexes
expect "and in their environment" "I am 2" k logs "$(k get pods -l job=indexed,batch.kubernetes.io/job-completion-index=2 -o 'jsonpath={.items[0].metadata.name}')"

echo "# [sig-apps] Job should allow to use the pod failure policy on exit code to fail the job early [Conformance]"
job early 'completions: 1, backoffLimit: 3, podFailurePolicy: {rules: [{action: FailJob, onExitCodes: {containerName: c, operator: In, values: [42]}}]},' 'exit 42'
check "the job fails" until_true 30 holds early Failed
expect "by its policy" "PodFailurePolicy PodFailurePolicy" eval 'echo "$(reason early FailureTarget) $(reason early Failed)"'
expect "after one pod" "1" eval 'pods_of early | wc -l'

echo "# [sig-apps] Job should allow to use a pod failure policy to ignore failure matching on DisruptionTarget condition [Conformance]"
job disrupted 'completions: 1, backoffLimit: 0, podFailurePolicy: {rules: [{action: Ignore, onPodConditions: [{type: DisruptionTarget, status: "True"}]}]},' \
  'if [ -e /data/evicted ]; then exit 0; fi; touch /data/evicted; trap \"exit 1\" TERM; sleep 1000 & wait' "hostPath: {path: $T/shared}"
check "its pod runs" until_true 30 running disrupted 1
until_true 10 test -e "$T/shared/evicted"
victim=$(pods_of disrupted)
expect "it is evicted" 201 code -X POST -H 'Content-Type: application/json' "$pods/$victim/eviction" -d '{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"'"$victim"'"}}'
check "and the job completes all the same" until_true 60 holds disrupted Complete
expect "with a failure that does not count" "1 " eval 'echo "$(of disrupted succeeded) $(of disrupted failed)"'

echo "# [sig-apps] Job should execute all indexes despite some failing when using backoffLimitPerIndex [Conformance]"
job perindex 'completions: 4, parallelism: 4, completionMode: Indexed, backoffLimitPerIndex: 1,' 'exit $((I % 2))'
echo "# [sig-apps] Job should mark indexes as failed when the FailIndex action is matched in podFailurePolicy [Conformance]"
job failindex 'completions: 2, parallelism: 2, completionMode: Indexed, backoffLimitPerIndex: 1, podFailurePolicy: {rules: [{action: FailIndex, onExitCodes: {operator: In, values: [42]}}]},' 'exit $((I * 42))'
check "FailIndex: the job fails" until_true 40 holds failindex Failed
expect "one index succeeded, the other failed at once" "0 1 1 FailedIndexes" eval 'echo "$(of failindex completedIndexes) $(of failindex failedIndexes) $(of failindex failed) $(reason failindex Failed)"'
check "backoffLimitPerIndex: the job fails" until_true 60 holds perindex Failed
expect "half of the indexes succeeded, the other half was tried twice" "0,2 1,3 4 FailedIndexes" eval 'echo "$(of perindex completedIndexes) $(of perindex failedIndexes) $(of perindex failed) $(reason perindex Failed)"'

echo "# [sig-apps] Job should terminate job execution when the number of failed indexes exceeds maxFailedIndexes [Conformance]"
job maxfailed 'completions: 10, parallelism: 10, completionMode: Indexed, backoffLimitPerIndex: 0, maxFailedIndexes: 4,' 'exit 1'
check "the job fails" until_true 60 holds maxfailed Failed
expect "for that reason" MaxFailedIndexesExceeded reason maxfailed Failed

echo "# [sig-apps] Job with successPolicy should succeeded when all indexes succeeded [Conformance]"
job allindexes 'completions: 2, parallelism: 2, completionMode: Indexed, successPolicy: {rules: [{succeededIndexes: "0-1"}]},' 'exit 0'
check "the job completes" until_true 40 holds allindexes Complete
expect "by its policy or by its completions" "2 0,1 True" eval 'echo "$(of allindexes succeeded) $(of allindexes completedIndexes) $(k get job allindexes -o "jsonpath={.status.conditions[?(@.type==\"SuccessCriteriaMet\")].status}")"'

echo "# [sig-apps] Job with successPolicy succeededCount rule should succeeded even when some indexes remain pending [Conformance]"
job somecount 'completions: 5, parallelism: 2, completionMode: Indexed, successPolicy: {rules: [{succeededCount: 1}]},' '[ $I = 0 ] || sleep 1000'
check "the job completes" until_true 40 holds somecount Complete
expect "with one index" "1 0 SuccessPolicy SuccessPolicy" eval 'echo "$(of somecount succeeded) $(of somecount completedIndexes) $(reason somecount SuccessCriteriaMet) $(reason somecount Complete)"'

echo "# [sig-apps] Job with successPolicy succeededIndexes rule should succeeded even when some indexes remain pending [Conformance]"
job someindex 'completions: 5, parallelism: 2, completionMode: Indexed, successPolicy: {rules: [{succeededIndexes: "1"}]},' '[ $I = 1 ] || sleep 1000'
check "the job completes" until_true 40 holds someindex Complete
expect "with that index, the others are gone" "1 1 SuccessPolicy  0" eval 'echo "$(of someindex succeeded) $(of someindex completedIndexes) $(reason someindex Complete) $(of someindex active) $(of someindex terminating)"'

echo "# [sig-apps] Job should delete a job [Conformance]"
job deleted 'completions: 4, parallelism: 2,' 'sleep 1000'
check "its pods run" until_true 30 running deleted 2
admin -o /dev/null -X DELETE -H 'Content-Type: application/json' -d '{"propagationPolicy":"Foreground"}' "$batch/jobs/deleted"
check "it goes" until_true 30 is 404 "$batch/jobs/deleted"
expect "and so do its pods" "" pods_of deleted

echo "# [sig-apps] Job should adopt matching orphans and release non-matching pods [Conformance]"
job adopter 'completions: 4, parallelism: 2,' 'sleep 1000'
check "its pods run" until_true 30 running adopter 2
one=$(pods_of adopter | head -n 1)
owner() { k get pod "$one" -o 'jsonpath={.metadata.ownerReferences[0].name}'; }
finalizers() { k get pod "$one" -o 'jsonpath={.metadata.finalizers}'; }
merge "$pods/$one" '{"metadata":{"ownerReferences":null}}' >/dev/null
check "a pod without an owner is adopted" until_true 20 eval '[ "$(owner)" = adopter ]'
check "and is tracked" until_true 10 eval 'finalizers | grep -q batch.kubernetes.io/job-tracking'
merge "$pods/$one" '{"metadata":{"labels":null}}' >/dev/null
check "a pod without its labels is let go" until_true 20 eval '[ -z "$(owner)" ]'
expect "and nobody holds it" "" eval 'finalizers | tr -d "[]"'
check "another one takes its place" until_true 30 running adopter 2
away adopter; c delete pod "$one" --wait=false >/dev/null

echo "# [sig-apps] Job should apply changes to a job status [Conformance]"
job status 'completions: 4, parallelism: 2,' 'sleep 1000'
until_true 30 eval '[ "$(of status ready)" = 2 ]'
now=$(date -u +%Y-%m-%dT%H:%M:%SZ)
expect "the status is patched" 200 merge "$batch/jobs/status/status" '{"metadata":{"annotations":{"patchedstatus":"true"}},"status":{"conditions":[{"type":"CustomConditionType","status":"True","reason":"E2E","lastTransitionTime":"'"$now"'"}]}}'
expect "and says so" "true E2E" eval 'echo "$(k get job status -o "jsonpath={.metadata.annotations.patchedstatus}") $(reason status CustomConditionType)"'
put_status() {  # put_status URL ...: fails if its controller wrote in between
  admin "$batch/jobs/status/status" | sed 's/"reason": "E2E"/"reason": "Updated"/' > "$T/job.json"
  [ "$(code -X PUT -H 'Content-Type: application/json' --data-binary "@$T/job.json" "$batch/jobs/status/status")" = 200 ]
}
check "it is updated" until_true 10 put_status
expect "and read" Updated reason status CustomConditionType
away status

echo "# [sig-apps] Job should manage the lifecycle of a job [Conformance]"
c apply -f - >/dev/null <<EOF
{apiVersion: batch/v1, kind: Job, metadata: {name: life, labels: {life: one}}, spec: {suspend: true, completions: 1, parallelism: 1, template: {metadata: {labels: {job: life}},
  spec: {restartPolicy: Never, containers: [{name: c, image: localhost/busybox:latest, command: ["true"]}]}}}}
EOF
check "it is suspended" until_true 10 holds life Suspended
expect "without a pod" "" pods_of life
expect "its labels are patched" 200 merge "$batch/jobs/life" '{"metadata":{"labels":{"life":"patched"}}}'
expect_match "by which it is found" '"name": "life"' admin "$batch/jobs?labelSelector=life%3Dpatched"
expect "it is resumed" 200 merge "$batch/jobs/life" '{"spec":{"suspend":false}}'
check "and completes" until_true 30 holds life Complete
soon expect_match "as its events tell" '^Resumed: Job resumed' events_of life
soon expect_match "in order" '^Completed: Job completed' events_of life
expect "it is deleted by its label" 200 code -X DELETE "$batch/jobs?labelSelector=life%3Dpatched" -H 'Content-Type: application/json' -d '{"propagationPolicy":"Background"}'
check "and gone" until_true 20 is 404 "$batch/jobs/life"

echo "# what is beyond conformance: a deadline, a time after the end, a daemon that is killed"
job deadline 'completions: 1, activeDeadlineSeconds: 2, ttlSecondsAfterFinished: 3,' 'sleep 1000'
check "a deadline ends the job" until_true 30 holds deadline Failed
expect "for that reason" DeadlineExceeded reason deadline Failed
check "and it is removed later" until_true 30 is 404 "$batch/jobs/deadline"
expect "with its pods" "" pods_of deadline

job killed 'completions: 8, parallelism: 2, backoffLimit: 0,' 'sleep 0.5'
for round in 1 2 3; do
  until_true 30 eval '[ "$(of killed succeeded || echo 0)" -ge '$((round * 2))' ]'
  kill_daemon
  start_daemon
done
check "killed three times on the way, it completes" until_true 60 holds killed Complete
expect "and every pod was counted once" "8  8" eval 'echo "$(of killed succeeded) $(of killed failed) $(pods_of killed | wc -l)"'
expect "nobody holds a pod any more" "" eval 'k get pods -l job=killed -o "jsonpath={range .items[*]}{.metadata.finalizers}{end}" | tr -d "[]"'

echo "# [sig-apps] CronJob should support CronJob API operations [Conformance]"
expect_match "discovery knows them" '"cronjobs/status"' admin "$api/apis/batch/v1"
c apply -f - >/dev/null <<EOF
{apiVersion: batch/v1, kind: CronJob, metadata: {name: api, labels: {special: "yes"}}, spec: {schedule: "* */1 * * ?", suspend: true, timeZone: Europe/Berlin,
  jobTemplate: {spec: {template: {spec: {restartPolicy: OnFailure, containers: [{name: c, image: localhost/busybox:latest, command: ["true"]}]}}}}}}
EOF
expect "it is read" 200 code "$batch/cronjobs/api"
expect_match "listed" '"name": "api"' admin "$batch/cronjobs?labelSelector=special%3Dyes"
expect_match "listed in all namespaces" '"name": "api"' admin "$api/apis/batch/v1/cronjobs?labelSelector=special%3Dyes"
expect_match "watched" '"type":"ADDED".*"name":"api"' admin "$batch/cronjobs?watch=true&timeoutSeconds=5&labelSelector=special%3Dyes"
expect "patched" 200 merge "$batch/cronjobs/api" '{"metadata":{"annotations":{"patched":"true"}}}'
admin "$batch/cronjobs/api" | sed 's/"patched": "true"/"patched": "updated"/' > "$T/cron.json"
expect "updated" 200 code -X PUT -H 'Content-Type: application/json' --data-binary "@$T/cron.json" "$batch/cronjobs/api"
expect "its status is patched" 200 merge "$batch/cronjobs/api/status" '{"metadata":{"annotations":{"patchedstatus":"true"}},"status":{"lastScheduleTime":"2024-01-01T00:00:00Z"}}'
expect_match "and read" '"lastScheduleTime": "2024-01-01T00:00:00Z"' admin "$batch/cronjobs/api/status"
admin "$batch/cronjobs/api/status" | sed 's/2024-01-01T00:00:00Z/2024-02-01T00:00:00Z/' > "$T/cron.json"
expect "and updated" 200 code -X PUT -H 'Content-Type: application/json' --data-binary "@$T/cron.json" "$batch/cronjobs/api/status"
expect "a zone that is not there is refused" 422 merge "$batch/cronjobs/api" '{"spec":{"timeZone":"Mars/Olympus"}}'
expect_match "in Kubernetes' words" 'unknown time zone Mars/Olympus' cat "$T/answer"
expect "it is deleted" 200 code -X DELETE "$batch/cronjobs/api"
expect "all are, by their label" 200 code -X DELETE "$batch/cronjobs?labelSelector=special%3Dyes"

active() { k get cronjob "$1" -o 'jsonpath={range .status.active[*]}{.name}{"\n"}{end}'; }
jobs_of() { k get jobs -o 'jsonpath={range .items[*]}{.metadata.name}{"\n"}{end}' | grep -- "^$1-"; }

echo "# [sig-apps] CronJob should schedule multiple jobs concurrently [Conformance]"
check "there is more than one running job" until_true 150 eval '[ "$(active concurrent | wc -l)" -ge 2 ]'
check "as the jobs themselves say" until_true 10 eval '[ "$(active concurrent | wc -l)" = "$(jobs_of concurrent | wc -l)" ]'
expect_match "they are named after their minute" "^concurrent-$(($(date +%s) / 60))\$|^concurrent-$(($(date +%s) / 60 - 1))\$" active concurrent
expect_match "and say for when they were made" '^[0-9-]+T[0-9:]+:00(Z|[+-][0-9:]+)$' k get job "$(active concurrent | head -n 1)" -o 'jsonpath={.metadata.annotations.batch\.kubernetes\.io/cronjob-scheduled-timestamp}'
soon expect_match "as an event tells" '^SuccessfulCreate: Created job concurrent-' events_of concurrent

echo "# [sig-apps] CronJob should replace jobs when ReplaceConcurrent [Conformance]"
check "one job runs" until_true 70 eval '[ "$(active replace | wc -l)" = 1 ]'
check "and has replaced another one" until_true 70 eval 'events_of replace | grep -q "^SuccessfulDelete: Deleted job replace-"'
check "alone" until_true 20 eval '[ "$(jobs_of replace | wc -l)" = 1 ]'

echo "# [sig-apps] CronJob should not schedule new jobs when ForbidConcurrent [Slow] [Conformance]"
check "another one was due" until_true 70 eval 'events_of forbid | grep -q "^JobAlreadyActive: Not starting job because prior execution is running and concurrency policy is Forbid"'
expect "one job is active" 1 eval 'active forbid | wc -l'
expect "and no other was made" 1 eval 'jobs_of forbid | wc -l'

echo "# [sig-apps] CronJob should not schedule jobs when suspended [Slow] [Conformance]"
expect "none was made, in all the minutes of the others" "" jobs_of suspended
expect "and none is active" "" active suspended
for one in concurrent replace forbid suspended; do c delete cronjob "$one" >/dev/null; done
check "jobs go with their cron job" until_true 30 eval '[ -z "$(jobs_of concurrent)$(jobs_of replace)$(jobs_of forbid)" ]'

echo "# the clock"
# By one program, so that the clock does not go back for all other tests, and not while one of them waits for nobody to set it.
if flock /tmp date -s now >/dev/null 2>&1; then
  check "the daemon hears that the clock is set" until_true 10 grep -q 'the clock was set' "$T/coracled.log"
else
  ok "the daemon hears that the clock is set # SKIP it may not be set here"
fi
echo "1..$test_number"
