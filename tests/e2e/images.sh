#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Real pulls from a real registry: by tag and digest, with a password, from a private one with a pull secret; interrupted pulls;
# import.
# for: runtime/image daemon/node/images daemon/node/pod_images daemon/api/images daemon/registries_file daemon/registry_source daemon/hosts_directory ctl/image ctl/pack
. "$(dirname "$0")/lib.sh"
command -v docker-registry >/dev/null && command -v skopeo >/dev/null && command -v htpasswd >/dev/null || skip_all "docker-registry, skopeo or htpasswd is missing"
REGISTRY_PORT=5999
start_machine

htpasswd -Bbn user secret > "$T/htpasswd"
registry() {  # registry PORT AUTH
  local auth=
  [ -z "$2" ] || auth="auth: {htpasswd: {realm: test, path: $T/htpasswd}}"
  printf 'version: 0.1\nstorage: {filesystem: {rootdirectory: %s}}\nhttp: {addr: "0.0.0.0:%s"}\n%s\n' "$T/registry-$1" "$1" "$auth" > "$T/registry-$1.yml"
  # Not with in_ns: a function in the background runs in a subshell, and killing that leaves the registry running.
  nsenter --net="/run/netns/$ns" -- docker-registry serve "$T/registry-$1.yml" >"$T/registry-$1.log" 2>&1 &
  eval "registry_$1=$!"
}
registry 5999 ""; registry 5998 auth
trap 'kill $registry_5999 $registry_5998 2>/dev/null; cleanup' EXIT
until_true 20 in_ns busybox nc -z 127.0.0.1 5999 && until_true 20 in_ns busybox nc -z 127.0.0.1 5998
c image pack "$T/rootfs" localhost/app:1 --cmd sh --output "$T/app.tar" >/dev/null || not_ok "pack to a file"
check "pack: standard output has the same archive" eval 'c image pack "$T/rootfs" localhost/app:1 --cmd sh -o - | cmp - "$T/app.tar"'
expect "pack: what fails leaves the file as it was" "$(sha256sum <"$T/app.tar")" eval 'c image pack "$T/nowhere" localhost/app:1 --output "$T/app.tar" 2>/dev/null; sha256sum <"$T/app.tar"'
check "skopeo reads what we pack" skopeo inspect "oci-archive:$T/app.tar"
check "push" in_ns skopeo copy -q --dest-tls-verify=false "oci-archive:$T/app.tar" docker://127.0.0.1:5999/app:1
check "push to the private one" in_ns skopeo copy -q --dest-tls-verify=false --dest-creds user:secret "oci-archive:$T/app.tar" docker://127.0.0.1:5998/private/app:1

sed -i 's/^insecureRegistries:.*/insecureRegistries: []/' "$T/etc/config.yaml"
expect_fail "a registry that speaks http only is named, and what to do" '10.55.0.2:5999.*http only.*insecureRegistries' c image pull 10.55.0.2:5999/app:1
echo 'mirrors: [' >>"$T/etc/config.yaml"
expect_fail "settings that cannot be read leave it at that" 'insecureRegistries' c image pull 10.55.0.2:5999/app:1
sed -i '$d; s/^insecureRegistries:.*/insecureRegistries: ["10.55.0.2:5999", "127.0.0.1:5999", "127.0.0.1:5998"]/' "$T/etc/config.yaml"
check "once the settings trust it, it is spoken to, without a restart" c image pull 10.55.0.2:5999/app:1
check "pull by tag" c image pull 127.0.0.1:5999/app:1
expect_match "it is listed" '127.0.0.1:5999/app' c image list
digest=$(in_ns skopeo inspect --tls-verify=false docker://127.0.0.1:5999/app:1 | jq -r .Digest)
check "pull by digest" c image pull "127.0.0.1:5999/app@$digest"
expect_fail "a tag that is not there" 'not found|unknown' c image pull 127.0.0.1:5999/app:none
expect_fail "without the password" 'Unauthorized|401|user name and a password' c image pull 127.0.0.1:5998/private/app:1
check "a pull secret" c create secret docker-registry creds --docker-server=127.0.0.1:5998 --docker-username=user --docker-password=secret
k apply -f - >/dev/null <<Y
apiVersion: v1
kind: Pod
metadata: {name: private}
spec:
  restartPolicy: Never
  imagePullSecrets: [{name: creds}]
  containers: [{name: main, image: "127.0.0.1:5998/private/app:1", command: [echo, pulled]}]
---
apiVersion: v1
kind: Pod
metadata: {name: refused}
spec: {containers: [{name: main, image: "127.0.0.1:5998/private/app:1", imagePullPolicy: Always}]}
Y
check "a pod pulls with it" until_true 30 eval "[ \"\$(k logs private 2>/dev/null)\" = pulled ]"
check "a pod without it says why" until_true 30 eval "k get pod refused | grep -qE 'ErrImagePull|ImagePullBackOff'"
soon expect_match "… in an event" 'user name and a password|401' k describe pod refused
k apply -f - >/dev/null <<Y
apiVersion: v1
kind: Pod
metadata: {name: stranger}
spec: {containers: [{name: main, image: "127.0.0.1:5998/private/app:1", imagePullPolicy: IfNotPresent}]}
---
apiVersion: v1
kind: Pod
metadata: {name: never}
spec: {containers: [{name: main, image: "127.0.0.1:5998/private/app:1", imagePullPolicy: Never}]}
---
apiVersion: v1
kind: Pod
metadata: {name: friend}
spec:
  restartPolicy: Never
  imagePullSecrets: [{name: creds}]
  containers: [{name: main, image: "127.0.0.1:5998/private/app:1", imagePullPolicy: IfNotPresent, command: [echo, present]}]
Y
check "an image that came for a secret is not everybody's" until_true 30 eval "k get pod stranger | grep -qE 'ErrImagePull|ImagePullBackOff'"
check "… nor where nothing may be pulled" until_true 30 eval "k get pod never | grep -q ErrImageNeverPull"
check "… but for who has the secret" until_true 30 eval "[ \"\$(k logs friend 2>/dev/null)\" = present ]"
soon expect_match "… without another pull" 'already present on machine and can be accessed by the pod' k describe pod friend
k delete pod stranger never friend --wait=false >/dev/null
expect_fail "a directory is no archive" "^error: $T/etc is a directory" c image import "$T/etc"
check "import" c image import "$T/app.tar" --name localhost/imported:1
expect_match "… is there" 'localhost/imported' c image list
check "export" c image export localhost/imported:1 -o "$T/export.tar"
c image export localhost/imported:1 >"$T/piped.tar" || not_ok "export into a pipe"
check "… the same into a pipe" cmp "$T/export.tar" "$T/piped.tar"
expect_match "… that others read" 'localhost/imported:1' eval "tar -xOf '$T/export.tar' manifest.json; skopeo inspect 'oci-archive:$T/export.tar:localhost/imported:1'"
expect_fail "what is not here is not exported" 'no image .*nobody' c image export localhost/imported:1 localhost/nobody:1 -o "$T/none.tar"
expect "… and no file is left" "" eval "ls -A '$T' | grep none"
check "remove" c image remove localhost/imported:1
expect "… is gone" "0" eval "c image list | grep -c localhost/imported"
gzip -k "$T/app.tar"
check "what was exported is taken in again" c image import "$T/export.tar"
expect "… and runs" "it runs" c run exported --rm -i -q --restart=Never --image=localhost/imported:1 --command -- sh -c 'echo it runs'
check "import compressed" c image import "$T/app.tar.gz" --name localhost/zipped:1

echo "# an image as a volume"
mkdir -p "$T/site/pages"
echo hello >"$T/site/pages/index.html"
printf '#!/bin/sh\necho ran\n' >"$T/site/tool"; chmod 755 "$T/site/tool"
c image pack "$T/site" localhost/site:1 --output "$T/site.tar" >/dev/null
check "data are packed and pushed" in_ns skopeo copy -q --dest-tls-verify=false "oci-archive:$T/site.tar" docker://127.0.0.1:5999/site:1
k apply -f - >/dev/null <<Y
apiVersion: v1
kind: Pod
metadata: {name: reader}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - {name: main, image: "127.0.0.1:5999/app:1", command: [sh, -c, 'trap "exit 0" TERM; sleep 1000 & wait'], volumeMounts: [{name: site, mountPath: /site}]}
  - {name: side, image: "127.0.0.1:5999/app:1", command: [sleep, "1000"], volumeMounts: [{name: site, mountPath: /pages, subPath: pages}]}
  volumes: [{name: site, image: {reference: "127.0.0.1:5999/site:1"}}]
---
apiVersion: v1
kind: Pod
metadata: {name: astray}
spec:
  containers: [{name: main, image: "127.0.0.1:5999/app:1", command: [sleep, "1000"], volumeMounts: [{name: site, mountPath: /site, subPath: nowhere}]}]
  volumes: [{name: site, image: {reference: "127.0.0.1:5999/site:1"}}]
---
apiVersion: v1
kind: Pod
metadata: {name: without}
spec:
  containers: [{name: main, image: "127.0.0.1:5999/app:1", command: [sleep, "1000"], volumeMounts: [{name: site, mountPath: /site}]}]
  volumes: [{name: site, image: {reference: "127.0.0.1:5999/site:none"}}]
Y
check "a pod starts with it" until_true 30 k exec reader -c main -- true
expect "reads it" hello k exec reader -c main -- cat /site/pages/index.html
expect "and a part of it elsewhere" hello k exec reader -c side -- cat /pages/index.html
expect_fail "cannot write to it" 'Read-only file system' k exec reader -c main -- touch /site/new
expect_fail "nor execute what is in it" 'Permission denied|permission denied' k exec reader -c main -- /site/tool
soon expect_match "its pull is an event of the pod" 'Successfully pulled image "127.0.0.1:5999/site:1"' k describe pod reader
check "a path that is not in the image is told" until_true 20 eval "k describe pod astray | grep -q 'failed to prepare subPath for volumeMount \"site\" of container \"main\"'"
check "an image that cannot be pulled too" until_true 20 eval "k get pod without | grep -qE 'ErrImagePull|ImagePullBackOff'"
expect_fail "it is not removed while the pod has it" 'in use' c image remove 127.0.0.1:5999/site:1
kill_daemon; start_daemon
check "after a SIGKILL the pod still reads it" until_true 10 eval '[ "$(k exec reader -c main -- cat /site/pages/index.html)" = hello ]'
starts_again() {
  k exec reader -c main -- kill 1
  until_true 20 eval '[ "$(k get pod reader -o "jsonpath={.status.containerStatuses[?(@.name==\"main\")].restartCount}")" = 1 ]' &&
    until_true 20 eval '[ "$(k exec reader -c main -- cat /site/pages/index.html 2>/dev/null)" = hello ]'
}
check "a container that starts again has it" starts_again
uid=$(k get pod reader -o 'jsonpath={.metadata.uid}')
check "the pods are deleted" k delete pod reader astray without --wait=true
soon expect "nothing stays mounted" 0 grep -c "$uid" /proc/self/mountinfo
check "and the image may go" until_true 10 c image remove 127.0.0.1:5999/site:1

# ---- registries.yaml and certs.d: what their reader sees; nobody listens on port 5997 ----

cat >"$T/etc/registries.yaml" <<'Y'
mirrors:
  127.0.0.1:5997:
    endpoint: ["http://127.0.0.1:5998"]
    rewrite: {"^team/(.*)": "private/$1"}
configs:
  127.0.0.1:5998:
    auth:
      username: user
      password: secret
Y
check "registries.yaml: a mirror with its password, by another name there" c image pull 127.0.0.1:5997/team/app:1
sed -i 's/password: secret/password: hunter2/' "$T/etc/registries.yaml"
said=$(c image pull 127.0.0.1:5997/team/app:1 2>&1)
expect_match "… with another password it is named" '127\.0\.0\.1:5998/v2/private/app/manifests/1: 401' echo "$said"
expect_match "… and so is the registry itself" '127\.0\.0\.1:5997/v2/team/app/manifests/1: ' echo "$said"
expect "… without the password" "" grep hunter2 <<<"$said"
sed -i 's/password: hunter2/password: 12/' "$T/etc/registries.yaml"
c image pull 127.0.0.1:5999/app:1 >/dev/null
check "a mistake in it is in the log, with its line" grep -q "$T/etc/registries.yaml: line 9: configs.127.0.0.1:5998.auth.password: must be text" "$T/coracled.log"
expect_fail "… and in the error of a pull that would ask this mirror" 'registries.yaml: line 9: ' c image pull 127.0.0.1:5997/team/app:1
expect_fail "… which --check-config names too" 'registries.yaml: line 9: ' "$coracled" --config "$T/etc/config.yaml" --check-config
rm "$T/etc/registries.yaml"
mkdir -p "$T/etc/certs.d/127.0.0.1_5997_"
printf 'server = "http://127.0.0.1:5999"\n' >"$T/etc/certs.d/127.0.0.1_5997_/hosts.toml"
check "certs.d: another server for a registry" c image pull 127.0.0.1:5997/app:1
printf '[host."http://127.0.0.1:5999"]\n  ca = "nowhere.crt"\n' >"$T/etc/certs.d/127.0.0.1_5997_/hosts.toml"
expect_fail "… a mistake is named with its line" 'hosts.toml: line 2: host.http://127.0.0.1:5999.ca: .*nowhere.crt' "$coracled" --config "$T/etc/config.yaml" --check-config
expect_fail "… also by a pull from that registry" 'hosts.toml: line 2: host.http://127.0.0.1:5999.ca: ' c image pull 127.0.0.1:5997/app:1
rm -r "$T/etc/certs.d"
