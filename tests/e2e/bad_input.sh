#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Malformed input gets a clear error, and the daemon stays up: YAML, JSON, manifests, archives, HTTP.
# for: daemon/api store/object/yaml store/schema/decode store/schema/validate runtime/image/fetch
. "$(dirname "$0")/lib.sh"
start_machine
pid=$daemon_pid

expect_fail "YAML: the line is named" 'line 3' eval "printf 'a: 1\nb:\n\t- x\n' | c apply -f -"
expect_fail "YAML: a bomb is refused" 'alias|too' eval "{ echo 'a: &a [x,x,x,x,x,x,x,x,x]'; for i in b c d e f g h i j; do p=\$(echo \$i | tr b-j a-i); echo \"\$i: &\$i [*\$p,*\$p,*\$p,*\$p,*\$p,*\$p,*\$p,*\$p,*\$p]\"; done; } | c apply -f -"
expect_fail "a kind nobody knows" 'Gadget' eval "printf 'apiVersion: v1\nkind: Gadget\nmetadata: {name: x}\n' | c apply -f -"
expect_fail "no kind at all" 'kind' eval "echo 'a: b' | c apply -f -"
expect_fail "a wrong type names the field" 'spec.containers\[0\].ports\[0\].containerPort|containerPort' eval "printf 'apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec: {containers: [{name: a, image: b, ports: [{containerPort: http}]}]}\n' | c apply -f -"
expect_fail "a wrong name says what a name may be" 'RFC 1123' eval "printf 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: Not_Good}\n' | c apply -f -"
expect_fail "a missing file" 'no such file|does not exist' c apply -f "$T/none.yaml"
expect_fail "a wrong reference" 'reference' c image pull 'UPPER CASE//:x'
echo "not a tar at all" > "$T/garbage.tar"
expect_fail "an archive that is none" 'archive|image' c image import "$T/garbage.tar"
c image pack "$T/rootfs" localhost/whole:latest --output "$T/whole.tar" >/dev/null 2>&1
if [ -s "$T/whole.tar" ]; then
  head -c 200000 "$T/whole.tar" > "$T/cut.tar"
  expect_fail "an archive cut short" '.' c image import "$T/cut.tar"
fi

admin() { in_ns curl -s --cacert "$T/ca.crt" --cert "$T/admin.crt" --key "$T/admin.key" --max-time 60 "$@"; }
field() { sed -n "s/.*$1: *\"\{0,1\}\([^\" ]*\).*/\1/p" "$T/etc/admin.kubeconfig" | head -n 1 | base64 -d > "$2"; }
field certificate-authority-data "$T/ca.crt"; field client-certificate-data "$T/admin.crt"; field client-key-data "$T/admin.key"
api=https://127.0.0.1:6443
expect "the admin certificate works" "200" admin -o /dev/null -w '%{http_code}' $api/api/v1/namespaces
expect "nobody sees nothing" "403" in_ns curl -sk -o /dev/null -w '%{http_code}' $api/api/v1/secrets
expect "nobody may ask for health" "200" in_ns curl -sk -o /dev/null -w '%{http_code}' $api/livez
expect "broken JSON is 400" "400" admin -o /dev/null -w '%{http_code}' -H 'Content-Type: application/json' -d '{"kind":' $api/api/v1/namespaces/default/configmaps
expect "broken protobuf is 400" "400" admin -o /dev/null -w '%{http_code}' -H 'Content-Type: application/vnd.kubernetes.protobuf' --data-binary $'k8s\001junk' $api/api/v1/namespaces/default/configmaps
expect "deep nesting is 400" "400" eval "head -c 100000 /dev/zero | tr '\0' '[' | admin -o /dev/null -w '%{http_code}' -H 'Content-Type: application/json' --data-binary @- $api/api/v1/namespaces/default/configmaps"
awk 'BEGIN {
  printf "[{\"op\":\"add\",\"path\":\"/x\",\"value\":[[]]}"; at = "/x/0"; depth = 2
  for (i = 0; i < 17; i++) {
    printf ",{\"op\":\"copy\",\"from\":\"/x\",\"path\":\"%s/0\"}", at
    steps = "/0"
    for (n = depth; n > 1; n /= 2) steps = steps steps
    at = at steps
    depth *= 2
  }
  print "]"
}' > "$T/doubling.json"
expect "a patch that doubles its depth seventeen times is 400" "400" admin -o /dev/null -w '%{http_code}' -X PATCH -H 'Content-Type: application/json-patch+json' --data-binary "@$T/doubling.json" $api/api/v1/namespaces/default
expect "YAML: the last of two keys counts" "2" eval "printf 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: twice}\ndata: {a: \"1\", a: \"2\"}\n' | admin -H 'Content-Type: application/yaml' --data-binary @- $api/api/v1/namespaces/default/configmaps | sed -n 's/.*\"a\": *\"\([0-9]\)\".*/\1/p'"
expect "and is an error where fields are validated strictly" "400" eval "printf 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: thrice}\ndata: {a: \"1\", a: \"2\"}\n' | admin -o /dev/null -w '%{http_code}' -H 'Content-Type: application/yaml' --data-binary @- '$api/api/v1/namespaces/default/configmaps?fieldValidation=Strict'"
expect "an unknown body type is 415" "415" admin -o /dev/null -w '%{http_code}' -H 'Content-Type: text/funny' -d x $api/api/v1/namespaces/default/configmaps
expect "an unknown answer type is 406" "406" admin -o /dev/null -w '%{http_code}' -H 'Accept: text/funny' $api/api/v1/namespaces
expect "an unknown path is 404" "404" admin -o /dev/null -w '%{http_code}' $api/nothing/here
expect "a body beyond 3 MiB is 413" "413" eval "head -c 4000000 /dev/zero | tr '\0' ' ' | admin -o /dev/null -w '%{http_code}' -H 'Content-Type: application/json' --data-binary @- $api/api/v1/namespaces/default/configmaps"
expect "a bad selector is 400" "400" admin -o /dev/null -w '%{http_code}' "$api/api/v1/pods?labelSelector=a+in+(("
expect "a bad field selector is 400" "400" admin -o /dev/null -w '%{http_code}' "$api/api/v1/pods?fieldSelector=spec.nope%3Dx"
long=$(head -c 60000 /dev/zero | tr '\0' 1)
in_ns curl -sk -o /dev/null --max-time 5 -H "Range: bytes=$long" $api/livez
in_ns curl -sk -o /dev/null --max-time 5 -H "Content-Type: multipart/form-data; boundary=$long" -d x $api/livez
for junk in '' 'GET' $'GET / HTTP/9.9\r\n\r\n' $'\x16\x03\x01\x00\x00' "$(head -c 3000 /dev/urandom | tr -d '\0')"; do
  printf '%s' "$junk" | in_ns busybox timeout 2 busybox nc 127.0.0.1 6443 >/dev/null 2>&1
  printf '%s' "$junk" | in_ns timeout 2 openssl s_client -quiet -connect 127.0.0.1:6443 >/dev/null 2>&1
done
check "the daemon is the same as before" kill -0 "$pid"
check "and answers" c get nodes
