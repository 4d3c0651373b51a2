#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A dry run changes nothing: every writing verb × kinds × dry runs in the query and in the body on the raw API, and with
# coraclectl and kubectl 1.20, 1.32 and 1.36; every object of the store is compared before and after. dry_run.py has the tables.
# Needs Python 3, its standard library only.
# for: ctl daemon/api/options daemon/api/resources daemon/registry
. "$(dirname "$0")/lib.sh"
command -v python3 >/dev/null || skip_all "python3 is missing"
start_machine
field() { sed -n "s/.*$1: *\"\{0,1\}\([^\" ]*\).*/\1/p" "$T/etc/admin.kubeconfig" | head -n 1 | base64 -d > "$2"; }
field certificate-authority-data "$T/ca.crt"; field client-certificate-data "$T/admin.crt"; field client-key-data "$T/admin.key"
clients=(--client "coraclectl=$coraclectl")
while read -r suite path version; do
  clients+=(--client "kubectl ${version#v}=$path")
done < <("$here/fetch_kubectl.sh" "$cache/kubectl" 2>"$T/fetch.log")
mkdir -p "$T/home"
in_ns env HOME="$T/home" python3 "$here/dry_run.py" --ca "$T/ca.crt" --cert "$T/admin.crt" --key "$T/admin.key" \
  --kubeconfig "$T/etc/admin.kubeconfig" --directory "$T" "${clients[@]}" || failures=1
