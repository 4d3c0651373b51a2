#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What kubectl 1.36 and coraclectl print, return and make: the commands of outputs.txt with both, against one daemon. See outputs.py.
#
#   outputs.sh [--only REGEX] [--all]     parts of the table whose titles match; CORACLE_LONG=1 runs all of it
#
# for: ctl store/object/yaml_emitter
. "$(dirname "$0")/../e2e/lib.sh"
source=$(cd "$(dirname "$0")" && pwd)
kubectl=${KUBECTL:-}
[ -n "$kubectl" ] || while read -r suite path version; do
  case $version in v1.3[6-9]*) kubectl=$path ;; esac
done < <("$source/../e2e/fetch_kubectl.sh" "$cache/kubectl" 2>/dev/null)
[ -n "$kubectl" ] || skip_all "Debian sid's kubectl cannot be had"
command -v jq >/dev/null || skip_all "jq is missing"
start_machine
mkdir -p "$T/in" && cd "$T/in" || exit 1

# ---- what is shown ----
for name in shown outputs-k outputs-c; do c create namespace $name >/dev/null; done
c -n shown apply -f "$source/outputs.yaml" >"$T/apply.log" 2>&1 || { echo "Bail out! the objects:"; cat "$T/apply.log"; exit 1; }
settled() {
  [ "$(c -n shown get deployment web -o 'jsonpath={.status.readyReplicas}')" = 2 ] &&
    [ "$(c -n shown get job once -o 'jsonpath={.status.succeeded}')" = 1 ] &&
    [ "$(c -n shown get pod done -o 'jsonpath={.status.phase}')" = Failed ] &&
    [ "$(c -n shown get pod talker -o 'jsonpath={.status.containerStatuses[*].ready}')" = 'true true' ] &&
    [ "$(c -n shown get pvc bound -o 'jsonpath={.status.phase}')" = Bound ]
}
check "the objects are there, and the pods run" until_true 60 settled

# ---- files that commands name ----
sed -n '/^# file: /,$p' "$source/outputs.files" | awk '/^# file: / { path = $3; next } { print >path }'
mkdir -p several && cp map.yaml several/a.yaml && cp second.yaml several/b.yaml
printf '\xff\xfe\x00' >bytes

in_ns python3 "$source/outputs.py" "$kubectl" "$coraclectl" "$T/etc/admin.kubeconfig" "$source/outputs.txt" ${CORACLE_LONG:+--long} "$@" >"$T/tap"
status=$? plan=
while IFS= read -r text; do
  case $text in
    "ok "*) ok "${text#* - }" ;;
    "not ok "*) not_ok "${text#* - }" ;;
    1..*) plan=${text#1..} ;;
    *) echo "$text" ;;
  esac
done <"$T/tap"
case $status in
  0 | 3) ;;  # 3: tests failed, as they say themselves
  *) not_ok "the comparison ends: status $status" ;;
esac
[ -n "$plan" ] || not_ok "the comparison says at its end how many tests there were"
