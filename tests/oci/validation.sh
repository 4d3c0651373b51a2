#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The OCI runtime-tools validation programs, with crun, runc and coracle-oci: a check that a peer passes must pass here, and
# validation_explained.txt explains those that nobody passes. It takes a minute natively, once the programs are built. TAP.
#   CORACLE_VALIDATION_ONLY=PATTERN, CORACLE_VALIDATION_RUNTIMES="crun runc": less of it
. "$(dirname "$0")/lib.sh"
programs=$("${CORACLE_VALIDATION_PROGRAMS:-$here/validation_programs.sh}" "$cache" 2>"$T/why") || skip_all "$(cat "$T/why")"
make_rootfs "$T/rootfs"
case $(uname -m) in x86_64) arch=amd64 ;; aarch64) arch=arm64 ;; *) arch=$(uname -m) ;; esac
mkdir "$T/work" "$T/tmp"
tar -C "$T/rootfs" --owner=0 --group=0 -czf "$T/work/rootfs-$arch.tar.gz" .
cp "$programs/runtimetest" "$T/work/"
cd "$T/work" || exit 1
known_groups() { find /sys/fs/cgroup -type d \( -name cgrouptest -o -name testdir \) 2>/dev/null; }
remove_groups() { known_groups | sort -r | while read -r group; do find "$group" -depth -type d -exec rmdir {} \; 2>/dev/null; done; }
remove_groups  # empty ones of an interrupted run
[ -z "$(known_groups)" ] || not_so "cgroups with the programs' names are in use: $(known_groups | head -n 3)"
cleanups+=(remove_groups)
export TMPDIR=$T/tmp
"$here/validation.py" --programs "$programs" --explained "$here/validation_explained.txt" --where "$cgroups" \
  --jobs "${CORACLE_VALIDATION_JOBS:-4}" --only "${CORACLE_VALIDATION_ONLY:-*}" \
  $(for name in ${CORACLE_VALIDATION_RUNTIMES:-crun runc coracle-oci}; do echo "$name=$T/bin/$name"; done)
