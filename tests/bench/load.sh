#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The API under load, compared with kube-apiserver and etcd on the same disk: GET, LIST of 1,000 pods of 4 KB, and durable
# creates, over 8 TLS connections (wrk); then 300 watchers, and the memory of 10,000 pods. The two servers alternate; the result
# is the median.
# Without the peer (peer_server.sh) only our figures are printed.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/peer_server.sh"
command -v wrk >/dev/null || skip_all "wrk is missing"
quick && { pods=100 seconds=1 rounds=1 watched=20 many=200; } || { pods=1000 seconds=4 rounds=5 watched=300 many=10000; }
connections=8

# ---- load ----

pod_to_create='{"apiVersion":"v1","kind":"Pod","metadata":{"name":"NAME","namespace":"load"},"spec":{"schedulingGates":[{"name":"bench.example.com/never"}],"automountServiceAccountToken":false,"containers":[{"name":"c","image":"example.invalid/app:1","command":["/app","--serve"],"env":[{"name":"A","value":"1"},{"name":"B","value":"2"}],"ports":[{"containerPort":8080}],"resources":{"requests":{"cpu":"10m","memory":"16Mi"},"limits":{"memory":"64Mi"}},"volumeMounts":[{"name":"d","mountPath":"/data"}]}],"volumes":[{"name":"d","emptyDir":{}}]}}'
write_creates() {
  cat >"$T/post.lua" <<EOF
local before, after = [[${pod_to_create%%NAME*}]], [[${pod_to_create#*NAME}]]
local head = "POST /api/v1/namespaces/load/pods HTTP/1.1\r\nHost: load\r\nAuthorization: Bearer bench\r\nContent-Type: application/json\r\nContent-Length: "
local threads, made, name = 0, 0, ""
function setup(thread) threads = threads + 1; thread:set("id", threads) end
function init() name = "made-" .. os.getenv("ROUND") .. "-" .. id .. "-" end
function request()
  made = made + 1
  local pod = name .. made
  return head .. #before + #pod + #after .. "\r\n\r\n" .. before .. pod .. after
end
EOF
}
# rate SERVER WHAT: requests per second. A response other than 2xx is a failure.
rate() {
  local server=$1 what=$2 path script=() out
  case $what in
    get)    path=/api/v1/namespaces/default/pods/gated-7 ;;
    list)   path=/api/v1/namespaces/default/pods ;;
    create) path=/api/v1/namespaces/load/pods script=(-s "$T/post.lua") ;;
  esac
  out=$(in_ns wrk -t 2 -c "$connections" -d "${seconds}s" --timeout 20s -H 'Authorization: Bearer bench' "${script[@]}" "$server$path" 2>&1)
  if grep -q 'Non-2xx\|Socket errors' <<<"$out"; then not_ok "$what: every answer is good" >&2; sed 's/^/  | /' <<<"$out" >&2; echo 0; return; fi
  awk '/^Requests\/sec:/ {print $2}' <<<"$out"
}
median() { sort -n | awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)]}'; }

trap 'stop_peer; cleanup' EXIT
make_network || skip_all "cannot make network namespaces with veth pairs"
write_config
echo "tokenAuthFile: $T/etc/tokens.csv" >>"$T/etc/config.yaml"
echo 'bench,bench,1,"system:masters"' >"$T/etc/tokens.csv"
start_daemon
write_creates  # write_creates: the script for wrk; it does little work, since it shares the processors with the servers
servers=(ours)
if start_peer; then servers+=(peer); else echo "# no peer: $(why_no_peer)"; fi
url() { [ "$1" = ours ] && echo https://10.55.0.2:6443 || echo https://10.55.0.2:7443; }
config_of() { [ "$1" = ours ] && echo "$T/etc/admin.kubeconfig" || echo "$T/peer/kubeconfig"; }
for server in "${servers[@]}"; do
  in_ns "$driver" gated "$(config_of "$server")" "$pods" || failures=1
  in_ns curl -sfk -o /dev/null -H 'Authorization: Bearer bench' -H 'Content-Type: application/json' "$(url "$server")/api/v1/namespaces" \
    -d '{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"load"}}' || not_ok "a namespace for the load"
done

measure() {  # measure WHAT BAR
  local what=$1 bar=$2 round server
  for round in $(seq "$rounds"); do
    for server in "${servers[@]}"; do ROUND=$round rate "$(url "$server")" "$what" >>"$T/$what.$server"; done
  done
  ours=$(median <"$T/$what.ours")
  if [ -e "$T/$what.peer" ]; then
    awk -v a="$ours" -v b="$(median <"$T/$what.peer")" -v bar="$bar" -v what="$what" 'BEGIN {
      word = (a >= bar * b) ? "held" : "MISSED"
      printf "bench: %-6s %s: %.0f a second, kube-apiserver with etcd %.0f: %.1f times (bar %s)\n", word, what, a, b, a / b, bar}'
  else
    echo "bench: $what: $ours a second"
  fi
}
measure get 8
measure list 8
measure create 4
stop_peer
c delete namespace load --wait=false >/dev/null
until_true 60 sh -c '! "$0" "$@"' nsenter --net="/run/netns/$ns" -- "$coraclectl" --kubeconfig "$T/etc/admin.kubeconfig" get namespace load
in_ns "$driver" watchers "$T/etc/admin.kubeconfig" "$watched" 100 "$((seconds * 3))" || failures=1

# A new daemon for the memory, so that earlier objects have no effect.
c delete pods --all -n default --grace-period=0 --force --wait=true >/dev/null 2>&1
stop_daemon; start_daemon
in_ns "$driver" memory "$T/etc/admin.kubeconfig" "$daemon_pid" "$many" || failures=1
[ "$failures" -eq 0 ]
