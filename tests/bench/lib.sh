# SPDX-License-Identifier: Apache-2.0
# The library of the benchmarks: the end-to-end tests' machine, with an image of one tiny program (stamp.cc). BENCH_SCALE=quick
# uses small numbers, to check that the benchmarks themselves work.
. "$(dirname "${BASH_SOURCE[0]}")/../e2e/lib.sh"
driver=$bin/tests/bench/driver stamp=$bin/tests/bench/stamp
quick() { [ "${BENCH_SCALE:-full}" = quick ]; }

make_busybox() {  # replaces the image that start_machine creates here
  mkdir -p "$T/rootfs"
  cp "$stamp" "$T/rootfs/stamp"
  c image pack "$T/rootfs" localhost/stamp:latest
}

make_bundle() {  # make_bundle: the same root file system, command and seccomp profile for runc
  command -v runc >/dev/null || skip_all "runc is missing"
  mkdir -p "$T/bundle"
  cp -r "$T/rootfs" "$T/bundle/rootfs"
  (cd "$T/bundle" && runc spec) && "$driver" bundle "$T/bundle"
}
