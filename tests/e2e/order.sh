#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# coracle.io/after: pods that wait for others, when they are created and after a power failure of the machine.
# for: daemon/startup daemon/controller/pod/start_order_gates daemon/admission/start_order
. "$(dirname "$0")/lib.sh"
start_machine

workload() {  # workload NAME AFTER [READY-AFTER-SECONDS]: a deployment with one replica
  c apply -f - <<Y
apiVersion: apps/v1
kind: Deployment
metadata: {name: $1}
spec:
  selector: {matchLabels: {app: $1}}
  template:
    metadata: {labels: {app: $1}, annotations: {$2}}
    spec:
      terminationGracePeriodSeconds: 0
      containers:
      - name: main
        image: localhost/busybox:latest
        command: [sh, -c, "date +%s; sleep ${3:-0}; touch /tmp/ready; sleep 100000"]
        readinessProbe: {exec: {command: [cat, /tmp/ready]}, periodSeconds: 1, timeoutSeconds: 20}
Y
}
pod_of() { c get pods -l "app=$1" -o 'jsonpath={.items[0].metadata.name}'; }
message() { c get pods -l "app=$1" -o 'jsonpath={.items[0].status.conditions[?(@.type=="PodScheduled")].message}'; }
says() { message "$1" | grep -q -- "$2"; }
is_ready() { [ "$(c get pods -l "app=$1" -o 'jsonpath={.items[0].status.conditions[?(@.type=="Ready")].status}')" = True ]; }
# The times at which the container started and became ready: the API's times have whole seconds, so the container's output is
# used.
began() { c logs "$(pod_of "$1")" --tail=1; }
after() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a >= b) }'; }

echo "# a pod waits for what is not there yet, says so, and goes when it is"
check "who waits is made" workload web 'coracle.io/after: "deployment/db, service/cache"'
check "it says for what" until_true 10 says web "waiting for deployment/db: not found, service/cache: not found"
expect_match "as a person sees it" "SchedulingGated" c get pods -l app=web
check "a warning too, for a name that nobody has" until_true 10 eval 'c get events | grep -q WaitingForUnknown'
workload db '' 10 >/dev/null
check "then that it is not ready" until_true 10 says web "deployment/db: 0 of 1 pods ready"
check "the database gets ready" until_true 20 is_ready db
check "the service is still missing" says web "service/cache: not found"
c create service clusterip cache --tcp=80:80 >/dev/null; c set selector service cache app=db >/dev/null 2>&1 ||
  c patch service cache -p '{"spec":{"selector":{"app":"db"}}}' >/dev/null
check "now it goes" until_true 20 is_ready web
check "and began only after the database was ready" eval 'after "$(began web)" "$(awk -v t="$(began db)" "BEGIN { print t + 2 }")"'

echo "# cycles are reported, and typing mistakes refused"
workload hen 'coracle.io/after: "deployment/egg"' >/dev/null; workload egg 'coracle.io/after: "deployment/hen"' >/dev/null
check "a cycle is named" until_true 10 says hen "deployment/hen → deployment/egg → deployment/hen"
check "as an event too" until_true 10 eval 'c get events | grep -q StartOrderCycle'
expect_fail "a kind that there is not" 'spec.template.metadata.annotations\[coracle.io/after\].*cannot wait for this kind' workload typo 'coracle.io/after: "deploymnt/db"'
check "without the annotation the cycle is broken" c patch deployment hen -p '{"spec":{"template":{"metadata":{"annotations":{"coracle.io/after":null}}}}}'
check "and both run" until_true 30 eval 'is_ready hen && is_ready egg'

echo "# a power cut: everything begins anew, in the same order"
c delete deployment hen egg --wait=true >/dev/null
before_web=$(began web) before_db=$(began db)
kill_daemon
in_ns "$coracled" --config "$T/etc/config.yaml" --remove-pods >/dev/null 2>&1   # nothing runs; in the store, all is ready
start_daemon
anew() { local now; now=$(began "$1") && [ -n "$now" ] && [ "$now" != "$2" ] && is_ready "$1"; }
check "the database comes back" until_true 30 anew db "$before_db"
check "so does who waits for it" until_true 30 anew web "$before_web"
check "not before the database was ready again" eval 'after "$(began web)" "$(awk -v t="$(began db)" "BEGIN { print t + 2 }")"'
soon expect_match "and said meanwhile what it waited for" "WaitingForOthers.*deployment/db: 0 of 1 pods ready" c get events
echo "1..$test_number"
