#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Valid requests of the largest size against the running daemon, each of which makes one thing of Kubernetes very numerous or very
# deep: heavy.py has the list. --alone: this machine has nothing else to do, and the times are asserted in full. Needs Python 3, its
# standard library only.
# for: daemon/api daemon/registry daemon/admission daemon/quota daemon/controller daemon/scheduler/plugins store/schema store/object store/kinds
. "$(dirname "$0")/lib.sh"
command -v python3 >/dev/null || skip_all "python3 is missing"
EXTRA_CONFIG="storeMaxSize: 512Mi"
start_machine
field() { sed -n "s/.*$1: *\"\{0,1\}\([^\" ]*\).*/\1/p" "$T/etc/admin.kubeconfig" | head -n 1 | base64 -d > "$2"; }
field certificate-authority-data "$T/ca.crt"; field client-certificate-data "$T/admin.crt"; field client-key-data "$T/admin.key"
in_ns python3 "$here/heavy.py" --pid "$daemon_pid" --ca "$T/ca.crt" --cert "$T/admin.crt" --key "$T/admin.key" "$@" || failures=1
