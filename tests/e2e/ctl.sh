#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What coraclectl does beyond the common verbs: doctor, completion, the node verbs, run -it, cp, diff, events, and its error
# messages.
# for: ctl store/client runtime/sys/terminal
. "$(dirname "$0")/lib.sh"
start_machine

image=localhost/busybox:latest
c create deployment web --image=$image -- sleep 100000 >/dev/null
c rollout status deployment/web --timeout=120s >/dev/null
pod=$(c get pods -l app=web -o 'jsonpath={.items[0].metadata.name}')

# ---- doctor: in the machine's namespace, with and without the daemon ----
doctor() { c doctor --config "$T/etc/config.yaml" "$@"; }
expect_match "doctor: coracled is ready" '^OK +coracled +runs and is ready' doctor
expect_match "health: its API and its node are well" '^(healthy|node .*Pressure.*)$' c health
expect "health: -o json has a verdict" "true" eval "c health -o json | jq '(.problems | type == \"array\") and (.healthy == (.problems == []))'"
expect_match "boot: shows when a pod became ready, and what took the time until then" '[0-9] s  pod default/web-[^ ]+ is ready +a place until [0-9]+ s, its images and containers until [0-9]+ s' c boot
expect_match "doctor: measures the disk" '^(OK|WARN|FAIL) +disk speed +4 KiB reach the disk in ' doctor
expect_match "doctor: tries what the kernel can" '^OK +features +tried and working: .*mount API.*nftables' doctor
expect_match "doctor: forwarding is on" '^OK +forwarding +net.ipv4.ip_forward is on' doctor
expect_match "doctor: no rule in the way" '^OK +firewall ' doctor
expect "doctor: -o json has the same findings" "true" eval "doctor -o json | jq '.findings | length > 10 and all(.level and .check and .message)'"
in_ns nft 'add table ip filter; add chain ip filter FORWARD { type filter hook forward priority 0; policy drop; }'
expect_match "doctor: a FORWARD policy of DROP is found" '^FAIL +firewall +the chain ip filter FORWARD drops' doctor
expect_match "doctor: … with what to do" 'iptables -I FORWARD -s 10.244.0.0/24 -j ACCEPT' doctor
expect_fail "doctor: … and fails" 'FAIL' doctor
in_ns nft 'add rule ip filter FORWARD ip saddr 10.244.0.0/24 accept; add rule ip filter FORWARD ip daddr 10.244.0.0/24 accept'
expect_match "doctor: … until the pods are let through" '^OK +firewall ' doctor
in_ns nft 'delete table ip filter'
expect "doctor: leaves nothing behind" "" eval "find '$T/state' -name '.coracle-*'"
expect_match "doctor: without root it says what it could not look at" '^SKIP +disk speed ' setpriv --reuid 65534 --clear-groups "$coraclectl" doctor

# ---- completion: bash's own function, against the live machine ----
cat >"$T/complete.bash" <<'B'
source <(coraclectl completion bash)
compopt() { :; }
COMP_LINE=$1 COMP_POINT=${#1} COMPREPLY=()
_coraclectl
echo "${COMPREPLY[*]}"
B
completed() { KUBECONFIG=$T/etc/admin.kubeconfig PATH=$(dirname "$coraclectl"):$PATH in_ns bash "$T/complete.bash" "coraclectl $1"; }
expect "completion: commands" "cordon" completed "cor"
expect "completion: kinds" "deployments" completed "get dep"
expect "completion: names" "$pod" completed "get pods we"
expect "completion: names behind a kind and a slash" "deployment/web" completed "get deployment/"
expect "completion: namespaces" "kube-system" completed "get pods -n kube-s"
expect "completion: containers" "busybox" completed "logs $pod -c "
expect "completion: values behind =" "yaml" completed "get pods --output=y"
expect "completion: fields" "pod.spec.containers" completed "explain pod.spec.contai"
expect "completion: what follows a colon" "latest" completed "image remove localhost/busybox:"
expect "completion: is quiet without a server" "" env KUBECONFIG=/nonexistent PATH="$(dirname "$coraclectl"):$PATH" HOME=/nonexistent bash "$T/complete.bash" "coraclectl get pods "
for shell in bash zsh fish; do
  command -v $shell >/dev/null || continue
  "$coraclectl" completion $shell >"$T/completion.$shell"
  check "completion: $shell can read its script" $shell -n "$T/completion.$shell"
done

# ---- exit codes and messages as kubectl's ----
expect "usage: a flag that there is not" "1" eval "c get pods --bogus 2>/dev/null; echo \$?"
expect "usage: a flag that is missing" "1" eval "c run x 2>/dev/null; echo \$?"
expect "usage: diff has its own code" "2" eval "c diff --bogus 2>/dev/null; echo \$?"
expect "logs -l that matches nothing is no failure" "No resources found in default namespace." eval "c logs -l app=none 2>&1 || echo failed"
expect_fail "a finding of validation" '^The Namespace "Bad" is invalid: metadata.name: Invalid value: "Bad"' c create namespace Bad
expect_fail "… of an object from flags" '^error: failed to create configmap: ConfigMap "Bad_" is invalid: metadata.name: Invalid value: "Bad_"' c create configmap Bad_
expect_fail "several findings, one to a line" '^\* spec.ports\[0\].protocol: Unsupported value: "X"' eval "printf 'apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {type: Zed, ports: [{port: 80, protocol: X}]}\n' | c create -f -"
expect "--dry-run=client leaves the namespace open" "null" eval "c create configmap x --dry-run=client -o json | jq .metadata.namespace"
expect "--dry-run=client: … unless one was named" "other" eval "c -n other create configmap x --dry-run=client -o json | jq -r .metadata.namespace"
expect "-o yaml hides who owns which field" "0" eval "c create configmap x --from-literal=a=b --dry-run=server -o yaml | grep -c managedFields"
for verb in create replace delete; do
  expect_fail "$verb -f: -n may not contradict the file" 'does not match the namespace "default"' eval "printf 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: other}\n' | c -n default $verb -f -"
done
expect_fail "annotate: a key is set or removed, not both" 'both modify and remove' c annotate node edge a=b a-

# ---- node verbs ----
expect "cordon" "node/edge cordoned" c cordon edge
expect "cordon again" "node/edge already cordoned" c cordon edge
expect_match "the node says so" '^edge +Ready,SchedulingDisabled' c get nodes
expect "uncordon" "node/edge uncordoned" c uncordon edge
c run lone --image=$image --command -- sleep 100000 >/dev/null
until_true 20 eval '[ -n "$(c get pod lone -o "jsonpath={.spec.nodeName}")" ]'
expect_fail "drain spares what nobody makes again" 'use --force to override\): default/lone' c drain edge
expect_match "drain --force" '^node/edge drained' c drain edge --force --grace-period=0 --timeout=120s
expect "drain: the lone pod is gone" "0" eval "c get pods --no-headers 2>/dev/null | grep -c ^lone"
soon expect_match "drain: the Deployment's waits for the node" ' Pending ' c get pods -l app=web
c uncordon edge >/dev/null
check "uncordon lets it run" c rollout status deployment/web --timeout=120s
expect "taint" "node/edge tainted" c taint nodes edge team=a:NoSchedule
expect "the taint is there" "NoSchedule" c get node edge -o 'jsonpath={.spec.taints[?(@.key=="team")].effect}'
expect_fail "taint is not overwritten" 'overwrite is false' c taint nodes edge team=b:NoSchedule
expect "taint -" "node/edge untainted" c taint nodes edge team-
expect_fail "taint: a wrong effect" 'unsupported taint effect; there are NoSchedule, PreferNoSchedule and NoExecute' c taint nodes edge team=b:Never
pod=$(c get pods -l app=web -o 'jsonpath={.items[0].metadata.name}')

# ---- run, attach ----
expect "run --attach shows all and gives the exit code" $'one\ntwo\npod "once" deleted from default namespace\n3' \
  eval "c run once --image=$image --attach --rm --restart=Never --command -- sh -c 'echo one; echo two; exit 3'; echo \$?"
expect "run -i passes its input" $'got hello\n0' eval "echo hello | c run reader --image=$image -i --rm -q --restart=Never --command -- sh -c 'read x; echo got \$x'; echo \$?"
check "run --rm takes the pods away" until_true 15 eval "pods=\$(c get pods --no-headers) && ! grep -Eq '^(once|reader) ' <<<\"\$pods\""
in_terminal() { script -qec "nsenter --net=/run/netns/$ns $coraclectl --kubeconfig $T/etc/admin.kubeconfig $*" /dev/null </dev/null; }
run_it() { in_terminal run "$1" --image=$image -it --restart=Never --command -- sh -c "'sleep 0.5; tty; seq 100 | tr -d \"\\\\n\"; echo'"; }
count_all='/dev/pts/.*|^1234.*9899100'  # neither the attach nor the log may take bytes from the other
expect "run -it has a terminal, and misses nothing" 8 eval 'for i in 1 2 3 4; do run_it term-$i; done | grep -cE "$count_all"'
expect "… nor does the log" 8 eval 'for i in 1 2 3 4; do c logs term-$i; done | grep -cE "$count_all"'
c delete pod term-1 term-2 term-3 term-4 --grace-period=1 >/dev/null
lost=  # data in flight when the command ends
for i in $(seq 30); do [ "$(c run short --image=$image -i --rm -q --restart=Never --command -- sh -c "sleep 0.0$((i % 3)); echo said" </dev/null 2>"$T/run.err")" = said ] || lost="$lost $i: $(<"$T/run.err")"; done
expect "run -i loses nothing of what a short command says" "" echo "$lost"
expect_fail "run says why a pod does not come up" 'does not run after 2s' c run never --image=$image --attach --rm -q --pod-running-timeout=2s --overrides='{"spec":{"nodeSelector":{"no":"such"}}}'
expect_fail "run --rm without attaching" 'attached containers' c run x --image=$image --rm
cat >"$T/cat.yaml" <<Y
apiVersion: v1
kind: Pod
metadata: {name: cat}
spec: {terminationGracePeriodSeconds: 0, restartPolicy: Never, containers: [{name: main, image: "$image", command: [cat], stdin: true, stdinOnce: true}]}
Y
c apply -f "$T/cat.yaml" >/dev/null; c wait --for=condition=Ready pod/cat --timeout=120s >/dev/null
expect "attach speaks with the container's own process" "to and fro" eval "echo 'to and fro' | c attach -iq cat"
sed -e 's/name: cat/name: asked/' -e 's/\[cat\]/[sh, -c, "while read x; do echo got $x; sleep 0.05; echo all; done"]/' -e 's/, stdinOnce: true//' "$T/cat.yaml" >"$T/asked.yaml"
c apply -f "$T/asked.yaml" >/dev/null; c wait --for=condition=Ready pod/asked --timeout=120s >/dev/null
# It waits until the process is silent, which on a busy machine may be before the answer.
soon expect "attach hears the answer to what it said last" $'got it\nall' eval "echo it | c attach -iq asked"

# ---- cp ----
mkdir -p "$T/tree/sub"; echo hello >"$T/tree/a"; ln -s a "$T/tree/link"; head -c 2000000 /dev/urandom >"$T/tree/sub/big"
check "cp: a directory there" c cp "$T/tree" "$pod:/tmp/there"
check "cp: … and back" c cp "$pod:/tmp/there" "$T/back"
check "cp: it is the same" diff -r "$T/tree" "$T/back"
check "cp: a file into a directory" c cp "$T/tree/a" "$pod:/tmp"
expect "cp: … has its name" "hello" c exec "$pod" -- cat /tmp/a
check "cp: a file under another name" c cp "default/$pod:/tmp/a" "$T/renamed"
expect "cp: … and its bytes" "hello" cat "$T/renamed"
expect_fail "cp: what is not there" 'nosuch' c cp "$pod:/nosuch" "$T/x"
expect_fail "cp: what is not here" "doesn't exist in local filesystem" c cp "$T/none" "$pod:/tmp/x"
expect_fail "cp: both here" 'one of src or dest must be a remote file specification' c cp "$T/tree/a" "$T/b"
c exec "$pod" -- rm /bin/tar
expect_fail "cp: a container without tar" 'has no tar' c cp "$T/tree/a" "$pod:/tmp/y"
expect_fail "cp: … the other way" 'has no tar' c cp "$pod:/tmp/a" "$T/y"

# ---- diff, events, replace, delete --all, wait ----
printf 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cfg}\ndata: {a: "1"}\n' >"$T/cfg.yaml"
expect_match "diff: what is new" '^\+  a: "1"' c diff -f "$T/cfg.yaml"
c apply -f "$T/cfg.yaml" >/dev/null
expect "diff: nothing" "0" eval "c diff -f $T/cfg.yaml; echo \$?"
sed -i 's/"1"/"2"/' "$T/cfg.yaml"
expect "diff: something" "1" eval "c diff -f $T/cfg.yaml >/dev/null; echo \$?"
expect_match "diff: … says what" '^\+  a: "2"' c diff -f "$T/cfg.yaml"
expect "diff: an error is more" "2" eval "c diff -f $T/none.yaml 2>/dev/null; echo \$?"
expect "diff: a program of one's own" "1" eval "KUBECTL_EXTERNAL_DIFF='diff -rq' c diff -f $T/cfg.yaml >/dev/null; echo \$?"
expect "diff: changes nothing" "1" c get configmap cfg -o 'jsonpath={.data.a}'
printf 'apiVersion: v1\nkind: Secret\nmetadata: {name: sec}\nstringData: {k: hidden}\n' >"$T/sec.yaml"
expect "diff: shows no secrets" "0" eval "c diff -f $T/sec.yaml | grep -c -e hidden -e aGlkZGVu"
soon expect_match "events --for" '^[0-9]+[sm].* Normal +Started +Pod/cat ' c events --for pod/cat
expect "events --for: of nothing else" "0" eval "c events --for pod/cat --no-headers | grep -vc Pod/cat"
expect_fail "events --types" 'Normal or Warning' c events --types=Loud
expect "replace" "configmap/cfg replaced" c replace -f "$T/cfg.yaml"
expect_fail "replace what is not there" 'configmaps "none" not found' eval "sed 's/name: cfg/name: none/' $T/cfg.yaml | c replace -f -"
expect "wait --for=jsonpath" "pod/cat condition met" eval "c wait --for=jsonpath='{.status.phase}'=Succeeded pod/cat --timeout=120s"
expect_fail "wait: what is not there is told at once" 'NotFound' c wait --for=condition=Ready pod/none --timeout=120s
expect_fail "a flag without its argument" "flag needs an argument: 'f' in -f" c apply -f
expect_fail "wait: time is up" 'timed out waiting' c wait --for=condition=Nope pod/cat --timeout=1s
expect_match "a token for a ServiceAccount" '^ey' c create token default
check "delete --all" c delete pods --all --grace-period=0 --force --timeout=120s

# ---- messages ----
expect_fail "an unknown kind" "doesn't have a resource type \"pdos\"; did you mean \"pods\"\?" c get pdos
expect_fail "an unknown command" 'unknown command "gte" for "coraclectl"' c gte pods
expect_fail "an unknown command of a group" 'unknown command "nope"$' c create secret nope
expect_match "… is met with a guess" 'Did you mean get\?' c gte pods
expect_fail "an unknown flag" 'unknown flag: --namspace' c get pods --namspace=x
expect_match "… is met with a guess" 'Did you mean --namespace\?' c get pods --namspace=x
expect_fail "malformed YAML names file and line" "$T/bad.yaml.*line 3" eval "printf 'a: 1\nb:\n\t- x\n' >$T/bad.yaml; c apply -f $T/bad.yaml"
expect_fail "the second document names its line" 'two.yaml:5": no matches for kind "Gadget"' eval \
  "printf 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: fine}\n---\napiVersion: v1\nkind: Gadget\nmetadata: {name: x}\n' >$T/two.yaml; c apply -f $T/two.yaml"
expect_fail "apply -k of a directory without a kustomization" 'unable to find one of' c apply -k "$T"
expect_fail "a kubeconfig that is none" "$T/bad.kubeconfig.*line 2" eval "printf 'a: 1\n\tb\n' >$T/bad.kubeconfig; in_ns $coraclectl --kubeconfig $T/bad.kubeconfig get pods"
expect_fail "a context that is not there" 'context was not found for specified context: nope' c --context nope get pods
cp "$T/etc/admin.kubeconfig" "$T/private.kubeconfig"; chmod 0600 "$T/private.kubeconfig"; chmod 0755 "$T"
expect_fail "a kubeconfig for root only" 'sudo coraclectl' setpriv --reuid 65534 --clear-groups "$coraclectl" --kubeconfig "$T/private.kubeconfig" get pods
stop_daemon
expect_fail "the daemon is down" 'was refused - is coracled running\?' c get pods
expect_fail "health: … which is not healthy" '^the API: .*was refused' c health
expect_match "doctor: coracled does not run" '^(FAIL|WARN) +coracled ' doctor
launch; until_true 20 ready
