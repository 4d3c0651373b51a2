#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Volumes without claims, with each line of Kubernetes' conformance tests of [sig-storage]: emptyDir, configMap, secret,
# downwardAPI and projected, their modes, users, items, updates and subPaths; and the life cycle of each storage kind.
# for: daemon/node/volume/volumes runtime/launch daemon/controller/storage/volume_binder store/kinds/pod store/kinds/storage
. "$(dirname "$0")/lib.sh"
start_machine

api=https://127.0.0.1:6443
for part in certificate-authority client-certificate client-key; do
  sed -n "s/^ *$part-data: *//p" "$T/etc/admin.kubeconfig" | base64 -d >"$T/$part.pem"
done
admin() { in_ns curl -s --cacert "$T/certificate-authority.pem" --cert "$T/client-certificate.pem" --key "$T/client-key.pem" --max-time 20 "$@"; }
apply() { k apply -f - >/dev/null; }
# pod NAME VOLUMES MOUNTS SCRIPT [MORE OF THE POD'S SPEC] [MORE OF THE CONTAINER]: runs a script to its end
pod() {
  apply <<Y
{apiVersion: v1, kind: Pod, metadata: {name: $1}, spec: {restartPolicy: Never, terminationGracePeriodSeconds: 1, ${5:+$5, }
  containers: [{name: main, image: localhost/busybox:latest, ${6:+$6, }command: [sh, -c, '$4'], volumeMounts: [$3]}], volumes: [$2]}}
Y
}
phase_is() { [ "$(k get pod "$1" -o 'jsonpath={.status.phase}')" = "$2" ]; }
said() {  # said POD KEY: waits for the pod's end; prints what it printed after "KEY="
  if [ ! -e "$T/said-$1" ]; then
    until_true 30 phase_is "$1" Succeeded || k describe pod "$1"
    k logs "$1" >"$T/said-$1"
  fi
  sed -n "s/^$2=//p" "$T/said-$1"
}
shows() { k exec shows -- cat "$1"; }  # a file of the pod that keeps running
becomes() {  # becomes NAME WANT FILE: waits for the content of a file of the running pod
  soon expect "$1" "$2" shows "$3"
}
describe_file='describe() { echo "$1=$(stat -Lc %A:%u:%g $2) $(cat $2)"; };'

# ---- objects that all of them need, before the first pod starts ----

apply <<'Y'
apiVersion: v1
kind: ConfigMap
metadata: {name: conf}
data: {data-1: value-1, data-2: value-2, data-3: value-3}
binaryData: {dump.bin: 3q2+7wABAv8=}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: wanes}
data: {data-1: value-1}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: turns}
data: {data-1: value-1}
---
apiVersion: v1
kind: Secret
metadata: {name: sec}
data: {data-1: dmFsdWUtMQ==, data-2: dmFsdWUtMg==}
---
apiVersion: v1
kind: Secret
metadata: {name: wanes}
data: {data-1: dmFsdWUtMQ==}
---
apiVersion: v1
kind: Secret
metadata: {name: turns}
data: {data-1: dmFsdWUtMQ==}
---
apiVersion: v1
kind: Namespace
metadata: {name: other}
---
apiVersion: v1
kind: Secret
metadata: {name: sec, namespace: other}
data: {data-1: c29tZWJvZHkgZWxzZSdz}
Y

# ---- emptyDir ----

write_all='umask 0; for mode in 644 666 777; do echo content of $mode >/v/f$mode; chmod $mode /v/f$mode; echo "$mode=$(stat -c %A /v/f$mode) $(cat /v/f$mode)"; done;
  echo "volume=$(stat -c %A:%u:%g /v)"; echo "type=$(sed -n "s|^[^ ]* /v \([^ ]*\) .*|\1|p" /proc/mounts)"'
for medium in default memory; do
  source=$([ $medium = memory ] && echo 'medium: Memory')
  pod "root-$medium" "{name: v, emptyDir: {$source}}" '{name: v, mountPath: /v}' "$write_all"
  pod "user-$medium" "{name: v, emptyDir: {$source}}" '{name: v, mountPath: /v}' "$write_all" 'securityContext: {runAsUser: 1001}'
  pod "group-$medium" "{name: v, emptyDir: {$source}}" '{name: v, mountPath: /v}' "$write_all" 'securityContext: {runAsUser: 1001, fsGroup: 123}'
done
for user in root user group; do
  for medium in default memory; do
    for mode in 644:-rw-r--r-- 666:-rw-rw-rw- 777:-rwxrwxrwx; do
      expect "emptyDir: ($user, 0${mode%%:*}, $medium)" "${mode#*:} content of ${mode%%:*}" said $user-$medium "${mode%%:*}"
    done
  done
done
expect "emptyDir: everybody may write into one" "drwxrwxrwx:0:0" said root-default volume
expect "… and in memory nobody deletes another's" "drwxrwxrwt:0:0" said root-memory volume
expect "… a group of the pod's own has it" "drwxrwsrwx:0:123" said group-default volume
expect "… in memory too" "drwxrwsrwt:0:123" said group-memory volume
expect "… a memory medium is a tmpfs" tmpfs said root-memory type
check "… the default medium is not" eval '[ "$(said root-default type)" != tmpfs ]'
apply <<'Y'
{apiVersion: v1, kind: Pod, metadata: {name: shared}, spec: {restartPolicy: Never, containers: [
  {name: main, image: localhost/busybox:latest, command: [sh, -c, 'until [ -s /v/said ]; do sleep 0.1; done; echo "heard=$(cat /v/said)"'], volumeMounts: [{name: v, mountPath: /v}]},
  {name: sub, image: localhost/busybox:latest, command: [sh, -c, 'echo hello from the other >/there/.said; mv /there/.said /there/said'], volumeMounts: [{name: v, mountPath: /there}]}],
  volumes: [{name: v, emptyDir: {}}]}}
Y
expect "emptyDir: containers of a pod share one" "hello from the other" eval 'until_true 30 phase_is shared Succeeded; k logs shared -c main | sed -n "s/^heard=//p"'

# ---- configMap and secret, alone and projected ----

pod maps '{name: all, configMap: {name: conf}}, {name: tight, configMap: {name: conf, defaultMode: 0400}},
  {name: items, configMap: {name: conf, items: [{key: data-2, path: path/to/data-2}]}},
  {name: moded, configMap: {name: conf, items: [{key: data-2, path: path/to/data-2, mode: 0400}]}},
  {name: projected, projected: {sources: [{configMap: {name: conf}}]}}, {name: projected-tight, projected: {defaultMode: 0400, sources: [{configMap: {name: conf}}]}},
  {name: projected-items, projected: {sources: [{configMap: {name: conf, items: [{key: data-2, path: path/to/data-2}]}}]}},
  {name: projected-moded, projected: {sources: [{configMap: {name: conf, items: [{key: data-2, path: path/to/data-2, mode: 0400}]}}]}}' \
  '{name: all, mountPath: /all}, {name: all, mountPath: /again}, {name: tight, mountPath: /tight}, {name: items, mountPath: /items}, {name: moded, mountPath: /moded},
  {name: projected, mountPath: /p/all}, {name: projected, mountPath: /p/again}, {name: projected-tight, mountPath: /p/tight}, {name: projected-items, mountPath: /p/items}, {name: projected-moded, mountPath: /p/moded}' \
  "$describe_file"' for p in "" /p; do describe all$p $p/all/data-1; describe again$p $p/again/data-1; describe tight$p $p/tight/data-1; describe items$p $p/items/path/to/data-2; describe moded$p $p/moded/path/to/data-2; done;
    echo "binary=$(od -An -tx1 /all/dump.bin)"'
pod maps-user '{name: all, configMap: {name: conf}}, {name: items, configMap: {name: conf, items: [{key: data-2, path: path/to/data-2}]}},
  {name: projected, projected: {sources: [{configMap: {name: conf}}]}}, {name: projected-items, projected: {sources: [{configMap: {name: conf, items: [{key: data-2, path: path/to/data-2}]}}]}}' \
  '{name: all, mountPath: /all}, {name: items, mountPath: /items}, {name: projected, mountPath: /p/all}, {name: projected-items, mountPath: /p/items}' \
  "$describe_file"' for p in "" /p; do describe all$p $p/all/data-1; describe items$p $p/items/path/to/data-2; done' 'securityContext: {runAsUser: 1000}'
for p in "" /p; do
  kind=$([ -z $p ] && echo configMap || echo "projected configMap")
  expect "$kind: a key is a file" "-rw-r--r--:0:0 value-1" said maps "all${p/\//\\/}"
  expect "$kind: in two places of one pod" "-rw-r--r--:0:0 value-1" said maps "again${p/\//\\/}"
  expect "$kind: with a default mode" "-r--------:0:0 value-1" said maps "tight${p/\//\\/}"
  expect "$kind: with items" "-rw-r--r--:0:0 value-2" said maps "items${p/\//\\/}"
  expect "$kind: with items and a mode of their own" "-r--------:0:0 value-2" said maps "moded${p/\//\\/}"
  expect "$kind: for a user" "-rw-r--r--:0:0 value-1" said maps-user "all${p/\//\\/}"
  expect "$kind: with items for a user" "-rw-r--r--:0:0 value-2" said maps-user "items${p/\//\\/}"
done
expect "configMap: bytes that are no text" " de ad be ef 00 01 02 ff" said maps binary

pod secrets '{name: all, secret: {secretName: sec}}, {name: tight, secret: {secretName: sec, defaultMode: 0400}},
  {name: items, secret: {secretName: sec, items: [{key: data-1, path: new-path-data-1}]}},
  {name: moded, secret: {secretName: sec, items: [{key: data-1, path: new-path-data-1, mode: 0400}]}},
  {name: projected, projected: {sources: [{secret: {name: sec}}]}}, {name: projected-tight, projected: {defaultMode: 0400, sources: [{secret: {name: sec}}]}},
  {name: projected-items, projected: {sources: [{secret: {name: sec, items: [{key: data-1, path: new-path-data-1}]}}]}},
  {name: projected-moded, projected: {sources: [{secret: {name: sec, items: [{key: data-1, path: new-path-data-1, mode: 0400}]}}]}}' \
  '{name: all, mountPath: /all}, {name: all, mountPath: /again, readOnly: true}, {name: tight, mountPath: /tight}, {name: items, mountPath: /items}, {name: moded, mountPath: /moded},
  {name: projected, mountPath: /p/all}, {name: projected, mountPath: /p/again, readOnly: true}, {name: projected-tight, mountPath: /p/tight}, {name: projected-items, mountPath: /p/items}, {name: projected-moded, mountPath: /p/moded}' \
  "$describe_file"' for p in "" /p; do describe all$p $p/all/data-1; describe again$p $p/again/data-1; describe tight$p $p/tight/data-1; describe items$p $p/items/new-path-data-1; describe moded$p $p/moded/new-path-data-1; done;
    echo "type=$(sed -n "s|^[^ ]* /all \([^ ]*\) .*|\1|p" /proc/mounts)"'
pod secrets-user '{name: all, secret: {secretName: sec, defaultMode: 0440}}, {name: projected, projected: {defaultMode: 0440, sources: [{secret: {name: sec}}]}}' \
  '{name: all, mountPath: /all}, {name: projected, mountPath: /p/all}' "$describe_file"' describe all /all/data-1; describe all/p /p/all/data-1' 'securityContext: {runAsUser: 1000, fsGroup: 1001}'
for p in "" /p; do
  kind=$([ -z $p ] && echo secret || echo "projected secret")
  expect "$kind: a key is a file, whoever else has a secret of this name" "-rw-r--r--:0:0 value-1" said secrets "all${p/\//\\/}"
  expect "$kind: in two places of one pod" "-rw-r--r--:0:0 value-1" said secrets "again${p/\//\\/}"
  expect "$kind: with a default mode" "-r--------:0:0 value-1" said secrets "tight${p/\//\\/}"
  expect "$kind: with items" "-rw-r--r--:0:0 value-1" said secrets "items${p/\//\\/}"
  expect "$kind: with items and a mode of their own" "-r--------:0:0 value-1" said secrets "moded${p/\//\\/}"
  expect "$kind: for a user, by the pod's group and a default mode" "-r--r-----:0:1001 value-1" said secrets-user "all${p/\//\\/}"
done
expect "secret: never on a disk" tmpfs said secrets type

for kind in configmap secret; do
  apply <<Y
{apiVersion: v1, kind: $([ $kind = secret ] && echo Secret || echo ConfigMap), metadata: {name: firm}, data: {data-1: dmFsdWUtMQ==}}
Y
  check "$kind: may be changed" k patch $kind firm --type=merge -p '{"data":{"data-1":"dmFsdWUtMg=="}}'
  check "… until it says that it may not" k patch $kind firm --type=merge -p '{"immutable":true}'
  expect_fail "… then not its data" 'data: Forbidden: field is immutable when `immutable` is set' k patch $kind firm --type=merge -p '{"data":{"data-1":"dmFsdWUtMw=="}}'
  expect_fail "… nor that" 'immutable: Forbidden: field is immutable when `immutable` is set' k patch $kind firm --type=merge -p '{"immutable":false}'
  check "… but its labels" k label $kind firm is=immutable
  check "… and it may be deleted" k delete $kind firm
done

# ---- downwardAPI, alone and projected ----

limits='resources: {limits: {cpu: 1250m, memory: 64Mi}, requests: {cpu: 250m, memory: 32Mi}}'
figures='{path: cpu_limit, resourceFieldRef: {containerName: main, resource: limits.cpu, divisor: 1m}}, {path: cpu_request, resourceFieldRef: {containerName: main, resource: requests.cpu, divisor: 1m}},
  {path: cores, resourceFieldRef: {containerName: main, resource: limits.cpu}},
  {path: memory_limit, resourceFieldRef: {containerName: main, resource: limits.memory}}, {path: memory_request, resourceFieldRef: {containerName: main, resource: requests.memory}}'
items="{path: podname, fieldRef: {fieldPath: metadata.name}}, {path: tight, fieldRef: {fieldPath: metadata.name}, mode: 0400}, $figures"
volumes="{name: d, downwardAPI: {items: [$items]}}, {name: dt, downwardAPI: {defaultMode: 0400, items: [$items]}},
  {name: p, projected: {sources: [{downwardAPI: {items: [$items]}}]}}, {name: pt, projected: {defaultMode: 0400, sources: [{downwardAPI: {items: [$items]}}]}}"
mounts='{name: d, mountPath: /d}, {name: dt, mountPath: /d/tightly}, {name: p, mountPath: /p}, {name: pt, mountPath: /p/tightly}'
mounts=${mounts//\/tightly/t}
tell_all="$describe_file"' for v in d p; do for f in podname tight cpu_limit cpu_request cores memory_limit memory_request; do describe $v.$f /$v/$f; done; describe $v.default /${v}t/podname; done'
pod downward "$volumes" "$mounts" "$tell_all" "" "$limits"
pod unlimited "$volumes" "$mounts" "$tell_all"
allocatable() { k get node edge -o "jsonpath={.status.allocatable.$1}"; }
cpu=$(allocatable cpu) memory=$(allocatable memory)
case $cpu in *m) cpu=${cpu%m} ;; *) cpu=$((cpu * 1000)) ;; esac
case $memory in *Ki) memory=$((${memory%Ki} * 1024)) ;; *Mi) memory=$((${memory%Mi} * 1048576)) ;; esac
for v in d p; do
  kind=$([ $v = d ] && echo downwardAPI || echo "projected downwardAPI")
  expect "$kind: the pod's name" "-rw-r--r--:0:0 downward" said downward $v.podname
  expect "$kind: a mode of its own" "-r--------:0:0 downward" said downward $v.tight
  expect "$kind: a default mode" "-r--------:0:0 downward" said downward $v.default
  expect "$kind: the container's cpu limit" "-rw-r--r--:0:0 1250" said downward $v.cpu_limit
  expect "$kind: … in cores, rounded up" "-rw-r--r--:0:0 2" said downward $v.cores
  expect "$kind: the container's cpu request" "-rw-r--r--:0:0 250" said downward $v.cpu_request
  expect "$kind: the container's memory limit" "-rw-r--r--:0:0 67108864" said downward $v.memory_limit
  expect "$kind: the container's memory request" "-rw-r--r--:0:0 33554432" said downward $v.memory_request
  expect "$kind: without a cpu limit, what the node can give" "-rw-r--r--:0:0 $cpu" said unlimited $v.cpu_limit
  expect "$kind: without a memory limit, what the node can give" "-rw-r--r--:0:0 $memory" said unlimited $v.memory_limit
done

# ---- all in one ----

pod combined '{name: v, projected: {sources: [{secret: {name: sec, items: [{key: data-1, path: secret-data}]}}, {configMap: {name: conf, items: [{key: data-1, path: configmap-data}]}},
  {downwardAPI: {items: [{path: podname, fieldRef: {fieldPath: metadata.name}}]}}, {serviceAccountToken: {path: token}}]}}' '{name: v, mountPath: /v}' \
  'echo "all=$(cat /v/podname) $(cat /v/secret-data) $(cat /v/configmap-data) $(cut -d . -f 1 /v/token | head -c 3)"'
expect "projected: a secret, a configMap, the pod and its account in one" "combined value-1 value-1 eyJ" said combined all

# ---- changes while a pod runs ----

apply <<'Y'
apiVersion: v1
kind: Pod
metadata: {name: shows, labels: {key1: value1}, annotations: {builder: bar}}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - {name: main, image: localhost/busybox:latest, command: [sleep, "1000000"], volumeMounts: [
      {name: map, mountPath: /map}, {name: pod, mountPath: /pod}, {name: map-wanes, mountPath: /map-wanes}, {name: map-turns, mountPath: /map-turns}, {name: map-comes, mountPath: /map-comes},
      {name: sec, mountPath: /sec}, {name: sec-wanes, mountPath: /sec-wanes}, {name: sec-turns, mountPath: /sec-turns}, {name: sec-comes, mountPath: /sec-comes},
      {name: p, mountPath: /p}]}
  volumes:
  - {name: map, configMap: {name: conf}}
  - {name: map-wanes, configMap: {name: wanes, optional: true}}
  - {name: map-turns, configMap: {name: turns, optional: true}}
  - {name: map-comes, configMap: {name: comes, optional: true}}
  - {name: sec, secret: {secretName: sec}}
  - {name: sec-wanes, secret: {secretName: wanes, optional: true}}
  - {name: sec-turns, secret: {secretName: turns, optional: true}}
  - {name: sec-comes, secret: {secretName: comes, optional: true}}
  - {name: pod, downwardAPI: {items: [{path: labels, fieldRef: {fieldPath: metadata.labels}}, {path: annotations, fieldRef: {fieldPath: metadata.annotations}}]}}
  - name: p
    projected:
      sources:
      - configMap: {name: conf}
      - configMap: {name: wanes, optional: true, items: [{key: data-1, path: map-wanes}]}
      - configMap: {name: turns, optional: true, items: [{key: data-1, path: map-turns}]}
      - configMap: {name: comes, optional: true, items: [{key: data-1, path: map-comes}]}
      - secret: {name: wanes, optional: true, items: [{key: data-1, path: sec-wanes}]}
      - secret: {name: turns, optional: true, items: [{key: data-1, path: sec-turns}]}
      - secret: {name: comes, optional: true, items: [{key: data-1, path: sec-comes}]}
      - downwardAPI: {items: [{path: labels, fieldRef: {fieldPath: metadata.labels}}, {path: annotations, fieldRef: {fieldPath: metadata.annotations}}]}
Y
check "a pod runs on, with what there is and what there may be" k wait --for=condition=Ready pod/shows --timeout=120s
expect "labels, as they are" 'key1="value1"' eval 'shows /pod/labels | grep key1'
k label pod shows key3=value3 >/dev/null
k annotate pod shows builder=foo --overwrite >/dev/null
k patch configmap conf --type=merge -p '{"data":{"data-1":"value-2","data-3":null}}' >/dev/null
k patch secret sec --type=merge -p '{"stringData":{"data-1":"value-2"}}' >/dev/null
k delete configmap/wanes secret/wanes >/dev/null
k patch configmap turns --type=merge -p '{"data":{"data-1":null,"data-3":"value-3"}}' >/dev/null
k patch secret turns --type=merge -p '{"data":{"data-1":null},"stringData":{"data-3":"value-3"}}' >/dev/null
k create configmap comes --from-literal=data-1=value-1 >/dev/null
k create secret generic comes --from-literal=data-1=value-1 >/dev/null
for p in /pod /p; do
  kind=$([ $p = /pod ] && echo downwardAPI || echo "projected downwardAPI")
  soon expect "$kind: a new label" 'key3="value3"' eval "shows $p/labels | grep key3"
  soon expect "$kind: another annotation" 'builder="foo"' eval "shows $p/annotations | grep ^builder"
done
becomes "configMap: another value" value-2 /map/data-1
becomes "projected configMap: another value" value-2 /p/data-1
for p in /map /p; do soon expect_match "a key that is no more is no file, in $p" "No such file" eval "shows $p/data-3 2>&1"; done
becomes "secret: another value" value-2 /sec/data-1
for kind in map sec; do
  soon expect "optional, deleted: $kind" "" k exec shows -- ls /$kind-wanes
  becomes "optional, changed: $kind" value-3 /$kind-turns/data-3
  soon expect "… what it had is gone" "data-3" k exec shows -- ls /$kind-turns
  becomes "optional, made later: $kind" value-1 /$kind-comes/data-1
  soon expect_match "projected, optional, deleted: $kind" "No such file" eval "shows /p/$kind-wanes 2>&1"
  soon expect_match "projected, optional, a key that is no more: $kind" "No such file" eval "shows /p/$kind-turns 2>&1"
  becomes "projected, optional, made later: $kind" value-1 /p/$kind-comes
done

# ---- subPath ----

pod parts '{name: map, configMap: {name: conf}}, {name: sec, secret: {secretName: sec}}, {name: pod, downwardAPI: {items: [{path: there/podname, fieldRef: {fieldPath: metadata.name}}]}},
  {name: p, projected: {sources: [{configMap: {name: conf, items: [{key: data-2, path: a/b}]}}]}}' \
  '{name: map, mountPath: /map, subPath: data-2}, {name: map, mountPath: /etc/passwd, subPath: data-2}, {name: sec, mountPath: /sec, subPath: data-2}, {name: pod, mountPath: /pod, subPath: there/podname}, {name: pod, mountPath: /dir, subPath: there}, {name: p, mountPath: /p, subPath: a/b}' \
  'for f in /map /etc/passwd /sec /pod /dir/podname /p; do echo "$f=$(cat $f)"; done'
expect "subPath: a file of a configMap" value-2 said parts '\/map'
expect "subPath: a file of a configMap over one of the image" value-2 said parts '\/etc\/passwd'
expect "subPath: a file of a secret" value-2 said parts '\/sec'
expect "subPath: a file of a downwardAPI" parts said parts '\/pod'
expect "subPath: a directory of a downwardAPI" parts said parts '\/dir\/podname'
expect "subPath: a file of a projected volume" value-2 said parts '\/p'

# ---- many at once ----

many() {  # many COUNT WORD...: prints the words for each number, which replaces N
  for i in $(seq "$1"); do echo "${2//N/$i}"; done
}
many 50 $'---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: racy-N}, data: {data-1: value-1}}' | apply
race="$(many 50 '{name: v-N, configMap: {name: racy-N, items: [{key: data-1, path: data-1}]}},')"
apply <<Y
{apiVersion: apps/v1, kind: Deployment, metadata: {name: racy}, spec: {replicas: 5, selector: {matchLabels: {app: racy}}, template: {metadata: {labels: {app: racy}}, spec: {terminationGracePeriodSeconds: 1,
  containers: [{name: main, image: localhost/busybox:latest, command: [sleep, "10000"], volumeMounts: [$(many 50 '{name: v-N, mountPath: /v/N},')]}],
  volumes: [$race]}}}}
Y
check "five pods with fifty volumes each" k rollout status deployment/racy --timeout=180s
expect "… have them all" "50" eval 'k exec deploy/racy -- sh -c "cat /v/*/data-1 | grep -o value-1 | wc -l"'
k delete deployment racy >/dev/null
pod both '{name: sec, secret: {secretName: sec}}, {name: map, configMap: {name: conf}}' '{name: sec, mountPath: /etc/both/sec}, {name: map, mountPath: /etc/both/map}' 'echo "both=$(cat /etc/both/sec/data-2 /etc/both/map/data-2)"'
expect "a secret and a configMap beside each other" "value-2value-2" said both both

# ---- the storage kinds ----

life() {  # life RESOURCE PATH BODY: creates, reads, changes, replaces and deletes one, and deletes another one as a collection
  local resource=$1 path=$2 body=$3 name=life-1
  local one="{${body//NAME/$name}"
  check "$resource: created" k create -f - <<<"$one"
  expect "… read" "$name" k get "$resource" $name -o 'jsonpath={.metadata.name}'
  expect "… listed by its label" "$name" k get "$resource" -l life=it -o 'jsonpath={.items[*].metadata.name}'
  check "… patched" k patch "$resource" $name --type=merge -p '{"metadata":{"labels":{"patched":"yes"}}}'
  # Again if its controller writes in between: a replacement names the version that it replaces.
  check "… replaced" until_true 10 eval "k get $resource $name -o yaml | sed 's/patched: \"yes\"/patched: \"yes\"\n    replaced: \"yes\"/' | k replace -f -"
  expect "… which shows" "yes yes" k get "$resource" $name -o 'jsonpath={.metadata.labels.patched} {.metadata.labels.replaced}'
  check "… deleted" k delete "$resource" $name --timeout=120s
  k create -f - <<<"{${body//NAME/life-2}" >/dev/null
  expect "… deleted with all that have its label" 200 admin -o /dev/null -w '%{http_code}' -X DELETE "$api$path?labelSelector=life%3Dit"
  soon expect "… and gone" "" k get "$resource" -l life=it -o name
}
meta='metadata: {name: NAME, labels: {life: it}}'
storage=/apis/storage.k8s.io/v1
life storageclasses $storage/storageclasses "apiVersion: storage.k8s.io/v1, kind: StorageClass, $meta, provisioner: e2e.example/fake}"
life persistentvolumes /api/v1/persistentvolumes "apiVersion: v1, kind: PersistentVolume, $meta, spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], storageClassName: none, hostPath: {path: /tmp/none}}}"
life persistentvolumeclaims /api/v1/namespaces/default/persistentvolumeclaims "apiVersion: v1, kind: PersistentVolumeClaim, $meta, spec: {accessModes: [ReadWriteOnce], storageClassName: none, resources: {requests: {storage: 1Gi}}}}"
life volumeattachments $storage/volumeattachments "apiVersion: storage.k8s.io/v1, kind: VolumeAttachment, $meta, spec: {attacher: e2e.example, nodeName: edge, source: {persistentVolumeName: some}}}"
life volumeattributesclasses $storage/volumeattributesclasses "apiVersion: storage.k8s.io/v1, kind: VolumeAttributesClass, $meta, driverName: e2e.example, parameters: {iops: '10'}}"
life csidrivers $storage/csidrivers "apiVersion: storage.k8s.io/v1, kind: CSIDriver, $meta, spec: {attachRequired: false}}"
life csinodes $storage/csinodes "apiVersion: storage.k8s.io/v1, kind: CSINode, $meta, spec: {drivers: []}}"
life csistoragecapacities $storage/namespaces/default/csistoragecapacities "apiVersion: storage.k8s.io/v1, kind: CSIStorageCapacity, $meta, storageClassName: none, capacity: 1Gi}"

replaces() {  # replaces URL: by what is there; fails if a controller writes in between
  admin -o "$T/status.json" "$1"
  [ "$(admin -o /dev/null -w '%{http_code}' -X PUT -H 'Content-Type: application/json' -d "@$T/status.json" "$1")" = 200 ]
}
status() {  # status RESOURCE PATH PATCH FIELD WANT: patches, reads and replaces the status subresource
  check "$1: its status is patched" k patch "$1" it --subresource=status --type=merge -p "$3"
  expect "… which shows" "$5" k get "$1" it -o "jsonpath=$4"
  expect "… read" 200 admin -o "$T/status.json" -w '%{http_code}' "$api$2/it/status"
  check "… replaced" until_true 10 replaces "$api$2/it/status"
}
apply <<'Y'
{apiVersion: v1, kind: PersistentVolume, metadata: {name: it}, spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], storageClassName: none, hostPath: {path: /tmp/none}}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: it}, spec: {accessModes: [ReadWriteOnce], storageClassName: nowhere, resources: {requests: {storage: 1Gi}}}}
---
{apiVersion: storage.k8s.io/v1, kind: VolumeAttachment, metadata: {name: it}, spec: {attacher: e2e.example, nodeName: edge, source: {persistentVolumeName: some}}}
Y
until_true 10 eval '[ "$(k get pv it -o "jsonpath={.status.phase}")" = Available ]'
status persistentvolumes /api/v1/persistentvolumes '{"status":{"message":"patched","reason":"E2E"}}' '{.status.reason} {.status.message}' "E2E patched"
status persistentvolumeclaims /api/v1/namespaces/default/persistentvolumeclaims '{"status":{"conditions":[{"type":"StatusPatched","status":"True","reason":"E2E","message":"patched"}]}}' '{.status.conditions[0].type} {.status.conditions[0].reason}' "StatusPatched E2E"
status volumeattachments $storage/volumeattachments '{"status":{"attached":true}}' '{.status.attached}' true
