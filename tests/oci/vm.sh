#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The tests of the OCI runtime in a virtual machine (tests/vm) with systemd and all controllers in cgroup v2, compared with crun,
# runc, podman and containerd of that machine's Debian: the scripts of this directory run there. TAP. It takes an hour or more,
# since every instruction is emulated.
#   vm.sh [PART...]     only these: cgroup validation podman containerd bench cycles; or those that CORACLE_OCI_PARTS names
#   CORACLE_OCI_VM_SETTINGS   variables of those scripts, as NAME=value…; tests/vm/machine.sh describes further settings
set -uo pipefail
export CORACLE_VM_SUITE=${CORACLE_VM_SUITE:-trixie}
title="oci in a virtual machine"
all_parts="cgroup validation podman containerd bench cycles"
[ $# -gt 0 ] || set -- ${CORACLE_OCI_PARTS:-}
. "$(dirname "$0")/../vm/machine.sh"

there=$T/payload/payload
mkdir -p "$there/tests/bench" "$there/cache"
cp -r "$root/tests/oci" "$there/tests/oci"
cp "$root/tests/bench/oci.sh" "$there/tests/bench/"
programs=()
if [ -n "${CORACLE_VM_FILES:-}" ]; then
  mapfile -t programs < <(find "$CORACLE_VM_FILES" -name coracle-oci -o -name coracle-pause)
  cp -a "$CORACLE_VM_FILES/usr" "$T/payload/"
else
  [ -x "$build/runtime/cli/coracle-oci" ] || bail "coracle-oci is built" "$build/runtime/cli/coracle-oci is missing"
  for program in runtime/cli/coracle-oci runtime/pause/coracle-pause tests/bench/stamp tests/bench/bench_oci tests/runtime/cgroup/cgroup_live_test; do
    [ ! -x "$build/$program" ] || { programs+=("$build/$program"); install -D "$build/$program" "$there/build/$program"; }
  done
  strip "$there"/build/runtime/*/* 2>/dev/null
fi
# containerd.py speaks to containerd's API by curl: this machine's, with the libraries that it needs. The images have none.
if curl=$(command -v curl); then
  install -D "$curl" "$T/payload/usr/local/bin/curl"
  programs+=("$curl")
fi
libraries "${programs[@]}"
case " $parts " in *" validation "*)
  if made=$("$root/tests/oci/validation_programs.sh" "$cache" 2>"$T/why"); then cp -r "$made" "$there/cache/"
  else
    echo "ok 1 - oci validation in a virtual machine # SKIP $(cat "$T/why")"
    parts=${parts/validation/}
  fi ;;
esac
if [ -n "${CORACLE_PROGRESS:-}" ]; then mkdir -p "$CORACLE_PROGRESS/oci" && cp -r "$CORACLE_PROGRESS/oci" "$there/progress"; fi
pack
boot --oci
out=$("$vm/vm.py" run "$T" 900 "timeout 800 systemctl is-system-running --wait; systemctl --failed --no-pager
  [ -e /sys/fs/cgroup/cgroup.controllers ] || exit 1
  $unpack
  for f in subuid subgid; do echo containers:1000000:1000000 >>/etc/\$f; done  # for --userns auto
  for p in podman crun runc containerd ${curl:+curl}; do said=\$(\$p --version) || exit 1; head -n 1 <<<\$said; done") || bail "the machine boots and has what is needed" "$out"
sed 's/^/# /' <<<"$out"

part() {  # part NAME SECONDS COMMAND
  local status=0 began=$SECONDS
  echo "# ---- $1, in a virtual machine ($CORACLE_VM_SUITE) ----"
  follow "$2" "cd /; export CORACLE_BIN=/payload/build CORACLE_TEST_CACHE=/payload/cache CORACLE_PATIENCE=4 CORACLE_LONG=${CORACLE_LONG:-0} CORACLE_UNTIL=${CORACLE_UNTIL:-}
    ${CORACLE_PROGRESS:+export CORACLE_PROGRESS=/payload/progress}
    ${CORACLE_OCI_VM_SETTINGS:+export $CORACLE_OCI_VM_SETTINGS}
    $3" || status=$?
  # shellcheck disable=SC2016  # the machine's own
  [ -z "${CORACLE_PROGRESS:-}" ] || "$vm/vm.py" run "$T" 120 'cd /payload/progress 2>/dev/null && for f in *; do [ ! -s "$f" ] || sed "s/^/$f /" "$f"; done' |
    while read -r file name; do [ -z "$name" ] || echo "$name" >>"$CORACLE_PROGRESS/oci/$file"; done
  echo "# ---- $1: status $status after $((SECONDS - began)) s ----"
  [ $status -eq 0 ] || [ $status -eq 77 ] || { failures=$((failures + 1)); grep -q '^not ok' "$T/acks" || echo "not ok - $1: ended with status $status"; }
}
for name in $parts; do
  case $name in
    cgroup)     part cgroup 3600 '/payload/tests/oci/cgroup.sh' ;;
    validation) part validation 10800 'CORACLE_VALIDATION_JOBS=2 /payload/tests/oci/validation.sh' ;;
    podman)     part podman 14400 '/payload/tests/oci/podman.sh' ;;
    containerd) part containerd 3600 '/payload/tests/oci/containerd.sh' ;;
    bench)      part bench 3600 '/payload/tests/bench/oci.sh' ;;
    cycles)     part cycles 7200 '/payload/tests/oci/cycles.sh' ;;
    *) bail "there is no part $name" ;;
  esac
done
[ "$failures" -eq 0 ]
