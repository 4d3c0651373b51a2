#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The proxy subresources with real pods as backends: methods, bodies, paths, links, upgrades, and servers and clients that
# disconnect. Then the lines of Kubernetes' conformance suite about them, each under its name.
# for: daemon/api/proxy daemon/api/forward daemon/api/upgrade daemon/network
. "$(dirname "$0")/lib.sh"
start_machine

field() { sed -n "s/.*$1: *\"\{0,1\}\([^\" ]*\).*/\1/p" "$T/etc/admin.kubeconfig" | head -n 1 | base64 -d > "$2"; }
field certificate-authority-data "$T/ca.crt"; field client-certificate-data "$T/admin.crt"; field client-key-data "$T/admin.key"
admin() { in_ns curl -s --path-as-is --cacert "$T/ca.crt" --cert "$T/admin.crt" --key "$T/admin.key" --max-time 60 "$@"; }
api=https://127.0.0.1:6443
in_default=/api/v1/namespaces/default
code() { admin -o "$T/body" -w '%{http_code}' "$@"; }
both() { local status; status=$(code "$@"); echo "$status $(cat "$T/body")"; }
message() { admin "$@" | sed -n 's/^ *"message": "\(.*\)",$/\1/p'; }
header() { admin -D - -o /dev/null "${@:2}" | tr -d '\r' | sed -n "s/^$1: //Ip"; }

# An image with the servers for the pods, and openssl if this machine has it. `porter` answers one request according to its method
# and SERVE_PORT_<port>, as the suite's server of that name does; nc runs it for each connection.
root=$T/server-root
mkdir -p "$root"/{bin,tmp,www/cgi-bin,etc}
cp "$(command -v busybox)" "$root/bin/busybox"
for applet in $(busybox --list); do [ "$applet" = busybox ] || ln -s busybox "$root/bin/$applet"; done
if tls=$(command -v openssl); then
  cp "$tls" "$root/bin/openssl"
  ldd "$tls" | grep -o '/[^ ]*' | while read -r library; do mkdir -p "$root$(dirname "$library")"; cp -L "$library" "$root$library"; done
  openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=nobody -keyout "$root/key.pem" -out "$root/cert.pem" 2>/dev/null
fi
cat > "$root/bin/porter" <<'P'
#!/bin/sh
read -r method path version
length=0
while read -r line; do
  line=$(printf %s "$line" | tr -d '\r')
  [ -n "$line" ] || break
  case "$line" in [Cc]ontent-[Ll]ength:*) length=${line#*: };; esac
done
[ "$length" = 0 ] || head -c "$length" >/dev/null
body=$BODY type=text/html
[ -z "$JSON" ] || body="{\"Method\":\"$method\",\"Body\":\"$BODY\"}" type=application/json
printf 'HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %s\r\nConnection: close\r\n\r\n' "$type" "${#body}"
[ "$method" = HEAD ] || printf %s "$body"
P
cat > "$root/bin/echo-server" <<'P'
#!/bin/sh
while read -r line; do [ "$line" = "$(printf '\r')" ] && break; done
printf 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\nConnection: Upgrade\r\n\r\n'
exec head -n 1
P
cat > "$root/bin/dies" <<'P'
#!/bin/sh
while read -r line; do [ "$line" = "$(printf '\r')" ] && break; done
printf 'HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhalf of it'
P
cat > "$root/bin/slow" <<'P'
#!/bin/sh
while read -r line; do [ "$line" = "$(printf '\r')" ] && break; done
printf 'HTTP/1.1 200 OK\r\n\r\n'
for i in 1 2 3; do echo "line $i"; sleep 1; done
P
cat > "$root/www/cgi-bin/sum" <<'P'
#!/bin/sh
printf 'Content-Type: text/plain\r\n\r\n'
echo "$REQUEST_METHOD $QUERY_STRING $(head -c "${CONTENT_LENGTH:-0}" | sha256sum | cut -c1-64)"
P
cat > "$root/www/cgi-bin/headers" <<'P'
#!/bin/sh
printf 'Content-Type: text/plain\r\n\r\n'
env | grep -E '^(HTTP_|REQUEST_URI|PATH_INFO)' | sort
P
echo plain > "$root/www/plain.txt"
echo '<a href="/rewriteme">test</a>' > "$root/www/index.html"
mkdir "$root/www/a b" && echo spaced > "$root/www/a b/ü.txt"
head -c 20000000 /dev/urandom > "$root/www/large.bin"
chmod 755 "$root"/bin/{porter,echo-server,dies,slow} "$root"/www/cgi-bin/*
c image pack "$root" localhost/server:latest --cmd sh >"$T/pack-server.log" 2>&1 || { echo "Bail out! image pack:"; cat "$T/pack-server.log"; exit 1; }

k apply -f - >/dev/null <<'Y'
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - name: web
    image: localhost/server:latest
    command: [sh, -c, "cd /www; for s in echo-server:7001 dies:7002 slow:7003; do nc -ll -p ${s#*:} -e /bin/${s%:*} & done; exec httpd -f -p 8080 -h /www"]
    ports: [{name: http, containerPort: 8080}]
    readinessProbe: {httpGet: {path: /plain.txt, port: http}, periodSeconds: 1, timeoutSeconds: 20}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{name: http, port: 80, targetPort: http}]}
---
apiVersion: v1
kind: Service
metadata: {name: nobody}
spec: {selector: {app: nobody}, ports: [{port: 80}]}
Y
check "a web server becomes ready" k wait --for=condition=Ready pod/web --timeout=120s
is_there() { [ "$("$@")" = plain ]; }
check "… and its service has it" until_true 10 is_there admin "$api$in_default/services/web:http/proxy/plain.txt"
pod=$in_default/pods/web/proxy

expect "kubectl reads through a pod" plain k get --raw "$pod/plain.txt"
expect "… by its port" plain k get --raw "$in_default/pods/web:8080/proxy/plain.txt"
expect "… through a service by the port's name" plain k get --raw "$in_default/services/web:http/proxy/plain.txt"
expect "… and number" plain k get --raw "$in_default/services/web:80/proxy/plain.txt"
expect_fail "… and hears what is not there" "could not find|not found|NotFound" k get --raw "$pod/nothing"
expect "HEAD has the length and no body" "200 20000000 0" admin -I -o /dev/null -w '%{http_code} %header{content-length} %{size_download}' "$api$pod/large.bin"
expect "a query arrives" "GET a=1&b=%2F+x&a=2 e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" admin "$api$pod/cgi-bin/sum?a=1&b=%2F+x&a=2"
expect "a percent-encoded path arrives" spaced admin "$api$pod/a%20b/%C3%BC.txt"
expect "dots lead no higher than the server's root" plain admin "$api$pod/a%20b/../../../plain.txt"
sum=$(sha256sum < "$root/www/large.bin" | cut -c1-64)
large_sum() { admin "$@" | sha256sum | cut -c1-64; }
expect "a large answer comes whole" "$sum" large_sum "$api$pod/large.bin"
expect "a large body arrives whole" "POST  $sum" admin --data-binary "@$root/www/large.bin" "$api$pod/cgi-bin/sum"
kubectl() { in_ns "${KUBECTL:-kubectl}" --kubeconfig "$T/etc/admin.kubeconfig" "$@"; }
kubectl_sum() { kubectl get --raw "$1" | sha256sum | cut -c1-64; }
type -P kubectl >/dev/null && expect "… to Kubernetes' own kubectl, too" "$sum" kubectl_sum "$pod/large.bin"
expect "a slow client gets all of it" "$sum" large_sum --limit-rate 8M "$api$pod/large.bin"
before=$(awk '/VmRSS/ {print $2}' "/proc/$daemon_pid/status")
for i in 1 2 3 4; do admin --limit-rate 5M -o /dev/null "$api$pod/large.bin" & pids[i]=$!; done
read -r -t 2 <> <(:) || true  # each takes four
during=$(awk '/VmRSS/ {print $2}' "/proc/$daemon_pid/status")
wait "${pids[@]}"
check "four slow ones are no burden to the daemon" test $((during - before)) -lt 8192
echo "# they take $((during - before)) KiB"
headers=$(admin -H 'X-Mine: yes' -H 'X-Forwarded-For: 198.51.100.1' "$api$pod/cgi-bin/headers/more?x")
expect_match "headers arrive" '^HTTP_X_MINE=yes$' echo "$headers"
expect_match "… and who asked" '^HTTP_X_FORWARDED_FOR=198\.51\.100\.1, 127\.0\.0\.1$' echo "$headers"
expect_match "… and by which path" "^HTTP_X_FORWARDED_URI=$pod/cgi-bin/headers/more\$" echo "$headers"
token=$(k create token default)
k apply -f - >/dev/null <<'Y'
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: everything},
  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}, subjects: [{kind: ServiceAccount, name: default, namespace: default}]}
Y
secretless=$(in_ns curl -s --cacert "$T/ca.crt" -H "Authorization: Bearer $token" "$api$pod/cgi-bin/headers")
expect_match "a token is accepted" '^HTTP_HOST=127\.0\.0\.1:6443$' echo "$secretless"
expect "… and stays there" 0 grep -c -i -e authorization -e "$token" <(echo "$secretless")
expect "links of a page lead through the proxy" "<a href=\"$pod/rewriteme\">test</a>" admin "$api$pod/"
expect "without the slash there is a redirection" "301 $pod/?x=1" admin -o /dev/null -w '%{http_code} %header{location}' "$api$pod?x=1"
expect "an answer comes as it is made" "line 1" eval 'admin -N "$api$in_default/pods/web:7003/proxy/" | head -n 1'
expect "a server that dies midway is noticed" 18 eval 'admin -o /dev/null "$api$in_default/pods/web:7002/proxy/"; echo $?'
upgraded() {  # it ends when the server does, after one line
  local request='GET %s HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nping over there\n'
  printf "$request" "$in_default/pods/web:7001/proxy/" |
    in_ns timeout 60 openssl s_client -quiet -connect 127.0.0.1:6443 -cert "$T/admin.crt" -key "$T/admin.key" 2>/dev/null
}
if command -v openssl >/dev/null; then
  expect_match "another protocol passes" '^ping over there' upgraded
  expect_match "… and its server said so" '^HTTP/1.1 101 ' upgraded
fi

expect "nobody behind a service" 'no endpoints available for service \"nobody\"' message "$api$in_default/services/nobody/proxy/"
expect "… is 503" 503 code "$api$in_default/services/nobody/proxy/"
expect_match "nobody at a port" '^error trying to reach service: dial tcp 10\.[0-9.]*:81: connect: connection refused$' message "$api$in_default/pods/web:81/proxy/"
expect "… is 503" 503 code "$api$in_default/pods/web:81/proxy/"
expect "no such pod is 404" 404 code "$api$in_default/pods/none/proxy/"
k apply -f - >/dev/null <<'Y'
{apiVersion: v1, kind: Pod, metadata: {name: liar}, spec: {nodeName: elsewhere, containers: [{name: c, image: none}]}}
Y
for address in 127.0.0.1 169.254.169.254; do
  admin -o /dev/null -X PATCH -H 'Content-Type: application/merge-patch+json' -d "{\"status\":{\"podIP\":\"$address\",\"podIPs\":[{\"ip\":\"$address\"}]}}" "$api$in_default/pods/liar/status"
  expect "a status that says $address leads nowhere" "address not allowed" message "$api$in_default/pods/liar:6443/proxy/"
done
k delete pod liar --grace-period=0 --force >/dev/null 2>&1
expect "the node's agent is well" ok k get --raw /api/v1/nodes/edge/proxy/healthz
expect_match "… and knows its pods" '"name": "web"' admin "$api/api/v1/nodes/edge/proxy/pods"
expect_match "… and says what it does not serve" 'does not serve' message "$api/api/v1/nodes/edge/proxy/stats/summary"
expect "a node's other ports are those of its address" 200 code -k "$api/api/v1/nodes/https:edge:6443/proxy/healthz"
expect "what is behind it does not know who asked" 403 code "$api/api/v1/nodes/https:edge:6443/proxy/api/v1/secrets"

porter() {  # porter NAME LABEL JSON: a pod that serves "foo" at port 80, with nc
  k apply -f - >/dev/null <<Y
{apiVersion: v1, kind: Pod, metadata: {name: $1, labels: {test: $2}}, spec: {terminationGracePeriodSeconds: 0, restartPolicy: Never, containers: [
  {name: $1, image: "localhost/server:latest", command: [nc, -ll, -p, "80", -e, /bin/porter], env: [{name: BODY, value: foo}, {name: JSON, value: "$3"}]}]}}
Y
  k apply -f - >/dev/null <<Y
{apiVersion: v1, kind: Service, metadata: {name: $1}, spec: {selector: {test: $2}, ports: [{port: 80}]}}
Y
  k wait --for=condition=Ready "pod/$1" --timeout=120s >/dev/null
  until_true 10 eval '[ "$(code "$api$in_default/services/'"$1"'/proxy/x")" = 200 ]'
}
porter agnhost response yes

echo "# [sig-network] Proxy version v1 A set of valid responses are returned for both pod and service ProxyWithPath [Conformance]"
for of in pods services; do
  for method in DELETE GET OPTIONS PATCH POST PUT; do
    expect "$of: $method of a path" "200 {\"Method\":\"$method\",\"Body\":\"foo\"}" both -X $method "$api$in_default/$of/agnhost/proxy/some/path/with/$method"
  done
  expect "$of: HEAD of a path" "200 0" admin -I -o /dev/null -w '%{http_code} %{size_download}' "$api$in_default/$of/agnhost/proxy/some/path/with/HEAD"
done

echo "# [sig-network] Proxy version v1 A set of valid responses are returned for both pod and service Proxy [Conformance]"
for of in pods services; do
  for method in DELETE OPTIONS PATCH POST PUT; do
    expect "$of: $method without a path" "200 {\"Method\":\"$method\",\"Body\":\"foo\"}" both -X $method "$api$in_default/$of/agnhost/proxy?method=$method"
  done
  for method in GET HEAD; do
    option=(-X GET); [ $method = GET ] || option=(-I)
    expect "$of: $method without a path is redirected" "301 $in_default/$of/agnhost/proxy/?method=$method" \
      admin "${option[@]}" -o /dev/null -w '%{http_code} %header{location}' "$api$in_default/$of/agnhost/proxy?method=$method"
  done
done

echo "# [sig-network] Proxy version v1 should proxy through a service and a pod [Conformance]"
tls_server=
if command -v openssl >/dev/null; then
  tls_server='for s in 443:@ 460:tls-baz 462:tls-qux; do mkdir -p /tmp/${s%%:*}; echo ${s#*:} > /tmp/${s%%:*}/t; echo "<a href=\"/tlsrewriteme\">test</a>" > /tmp/${s%%:*}/t.html;
    (cd /tmp/${s%%:*}; exec openssl s_server -quiet -WWW -accept ${s%%:*} -cert /cert.pem -key /key.pem) & done;'
fi
k apply -f - >/dev/null <<Y
apiVersion: v1
kind: Pod
metadata: {name: proxy-service, labels: {proxy-service-target: "true"}}
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - name: c
    image: localhost/server:latest
    command: [sh, -c, 'BODY="<a href=\"/rewriteme\">test</a>" nc -ll -p 80 -e /bin/porter & BODY="<a href=\"/rewriteme\">test</a>" nc -ll -p 1080 -e /bin/porter &
      BODY=foo nc -ll -p 160 -e /bin/porter & BODY=bar nc -ll -p 162 -e /bin/porter & $(echo "$tls_server" | tr '\n' ' ') wait']
    ports: [{name: dest1, containerPort: 160}, {name: dest2, containerPort: 162}, {name: tlsdest1, containerPort: 460}, {name: tlsdest2, containerPort: 462}]
    readinessProbe: {httpGet: {port: 80}, periodSeconds: 1, timeoutSeconds: 20}
---
apiVersion: v1
kind: Service
metadata: {name: proxy-service}
spec:
  selector: {proxy-service-target: "true"}
  ports: [{name: portname1, port: 80, targetPort: dest1}, {name: portname2, port: 81, targetPort: 162},
    {name: tlsportname1, port: 443, targetPort: tlsdest1}, {name: tlsportname2, port: 444, targetPort: 462}]
Y
check "a server at several ports is ready" k wait --for=condition=Ready pod/proxy-service --timeout=120s
until_true 10 eval '[ "$(code "$api$in_default/services/proxy-service:portname1/proxy/")" = 200 ]'
for at in pods/proxy-service:1080 pods/proxy-service:162 ${tls_server:+pods/https:proxy-service:443 pods/https:proxy-service:460 pods/https:proxy-service:462}; do
  until_true 10 eval '[ "$(code "$api$in_default/$at/proxy/t")" = 200 ]'  # each port has its own server
done
for row in services/proxy-service:portname1=foo services/http:proxy-service:portname1=foo services/proxy-service:portname2=bar \
           services/http:proxy-service:portname2=bar pods/proxy-service=foo pods/proxy-service:160=foo pods/http:proxy-service:160=foo \
           pods/proxy-service:162=bar pods/http:proxy-service:162=bar; do
  expect "${row%=*}" "${row#*=}" admin "$api$in_default/${row%=*}/proxy/"
done
for name in pods/proxy-service:80 pods/proxy-service:1080 pods/http:proxy-service:1080; do
  expect "$name with its links" "<a href=\"$in_default/$name/proxy/rewriteme\">test</a>" admin "$api$in_default/$name/proxy/"
done
if [ -n "$tls_server" ]; then
  for row in services/https:proxy-service:tlsportname1=tls-baz services/https:proxy-service:tlsportname2=tls-qux \
             pods/https:proxy-service:460=tls-baz pods/https:proxy-service:462=tls-qux; do
    expect "${row%=*}" "${row#*=}" admin "$api$in_default/${row%=*}/proxy/t"
  done
  expect "pods/https:proxy-service:443 with its links" "<a href=\"$in_default/pods/https:proxy-service:443/proxy/tlsrewriteme\">test</a>" \
    admin "$api$in_default/pods/https:proxy-service:443/proxy/t.html"
else
  echo "# without openssl the lines about TLS are left out"
fi
many() { for i in $(seq 30); do admin -o /dev/null -w '%{http_code}\n' "$api$in_default/services/proxy-service:portname1/proxy/" & done | sort | uniq -c | sed 's/^ *//'; }
expect "many at once" "30 200" many

echo "# What somebody removes by hand comes back"
address=$(k get pod proxy-service -o 'jsonpath={.status.podIP}')
wire=coracle$(printf %02x ${address//./ })
reached() { in_ns busybox ping -c 1 -W 1 "$address" >/dev/null && k exec proxy-service -- nslookup kubernetes.default.svc.cluster.local >/dev/null 2>&1; }
check "the pod is reached and finds names" until_true 10 reached
for taken in "ip link del coracle0" "ip link set coracle0 down" "ip addr flush dev coracle0" "ip link set $wire down" "ip link del $wire" \
             "nft flush ruleset" "nft delete table ip coracle-pods"; do
  in_ns $taken
  check "after $taken" until_true 20 reached
done
expect "its address is the same" "$address" k get pod proxy-service -o 'jsonpath={.status.podIP}'
check "what guards the pods' addresses is there again" until_true 20 in_ns nft list chain ip coracle-pods guard

echo "# Services do not take what is not theirs"
c apply -f - >/dev/null <<'Y'
{apiVersion: v1, kind: Service, metadata: {name: greedy}, spec: {selector: {proxy-service-target: "true"}, externalIPs: [10.96.0.10],
  ports: [{port: 53, protocol: UDP, targetPort: 160}]}}
Y
check "an event says what is ignored" until_true 10 eval 'k get events --field-selector involvedObject.name=greedy | grep -q "ExternalAddressIgnored.*10.96.0.10"'
check "and the DNS server answers" reached
