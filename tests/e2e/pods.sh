#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Features of pods: users, environment, init containers, probes, hooks, restarts, volumes, confinement, termination, static pods.
# for: runtime daemon/node daemon/event store/kinds/pod
. "$(dirname "$0")/lib.sh"
start_machine

pod() { k apply -f - <<<"$1" >/dev/null; }  # the YAML of one pod
phase_is() { [ "$(k get pod "$1" -o 'jsonpath={.status.phase}')" = "$2" ]; }
image="image: localhost/busybox:latest, imagePullPolicy: Never"

pod "
apiVersion: v1
kind: ConfigMap
metadata: {name: conf}
data: {color: blue, file.txt: 'first'}"
pod "
apiVersion: v1
kind: Secret
metadata: {name: sec}
stringData: {password: hunter2}"
pod "
apiVersion: v1
kind: Pod
metadata: {name: env, labels: {a: b}, annotations: {note: hey}}
spec:
  restartPolicy: Never
  initContainers:
  - {name: first, $image, command: [sh, -c, 'echo made by init > /shared/file'], volumeMounts: [{name: shared, mountPath: /shared}]}
  containers:
  - name: main
    image: localhost/busybox:latest
    imagePullPolicy: Never
    workingDir: /tmp
    command: [sh, -c]
    args: ['echo \$(GREETING) \$COLOR \$PASSWORD \$NAME \$(pwd) \$(id -u) \$(id -g) \$LIMIT; cat /shared/file /conf/file.txt /sec/password; cat /down/labels; ls /var/run/secrets/kubernetes.io/serviceaccount; echo \$P_color']
    env:
    - {name: WHO, value: world}
    - {name: GREETING, value: 'hello-\$(WHO)'}
    - {name: COLOR, valueFrom: {configMapKeyRef: {name: conf, key: color}}}
    - {name: PASSWORD, valueFrom: {secretKeyRef: {name: sec, key: password}}}
    - {name: NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
    - {name: LIMIT, valueFrom: {resourceFieldRef: {resource: limits.memory, divisor: 1Mi}}}
    envFrom: [{prefix: P_, configMapRef: {name: conf}}]
    resources: {limits: {memory: 64Mi}}
    securityContext: {runAsUser: 1000, runAsGroup: 2000}
    volumeMounts:
    - {name: shared, mountPath: /shared}
    - {name: conf, mountPath: /conf}
    - {name: sec, mountPath: /sec, readOnly: true}
    - {name: down, mountPath: /down}
  securityContext: {fsGroup: 3000}
  volumes:
  - {name: shared, emptyDir: {}}
  - {name: conf, configMap: {name: conf}}
  - {name: sec, secret: {secretName: sec}}
  - {name: down, downwardAPI: {items: [{path: labels, fieldRef: {fieldPath: metadata.labels}}]}}
"
check "a pod with init container and volumes succeeds" until_true 20 phase_is env Succeeded
expect "env, args, user, files" 'hello-world blue hunter2 env /tmp 1000 2000 64
made by init
firsthunter2a="b"ca.crt
namespace
token
blue' k logs env -c main

pod "
apiVersion: v1
kind: Pod
metadata: {name: jail}
spec:
  restartPolicy: Never
  containers:
  - name: main
    image: localhost/busybox:latest
    imagePullPolicy: Never
    command:
    - sh
    - -c
    - |
      grep -E '^(NoNewPrivs|Seccomp|CapEff):' /proc/self/status
      hostname; cat /etc/hostname
      mount -t tmpfs x /mnt 2>/dev/null && echo MOUNTED
      mknod /tmp/x c 1 1 2>/dev/null && head -c 1 /tmp/x >/dev/null 2>&1 && echo DEVICE
      echo x > /proc/sys/kernel/core_pattern 2>/dev/null && echo CORE
      echo b > /proc/sysrq-trigger 2>/dev/null && echo SYSRQ
      cat /proc/kcore 2>/dev/null | head -c 1 | grep -q . && echo KCORE
      ls /proc | grep -c '^[0-9]'
      ip link | grep -c ': eth0'
      stat -c '%a %F' /dev/shm /dev/null
    securityContext: {allowPrivilegeEscalation: false}
"
check "the jail pod ends" until_true 20 phase_is jail Succeeded
expect_match "no new privileges" '^NoNewPrivs:.1$' k logs jail
expect_match "seccomp filters" '^Seccomp:.2$' k logs jail
expect_match "only the default capabilities" '^CapEff:.00000000a80425fb$' k logs jail
expect "nothing gets out" "0" eval "k logs jail | grep -cE 'MOUNTED|DEVICE|CORE|SYSRQ|KCORE'"
expect_match "the hostname is the pod's" '^jail$' k logs jail

pod "
apiVersion: v1
kind: Pod
metadata: {name: crash}
spec:
  terminationGracePeriodSeconds: 0
  containers: [{name: main, $image, command: [sh, -c, 'echo try; echo why > /dev/termination-log; exit 9']}]
"
check "a crashing container is restarted with back-off" until_true 40 eval "k get pod crash | grep -E 'CrashLoopBackOff'"
expect "its exit code is kept" "9" k get pod crash -o 'jsonpath={.status.containerStatuses[0].lastState.terminated.exitCode}'
expect "its last words too" "why" k get pod crash -o 'jsonpath={.status.containerStatuses[0].lastState.terminated.message}'
expect "its previous log too" "try" k logs crash --previous
soon expect_match "an event says so" 'BackOff' k get events

pod "
apiVersion: v1
kind: Pod
metadata: {name: words}
spec:
  restartPolicy: Never
  securityContext: {runAsUser: 65534}
  containers:
  - {name: main, $image, volumeMounts: [{name: v, mountPath: /data, subPath: a/b}],
     command: [sh, -c, 'touch /data/f && printf \"wrote \\\\377 at \$HOME\" > /dev/termination-log; exit 3']}
  volumes: [{name: v, emptyDir: {}}]
"
check "a pod whose last words are no UTF-8 ends all the same" until_true 20 phase_is words Failed
expect "what it said is readable; any user writes to a subPath, and has a home" "$(printf 'wrote \357\277\275 at /')" \
  k get pod words -o 'jsonpath={.status.containerStatuses[0].state.terminated.message}'
k delete pod crash --wait=false >/dev/null

pod "
apiVersion: v1
kind: Pod
metadata: {name: greedy}
spec:
  containers:
  - {name: main, $image, volumeMounts: [{name: v, mountPath: /data}],
     command: [sh, -c, 'dd if=/dev/zero of=/data/f bs=1048576 count=4; sleep 100000']}
  volumes: [{name: v, emptyDir: {sizeLimit: 1Mi}}]
"
pod "
apiVersion: v1
kind: Pod
metadata: {name: foreign}
spec: {os: {name: windows}, containers: [{name: main, $image}]}
"
check "a pod of another operating system fails" until_true 20 phase_is foreign Failed
expect "and says why" "PodOSNotSupported" k get pod foreign -o 'jsonpath={.status.reason}'
check "a pod whose volume passes its limit is evicted" until_true 60 phase_is greedy Failed
expect "and says which" 'Evicted Usage of EmptyDir volume "v" exceeds the limit "1Mi". ' \
  k get pod greedy -o 'jsonpath={.status.reason} {.status.message}'
k delete pod foreign greedy --wait=false >/dev/null
lease_renewed() { k get lease -n kube-node-lease -o 'jsonpath={.items[0].spec.renewTime}'; }
renewed_first=$(lease_renewed)
is_renewed() { [ "$(lease_renewed)" != "$renewed_first" ]; }
check "the node's lease is renewed all the time" until_true 15 is_renewed

pod "
apiVersion: v1
kind: Pod
metadata: {name: probes}
spec:
  terminationGracePeriodSeconds: 5
  containers:
  - name: main
    image: localhost/busybox:latest
    imagePullPolicy: Never
    command: [sh, -c, 'touch /tmp/ready; trap \"echo bye; exit 0\" TERM; while :; do sleep 1 & wait; done']
    startupProbe: {exec: {command: [test, -e, /tmp/ready]}, periodSeconds: 1, timeoutSeconds: 10, failureThreshold: 30}
    readinessProbe: {exec: {command: [test, -e, /tmp/ready]}, periodSeconds: 1, timeoutSeconds: 10, failureThreshold: 1}
    livenessProbe: {exec: {command: [test, '!', -e, /tmp/dead]}, periodSeconds: 1, timeoutSeconds: 10, failureThreshold: 1}
    lifecycle: {postStart: {exec: {command: [sh, -c, 'echo started > /tmp/hook']}}, preStop: {exec: {command: [sh, -c, 'echo stopping > /proc/1/fd/1']}}}
"
ready_is() { [ "$(k get pod "$1" -o 'jsonpath={.status.conditions[?(@.type=="Ready")].status}')" = "$2" ]; }
check "probes make it ready" until_true 20 ready_is probes True
expect "postStart ran" "started" k exec probes -- cat /tmp/hook
k exec probes -- rm /tmp/ready
check "a failing readiness probe makes it unready" until_true 20 ready_is probes False
k exec probes -- touch /tmp/ready
check "… and ready again" until_true 20 ready_is probes True
k exec probes -- touch /tmp/dead
check "a failing liveness probe restarts it" until_true 40 eval "[ \"\$(k get pod probes -o 'jsonpath={.status.containerStatuses[0].restartCount}')\" = 1 ]"
check "preStop and SIGTERM came first" until_true 10 eval "k logs probes --previous | grep -q stopping && k logs probes --previous | grep -q bye"
check "it goes gracefully" k delete pod probes --timeout=120s

cat > "$T/etc/manifests/static.yaml" <<Y
apiVersion: v1
kind: Pod
metadata: {name: static}
spec:
  terminationGracePeriodSeconds: 0
  containers: [{name: main, $image, command: [sleep, "100000"]}]
Y
check "a static pod runs as a mirror" until_true 20 phase_is static-edge Running
soon expect_match "… of whose first start describe tells" 'Started container main' k describe pod static-edge
sed -i 's/Seconds: 0/Seconds: "0"/' "$T/etc/manifests/static.yaml"
check "a value of the wrong type in its file is told by file and field" until_true 20 grep -q \
  'static\.yaml.*spec\.terminationGracePeriodSeconds: expected an integer' "$T/coracled.log"
expect "… and its pod goes on" Running k get pod static-edge -o 'jsonpath={.status.phase}'
rm "$T/etc/manifests/static.yaml"
check "… and goes with its file" until_true 20 is_absent pod static-edge

pod "
apiVersion: v1
kind: Pod
metadata: {name: update}
spec:
  terminationGracePeriodSeconds: 0
  containers: [{name: main, $image, command: [sleep, '100000'], volumeMounts: [{name: conf, mountPath: /conf}, {name: one, mountPath: /one.txt, subPath: file.txt}]}]
  volumes: [{name: conf, configMap: {name: conf}}, {name: one, configMap: {name: conf}}]
"
check "update pod runs" until_true 20 phase_is update Running
k patch configmap conf -p '{"data":{"file.txt":"second"}}' >/dev/null
check "a changed ConfigMap reaches the volume" until_true 30 eval "[ \"\$(k exec update -- cat /conf/file.txt)\" = second ]"
expect "a subPath stays as it was" "first" k exec update -- cat /one.txt

expect_fail "no such command is said plainly" 'StartError|not found|no such file|exec' eval "
pod 'apiVersion: v1
kind: Pod
metadata: {name: nocmd}
spec: {restartPolicy: Never, containers: [{name: main, $image, command: [/no/such]}]}'
until_true 20 phase_is nocmd Failed; k get pod nocmd -o 'jsonpath={.status.containerStatuses[0].state.terminated}'; false"
pod "
apiVersion: v1
kind: Pod
metadata: {name: noimage}
spec: {containers: [{name: main, image: localhost/none:latest, imagePullPolicy: Never}]}
"
check "an absent image that may not be pulled is said plainly" until_true 20 eval "k get pod noimage | grep -q ErrImageNeverPull"
pod "
apiVersion: v1
kind: Pod
metadata: {name: big}
spec: {containers: [{name: main, $image, command: [sleep, '1'], resources: {requests: {memory: 10Ti}}}]}
"
check "what does not fit stays Pending with a reason" until_true 10 eval "k describe pod big | grep -q '0/1 nodes are available: 1 Insufficient memory'"

pod "
apiVersion: v1
kind: Pod
metadata: {name: host}
spec:
  restartPolicy: Never
  hostNetwork: true
  containers: [{name: main, $image, command: [sh, -c, 'ip -4 addr show eth0 | grep -o 10.55.0.2']}]
"
check "hostNetwork pod ends" until_true 20 phase_is host Succeeded
expect "hostNetwork is the node's" "10.55.0.2" k logs host
