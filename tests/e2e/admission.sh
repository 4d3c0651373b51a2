#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Admission as users see it: a namespace that enforces a security level, an exhausted quota, defaults of a limit range, an
# eviction that a budget refuses; with KUBECTL set, with the real kubectl.
# for: daemon/admission daemon/quota
. "$(dirname "$0")/lib.sh"
start_machine

running() { [ "$(k get pods -n "$1" -l "$2" --field-selector status.phase=Running -o name | wc -l)" = "$3" ]; }
pod() {  # pod NAMESPACE NAME EXTRA-OF-CONTAINER
  cat <<Y
apiVersion: v1
kind: Pod
metadata: {name: $2, namespace: $1, labels: {app: $2}}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: localhost/busybox:latest, command: [sleep, "100000"]${3:+, $3}}]
Y
}

# ---- initial objects ----

expect "the system's priority classes are there" "2000000000 2000001000" k get priorityclass system-cluster-critical system-node-critical -o 'jsonpath={.items[*].value}'
check "a node that is ready has no taint" until_true 20 eval '[ -z "$(k get node edge -o "jsonpath={.spec.taints}")" ]'

# ---- pod security ----

k create namespace strict >/dev/null
check "a level is a label" k label namespace strict pod-security.kubernetes.io/enforce=restricted
until_true 10 k get serviceaccount default -n strict
pod strict plain > "$T/plain.yaml"
expect_fail "a pod that does too much is refused" 'pods "plain" is forbidden: violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false \(container "main" must set securityContext.allowPrivilegeEscalation=false\), unrestricted capabilities .*runAsNonRoot != true .*seccompProfile' \
  k apply -f "$T/plain.yaml"
pod strict careful 'securityContext: {allowPrivilegeEscalation: false, runAsNonRoot: true, runAsUser: 1000, capabilities: {drop: [ALL]}, seccompProfile: {type: RuntimeDefault}}' > "$T/careful.yaml"
check "one that does not is admitted" k apply -f "$T/careful.yaml"
check "… and runs" until_true 30 running strict app=careful 1
expect_match "a workload is warned" 'Warning: would violate PodSecurity "restricted:latest"' k create deployment loud --image=localhost/busybox:latest -n strict
check "… and its pods are refused, which its events say" until_true 20 eval 'k get events -n strict | grep -q "violates PodSecurity"'
k create namespace later >/dev/null; until_true 10 k get serviceaccount default -n later
pod later open 'securityContext: {privileged: true}' | k apply -f - >/dev/null
expect_match "a namespace that gets stricter is told of its pods" 'Warning: .*violate the new PodSecurity enforce level "baseline:latest"' k label namespace later pod-security.kubernetes.io/enforce=baseline
expect_fail "a level that there is not" 'must be one of privileged, baseline, restricted' k label namespace later --overwrite pod-security.kubernetes.io/enforce=strict

# ---- limit ranges ----

k create namespace ranged >/dev/null; until_true 10 k get serviceaccount default -n ranged
check "a range is made" k apply -f - <<'Y'
apiVersion: v1
kind: LimitRange
metadata: {name: range, namespace: ranged}
spec: {limits: [{type: Container, default: {memory: 64Mi}, defaultRequest: {memory: 32Mi}, max: {memory: 128Mi}}]}
Y
pod ranged given | k apply -f - >/dev/null
check "a pod of the range runs" until_true 30 running ranged app=given 1
expect "a container gets what it does not name" "64Mi 32Mi" k get pod given -n ranged -o 'jsonpath={.spec.containers[0].resources.limits.memory} {.spec.containers[0].resources.requests.memory}'
expect_fail "one that wants too much is refused" 'maximum memory usage per Container is 128Mi, but limit is 1Gi' eval 'pod ranged greedy "resources: {limits: {memory: 1Gi}}" | k apply -f -'

# ---- quotas ----

k create namespace bounded >/dev/null; until_true 10 eval 'k get serviceaccount default -n bounded && k get configmap kube-root-ca.crt -n bounded'
check "a quota is made" k apply -f - <<'Y'
apiVersion: v1
kind: ResourceQuota
metadata: {name: q, namespace: bounded}
spec: {hard: {pods: 2, count/configmaps: 3}}
Y
used() { k get resourcequota q -n bounded -o "jsonpath={.status.used.$1}"; }
uses() { [ "$(used "$1")" = "$2" ]; }
check "… and counted" until_true 10 uses pods 0
k create deployment web --image=localhost/busybox:latest --replicas=3 -n bounded -- sleep 100000 >/dev/null
check "a workload gets as many pods as there is space for" until_true 30 running bounded app=web 2
expect "… and no more" 2 used pods
check "… which its events say" until_true 20 eval 'k get events -n bounded | grep -q "exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2"'
expect_fail "a third by hand is refused" 'pods "third" is forbidden: exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2' eval 'pod bounded third | k apply -f -'
k scale deployment web --replicas=1 -n bounded >/dev/null
check "what goes is given back" until_true 60 uses pods 1
k create configmap a -n bounded >/dev/null; k create configmap b -n bounded >/dev/null
expect_fail "other kinds are counted by number" 'exceeded quota: q, requested: count/configmaps=1, used: count/configmaps=3' k create configmap c -n bounded
k delete configmap a -n bounded >/dev/null
check "… and given back" until_true 10 k create configmap c -n bounded

# ---- disruption budgets ----

k create deployment steady --image=localhost/busybox:latest --replicas=2 -- sleep 100000 >/dev/null
check "a budget is made" k apply -f - <<'Y'
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: keep}
spec: {minAvailable: 2, selector: {matchLabels: {app: steady}}}
Y
k rollout status deployment/steady --timeout=120s >/dev/null
allowed() { [ "$(k get pdb keep -o 'jsonpath={.status.currentHealthy} {.status.disruptionsAllowed}')" = "$1" ]; }
check "… and counted" until_true 20 allowed "2 0"
victim=$(k get pods -l app=steady -o 'jsonpath={.items[0].metadata.name}')
printf '{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"%s","namespace":"default"},"deleteOptions":{"gracePeriodSeconds":1}}' "$victim" > "$T/evict.json"
for part in client-certificate client-key; do sed -n "s/.*$part-data: *//p" "$T/etc/admin.kubeconfig" | base64 -d > "$T/$part.pem"; done
evict() {
  in_ns curl -sk -A test -w '\n%{http_code}\n' --cert "$T/client-certificate.pem" --key "$T/client-key.pem" -H 'Content-Type: application/json' \
    -d @"$T/evict.json" "https://127.0.0.1:6443/api/v1/namespaces/default/pods/$victim/eviction"
}
evict > "$T/refused"
expect "an eviction is refused" 429 tail -n 1 "$T/refused"
expect_match "… in Kubernetes' words" "Cannot evict pod as it would violate the pod's disruption budget\." cat "$T/refused"
expect_match "… with its cause" '"reason":"DisruptionBudget","message":"The disruption budget keep needs 2 healthy pods and has 2 currently"' cat "$T/refused"
expect_match "drain is refused by it" "Cannot evict pod as it would violate the pod's disruption budget" k drain edge --pod-selector=app=steady --timeout=6s
k uncordon edge >/dev/null
check "the pod is still there" k get pod "$victim"
k patch pdb keep --type=merge -p '{"spec":{"minAvailable":1}}' >/dev/null
check "a budget that allows it" until_true 10 allowed "2 1"
expect_match "… lets it go" '^201$' evict
check "… and counts the new one" until_true 30 allowed "2 1"
check "the pod was replaced" until_true 20 is_absent pod "$victim"
