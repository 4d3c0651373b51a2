#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The examples in the help of coraclectl work as they are printed: each is run as it stands (ctl/examples.h).
# for: ctl/examples ctl/help
. "$(dirname "$0")/lib.sh"
start_machine

mkdir -p "$T/home" "$T/work" "$T/bin"
ln -s "$coraclectl" "$T/bin/coraclectl"
printf '#!/bin/sh\n' >"$T/bin/kubectl-nothing"
chmod 755 "$T/bin/kubectl-nothing"
cd "$T/work" || exit 1
c create deployment web --image=localhost/busybox --port=80 --dry-run=client -o yaml -- sleep 100000 >web.yaml
c apply -f web.yaml >/dev/null
printf 'apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: reader, namespace: default}\nrules: [{apiGroups: [""], resources: [pods], verbs: [get]}]\n' >role.yaml
c run shell --image=localhost/busybox --restart=Never -- sleep 100000 >/dev/null
for name in someone stranger; do
  openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout /dev/null -subj "/CN=$name" -out csr 2>/dev/null
  printf 'apiVersion: certificates.k8s.io/v1\nkind: CertificateSigningRequest\nmetadata: {name: %s}\nspec: {request: %s, signerName: kubernetes.io/kube-apiserver-client, usages: [client auth]}\n' "$name" "$(base64 -w0 csr)" | c create -f - >/dev/null
done
c wait --for=condition=Available deployment/web --timeout=120s >/dev/null
c wait --for=condition=Ready pod/shell --timeout=120s >/dev/null
c set env deployment/web FIRST=1 >/dev/null  # so that there is a revision to go back to
c rollout status deployment/web --timeout=120s >/dev/null

timeout_of() { case $1 in *" attach "* | *" port-forward "* | *" proxy "*) echo 3 ;; *) echo 150 ;; esac; }
run_example() {
  in_ns env HOME="$T/home" KUBECONFIG="$T/etc/admin.kubeconfig" PATH="$T/bin:$PATH" EDITOR=true timeout -k 60 "$(timeout_of "$1")" bash -c "$1" </dev/null
  local status=$?
  case $1 in
    *" attach "* | *" port-forward "* | *" proxy "*) [ $status = 124 ] ;;  # goes on until it is ended
    *" diff "* | *" doctor"* | *" health"*) [ $status -le 1 ] ;;  # there may be a difference, or something wrong with this machine
    *) [ $status = 0 ] ;;
  esac
}

count=0
while read -r command; do
  # shellcheck disable=SC2086  # words of a command
  while IFS= read -r line; do
    count=$((count + 1))
    check "${command:-coraclectl}: $line" run_example "$line"
  done < <("$coraclectl" $command --help | sed -n '/^Examples:/,/^$/s/^  //p')
done < <("$coraclectl" __manual | sed -n 's/^command coraclectl *//p')
check "there are examples" test "$count" -gt 60
