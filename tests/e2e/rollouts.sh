#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Operations on running workloads: rollout, scale, autoscale, set, wait, events, taint, cordon, drain, describe; with kubectl
# 1.20, 1.32 and 1.36 and with coraclectl, including errors. Each client works in its own namespace.
# for: ctl/rollout ctl/scale ctl/set ctl/wait ctl/events ctl/node ctl/describe ctl/edit daemon/controller
. "$(dirname "$0")/lib.sh"
start_machine

image=localhost/busybox:latest
newer() { [ "$1" = coraclectl ] || [ "$(printf '%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]; }  # newer CLIENT VERSION
workload() {  # workload NAMESPACE KIND NAME [SPEC]
  c -n "$1" apply -f - >/dev/null <<Y
{apiVersion: apps/v1, kind: $2, metadata: {name: $3, labels: {app: $3}}, spec: {${4:-} selector: {matchLabels: {app: $3}}, template: {metadata: {labels: {app: $3}},
  spec: {terminationGracePeriodSeconds: 0, containers: [{name: main, image: "$image", command: [sleep, "100000"]}]}}}}
Y
}
image_of() { k -n "$1" get "$2" -o 'jsonpath={.spec.template.spec.containers[0].image}'; }

rolls() {  # rolls CLIENT NAMESPACE KIND/NAME RESOURCE: what is common to Deployments, StatefulSets and DaemonSets
  local who=$1 n=$2 what=$3 named=$4
  check "$who: $what: rollout status" k -n "$n" rollout status "$what" --timeout=120s
  expect "$who: $what: set image" "$named image updated" k -n "$n" set image "$what" main=localhost/busybox
  check "$who: $what: … rolls out" k -n "$n" rollout status "$what" --timeout=120s
  expect "$who: $what: history" $'1 <none>\n2 <none>' eval "k -n $n rollout history $what | grep '^[0-9]' | tr -s ' '"
  expect_match "$who: $what: history --revision" '^ +Image:[[:space:]]+localhost/busybox:latest' k -n "$n" rollout history "$what" --revision=1
  expect_fail "$who: $what: history of a revision that is not there" '^error: unable to find the specified revision' k -n "$n" rollout history "$what" --revision=9
  expect_fail "$who: $what: undo to a revision that is not there" '^error: unable to find specified revision 9 in history' k -n "$n" rollout undo "$what" --to-revision=9
  expect_match "$who: $what: undo --dry-run=client shows what it would be" "Pod Template:|dry run" k -n "$n" rollout undo "$what" --dry-run=client
  expect "$who: $what: … and does nothing" "localhost/busybox" image_of "$n" "$what"
  expect_match "$who: $what: undo" "^$named rolled back" k -n "$n" rollout undo "$what"
  expect "$who: $what: … to the first image" "$image" image_of "$n" "$what"
  check "$who: $what: … rolls out" k -n "$n" rollout status "$what" --timeout=120s
  expect "$who: $what: undo takes the next number" $'2\n3' eval "k -n $n rollout history $what | grep -o '^[0-9]*' | sort -n"
  expect_match "$who: $what: undo --to-revision" "^$named rolled back" k -n "$n" rollout undo "$what" --to-revision=2
  expect "$who: $what: … to that image" "localhost/busybox" image_of "$n" "$what"
  expect "$who: $what: restart" "$named restarted" k -n "$n" rollout restart "$what"
  check "$who: $what: … rolls out" k -n "$n" rollout status "$what" --timeout=120s
  check "$who: $what: --watch=false looks once" k -n "$n" rollout status "$what" --watch=false
  expect_match "$who: $what: describe" '^Pods Status:|^NewReplicaSet:' k -n "$n" describe "$what"
}

waits_for_deletion() {  # waits_for_deletion NAMESPACE: the client has to look before the deletion
  local nap out
  for nap in 5 30; do
    c -n "$1" get configmap cfg >/dev/null 2>&1 || c -n "$1" create configmap cfg >/dev/null
    (sleep $nap; c -n "$1" delete configmap cfg) >/dev/null 2>&1 &
    out=$(k -n "$1" wait --for=delete configmap/cfg --timeout=60s 2>&1)
    wait $!
    [ "$out" != "configmap/cfg condition met" ] || break
  done
  echo "$out"
}

round() {  # round CLIENT
  local who=$1 n=w-${1//[^a-z0-9]/-}
  c create namespace "$n" >/dev/null
  workload "$n" Deployment web "replicas: 2,"

  rolls "$who" "$n" deployment/web deployment.apps/web
  workload "$n" StatefulSet db "replicas: 2, serviceName: db,"
  rolls "$who" "$n" statefulset/db statefulset.apps/db
  expect_fail "$who: pause what has no pause" 'statefulsets.apps "db" pausing is not supported' k -n "$n" rollout pause statefulset/db
  expect "$who: scale a StatefulSet" "statefulset.apps/db scaled" k -n "$n" scale statefulset/db --replicas=1
  expect_match "$who: describe its revision" '^ControllerRevision|^Revision: +[0-9]' k -n "$n" describe controllerrevisions -l app=db
  workload "$n" DaemonSet agent
  rolls "$who" "$n" daemonset/agent daemonset.apps/agent
  expect "$who: pause" "deployment.apps/web paused" k -n "$n" rollout pause deployment/web
  expect_fail "$who: pause again" 'deployments.apps "web" is already paused' k -n "$n" rollout pause deployment/web
  expect_fail "$who: restart what is paused" "can't restart paused deployment" k -n "$n" rollout restart deployment/web
  expect_fail "$who: undo what is paused" 'cannot rollback a paused deployment; resume it first' k -n "$n" rollout undo deployment/web
  expect "$who: resume" "deployment.apps/web resumed" k -n "$n" rollout resume deployment/web
  expect_fail "$who: resume again" 'deployments.apps "web" is not paused' k -n "$n" rollout resume deployment/web
  expect_fail "$who: rollout of what is not there" 'Error from server \(NotFound\): deployments.apps "nope" not found' k -n "$n" rollout status deployment/nope
  expect_fail "$who: a rollout that does not end in time" '^error: timed out waiting for the condition' \
    eval "k -n $n set image deployment/web main=localhost/none:x >/dev/null; k -n $n rollout status deployment/web --timeout=2s"
  expect_match "$who: … is undone" "^deployment.apps/web rolled back" k -n "$n" rollout undo deployment/web
  check "$who: … and rolls out" k -n "$n" rollout status deployment/web --timeout=120s
  newer "$who" 1.32 && expect "$who: rollout restart -l" "deployment.apps/web restarted" k -n "$n" rollout restart deployment -l app=web

  expect "$who: scale" "deployment.apps/web scaled" k -n "$n" scale deployment/web --replicas=1
  expect_fail "$who: scale --current-replicas" '^error: Expected replicas to be 5, was 1' k -n "$n" scale deployment/web --current-replicas=5 --replicas=2
  expect_fail "$who: scale to less than nothing" 'COUNT must be greater than or equal to 0' k -n "$n" scale deployment/web --replicas=-1
  expect_fail "$who: scale what has no scale" 'NotFound|could not find the requested resource|no matches' k -n "$n" scale serviceaccount/default --replicas=1
  expect_match "$who: scale -l" '^deployment.apps/web scaled' k -n "$n" scale deployment -l app=web --replicas=2
  expect_fail "$who: scale goes on with the others" 'deployments.apps "nope" not found' k -n "$n" scale deployment nope web --replicas=2
  expect_match "$who: autoscale" "^horizontalpodautoscaler.autoscaling/web autoscaled" k -n "$n" autoscale deployment web --min=1 --max=3 --cpu-percent=80
  expect "$who: … with what was asked for" "Deployment web 1 3 80" k -n "$n" get horizontalpodautoscalers.v1.autoscaling web -o \
    'jsonpath={.spec.scaleTargetRef.kind} {.spec.scaleTargetRef.name} {.spec.minReplicas} {.spec.maxReplicas} {.spec.targetCPUUtilizationPercentage}'
  expect_fail "$who: autoscale again" 'AlreadyExists|already exists|failed to create autoscaling/v2 HPA' k -n "$n" autoscale deployment web --max=3
  expect_fail "$who: autoscale upside down" 'must be larger or equal to --min' k -n "$n" autoscale deployment web --min=3 --max=2
  expect_match "$who: describe hpa" '^Max replicas: +3' k -n "$n" describe hpa web
  k -n "$n" delete hpa web >/dev/null
  if newer "$who" 1.36; then
    expect "$who: autoscale --cpu --memory" "500m 200Mi" eval "k -n $n autoscale deployment web --max=2 --cpu=500m --memory=200 --dry-run=client -o json |
      jq -r '[.spec.metrics[].resource.target.averageValue] | join(\" \")'"
  fi

  expect "$who: set env" "deployment.apps/web env updated" k -n "$n" set env deployment/web A=1
  expect_match "$who: set env --list" '^A=1$' k -n "$n" set env deployment/web --list
  k -n "$n" create configmap cfg --from-literal=some.key=v >/dev/null
  expect_match "$who: set env --from" "^deployment.apps/web env updated" k -n "$n" set env deployment/web --from=configmap/cfg --prefix=P_
  expect_match "$who: … has its keys" '^# P_SOME_KEY from configmap cfg, key some.key' k -n "$n" set env deployment/web --list
  expect "$who: set env -" "deployment.apps/web env updated" k -n "$n" set env deployment/web A- P_SOME_KEY-
  expect "$who: … and it is gone" "" k -n "$n" get deployment web -o 'jsonpath={.spec.template.spec.containers[0].env}'
  expect "$who: set resources" "deployment.apps/web resource requirements updated" k -n "$n" set resources deployment/web --limits=memory=64Mi --requests=memory=32Mi
  expect "$who: … has them" "64Mi 32Mi" k -n "$n" get deployment web -o 'jsonpath={.spec.template.spec.containers[0].resources.limits.memory} {.spec.template.spec.containers[0].resources.requests.memory}'
  expect "$who: set serviceaccount" "deployment.apps/web serviceaccount updated" k -n "$n" set serviceaccount deployment web default
  expect_fail "$who: set image of a container that is not there" 'unable to find container named "?nope' k -n "$n" set image deployment/web nope=x
  check "$who: all that rolls out" k -n "$n" rollout status deployment/web --timeout=120s

  expect "$who: wait for a condition" "deployment.apps/web condition met" k -n "$n" wait --for=condition=Available deployment/web --timeout=120s
  expect_fail "$who: wait: time is up" '^error: timed out waiting for the condition on deployments/web' k -n "$n" wait --for=condition=Nope deployment/web --timeout=1s
  expect_fail "$who: wait for what is not there" 'pods "none" not found' k -n "$n" wait --for=condition=Ready pod/none --timeout=5s
  expect_fail "$who: wait for nothing" '^error: no matching resources found' k -n "$n" wait --for=condition=Ready pods -l app=none --timeout=5s
  expect_match "$who: wait --all" '^pod/web-.* condition met' k -n "$n" wait --for=condition=Ready pods -l app=web --timeout=120s
  if newer "$who" 1.32; then
    expect "$who: wait --for=jsonpath" "deployment.apps/web condition met" k -n "$n" wait --for=jsonpath='{.status.readyReplicas}'=2 deployment/web --timeout=120s
    expect "$who: wait --for=jsonpath without a value" "deployment.apps/web condition met" k -n "$n" wait --for=jsonpath='{.status.readyReplicas}' deployment/web --timeout=120s
    expect "$who: wait --timeout=0 looks once" "error: condition not met for deployments/web" k -n "$n" wait --for=jsonpath='{.status.readyReplicas}'=7 deployment/web --timeout=0
    (sleep 1; c -n "$n" create configmap late >/dev/null) &
    expect "$who: wait --for=create" "configmap/late condition met" k -n "$n" wait --for=create configmap/late --timeout=120s
    expect_fail "$who: wait --for=create in vain" '^error: timed out waiting for the condition' k -n "$n" wait --for=create configmap/never --timeout=1s
    expect "$who: wait --for=delete of what is not there" "" k -n "$n" wait --for=delete pod/none --timeout=5s
    local ready; ready=$(k -n "$n" get pods -l app=web -o 'jsonpath={.items[0].metadata.name}')
    expect_match "$who: events" '^LAST SEEN +TYPE +REASON +OBJECT +MESSAGE$' k -n "$n" events
    soon expect_match "$who: events --for" '^[0-9]+[sm][^ ]* +Normal +Started +Pod/web-' k -n "$n" events --for "pod/$ready"
    expect "$who: events --for: of nothing else" "0" eval "k -n $n events --for deployment/web --no-headers | grep -vc Deployment/web"
    soon expect_match "$who: events --types" "^$n +.* Warning " k events -A --types=Warning
    expect_fail "$who: events --types: a wrong one" 'valid --types are Normal or Warning' k events --types=Loud
    expect_fail "$who: events --for: not a name" 'must be in resource/name form' k events --for web
    soon expect "$who: events -o name" "true" eval "k -n $n events -o json | jq '.items | length > 3'"
  fi
  soon expect_match "$who: get events" "^$n +.* Normal +ScalingReplicaSet +deployment/web" k get events -A --sort-by=.metadata.creationTimestamp
  expect "$who: wait --for=delete" "configmap/cfg condition met" waits_for_deletion "$n"

  local maker=k  # 1.20 uses removed versions of these APIs
  newer "$who" 1.32 || maker=c
  expect "$who: create pdb" "poddisruptionbudget.policy/web created" $maker -n "$n" create pdb web --selector=app=web --min-available=2
  check "$who: the budget is counted" until_true 20 eval "[ \"\$(k -n $n get pdb web -o 'jsonpath={.status.expectedPods} {.status.disruptionsAllowed}')\" = '2 0' ]"
  expect_match "$who: describe pdb" '^Min available: +2' $maker -n "$n" describe pdb web
  expect "$who: create quota" "resourcequota/most created" k -n "$n" create quota most --hard=pods=20
  expect_match "$who: describe quota" '^pods +[0-9]+ +20$' eval "until_true 20 eval \"k -n $n describe quota most | grep -Eq '^pods'\"; k -n $n describe quota most"
  expect "$who: create priorityclass" "priorityclass.scheduling.k8s.io/$n created" k create priorityclass "$n" --value=1000 --description=urgent
  expect_match "$who: describe priorityclass" '^Value: +1000$' k describe priorityclass "$n"
  k delete priorityclass "$n" >/dev/null
  expect "$who: create job" "job.batch/once created" k -n "$n" create job once --image=$image -- true
  expect "$who: create cronjob" "cronjob.batch/tick created" $maker -n "$n" create cronjob tick --image=$image --schedule='0 0 1 1 *' -- true
  expect "$who: create job --from" "job.batch/now created" $maker -n "$n" create job now --from=cronjob/tick
  expect "$who: … says where it comes from" "tick manual" k -n "$n" get job now -o 'jsonpath={.metadata.ownerReferences[0].name} {.metadata.annotations.cronjob\.kubernetes\.io/instantiate}'
  expect_match "$who: describe job" '^Parallelism: +1' k -n "$n" describe job once
  expect_match "$who: describe cronjob" '^Schedule: +0 0 1 1 \*' $maker -n "$n" describe cronjob tick

  expect "$who: taint" "node/edge tainted" k taint node edge team=a:PreferNoSchedule
  expect_fail "$who: taint again" 'node edge already has team taint\(s\) with same effect\(s\) and --overwrite is false' k taint node edge team=b:PreferNoSchedule
  expect "$who: taint --overwrite" "node/edge modified" k taint node edge team=b:PreferNoSchedule --overwrite
  expect "$who: the taint is another" "b" k get node edge -o 'jsonpath={.spec.taints[?(@.key=="team")].value}'
  expect_match "$who: describe node says so" '^Taints: +team=b:PreferNoSchedule' k describe node edge
  expect_fail "$who: taint with a bad effect" 'invalid taint effect: Never, unsupported taint effect' k taint node edge team=b:Never
  expect_fail "$who: taint and not" 'can not both modify and remove' k taint node edge team=b:NoSchedule team-
  expect "$who: taint -" "node/edge untainted" k taint node edge team:PreferNoSchedule-
  expect_fail "$who: taint - again" 'taint "?team"? not found' k taint node edge team-

  c -n "$n" run lone --image=$image --command -- sleep 100000 >/dev/null
  c -n "$n" wait --for=condition=Ready pod/lone --timeout=120s >/dev/null
  expect "$who: cordon" "node/edge cordoned" k cordon edge
  expect "$who: cordon again" "node/edge already cordoned" k cordon edge
  expect_fail "$who: drain a node that is not there" 'nodes "nope" not found' k drain nope
  expect_fail "$who: drain spares what nobody makes again" "cannot delete Pods.*use --force to override\): $n/lone" k drain edge --pod-selector='run=lone'
  expect_fail "$who: drain spares what a DaemonSet would make again at once" "cannot delete DaemonSet-managed Pods \(use --ignore-daemonsets to ignore\): $n/agent-" \
    k drain edge --pod-selector=app=agent
  expect_match "$who: drain --ignore-daemonsets leaves it" "^(Warning|WARNING): ignoring DaemonSet-managed Pods: $n/agent-" k drain edge --pod-selector=app=agent --ignore-daemonsets
  expect_match "$who: drain --dry-run=client" '^node/edge drained \(dry run\)' k drain edge --force --dry-run=client --ignore-daemonsets
  expect_fail "$who: drain held by a budget tries again and gives up" 'global timeout reached: 7s' k drain edge --force --ignore-daemonsets --timeout=7s --grace-period=1 --pod-selector='app=web'
  expect "$who: … the pods are still there" "2" eval "k -n $n get pods -l app=web --field-selector=status.phase=Running --no-headers | wc -l"
  expect_match "$who: … though others go at once" '^pod/lone evicted' k drain edge --force --ignore-daemonsets --timeout=120s --grace-period=1 --pod-selector='run=lone'
  k -n "$n" delete pdb web >/dev/null
  expect_match "$who: drain" '^node/edge (drained|evicted)' k drain edge --force --ignore-daemonsets --timeout=120s --grace-period=1 --pod-selector='app=web'
  soon expect_match "$who: the next ones wait" ' Pending ' k -n "$n" get pods -l app=web
  expect "$who: uncordon" "node/edge uncordoned" k uncordon edge
  check "$who: … lets them run" k -n "$n" rollout status deployment/web --timeout=120s
  c delete namespace "$n" --wait=false >/dev/null
}

[ -n "${ONLY_KUBECTL:-}" ] || KUBECTL= round coraclectl
while read -r suite path version; do
  version=${version#v}
  KUBECTL=$path round "$(cut -d. -f1,2 <<<"$version")"
done < <("$here/fetch_kubectl.sh" "$cache/kubectl")
