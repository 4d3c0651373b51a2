#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Expectations of applications and their manifests beyond the conformance tests: nested mounts, environment files, shared grace
# periods, host ports on loopback, logs for collectors, images as others build them.
# for: runtime daemon/node daemon/network/proxy daemon/network/rules store/kinds/pod ctl/logs ctl/image
. "$(dirname "$0")/lib.sh"
start_machine

pod() { k apply -f - <<<"$1" >/dev/null; }
phase_is() { [ "$(k get pod "$1" -o 'jsonpath={.status.phase}')" = "$2" ]; }
ends() { until_true 30 eval "phase_is $1 Succeeded || phase_is $1 Failed"; }
reason_of() { k get pod "$1" -o 'jsonpath={.status.containerStatuses[0].state.*.reason}'; }
event_of() { k get events --field-selector "involvedObject.name=$1" -o 'jsonpath={range .items[*]}{.reason}: {.message}{"\n"}{end}'; }
image="image: localhost/busybox:latest, imagePullPolicy: Never"
quick="terminationGracePeriodSeconds: 0"
times() { if [ "${CORACLE_LONG:-0}" = 1 ]; then echo 200; else echo "$1"; fi; }  # times COUNT: rounds, except in long runs

# ---- mounts ----

pod "
apiVersion: v1
kind: ConfigMap
metadata: {name: outer}
data: {a: one, sub.conf: inner}
---
apiVersion: v1
kind: Secret
metadata: {name: outer}
stringData: {a: one}
---
apiVersion: v1
kind: Pod
metadata: {name: nested, labels: {app: nested}}
spec:
  $quick
  volumes:
  - {name: config, configMap: {name: outer}}
  - {name: secret, secret: {secretName: outer}}
  - {name: all, projected: {sources: [{configMap: {name: outer}}]}}
  - {name: self, downwardAPI: {items: [{path: labels, fieldRef: {fieldPath: metadata.labels}}]}}
  - {name: data, emptyDir: {}}
  - {name: memory, emptyDir: {medium: Memory}}
  containers:
  - name: c
    $(sed 's/, /\n    /' <<<"$image")
    command: [sh, -c, 'for d in config secret all; do [ \"\$(cat /\$d/a)\" = one ] || exit 1; done; grep -q nested /self/labels && touch /config/data/x /secret/data/x /all/deep/er/x /self/data/x /var/run/secrets/kubernetes.io/serviceaccount/own/x && [ \"\$(cat /config/one/file)\" = inner ] && stat -c %a /memory && echo all there; sleep 1000']
    volumeMounts:
    - {name: config, mountPath: /config}
    - {name: data, mountPath: /config/data}
    - {name: config, mountPath: /config/one/file, subPath: sub.conf}
    - {name: secret, mountPath: /secret}
    - {name: data, mountPath: /secret/data}
    - {name: all, mountPath: /all}
    - {name: data, mountPath: /all/deep/er}
    - {name: self, mountPath: self}
    - {name: data, mountPath: self/data}
    - {name: data, mountPath: /var/run/secrets/kubernetes.io/serviceaccount/own}
    - {name: memory, mountPath: /memory}"
check "volumes can be mounted inside volumes of data, and a mountPath may lack its slash" until_true 20 eval '[ "$(k logs nested | tail -n 1)" = "all there" ]'
expect "a volume in memory has the sticky bit" 1777 eval 'k logs nested | head -n 1'
k patch configmap outer --type=merge -p '{"data":{"a":"two"}}' >/dev/null
check "… and the outer one is still brought level" until_true 90 eval '[ "$(c exec nested -- cat /config/a)" = two ]'
expect "… under what is mounted inside" "x" c exec nested -- ls /config/data
pod "
apiVersion: v1
kind: Pod
metadata: {name: misfit}
spec:
  restartPolicy: Never
  containers: [{name: c, $image, command: [sleep, '1'], volumeMounts: [{name: v, mountPath: /bin/busybox}]}]
  volumes: [{name: v, configMap: {name: outer}}]"
ends misfit
expect_match "a directory over a file is said to be that" 'a directory is mounted over a file' k get pod misfit -o 'jsonpath={.status.containerStatuses[0].state.terminated.message}'
expect_match "… and why knows what to do" '→ .*subPath' c why pod misfit
expect_fail "a mountPath with a colon is refused" "must not contain ':'" pod "
apiVersion: v1
kind: Pod
metadata: {name: colon}
spec: {containers: [{name: c, $image, volumeMounts: [{name: v, mountPath: '/a:b'}]}], volumes: [{name: v, emptyDir: {}}]}"

mkdir -p "$T/root/bin" "$T/root/etc" "$T/root/data"
cp /bin/busybox "$T/root/bin/sh" && echo seed >"$T/root/data/seed"
ln -s ../run/systemd/resolve/stub-resolv.conf "$T/root/etc/resolv.conf"
check "an image with a link to nothing" c image pack "$T/root" rep.test/resolved:1 --cmd sh
pod "
apiVersion: v1
kind: Pod
metadata: {name: resolved}
spec:
  restartPolicy: Never
  containers: [{name: c, image: 'rep.test/resolved:1', imagePullPolicy: Never, command: [/bin/sh, -c, 'while read -r l; do echo \"\$l\"; done </etc/resolv.conf']}]"
ends resolved
expect_match "… has the pod's resolv.conf in its place" 'nameserver 10.96.0.10' k logs resolved

# ---- the environment ----

pod "
apiVersion: v1
kind: Pod
metadata: {name: env-file}
spec:
  restartPolicy: Never
  volumes: [{name: v, emptyDir: {}}]
  initContainers: [{name: i, $image, command: [sh, -c, 'printf \"A=1\\nB=two\\n\" >/v/e.env'], volumeMounts: [{name: v, mountPath: /v}]}]
  containers:
  - {name: c, $image, command: [sh, -c, 'echo A=\$A B=\$B'], env: [{name: A, valueFrom: {fileKeyRef: {volumeName: v, path: e.env, key: A}}}, {name: B, valueFrom: {fileKeyRef: {volumeName: v, path: e.env, key: B}}}]}"
ends env-file
expect "variables come from a file that an init container wrote" "A=1 B=two" k logs env-file -c c
pod "
apiVersion: v1
kind: Pod
metadata: {name: no-secret}
spec:
  $quick
  imagePullSecrets: [{name: nosuch}]
  containers: [{name: c, $image, command: [sleep, '1000']}]"
soon expect_match "a pull secret that is not there is told of" 'FailedToRetrieveImagePullSecret: .*nosuch' event_of no-secret
check "… and hinders nothing that is here" until_true 20 phase_is no-secret Running

# ---- termination ----

pod "
apiVersion: v1
kind: Pod
metadata: {name: grace}
spec:
  terminationGracePeriodSeconds: 10
  initContainers:
  - {name: s1, restartPolicy: Always, $image, command: [sh, -c, \"trap '' TERM; while :; do sleep 1; done\"]}
  - {name: s2, restartPolicy: Always, $image, command: [sh, -c, \"trap '' TERM; while :; do sleep 1; done\"]}
  containers: [{name: main, $image, command: [sh, -c, \"trap '' TERM; while :; do sleep 1; done\"]}]"
until_true 20 phase_is grace Running
began=$SECONDS
c delete pod grace >/dev/null
took=$((SECONDS - began))
check "the grace period is the pod's, and what comes after it gets two seconds (took $took s)" [ "$took" -le 27 ]  # usually 14; 30 s in
                                                                                                                   # sequence
expect "run ends as its program did, and prints once" "once 3" eval 'echo "$(c run at --rm -i --restart=Never --image=localhost/busybox:latest --image-pull-policy=Never --quiet -- sh -c "sleep 1; echo once; exit 3" </dev/null 2>/dev/null; echo $?)" | tr "\n" " " | sed "s/ \$//"'

# ---- probes and ports ----

pod "
apiVersion: v1
kind: Pod
metadata: {name: bare}
spec:
  $quick
  containers:
  - name: web
    $(sed 's/, /\n    /' <<<"$image")
    command: [sh, -c, \"while :; do printf 'HTTP/1.1 200 OK\\\\n\\\\nfine\\\\n' | nc -l -p 8080 >/dev/null; done\"]
    readinessProbe: {httpGet: {path: /, port: 8080}, periodSeconds: 1, timeoutSeconds: 20}
    ports: [{containerPort: 8080, hostPort: 18081, hostIP: 127.0.0.1}]
  - name: open
    $(sed 's/, /\n    /' <<<"$image")
    command: [sh, -c, \"while :; do printf 'HTTP/1.1 200 OK\\\\r\\\\nContent-Length: 5\\\\r\\\\n\\\\r\\\\nopen\\\\n' | nc -l -p 8081 >/dev/null; done\"]
    ports: [{containerPort: 8081, hostPort: 18082}]
  - {name: closed, $image, command: [sleep, '1000'], readinessProbe: {tcpSocket: {port: 9}, periodSeconds: 1}}"
ready_of() { k get pod "$1" -o "jsonpath={.status.containerStatuses[?(@.name==\"$2\")].ready}"; }
check "an answer with bare line feeds is one" until_true 20 eval '[ "$(ready_of bare web)" = true ]'
soon expect_match "a failed probe names the address" 'dial tcp 10\.244\.[0-9.]*:9: connect: connection refused' event_of bare
check "a host port on 127.0.0.1 answers there" until_true 20 eval '[ "$(in_ns curl -s --http0.9 --max-time 2 http://127.0.0.1:18081/)" = fine ]'
check "… and nowhere else" eval '! in_ns curl -s --max-time 20 http://10.55.0.2:18081/'
check "a host port answers on every address, 127.0.0.1 too" until_true 20 eval '[ "$(in_ns curl -s --max-time 2 http://127.0.0.1:18082/)$(sleep 0.3; in_ns curl -s --max-time 2 http://10.55.0.2:18082/)" = openopen ]'

# ---- logs ----

k run burst --image=localhost/busybox:latest --image-pull-policy=Never --restart=Never -- sh -c "sleep 2; seq 1 300000 | sed 's/\$/ abcdefghijklmnopqrstuvwxyz abcdefghijklmnopqrstuvwxyz abcdefghijklmnopqrstuvwxyz/'; printf end" >/dev/null
until_true 20 phase_is burst Running
expect "a burst over many rotations is followed whole" "300000 end" eval 'c logs -f burst >"$T/followed"; echo "$(grep -c abc "$T/followed") $(tail -n 1 "$T/followed")"'
whole=0 bursts=$(times 2)
for n in $(seq "$bursts"); do
  k run burst-"$n" --image=localhost/busybox:latest --image-pull-policy=Never --restart=Never -- sh -c "sleep 0.5; seq 1 120000 | sed 's/\$/ abcdefghijklmnopqrstuvwxyz abcdefghijklmnopqrstuvwxyz abcdefghijklmnopqrstuvwxyz/'; printf end" >/dev/null
  until_true 20 eval "phase_is burst-$n Running || phase_is burst-$n Succeeded"
  [ "$(c logs -f burst-"$n" | grep -c '^[0-9]* abc\|^end')" = 120001 ] && whole=$((whole + 1))
  k delete pod burst-"$n" --grace-period=0 --force --wait=false >/dev/null 2>&1
done
expect "… and so is each of $bursts more" "$bursts" echo "$whole"
id=$(k get pod nested -o 'jsonpath={.status.containerStatuses[0].containerID}')
check "log collectors find a link to the log" grep -q "all there" "$T/links/nested_default_c-${id#*://}.log"

# ---- ephemeral containers ----

guest() { k patch pod nested --subresource=ephemeralcontainers --type=strategic -p "{\"spec\":{\"ephemeralContainers\":[{\"name\":\"$1\",\"image\":\"localhost/busybox:latest\",\"imagePullPolicy\":\"Never\",\"targetContainerName\":\"c\",\"command\":[\"sh\",\"-c\",\"$2\"]}]}}"; }
check "a container is added to a pod that runs" guest look 'grep -c sleep /proc/1/cmdline; hostname'
state_of_guest() { k get pod nested -o "jsonpath={.status.ephemeralContainerStatuses[?(@.name==\"$1\")].state.terminated.exitCode}"; }
check "… runs to its end" until_true 20 eval '[ "$(state_of_guest look)" = 0 ]'
expect "… in the processes of its target and the names of its pod" "1 nested" eval 'echo $(k logs nested -c look)'

# ---- images ----

python3 - "$T" <<'PY'
import io, json, sys, tarfile, hashlib, lzma
where = sys.argv[1]
sha = lambda data: hashlib.sha256(data).hexdigest()
def tar(files):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as made:
        for name, data in files:
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(data), 0o755
            made.addfile(info, io.BytesIO(data))
    return out.getvalue()
layer = tar([("bin/sh", open("/bin/busybox", "rb").read()), ("data/seed", b"seed\n")])
def image(machine, names, config={}):
    config = json.dumps({"architecture": machine, "os": "linux", "config": config, "rootfs": {"type": "layers", "diff_ids": ["sha256:" + sha(layer)]}}).encode()
    return tar([("l.tar", layer), ("c.json", config), ("manifest.json", json.dumps([{"Config": "c.json", "RepoTags": names, "Layers": ["l.tar"]}]).encode())])
import platform
own = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm"}[platform.machine()]
open(where + "/volume.tar", "wb").write(image(own, ["rep.test/volume:1"], {"Volumes": {"/data": {}}}))
open(where + "/foreign.tar", "wb").write(image("riscv64", ["rep.test/foreign:1"]))
plain = image(own, ["rep.test/packed:1"], {"Env": ["A=1"]})
open(where + "/packed.tar.xz", "wb").write(lzma.compress(plain.rstrip(b"\0")))
many = [("l.tar", layer)]
manifest = []
for n in range(120):
    config = json.dumps({"architecture": own, "os": "linux", "config": {"Env": [f"N={n}"]}, "rootfs": {"type": "layers", "diff_ids": ["sha256:" + sha(layer)]}}).encode()
    many.append((f"{n}.json", config))
    manifest.append({"Config": f"{n}.json", "RepoTags": [f"rep.test/many:{n}"], "Layers": ["l.tar"]})
open(where + "/many.tar", "wb").write(tar(many + [("manifest.json", json.dumps(manifest).encode())]))
PY
check "an image with a VOLUME" c image import "$T/volume.tar"
pod "
apiVersion: v1
kind: Pod
metadata: {name: volume}
spec:
  restartPolicy: Never
  containers: [{name: c, image: 'rep.test/volume:1', imagePullPolicy: Never, securityContext: {readOnlyRootFilesystem: true}, command: [/bin/sh, -c, 'echo x >/data/x && read -r l </data/seed && echo \$l && ! echo x >/x']}]"
ends volume
expect_match "… can be written there, though the root is read-only" '^seed$' k logs volume
check "… and nowhere else" phase_is volume Succeeded
expect_match "an image of another machine is warned of" 'riscv64' c image import "$T/foreign.tar"
check "an archive of xz whose last padding is missing" c image import "$T/packed.tar.xz"
check "an archive of 120 images" c image import "$T/many.tar"
expect "… all of them" 120 eval 'c image list | grep -c "rep.test/many"'
pod "
apiVersion: v1
kind: Pod
metadata: {name: waiting}
spec:
  $quick
  containers: [{name: c, image: 'rep.test/late:1', imagePullPolicy: Never, command: [/bin/sh, -c, 'while :; do :; done']}]"
until_true 20 eval '[ "$(reason_of waiting)" = ErrImageNeverPull ]'
# That it runs at once, and not when the node looks again after ten seconds, is asked without a clock by
# AgentTest.what_waits_for_an_image_starts_at_once_when_it_is_tagged_or_imported.
check "a pod waits for an image that is tagged late" c image tag rep.test/volume:1 rep.test/late:1
check "… and runs then" until_true 20 phase_is waiting Running
k delete pod waiting --grace-period=0 --force >/dev/null 2>&1
woken=0 imports=$(times 3)
for n in $(seq "$imports"); do
  pod "{apiVersion: v1, kind: Pod, metadata: {name: waits-$n}, spec: {$quick, containers: [{name: c, image: 'rep.test/comes:$n', imagePullPolicy: Never, command: [/bin/sh, -c, 'while :; do :; done']}]}}"
  until_true 20 eval "[ \"\$(reason_of waits-$n)\" = ErrImageNeverPull ]"
  c image import "$T/volume.tar" --name "rep.test/comes:$n" >/dev/null && until_true 20 phase_is "waits-$n" Running && woken=$((woken + 1))
  k delete pod "waits-$n" --grace-period=0 --force >/dev/null 2>&1
done
expect "each of $imports imports wakes the pod that waits for it" "$imports" echo "$woken"
check "a name is removed, the image stays with its other one" eval 'c image remove rep.test/late:1 && c image list | grep -q rep.test/volume'

# ---- static pods ----

static() { printf 'apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec: {terminationGracePeriodSeconds: 0, containers: [{name: c, env: [{name: A, value: "%s"}], %s, command: [sleep, "1000"], ports: [{containerPort: 80, hostPort: 18083}]}]}\n' "$1" "$2" "$image"; }
changes=$(times 6)
for n in $(seq "$changes"); do
  static edited "w$n" >"$T/etc/manifests/edited.yaml"
  until_true 10 eval '[ "$(k get pod edited-edge -o "jsonpath={.spec.containers[0].env[0].value} {.status.phase}" 2>/dev/null)" = "w$n Running" ]' || break
done
expect "a static pod with a host port runs again after each of $changes changes" "w$changes Running" k get pod edited-edge -o 'jsonpath={.spec.containers[0].env[0].value} {.status.phase}'
static edited other >"$T/etc/manifests/twin.yaml"
until_true 20 grep -q "edited-edge waits" "$T/coracled.log"
sleep 2  # for more of them
expect "of twins one runs" 1 eval 'ls -d "$T"/log/default_edited-edge_* | wc -l'
check "… and the other is told of, once" eval '[ "$(grep -c "edited-edge waits" "$T/coracled.log")" = 1 ]'
rm -f "$T"/etc/manifests/*.yaml
check "both go with their files" until_true 20 is_absent pod edited-edge
