#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The tests of the OCI runtime in a machine of its own (tests/vm), where systemd runs and cgroup v2 has every controller, beside
# the crun, runc and podman of that machine's Debian: its scripts here, run there. TAP. An hour and more, for every instruction
# is emulated.
#   CORACLE_BIN         the build (default: build)      CORACLE_VM_SUITE   the machine's Debian (default: trixie)
#   CORACLE_VM_FILES    or a tree of installed files, built for the machine's Debian
#   CORACLE_OCI_VM_SETTINGS   variables of those scripts, as NAME=value…
#   CORACLE_OCI_PARTS   which of: cgroup validation podman bench cycles (default: all)
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
vm=$root/tests/vm
build=${CORACLE_BIN:-$root/build}
cache=${CORACLE_TEST_CACHE:-/var/tmp/coracle-tests}
export CORACLE_VM_SUITE=${CORACLE_VM_SUITE:-trixie}
parts=${CORACLE_OCI_PARTS:-cgroup validation podman bench cycles}
failures=0

skip_all() { echo "ok 1 - oci in a virtual machine # SKIP $*"; exit 77; }
bail() { echo "not ok 1 - $1"; shift; printf '%s\n' "$@" | sed 's/^/  | /' | tail -n 60; exit 1; }
[ "$(id -u)" = 0 ] || skip_all "needs root (to make a Debian)"
[ "$(uname -m)" = x86_64 ] || skip_all "the machine is made for x86_64"
for program in qemu-system-x86_64 qemu-img mmdebstrap mke2fs python3; do
  command -v "$program" >/dev/null || skip_all "$program is missing"
done

T=$(mktemp -d "${TMPDIR:-/var/tmp}/coracle-oci-vm.XXXXXX")
finish() {
  [ ! -e "$T/pid" ] || "$vm/vm.py" cut "$T" 2>/dev/null
  if [ "$failures" -gt 0 ]; then echo "# the console's end:"; tail -n 20 "$T/console.log" 2>/dev/null | sed 's/^/# /'; fi
  rm -rf "$T"
}
trap finish EXIT
trap 'exit 143' TERM INT

# ---- what goes into the machine: a disk of its own, mounted at /payload ----
#
# Where the machine's Debian is not the one that built coracle-oci, the libraries it lacks go with it.
mkdir -p "$T/payload/tests/bench" "$T/payload/cache" "$T/payload/lib"
cp -r "$here" "$T/payload/tests/oci"
cp "$root/tests/bench/oci.sh" "$T/payload/tests/bench/"
if [ -n "${CORACLE_VM_FILES:-}" ]; then
  programs=$(find "$CORACLE_VM_FILES" -name coracle-oci -o -name coracle-pause)
  mkdir -p "$T/payload/installed"
  cp -a "$CORACLE_VM_FILES/usr" "$T/payload/installed/"
else
  programs=$(ls "$build/runtime/cli/coracle-oci" "$build/runtime/pause/coracle-pause" "$build/tests/bench/stamp" "$build/tests/bench/bench_oci" \
    "$build/tests/runtime/cgroup/cgroup_live_test" 2>/dev/null)
  [ -x "$build/runtime/cli/coracle-oci" ] || bail "coracle-oci is built" "$build/runtime/cli/coracle-oci is missing"
  for program in $programs; do install -D "$program" "$T/payload/build/${program#"$build"/}"; done
  strip "$T"/payload/build/runtime/*/* 2>/dev/null
fi
for program in $programs; do ldd "$program" 2>/dev/null | awk '$3 ~ /^\// {print $3}'; done | sort -u | xargs -r cp -L -t "$T/payload/lib"
case " $parts " in *" validation "*)
  if made=$("$here/validation_programs.sh" "$cache" 2>"$T/why"); then cp -r "$made" "$T/payload/cache/"
  else
    echo "ok 1 - oci validation in a virtual machine # SKIP $(cat "$T/why")"
    parts=${parts/validation/}
  fi ;;
esac
truncate -s "$(($(du -sm "$T/payload" | cut -f 1) * 5 / 4 + 32))M" "$T/payload.ext4"
mke2fs -q -t ext4 -d "$T/payload" "$T/payload.ext4" || bail "payload"
rm -rf "$T/payload"

image=$("$vm/image.sh" "$cache" --oci) || bail "a Debian for the machine can be made"
"$vm/vm.py" start "$T" "$image" -drive "file=$T/payload.ext4,if=virtio,format=raw" || bail "qemu starts" "$(cat "$T/qemu.log")"
out=$("$vm/vm.py" run "$T" 900 'timeout 800 systemctl is-system-running --wait; systemctl --failed --no-pager
  mkdir -p /payload && mount /dev/vdb /payload && [ -e /sys/fs/cgroup/cgroup.controllers ] || exit 1
  for library in /payload/lib/*; do ldconfig -p | grep -q "^\s$(basename $library) " || cp $library /usr/local/lib/; done; ldconfig
  [ ! -e /payload/installed ] || cp -a /payload/installed/usr/. /usr/
  for f in subuid subgid; do echo containers:1000000:1000000 >>/etc/$f; done  # for --userns auto
  for p in podman crun runc; do $p --version | head -n 1; done') || bail "the machine boots and has what is needed" "$out"
sed 's/^/# /' <<<"$out"

# ---- the parts; what they say comes out over the machine's third serial line as they say it ----

part() {  # part NAME SECONDS COMMAND
  local status=0
  : >"$T/acks"
  echo "# ---- $1, in a virtual machine ($CORACLE_VM_SUITE) ----"
  "$vm/vm.py" run "$T" "$2" "stty -F /dev/ttyS2 raw -echo; cd /; export CORACLE_BIN=/payload/build CORACLE_TEST_CACHE=/payload/cache CORACLE_PATIENCE=4 CORACLE_LONG=${CORACLE_LONG:-0}
    ${CORACLE_OCI_VM_SETTINGS:+export $CORACLE_OCI_VM_SETTINGS}
    $3 >/dev/ttyS2 2>&1; s=\$?; sleep 1; exit \$s" >"$T/out" 2>&1 || status=$?
  cat "$T/acks" "$T/out"  # while it goes on, it can be followed in the first of them
  [ $status -eq 0 ] || [ $status -eq 77 ] || { failures=$((failures + 1)); grep -q '^not ok' "$T/acks" || echo "not ok - $1: ended with status $status"; }
}
for name in $parts; do
  case $name in
    cgroup)     part cgroup 3600 '/payload/tests/oci/cgroup.sh' ;;
    validation) part validation 10800 'CORACLE_VALIDATION_JOBS=2 /payload/tests/oci/validation.sh' ;;
    podman)     part podman 14400 '/payload/tests/oci/podman.sh' ;;
    bench)      part bench 3600 '/payload/tests/bench/oci.sh' ;;
    cycles)     part cycles 7200 '/payload/tests/oci/cycles.sh' ;;
    *) bail "there is no part $name" ;;
  esac
done
[ "$failures" -eq 0 ]
