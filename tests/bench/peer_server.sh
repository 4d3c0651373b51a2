# SPDX-License-Identifier: Apache-2.0
# Source it after lib.sh: kube-apiserver 1.20 with etcd in the script's network namespace, as a server to compare with. Nothing
# else of Kubernetes runs: no pod starts, and no controller acts. The token "bench" is its administrator's.
#   CORACLE_PEER   a directory with kube-apiserver and etcd (default: kube_apiserver.sh makes one)
peers=
peer_maker=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/kube_apiserver.sh

peer_kubeconfig() {
  cat >"$T/peer/kubeconfig" <<EOF
{"apiVersion": "v1", "kind": "Config", "current-context": "peer",
 "clusters": [{"name": "peer", "cluster": {"server": "https://10.55.0.2:7443", "certificate-authority": "$T/peer/certs/apiserver.crt"}}],
 "users": [{"name": "peer", "user": {"token": "bench"}}],
 "contexts": [{"name": "peer", "context": {"cluster": "peer", "user": "peer"}}]}
EOF
}

# start_peer: $T/peer/kubeconfig is for it. Fails if it cannot be had or does not become ready; why_no_peer says why.
start_peer() {
  local programs
  mkdir -p "$T/peer/certs"
  programs=${CORACLE_PEER:-$("$peer_maker" "$cache" 2>"$T/peer/why")} || return 1
  [ -x "$programs/kube-apiserver" ] || { echo "there is no kube-apiserver in $programs" >"$T/peer/why"; return 1; }
  openssl genrsa -out "$T/peer/account.key" 2048 2>/dev/null
  echo 'bench,bench,1,"system:masters"' >"$T/peer/tokens.csv"
  peer_kubeconfig
  nsenter --net="/run/netns/$ns" -- "$programs/etcd" --data-dir "$T/peer/etcd" --listen-client-urls http://127.0.0.1:7379 \
    --advertise-client-urls http://127.0.0.1:7379 --listen-peer-urls http://127.0.0.1:7380 >"$T/peer/etcd.log" 2>&1 &
  peers=$!
  nsenter --net="/run/netns/$ns" -- "$programs/kube-apiserver" --etcd-servers http://127.0.0.1:7379 --secure-port 7443 \
    --bind-address 10.55.0.2 --advertise-address 10.55.0.2 --service-cluster-ip-range 10.97.0.0/16 --cert-dir "$T/peer/certs" \
    --token-auth-file "$T/peer/tokens.csv" --authorization-mode RBAC --disable-admission-plugins ServiceAccount \
    --service-account-issuer https://peer --service-account-key-file "$T/peer/account.key" \
    --service-account-signing-key-file "$T/peer/account.key" >"$T/peer/apiserver.log" 2>&1 &
  peers="$peers $!"
  until_true 60 in_ns curl -sfk -H 'Authorization: Bearer bench' https://10.55.0.2:7443/readyz
}
stop_peer() { [ -z "$peers" ] || kill $peers 2>/dev/null; peers=; }
why_no_peer() { cat "$T/peer/why" 2>/dev/null; tail -n 3 "$T/peer/apiserver.log" 2>/dev/null; }
