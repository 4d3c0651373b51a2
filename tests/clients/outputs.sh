#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What kubectl 1.36 and coraclectl print, return and make: the commands of outputs.txt with both, against one daemon. See outputs.py.
#
#   outputs.sh [--peer] [--only REGEX] [--all]
#     --peer         against kube-apiserver (tests/bench/peer_server.sh): nothing may depend on the habits of our own server
#     --only REGEX   parts of the table whose titles match
#   CORACLE_LONG=1   runs all of the table, and then all of it again with --peer
#
# for: ctl store/object/yaml_emitter
. "$(dirname "$0")/../e2e/lib.sh"
. "$(dirname "$0")/../bench/peer_server.sh"
peer=
[ "${1:-}" != --peer ] || { peer=yes; shift; }
source=$(cd "$(dirname "$0")" && pwd)
kubectl=${KUBECTL:-}
[ -n "$kubectl" ] || while read -r suite path version; do
  case $version in v1.3[6-9]*) kubectl=$path ;; esac
done < <("$source/../e2e/fetch_kubectl.sh" "$cache/kubectl" 2>/dev/null)
[ -n "$kubectl" ] || skip_all "Debian sid's kubectl cannot be had"
command -v jq >/dev/null || skip_all "jq is missing"

make_objects() {  # make_objects PROGRAM KUBECONFIG: those that outputs.txt reads, in the namespace "shown"
  local program=("$1" --kubeconfig "$2") name
  for name in shown outputs-k outputs-c; do in_ns "${program[@]}" create namespace $name; done
  in_ns "${program[@]}" -n shown apply -f "$source/outputs.yaml"
}
settled() {
  [ "$(c -n shown get deployment web -o 'jsonpath={.status.readyReplicas}')" = 2 ] &&
    [ "$(c -n shown get job once -o 'jsonpath={.status.succeeded}')" = 1 ] &&
    [ "$(c -n shown get pod done -o 'jsonpath={.status.phase}')" = Failed ] &&
    [ "$(c -n shown get pod talker -o 'jsonpath={.status.containerStatuses[*].ready}')" = 'true true' ] &&
    [ "$(c -n shown get pvc bound -o 'jsonpath={.status.phase}')" = Bound ]
}
compare() {  # compare TITLE KUBECONFIG OPTION...: its tests are ours
  local title=$1 kubeconfig=$2 status text plan=
  shift 2
  in_ns python3 "$source/outputs.py" "$kubectl" "$coraclectl" "$kubeconfig" "$source/outputs.txt" ${CORACLE_LONG:+--long} "$@" >"$T/tap"
  status=$?
  while IFS= read -r text; do
    case $text in
      "ok "*) ok "$title${text#* - }" ;;
      "not ok "*) not_ok "$title${text#* - }" ;;
      1..*) plan=${text#1..} ;;
      *) echo "$text" ;;
    esac
  done <"$T/tap"
  case $status in
    0 | 3) ;;  # 3: tests failed, as they say themselves
    *) not_ok "${title}the comparison ends: status $status" ;;
  esac
  [ -n "$plan" ] || not_ok "${title}the comparison says at its end how many tests there were"
}
compare_at_peer() {
  make_objects "$kubectl" "$T/peer/kubeconfig" >"$T/apply.log" 2>&1  # it lacks what was new after 1.20
  compare "kube-apiserver: " "$T/peer/kubeconfig" --peer "$@"
}

trap 'stop_peer; cleanup' EXIT
make_network || skip_all "cannot make network namespaces with veth pairs"
write_config
mkdir -p "$T/in" && cd "$T/in" || exit 1
# The files that commands name.
sed -n '/^# file: /,$p' "$source/outputs.files" | awk '/^# file: / { path = $3; next } { print >path }'
mkdir -p several && cp map.yaml several/a.yaml && cp second.yaml several/b.yaml
printf '\xff\xfe\x00' >bytes

if [ -z "$peer" ]; then
  start_daemon
  make_busybox >"$T/pack.log" 2>&1 || { echo "Bail out! image pack:"; cat "$T/pack.log"; exit 1; }
  make_objects "$coraclectl" "$T/etc/admin.kubeconfig" >"$T/apply.log" 2>&1 || { echo "Bail out! the objects:"; cat "$T/apply.log"; exit 1; }
  check "the objects are there, and the pods run" until_true 60 settled
  compare "" "$T/etc/admin.kubeconfig" "$@"
fi
if [ -n "$peer" ] || [ -n "${CORACLE_LONG:-}" ]; then
  if start_peer; then compare_at_peer "$@"; else ok "kube-apiserver # SKIP $(why_no_peer)"; fi
fi
