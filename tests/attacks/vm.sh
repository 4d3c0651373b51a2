#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The attacks and the escape suite in a machine of its own (tests/vm): another kernel, cgroup v2 with every controller, systemd,
# AppArmor. Half an hour and more, for every instruction is emulated.
#   CORACLE_BUILD_DIR   the build (default: build)      CORACLE_VM_SUITE   the machine's Debian (default: this one's)
#   CORACLE_FILTER      which tests (GoogleTest's filter; default: all)
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
vm=$root/tests/vm
build=$(realpath "${CORACLE_BUILD_DIR:-$root/build}")
cache=${CORACLE_TEST_CACHE:-/var/tmp/coracle-tests}

skip_all() { echo "ok 1 - attacks in a virtual machine # SKIP $*"; exit 77; }
bail() { echo "not ok 1 - $1"; shift; printf '%s\n' "$@" | sed 's/^/  | /' | tail -n 60; exit 1; }
[ "$(id -u)" = 0 ] || skip_all "needs root (to make a Debian)"
[ "$(uname -m)" = x86_64 ] || skip_all "the machine is made for x86_64"
for program in qemu-system-x86_64 qemu-img mmdebstrap mke2fs python3; do
  command -v "$program" >/dev/null || skip_all "$program is missing"
done

T=$(mktemp -d "${TMPDIR:-/var/tmp}/coracle-attacks-vm.XXXXXX")
finish() {
  [ ! -e "$T/pid" ] || "$vm/vm.py" cut "$T" 2>/dev/null
  rm -rf "$T"
}
trap finish EXIT
trap 'exit 143' TERM INT

# The programs know each other by their places in the build, so they have the same places in the machine.
mkdir -p "$T/payload/lib"
for file in "$build"/tests/attacks/{attacks_live_test,escape} "$build"/runtime/{cli/coracle-oci,pause/coracle-pause,image/fetch/coracle-image} \
            "$here/escape_facts.tsv"; do
  [ -e "$file" ] || bail "there is something to run" "$file is missing: build first"
  install -D "$file" "$T/payload/tree$file"
  ldd "$file" 2>/dev/null | awk '$3 ~ /^\// {print $3}'
done | sort -u | xargs -r cp -L -t "$T/payload/lib"
find "$T/payload/tree" -type f -perm -100 -exec strip {} + 2>/dev/null
truncate -s "$(($(du -sm "$T/payload" | cut -f 1) * 5 / 4 + 32))M" "$T/payload.ext4"
mke2fs -q -t ext4 -d "$T/payload" "$T/payload.ext4" || bail "payload"
rm -rf "$T/payload"

image=$("$vm/image.sh" "$cache") || bail "a Debian for the machine can be made"
"$vm/vm.py" start "$T" "$image" -drive "file=$T/payload.ext4,if=virtio,format=raw" || bail "qemu starts" "$(cat "$T/qemu.log")"
out=$("$vm/vm.py" run "$T" 1800 'timeout 1700 systemctl is-system-running --wait
  mkdir -p /payload && mount /dev/vdb /payload && cp -a /payload/tree/. / || exit 1
  for library in /payload/lib/*; do ldconfig -p | grep -q "^\s$(basename $library) " || cp $library /usr/local/lib/; done; ldconfig
  uname -r; cat /sys/fs/cgroup/cgroup.controllers /sys/module/apparmor/parameters/enabled') || bail "the machine boots and has what is needed" "$out"
sed 's/^/# /' <<<"$out"
status=0
"$vm/vm.py" run "$T" 10800 "$build/tests/attacks/attacks_live_test --gtest_filter='${CORACLE_FILTER:-*}'" || status=$?
exit $status
