#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures a build: of a fresh clone of what is committed, without a compiler cache, with all cores. Prints lines that begin with
# "bench:", medians of the runs. Not a part of tests/run.sh: it measures the tree and this machine, not the result of the build.
#
#   tests/bench/build.sh [--runs N] product     plain ninja: what is installed
#                                   tests       … and every program that tests and benchmarks run
#                                   touch       after a change in store/object/object.h, and in one file of daemon/controller
#                                   install     systemd/install.sh --hello in fresh Debian 12 and 13 systems (root; packages are fetched
#                                               before, and installed within the time)
#                                   small       with one core and 1 GB for each process and all it is linked with
#   CORACLE_BENCH_DIR   where to work (default: /var/tmp)
set -uo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
runs=3 what=()
while [ $# -gt 0 ]; do
  case $1 in
    --runs)
      [[ ${2:-} =~ ^[1-9][0-9]*$ ]] || { echo "build.sh: --runs needs a number; see --help" >&2; exit 2; }
      runs=$2; shift ;;
    product|tests|touch|install|small) what+=("$1") ;;
    -h|--help) sed -n '3,14s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "build.sh: unknown word $1; see --help" >&2; exit 2 ;;
  esac
  shift
done
[ ${#what[@]} -gt 0 ] || what=(product tests touch)
T=$(mktemp -d "${CORACLE_BENCH_DIR:-/var/tmp}/coracle-build.XXXXXX")
cleanups=()
clean_up() { local each; for each in "${cleanups[@]}"; do $each; done; rm -rf --one-file-system "$T"; }
trap clean_up EXIT
trap 'exit 143' TERM
trap 'exit 130' INT
export CCACHE_DISABLE=1

fail() {  # fail: prints the lines with errors, and the last ones
  echo "build.sh: $*" >&2
  grep -E 'not ok|FAILED|[1-9][0-9]* failed|error:' "$T/log" | head -n 30 >&2
  tail -n 30 "$T/log" >&2
  exit 1
}
# timed NAME COMMAND...: appends wall and processor seconds to $T/NAME.wall and $T/NAME.cpu, one line for each run
timed() {
  local name=$1 TIMEFORMAT='%R %U %S' wall user sys
  shift
  { time "$@" >"$T/log" 2>&1; } 2>"$T/time" || fail "$name: $*"
  read -r wall user sys <"$T/time"
  echo "$wall" >>"$T/$name.wall"
  awk -v u="$user" -v s="$sys" 'BEGIN {print u + s}' >>"$T/$name.cpu"
  echo "# $name: $(clock "$wall"), processor $(clock "$(tail -n 1 "$T/$name.cpu")")"
}
clock() { awk -v s="$1" 'BEGIN {printf s < 60 ? "%.1f s" : "%d min %02d s", s < 60 ? s : int(s / 60), s % 60}'; }
median() { sort -n "$1" | awk '{v[NR] = $1} END {print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2}'; }
report() {  # report NAME TEXT LIMIT_SECONDS [PROCESSOR_LIMIT_SECONDS]
  local wall cpu
  wall=$(median "$T/$1.wall") cpu=$(median "$T/$1.cpu")
  echo "bench: $2: $(clock "$wall"), $(awk -v a="$wall" -v b="$3" 'BEGIN {printf "%.2f", a / b}') of $(clock "$3"); processor $(clock "$cpu")${4:+, $(awk -v a="$cpu" -v b="$4" 'BEGIN {printf "%.2f", a / b}') of $(clock "$4")} (median of $runs, $(nproc) cores)"
}
fresh() {  # fresh DIRECTORY: creates and configures a clone
  rm -rf "$1"
  git clone -q "$root" "$1" && CXX="${CXX:-g++}" meson setup "$1/build" "$1" --prefix=/usr >"$T/log" 2>&1 || fail "meson setup"
}
unit_tests() {  # as tests/run.sh runs them
  local jobs=$T/jobs
  (cd "$1" && tests/runner.py list build unit >"$jobs" && : >"$T/totals" && tests/runner.py run --jobs $(($(nproc) + 2)) --totals "$T/totals" "$jobs" &&
    awk '$2 > 0 {bad = 1} END {exit bad}' "$T/totals")
}

product() {
  local run
  for ((run = 0; run < runs; run++)); do fresh "$T/product"; timed product ninja -C "$T/product/build"; done
  rm -rf "$T/product"
  report product "what is installed, from a fresh clone" 210 420
}
tests() {
  local run
  for ((run = 0; run < runs; run++)); do fresh "$T/tests"; timed tests ninja -C "$T/tests/build" all tests fuzzers bench; done
  report tests "all programs, tests and benchmarks too, from a fresh clone" 480
}
rebuild_header() { ninja -C "$1/build" all $(cd "$1" && tests/runner.py targets build unit) && unit_tests "$1"; }
rebuild_controller() { ninja -C "$1/build" tests/daemon/controller/controller_test && (cd "$1/build" && tests/daemon/controller/controller_test); }
touch_() {
  local run
  [ -d "$T/tests" ] || { fresh "$T/tests"; ninja -C "$T/tests/build" all tests >"$T/log" 2>&1 || fail "build"; }
  for ((run = 0; run < runs; run++)); do
    touch "$T/tests/store/object/object.h"
    timed header rebuild_header "$T/tests"
    touch "$T/tests/daemon/controller/workload/deployment.cc"
    timed controller rebuild_controller "$T/tests"
  done
  report header "after a change in store/object/object.h: what is installed and the unit tests rebuilt, and these run" 180
  report controller "after a change in daemon/controller/workload/deployment.cc: its tests rebuilt and run" 30
}

# ---- a fresh Debian ----

mounts_below() { awk -v below="$T/" 'index($5, below) == 1 {print $5}' /proc/self/mountinfo | sort -r; }
unmount_all() { mounts_below | xargs -r -n 1 umount -l; }
fresh_debian() {  # fresh_debian SUITE: creates $T/SUITE.tar, with the packages downloaded but not installed
  local dir=$T/$1
  mmdebstrap --quiet --variant=minbase --include=ca-certificates "$1" "$dir" >"$T/log" 2>&1 || fail "mmdebstrap $1"
  git clone -q "$root" "$dir/root/coracle" || fail clone
  chroot "$dir" sh -c 'cd /root/coracle && apt-get -q update && systemd/packages.sh --download build hello' >"$T/log" 2>&1 ||
    fail "the packages for $1 cannot be fetched"
  tar -C "$dir" -cf "$T/$1.tar" . && rm -rf "$dir"
}
first_pod() {  # first_pod DIRECTORY: in its own namespaces, as on a machine without systemd
  unshare --mount --pid --net --uts --ipc --fork --kill-child bash -c '
    ip link set lo up
    mount --bind "$1" "$1" && mount -t proc proc "$1/proc" && mount --rbind /sys "$1/sys" && mount --rbind /dev "$1/dev" &&
    mount -t tmpfs run "$1/run" && mkdir -p "$1/run/before" && cd "$1" && pivot_root . run/before && umount -l run/before &&
    exec /root/coracle/systemd/install.sh --hello' bash "$1"
}
install() {
  local suite run
  [ "$(id -u)" = 0 ] || fail "install needs root"
  cleanups+=(unmount_all)
  for suite in bookworm trixie; do
    fresh_debian "$suite"
    for ((run = 0; run < runs; run++)); do
      mkdir "$T/$suite" && tar -C "$T/$suite" -xf "$T/$suite.tar" || fail "unpack $suite"
      timed "$suite" first_pod "$T/$suite"
      grep -E 'built in|From apply' "$T/log" | sed 's/^/#   /'
      rm -rf --one-file-system "$T/${suite:?}"
    done
    report "$suite" "systemd/install.sh --hello in a fresh $suite, packages fetched" 330
    rm -f "$T/$suite.tar"
  done
}

# One compiler at a time, on one core, with a limit of 1 GB minus the memory of a small system.
small() {
  local runs=1
  fresh "$T/small"
  timed small prlimit --as=$((850 << 20)) taskset -c 0 ninja -C "$T/small/build" -j 1
  rm -rf "$T/small"
  report small "what is installed, with one core and 850 MB of address space for each process" 3600
}

for each in "${what[@]}"; do
  case $each in touch) touch_ ;; *) $each ;; esac
done
