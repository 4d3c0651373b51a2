#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Commands that stand beside the verbs: proxy, debug, plugins, preferences, help; and flags that change how a command waits, asks
# or shows.
# for: ctl store/client
. "$(dirname "$0")/lib.sh"
command -v curl >/dev/null || skip_all "curl is missing"
start_machine

export HOME=$T/home
mkdir -p "$HOME" "$T/plugins"
image=localhost/busybox:latest
c create deployment web --image=$image -- sh -c 'echo hello; exec sleep 100000' >/dev/null
c scale deployment/web --replicas=2 >/dev/null
c rollout status deployment/web --timeout=120s >/dev/null
pod=$(c get pods -l app=web -o 'jsonpath={.items[0].metadata.name}')

# ---- proxy ----
start_proxy() {  # start_proxy ARGUMENT...: in the background; sets proxy_pid, and $port where it listens on one
  in_main_shell
  : >"$T/proxy.out"
  nsenter --net="/run/netns/$ns" -- "$coraclectl" --kubeconfig "$T/etc/admin.kubeconfig" proxy "$@" >"$T/proxy.out" 2>"$T/proxy.err" &
  proxy_pid=$!
  until_true 10 grep -q 'Starting to serve' "$T/proxy.out"
  port=$(sed -n 's/^Starting to serve on 127.0.0.1:\([0-9]*\)$/\1/p' "$T/proxy.out")
}
stop_proxy() { kill "$proxy_pid" 2>/dev/null; wait "$proxy_pid" 2>/dev/null; }
get() { in_ns curl -sS --max-time 20 "$@"; }
status_of() { get -o /dev/null -w '%{http_code}' "$@"; }

mkdir -p "$T/www/sub"
echo page >"$T/www/a.txt"
start_proxy --port=0 --www="$T/www"
check "proxy: --port=0 prints the port" test -n "$port"
expect "proxy: the API, without credentials" "PodList" eval "get localhost:$port/api/v1/pods | jq -r .kind"
expect "proxy: a file" "page" get "127.0.0.1:$port/static/a.txt"
expect "proxy: a part of it" "ag" get -r 1-2 "127.0.0.1:$port/static/a.txt"
expect "proxy: a directory" '<a href="a.txt">a.txt</a>' eval "get 127.0.0.1:$port/static/ | grep a.txt"
expect "proxy: files do not lead out" "404" status_of --path-as-is "127.0.0.1:$port/static/../../../etc/passwd" -L
expect "proxy: another host is refused" "403 Forbidden" eval "get -H 'Host: evil.example' -w '%{http_code} ' -o '$T/body' 127.0.0.1:$port/api/v1/pods; cat '$T/body'"
expect "proxy: exec is refused" "403" status_of "127.0.0.1:$port/api/v1/namespaces/default/pods/$pod/exec?command=id"
expect "proxy: … however it is written" "403" status_of --path-as-is "127.0.0.1:$port/api/v1/namespaces/default/pods/$pod/%65xec?command=id"
expect "proxy: a change with a body" "x" eval "get -X POST -H 'Content-Type: application/json' -d '{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"x\"}}' localhost:$port/api/v1/namespaces/default/configmaps | jq -r .metadata.name"
expect "proxy: a body of unknown length" "y" eval "echo '{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"y\"}}' | get -X POST -H 'Content-Type: application/json' -H 'Transfer-Encoding: chunked' -T - localhost:$port/api/v1/namespaces/default/configmaps | jq -r .metadata.name"
expect "proxy: an error of the server's comes as it is" "404 NotFound" eval "get -w '%{http_code} ' -o '$T/body' localhost:$port/api/v1/namespaces/default/pods/none; jq -r .reason '$T/body'"
get -N "localhost:$port/api/v1/namespaces/default/configmaps?watch=true" >"$T/watch" &
watch_pid=$!
until_true 10 grep -q '"name":"x"' "$T/watch"
check "proxy: a watch has begun" grep -q '"name":"x"' "$T/watch"
c create configmap later >/dev/null
check "proxy: … and goes on" until_true 10 grep -q '"name":"later"' "$T/watch"
kill "$watch_pid" 2>/dev/null; wait "$watch_pid" 2>/dev/null
stop_proxy

# A second request behind the first one's body, which the server would take, is a request that nobody has looked at.
start_proxy --port=0
smuggle() {
  in_ns timeout 20 bash -c 'exec 3<>"/dev/tcp/127.0.0.1/$1"
    printf "GET /version HTTP/1.1\r\nHost: localhost\r\n\r\nPOST /api/v1/namespaces/default/pods/$2/exec?command=id HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n" >&3
    cat <&3' - "$port" "$pod" | grep -c '^HTTP/1.1'
}
expect "proxy: one request of a connection" "1" smuggle
stop_proxy

head -c 30000000 /dev/zero | tr '\0' x > "$T/body.30m"
refused_body() {
  get -X POST -H 'Content-Type: application/json' -H 'Expect:' --data-binary "@$T/body.30m" "localhost:$port/api/v1/namespaces/default/configmaps" |
    jq -r .reason
}
refused_bodies() { for _ in 1 2 3 4 5; do [ "$(refused_body)" = RequestEntityTooLarge ] || return 1; done; }
start_proxy --port=0
check "proxy: bodies that are refused before they have come" refused_bodies
stop_proxy
start_proxy --port=0 --server=https://127.0.0.1:6443
check "proxy: … over the network" refused_bodies
stop_proxy

start_proxy --port=0 --reject-paths='^$' --accept-hosts='.*'
check "proxy: a relaxed filter is told" grep -q 'vulnerable' <(c proxy --disable-filter --port=-1 2>&1)
proxy_exec() { in_ns "$coraclectl" --server="http://127.0.0.1:$port" --kubeconfig /dev/null "$@"; }
expect "proxy: exec goes through it" "through" proxy_exec exec "$pod" -- echo through
expect "proxy: … with input" "given" eval "echo given | proxy_exec exec -i $pod -- cat"
stop_proxy

start_proxy --unix-socket="$T/proxy.sock"
expect "proxy: a socket" "Starting to serve on $T/proxy.sock" cat "$T/proxy.out"
expect "proxy: … that only we may open" "700" stat -c %a "$T/proxy.sock"
expect "proxy: … answers" "v1.36" eval "get --unix-socket '$T/proxy.sock' http://localhost/version | jq -r .gitVersion | cut -c1-5"
stop_proxy
start_proxy --port=0 --api-prefix=/k8s-api
expect "proxy: --api-prefix" "PodList" eval "get localhost:$port/k8s-api/api/v1/pods | jq -r .kind"
expect "proxy: … is the only place" "404" status_of "localhost:$port/api/v1/pods"
stop_proxy
expect_fail "proxy: --port and --unix-socket" 'cannot set --unix-socket and --port at the same time' c proxy --port=1 --unix-socket=x
expect_fail "proxy: an expression that is none" '--accept-paths: error parsing regexp' c proxy --port=0 --accept-paths='('

# ---- debug ----
expect_match "debug: an ephemeral container" '^Defaulting debug container name to debugger-[a-z0-9]{5}\.$' c debug "$pod" --image=$image -- sleep 1000
debugger=$(c get pod "$pod" -o 'jsonpath={.spec.ephemeralContainers[0].name}')
check "debug: … runs" until_true 30 eval "c get pod $pod -o json | jq -e '.status.ephemeralContainerStatuses[0].state.running'"
expect "debug: … is reached by exec" "in" c exec "$pod" -c "$debugger" -- echo in
soon expect "debug: -i joins it" "typed" eval "echo typed | c debug $pod -q -i --image=$image --target=busybox -- head -n 1"
expect "debug: the output of a container that has ended" "done" eval "c debug $pod -q --attach --image=$image -- echo done 2>/dev/null"
c debug "$pod" --copy-to=copy --image=$image --same-node -q -- sleep 1000 >/dev/null
check "debug: a copy" c wait --for=condition=Ready pod/copy --timeout=120s
expect "debug: … without the labels" "null true" eval "c get pod copy -o json | jq -r '\"\\(.metadata.labels) \\(.spec.shareProcessNamespace)\"'"
expect "debug: a copy with another command" "copied" eval "c debug $pod --copy-to=other --container=busybox --attach -q -- echo copied 2>/dev/null"
c debug copy --copy-to=copy2 --image=$image --replace -q -- sleep 1000 >/dev/null
check "debug: --replace" c wait --for=delete pod/copy --timeout=120s
expect "debug: a node" "edge" eval "c debug node/edge -q --attach --image=$image -- cat /host/etc/hostname >'$T/node.out' 2>/dev/null; c get pods -l app.kubernetes.io/managed-by=kubectl-debug -o 'jsonpath={.items[0].spec.nodeName}'"
expect "debug: … sees its file system" "$(cat /etc/hostname)" cat "$T/node.out"
expect_fail "debug: another kind" '"apps/v1, Kind=Deployment" not supported by debug' c debug deployment/web --image=$image
expect_fail "debug: no image" 'you must specify --image when not using --copy-to' c debug "$pod"

# ---- plugins ----
cat >"$T/plugins/kubectl-foo" <<'P'
#!/bin/sh
echo "foo $# $1 $(basename "$KUBECTL_PATH")"
exit 7
P
printf '#!/bin/sh\necho "longest $*"\n' >"$T/plugins/coraclectl-foo-bar_baz"
printf '#!/bin/sh\necho "create plugin $*"\n' >"$T/plugins/kubectl-create-thing"
printf '#!/bin/sh\n' >"$T/plugins/kubectl-get"
chmod 755 "$T/plugins"/*
p() { PATH=$T/plugins:$PATH "$coraclectl" "$@"; }
expect "plugin: arguments and environment" "foo 2 a b coraclectl" p foo "a b" -n
expect "plugin: … and its exit status" "7" eval "p foo >/dev/null; echo \$?"
expect "plugin: the longest name" "longest -x" p foo bar-baz -x
expect "plugin: below create" "create plugin -y" p create thing -y
expect "plugin: never instead of a command" "0" eval "p get --help | grep -c plugin"
expect_fail "plugin: no flags before it" 'flags cannot be placed before plugin name: -n' p -n x foo
expect_match "plugin list" "^$T/plugins/kubectl-foo\$" eval "PATH=$T/plugins p plugin list"
expect_match "plugin list: warnings" '  - warning: kubectl-get overwrites existing command: "coraclectl get"' eval "PATH=$T/plugins p plugin list"
expect_fail "plugin list: … count" '^error: 2 plugin warnings were found' eval "PATH=$T/plugins p plugin list"
expect "plugin list --name-only" "coraclectl-foo-bar_baz" eval "PATH=$T/plugins p plugin list --name-only 2>/dev/null | grep bar"

# ---- preferences ----
expect "kuberc set" "Updated $HOME/.kube/kuberc" c kuberc set --section defaults --command get --option output=name
expect "kuberc: a default" "node/edge" c get nodes
expect "kuberc: … that the line replaces" "edge" eval "c get nodes -o json | jq -r '.items[0].metadata.name'"
expect_fail "kuberc set: no overwriting" 'already exist, use --overwrite to replace' c kuberc set --section defaults --command get --option output=wide
c kuberc set --section aliases --name getn --command get --prependarg nodes --option output=wide >/dev/null
expect_match "kuberc: an alias" '^edge +Ready ' c getn
expect "kuberc view" "getn" eval "c kuberc view -o json | jq -r '.aliases[0].name'"
expect_match "KUBERC=off" '^edge +Ready ' eval "KUBERC=off c get nodes"
expect_match "KUBECTL_KUBERC=false" '^edge +Ready ' eval "KUBECTL_KUBERC=false c get nodes"
expect_fail "kuberc: a file that is not there" 'error occurred while applying preferences' c --kuberc /nonexistent get nodes
rm -r "$HOME/.kube"

# ---- help ----
expect_match "help COMMAND" '^  coraclectl rollout status ' c help rollout status
expect_match "help: what only we have stands by itself" '^Commands of Coracle Alone:' c
expect_match "options" '^  -n, --namespace=' c options
expect "help: of an unknown topic" "Unknown help topic [\`nothing\`]" eval "c help nothing 2>&1 >/dev/null | head -n 1"
expect_match "help: defaults are the program's" '--grace-period=-1 ' c delete --grace-period=5 --help
expect "version --client -o json" "v1.36" eval "c version --client -o json | jq -r .clientVersion.gitVersion | cut -c1-5"
expect "version: both" "4" eval "c version | grep -c Version:"
expect_fail "version: another format" "--output must be 'yaml' or 'json'" c version -o x

# ---- flags ----
expect "logs --all-pods" "2" eval "c logs deployment/web --all-pods | grep -c '^\[pod/web-.*/busybox\] hello'"
expect_fail "logs -f: --max-log-requests" 'maximum allowed concurrency is 1, use --max-log-requests' c logs -f -l app=web --max-log-requests=1
expect_match "get --server-print=false" '^NAME +AGE$' c get pods --server-print=false
expect "get --subresource" "2" eval "c get deployment web --subresource=scale -o json | jq .spec.replicas"
expect "get --chunk-size" "2" eval "c get pods -l app=web --chunk-size=1 -o name | wc -l"
expect_fail "get --subresource of a list" 'subresource cannot be used when bulk resources are specified' c get pods --subresource=status
printf 'apiVersion: v1\nkind: Pod\nmetadata: {name: there}\nstatus: {phase: Running}\n' >"$T/pod.yaml"
expect "wait --local" "pod/there condition met" c wait --local -f "$T/pod.yaml" --for='jsonpath={.status.phase}=Running'
expect_fail "wait --local: not so" 'condition not met for pods/there' c wait --local -f "$T/pod.yaml" --for='jsonpath={.status.phase}=Failed'
expect_match "delete -i asks" '^configmap/x$' eval "echo n | c delete configmap x -i"
expect "delete -i: no" "x" eval "echo n | c delete configmap x -i >/dev/null; c get configmap x -o 'jsonpath={.metadata.name}'"
expect_match "delete -i: yes" 'configmap "x" deleted' eval "echo y | c delete configmap x -i"
cat >"$T/editor" <<'E'
#!/bin/sh
sed -i 's/replicas: 2/replicas: 1/' "$1"
E
chmod 755 "$T/editor"
edit_it() { in_ns env EDITOR="$T/editor" "$coraclectl" --kubeconfig "$T/etc/admin.kubeconfig" edit "$@"; }
expect_match "edit --output-patch" '^Patch: .*"replicas":1' edit_it deployment/web --output-patch
expect_match "explain --api-version" '^VERSION: +v2' c explain horizontalpodautoscalers --api-version=autoscaling/v2
expect_fail "explain: another version" 'GVR ./v9, Resource=pods. not found' c explain pods --api-version=v9
expect_match "top node" '^NAME +CPU' c top node
expect_match "top pod --show-swap" 'SWAP\(bytes\)' c top pod --show-swap
expect_match "certificate -o" '"kind": "CertificateSigningRequest"' eval "
  openssl req -new -newkey rsa:2048 -nodes -keyout /dev/null -subj /CN=someone 2>/dev/null >'$T/csr'
  jq -n --arg r \"\$(base64 -w0 '$T/csr')\" '{apiVersion: \"certificates.k8s.io/v1\", kind: \"CertificateSigningRequest\", metadata: {name: \"someone\"}, spec: {request: \$r, signerName: \"kubernetes.io/kube-apiserver-client\", usages: [\"client auth\"]}}' | c create -f - >/dev/null
  c certificate approve someone -o json"
expect "exec -f" "by file" eval "printf 'apiVersion: v1\nkind: Pod\nmetadata: {name: $pod}\n' >'$T/named.yaml'; c exec -f '$T/named.yaml' -c busybox -- echo 'by file'"
expect_fail "attach: a completed pod" 'cannot attach a container in a completed pod; current phase is Succeeded' eval "
  c run over --image=$image --restart=Never --command -- true >/dev/null
  c wait --for='jsonpath={.status.phase}=Succeeded' pod/over --timeout=120s >/dev/null
  c attach over"
check "--match-server-version: the same" c --match-server-version get pods
expect_fail "--profile" '--profile=cpu: only none' c --profile=cpu get pods
