#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# kubeconfigs, global flags, config, auth, discovery and --raw, by kubectl and by coraclectl, side by side: each case runs with both in
# the same place, and what they print, to which stream, with which exit code, and what they leave in the files, has to be the same.
# Cases are lines of shell, in which `ctl` is either program. Those that differ on purpose stand below them, each with the reason.
# for: ctl/config ctl/kubeconfig ctl/auth ctl/policy ctl/api_resources ctl/cluster_info ctl/discovery ctl/raw ctl/session ctl/command store/client
. "$(dirname "$0")/lib.sh"
kubectl=$("$here/fetch_kubectl.sh" "$cache/kubectl" | sort -V -k3 | tail -n 1 | cut -d' ' -f2)
[ -n "$kubectl" ] || skip_all "no kubectl can be had"
start_machine
k -n default create configmap first --from-literal=a=1 >/dev/null

# ---- where each case begins ----
place=$T/place start=$T/start
mkdir -p "$start/.kube" "$start/pki"
in_place() { (cd "$place" && HOME=$place nsenter --net="/run/netns/$ns" -- "$@"); }
cp "$T/etc/admin.kubeconfig" "$start/live"
for part in certificate-authority client-certificate client-key; do
  sed -n "s/^ *$part-data: *\"\{0,1\}\([^\" ]*\).*/\1/p" "$start/live" | head -n 1 | base64 -d >"$start/pki/$part"
done
server=$(sed -n 's/^ *server: *"\{0,1\}\([^" ]*\).*/\1/p' "$start/live" | head -n 1)
cat >"$start/.kube/config" <<Y
apiVersion: v1
kind: Config
current-context: one
clusters:
- {name: first, cluster: {server: "$server", certificate-authority: ../pki/certificate-authority}}
- {name: second, cluster: {server: "https://second.invalid:6443", insecure-skip-tls-verify: true, proxy-url: "http://proxy.invalid:1"}}
contexts:
- {name: one, context: {cluster: first, user: admin}}
- {name: two, context: {cluster: second, user: plugin, namespace: shop}}
- {name: broken, context: {cluster: first, user: half}}
users:
- {name: admin, user: {client-certificate: ../pki/client-certificate, client-key: ../pki/client-key}}
- {name: half, user: {client-certificate: /no/cert, client-key: /no/key, as-groups: [x]}}
- {name: basic, user: {username: u, password: p}}
- {name: plugin, user: {exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: none, args: [a]}}}
- {name: installed, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: ../plugin, interactiveMode: Never, env: [{name: TOKEN_FILE, value: "$start/token"}]}}}
- {name: absent, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: no-such-plugin, interactiveMode: IfAvailable, installHint: "apt install it"}}}
- {name: failing, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: "false", interactiveMode: Never}}}
- {name: silent, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: "true", interactiveMode: Never}}}
- {name: file, user: {tokenFile: $start/token}}
Y
cat >"$start/other" <<Y
apiVersion: v1
kind: Config
current-context: three
clusters: [{name: third, cluster: {server: "https://third.invalid"}}, {name: first, cluster: {server: "https://hidden.invalid"}}]
contexts: [{name: three, context: {cluster: third, user: red}}]
users: [{name: red, user: {token: secret}}]
Y
printf 'a: 1\n\tb\n' >"$start/bad"
: >"$start/empty"
c -n default create token default >"$start/token"
cat >"$start/plugin" <<'P'
#!/bin/sh
printf '{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":{"token":"%s"}}' "$(cat "$TOKEN_FILE")"
P
chmod 755 "$start/plugin"
cat >"$start/rules.yaml" <<'Y'
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: made, namespace: default}
rules: [{apiGroups: ["", apps], resources: [pods, deployments], verbs: [get, list]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: made, namespace: default}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: made}
subjects: [{kind: User, apiGroup: rbac.authorization.k8s.io, name: jane}]
Y
echo '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"raw"},"data":{"a":"1"}}' >"$start/map.json"

# ---- a case ----
run_case() {  # run_case PROGRAM LINE: leaves out, err, code and files in $T/said
  rm -rf "$place" "$T/said"; mkdir "$T/said"; cp -a "$start" "$place"
  ctl() { in_place env "${environment[@]}" "$program" "$@"; }
  local program=$1 environment=(A=)
  (cd "$place" && eval "$2") >"$T/said/out" 2>"$T/said/err" </dev/null
  echo $? >"$T/said/code"
  # One reader for both, and the quicker one: files differ in the order of their keys, not in what they say.
  for file in .kube/config other empty new sub/new; do
    [ -e "$place/$file" ] || continue
    echo "== $file"; "$coraclectl" --kubeconfig "$place/$file" config view --raw
  done >"$T/said/files" 2>&1
  ls -A "$place" "$place/.kube" >"$T/said/list"
  sed -i -E 's/coraclectl/kubectl/g; /^E[0-9]{4} .*<$/,/^ >$/d; /^[EWI][0-9]{4} /d' "$T/said/err" "$T/said/out"
}
both() {  # both LINE
  run_case "$kubectl" "$1"; rm -rf "$T/by_kubectl"; mv "$T/said" "$T/by_kubectl"
  run_case "$coraclectl" "$1"
  sed -i 's#/\.kube/cache##; /^cache$/d' "$T/by_kubectl/list"
  check "$1" diff -r "$T/by_kubectl" "$T/said"
}
readable() {  # readable LINE: what coraclectl leaves can be read by kubectl, too
  run_case "$coraclectl" "$1"
  expect "(read by kubectl) $1" "$(sed -n '/^== \.kube/,/^== other/p' "$T/said/files" | grep -v '^== ')" in_place "$kubectl" config view --raw
}
exits_alike() {  # exits_alike LINE: words may differ
  run_case "$kubectl" "$1"; local want; want=$(cat "$T/said/code")
  run_case "$coraclectl" "$1"
  expect "(exit code) $1" "$want" cat "$T/said/code"
}
both_lines() { while IFS= read -r line; do case $line in ''|'#'*) ;; *) both "$line" ;; esac; done; }

both_lines <<'CASES'
# config: what it shows
ctl config view
ctl config view --raw
ctl config view -o json
ctl config view --minify
ctl config view --minify --context two
ctl config view --minify --context none
ctl config view --flatten
ctl config view --flatten --minify
ctl config view -o jsonpath='{.users[*].name}'
ctl config view -o 'jsonpath={.clusters[?(@.name=="second")].cluster.server}'
ctl config view --merge=false
ctl config view --kubeconfig other
ctl config view --kubeconfig other --raw
ctl config view --kubeconfig empty
environment=(KUBECONFIG=.kube/config:other); ctl config view
environment=(KUBECONFIG=other:.kube/config); ctl config view --raw
environment=(KUBECONFIG=none:other:other); ctl config view
environment=(KUBECONFIG=other:.kube/config); ctl config current-context
environment=(KUBECONFIG=empty:other); ctl config get-contexts
ctl config current-context
ctl --kubeconfig empty config current-context
ctl config get-contexts
ctl config get-contexts -o name
ctl config get-contexts --no-headers
ctl config get-contexts two
ctl config get-contexts two none
ctl config get-contexts -o wide
ctl config get-contexts -o junk
ctl config get-users
# config: contexts
ctl config use-context two; ctl config current-context
ctl config use two
environment=(KUBECONFIG=.kube/config:other); ctl config use-context three
environment=(KUBECONFIG=.kube/config:other); ctl config set-context three --namespace=x
environment=(KUBECONFIG=new:other); ctl config set-context fresh --cluster=third
environment=(KUBECONFIG=sub/new); ctl config set-cluster c --server=https://x
ctl config rename-context one uno
ctl config rename-context two dos
ctl config rename-context none x
ctl config rename-context one two
ctl config set-context fresh --cluster=first --user=admin --namespace=ns
ctl config set-context one --namespace=ns
ctl config set-context two --namespace=
ctl config set-context --current --namespace=ns
ctl config set-context one --current
ctl config set-context
ctl --kubeconfig empty config set-context --current --namespace=x
ctl config delete-context two
ctl config delete-context one
ctl config delete-context none
ctl config delete-cluster second
ctl config delete-cluster none
ctl config delete-user basic
ctl config delete-user none
# config: clusters
ctl config set-cluster fresh --server=https://fresh
ctl config set-cluster first --server=https://changed
ctl config set-cluster first --tls-server-name=name; ctl config set-cluster first --server=https://changed
ctl config set-cluster first --insecure-skip-tls-verify=true
ctl config set-cluster second --insecure-skip-tls-verify=false
ctl config set-cluster second --certificate-authority=pki/certificate-authority
ctl config set-cluster second --certificate-authority=.kube/beside
ctl config set-cluster second --certificate-authority=pki/certificate-authority --embed-certs
ctl config set-cluster second --embed-certs
ctl config set-cluster second --embed-certs --certificate-authority=none
ctl config set-cluster second --certificate-authority=x --insecure-skip-tls-verify
ctl config set-cluster first --proxy-url=socks5://p:1
# config: users
ctl config set-credentials fresh --token=t
ctl config set-credentials basic --token=t
ctl config set-credentials basic --password=other
ctl config set-credentials admin --username=u --password=p
ctl config set-credentials admin --token=t --username=u
ctl config set-credentials fresh --client-certificate=pki/client-certificate --client-key=pki/client-key
ctl config set-credentials fresh --client-certificate=pki/client-certificate --client-key=pki/client-key --embed-certs=true
ctl config set-credentials fresh --embed-certs
ctl config set-credentials fresh --client-key=none --embed-certs
ctl config set-credentials plugin --exec-command=other
ctl config set-credentials plugin --exec-arg=x,y --exec-arg=z
ctl config set-credentials plugin --exec-env=A=1; ctl config set-credentials plugin --exec-env=A=2 --exec-env=B-
ctl config set-credentials fresh --exec-command=c --exec-api-version=client.authentication.k8s.io/v1 --exec-interactive-mode=Never --exec-provide-cluster-info=true
ctl config set-credentials fresh --auth-provider=oidc --auth-provider-arg=a=1 --auth-provider-arg=b=2; ctl config set-credentials fresh --auth-provider=oidc --auth-provider-arg=a-
# config: set and unset
ctl config set clusters.first.server https://x
ctl config set clusters.10.0.0.1.server https://x
ctl config set clusters.first.insecure-skip-tls-verify true
ctl config set clusters.first.insecure-skip-tls-verify maybe
ctl config set users.admin.client-key-data a2V5
ctl config set users.admin.client-key-data key --set-raw-bytes=true
ctl config set contexts.one.namespace ns
ctl config set contexts.fresh.cluster first
ctl config set current-context two
ctl config set clusters.first.server ''
ctl config unset clusters.first.certificate-authority
ctl config unset clusters.first
ctl config unset clusters
ctl config unset contexts.none
ctl config unset contexts.none.namespace
ctl config unset current-context
environment=(KUBECONFIG=empty:other); ctl config unset current-context
ctl config unset users.basic.password
# flags of all commands, and their errors
ctl get configmap first -o name
ctl get configmap first -o name --context none
ctl get configmap first -o name --cluster none
ctl get configmap first -o name --user none
ctl get configmap first -o name --context none --user none
ctl get configmap first -o name --context broken
ctl get configmap first -o name --user basic --token x
ctl get configmap first -o name --kubeconfig none
ctl get configmap first -o name --as-group x
ctl get configmap first -o name --client-certificate pki/client-certificate --user basic
ctl get configmap first -o name --client-certificate none --client-key none
ctl get configmap first -o name --certificate-authority none
ctl get configmap first -o name --cluster second --user admin --server $server --certificate-authority pki/certificate-authority --insecure-skip-tls-verify
ctl get configmap first -o name --cluster first --insecure-skip-tls-verify
ctl get configmap first -o name --kubeconfig empty --server $server --insecure-skip-tls-verify --client-certificate pki/client-certificate --client-key pki/client-key
ctl get configmap first -o name --kubeconfig empty --server $server --certificate-authority pki/certificate-authority --client-certificate pki/client-certificate --client-key pki/client-key
ctl get configmap first -o name --user file
ctl get configmap first -o name --user installed
ctl get configmap first -o name --user absent
ctl get configmap first -o name --user failing
ctl get configmap first -o name --user absent --token "$(cat $start/token)"
ctl get configmap first -o name --as jane
ctl get configmap first -o name --as jane --as-group system:masters
ctl get configmap first -o name --tls-server-name localhost
ctl get configmap first -o name -n kube-system
ctl get configmap first -o name --request-timeout 5s
ctl get configmap first -o name --request-timeout 5
# auth
ctl auth whoami
ctl auth whoami --as jane --as-uid 7 --as-group a --as-group b
ctl auth whoami --as jane --as-user-extra scopes=view --as-user-extra scopes=edit
ctl auth whoami --user file
ctl auth can-i get pods
ctl auth can-i get pods --as jane
ctl auth can-i list deploy.apps/web --as jane
ctl auth can-i get pods --subresource=log
ctl auth can-i get pods -q
ctl auth can-i get pods -q --as jane
ctl auth can-i list nodes
ctl auth can-i list nodes -A
ctl auth can-i gte pods
ctl auth can-i get gadgets
ctl auth can-i get gadgets.example.com
ctl auth can-i get /healthz
ctl auth can-i gte /healthz
ctl auth can-i get /healthz --as jane
ctl auth can-i get /healthz --subresource x
ctl auth can-i '*' '*'
ctl auth can-i get
ctl auth can-i --list
ctl auth can-i --list --as jane
ctl auth can-i --list --as system:serviceaccount:default:default --no-headers
ctl auth can-i --list -A
ctl auth can-i get pods --no-headers
ctl auth reconcile -f rules.yaml --dry-run=client
ctl auth reconcile -f rules.yaml; ctl auth reconcile -f rules.yaml; ctl delete -f rules.yaml -o name
ctl auth reconcile -f rules.yaml -o name; sed -i 's/get, list/get, watch/; s/jane/joan/' rules.yaml; ctl auth reconcile -f rules.yaml; sed -i 's/watch/delete/' rules.yaml; ctl auth reconcile -f rules.yaml --remove-extra-permissions --remove-extra-subjects; ctl delete -f rules.yaml -o name
ctl auth reconcile -f rules.yaml 2>&1; sed -i 's/name: made}$/name: other}/' rules.yaml; ctl auth reconcile -f rules.yaml; ctl delete rolebinding made -o name; ctl delete role made -o name
ctl auth reconcile -f rules.yaml --dry-run=server
ctl auth reconcile
# discovery
ctl api-versions
ctl api-resources
ctl api-resources -o name
ctl api-resources -o wide
ctl api-resources --no-headers --namespaced=false
ctl api-resources --namespaced=true -o name
ctl api-resources --api-group=apps
ctl api-resources --api-group=
ctl api-resources --api-group=none
ctl api-resources --verbs=list,deletecollection -o name
ctl api-resources --categories=all -o name
ctl api-resources --sort-by=name -o name
ctl api-resources --sort-by=kind
ctl api-resources --sort-by=junk
ctl api-resources -o json --api-group=batch
ctl api-resources -o yaml
ctl api-resources -o yaml --api-group=none
# cluster-info
ctl cluster-info dump --namespaces default --output-directory dump >/dev/null; find dump -type f | sort
ctl cluster-info dump --namespaces kube-public -o yaml >dump.yaml; grep -c '^---' dump.yaml
ctl cluster-info
ctl auth whoami -o json | grep -v creationTimestamp
# --raw
ctl get --raw /version
ctl get --raw '/api/v1/namespaces/default/configmaps?limit=1&labelSelector=a%3Db' | sed 's/"resourceVersion":"[0-9]*"//'
ctl get --raw /none
ctl get --raw none
ctl get pods --raw /version
ctl create --raw /api/v1/namespaces/default/configmaps -f map.json | grep -o '"name":"raw"'; ctl delete --raw /api/v1/namespaces/default/configmaps/raw | grep -o '"status":"Success"'
ctl create --raw /api/v1/namespaces/default/configmaps
ctl create --raw /api/v1/namespaces/default/configmaps -f none
ctl create --raw none -f map.json
ctl create --raw /api/v1/namespaces/default/configmaps -f map.json >/dev/null; sed -i 's/"1"/"2"/' map.json; ctl replace --raw /api/v1/namespaces/default/configmaps/raw -f map.json | grep -o '"a":"2"'; ctl delete configmap raw -o name
CASES

readable 'ctl config set-cluster fresh --server=https://x; ctl config set users.basic.token t; ctl config use-context two'

# ---- of these only the exit code is the same ----
while IFS= read -r line; do
  case $line in ''|'#'*) ;; *) exits_alike "$line" ;; esac
done <<'CASES'
# Our words say more, or say it of the file instead of Go's types.
ctl --kubeconfig bad get pods
ctl --kubeconfig bad config view
ctl config use-context none
ctl config use-context
ctl config set-cluster
ctl config set-credentials
ctl config delete-user a b
ctl config delete-context
ctl config delete-cluster a b
ctl config set clusters.first.bogus x
ctl config set bogus x
ctl config set users.admin.client-key-data '*'
ctl config set clusters.first
ctl config unset bogus
ctl config unset
ctl get pods --user silent
ctl get pods --request-timeout soon
ctl auth whoami -o junk
ctl api-resources -o junk
ctl cluster-info dump -o junk
ctl api-versions a
ctl api-resources a
ctl get pods --context two
CASES

expect "plugins are told about the cluster" "true" eval "
  cat >'$start/tells' <<'P'
#!/bin/sh
printf '%s' \"\$KUBERNETES_EXEC_INFO\" >\"\$TOLD\"
printf '{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1\",\"status\":{\"token\":\"%s\"}}' \"\$(cat \"\$TOKEN_FILE\")\"
P
  chmod 755 '$start/tells'
  run_case '$coraclectl' 'ctl config set-credentials tells --exec-command=../tells --exec-api-version=client.authentication.k8s.io/v1 --exec-interactive-mode=Never --exec-provide-cluster-info --exec-env=TOKEN_FILE=$start/token --exec-env=TOLD=$T/told; ctl get pods --user tells'
  jq '.spec.interactive == false and .spec.cluster.server == \"$server\" and (.spec.cluster[\"certificate-authority-data\"] | length > 100)' '$T/told'"

# ---- through a proxy: CONNECT for TLS, none for what NO_PROXY names ----
cat >"$T/proxy.py" <<'P'
import socket, sys, threading
listener = socket.create_server(("127.0.0.1", 3128))
print("ready", flush=True)
def pump(a, b):
    try:
        while data := a.recv(65536): b.sendall(data)
    except OSError: pass
    finally:
        try: b.shutdown(socket.SHUT_WR)
        except OSError: pass
def serve(client):
    head = b""
    while b"\r\n\r\n" not in head: head += client.recv(4096)
    line = head.split(b"\r\n")[0].decode(); print(line, flush=True)
    host, port = line.split()[1].rsplit(":", 1)
    server = socket.create_connection(("10.55.0.2", int(port)))
    client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    threading.Thread(target=pump, args=(client, server), daemon=True).start()
    pump(server, client)
while True:
    client, _ = listener.accept()
    threading.Thread(target=serve, args=(client,), daemon=True).start()
P
nsenter --net="/run/netns/$ns" -- python3 "$T/proxy.py" >"$T/proxy.log" 2>&1 &
proxy_pid=$!
until_true 10 grep -q ready "$T/proxy.log"
port=${server##*:}
connects() { grep -c "^CONNECT kubernetes:$port " "$T/proxy.log"; }
through() { in_ns env "$@"; }
flags="--kubeconfig $T/etc/admin.kubeconfig --server https://kubernetes:$port"
expect "HTTPS_PROXY is used" "configmap/first" through HTTPS_PROXY=http://127.0.0.1:3128 "$coraclectl" $flags get configmap first -o name
expect "… by CONNECT" "1" connects
expect "… and proxy-url of a kubeconfig" "configmap/first" eval "
  cp '$T/etc/admin.kubeconfig' '$T/proxied'
  '$coraclectl' --kubeconfig '$T/proxied' config set-cluster \$('$coraclectl' --kubeconfig '$T/proxied' config get-clusters | tail -n 1) --server=https://kubernetes:$port --proxy-url=http://127.0.0.1:3128 >/dev/null
  in_ns '$coraclectl' --kubeconfig '$T/proxied' get configmap first -o name"
expect "… again by CONNECT" "2" connects
through HTTPS_PROXY=http://127.0.0.1:3128 NO_PROXY=kubernetes "$coraclectl" $flags --request-timeout=1s get configmap first >/dev/null 2>&1
expect "NO_PROXY names a server that is reached without" "2" connects
kill "$proxy_pid"; wait "$proxy_pid" 2>/dev/null
exit 0
