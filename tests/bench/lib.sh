# SPDX-License-Identifier: Apache-2.0
# What the benchmarks stand on: the end-to-end tests' machine, with an image of one tiny program (stamp.cc) in it.
# BENCH_SCALE=quick runs small numbers, to see that the benchmarks themselves work.
. "$(dirname "${BASH_SOURCE[0]}")/../e2e/lib.sh"
driver=$bin/tests/bench/driver stamp=$bin/tests/bench/stamp
quick() { [ "${BENCH_SCALE:-full}" = quick ]; }

make_busybox() {  # the image that start_machine makes here is ours
  mkdir -p "$T/rootfs"
  cp "$stamp" "$T/rootfs/stamp"
  c image pack "$T/rootfs" localhost/stamp:latest
}

make_bundle() {  # the same rootfs, command and seccomp profile for runc
  command -v runc >/dev/null || skip_all "runc is missing"
  mkdir -p "$T/bundle"
  cp -r "$T/rootfs" "$T/bundle/rootfs"
  (cd "$T/bundle" && runc spec) && "$driver" bundle "$T/bundle"
}
