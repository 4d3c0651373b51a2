#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The attacks and the escape suite in a virtual machine (tests/vm): another kernel, cgroup v2 with every controller, systemd,
# AppArmor. It takes half an hour or more, since every instruction is emulated.
#   CORACLE_FILTER   which tests (GoogleTest's filter; default: all); tests/vm/machine.sh describes further settings
set -uo pipefail
title="attacks in a virtual machine"
. "$(dirname "$0")/../vm/machine.sh"

# The programs find each other and the table of results by their paths in the build and source directories; they have the same
# paths there.
programs=("$build"/tests/attacks/{attacks_live_test,escape} "$build"/runtime/{cli/coracle-oci,pause/coracle-pause,image/fetch/coracle-image})
outcomes=$(grep -ao '/[ -~]*/escape_outcomes\.tsv' "${programs[0]}" | head -n 1)
for file in "${programs[@]}" "${outcomes:-escape_outcomes.tsv}"; do
  [ -e "$file" ] || bail "there is something to run" "$file is missing: build first"
  install -D "$file" "$T/payload$file"
done
libraries "${programs[@]}"
find "$T/payload$build" -type f -perm -100 -exec strip {} + 2>/dev/null
pack
boot
out=$("$vm/vm.py" run "$T" 1800 "timeout 1700 systemctl is-system-running --wait
  $unpack
  uname -r; cat /sys/fs/cgroup/cgroup.controllers /sys/module/apparmor/parameters/enabled") || bail "the machine boots and has what is needed" "$out"
sed 's/^/# /' <<<"$out"
began=$SECONDS status=0
follow 10800 "$build/tests/attacks/attacks_live_test --gtest_filter='${CORACLE_FILTER:-*}'" || status=$?
echo "# ---- attacks: status $status after $((SECONDS - began)) s ----"
exit $status
