#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Problems of a small machine: no network at boot and another address later, a clock that starts in 1970, a full disk, a damaged
# store, a second daemon. The daemon reports the problem, keeps all that it can, and does not touch any pod.
# for: daemon/daemon daemon/main daemon/machine store/engine runtime/sys/clock_watch runtime/sys/netlink
. "$(dirname "$0")/lib.sh"

daemon_says() { tail -c +$((log_from + 1)) "$T/coracled.log" | grep -Eq -- "$1"; }  # since note_log
note_log() { log_from=$(stat -c %s "$T/coracled.log" 2>/dev/null || echo 0); }
node_address() { c get node edge -o 'jsonpath={.status.addresses[0].address}'; }
has_node_address() { [ "$(node_address)" = "$1" ]; }
node_is_ready() { c get node edge -o 'jsonpath={.status.conditions[?(@.type=="Ready")].status}' | grep -qx True; }
restarts_and_start() { c get pod steady -o 'jsonpath={.status.containerStatuses[0].restartCount} {.status.containerStatuses[0].state.running.startedAt}'; }
in_phase() { [ "$(c get pod "$1" -o 'jsonpath={.status.phase}')" = "$2" ]; }
once() {  # once ARGUMENTS...: runs the daemon in the foreground; it must end by itself
  timeout 60 nsenter --net="/run/netns/$ns" -- "$coracled" --config "$T/etc/config.yaml" "$@"
}
from_outside() {  # requests the API on this address as another host would, and verifies the certificate
  nsenter --net="/run/netns/$ns-out" -- "$coraclectl" --kubeconfig "$T/outside.kubeconfig" get --raw /readyz
}

trap cleanup EXIT
make_network || skip_all "cannot make network namespaces with veth pairs"
mkdir -p "$T/state"
mount -t tmpfs -o size=640m,mode=700 tmpfs "$T/state" || skip_all "cannot mount a tmpfs"
write_config

# ---- a machine works without a network; addresses come and go ----

sed -i '/^nodeAddress:/d' "$T/etc/config.yaml"
ip -n "$ns" addr del 10.55.0.2/24 dev eth0
start_daemon
make_busybox >"$T/pack.log" 2>&1 || { echo "Bail out! image pack:"; cat "$T/pack.log"; exit 1; }
expect "without a network the node is where its pods find it" 10.244.0.1 node_address
c run steady --image=localhost/busybox:latest --command -- sleep 100000 >/dev/null
check "… and runs pods" until_true 10 in_phase steady Running
may_set_the_clock() { sed -n 's/^Cap\(Eff\|Prm\):\s*/0x/p' "/proc/$1/status" | while read -r set; do echo -n "$((set >> 25 & 1)) "; done; }
expect "the daemon does without rights that its pods may ask for" "1 0 " may_set_the_clock "$daemon_pid"
c apply -f - >/dev/null <<Y
{apiVersion: v1, kind: Pod, metadata: {name: mighty}, spec: {restartPolicy: Never, containers: [{name: main, image: localhost/busybox:latest,
  command: [sh, -c, "grep CapEff /proc/self/status"], securityContext: {privileged: true}}]}}
Y
check "and a privileged one has" until_true 10 in_phase mighty Succeeded
expect "all that there are" "$(sed -n 's/CapBnd/CapEff/p' /proc/self/status)" c logs mighty
c delete pod mighty --grace-period=0 --force >/dev/null 2>&1
before=$(restarts_and_start)
ip -n "$ns" addr add 10.55.0.2/24 dev eth0; ip -n "$ns" route add default via 10.55.0.1
check "an address that arrives becomes the node's" until_true 20 has_node_address 10.55.0.2
sed 's#https://127.0.0.1:#https://10.55.0.2:#' "$T/etc/admin.kubeconfig" >"$T/outside.kubeconfig"
check "… and the API is reached by it, under a certificate for it" until_true 10 from_outside
ip -n "$ns" addr add 10.55.0.7/24 dev eth0; ip -n "$ns" addr del 10.55.0.2/24 dev eth0
ip -n "$ns" addr show dev eth0 | grep -q 10.55.0.7 || ip -n "$ns" addr add 10.55.0.7/24 dev eth0
ip -n "$ns" route replace default via 10.55.0.1
check "another address takes its place" until_true 20 has_node_address 10.55.0.7
sed -i 's#https://10.55.0.2:#https://10.55.0.7:#' "$T/outside.kubeconfig"
check "… and is served too" until_true 10 from_outside
soon expect "the Service kubernetes leads to it" 10.55.0.7 c get endpoints kubernetes -o 'jsonpath={.subsets[0].addresses[0].ip}'
reaches_api() { c exec steady -- sh -c 'nc -w 2 "$KUBERNETES_SERVICE_HOST" 443 </dev/null'; }
check "pods reach the API by its Service" until_true 10 reaches_api
ip -n "$ns" link set eth0 down
sleep 3  # longer than the daemon waits for addresses to settle
check "a pulled cable changes nothing while the address stays" has_node_address 10.55.0.7
ip -n "$ns" addr del 10.55.0.7/24 dev eth0
check "when the address goes, the node is where its pods find it" until_true 20 has_node_address 10.244.0.1
check "… and pods reach the API as before" until_true 10 reaches_api
expect "the pod noticed nothing of all this" "$before" restarts_and_start
ip -n "$ns" link set eth0 up; ip -n "$ns" addr add 10.55.0.2/24 dev eth0; ip -n "$ns" route replace default via 10.55.0.1
check "the cable is back" until_true 20 has_node_address 10.55.0.2

# ---- a second daemon ----

expect_fail "a second daemon on the same state is told so" 'state.db.*another process' once
sed -e "s#$T/state#$T/state2#; s#runDir: .*#runDir: $T/run2#; s#configDir: .*#configDir: $T/etc2#" "$T/etc/config.yaml" >"$T/config2.yaml"
expect_fail "a taken port is named" '127.0.0.1:6443.*in use' timeout 60 nsenter --net="/run/netns/$ns" -- "$coracled" --config "$T/config2.yaml"
check "the first one goes on" k get --raw /readyz
printf 'nodeName: edge\nserviceCidr: 10.96.0.0/16\n' >"$T/config3.yaml"
expect_fail "an unknown field of the configuration is named" 'serviceCidr' "$coracled" --config "$T/config3.yaml" --check-config
wrong_setting() { printf 'nodeName: edge\n%s\n' "$1" >"$T/config4.yaml"; timeout 60 "$coracled" --config "$T/config4.yaml" ${2---check-config}; }
expect_fail "… a range that is none, with its line" 'config4.yaml: line 2: podCIDR: ' wrong_setting 'podCIDR: 10.244.0.0/40'
expect_fail "… an address that is in no range" 'config4.yaml: line 2: clusterDNS: 10.9.0.1 is not within serviceCIDR' wrong_setting 'clusterDNS: 10.9.0.1'
expect_fail "… a file that is not there" 'config4.yaml: line 2: auditPolicyFile: .*No such file' wrong_setting 'auditPolicyFile: /nowhere.yaml'
echo 'a,b' >"$T/tokens"
expect_fail "… a file that is wrong" "config4.yaml: line 2: tokenAuthFile: $T/tokens: " wrong_setting "tokenAuthFile: $T/tokens"
wrong_setting 'podCIDR: 10.244.0.0/40' '' >/dev/null 2>&1
expect "with such a setting the daemon ends with the status after which it is not tried again" 2 echo $?
expect_fail "a configuration that is not there is named" "nowhere.yaml.*No such file" "$coracled" --config "$T/nowhere.yaml" --check-config

# ---- clients with open connections ----

k logs -f steady >/dev/null 2>&1 & k get pods -w >"$T/watched" 2>&1 & k exec steady -- sleep 90000 >/dev/null 2>&1 &
until_true 20 eval 'grep -q steady "$T/watched" && [ -n "$(our_processes -fx "sleep 90000")" ]'
sleep 1  # by then the follower of the silent log is served too
kill -TERM "$daemon_pid"
check "followers of a silent log, a watch and an exec do not hold up a stop" until_true 8 eval '! kill -0 "$daemon_pid"'
wait "$daemon_pid" 2>/dev/null; daemon_pid=
start_daemon

# ---- a full disk ----

c create configmap before --from-literal=a=b >/dev/null
head -c 700M /dev/zero >"$T/state/filler" 2>/dev/null
big=$(head -c 300000 /dev/zero | tr '\0' x)
printf 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: big}\ndata: {a: "%s"}\n' "$big" >"$T/big.yaml"
expect_fail "a write that the disk cannot hold is refused in words" 'disk|space' k create -f "$T/big.yaml"
expect_fail "… and is not there afterwards" 'not found' k get configmap big
expect "what was there is read" b k get configmap before -o 'jsonpath={.data.a}'
expect "the pod runs on" "$before" restarts_and_start
rm "$T/state/filler"
check "with space again writes are taken" until_true 20 k create -f "$T/big.yaml"
kill_daemon; start_daemon
expect "… and kept" 300000 eval "k get configmap big -o 'jsonpath={.data.a}' | wc -c"
k delete configmap big >/dev/null

# ---- the clock starts in 1970 ----

faketime=$(ls /usr/lib/*/faketime/libfaketime.so.1 2>/dev/null | head -n 1)
if [ -z "$faketime" ]; then
  ok "a clock at 1970 # SKIP libfaketime is missing"
else
  stop_daemon
  rm -rf "$T/state/pki"  # a first boot: certificates are created with that clock
  note_log
  nsenter --net="/run/netns/$ns" -- env LD_PRELOAD="$faketime" "FAKETIME=@1970-01-01 00:00:30" DONT_FAKE_MONOTONIC=1 \
    "$coracled" --config "$T/etc/config.yaml" >>"$T/coracled.log" 2>&1 &
  daemon_pid=$!
  check "a first boot at 1970 comes to be ready, and clients trust it" until_true 20 ready
  c run early --image=localhost/busybox:latest --command -- sleep 100000 >/dev/null
  check "… and runs a new pod" until_true 15 in_phase early Running
  expect "… and the old one runs on" "$before" restarts_and_start
  stop_daemon; start_daemon
  check "today, the certificates of that day serve" k get --raw /readyz
  expect "… its pod runs on" 0 c get pod early -o 'jsonpath={.status.containerStatuses[0].restartCount}'
  check "… and the node is ready" until_true 20 node_is_ready
  c delete pod early --grace-period=1 >/dev/null
fi

# ---- a damaged store ----

for i in $(seq 40); do echo "---"; printf 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: fill-%s}\ndata: {a: "%s"}\n' "$i" "${big:0:3000}"; done >"$T/fill.yaml"
k apply -f "$T/fill.yaml" >/dev/null
stop_daemon
cp "$T/state/state.db" "$T/good.db"
dd if=/dev/urandom of="$T/state/state.db" bs=4096 seek=6 count=6 conv=notrunc status=none
expect_fail "a damaged store is refused, and what to do is said" 'damaged.*--set-aside-damaged' once
check "… and left as it was" eval '[ "$(ls "$T"/state/state.db* | wc -l)" = 1 ]'
cp "$T/state/state.db" "$T/damaged.db"
cp "$T/good.db" "$T/state/state.db"
expect_match "a copy put in its place is intact" intact once --set-aside-damaged
start_daemon
expect "… and everything is there" 40 eval "k get configmaps -o name | grep -c /fill-"
expect "… the pod ran on" "$before" restarts_and_start
stop_daemon
cp "$T/damaged.db" "$T/state/state.db"
expect_match "without a copy it is set aside" 'kept=.*state.db.damaged-' once --set-aside-damaged
check "… and kept" eval 'cmp "$T"/state/state.db.damaged-* "$T/damaged.db"'
start_daemon
check "an empty store begins" until_true 20 node_is_ready
check "… and pods nobody knows any more are ended" until_true 40 eval '! our_processes -f "sleep 100000" | grep -q .'
