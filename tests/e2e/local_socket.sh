#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The local socket: this machine's root reaches the daemon without the network and without TLS, with admin.kubeconfig and nothing
# else. Nobody else gets in by it, and nobody is led to it who means another user, another cluster or another machine.
# for: daemon/api/connection daemon/api/http_server store/client/local_http store/client/http
. "$(dirname "$0")/lib.sh"
start_machine
kubectl=$("$(dirname "$0")/fetch_kubectl.sh" "$cache/kubectl" 2>/dev/null | awk 'END {print $2}')
config=$T/etc/admin.kubeconfig socket=$T/run/api.sock

# Where the daemon's address cannot be reached.
apart() { nsenter --net="/run/netns/$ns-out" -- "$@"; }
ctl() { apart "$coraclectl" --kubeconfig "$config" "$@"; }
ours() { "$coraclectl" --kubeconfig "$1" "${@:2}"; }

expect "the socket is root's alone" "600 0 socket" stat -c '%a %u %F' "$socket"
expect "commands need no network" "node/edge" ctl get nodes -o name
expect "the user is that of the certificate" "kubernetes-admin" ctl auth whoami -o 'jsonpath={.status.userInfo.username}'
expect "--as holds" "jane" ctl auth whoami --as jane -o 'jsonpath={.status.userInfo.username}'

ctl apply -f - >/dev/null <<Y
{apiVersion: v1, kind: Pod, metadata: {name: talker}, spec: {terminationGracePeriodSeconds: 0, containers: [{name: main,
 image: "localhost/busybox:latest", imagePullPolicy: Never, command: [sh, -c, "echo begun; while true; do nc -l -p 7000 -e cat; done"]}]}}
Y
check "a wait sees the pod" ctl wait --for=condition=Ready pod/talker --timeout=60s
expect "logs" "begun" ctl logs talker
expect "exec passes input, output and the exit code" "in 7" eval 'echo in | ctl exec -i talker -- sh -c "cat; exit 7" 2>/dev/null | tr "\n" " "; echo ${PIPESTATUS[1]}'
check "cp takes a megabyte there" eval 'head -c 1000000 /dev/urandom >"$T/data"; ctl cp "$T/data" talker:/data'
check "and back" eval 'ctl cp talker:/data "$T/data.back" && cmp "$T/data" "$T/data.back"'
apart "$coraclectl" --kubeconfig "$config" port-forward talker :7000 >"$T/forward" 2>&1 &
forwarder=$!
until_true 10 grep -q Forwarding "$T/forward"
port=$(sed -n 's/^Forwarding from 127.0.0.1:\([0-9]*\) .*/\1/p' "$T/forward")
expect "port-forward" "hello" eval "echo hello | apart timeout 10 busybox nc 127.0.0.1 $port | head -n 1"
kill "$forwarder"; wait "$forwarder" 2>/dev/null
head -c 200000 /dev/zero | tr '\0' x >"$T/text"
check "a large object passes" eval 'ctl create configmap large --from-file="$T/text" && ctl get configmap large -o "jsonpath={.data.text}" | cmp - "$T/text"'
{ printf '{"metadata":{"name":"larger"},"data":{"text":"'; head -c 8000000 /dev/zero | tr '\0' y; echo '"}}'; } >"$T/more"
expect_fail "a body beyond the limit is refused as over the network" 'too large' \
  ctl create --raw /api/v1/namespaces/default/configmaps -f "$T/more"
expect "… and the next request passes" "configmap/large" ctl get configmap large -o name
ctl get configmaps -w -o name >"$T/watched" 2>&1 &
watcher=$!
until_true 10 grep -q large "$T/watched"
ctl create configmap later >/dev/null
check "a watch sees what comes" until_true 10 grep -q later "$T/watched"
kill "$watcher"; wait "$watcher" 2>/dev/null
faketime=$(ls /usr/lib/*/faketime/libfaketime.so.1 2>/dev/null | head -n 1)
if [ -n "$faketime" ]; then
  expect "a clock after the end of every certificate is no obstacle" "node/edge" \
    apart env LD_PRELOAD="$faketime" FAKETIME="@2080-01-01 00:00:00" DONT_FAKE_MONOTONIC=1 "$coraclectl" --kubeconfig "$config" get nodes -o name
else ok "a clock after the end of every certificate # SKIP libfaketime is missing"; fi
expect_fail "health judges what others reach" '^the API: .*127.0.0.1:6443' ctl health --request-timeout=3s
expect "the server speaks plain HTTP there" "200" curl -s -o /dev/null -w '%{http_code}' --unix-socket "$socket" http://localhost/readyz

# Others
cp "$socket.identity" "$T/identity"; chmod 755 "$T" "$T/run"
reach() { setpriv --reuid=65534 --regid=65534 --clear-groups curl -s -o /dev/null -w '%{http_code}' --max-time 5 --unix-socket "$socket" http://localhost/readyz; }
expect "another user may not connect" "000" reach
chmod 666 "$socket"
expect "… and gets no answer when the mode lets it" "000" reach
chmod 600 "$socket"; chmod 700 "$T/run"

# Kubeconfigs that were changed
changed() { cp "$config" "$T/changed"; sed "$@" -i "$T/changed"; }
changed 's|server: https://127.0.0.1:6443|server: https://127.0.0.1:7443|'
expect_fail "another server is not answered by this one" 'refused' ours "$T/changed" get nodes
changed '/certificate-authority-data/d'
expect_fail "nor one of another CA" 'refused|not the one' ours "$T/changed" get nodes
cp "$config" "$T/changed"
token=$(c create token default)
expect "kubectl's changes leave the rest as it was" 'User "bob" set.' \
  in_ns "${kubectl:-$coraclectl}" --kubeconfig "$T/changed" config set-credentials bob --token="$token"
in_ns "${kubectl:-$coraclectl}" --kubeconfig "$T/changed" config set-context --current --user=bob >/dev/null
expect "a context with another user is that user" "system:serviceaccount:default:default" \
  in_ns "$coraclectl" --kubeconfig "$T/changed" auth whoami -o 'jsonpath={.status.userInfo.username}'
in_ns "${kubectl:-$coraclectl}" --kubeconfig "$T/changed" config set-context --current --user=admin --namespace=kube-system >/dev/null
expect "a context with another namespace still needs no network" "kube-root-ca.crt" \
  apart "$coraclectl" --kubeconfig "$T/changed" get configmap kube-root-ca.crt -o 'jsonpath={.metadata.name}'
echo other >"$socket.identity"
expect_fail "the socket of another machine is not used" 'refused|reach|unreachable' ctl get nodes --request-timeout=3s
expect "… the network is" "node/edge" c get nodes -o name
cp "$T/identity" "$socket.identity"

stop_daemon
check "it is gone with the daemon" test ! -e "$socket"
expect_fail "a command says that nobody is there" 'is coracled running' c get nodes
start_daemon
expect "it is there again" "node/edge" ctl get nodes -o name
kill_daemon
expect_fail "one that a killed daemon left leads nowhere" 'is coracled running' c get nodes
start_daemon
expect "… and is replaced" "node/edge" ctl get nodes -o name
