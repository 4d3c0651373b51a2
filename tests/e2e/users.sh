#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Pods with user namespaces (hostUsers: false): id ranges that no two pods share and that survive the daemon, volumes whose files
# have the same owner on the disk as inside, and everything else that pods do: probes, exec, logs, networks, restarts, terminals,
# deletion.
# for: runtime/container runtime/launch daemon/node/id_ranges daemon/node/volume/volumes runtime/sys/namespaces
. "$(dirname "$0")/lib.sh"
start_machine

pod() { k apply -f - <<<"$1" >/dev/null; }  # the YAML of one pod
phase_is() { [ "$(k get pod "$1" -o 'jsonpath={.status.phase}')" = "$2" ]; }
is_ready() { [ "$(k get pod "$1" -o 'jsonpath={.status.conditions[?(@.type=="Ready")].status}')" = True ]; }
image="image: localhost/busybox:latest, imagePullPolicy: Never"
range_of() { k exec "$1" -c main -- cat /proc/self/uid_map | awk '$1 == 0 && $3 == 65536 { print $2 }'; }
uid_of() { k get pod "$1" -o 'jsonpath={.metadata.uid}'; }
expect "the node says that it can" "true" k get node edge -o 'jsonpath={.status.runtimeHandlers[0].features.userNamespaces}'
mkdir -p "$T/host" && echo given > "$T/host/given" && chown 33:44 "$T/host/given" && chmod 640 "$T/host/given"

pod "
apiVersion: v1
kind: ConfigMap
metadata: {name: conf}
data: {color: blue}"
pod "
apiVersion: v1
kind: Secret
metadata: {name: sec}
stringData: {password: hunter2}"
own_pod() {  # NAME
  pod "
apiVersion: v1
kind: Pod
metadata: {name: $1, labels: {app: $1}}
spec:
  hostUsers: false
  terminationGracePeriodSeconds: 1
  securityContext: {fsGroup: 3000}
  initContainers:
  - {name: first, $image, command: [sh, -c, 'echo made by init > /disk/init; id -u'], volumeMounts: [{name: disk, mountPath: /disk}]}
  containers:
  - name: main
    image: localhost/busybox:latest
    imagePullPolicy: Never
    command: [sh, -c, 'echo began; mkdir -p /www; echo page of $1 > /www/index.html; httpd -p 80 -h /www; touch /ready; cat > /tmp/in; exit 3']
    stdin: true
    readinessProbe: {exec: {command: [test, -e, /ready]}, periodSeconds: 1, timeoutSeconds: 20}
    livenessProbe: {httpGet: {path: /, port: 80}, periodSeconds: 2, timeoutSeconds: 20, initialDelaySeconds: 2}
    volumeMounts:
    - {name: disk, mountPath: /disk}
    - {name: memory, mountPath: /memory}
    - {name: host, mountPath: /host}
    - {name: host, mountPath: /part, subPath: made/here}
    - {name: conf, mountPath: /conf}
    - {name: sec, mountPath: /sec}
    - {name: down, mountPath: /down}
  - {name: side, $image, command: [sh, -c, 'until [ -e /dev/shm/x ]; do sleep 0.1; done; stat -c \"shm %u\" /dev/shm/x; sleep 10000'],
     securityContext: {runAsUser: 1000, runAsGroup: 1000}, volumeMounts: [{name: disk, mountPath: /disk}, {name: sec, mountPath: /sec}]}
  volumes:
  - {name: disk, emptyDir: {}}
  - {name: memory, emptyDir: {medium: Memory, sizeLimit: 1Mi}}
  - {name: host, hostPath: {path: $T/host, type: Directory}}
  - {name: conf, configMap: {name: conf}}
  - {name: sec, secret: {secretName: sec, defaultMode: 0400}}
  - {name: down, downwardAPI: {items: [{path: labels, fieldRef: {fieldPath: metadata.labels}}]}}"
}
own_pod one
own_pod two
check "a pod with users of its own gets ready" until_true 30 is_ready one
check "and another" until_true 30 is_ready two
one=$(range_of one) two=$(range_of two)
check "both have a range of 65536 ids" test -n "$one" -a -n "$two"
check "that is not the other's" test "$((one > two ? one - two : two - one))" -ge 65536
check "and none of the host's own" test "$one" -ge 65536 -a "$two" -ge 65536
expect "all containers of a pod have the same" "$one" eval "k exec one -c side -- cat /proc/self/uid_map | awk '{ print \$2 }'"
expect "root is root inside" "0:0" eval "k exec one -c main -- sh -c 'echo \$(id -u):\$(id -g)'"
state=$T/state/pods/$(uid_of one)
host_pid=$(our_processes -f "httpd -p 80 -h /www" | while read -r p; do [ "$(stat -c %u "/proc/$p")" = "$one" ] && echo "$p" && break; done)
check "and somebody else outside" test -n "$host_pid"

expect "volumes have their owners inside" "0:3000 777
0:3000 777
33:44
0:3000 644
0:3000 440
0:0
0:0" k exec one -c main -- sh -c 'stat -c "%u:%g" /disk /memory | while read o; do echo $o 777; done; stat -c %u:%g /host/given; stat -Lc "%u:%g %a" /conf/color /sec/password; stat -c %u:%g /etc/hosts /dev/termination-log'
expect "and are read and written" "made by init
given
blue
hunter2
app=\"one\"" k exec one -c main -- sh -c 'cat /disk/init /host/given; cat /conf/color; echo; cat /sec/password; echo; cat /down/labels; echo; echo new > /disk/new; echo new > /host/new; echo new > /memory/new; echo new > /part/new; touch /host/users; chown 1000:2000 /host/users'
expect "its service account's token too" "yes" k exec one -c main -- sh -c 'test -s /var/run/secrets/kubernetes.io/serviceaccount/token && echo yes'
expect "on the disk a container's root is root's" "0:0 0:0 1000:2000 33:44" eval "echo \$(stat -c %u:%g $state/volumes/disk/new | sed s/:3000/:0/) \$(stat -c %u:%g $T/host/new $T/host/users $T/host/given)"
expect "a part of a volume too" "0:0" stat -c %u:%g "$T/host/made/here/new"
expect "in memory it is itself" "$one" stat -c %u "$state/volumes/memory/new"
expect "what it writes to its image's files is its own on the disk" "$one" eval "stat -c %u \$(find $T/state/runtime/images/snapshots/$(uid_of one).main-0/upper -name ready)"
expect "nothing of the image was given away" "0" stat -c %u "$(find "$T/state/runtime/images" -path '*/layers/*' -name busybox | grep -v snapshots | head -1)"
k exec one -c main -- sh -c 'echo x > /dev/shm/x'
check "containers of a pod share their memory" until_true 5 eval "k logs one -c side | grep -q 'shm 0'"
expect_fail "a user of a pod is not its root" "denied" k exec one -c side -- sh -c 'cat /disk/init >/dev/null && touch /root/x'
expect "another user is himself" "1000 1000 65534" eval "k exec one -c side -- sh -c 'echo \$(id -u) \$(stat -Lc %u /proc/self) \$(stat -c %u /sys)'"

# ---- what it may not do ----
expect "power ends at the pod" "0" eval "k exec one -c main -- sh -c '
  echo x > /proc/sys/kernel/core_pattern && echo CORE; echo b > /proc/sysrq-trigger && echo SYSRQ
  mount -t tmpfs x /tmp && echo MOUNT; umount /proc/sys && echo UMOUNT; mknod /tmp/d b 8 0 && echo NODE; mkdir /sys/fs/cgroup/x && echo CGROUP
  true' 2>/dev/null | grep -c ."
expect_fail "with the host's network it is refused" "spec.hostNetwork: Forbidden: when .hostUsers. is false" k run bad --image=x --overrides='{"spec":{"hostUsers":false,"hostNetwork":true}}'
expect_fail "with the host's processes too" "spec.HostPID: Forbidden: when .hostUsers. is false" k run bad --image=x --overrides='{"spec":{"hostUsers":false,"hostPID":true}}'
expect_fail "and it is so for good" "may not change fields" eval "k patch pod one --type=merge -p '{\"spec\":{\"hostUsers\":true}}'"
pod "
apiVersion: v1
kind: Pod
metadata: {name: kernel}
spec:
  hostUsers: false
  containers: [{name: main, $image, volumeMounts: [{name: firmware, mountPath: /x}]}]
  volumes: [{name: firmware, hostPath: {path: /sys/kernel}}]"
check "a volume that cannot be id-mapped is named" until_true 20 eval "k get events | grep -q 'volume \"firmware\".*cannot be id-mapped'"
k delete pod kernel --grace-period=0 --force >/dev/null 2>&1
pod "
apiVersion: v1
kind: Pod
metadata: {name: high}
spec:
  hostUsers: false
  containers: [{name: main, $image, securityContext: {runAsUser: 70000}}]"
check "an id outside of the range too" until_true 20 eval "k get events | grep -q 'id 70000 of container main is outside'"
k delete pod high --grace-period=0 --force >/dev/null 2>&1
pod "
apiVersion: v1
kind: Pod
metadata: {name: privileged}
spec:
  hostUsers: false
  restartPolicy: Never
  containers:
  - name: main
    image: localhost/busybox:latest
    imagePullPolicy: Never
    securityContext: {privileged: true}
    command: [sh, -c, 'grep CapEff /proc/self/status; for d in /dev/mem /dev/kmsg /dev/vda /dev/sda; do head -c 1 \$d >/dev/null 2>&1 && echo READ \$d; done;
      echo 1 > /proc/sys/kernel/panic && echo PANIC; mount -t tmpfs x /tmp && echo mounted; echo x > /dev/null && echo null']"
check "a privileged one ends" until_true 20 phase_is privileged Succeeded
expect_match "it has every capability" 'CapEff:.*1ffffffffff' k logs privileged
expect "over nothing but its own" "mounted null" eval "k logs privileged | grep -vE 'CapEff|sh:' | xargs echo"

# The pod's root may set file capabilities in its image.
mkdir "$T/rootfs/capable" && cp "$(command -v busybox)" "$T/rootfs/capable/busybox" && setcap cap_net_raw+ep "$T/rootfs/capable/busybox" 2>/dev/null && cap=1 || cap=
c image pack "$T/rootfs" localhost/capable:latest --cmd sh >/dev/null
pod "
apiVersion: v1
kind: Pod
metadata: {name: capable}
spec:
  hostUsers: false
  restartPolicy: Never
  containers:
  - {name: main, image: localhost/capable:latest, imagePullPolicy: Never, command: [/capable/busybox, grep, CapEff, /proc/self/status], securityContext: {runAsUser: 1000}}"
check "a pod of another image ends" until_true 20 phase_is capable Succeeded
[ -z "$cap" ] || expect_match "a file's capabilities count inside" 'CapEff:.*0000000000002000' k logs capable

# ---- networks and streams ----
two_ip=$(k get pod two -o 'jsonpath={.status.podIP}')
expect "pods reach each other" "page of two" k exec one -c main -- wget -qO- "http://$two_ip/"
k expose pod two --port=80 --name=two >/dev/null
check "and Services" until_true 10 eval "k exec one -c main -- wget -qO- http://two/ | grep -q 'page of two'"
expect "names and sysctls are the pod's" "one 0" eval "k exec one -c main -- sh -c 'echo \$(hostname) \$(cat /proc/sys/net/ipv4/ip_unprivileged_port_start)'"
expect "its output can be opened again" "again" k exec one -c main -- sh -c 'echo again > /dev/stdout'
expect "also by others" "again" k exec one -c side -- sh -c 'echo again > /dev/stdout'
expect_match "a terminal is its own" '0 620$' eval "script -qec '$(declare -f k in_ns); ns=$ns T=$T coraclectl=$coraclectl KUBECTL=${KUBECTL:-}; k exec -it one -c main -- sh -c \"stat -c \\\"%u %a\\\" \\\$(tty)\"' /dev/null | tr -d '\r'"

# ---- restarts of the daemon ----
restarts() { k get pod one -o 'jsonpath={.status.containerStatuses[0].restartCount}'; }
kill_daemon
start_daemon
check "pods live on when the daemon is killed" until_true 20 is_ready one
expect "nothing was started again" "0" restarts
expect "ranges are as they were" "$one $two" eval "echo \$(range_of one) \$(range_of two)"
own_pod three
check "a new pod starts" until_true 30 is_ready three
three=$(range_of three)
check "with a range that neither has" test "$three" != "$one" -a "$three" != "$two"
k exec one -c main -- sh -c 'kill $(pidof cat)'
check "a container that ends is started again" until_true 30 eval "[ \"\$(restarts)\" = 1 ] && is_ready one"
expect "with the pod's users and files" "$one made by init" eval "echo \$(range_of one) \$(k exec one -c main -- cat /disk/init)"
stop_daemon
start_daemon
check "an orderly restart changes nothing either" until_true 20 is_ready one
expect "not the ranges" "$one $two $three" eval "echo \$(range_of one) \$(range_of two) \$(range_of three)"
k patch configmap conf --type=merge -p '{"data":{"color":"green"}}' >/dev/null
check "what a configMap shows is brought up to date" until_true 30 eval "[ \"\$(k exec one -c main -- cat /conf/color)\" = green ]"
expect "and still the pod's" "0" k exec one -c main -- stat -Lc %u /conf/color

# ---- deletion ----
k delete pod one --wait=true --timeout=120s >/dev/null
check "what is deleted leaves nothing" until_true 10 eval "[ ! -e $state ] && ! grep -q $(basename "$state") /proc/self/mountinfo"
own_pod four
check "another pod starts" until_true 30 is_ready four
expect "its range is the one that became free" "$one" range_of four
exit 0
