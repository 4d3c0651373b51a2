#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The API's machinery with its controllers at work: the lines of Kubernetes' conformance suite about garbage and namespaces, each
# by its name. What needs no controllers is in tests/daemon/api/conformance_test.cc.
. "$(dirname "$0")/lib.sh"
start_machine

admin() { in_ns curl -s --cacert "$T/ca.crt" --cert "$T/admin.crt" --key "$T/admin.key" --max-time 10 "$@"; }
field() { sed -n "s/.*$1: *\"\{0,1\}\([^\" ]*\).*/\1/p" "$T/etc/admin.kubeconfig" | head -n 1 | base64 -d > "$2"; }
field certificate-authority-data "$T/ca.crt"; field client-certificate-data "$T/admin.crt"; field client-key-data "$T/admin.key"
api=https://127.0.0.1:6443
apps=$api/apis/apps/v1/namespaces/default
code() { admin -o /dev/null -w '%{http_code}' "$@"; }
is() { [ "$(code "$2")" = "$1" ]; }                       # is CODE URL
delete() { admin -X DELETE -H 'Content-Type: application/json' -d "$2" "$1"; }
count() { admin "$1" | grep -c '^      "metadata": {'; }   # items of a list, as it is printed for people
none() { [ "$(count "$1")" = 0 ]; }
some() { [ "$(count "$1")" -gt 0 ]; }

deployment() {
  c apply -f - >/dev/null <<EOF
{apiVersion: apps/v1, kind: Deployment, metadata: {name: $1}, spec: {replicas: 2, selector: {matchLabels: {app: $1}},
  template: {metadata: {labels: {app: $1}}, spec: {terminationGracePeriodSeconds: 0, containers: [{name: c, image: localhost/busybox:latest, command: [sleep, "1000"]}]}}}}
EOF
}

echo "# [sig-api-machinery] Garbage collector should delete RS created by deployment when not orphaning [Conformance]"
deployment one
check "a deployment has a replica set" until_true 20 some "$apps/replicasets?labelSelector=app%3Done"
delete "$apps/deployments/one" '{"propagationPolicy":"Background"}' >/dev/null
check "which goes when its deployment has gone" until_true 20 none "$apps/replicasets?labelSelector=app%3Done"
check "and so do the pods" until_true 30 none "$api/api/v1/namespaces/default/pods?labelSelector=app%3Done"

echo "# [sig-api-machinery] Garbage collector should orphan RS created by deployment when deleteOptions.PropagationPolicy is Orphan [Conformance]"
deployment two
until_true 20 some "$apps/replicasets?labelSelector=app%3Dtwo"
delete "$apps/deployments/two" '{"propagationPolicy":"Orphan"}' >/dev/null
check "the deployment goes" until_true 20 is 404 "$apps/deployments/two"
check "its replica set stays" some "$apps/replicasets?labelSelector=app%3Dtwo"
check "without an owner" sh -c '! grep -q ownerReferences' < <(admin "$apps/replicasets?labelSelector=app%3Dtwo")
delete "$apps/replicasets?labelSelector=app%3Dtwo" '{"propagationPolicy":"Foreground"}' >/dev/null
check "and goes in the foreground, its pods first" until_true 30 none "$apps/replicasets?labelSelector=app%3Dtwo"
check "with nothing left" none "$api/api/v1/namespaces/default/pods?labelSelector=app%3Dtwo"

space() { c create namespace "$1" >/dev/null; until_true 10 is 200 "$api/api/v1/namespaces/$1/serviceaccounts/default"; }
pod() {  # pod NAMESPACE NAME [FINALIZERS]
  c apply -f - >/dev/null <<EOF
{apiVersion: v1, kind: Pod, metadata: {name: $2, namespace: $1, finalizers: [${3:-}]}, spec: {terminationGracePeriodSeconds: 0,
  containers: [{name: c, image: localhost/busybox:latest, command: [sleep, "1000"]}]}}
EOF
}

echo "# [sig-api-machinery] Namespaces [Serial] should ensure that all pods are removed when a namespace is deleted [Conformance]"
space with-pods; pod with-pods p
running() { admin "$1" | grep -q '"phase": "Running"'; }
check "a pod runs" until_true 30 running "$api/api/v1/namespaces/with-pods/pods/p"
delete "$api/api/v1/namespaces/with-pods" '{}' >/dev/null
check "the namespace goes" until_true 40 is 404 "$api/api/v1/namespaces/with-pods"
space with-pods
check "made again, it is empty" none "$api/api/v1/namespaces/with-pods/pods"

echo "# [sig-api-machinery] Namespaces [Serial] should ensure that all services are removed when a namespace is deleted [Conformance]"
space with-services
c apply -f - >/dev/null <<<'{apiVersion: v1, kind: Service, metadata: {name: s, namespace: with-services}, spec: {selector: {a: b}, ports: [{port: 80}]}}'
delete "$api/api/v1/namespaces/with-services" '{}' >/dev/null
check "the namespace goes" until_true 40 is 404 "$api/api/v1/namespaces/with-services"
space with-services
check "made again, it has no services" none "$api/api/v1/namespaces/with-services/services"

echo "# [sig-api-machinery] OrderedNamespaceDeletion namespace deletion should delete pod first [Conformance]"
space ordered; pod ordered p example.com/hold
c apply -f - >/dev/null <<<'{apiVersion: v1, kind: ConfigMap, metadata: {name: m, namespace: ordered, finalizers: [example.com/hold]}}'
delete "$api/api/v1/namespaces/ordered" '{}' >/dev/null
deleting() { admin "$1" | grep -q deletionTimestamp; }
check "the pod is asked to go" until_true 20 deleting "$api/api/v1/namespaces/ordered/pods/p"
sleep 3
check "while it is there, the rest is left alone" sh -c '! grep -q deletionTimestamp' < <(admin "$api/api/v1/namespaces/ordered/configmaps/m")
expect "nothing new is made in what is ending" 403 code -X POST -H 'Content-Type: application/json' -d '{"metadata":{"name":"late"}}' "$api/api/v1/namespaces/ordered/configmaps"
reports() { admin "$api/api/v1/namespaces/ordered" | grep -q -- "$1"; }
check "the namespace says what remains" until_true 10 reports 'Some resources are remaining: pods. has 1 resource instances'
check "and what holds it" reports 'Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances'
release() { admin -X PATCH -H 'Content-Type: application/merge-patch+json' -d '{"metadata":{"finalizers":null}}' "$1" >/dev/null; }
release "$api/api/v1/namespaces/ordered/pods/p"
check "then the rest is asked to go" until_true 20 deleting "$api/api/v1/namespaces/ordered/configmaps/m"
release "$api/api/v1/namespaces/ordered/configmaps/m"
check "and the namespace goes" until_true 30 is 404 "$api/api/v1/namespaces/ordered"
