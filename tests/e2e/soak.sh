#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The same cycle repeatedly: a Deployment is created, serves, grows, shrinks, rolls and is deleted, containers crash, clients
# connect and disconnect at any point, images are added and removed. Afterwards the machine is as before: no additional
# descriptor, thread, mount, link, rule, cgroup, process or file, and no memory.
#   CORACLE_SOAK_SECONDS   duration (60)
. "$(dirname "$0")/lib.sh"
start_machine
seconds=${CORACLE_SOAK_SECONDS:-60}

cat >"$T/day.yaml" <<'Y'
apiVersion: v1
kind: ConfigMap
metadata: {name: page}
data: {index.html: "hello\n"}
---
apiVersion: v1
kind: Secret
metadata: {name: key}
stringData: {key: s3cret}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      initContainers: 
      - name: before
        image: localhost/busybox:latest
        command: [cp, /page/index.html, /www/]
        volumeMounts: [{name: www, mountPath: /www}, {name: page, mountPath: /page}]
      containers:
      - name: web
        image: localhost/busybox:latest
        command: [httpd, -f, -p, "8080", -h, /www]
        ports: [{name: http, containerPort: 8080}]
        readinessProbe: {httpGet: {path: /index.html, port: http}, periodSeconds: 1, timeoutSeconds: 20}
        livenessProbe: {exec: {command: [cat, /www/index.html]}, periodSeconds: 1, timeoutSeconds: 20}
        volumeMounts: [{name: www, mountPath: /www}, {name: page, mountPath: /page}, {name: key, mountPath: /key}]
      volumes: [{name: www, emptyDir: {medium: Memory}}, {name: page, configMap: {name: page}}, {name: key, secret: {secretName: key}}]
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {type: NodePort, selector: {app: web}, ports: [{port: 80, targetPort: http, nodePort: 30080}]}
---
apiVersion: v1
kind: Pod
metadata: {name: crash}
spec:
  terminationGracePeriodSeconds: 0
  containers: [{name: c, image: localhost/busybox:latest, command: [sh, -c, "echo crashing; exit 1"]}]
Y

day() {
  local address pod
  k apply -f "$T/day.yaml" >/dev/null && k rollout status deployment/web --timeout=120s >/dev/null || return 1
  address=$(k get service web -o 'jsonpath={.spec.clusterIP}')
  for _ in 1 2 3 4 5; do [ "$(in_ns curl -sf -m 20 "http://$address/")" = hello ] || { echo "the Service does not answer"; return 1; }; done
  pod=$(k get pods -l app=web -o 'jsonpath={.items[0].metadata.name}')
  for code in 0 3 7; do k exec "$pod" -- sh -c "cat /key/key; exit $code" >/dev/null 2>&1; [ $? = $code ] || { echo "exec: not $code"; return 1; }; done
  for verb in "get pods -A -w" "logs -f $pod" "exec $pod -- sleep 100" "get events -w"; do (in_ns timeout -s KILL 0.5 "$coraclectl" --kubeconfig "$T/etc/admin.kubeconfig" $verb >/dev/null 2>&1) & done
  k scale deployment/web --replicas=4 >/dev/null && k rollout status deployment/web --timeout=120s >/dev/null || return 1
  k set env deployment/web day=another >/dev/null && k rollout status deployment/web --timeout=120s >/dev/null || return 1
  k get pods -o 'jsonpath={range .items[*]}{.metadata.uid}{"\n"}{end}' >>"$T/pods"
  k scale deployment/web --replicas=1 >/dev/null
  c image pack "$T/rootfs" localhost/other:latest >/dev/null && c image remove localhost/other:latest >/dev/null || return 1
  until_true 30 eval '[ "$(k get pod crash -o "jsonpath={.status.containerStatuses[0].restartCount}")" -ge 1 ]' || { echo "what crashed does not come back"; return 1; }
  k delete -f "$T/day.yaml" >/dev/null || return 1
  until_true 60 eval '[ -z "$(k get pods,replicasets,endpointslices -o name | grep -v /kubernetes)" ]' || { k get pods,replicasets; return 1; }
  k delete events --all >/dev/null
}

# The resources in use, one per line: some may become fewer after idle time, but none may become more.
inventory() {
  echo "descriptors $(find "/proc/$daemon_pid/fd" -mindepth 1 | wc -l)"
  echo "threads $(find "/proc/$daemon_pid/task" -mindepth 1 -maxdepth 1 | wc -l)"
  echo "mounts $(grep -c "$T" "/proc/$daemon_pid/mountinfo")"
  echo "links $(ip -n "$ns" -o link | wc -l)"
  echo "rules $(in_ns nft list ruleset | wc -l)"
  echo "cgroups of pods $(find /sys/fs/cgroup -type d | grep -cFf "$T/pods")"
  echo "files $(find "$T/run" "$T/state" "$T/log" | wc -l)"
}
memory() { awk '$1 == "Pss:" {print $2}' "/proc/$daemon_pid/smaps_rollup"; }  # in KiB
nothing_more() {
  inventory | paste -d ' ' "$T/before" - | awk '{n = NF / 2; if ($NF > $n) {print $0; more = 1}} END {exit more}'
}

days=0
one_day() {
  days=$((days + 1))
  day >"$T/day.log" 2>&1 && return 0
  not_ok "day $days"; sed 's/^/  | /' "$T/day.log" | tail -n 20
  return 1
}
SECONDS=0
: >"$T/pods"
one_day && one_day && one_day
inventory >"$T/before"
days_before=$days memory_before=$(memory)
while [ "$failures" = 0 ] && [ "$SECONDS" -lt "$seconds" ]; do one_day; done
[ "$failures" = 0 ] && ok "$days days went by"
check "nothing is there that was not there before" until_true 60 nothing_more
nothing_more | sed 's/^/# before and now: /'
memory_now=$(memory)
echo "measured: $days days in $SECONDS s; $(inventory | paste -sd,); memory of the daemon $memory_before KiB after $days_before days, $memory_now KiB after $days"
check "its memory has not grown by more than 2 MiB" test $((memory_now - memory_before)) -lt 2048
