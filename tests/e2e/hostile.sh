#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Malformed and malicious requests of every kind against the running daemon, while a well-behaved client uses it: hostile.py has
# the list and explains --alone, for a machine that has nothing else to do, and --full, a gigabyte of objects, which is what a long
# run does. Needs Python 3, its standard library only.
# for: daemon/api daemon/flowcontrol daemon/auth daemon/admission/node_restriction daemon/admission/pod_security daemon/network/proxy daemon/network/ruleset store/object/patch ctl/events ctl/describe
. "$(dirname "$0")/lib.sh"
command -v python3 >/dev/null || skip_all "python3 is missing"
trap cleanup EXIT
make_network || skip_all "cannot make network namespaces with veth pairs"
ulimit -n "$(ulimit -Hn)"
options=("$@")
if [ "${CORACLE_LONG:-0}" != 0 ] && [ "$(df --output=avail -B1 "$T" | tail -n 1)" -gt $((5 << 30)) ]; then options+=(--full); fi
case " ${options[*]} " in *" --full "*) EXTRA_CONFIG="storeMaxSize: 1536Mi" ;; esac
write_config
start_daemon
field() { sed -n "s/.*$1: *\"\{0,1\}\([^\" ]*\).*/\1/p" "$T/etc/admin.kubeconfig" | head -n 1 | base64 -d > "$2"; }
field certificate-authority-data "$T/ca.crt"; field client-certificate-data "$T/admin.crt"; field client-key-data "$T/admin.key"
mkdir "$T/requests"
if command -v openssl >/dev/null; then
  openssl ecparam -name prime256v1 -genkey -noout -out "$T/requests/key" 2>/dev/null
  for node in edge other; do
    openssl req -new -key "$T/requests/key" -subj "/O=system:nodes/CN=system:node:$node" -out "$T/requests/node-$node.csr" 2>/dev/null
  done
fi
in_ns python3 "$here/hostile.py" --pid "$daemon_pid" --ca "$T/ca.crt" --cert "$T/admin.crt" --key "$T/admin.key" --node edge --requests "$T/requests" \
  --coraclectl "$coraclectl:$T/etc/admin.kubeconfig" "${options[@]}" || failures=1
