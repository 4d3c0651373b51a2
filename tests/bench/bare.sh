#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The rate of GETs of a pod of 4 KB, over 8 and over 64 connections, by certificate and by the token of a service account, and of
# lists of 500 such pods, beside that of a bare OpenSSL loop that reads the same requests and writes the same bytes (bare_tls.cc): in
# turns, the median of the rounds' ratios.
. "$(dirname "$0")/lib.sh"
start_machine
quick && { pods=50 rounds=2 seconds=1; } || { pods=500 rounds=9 seconds=2; }
c create serviceaccount bench >/dev/null || exit 1
c create clusterrolebinding bench --clusterrole=cluster-admin --serviceaccount=default:bench >/dev/null || exit 1
token=$(c create token bench --duration=1h) || exit 1
in_ns "$driver" gated "$T/etc/admin.kubeconfig" "$pods" || exit 1
compare() {  # compare NAME PATH BAR_OF_8 BAR_OF_64; 0: not over so many
  local name=$1 path=$2 port bare
  in_ns "$driver" answer "$T/etc/admin.kubeconfig" "$path" "$T/$name" || exit 1
  in_ns "$bin/tests/bench/bare_tls" "$T/state/pki/serving.crt" "$T/state/pki/serving.key" "$T/state/pki/ca.crt" "$T/$name" >"$T/port" &
  until_true 10 test -s "$T/port" || { echo "Bail out! no bare loop"; exit 1; }
  read -r port bare <"$T/port"
  [ "$3" = 0 ] || in_ns "$driver" against-bare "$T/etc/admin.kubeconfig" "$token" "$path" "$port" 8 "$rounds" "$seconds" "$3" || failures=1
  [ "$4" = 0 ] || in_ns "$driver" against-bare "$T/etc/admin.kubeconfig" "$token" "$path" "$port" 64 "$rounds" "$seconds" "$4" || failures=1
  kill "$bare"
  wait $! 2>/dev/null
  : >"$T/port"
}
compare pod /api/v1/namespaces/default/pods/gated-0 0.9 0.8
compare list /api/v1/namespaces/default/pods 0.9 0
