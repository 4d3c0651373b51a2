#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Resource quotas over the life of the counted objects: the lines of Kubernetes' conformance suite about them, each under its
# name, with the quota controller, the garbage collector and admission running.
# for: daemon/quota daemon/admission/resource_quota daemon/controller/namespace/quota_usage
. "$(dirname "$0")/lib.sh"
start_machine

for part in client-certificate client-key certificate-authority; do
  sed -n "s/.*$part-data: *//p" "$T/etc/admin.kubeconfig" | tr -d '"' | base64 -d > "$T/$part.pem"
done
api=https://127.0.0.1:6443
admin() {
  in_ns curl -s --cacert "$T/certificate-authority.pem" --cert "$T/client-certificate.pem" --key "$T/client-key.pem" --max-time 60 "$@"
}
code() { admin -o /dev/null -w '%{http_code}' "$@"; }
send() { admin -X "$1" -H "Content-Type: ${4:-application/json}" -d "$3" "$2"; }             # send METHOD URL BODY [TYPE]
sends() { code -X "$1" -H "Content-Type: ${4:-application/json}" -d "$3" "$2"; }
has() { grep -Eq -- "$1" <<<"$2"; }
lacks() { ! has "$1" "$2"; }

space() {
  c create namespace "$1" >/dev/null
  of=$api/api/v1/namespaces/$1 apps=$api/apis/apps/v1/namespaces/$1
  until_true 10 eval '[ "$(code $of/serviceaccounts/default)" = 200 ] && [ "$(code $of/configmaps/kube-root-ca.crt)" = 200 ]'
}
number() { admin "$of/$1" | grep -c '"creationTimestamp"'; }
# The limits of the suite's own quota, and more where a line needs it.
quota() {  # quota [MORE]
  sends POST "$of/resourcequotas" '{"metadata":{"name":"test-quota"},"spec":{"hard":{"pods":"5","services":"10","services.nodeports":"1",
    "services.loadbalancers":"1","replicationcontrollers":"10","resourcequotas":"1","cpu":"1","memory":"500Mi","configmaps":"10",
    "secrets":"10","persistentvolumeclaims":"10","requests.storage":"10Gi","requests.ephemeral-storage":"50Gi","ephemeral-storage":"50Gi",
    "count/replicasets.apps":"5","requests.example.com/dongle":"3"'"${1:+,$1}"'}}}'
}
# uses QUOTA NAME=AMOUNT...: the status has this usage, and repeats the limits.
uses() {
  local status; status=$(c get resourcequota "$1" -n "${of##*/}" -o 'jsonpath={.spec.hard}|{.status.hard}|{.status.used}')
  shift
  [ "$(cut -d'|' -f1 <<<"$status")" = "$(cut -d'|' -f2 <<<"$status")" ] || return 1
  for want in "$@"; do has "\"${want%=*}\":\"${want#*=}\"" "${status##*|}" || return 1; done
}
counted() { check "$1" until_true 20 uses "${@:2}"; }
pod() {  # pod NAME RESOURCES [MORE-OF-SPEC]; prints the code
  sends POST "$of/pods" '{"metadata":{"name":"'"$1"'"},"spec":{'"${3:+$3,}"'"containers":[{"name":"pause","image":"localhost/busybox:latest","command":["sleep","1000"],"resources":'"${2:-{\}}"'}]}}'
}
workload() { echo '{"metadata":{"name":"'"$1"'"},"spec":{"replicas":0,"selector":'"$2"',"template":{"metadata":{"labels":{"name":"w"}},"spec":{"containers":[{"name":"c","image":"x"}]}}}}'; }
gone() { [ "$(code "$1")" = 404 ]; }
drop() { check "$1" until_true 20 eval "sends DELETE '$2' '{\"gracePeriodSeconds\":0}' >/dev/null; gone '$2'"; }

echo "# [sig-api-machinery] ResourceQuota should create a ResourceQuota and ensure its status is promptly calculated. [Conformance]"
space prompt
expect "a quota is made" 201 quota
counted "and counts itself and nothing else" test-quota resourcequotas=1 pods=0 services=0 cpu=0 memory=0 count/replicasets.apps=0
expect "a second is one too many" 403 sends POST "$of/resourcequotas" '{"metadata":{"name":"another"},"spec":{"hard":{"pods":"1"}}}'

echo "# [sig-api-machinery] ResourceQuota should create a ResourceQuota and capture the life of a service. [Conformance]"
space of-service; quota >/dev/null
counted "the quota is counted" test-quota resourcequotas=1 services=0
service() { sends POST "$of/services" '{"metadata":{"name":"'"$1"'"},"spec":{"type":"'"$2"'","ports":[{"port":80,"targetPort":80}]'"${3:+,$3}"'}}'; }
expect "a service is made" 201 service test-service ClusterIP
expect "and one with a node port" 201 service test-service-np NodePort
expect "a load balancer's would be one too many" 403 service test-service-lb LoadBalancer '"allocateLoadBalancerNodePorts":true'
counted "two services and one port are counted" test-quota resourcequotas=1 services=2 services.nodeports=1 services.loadbalancers=0
expect "without a port it may be made" 201 service test-service-lb LoadBalancer '"allocateLoadBalancerNodePorts":false'
counted "and is counted" test-quota services=3 services.nodeports=1 services.loadbalancers=1
for one in test-service test-service-np test-service-lb; do code -X DELETE "$of/services/$one" >/dev/null; done
counted "what goes is given back" test-quota services=0 services.nodeports=0 services.loadbalancers=0

echo "# [sig-api-machinery] ResourceQuota should create a ResourceQuota and capture the life of a secret. [Conformance]"
space of-secret; before=$(number secrets)
quota "\"secrets\":\"$((before + 1))\"" >/dev/null
counted "what is there is counted" test-quota resourcequotas=1 secrets="$before"
expect "a secret is made" 201 sends POST "$of/secrets" '{"metadata":{"name":"test-secret"},"data":{"data-1":"dmFsdWUtMQo="}}'
counted "and counted" test-quota secrets=$((before + 1))
expect "another is one too many" 403 sends POST "$of/secrets" '{"metadata":{"name":"more"}}'
code -X DELETE "$of/secrets/test-secret" >/dev/null
counted "what goes is given back" test-quota secrets="$before"

echo "# [sig-api-machinery] ResourceQuota should create a ResourceQuota and capture the life of a configMap. [Conformance]"
space of-configmap; before=$(number configmaps)
quota "\"configmaps\":\"$((before + 1))\"" >/dev/null
counted "what is there is counted" test-quota resourcequotas=1 configmaps="$before"
expect "a config map is made" 201 sends POST "$of/configmaps" '{"metadata":{"name":"test-configmap"},"data":{"a":"b"}}'
counted "and counted" test-quota resourcequotas=1 configmaps=$((before + 1))
expect "another is one too many" 403 sends POST "$of/configmaps" '{"metadata":{"name":"more"}}'
code -X DELETE "$of/configmaps/test-configmap" >/dev/null
counted "what goes is given back" test-quota configmaps="$before"

echo "# [sig-api-machinery] ResourceQuota should create a ResourceQuota and capture the life of a replication controller. [Conformance]"
space of-rc; quota >/dev/null
counted "there is none" test-quota resourcequotas=1 replicationcontrollers=0
expect "one is made" 201 sends POST "$of/replicationcontrollers" "$(workload test-rc '{"name":"w"}')"
counted "and counted" test-quota replicationcontrollers=1
sends DELETE "$of/replicationcontrollers/test-rc" '{"propagationPolicy":"Background"}' >/dev/null
counted "what goes is given back" test-quota replicationcontrollers=0

echo "# [sig-api-machinery] ResourceQuota should create a ResourceQuota and capture the life of a replica set. [Conformance]"
space of-rs; quota >/dev/null
counted "there is none" test-quota resourcequotas=1 count/replicasets.apps=0
expect "one is made" 201 sends POST "$apps/replicasets" "$(workload test-rs '{"matchLabels":{"name":"w"}}')"
counted "and counted" test-quota count/replicasets.apps=1
code -X DELETE "$apps/replicasets/test-rs" >/dev/null
counted "what goes is given back" test-quota count/replicasets.apps=0

echo "# [sig-api-machinery] ResourceQuota should create a ResourceQuota and capture the life of a pod. [Conformance]"
space of-pod; quota >/dev/null
counted "the quota is counted" test-quota resourcequotas=1 pods=0
dongles='"limits":{"example.com/dongle":"2"}'
expect "a pod that fits is made" 201 pod test-pod '{"requests":{"cpu":"500m","memory":"252Mi","ephemeral-storage":"30Gi","example.com/dongle":"2"},'"$dongles"'}'
taken=(resourcequotas=1 pods=1 cpu=500m memory=252Mi ephemeral-storage=30Gi requests.example.com/dongle=2)
counted "and all it asks for is counted" test-quota "${taken[@]}"
expect "one that asks for more than is left is refused" 403 pod fail-pod '{"requests":{"cpu":"600m","memory":"100Mi","ephemeral-storage":"1Gi"}}'
more='{"requests":{"cpu":"500m","memory":"100Mi","ephemeral-storage":"1Gi","example.com/dongle":"2"},'"$dongles"'}'
expect "also of a resource that Kubernetes does not know" 403 pod fail-pod-for-extended-resource "$more"
expect_match "which is what the refusal names" 'exceeded quota: test-quota, requested: requests.example.com/dongle=2, used: requests.example.com/dongle=2, limited: requests.example.com/dongle=3' \
  send POST "$of/pods" '{"metadata":{"name":"f"},"spec":{"containers":[{"name":"p","image":"x","resources":'"$more"'}]}}'
until_true 10 eval 'has "\"reason\": \"Unschedulable\"" "$(admin "$of/pods/test-pod")"'  # the scheduler has written its condition
changed=$(admin "$of/pods/test-pod" | sed 's/"cpu": "500m"/"cpu": "100m"/; s/"memory": "252Mi"/"memory": "100Mi"/; s/"ephemeral-storage": "30Gi"/"ephemeral-storage": "10Gi"/')
check "the change that is tried is one" has '"100m"' "$changed"
expect "a pod's requests are not changed" 422 sends PUT "$of/pods/test-pod" "$changed"
check "and nothing is counted otherwise" uses test-quota "${taken[@]}"
drop "the pod goes" "$of/pods/test-pod"
counted "and gives back what it had" test-quota resourcequotas=1 pods=0 cpu=0 memory=0 ephemeral-storage=0 requests.example.com/dongle=0

scoped() {  # scoped NAME SCOPE [NAMES]
  sends POST "$of/resourcequotas" '{"metadata":{"name":"'"$1"'"},"spec":{"scopes":["'"$2"'"],"hard":{"pods":"5"'"$3"'}}}'
}
amounts=',"requests.cpu":"1","requests.memory":"500Mi","limits.cpu":"2","limits.memory":"1Gi"'
sized='{"requests":{"cpu":"500m","memory":"200Mi"},"limits":{"cpu":"1","memory":"400Mi"}}'
held=(pods=1 requests.cpu=500m requests.memory=200Mi limits.cpu=1 limits.memory=400Mi)
free=(pods=0 requests.cpu=0 requests.memory=0 limits.cpu=0 limits.memory=0)

echo "# [sig-api-machinery] ResourceQuota should verify ResourceQuota with terminating scopes. [Conformance]"
space terminating
expect "a quota of those with a deadline" 201 scoped quota-terminating Terminating "$amounts"
expect "and one of those without" 201 scoped quota-not-terminating NotTerminating "$amounts"
counted "both are counted" quota-terminating pods=0; counted "each by itself" quota-not-terminating pods=0
expect "a pod without a deadline" 201 pod test-pod "$sized"
counted "is counted by the one" quota-not-terminating "${held[@]}"
check "and not by the other" uses quota-terminating "${free[@]}"
drop "it goes" "$of/pods/test-pod"
counted "and gives back what it had" quota-not-terminating "${free[@]}"
expect "a pod with a deadline" 201 pod terminating-pod "$sized" '"activeDeadlineSeconds":3600'
counted "is counted by the other" quota-terminating "${held[@]}"
check "and not by the one" uses quota-not-terminating "${free[@]}"
drop "it goes" "$of/pods/terminating-pod"
counted "and gives back what it had" quota-terminating "${free[@]}"

echo "# [sig-api-machinery] ResourceQuota should verify ResourceQuota with best effort scope. [Conformance]"
space besteffort
expect "a quota of those who ask for nothing" 201 scoped quota-besteffort BestEffort ""
expect "and one of those who do" 201 scoped quota-not-besteffort NotBestEffort ""
counted "both are counted" quota-besteffort pods=0; counted "each by itself" quota-not-besteffort pods=0
expect "a pod that asks for nothing" 201 pod pfpod ""
counted "is counted by the one" quota-besteffort pods=1
check "and not by the other" uses quota-not-besteffort pods=0
drop "it goes" "$of/pods/pfpod"
counted "and gives back its place" quota-besteffort pods=0
expect "a pod that asks for something" 201 pod burstable-pod "$sized"
counted "is counted by the other" quota-not-besteffort pods=1
check "and not by the one" uses quota-besteffort pods=0
drop "it goes" "$of/pods/burstable-pod"
counted "and gives back its place" quota-not-besteffort pods=0

simple() { sends POST "$of/resourcequotas" '{"metadata":{"name":"'"$1"'","labels":{"e2e-rq-label":"'"$1"'"}},"spec":{"hard":{"cpu":"'"$2"'","memory":"500Mi"}}}'; }
limits() { c get resourcequota "$1" -n "${of##*/}" -o "jsonpath={.$2.hard.cpu} {.$2.hard.memory}"; }
limit_is() { [ "$(limits "$1" "$2")" = "$3" ]; }
revision() { sed -n 's/.*"resourceVersion": "\([0-9]*\)".*/\1/p' <<<"$1" | head -n 1; }
merge=application/strategic-merge-patch+json

echo "# [sig-api-machinery] ResourceQuota should be able to update and delete ResourceQuota. [Conformance]"
space updated
expect "a quota is made" 201 simple test-quota 1
expect "and has its limits" "1 500Mi" limits test-quota spec
wanted='{"metadata":{"name":"test-quota"},"spec":{"hard":{"cpu":"2","memory":"1Gi"}}}'
answer=$(send PUT "$of/resourcequotas/test-quota" "$wanted")
check "an update answers with the new ones" has '"cpu": "2"' "$answer"
expect "which stay" "2 1Gi" limits test-quota spec
expect "it is deleted" 200 code -X DELETE "$of/resourcequotas/test-quota"
check "and there no more" gone "$of/resourcequotas/test-quota"

echo "# [sig-api-machinery] ResourceQuota should manage the lifecycle of a ResourceQuota [Conformance]"
space lifecycle
simple e2e-quota 1 >/dev/null
until_true 10 limit_is e2e-quota status "1 500Mi"
expect "it has its limits" "1 500Mi" limits e2e-quota spec
list=$(admin "$api/api/v1/resourcequotas?labelSelector=e2e-rq-label%3De2e-quota")
expect "a selector over all namespaces finds the one" 1 grep -c '"creationTimestamp"' <<<"$list"
before=$(revision "$(admin "$of/resourcequotas/e2e-quota")")
answer=$(send PATCH "$of/resourcequotas/e2e-quota" '{"metadata":{"labels":{"e2e-quota":"patched"}},"spec":{"hard":{"memory":"750Mi"}}}' $merge)
check "a patch sets the label" has '"e2e-quota": "patched"' "$answer"
check "and the limit" has '"memory": "750Mi"' "$answer"
check "and leaves the other" has '"cpu": "1"' "$answer"
check "with a higher version" [ "$(revision "$answer")" -gt "$before" ]
expect "a collection is deleted by its label" 200 code -X DELETE "$of/resourcequotas?labelSelector=e2e-rq-label%3De2e-quota"
check "and there no more" gone "$of/resourcequotas/e2e-quota"

echo "# [sig-api-machinery] ResourceQuota should apply changes to a resourcequota status [Conformance]"
space status
since=$(revision "$(admin "$of/resourcequotas")")
simple e2e-rq 500m >/dev/null
expect "it has its limits" "500m 500Mi" limits e2e-rq spec
put_status() {
  local now; now=$(c get resourcequota e2e-rq -n status -o json | tr -d '\n' | sed 's/"status": *{.*/"status":{"hard":{"cpu":"500m","memory":"500Mi"}}}/')
  [ "$(sends PUT "$of/resourcequotas/e2e-rq/status" "$now")" = 200 ]
}
check "the status is updated" until_true 10 put_status
events() { in_ns timeout 60 curl -sN --cacert "$T/certificate-authority.pem" --cert "$T/client-certificate.pem" --key "$T/client-key.pem" "$of/resourcequotas?watch=1&timeoutSeconds=2&labelSelector=e2e-rq-label%3De2e-rq&resourceVersion=$1"; }
watched() { has "\"status\":[{]\"hard\":[{]\"cpu\":\"$2\",\"memory\":\"$3\"[}]" "$(events "$1")"; }
check "as a watch shows" watched "$since" 500m 500Mi
since=$(revision "$(admin "$of/resourcequotas")")
answer=$(send PATCH "$of/resourcequotas/e2e-rq" '{"spec":{"hard":{"cpu":"1","memory":"1Gi"}}}' $merge)
check "the spec is patched" has '"cpu": "1"' "$answer"
expect "the status is patched" 200 sends PATCH "$of/resourcequotas/e2e-rq/status" '{"status":{"hard":{"cpu":"1","memory":"1Gi"}}}' $merge
check "as a watch shows" watched "$since" 1 1Gi
check "/status answers with the whole" has '"kind": "ResourceQuota"' "$(admin "$of/resourcequotas/e2e-rq/status")"
expect "with what was patched" "1 1Gi" limits e2e-rq status
since=$(revision "$(admin "$of/resourcequotas")")
answer=$(send PATCH "$of/resourcequotas/e2e-rq/status" '{"status":{"hard":{"cpu":"2","memory":"2Gi"}}}' $merge)
check "another patch of the status answers so" has '"cpu": "2"' "$answer"
check "as a watch shows" watched "$since" 2 2Gi
expect "the spec stays" "1 1Gi" limits e2e-rq spec
check "and the controller says again what holds" until_true 10 limit_is e2e-rq status "1 1Gi"
