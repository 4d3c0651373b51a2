#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Commands that make and change objects, each with kubectl 1.36 and with coraclectl: the same output, messages, exit code, and the
# same objects afterwards. Each client works in its own namespace; what has none has the client's letter (^) in its name.
# Lines of the tables: the words of a command. "~" in front: messages on standard error may differ, for the reason beside it; "?":
# all output may, and only the exit code has to be the same.
# for: ctl/apply ctl/create ctl/deletion ctl/diff ctl/edit ctl/flag_values ctl/generate ctl/label ctl/last_applied ctl/patch ctl/prune ctl/replace ctl/run ctl/scale ctl/set ctl/target
. "$(dirname "$0")/lib.sh"
kubectl=
while read -r suite path version; do
  case $version in v1.3[6-9]*) kubectl=$path ;; esac
done < <("$here/fetch_kubectl.sh" "$cache/kubectl" 2>/dev/null)
[ -n "$kubectl" ] || skip_all "kubectl 1.36 is missing"
start_machine
mkdir -p "$T/home" "$T/in/d" "$T/none"
cd "$T/in" || exit 1

# ---- comparing ----

# normal CLIENT-LETTER: what differs from run to run, or by the client's namespace and name, becomes the same.
normal() {
  sed -E -e "s/(changes|reader|readers|urgent)-$1\b/\1-X/g" -e 's/coraclectl/kubectl/g' \
    -e 's/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/UID/g' -e 's/"?[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z"?/TIME/g' \
    -e 's/resourceVersion: "?[0-9]+"?/resourceVersion: N/' -e 's/"resourceVersion": ?"[0-9]+"/"resourceVersion": "N"/' \
    -e 's/10\.96\.[0-9]+\.[0-9]+/ADDRESS/g' -e 's/(nodePort: )[0-9]{5}/\1N/' -e 's/^(W|E)[0-9]{4} [0-9:.]+ +[0-9]+ [^]]*\] /\1 /'
}

# one LETTER PROGRAM LINE: runs the command; its output is in $T/LETTER.out, .err and .code.
one() {
  local words
  eval "words=(${3//^/$1})"
  in_ns env HOME="$T/home" KUBECONFIG="$T/etc/admin.kubeconfig" KUBE_EDITOR="${KUBE_EDITOR:-true}" timeout 60 \
    "$2" -n "changes-$1" "${words[@]}" >"$T/$1.raw" 2>"$T/$1.rawerr" <"${INPUT:-/dev/null}"
  echo $? >"$T/$1.code"
  normal "$1" <"$T/$1.raw" >"$T/$1.out"
  normal "$1" <"$T/$1.rawerr" | grep -v memcache >"$T/$1.err"
}

# same_all TITLE: one test for a table of lines on standard input; it prints each difference.
same_all() {
  local title=$1 line said count=0 wrong=0
  while IFS= read -r line; do
    case $line in '' | '#'*) continue ;; esac
    said=yes
    case $line in '~ '* | '? '*) said=${line:0:1} line=${line:2} line=${line%%  #*} ;; esac
    one k "$kubectl" "$line"
    one c "$coraclectl" "$line"
    count=$((count + 1))
    if cmp -s "$T/k.code" "$T/c.code" && { [ "$said" = '?' ] || cmp -s "$T/k.out" "$T/c.out"; } && { [ "$said" != yes ] || cmp -s "$T/k.err" "$T/c.err"; }; then continue; fi
    wrong=$((wrong + 1))
    { echo "--- $line (status $(<"$T/k.code"), $(<"$T/c.code"))"; diff "$T/k.out" "$T/c.out"; [ "$said" != yes ] || diff "$T/k.err" "$T/c.err"; } |
      sed 's/^/  | /' | head -n 25
  done
  total=$((${total:-0} + count))
  if [ $wrong = 0 ]; then ok "$title: $count commands"; else not_ok "$title: $wrong of $count commands differ"; fi
}

# same_objects TITLE KIND...: the objects of these kinds in the clients' namespaces.
same_objects() {
  local title=$1 kinds letter
  shift
  kinds=$(IFS=,; echo "$*")
  for letter in k c; do
    c -n "changes-$letter" get "$kinds" -o json | jq -S '[.items[] | del(.metadata.uid, .metadata.resourceVersion, .metadata.creationTimestamp,
      .metadata.managedFields, .metadata.generation, .status, .spec.clusterIP, .spec.clusterIPs, .spec.ports[]?.nodePort)]' |
      normal $letter >"$T/$letter.objects"
  done
  check "$title" diff "$T/k.objects" "$T/c.objects"
}

for letter in k c; do c create namespace changes-$letter >/dev/null; done

# ---- files ----
printf 'A=1\n# c\n B=2 \nHOME\nC=\n' >e.env
printf '1A=b\n' >wrong.env
printf 'hello\n' >f.txt
printf '\xff\xfe\x00' >b.bin
cp f.txt d/one; cp b.bin d/two
openssl req -x509 -newkey rsa:2048 -nodes -keyout tls.key -out tls.crt -days 30 -subj /CN=x 2>/dev/null
openssl genrsa -out other.key 2048 2>/dev/null
cat >map.yaml <<'Y'
apiVersion: v1
kind: ConfigMap
metadata: {name: applied, labels: {app: web}}
data: {a: "1", markup: "<a> & b"}
Y
sed 's/name: applied/name: second/' map.yaml >second.yaml
sed 's/a: "1"/a: "2"/' map.yaml >map2.yaml
cat >web.yaml <<'Y'
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 0
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: main, image: one, ports: [{containerPort: 80}, {containerPort: 53, protocol: UDP}]}
      - {name: side, image: two}
Y
cat >binding.yaml <<'Y'
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: bound}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: r}
subjects: [{kind: User, apiGroup: rbac.authorization.k8s.io, name: a}]
Y
cat >fixed.yaml <<'Y'
apiVersion: v1
kind: Service
metadata: {name: fixed, annotations: {kubectl.kubernetes.io/last-applied-configuration: "{}"}}
spec: {clusterIP: None, ports: [{port: 80, name: "80"}]}
Y
printf 'metadata:\n  labels:\n    patched: "yes"\n' >patch.yaml

# ---- create: the objects ----
d='--dry-run=client -o yaml'
same_all "create: objects from flags" <<L
create namespace x $d
create ns x $d --save-config
create serviceaccount x $d
create sa x -n other $d
create configmap x $d
create cm x --from-literal=a=b --from-literal='q="z"' --append-hash $d
create cm x --from-literal=a=b=c --from-literal=e= $d --save-config
create cm x --from-literal='a=<b>&c' $d --save-config
create cm x --from-file=f.txt --from-file=b.bin $d
create cm x --from-file=f.txt,k=b.bin --append-hash $d
create cm x --from-file=d $d
create cm x --from-env-file=e.env $d
create secret generic x $d
create secret generic x --from-literal=a=b --type=foo --append-hash $d
create secret generic x --from-file=d --from-literal=z=y $d
create secret generic x --from-env-file=e.env $d
create secret docker-registry x --docker-username=u --docker-password='p<>&' $d
create secret docker-registry x --docker-username=u --docker-password=p --docker-email=e --docker-server=s --append-hash $d
create secret docker-registry x --from-file=f.txt $d
create secret docker-registry x --from-file=k=f.txt $d
create secret tls x --cert=tls.crt --key=tls.key --append-hash $d
create deployment x --image=nginx $d
create deploy x --image=a/nginx:1@sha256:0 --port=0 $d --save-config
create deploy x --image=nginx,redis:3 -r 2 --port=80 $d
create deploy x --image=nginx --image=redis $d
create deploy x --image=nginx $d -- sh -c 'a b'
create job x --image=i $d -- a b
create job x --image=i $d --save-config
create cronjob x --image=i --schedule='* * * * *' $d
create cj x --image=i --schedule='@hourly' --restart=Never $d -- date
create poddisruptionbudget x --selector=a=b --min-available=1 $d
create pdb x --selector='a in (c,b),d,!e,f notin (g),h==i' --max-unavailable=10% $d
create pdb x --selector=a --min-available=01 $d
create priorityclass x $d
create pc x --value=3 --global-default --description=d --preemption-policy=Never $d
create quota x $d
create resourcequota x --hard=cpu=1000m,memory=1024Mi,pods=1e3,z=0.1 --scopes=BestEffort,X $d
create service clusterip x --tcp=80 --tcp=81:http $d
create svc clusterip x --clusterip=None $d
create svc clusterip x --tcp=80,90:9 --clusterip=1.2.3.4 $d
create svc nodeport x --tcp=80:http --tcp=81 --node-port=30000 $d
create svc loadbalancer x --tcp=80:8080 $d
create svc externalname x --external-name=a.b --tcp=80 $d
create ingress x --class=c --rule='foo.com/*=svc:80,tls=s' --rule='/b=s:http' --default-backend=d:1 --annotation a=b --annotation c=d=e $d
create ing x --rule=a/=b:1,tls --rule=b/=b:1,tls= --rule=a/c=d:e $d
create ingress x --default-backend=d:http $d
create role x --verb=get --resource=pods $d
create role x --verb=get,list --verb=get --resource=rs.apps,po,deploy,pods/log --resource-name=a --resource-name=b $d
create role x --verb='*' --resource='*' $d
create role x --verb=dance --resource=pods $d
create role x --verb=impersonate --resource=users $d
create role x --verb=bind --resource=roles.rbac.authorization.k8s.io $d
create clusterrole x --verb=get --resource=nodes --non-resource-url=/a,/b* --non-resource-url='*' $d
create clusterrole x --aggregation-rule=a=b,c=d $d
create rolebinding x --role=r --user=a --group=g --serviceaccount=n:s $d
create rolebinding x -n foo --clusterrole=r $d
create clusterrolebinding x --clusterrole=c --user=u --user=v $d --save-config
create deploy x --image=nginx --dry-run=client -o name
create quota x --dry-run=client
L

# ---- create: what is wrong ----
d='--dry-run=client -o yaml'
same_all "create: errors" <<L
create quota
create quota a b
create quota ""
create cm x --from-literal=a $d
create cm x --from-literal==a $d
create cm x --from-file=a=b=c $d
create cm x --from-file==c $d
create cm x --from-file=c= $d
create cm x --from-file=nope $d
create cm x --from-file=k=d $d
create cm x --from-literal=a=b --from-literal=a=c $d
create cm x --from-literal=..=b $d
create cm x --from-literal=..a=b $d
create cm x --from-literal='a b=c' $d
create cm x --from-env-file=wrong.env $d
create cm x --from-env-file=d $d
create cm x --from-env-file=nope $d
create cm x --from-env-file=e.env --from-literal=a=b $d
create secret generic x --from-literal=a=b --from-literal=a=c $d
create secret generic x --from-literal='a@=b' $d
create secret generic x --from-env-file=d $d
create secret docker-registry x $d
create secret tls x $d
create secret tls x --cert=nope --key=tls.key $d
create secret tls x --cert=f.txt --key=tls.key $d
create secret tls x --cert=tls.crt --key=f.txt $d
create secret tls x --cert=tls.crt --key=other.key $d
create secret tls x --cert=tls.crt --key=tls.crt $d
create secret tls x --cert=tls.key --key=tls.key $d
create deploy x $d
create deploy x --image=a --image=b $d -- c
create deploy x --image=a b $d
create job x $d
create job x --image=a --from=cronjob/b $d
create job x --from=cronjob/none $d
create cj x $d
create cj x --image=a $d
create pdb x --min-available=1 $d
create pdb x --selector=a=b $d
create pdb x --selector=a=b --min-available=1 --max-unavailable=1 $d
create pdb x --selector=a=b --min-available=1x $d
create pdb x --selector=a=b --max-unavailable=-1 $d
create pdb x --selector='a!=b' --min-available=1 $d
create pdb x --selector='a>1' --min-available=1 $d
create quota x --hard=cpu $d
create quota x --hard=cpu=x $d
create quota x --scopes=a, $d
create svc clusterip x $d
create svc clusterip x --tcp=a $d
create svc clusterip x --tcp=70000 $d
create svc clusterip x --tcp=80:70000 $d
create svc clusterip x --tcp=80:a_b $d
create svc clusterip x --tcp=80:abcdefghijklmnopq $d
create svc externalname x $d
create svc externalname x --external-name=-a $d
create ingress x $d
create ingress x --rule=a $d
create ingress x --default-backend=a $d
create ingress x --default-backend=a:1 --annotation=b $d
create role x $d
create role x --verb=get $d
~ create role x --verb=get --resource=nothings $d  # kubectl leaves out "error: "
~ create role x --verb=get --resource=pods.nogroup $d  # likewise
create role x --verb=bind --resource=pods $d
create role x --verb=get --resource=/log $d
create clusterrole x $d
create clusterrole x --verb=get $d
create clusterrole x --verb=list --non-resource-url=/a $d
create clusterrole x --verb=get --non-resource-url=a $d
create clusterrole x --verb=get --non-resource-url='/a*b' $d
create clusterrole x --verb=get --aggregation-rule=a=b $d
create rolebinding x $d
create rolebinding x --role=a --clusterrole=b $d
create rolebinding x --role=a --serviceaccount=b $d
create clusterrolebinding x $d
create cm x --validate=maybe $d
create cm x --dry-run=maybe
create token
create token x --duration=-1s
create token x --duration=1500ms
create token x --bound-object-name=a
create token x --bound-object-uid=a
create token x --bound-object-kind=a
create token x --bound-object-kind=Pod
create token x --audience=
create token none
L

# ---- create: for real ----
same_all "create: at the server" <<'L'
create configmap settings --from-literal=a=1
create configmap settings --from-literal=a=1
create configmap dry --dry-run=server
create configmap named -o name --from-literal=a=1 --save-config
create configmap Wrong_
create secret generic keys --from-literal=k=v
create secret generic keys
create serviceaccount robot
create sa robot
create role reader --verb=get,list --resource=pods,deployments.apps
create role reader --verb=get --resource=pods
create rolebinding readers --role=reader --serviceaccount=changes-^:robot
create rolebinding readers --role=reader
create clusterrole reader-^ --verb=get --resource=nodes
create clusterrole reader-^ --verb=get --resource=nodes
create clusterrolebinding readers-^ --clusterrole=reader-^ --group=g
create clusterrolebinding readers-^ --clusterrole=reader-^
create priorityclass urgent-^ --value=1000
create priorityclass urgent-^
create quota most --hard=pods=30,services=20
create quota most
create pdb web --selector=app=web --min-available=1
create pdb web --selector=app=web --min-available=1
create ingress way --rule=example.com/=web:80
create ingress way --rule=example.com/=web:80
create service clusterip plain --tcp=80
create service clusterip plain --tcp=80
create service externalname outside --external-name=example.com
create deployment made --image=one --replicas=0
create deployment made --image=one
create cronjob tick --image=one --schedule='0 0 1 1 *' -- true
create cronjob tick --image=one --schedule='0 0 1 1 *'
create job once --from=cronjob/tick --dry-run=client
create job once --from=cronjob/tick --dry-run=client -o name
~ create job wrong --from=configmap/settings  # kubectl names the type in Go
create namespace changes-^
~ create -f map.yaml --dry-run=server  # kubectl asks for the schema first
create -f map.yaml --save-config
create -f second.yaml -l app=other
create -f map.yaml --raw /api --edit
delete configmap applied
L
expect "create token" "2" eval "c -n changes-c create token robot --audience=vault | tr -cd . | wc -c"
expect_match "create token for an object" '"name": "settings-pod"' eval "c -n changes-c run settings-pod --image=one --overrides='{\"spec\":{\"serviceAccountName\":\"robot\",\"nodeSelector\":{\"no\":\"such\"}}}' >/dev/null; c -n changes-c create token robot --bound-object-kind=Pod --bound-object-name=settings-pod --duration=20m -o json"
c -n changes-c delete pod settings-pod --force >/dev/null 2>&1
same_objects "create: the same objects" configmap,secret,serviceaccount,role,rolebinding,quota,pdb,ingress,service,deployment,cronjob

# ---- apply ----
same_all "apply" <<'L'
apply -f map.yaml
apply -f map.yaml
apply -f map2.yaml --dry-run=client
apply -f map2.yaml --dry-run=server
apply -f map2.yaml
apply view-last-applied configmap/applied
apply view-last-applied configmap applied -o json
apply view-last-applied configmap -l app=web
apply view-last-applied -f map.yaml
apply view-last-applied configmap/none
apply view-last-applied configmap/applied -o name
apply set-last-applied -f map.yaml
apply set-last-applied -f map.yaml
apply view-last-applied configmap/applied
apply set-last-applied -f second.yaml
create -f second.yaml
apply set-last-applied -f second.yaml
apply set-last-applied -f second.yaml --create-annotation --dry-run=client
apply set-last-applied -f second.yaml --create-annotation
apply edit-last-applied configmap/applied
apply edit-last-applied configmap/settings
apply -f second.yaml -l app=other
apply -f map.yaml -f second.yaml -o name
apply --prune -f map.yaml
apply --prune -f map.yaml --all --force
apply --prune -f map.yaml --all --server-side
apply --prune -f map.yaml --all --prune-allowlist=ConfigMap
apply --prune -f map.yaml --all --prune-allowlist=core/v9/ConfigMap
apply -f map.yaml --all -l a=b
apply -f map.yaml --force-conflicts
apply -f map.yaml --force --server-side
apply -f map.yaml --force --dry-run=server
apply -f map.yaml --subresource=status
apply -f map.yaml --cascade=maybe
apply -f map.yaml --validate=maybe
apply --prune -f map.yaml -l app=web --prune-allowlist=core/v1/ConfigMap --dry-run=client
apply --prune -f map.yaml -l app=web --prune-allowlist=core/v1/ConfigMap --dry-run=server
apply --prune -f map.yaml -l app=web --prune-allowlist=core/v1/ConfigMap
get configmap -o name
apply -f web.yaml
L
export KUBE_EDITOR="sed -i s/web/other/"
same_all "apply edit-last-applied" <<'L'
apply edit-last-applied configmap/applied
apply view-last-applied configmap/applied
L
export KUBE_EDITOR="sed -i s/labels:.*/labels:.x/"
same_all "apply edit-last-applied: what is not valid" <<'L'
~ apply edit-last-applied configmap/applied  # the file's name
apply view-last-applied configmap/applied
L
unset KUBE_EDITOR
same_all "apply --server-side" <<'L'
apply --server-side --field-manager=one -f map.yaml --force-conflicts
apply --server-side --field-manager=two -f map2.yaml
L
same_all "apply --force" <<'L'
create service clusterip fixed --tcp=80 -o name
~ apply -f fixed.yaml  # kubectl shows the patch
apply -f fixed.yaml --force
apply -f fixed.yaml
get service fixed -o jsonpath={.spec.type}
L
same_all "diff" <<'L'
diff -f map.yaml --force-conflicts
diff -f nope.yaml
L
for letter in k c; do
  program=$kubectl; [ $letter = k ] || program=$coraclectl
  in_ns env HOME="$T/home" KUBECONFIG="$T/etc/admin.kubeconfig" KUBECTL_EXTERNAL_DIFF="diff -r" "$program" -n changes-$letter diff -f map2.yaml \
    -f web.yaml --concurrency=2 --prune -l app=web --prune-allowlist=core/v1/ConfigMap 2>&1 | sed -E 's/(LIVE|MERGED)-[A-Za-z0-9]+/\1/g' |
    grep -v -e last-applied -e '{"apiVersion"' | normal $letter >"$T/$letter.diff"
done
check "diff --prune --concurrency with a program of the user's" diff "$T/k.diff" "$T/c.diff"
same_objects "apply: the same objects" configmap,deployment

# ---- label, annotate, patch, set ----
same_all "label, annotate, patch" <<'L'
label configmap settings a=b
label configmap settings a=b
label configmap settings a=c
label configmap settings a=c --overwrite
label configmap settings a- d=e
label configmap settings d-
label configmap settings nope-
label configmap settings --list
label configmap settings f=g --list
label configmap settings a=b=c
label configmap settings 'a=b c'
label configmap settings a=b a-
label configmap settings
label configmap a=b settings
label
label configmap --all -l a=b c=d
label configmap --all --field-selector a=b c=d
label configmap settings --list -o yaml
label configmap settings a=b --resource-version=1
label configmap --all a=b --resource-version=1
label configmap settings x=y --dry-run=client
label configmap settings x=y --dry-run=server
label configmap settings x=y -o name
label configmap --field-selector metadata.name=settings z=z
label -f map.yaml --overwrite app=labelled
label --local -f web.yaml a=b -o yaml
label --local configmap settings a=b
label --local a=b
label --local -f web.yaml a=b --dry-run=server
annotate configmap settings a=b
annotate configmap settings a=b
annotate configmap settings a=c
annotate configmap settings a=c e=f --overwrite
annotate configmap settings a- nope-
annotate configmap settings a=b a-
annotate configmap settings
annotate configmap settings --list
annotate configmap settings 'long=a b = c'
annotate --local -f web.yaml a=b
patch configmap settings -p '{"data":{"b":"2"}}'
patch configmap settings -p '{"data":{"b":"2"}}'
patch configmap settings --type=merge -p '{"data":{"b":null}}'
patch configmap settings --type=json -p '[{"op":"add","path":"/data/c","value":"3"}]'
patch configmap settings --patch-file patch.yaml
? patch configmap settings -p '{"data":{"b":"2"}}' --dry-run=client  # kubectl's patch does not say that it is a dry run
? patch configmap settings -p '{"data":{"b":"2"}}' --dry-run=server  # likewise
patch configmap settings -p '{}' --patch-file patch.yaml
patch configmap settings
patch configmap settings -p '{}' --type=other
patch configmap settings --patch-file nope
patch --local -f web.yaml -p '{"spec":{"replicas":3}}'
patch --local -f web.yaml -p '{"spec":{"replicas":0}}'
patch --local configmap settings -p '{}'
patch deployment web --subresource=scale --type=merge -p '{"spec":{"replicas":0}}'
patch configmap none -p '{}'
L
same_all "set" <<'L'
set image deployment/web main=three
set image deployment/web main=three
set image deployment web '*=four'
~ set image deployment/web nope=x  # ours names the containers that there are
set image deployment/web main=x --dry-run=client
set image deployment/web main=x --dry-run=server
set image deployment/web main=x -o name
set image deployment/web main-
set image deployment/web main=a y
set image deployment/web
set image deployment/web '*=a' main=b
set image
set image --local -f web.yaml main=x
set image --local deployment/web main=x
set env deployment/web A=b C=d
set env deployment/web A=b
set env deployment/web --list
set env deployment/web A-
set env deployment/web C=e --overwrite=false
set env deployment/web -c 's*' S=1
set env deployment/web -c nope S=1
set env deployment/web --from=configmap/settings --prefix=P_ --keys=c
set env deployment/web --from=secret/keys --keys=k
set env deployment/web --list
set env deployment/web --list --resolve
set env deployment/web --list -o yaml
set env deployment/web --keys=a
set env deployment/web 1a=b
set env deployment/web a=b a-
set env deployment/web a=b c
set env
set env configmap/settings A=b
set env --local -f web.yaml A=b --list
set resources deployment/web --limits=cpu=1,memory=64Mi --requests=cpu=100m
set resources deployment/web -c main --limits=cpu=2
~ set resources deployment/web -c nope --limits=cpu=2  # likewise
set resources deployment/web
set resources deployment/web --limits=a
set resources deployment/web --limits=cpu=x
set serviceaccount deployment web robot
set sa deployment/web robot
set sa deployment/web robot --dry-run=client
set sa
set sa robot
set selector service/plain a=b
set selector service plain a=b,c=d
set selector service/plain 'a in (b)'
set selector service/plain a=b --resource-version=1
set selector
set selector deployment/web a=b
set subject rolebinding/readers --user=ann --group=staff
set subject rolebinding/readers --user=ann
set subject rolebinding readers --serviceaccount=:robot --serviceaccount=a:b
set subject rolebinding/readers --serviceaccount=robot
set subject rolebinding/readers
set subject rolebinding/readers --user=x --dry-run=client
set subject rolebinding/readers --user=x --dry-run=server
set subject service/plain --user=x
set subject --local -f binding.yaml --user=b -o yaml
set subject --local rolebinding/readers --user=b
set subject --all -l a=b rolebinding --user=x
L
INPUT=$T/in/e.env same_all "set env from standard input" <<'L'
set env deployment/web -e -
L
same_objects "set: the same objects" configmap,deployment,service,rolebinding

# ---- replace, expose, autoscale, run ----
d='--dry-run=client -o yaml'
same_all "replace, expose, autoscale, run" <<L
replace -f map2.yaml
replace -f map2.yaml --save-config
replace -f nothere.yaml
replace -f map2.yaml --dry-run=client
replace -f map2.yaml --dry-run=server
replace -f map2.yaml --grace-period=1
replace -f map2.yaml --timeout=1s
replace -f map2.yaml --force --dry-run=server
replace -f map.yaml --force
replace -f map.yaml -o name
expose deployment web $d
expose deployment web --port=80 --name=front $d
expose deployment web --port=80 --name=front $d --save-config
expose deployment web --port=80,53 --target-port=http $d
expose deployment web --port=80 --type=LoadBalancer --load-balancer-ip=1.2.3.4 --external-ip=5.6.7.8 --session-affinity=ClientIP $d
expose deployment web --port=80 --session-affinity=other $d
expose deployment web --port=80 --selector=a=b,c=d --labels=e=f $d
expose deployment web --port=80 --cluster-ip=None --protocol=UDP $d
expose deployment web --port=80 --overrides='{"spec":{"type":"NodePort"}}' $d
~ expose deployment web --port=80 --overrides='[{"op":"remove","path":"/spec/type"}]' --override-type=json $d  # other words
expose deployment web --port=80 --overrides='[{"op":"remove","path":"/metadata/labels"}]' --override-type=json $d
expose deployment web --port=80 --overrides='{"spec":{"ports":[{"port":80,"name":"x"}]}}' --override-type=strategic $d
expose service plain --port=80 --name=again $d
expose configmap settings --port=80
expose service outside --name=x
expose -f web.yaml --port=80 --name=exposed
expose -f web.yaml --port=80 --name=exposed
autoscale deployment web --max=3 $d
autoscale deployment web --min=1 --max=3 --cpu=50% --memory=200Mi $d
autoscale deployment web --max=3 $d --save-config
autoscale deployment web --max=3
autoscale deployment web
autoscale deployment web --max=0
autoscale deployment web --max=1 --min=2
autoscale configmap settings --max=3
run x --image=a $d
run x --image=a $d --save-config
run x --image=a $d --port=80 --env=B=c --env=A=b --labels=b=a,a=b --annotations=c=d --privileged --image-pull-policy=Never --restart=OnFailure
run x --image=a $d -- b c
run x --image=a $d --command -- b c
run x --image=a $d b c
run x --image=a --port=80 --expose $d
run x --image=a --port=80 --expose --restart= $d
run x --image=a --port=80 --expose --dry-run=client
run x --image=a $d --overrides='{"spec":{"hostNetwork":true}}'
run x --image=a $d --overrides='{"spec":{"containers":[{"name":"x","tty":true}]}}' --override-type=strategic
run x --image=a --dry-run=client -o name
run --image=a
run x
run x --image=a --rm
run x --image=a -t
run x --image=A
run x --image=
run x --image=a --expose
run x --image=a --port=http
run x --image=a --env=B
run x --image=a --labels=B
run x --image=a --restart=Sometimes
run x --image=a --image-pull-policy=Sometimes
run x --image=a -i --dry-run=client
run x --image=a --dry-run=server
L
same_objects "replace and expose: the same objects" configmap,service,horizontalpodautoscaler
# ---- what names objects together, and delete ----
cat >pair.yaml <<'Y'
apiVersion: v1
kind: ConfigMap
metadata: {name: pair-a, labels: {app: web, of: pair}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: pair-b, labels: {app: db, of: pair}}
Y
printf 'apiVersion: v1\nkind: ConfigMap\nmetadata: {labels: {app: web}}\n' >nameless.yaml
printf 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: empty, labels: , annotations: }\ndata: {a: b}\n' >empty.yaml
printf 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: stamped, creationTimestamp: null}\ndata: {a: b}\n' >stamped.yaml
echo '# nothing' >nothing.yaml
mkdir -p deep/er globs none
cp pair.yaml deep/er/; cp map.yaml deep/
csplit -sz -f globs/part- -b %d.yaml pair.yaml /---/
cp map.yaml globs/map.txt
same_all "what names objects together" <<'L'
apply -f pair.yaml
delete
delete configmap
delete -l app=web
delete --all
delete configmap pair-a --all
delete configmap/pair-a --all
delete configmap pair-a -l app=web
delete configmap/pair-a -l app=web
delete configmap,pod pair-a -l app=web
delete configmap --all -l app=web
delete configmap --all --field-selector=metadata.name=x
delete configmap -l ' '
delete configmap pair-a -f pair.yaml
delete configmap/pair-a -f pair.yaml
delete configmap -f pair.yaml
delete configmap pair-a -A
delete configmap/pair-a -A
~ delete configmap pair-a pod/x  # ours says which word
delete configmap pair-a --cascade=False1
delete configmap pair-a --cascade=Background
delete configmap pair-a --now --grace-period=1
delete configmap pair-a --now --force
delete configmap pair-a --force --grace-period=3
delete configmap pair-a -o yaml
delete configmap ..
delete configmap ''
~ delete -f nameless.yaml  # ours names the line
delete -f none
delete -f 'nope*.yaml'
delete -f - -f -
delete -f pair.yaml -k .
delete -k . -R
label configmap pair-a -l app=web x=y
label configmap/pair-a -l app=web x=y
label configmap pair-a -f pair.yaml x=y
label configmap/pair-a -f pair.yaml x=y
label configmap x=y
label configmap -l ' ' x=y
label -f pair.yaml -l app=db one=two
annotate configmap pair-a -l app=web x=y
annotate configmap/pair-a -f pair.yaml x=y
annotate -f pair.yaml -l app=db one=two
scale deployment web -l app=web --replicas=1
scale deployment/web -f web.yaml --replicas=1
scale deployment --replicas=1
scale deployment web --replicas=1 --current-replicas=-2
patch configmap pair-a -f pair.yaml -p '{}'
patch configmap -p '{}'
patch -p '{}'
set image deployment web -l app=web main=x
set image deployment/web -l app=web main=x
set image deployment/web -f web.yaml main=x
set image deployment main=x
set env deployment web -l app=web A=b
set env deployment/web -f web.yaml A=b
set resources deployment web -l app=web --limits=cpu=1
set sa deployment/web -f web.yaml robot
set selector service plain -f web.yaml a=b
set subject rolebinding/readers -f binding.yaml --user=x
rollout restart deployment web -l app=web
rollout restart deployment/web -l app=web
rollout restart deployment/web -f web.yaml
rollout restart
rollout undo deployment web -f web.yaml
rollout pause deployment/web -l a=b
rollout status deployment/web -f web.yaml
rollout history deployment web -l a=b
expose deployment/web -f web.yaml --port=80
expose deployment --port=80
autoscale deployment/web -f web.yaml --max=3
autoscale deployment --max=3
wait configmap pair-a -l app=web --for=create
wait configmap/pair-a --for=create -f pair.yaml
wait configmap --for=create
wait configmap -A --for=create
wait configmap pair-a -A --for=create
get configmap pair-a -l app=web
get configmap/pair-a -l app=web
get configmap -f pair.yaml
get configmap/pair-a -f pair.yaml
get configmap pair-a -A
get configmap/pair-a -A
get -f pair.yaml -l app=web -o name
describe configmap pair-a -l app=web
describe configmap/pair-a -f pair.yaml
describe configmap pair-a -A
describe pods -A -l none=of-these
describe pods -l none=of-these
L
same_all "where files are" <<'L'
apply -f 'globs/*.yaml' -o name
apply -f 'globs/part-[0-9].yaml' -o name
apply -f 'globs/m?p.txt' -o name
apply -f 'glo*' -o name
apply -f deep -o name
apply -R -f deep -o name
apply -f map.yaml -f none -o name
apply -f none -f map.yaml -o name
apply -f ''
apply -f nothing.yaml
delete -f nothing.yaml
get -f nothing.yaml
label -f nothing.yaml a=b
patch -f nothing.yaml -p '{}'
scale -f nothing.yaml --replicas=1
autoscale -f nothing.yaml --max=2
edit -f nothing.yaml
rollout restart -f nothing.yaml
rollout status -f nothing.yaml
describe -f nothing.yaml
~ apply -f http://127.0.0.1:1/x  # kubectl speaks of its server
? label -f 'globs/part-*.yaml' --list  # kubectl's labels have no order
L
same_all "empty fields of metadata" <<'L'
create -f empty.yaml --dry-run=client -o yaml
apply -f empty.yaml
apply view-last-applied configmap empty
label configmap empty a=b
apply -f empty.yaml
get configmap empty -o jsonpath={.metadata.labels}
apply --server-side --field-manager=other -f empty.yaml
? apply -f stamped.yaml  # nothing is changed: ours says so
? apply -f stamped.yaml  # nothing is changed: ours says so
get configmap stamped -o jsonpath={.metadata.creationTimestamp}
get configmap empty --show-managed-fields -o jsonpath={.metadata.managedFields[*].fieldsV1}
L
same_all "delete" <<'L'
delete -f pair.yaml -l app=web
delete -f pair.yaml -l app=none
~ delete -f pair.yaml -l app=web --ignore-not-found=false  # ours names the line
delete configmap none
delete configmap none --ignore-not-found
delete configmap -l app=none
delete configmap pair-b none
apply -f pair.yaml
delete configmap,secret -l of=pair --dry-run=client
delete configmap,secret -l of=pair --dry-run=server
delete configmap pair-a --grace-period=0
delete configmap pair-b --force
apply -f pair.yaml
delete configmap/pair-a --cascade=true
delete configmap/pair-b --cascade=false -o name
apply -f pair.yaml --cascade=true
delete -R -f deep --dry-run=client
delete -f 'globs/part-*.yaml' --now
delete clusterrole reader-^ --dry-run=client
delete configmap --field-selector metadata.name=nope
L
echo "# $total commands compared"

for name in clusterrole/reader clusterrolebinding/readers priorityclass/urgent; do c delete $name-k $name-c >/dev/null; done
