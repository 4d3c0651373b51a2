#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The common verbs, with kubectl 1.20, 1.32 and 1.36 and with coraclectl: the same changes of objects, the same exit codes, the
# columns of Kubernetes. Each client works in its own namespace against the same live daemon.
# for: ctl/apply ctl/create ctl/delete ctl/edit ctl/get ctl/print daemon/api/resources daemon/registry/reads daemon/registry/registry store/schema/apply store/schema/merge store/schema/table store/object/patch daemon/api/openapi
. "$(dirname "$0")/lib.sh"
start_machine

verbs() {  # verbs CLIENT: the usual operations of a user
  local who=$1 n=v-${1//[^a-z0-9]/-} d=$T/$1
  mkdir -p "$d"
  check "$who: create namespace" k create namespace "$n"
  cat > "$d/web.yaml" <<Y
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 0
      containers:
      - {name: main, image: "localhost/busybox:latest", command: [sh, -c, "echo one; echo two; echo three; exec sleep 100000"]}
Y
  expect_match "$who: apply creates" '^deployment.apps/web created' k -n "$n" apply -f "$d/web.yaml"
  expect_match "$who: apply again changes nothing" '^deployment.apps/web unchanged' k -n "$n" apply -f "$d/web.yaml"
  sed -i 's/replicas: 1/replicas: 2/' "$d/web.yaml"
  expect_match "$who: apply configures" '^deployment.apps/web configured' k -n "$n" apply -f "$d/web.yaml"
  check "$who: rollout status" k -n "$n" rollout status deployment/web --timeout=120s
  expect "$who: get -o name" "deployment.apps/web" k -n "$n" get deployments -o name
  expect_match "$who: get has Kubernetes' columns" '^NAME +READY +UP-TO-DATE +AVAILABLE +AGE *$' k -n "$n" get deployments
  expect_match "$who: get pods has Kubernetes' columns" '^NAME +READY +STATUS +RESTARTS +AGE *$' k -n "$n" get pods
  expect_match "$who: get -o wide" '^NAME +READY +STATUS +RESTARTS +AGE +IP +NODE +NOMINATED NODE +READINESS GATES *$' k -n "$n" get pods -o wide
  expect_match "$who: get -A" "^$n +web-.* 1/1 +Running " k get pods -A
  expect_match "$who: get nodes" '^edge +Ready ' k get nodes
  expect "$who: get -l" "2" eval "k -n $n get pods -l app=web --no-headers | wc -l"
  expect_match "$who: get -l that matches nothing" '^No resources found in ' k -n "$n" get pods -l app=none
  expect "$who: get -o json" "web" eval "k -n $n get deployment web -o json | jq -r .metadata.name"
  expect_match "$who: get -o yaml" '^  name: web$' k -n "$n" get deployment web -o yaml
  expect_fail "$who: get what is not there" 'Error from server \(NotFound\): pods "nope" not found' k -n "$n" get pod nope
  timeout 120 nsenter --net="/run/netns/$ns" "${KUBECTL:-$coraclectl}" --kubeconfig "$T/etc/admin.kubeconfig" -n "$n" get configmaps -w >"$d/watch" 2>/dev/null &
  local watcher=$!
  until_true 10 test -s "$d/watch"
  expect_match "$who: create configmap" '^configmap/settings created' k -n "$n" create configmap settings --from-literal=a=1
  check "$who: get -w sees it" until_true 10 grep -q '^settings' "$d/watch"
  kill "$watcher" 2>/dev/null; wait "$watcher" 2>/dev/null
  expect_match "$who: create secret" '^secret/keys created' k -n "$n" create secret generic keys --from-literal=k=v
  expect "$who: the secret's value" "v" eval "k -n $n get secret keys -o 'jsonpath={.data.k}' | base64 -d"
  expect_fail "$who: create twice" 'configmaps "settings" already exists' k -n "$n" create configmap settings
  local pod; pod=$(k -n "$n" get pods -o 'jsonpath={.items[0].metadata.name}')
  soon expect_match "$who: describe pod" '^ *Normal +Started' k -n "$n" describe pod "$pod"
  soon expect_match "$who: describe deployment" '^ *Normal +ScalingReplicaSet' k -n "$n" describe deployment web
  expect_match "$who: describe node" '^Name: +edge' k describe node edge
  soon expect "$who: logs" $'one\ntwo\nthree' k -n "$n" logs "$pod"
  expect "$who: logs --tail" "three" k -n "$n" logs "$pod" --tail=1 -c main
  expect "$who: logs --since" $'one\ntwo\nthree' k -n "$n" logs "$pod" --since=1h
  nsenter --net="/run/netns/$ns" "${KUBECTL:-$coraclectl}" --kubeconfig "$T/etc/admin.kubeconfig" -n "$n" logs -f "$pod" >"$d/followed" 2>&1 &
  local follower=$!
  check "$who: logs -f" until_true 10 eval "[ \"\$(<'$d/followed')\" = \$'one\ntwo\nthree' ]"
  check "$who: … goes on" kill "$follower"; wait "$follower" 2>/dev/null
  expect "$who: exec" "main" k -n "$n" exec "$pod" -- sh -c 'echo main'
  expect "$who: exec passes the exit code" "5" eval "k -n $n exec $pod -- sh -c 'exit 5' >/dev/null 2>&1; echo \$?"
  expect_match "$who: exec -it has a terminal" '/dev/pts/' eval "script -qec 'nsenter --net=/run/netns/$ns ${KUBECTL:-$coraclectl} --kubeconfig $T/etc/admin.kubeconfig -n $n exec -it $pod -- tty' /dev/null </dev/null"
  expect_match "$who: scale" '^deployment.apps/web scaled' k -n "$n" scale deployment web --replicas=1
  expect_match "$who: set image" '^deployment.apps/web image updated' k -n "$n" set image deployment/web main=localhost/busybox
  check "$who: the change rolls out" k -n "$n" rollout status deployment/web --timeout=120s
  expect_match "$who: rollout history" '^2 ' k -n "$n" rollout history deployment/web
  expect_match "$who: rollout undo" '^deployment.apps/web rolled back' k -n "$n" rollout undo deployment/web
  check "$who: … rolls out" k -n "$n" rollout status deployment/web --timeout=120s
  expect "$who: … to the first image" "localhost/busybox:latest" k -n "$n" get deployment web -o 'jsonpath={.spec.template.spec.containers[0].image}'
  expect_match "$who: label" '^configmap/settings labeled' k -n "$n" label configmap settings tier=gold
  expect_fail "$who: label is not overwritten" "already has a value \(gold\), and --overwrite is false" k -n "$n" label configmap settings tier=tin
  expect_match "$who: label -" '^configmap/settings (unlabeled|labeled)' k -n "$n" label configmap settings tier-
  expect_match "$who: annotate" '^configmap/settings annotated' k -n "$n" annotate configmap settings note=hi
  printf '#!/bin/sh\nsed -i "s/^  a: .*/  a: \\"2\\"/" "$1"\n' > "$d/editor"; chmod +x "$d/editor"
  check "$who: edit" eval "EDITOR=$d/editor k -n $n edit configmap settings"
  expect "$who: … changed it" "2" k -n "$n" get configmap settings -o 'jsonpath={.data.a}'
  expect_match "$who: patch" '^configmap/settings patched' k -n "$n" patch configmap settings -p '{"data":{"b":"3"}}'
  expect_match "$who: expose" '^service/web exposed' k -n "$n" expose deployment web --port=80 --target-port=8080
  expect_match "$who: get service" '^NAME +TYPE +CLUSTER-IP +EXTERNAL-IP +PORT\(S\) +AGE *$' k -n "$n" get service web
  expect_match "$who: run" '^pod/once created' k -n "$n" run once --image=localhost/busybox:latest --restart=Never -- sh -c 'echo ran; exit 3'
  check "$who: the pod ends" until_true 20 eval "[ \"\$(k -n $n get pod once -o 'jsonpath={.status.phase}')\" = Failed ]"
  expect "$who: its exit code" "3" k -n "$n" get pod once -o 'jsonpath={.status.containerStatuses[0].state.terminated.exitCode}'
  expect_match "$who: api-resources" '^pods +po +v1 +true +Pod' k api-resources
  expect_match "$who: explain" 'containers|List of containers' k explain pod.spec.containers
  expect_fail "$who: an unknown field is refused" 'unknown field|ValidationError' eval "sed 's/replicas/replicaz/' $d/web.yaml | k -n $n apply -f -"
  expect_fail "$who: an invalid value names the field" 'spec.replicas' eval "sed 's/replicas: 2/replicas: -1/' $d/web.yaml | k -n $n apply -f -"
  expect_match "$who: delete" '^configmap "settings" deleted' k -n "$n" delete configmap settings
  expect_fail "$who: delete again" 'NotFound' k -n "$n" delete configmap settings
  expect_match "$who: delete -f" '^deployment.apps "web" deleted' k -n "$n" delete -f "$d/web.yaml"
  check "$who: delete namespace ends" k delete namespace "$n" --timeout=120s
}

[ -n "${ONLY_KUBECTL:-}" ] || KUBECTL= verbs coraclectl
while read -r suite path version; do
  version=${version#v}
  KUBECTL=$path verbs "$(cut -d. -f1,2 <<<"$version")"
done < <("$here/fetch_kubectl.sh" "$cache/kubectl")
