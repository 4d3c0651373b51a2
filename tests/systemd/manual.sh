#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The manual says what the programs say. manual.sh CORACLECTL CORACLE_OCI; with ACCEPT=1 it rewrites what the man pages are made of,
# and skips. TAP.
set -uo pipefail
source=${CORACLE_SOURCE:-$(cd "$(dirname "$0")/../.." && pwd)}
coraclectl=$1 coracle_oci=$2
n=0 bad=0
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
ok() { n=$((n + 1)); echo "ok $n - $*"; }
not_ok() { n=$((n + 1)); bad=1; echo "not ok $n - $*"; }
check() { local name=$1 out; shift; if out=$("$@" 2>&1) && [ -z "$out" ]; then ok "$name"; else not_ok "$name"; echo "$out" | sed 's/^/  | /' | head -n 40; fi; }

for program in "$coraclectl" "$coracle_oci"; do
  kept=$source/systemd/manual/${program##*/}.txt
  "$program" __manual >"$T/${program##*/}.txt" || { not_ok "${program##*/} prints its commands"; continue; }
  if [ -n "${ACCEPT:-}" ]; then cp "$T/${program##*/}.txt" "$kept"; ok "$kept # SKIP accepted"; continue; fi
  check "systemd/manual/${program##*/}.txt is what ${program##*/} says (ACCEPT=1 $0 $* takes it over)" diff -u "$kept" "$T/${program##*/}.txt"
done
[ -z "${ACCEPT:-}" ] || exit 77

cd "$source" || exit 1
page() { systemd/manual/manual.py "$1" 0.0 "${@:2}" >"$T/$1.man"; }
check "coracled's page" page coracled daemon/main.cc
check "coraclectl's page" page coraclectl systemd/manual/coraclectl.txt
check "coracle-oci's page" page coracle-oci systemd/manual/coracle-oci.txt
check "the settings' page has all settings" page coracle-config daemon/config.h daemon/config.cc systemd/config.example.yaml
if command -v groff >/dev/null; then
  for each in coracled coraclectl coracle-oci coracle-config; do
    check "$each's page is shown without a warning" groff -man -Tascii -ww -rLL=100n -z "$T/$each.man"
  done
else
  ok "the pages are shown without a warning # SKIP groff is missing"
fi
sed 's/^  uint16_t port = 6443; .*/  uint16_t port = 6443;/' daemon/config.h >"$T/config.h"
refused() { ! page coracle-config "$T/config.h" daemon/config.cc systemd/config.example.yaml 2>"$T/refusal" && grep -q "port is not described" "$T/refusal"; }
check "a setting that config.h does not explain is an error" refused
exit $bad
