#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Authorization with kubectl: roles and bindings, impersonation, tokens of service accounts, static and bootstrap tokens, a pod's
# own token, certificates from request to use, and the audit log. The checks named [sig-auth] do what the line of Kubernetes'
# conformance tests describes.
# for: daemon/auth daemon/api/reviews daemon/controller/access/certificate_signing daemon/controller/access/cluster_role_aggregation daemon/controller/access/token_secrets ctl/certificate store/kinds/rbac store/kinds/certificate
. "$(dirname "$0")/lib.sh"
kubectl=${KUBECTL:-$(sh "$here/fetch_kubectl.sh" "$cache/kubectl" 2>/dev/null | awk '{ path = $2 } END { print path }')}
[ -x "${kubectl:-}" ] || skip_all "kubectl cannot be had"
KUBECTL=$kubectl
trap cleanup EXIT
make_network || skip_all "cannot make network namespaces with veth pairs"
write_config
cat > "$T/tokens.csv" <<'Y'
static-secret,carol,u-carol,"viewers,dev"
Y
cat > "$T/audit.yaml" <<'Y'
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: RequestResponse, resources: [{group: "", resources: [configmaps]}], verbs: [create]}
- {level: None, users: ["system:node:edge"]}
- {level: Metadata}
Y
cat >> "$T/etc/config.yaml" <<Y
tokenAuthFile: $T/tokens.csv
auditPolicyFile: $T/audit.yaml
auditLogPath: $T/audit.log
Y
start_daemon
make_busybox >"$T/pack.log" 2>&1 || { echo "Bail out! image pack:"; cat "$T/pack.log"; exit 1; }
api=https://10.55.0.2:6443
may() { k auth can-i "$@" 2>/dev/null; }                                 # may VERB RESOURCE...: prints yes or no
by() { local token=$1; shift; in_ns "$kubectl" --kubeconfig /dev/null --server "$api" --insecure-skip-tls-verify --token "$token" "$@"; }
anonymous() { in_ns curl -sk -o /dev/null -w '%{http_code}' "$api$1"; }
jwt() { cut -d. -f2 <<<"$1" | tr '_-' '/+' | awk '{ while (length($0) % 4) $0 = $0 "="; print }' | base64 -d; }
phase_is() { [ "$(k get pod "$1" -o 'jsonpath={.status.phase}')" = "$2" ]; }

# ---- without credentials, and with wrong ones ----
for path in /livez /readyz /healthz /version; do expect "anybody may read $path" 200 anonymous "$path"; done
for path in /api /apis /metrics /openapi/v2 /api/v1/pods /.well-known/openid-configuration; do expect "not $path" 403 anonymous "$path"; done
expect_match "in Kubernetes' words" 'pods is forbidden: User \\"system:anonymous\\" cannot list resource \\"pods\\" in API group \\"\\" at the cluster scope' in_ns curl -sk "$api/api/v1/pods"
expect_fail "a wrong token is refused" 'Unauthorized|logged in' by nonsense get pods

# ---- roles ----
expect "the default roles are there" "4" eval "k get clusterroles cluster-admin admin edit view --no-headers | grep -c ."
check "admin, edit and view are made of others" until_true 10 eval "k get clusterrole admin -o yaml | grep -q deployments"
expect "the administrator may everything" yes may '*' '*'
expect "jane may nothing" no may list pods --as jane
expect "but ask about herself" yes may create selfsubjectaccessreviews.authorization.k8s.io --as jane --as-group system:authenticated
k create role reader --verb=get,list --resource=pods --resource=configmaps >/dev/null
k create rolebinding reader --role=reader --user=jane --group=viewers >/dev/null
expect "a role gives what it says" yes may list pods --as jane
expect "where it says" no may list pods --as jane -n kube-system
expect "and nothing else" no may delete pods --as jane
expect "to a group as well" yes may get configmaps --as bob --as-group viewers
k create clusterrolebinding v --clusterrole=view --serviceaccount=default:robot >/dev/null
expect "to an account, everywhere" yes may list services --as system:serviceaccount:default:robot -A
expect "view is without secrets" no may get secrets --as system:serviceaccount:default:robot
k create clusterrole one --verb=get --resource=secrets --resource-name=mine >/dev/null
k create clusterrolebinding one --clusterrole=one --user=jane >/dev/null
expect "by name" "yes no" eval "echo \$(may get secrets/mine --as jane) \$(may get secrets/other --as jane)"
k create clusterrole metrics --verb=get --non-resource-url=/metrics --non-resource-url='/logs/*' >/dev/null
k create clusterrolebinding metrics --clusterrole=metrics --user=jane >/dev/null
expect "paths" "yes yes no" eval "echo \$(may get /metrics --as jane) \$(may get /logs/x --as jane) \$(may get /debug --as jane)"
expect_match "can-i --list shows it" 'configmaps +\[\] +\[\] +\[get list\]' k auth can-i --list --as jane
expect_match "a refusal names what is missing" 'User "jane" cannot delete resource "pods" in API group "" in the namespace "default"' eval "k delete pod x --as jane 2>&1"
k create clusterrolebinding boss --clusterrole=admin --user=boss >/dev/null
expect_fail "nobody grants what they do not have" 'attempting to grant RBAC permissions not currently held' k create rolebinding x --clusterrole=cluster-admin --user=jane --as boss
expect_match "but what they have" 'created' k create rolebinding y --clusterrole=view --user=ann --as boss
expect_fail "a binding's role is for good" 'cannot change roleRef' k patch rolebinding y --type=merge -p '{"roleRef":{"name":"edit"}}'
k label clusterrole metrics rbac.authorization.k8s.io/aggregate-to-view=true >/dev/null
check "an aggregated role follows its parts" until_true 10 eval "k get clusterrole view -o yaml | grep -q /metrics"
k delete clusterrolebinding system:discovery >/dev/null
k annotate clusterrole system:monitoring rbac.authorization.kubernetes.io/autoupdate=false --overwrite >/dev/null
k patch clusterrole system:monitoring --type=merge -p '{"rules":[]}' >/dev/null
stop_daemon; start_daemon
check "default bindings come back" k get clusterrolebinding system:discovery
expect "except where somebody wants to keep them" "" eval "k get clusterrole system:monitoring -o 'jsonpath={.rules}' | tr -d '[]'"
expect "what was granted outlasts a restart" yes may list pods --as jane

# ---- tokens ----
k create serviceaccount robot >/dev/null
token=$(k create token robot --duration=600s)
expect_match "an account's token says whose it is" '"sub":"system:serviceaccount:default:robot"' jwt "$token"
expect_match "and is good" 'kubernetes' by "$token" get services
expect_fail "for what its roles allow" 'cannot list resource "secrets"' by "$token" get secrets
vault=$(k create token robot --audience=vault)
expect_fail "one for somebody else is not for us" 'Unauthorized|logged in' by "$vault" get services
k apply -f - >/dev/null <<'Y'
apiVersion: v1
kind: Secret
metadata: {name: lasting, annotations: {kubernetes.io/service-account.name: robot}}
type: kubernetes.io/service-account-token
Y
lasting() { k get secret lasting -o 'jsonpath={.data.token}' | base64 -d; }
check "a Secret asks for one that lasts" until_true 10 eval "[ -n \"\$(lasting)\" ]"
expect_match "which works" kubernetes by "$(lasting)" get services
kept=$(lasting)
k delete secret lasting >/dev/null
expect_fail "until the Secret goes" 'Unauthorized|logged in' by "$kept" get services
k delete serviceaccount robot >/dev/null
expect_fail "an account's tokens go with it" 'Unauthorized|logged in' by "$token" get services
expect_match "a static token is known" 'No resources|NAME' eval "by static-secret get configmaps 2>&1"
k apply -f - >/dev/null <<Y
apiVersion: v1
kind: Secret
metadata: {name: bootstrap-token-abcdef, namespace: kube-system}
type: bootstrap.kubernetes.io/token
stringData: {token-id: abcdef, token-secret: 0123456789abcdef, usage-bootstrap-authentication: "true", auth-extra-groups: "system:bootstrappers:kubelet", expiration: "$(date -u -d '+60 seconds' +%Y-%m-%dT%H:%M:%SZ)"}
Y
expect_match "a bootstrap token too" 'system:bootstrap:abcdef' by abcdef.0123456789abcdef auth whoami
k create clusterrolebinding boot --clusterrole=system:node-bootstrapper --group=system:bootstrappers >/dev/null
k create clusterrolebinding approve --clusterrole=system:certificates.k8s.io:certificatesigningrequests:nodeclient --group=system:bootstrappers >/dev/null
request() {  # request NAME SUBJECT SIGNER USAGES: a new key and the request for its certificate
  openssl ecparam -name prime256v1 -genkey -noout -out "$T/$1.key" 2>/dev/null && openssl req -new -key "$T/$1.key" -subj "$2" -out "$T/$1.csr"
  cat <<Y
apiVersion: certificates.k8s.io/v1
kind: CertificateSigningRequest
metadata: {name: $1}
spec: {signerName: $3, usages: $4, expirationSeconds: 3600, request: $(base64 -w0 "$T/$1.csr")}
Y
}
certificate_of() { k get csr "$1" -o 'jsonpath={.status.certificate}' | base64 -d; }
with() { local name=$1; shift; in_ns "$kubectl" --kubeconfig /dev/null --server "$api" --insecure-skip-tls-verify --client-certificate "$T/$name.crt" --client-key "$T/$name.key" "$@"; }

# ---- certificates ----
request node /O=system:nodes/CN=system:node:two kubernetes.io/kube-apiserver-client-kubelet '[digital signature, client auth]' | by abcdef.0123456789abcdef create -f - >/dev/null
check "a node's request is approved and signed by itself" until_true 10 eval "[ -n \"\$(certificate_of node)\" ]"
certificate_of node > "$T/node.crt"
expect_match "the node is a node" 'system:node:two' with node auth whoami
expect_fail "that reads no secrets" 'can only read namespaced object|no relationship|No Object name' with node get secrets
check "a bootstrap token ends" until_true 80 eval "! by abcdef.0123456789abcdef auth whoami"
check "and is cleared away" until_true 10 is_absent -n kube-system secret bootstrap-token-abcdef
request dave /O=dev/CN=dave kubernetes.io/kube-apiserver-client '[client auth]' | k create -f - >/dev/null
expect_match "a request waits" 'kubernetes.io/kube-apiserver-client +kubernetes-admin +60m +Pending' k get csr dave
expect_fail "for who may approve it" 'cannot .* resource "certificatesigningrequests/approval"|forbidden' k certificate approve dave --as jane
expect_match "approved" 'dave approved' c certificate approve dave
check "it is signed" until_true 10 eval "[ -n \"\$(certificate_of dave)\" ]"
certificate_of dave > "$T/dave.crt"
expect "by our authority" "$T/dave.crt: OK" openssl verify -CAfile "$T/state/pki/ca.crt" "$T/dave.crt"
expect_match "and good for dave" 'dave' with dave auth whoami
expect_fail "who may nothing yet" 'User "dave" cannot list' with dave get pods
request denied /CN=eve kubernetes.io/kube-apiserver-client '[client auth]' | k create -f - >/dev/null
expect_match "denied" 'denied denied' k certificate deny denied
expect_fail "is for good" 'already Denied|mutually exclusive' k certificate approve denied
request masters /O=system:masters/CN=eve kubernetes.io/kube-apiserver-client '[client auth]' > "$T/masters.yaml"
expect_fail "nobody becomes administrator so" 'use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed' k create -f "$T/masters.yaml"
request wrong /CN=x kubernetes.io/kubelet-serving '[server auth]' | k create -f - >/dev/null
k certificate approve wrong >/dev/null
check "what a signer does not sign fails, and says why" until_true 10 eval "k get csr wrong -o yaml | grep -q 'subject organization is not system:nodes'"
expect_fail "nonsense is no request" 'PEM block type must be CERTIFICATE REQUEST' k create -f - <<'Y'
apiVersion: certificates.k8s.io/v1
kind: CertificateSigningRequest
metadata: {name: nonsense}
spec: {signerName: example.com/a, usages: [any], request: aGVsbG8=}
Y

# ---- pods ----
pod() { k apply -f - <<<"$1" >/dev/null; }
k create serviceaccount reader >/dev/null
k create rolebinding pods-reader --role=reader --serviceaccount=default:reader >/dev/null
pod "
apiVersion: v1
kind: Pod
metadata: {name: mounted}
spec:
  serviceAccountName: reader
  containers:
  - {name: main, image: localhost/busybox:latest, imagePullPolicy: Never, command: [sleep, '10000']}
  - name: projected
    image: localhost/busybox:latest
    imagePullPolicy: Never
    command: [sleep, '10000']
    volumeMounts: [{name: tokens, mountPath: /tokens}]
  volumes:
  - {name: tokens, projected: {defaultMode: 0440, sources: [{serviceAccountToken: {path: vault, audience: vault, expirationSeconds: 600}}]}}"
pod "
apiVersion: v1
kind: Pod
metadata: {name: bare}
spec:
  automountServiceAccountToken: false
  containers: [{name: main, image: localhost/busybox:latest, imagePullPolicy: Never, command: [sleep, '10000']}]"
check "pods run" until_true 30 eval "phase_is mounted Running && phase_is bare Running"
own=/var/run/secrets/kubernetes.io/serviceaccount
of_pod=$(k exec mounted -c main -- cat $own/token)
expect "[sig-auth] ServiceAccounts should mount an API token into pods [Conformance]" "default yes" eval "echo \$(k exec mounted -c main -- cat $own/namespace) \$(k exec mounted -c main -- grep -q 'BEGIN CERTIFICATE' $own/ca.crt && echo yes)"
expect "with the authority's certificate, as the namespace has it" "$(k get configmap kube-root-ca.crt -o 'jsonpath={.data.ca\.crt}')" k exec mounted -c main -- cat $own/ca.crt
review=$(k create -f - -o json <<Y
{apiVersion: authentication.k8s.io/v1, kind: TokenReview, metadata: {}, spec: {token: "$of_pod"}}
Y
)
expect_match "the token is good" '"authenticated": *true' echo "$review"
expect_match "… for the pod's account" '"username": *"system:serviceaccount:default:reader"' echo "$review"
for group in system:authenticated system:serviceaccounts system:serviceaccounts:default; do expect_match "… of the group $group" "\"$group\"" echo "$review"; done
expect_match "and the token is the account's, bound to the pod" '"pod":{"name":"mounted"' jwt "$of_pod"
expect_match "it reads what the account may" 'kube-root-ca.crt' by "$of_pod" get configmaps
expect_fail "and nothing else" 'cannot list resource "secrets"' by "$of_pod" get secrets
expect "[sig-auth] ServiceAccounts should allow opting out of API token automount [Conformance]" "absent" k exec bare -- sh -c "test -e $own/token || echo absent"
expect_match "[sig-auth] ServiceAccounts should mount projected service account token [Conformance]" '"aud":\["vault"\]' jwt "$(k exec mounted -c projected -- cat /tokens/vault)"
expect "with the mode that was asked for" "440" k exec mounted -c projected -- stat -Lc %a /tokens/vault
issuer=$(jwt "$of_pod" | sed 's/.*"iss":"\([^"]*\)".*/\1/')
k exec mounted -c main -- cat $own/ca.crt > "$T/pods-ca.crt"
service=$(k get service kubernetes -o 'jsonpath={.spec.clusterIP}')
from_issuer() { in_ns curl -s --cacert "$T/pods-ca.crt" -H "Authorization: Bearer $of_pod" --resolve "${issuer#https://}:443:$service" "$1"; }
expect_match "the issuer that a token names is where its settings are, under a certificate that pods trust" "\"issuer\": *\"$issuer\"" from_issuer "$issuer/.well-known/openid-configuration"
expect_match "and its keys" '"kid"' from_issuer "$issuer/openid/v1/jwks"
k create namespace fresh >/dev/null
ca() { k -n fresh get configmap kube-root-ca.crt -o 'jsonpath={.data.ca\.crt}'; }
check "[sig-auth] ServiceAccounts should guarantee kube-root-ca.crt exist in any namespace [Conformance]" until_true 10 eval "ca | grep -q 'BEGIN CERTIFICATE'"
k -n fresh delete configmap kube-root-ca.crt >/dev/null
check "it comes back when it is deleted" until_true 10 eval "ca | grep -q 'BEGIN CERTIFICATE'"
k -n fresh patch configmap kube-root-ca.crt --type=merge -p '{"data":{"ca.crt":""}}' >/dev/null
check "and when it is changed" until_true 10 eval "ca | grep -q 'BEGIN CERTIFICATE'"
k delete pod mounted --grace-period=0 --force >/dev/null 2>&1
check "a pod's token ends with the pod" until_true 20 eval "! by \"$of_pod\" get configmaps"

# ---- the audit log ----
k create configmap audited --from-literal=a=b >/dev/null
check "a creation is in the audit log with what was sent and what came back" until_true 5 eval "grep '\"requestURI\":\"/api/v1/namespaces/default/configmaps' $T/audit.log | grep '\"verb\":\"create\"' | grep '\"requestObject\":{' | grep -q '\"responseObject\":{.*\"name\":\"audited\"'"
k get pods --as jane >/dev/null
check "impersonation with both users" until_true 5 eval "grep '\"impersonatedUser\":{\"username\":\"jane\"' $T/audit.log | grep -q '\"user\":{\"username\":\"kubernetes-admin\"'"
expect_match "refusals too" '"authorization.k8s.io/decision":"forbid"' cat "$T/audit.log"
expect "the log is root's alone" 600 stat -c %a "$T/audit.log"
sed -i 's/Metadata}/Everything}/' "$T/audit.yaml"
stop_daemon; launch
check "a policy with a mistake keeps the daemon from starting" until_true 10 eval "! kill -0 $daemon_pid 2>/dev/null"
expect_match "and is named" 'rules\[2\].level: Unsupported value' cat "$T/coracled.log"
daemon_pid=
exit 0
