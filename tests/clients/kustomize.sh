#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compares `coraclectl kustomize` with kubectl of Debian sid on the kustomizations in tests/ctl/kustomize/cases: outputs are equal,
# byte for byte, and what kubectl refuses is refused. The wanted output in each case has to be kubectl's too: so the unit tests,
# which have no kubectl, test the same. Needs no daemon and no privileges.
#
#   kustomize.sh [CASE…]     KUBECTL=PATH uses that kubectl; ACCEPT=1 writes kubectl's outputs into the cases
#   kustomize.sh -- DIR…     compares the kustomizations in these directories instead
set -u
here=$(cd "$(dirname "$0")" && pwd)
coraclectl=${CORACLE_BIN:?CORACLE_BIN names the build directory}/ctl/coraclectl
kubectl=${KUBECTL:-$(sh "$here/../e2e/fetch_kubectl.sh" "${CORACLE_TEST_CACHE:-/var/tmp/coracle-tests}/kubectl" 2>/dev/null | awk '$1 == "sid" { print $2 }')}
[ -x "$kubectl" ] || { echo "ok 1 - kustomize # SKIP no kubectl of Debian sid"; exit 77; }
T=$(mktemp -d /tmp/coracle-kustomize.XXXXXX)
trap 'rm -rf "$T"' EXIT
number=0 failures=0
ok() { number=$((number + 1)); echo "ok $number - $1"; }
not_ok() { number=$((number + 1)); failures=$((failures + 1)); echo "not ok $number - $1"; sed 's/^/  | /' | head -n 60; }

# Both programs, with the output in $T/ours and $T/theirs and the codes in $ours and $theirs.
run_both() {
  "$kubectl" kustomize "$1" >"$T/theirs" 2>"$T/theirs.err"; theirs=$?
  "$coraclectl" kustomize "$1" >"$T/ours" 2>"$T/ours.err"; ours=$?
}

compare() {  # compare NAME
  if [ $ours != $theirs ]; then
    { echo "kubectl: $theirs, coraclectl: $ours"; cat "$T/theirs.err" "$T/ours.err"; } | not_ok "$1: the exit code"
  elif ! cmp -s "$T/theirs" "$T/ours"; then
    diff "$T/theirs" "$T/ours" | not_ok "$1: the output"
  else
    ok "$1"
  fi
}

if [ "${1:-}" = -- ]; then
  shift
  for directory in "$@"; do run_both "$directory"; compare "$directory"; done
else
  [ $# -gt 0 ] || set -- "$here"/../ctl/kustomize/cases/*.txt
  mapfile -t cases < <(realpath "$@")
  for case in "${cases[@]}"; do
    name=$(basename "$case" .txt)
    rm -rf "${T:?}/case" && mkdir "$T/case"
    # A section is a file, but for build, want and error.
    awk -v root="$T/case" '/^-- .* --$/ { path = root "/" substr($0, 4, length($0) - 6)
        directory = path; sub("/[^/]*$", "", directory); system("mkdir -p \"" directory "\""); printf "" >path; next }
      path { print >path }' "$case"
    directory=.
    [ ! -e "$T/case/build" ] || directory=$(cat "$T/case/build")
    cp "$T/case/want" "$T/want" 2>/dev/null || : >"$T/want"
    refused=; [ ! -e "$T/case/error" ] || refused=1
    rm -f "$T/case/build" "$T/case/want" "$T/case/error"
    cd "$T/case" || exit 1
    run_both "$directory"
    cd / || exit 1
    if [ -n "${ACCEPT:-}" ] && [ -z "$refused" ]; then
      [ $theirs = 0 ] || { not_ok "$name: kubectl refuses it" <"$T/theirs.err"; continue; }
      sed -i '/^-- want --$/,$d' "$case"
      { echo "-- want --"; cat "$T/theirs"; } >>"$case"
    elif [ -n "$refused" ]; then
      if [ $theirs != 0 ] && [ $ours = 1 ]; then ok "$name"; else
        { echo "kubectl: $theirs, coraclectl: $ours"; cat "$T/theirs.err" "$T/ours.err"; } | not_ok "$name: is refused"
      fi
    else
      compare "$name"
      cmp -s "$T/theirs" "$T/want" || diff "$T/theirs" "$T/want" | not_ok "$name: the wanted output is kubectl's"
    fi
  done
fi
echo "1..$number"
[ $failures = 0 ]
