#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# exec, attach, cp and port-forward with kubectl 1.20 (SPDY), 1.32 and 1.36 (WebSocket, SPDY within it) and with coraclectl: data
# arrives complete and in both directions at once; the end of each side is passed on; nothing is left when a client is killed.
# for: daemon/api/exec daemon/api/port_forward daemon/api/spdy daemon/api/websocket daemon/api/logs daemon/api/byte daemon/node/stream/streams daemon/node/stream/log_reader daemon/stream ctl/exec ctl/logs ctl/port_forward ctl/stream ctl/forward ctl/websocket runtime/pause/log runtime/sys/stream
. "$(dirname "$0")/lib.sh"
command -v python3 >/dev/null || skip_all "python3 is missing"
start_machine

cat > "$T/pod.yaml" <<'Y'
apiVersion: apps/v1
kind: Deployment
metadata: {name: talk, labels: {app: talk}}
spec:
  selector: {matchLabels: {app: talk}}
  template:
    metadata: {labels: {app: talk}}
    spec:
      terminationGracePeriodSeconds: 0
      containers:
      - name: main
        image: localhost/busybox:latest
        command: [sh, -c, "mkdir /www; dd if=/dev/urandom of=/www/big bs=1M count=20 2>/dev/null; nc -ll -p 7000 -e cat & exec httpd -f -p 127.0.0.1:8080 -h /www"]
        ports: [{name: web, containerPort: 8080}]
        readinessProbe: {exec: {command: [wget, -q, -O, /dev/null, "http://127.0.0.1:8080/big"]}, periodSeconds: 1, timeoutSeconds: 20}
      - {name: reader, image: "localhost/busybox:latest", stdin: true, command: [cat]}
---
apiVersion: v1
kind: Service
metadata: {name: talk}
spec: {selector: {app: talk}, ports: [{name: http, port: 80, targetPort: web}]}
---
apiVersion: v1
kind: Pod
metadata: {name: host}
spec:
  hostNetwork: true
  terminationGracePeriodSeconds: 0
  containers:
  - {name: main, image: "localhost/busybox:latest", command: [sh, -c, "mkdir /www; echo from the host > /www/big; exec httpd -f -p 127.0.0.1:7001 -h /www"]}
Y

# talk.py PORT FILE: sends FILE to 127.0.0.1:PORT, ends its sending side, and reports whether the same data came back before the
# end.
cat > "$T/talk.py" <<'Y'
import hashlib, socket, sys, threading
port, data = int(sys.argv[1]), open(sys.argv[2], "rb").read()
peer = socket.create_connection(("127.0.0.1", port), 30)
peer.settimeout(60)
def send():
    peer.sendall(data)
    peer.shutdown(socket.SHUT_WR)
threading.Thread(target=send).start()
got = b""
while True:
    piece = peer.recv(1 << 16)
    if not piece: break
    got += piece
print("same" if got == data else f"{len(got)} of {len(data)} bytes, {hashlib.sha256(got).hexdigest()[:8]}")
Y
head -c 5000000 /dev/urandom > "$T/five"

forward() {  # forward WHAT PORTS...: starts it in the background; $forwarder is its pid, $T/forward its output
  : > "$T/forward"
  nsenter --net="/run/netns/$ns" -- "${KUBECTL:-$coraclectl}" --kubeconfig "$T/etc/admin.kubeconfig" -n talk port-forward "$@" >"$T/forward" 2>&1 &
  forwarder=$!
  until_true 20 grep -q '^Forwarding from 127' "$T/forward"
}
end_forward() { kill "$forwarder" 2>/dev/null; wait "$forwarder" 2>/dev/null; }
local_port() { sed -n "s/^Forwarding from 127.0.0.1:\([0-9]*\) -> .*/\1/p" "$T/forward" | sed -n "${1:-1}p"; }
fetch() { in_ns busybox wget -q -O- "http://127.0.0.1:$1/big" | sha256sum | cut -d' ' -f1; }
fetch_at_once() {  # fetch_at_once HOW_MANY PORT WANT
  local i
  for i in $(seq "$1"); do fetch "$2" > "$T/fetched.$i" & done
  for i in $(seq "$1"); do until_true 60 test -s "$T/fetched.$i"; done
  for i in $(seq "$1"); do [ "$(cat "$T/fetched.$i")" = "$3" ] || return 1; rm "$T/fetched.$i"; done
}
open_files() { ls "/proc/$daemon_pid/fd" | wc -l; }
settled() { [ "$(open_files)" -le "$1" ]; }

streams() {
  local who=$1 pod before want tty
  pod=$(c -n talk get pods -l app=talk -o 'jsonpath={.items[0].metadata.name}')
  want=$(c -n talk exec "$pod" -c main -- sha256sum /www/big | cut -d' ' -f1)
  before=$(open_files)
  expect "$who: exec" "main" k -n talk exec "$pod" -c main -- echo main
  expect "$who: exec keeps output and errors apart" "out" eval "k -n talk exec $pod -c main -- sh -c 'echo out; echo err >&2' 2>/dev/null"
  expect "$who: exec passes the exit code" "5" eval "k -n talk exec $pod -c main -- sh -c 'exit 5' >/dev/null 2>&1; echo \$?"
  expect_fail "$who: exec of what is not there" 'no such file|not found' k -n talk exec "$pod" -c main -- nothing
  expect "$who: exec -i sends five megabytes, and their end" "$(sha256sum < "$T/five")" eval "k -n talk exec -i $pod -c main -- sha256sum < $T/five"
  expect "$who: exec -i brings them back meanwhile" "$(sha256sum < "$T/five")" eval "k -n talk exec -i $pod -c main -- cat < $T/five | sha256sum"
  tty="nsenter --net=/run/netns/$ns ${KUBECTL:-$coraclectl} --kubeconfig $T/etc/admin.kubeconfig -n talk exec -it $pod -c main -- sh -c \"tty; stty size\""
  expect_match "$who: exec -it has a terminal" '/dev/pts/' eval "script -qec '$tty' /dev/null </dev/null"
  : >"$T/attached"
  (echo said; until_true 20 grep -qx said "$T/attached") | timeout 120 nsenter --net="/run/netns/$ns" \
    "${KUBECTL:-$coraclectl}" --kubeconfig "$T/etc/admin.kubeconfig" -n talk attach -i "$pod" -c reader >"$T/attached" 2>&1
  expect_match "$who: attach -i" '^said$' cat "$T/attached"
  check "$who: cp into a pod" k cp "$T/five" "talk/$pod:/tmp/$who" -c main
  check "$who: cp out of it" k cp "talk/$pod:/tmp/$who" "$T/back" -c main
  check "$who: … the same bytes" cmp "$T/five" "$T/back"

  forward "pod/$pod" :8080 :7000
  expect "$who: port-forward to what listens on the pod's loopback" "$want" fetch "$(local_port 1)"
  check "$who: … by eight connections at once" fetch_at_once 8 "$(local_port 1)" "$want"
  expect "$who: … both directions at once, and the client's end" "same" in_ns python3 "$T/talk.py" "$(local_port 2)" "$T/five"
  end_forward
  forward "deployment/talk" 18080:8080
  expect "$who: port-forward to a deployment" "$want" fetch 18080
  end_forward
  forward "service/talk" 18081:80
  expect "$who: port-forward to a service's port" "$want" fetch 18081
  end_forward
  forward "pod/host" :7001
  expect "$who: port-forward to a pod in the host's network" "from the host" in_ns busybox wget -q -O- "http://127.0.0.1:$(local_port)/big"
  end_forward
  forward "pod/$pod" :9
  in_ns python3 "$T/talk.py" "$(local_port)" "$T/pod.yaml" >/dev/null 2>&1
  check "$who: a refused port is told" until_true 10 grep -q 'error forwarding port 9 to pod .*connection refused' "$T/forward"
  end_forward

  forward "pod/$pod" :7000
  nsenter --net="/run/netns/$ns" -- python3 -c "
import socket
peer = socket.create_connection(('127.0.0.1', $(local_port)))
peer.sendall(b'x' * 100000)  # and is never read
print('sent', flush=True)
peer.recv(1), input()" <> <(:) > "$T/sent" 2>/dev/null &
  local talker=$!
  until_true 20 test -s "$T/sent"
  kill -KILL "$forwarder"; wait "$forwarder" 2>/dev/null
  nsenter --net="/run/netns/$ns" -- "${KUBECTL:-$coraclectl}" --kubeconfig "$T/etc/admin.kubeconfig" -n talk exec -i "$pod" -c main -- sleep 12345 <> <(:) &
  forwarder=$!
  until_true 10 eval '[ -n "$(our_processes -fx "sleep 12345")" ]'
  kill -KILL "$forwarder"; wait "$forwarder" 2>/dev/null
  check "$who: what a killed client had begun ends" until_true 20 eval '[ -z "$(our_processes -fx "sleep 12345")" ]'
  check "$who: … and no descriptor is left" until_true 20 settled "$((before + 2))"
  kill "$talker" 2>/dev/null; wait "$talker" 2>/dev/null
  return 0
}

check "a namespace" c create namespace talk
check "pods that talk" c -n talk apply -f "$T/pod.yaml"
check "… run" c -n talk rollout status deployment/talk --timeout=120s
check "… in the host's network too" c -n talk wait pod/host --for=condition=Ready --timeout=120s
[ -n "${ONLY_KUBECTL:-}" ] || KUBECTL= streams coraclectl
while read -r suite path version; do
  version=${version#v}
  KUBECTL=$path streams "$(cut -d. -f1,2 <<<"$version")"
done < <("$here/fetch_kubectl.sh" "$cache/kubectl")
