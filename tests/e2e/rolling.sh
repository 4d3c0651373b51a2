#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A Deployment of ten pods behind its Service is rolled many times under steady load through the service address: no request
# fails. The server shuts down gracefully (graceful_server.cc), but has no preStop hook that waits for the rules: the daemon
# itself must not send connections to a pod that has been told to stop.
# for: daemon/controller/workload/deployment daemon/controller/service/endpoint daemon/network daemon/node/probe/probes daemon/node/pod
. "$(dirname "$0")/lib.sh"
start_machine
rolls=${CORACLE_ROLLS:-20}

image() {
  mkdir -p "$T/server/bin"
  cp "$bin/tests/e2e/graceful_server" "$T/server/bin/" &&
    c image pack "$T/server" localhost/server:latest --cmd /bin/graceful_server
}
check "an image of the server" image
revision() {
  c apply -f - <<Y
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 10
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 10
      containers:
      - name: server
        image: localhost/server:latest
        command: [/bin/graceful_server, "8080", "revision-$1"]
        ports: [{containerPort: 8080}]
        readinessProbe: {tcpSocket: {port: 8080}, periodSeconds: 1, timeoutSeconds: 20}
Y
}
check "ten pods" revision 0
c expose deployment web --port=80 --target-port=8080 >/dev/null
check "are rolled out" c rollout status deployment web --timeout=120s
address=$(c get service web -o 'jsonpath={.spec.clusterIP}')
check "the service answers" until_true 10 in_ns python3 -c "import urllib.request as r; r.urlopen('http://$address')"

in_ns python3 "$here/steady_load.py" "$address" 80 4 "$T/stop" >"$T/load" 2>&1 &
load=$!
answered_by() { [ "$(in_ns python3 -c "import urllib.request as r; print(r.urlopen('http://$address').read().decode().strip())")" = "$1" ]; }
done_rolls=0
for roll in $(seq "$rolls"); do
  revision "$roll" >/dev/null && c rollout status deployment web --timeout=120s >/dev/null || { not_ok "roll $roll"; break; }
  until_true 10 answered_by "revision-$roll" || { not_ok "the service answers by revision $roll"; break; }
  done_rolls=$roll
done
touch "$T/stop"
wait "$load"; status=$?
sed 's/^/# /' "$T/load"
expect "rolled $rolls times" "$rolls" echo "$done_rolls"
expect "no request failed" 0 echo "$status"
answered=$(sed -n 's/^answered \([0-9]*\) .*/\1/p' "$T/load") by=$(sed -n 's/.* by \([0-9]*\) .*/\1/p' "$T/load")
check "there was a steady load" [ "${answered:-0}" -gt $((rolls * 20)) ]
check "by one revision after the other" [ "${by:-0}" -gt $((rolls / 2)) ]
echo "1..$test_number"
