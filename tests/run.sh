#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the tests: installs what they need from Debian by name, builds what they run, runs them side by side, and ends with the line
# "N passed, N failed, N skipped". What cannot run on this machine is skipped by name, with the reason.
#
#   sudo tests/run.sh                  unit, simulation, live, OCI and end-to-end tests, the fuzzers' corpus, a virtual machine with a
#                                      few power cuts: 16 minutes on 2 cores, once built, and 23 from nothing
#        tests/run.sh --unit           unit tests only
#   sudo tests/run.sh --only P[,P…]    some parts: unit simulation live oci fuzz e2e vm; of a long run also packages card manifests
#                                      soak sanitize clock board storage databases ocivm attacks tsan bench
#   sudo tests/run.sh --changed [BASE] the tests that a change since the commit BASE can affect (default: since the last push)
#   sudo tests/run.sh --long           every part, in its long form: hundreds of kills and power cuts, sanitizers, fuzzing time, hours.
#                                      Alone or with --only. A counting part continues where an earlier run of this commit stopped
#   --minutes N                        with --long: each part starts nothing new after N minutes (60)
#   --jobs N                           how many tests run at a time (two more than there are cores: they wait a third of the time)
set -uo pipefail
cd "$(dirname "$0")/.."
root=$PWD

default_parts="unit simulation live oci fuzz e2e vm"
long_parts="packages card manifests soak sanitize clock board storage databases ocivm attacks tsan bench"
long=0 parts= changed=0 base= minutes=60 jobs=$(($(nproc) + 2))
fail_usage() { echo "run.sh: $*; see --help" >&2; exit 2; }
is_number() { [[ $1 =~ ^[1-9][0-9]*$ ]]; }
while [ $# -gt 0 ]; do
  case $1 in
    --long) long=1 ;;
    --unit) parts="$parts unit" ;;
    --only)
      [ -n "${2:-}" ] || fail_usage "--only needs the names of parts"
      for part in ${2//,/ }; do
        case " $default_parts $long_parts " in *" $part "*) parts="$parts $part" ;; *) fail_usage "there is no part $part" ;; esac
      done
      shift ;;
    --changed)
      changed=1
      case ${2:-} in ''|-*) ;; *) base=$2; shift ;; esac ;;
    --minutes) is_number "${2:-}" || fail_usage "--minutes needs a number"; minutes=$2; shift ;;
    --jobs) is_number "${2:-}" || fail_usage "--jobs needs a number"; jobs=$2; shift ;;
    -h|--help) sed -n '3,17s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) fail_usage "unknown option $1" ;;
  esac
  shift
done
[ $changed = 0 ] || [ -z "$parts" ] || fail_usage "--changed chooses by itself: not with --only or --unit"
[ $changed = 0 ] || [ $long = 0 ] || fail_usage "--changed is not for long runs"
if [ -z "$parts" ]; then
  parts=$default_parts
  [ $long = 0 ] || parts="$parts $long_parts"
fi

export CORACLE_TEST_CACHE=${CORACLE_TEST_CACHE:-/var/tmp/coracle-tests}
build=${CORACLE_BUILD:-$root/build}
results=$(mktemp -d)
: >"$results/totals"
runner=
stop() { [ -z "$runner" ] || { kill -TERM "$runner"; wait "$runner"; }; exit "$1"; }  # running tests clean up first
trap 'rm -rf "$results"' EXIT
trap 'stop 143' TERM
trap 'stop 130' INT

say() { printf '\n== %s\n' "$*"; }

# ---- building ----

setup() {  # setup BUILD_DIR OPTIONS...: with a compiler cache where one is installed
  local dir=$1 compiler=${CXX:-g++}
  shift
  if [ -f "$dir/build.ninja" ]; then [ $# -eq 0 ] || meson configure "$dir" "$@" >/dev/null; return; fi
  case $compiler in *ccache*) ;; *) ! command -v ccache >/dev/null || compiler="ccache $compiler" ;; esac
  CXX=$compiler meson setup "$dir" "$@" >"$results/meson.log" 2>&1 || { cat "$results/meson.log"; return 1; }
}
compile() {  # compile BUILD_DIR TARGETS...
  local dir=$1 started=$SECONDS
  shift
  ninja -C "$dir" "$@" >"$results/ninja.log" 2>&1 ||
    { grep -vE '^\[[0-9]+/[0-9]+\] (Compiling|Linking)' "$results/ninja.log" | tail -n 80; return 1; }
  echo "built in $((SECONDS - started)) s"
}
not_built() { echo "not ok build of $1"; printf '0\t1\t0\t0\t%s/build\n' "$1" >>"$results/totals"; }

# The programs that the parts run, and the installed programs if a part installs them.
build_for() {  # build_for PART...
  local part suites=() targets=()
  for part in "$@"; do
    case $part in
      vm|clock|board|storage|databases) targets+=(all) ;;
      ocivm)         suites+=(oci bench live); targets+=(all) ;;
      attacks)       suites+=(live); targets+=(all) ;;
      sanitize|tsan|card) ;;  # in their own build directories
      *)             suites+=("$part") ;;
    esac
  done
  if [ ${#suites[@]} -gt 0 ]; then mapfile -t -O ${#targets[@]} targets < <(tests/runner.py targets "$build" "${suites[@]}"); fi
  [ ${#targets[@]} -eq 0 ] || compile "$build" "${targets[@]}"
}
build_sanitized() {  # build_sanitized NAME SANITIZERS
  setup "$build-$1" "-Db_sanitize=$2" -Db_lundef=false -Doptimization=0 -Dcpp_args=-g1 &&
    compile "$build-$1" $(tests/runner.py targets "$build-$1" unit live fuzz)
}

# ---- running ----

queue_suite() { tests/runner.py list "$@" >>"$results/queue"; }  # queue_suite BUILD_DIR SUITE... [OPTION...]
queue() {  # queue NAME SECONDS PRIORITY COMMAND...: adds one job; the command may begin with variables, as for env
  tests/runner.py job "$@" >>"$results/queue"
}
run_queue() {
  [ -s "$results/queue" ] || return 0
  tests/runner.py run --jobs "$jobs" --totals "$results/totals" "$results/queue" &
  runner=$!
  wait $runner
  local status=$?
  runner=
  rm -f "$results/queue"
  [ $status -eq 0 ] || exit $status  # it was stopped
}

queue_part() {  # queue_part PART
  local each
  case $1 in
    unit) tests/store/schema/fetch_fixtures.sh "$CORACLE_TEST_CACHE/k8s-api" || true; queue_suite "$build" unit --factor $time_factor ;;
    simulation) queue simulation $((300 * time_factor * time_factor)) 300 "$build/tests/simulation/simulation" "$scenarios" ;;
    vm) queue vm $((2400 + long * minutes * 60)) 3000 CORACLE_BIN="$build" "$root/tests/vm/run.sh" ;;
    clock) queue clock 5400 90 CORACLE_BIN="$build" "$root/tests/vm/clock.sh" ;;
    board) queue board $((3600 + minutes * 60)) 90 CORACLE_BIN="$build" "$root/tests/vm/board.sh" ;;
    storage) queue storage 5400 90 CORACLE_BIN="$build" "$root/tests/vm/storage.sh" ;;
    card) queue card 28800 90 "$root/tests/vm/card.sh" ;;
    databases) queue databases 5400 90 CORACLE_BIN="$build" "$root/tests/vm/databases.sh" ;;
    ocivm)
      for each in cgroup validation podman containerd bench cycles; do
        queue "ocivm/$each" $((minutes * 60 + 3600)) 50 CORACLE_BIN="$build" CORACLE_OCI_PARTS="$each" "$root/tests/oci/vm.sh"
      done ;;
    attacks) queue attacks 14400 50 CORACLE_BIN="$build" "$root/tests/attacks/vm.sh" ;;
    sanitize)
      build_sanitized asan address,undefined || { not_built asan; return; }
      export ASAN_OPTIONS=detect_stack_use_after_return=0 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
      queue_suite "$build-asan" unit --prefix asan --factor $((4 * time_factor))
      queue asan/runtime_live 1200 0 "$build-asan/tests/runtime/container/runtime_live_test"
      # exec ends in the container's pid namespace for its children: the leak checker's helper would be created there, and not
      # found.
      for each in oci_live oci_fields_live; do
        queue "asan/$each" 600 0 -C "$build-asan" ASAN_OPTIONS="$ASAN_OPTIONS:detect_leaks=0" \
          sh "$root/tests/runtime/cli/$each.sh" runtime/cli/coracle-oci
      done
      export CORACLE_FUZZ_SECONDS=${CORACLE_FUZZ_SECONDS:-60}
      queue_suite "$build-asan" fuzz --prefix asan --factor 20 ;;
    tsan)
      build_sanitized tsan thread || { not_built tsan; return; }
      export TSAN_OPTIONS=halt_on_error=1:suppressions=$root/tests/thread_sanitizer.supp
      queue_suite "$build-tsan" unit --prefix tsan --factor $((6 * time_factor)) ;;
    soak) export CORACLE_SOAK_SECONDS=${CORACLE_SOAK_SECONDS:-1800}; queue_suite "$build" soak ;;
    *) queue_suite "$build" "$1" --factor $time_factor ;;
  esac
}

finish() {
  say "result"
  awk -F '\t' '{split($5, name, "/"); part = name[1]; if (!(part in seconds)) order[++n] = part
      passed[part] += $1; failed[part] += $2; skipped[part] += $3; seconds[part] += $4}
    END {for (i = 1; i <= n; i++) {part = order[i]
      printf "%-32s %4d passed %3d failed %3d skipped %6d s\n", part, passed[part], failed[part], skipped[part], seconds[part]}}' \
    "$results/totals"
  echo "$((SECONDS / 60)) min $((SECONDS % 60)) s in all"
  awk -F '\t' '{passed += $1; failed += $2; skipped += $3}
    END {printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped; exit failed > 0}' "$results/totals"
  exit
}

# ---- the run ----

say "packages"
systemd/packages.sh build test || { echo "not ok packages: could not be installed"; not_built packages; finish; }

time_factor=1 scenarios=150
if [ $long = 1 ]; then  # more repetitions, more time
  export CORACLE_LONG=1 CORACLE_KILLS=200 CORACLE_CRASH_TRIES=300 CORACLE_POWER_CUTS=1000
  time_factor=5 scenarios=10000
  if commit=$(git rev-parse HEAD 2>/dev/null) && [ -z "$(git status --porcelain)" ]; then  # counts of another tree are not used
    export CORACLE_PROGRESS=$CORACLE_TEST_CACHE/long/$commit
  fi
fi

say "build"
setup "$build" || { not_built setup; finish; }
if [ $changed = 1 ]; then
  # shellcheck disable=SC2086  # a commit, or nothing
  tests/changed.py "$build" $base >"$results/chosen" || exit 2
  mapfile -t chosen <"$results/chosen"
  if [ ${#chosen[@]} -gt 0 ]; then
    mapfile -t targets < <(tests/runner.py targets "$build" "${chosen[@]}")
    compile "$build" all "${targets[@]}" || { not_built programs; finish; }
    say "tests"
    queue_suite "$build" "${chosen[@]}"
    run_queue
  fi
  finish
fi
# shellcheck disable=SC2086  # a list of words
build_for $parts || { not_built programs; finish; }

if [ $long = 0 ]; then
  say "tests: ${parts# }"
  for part in $parts; do queue_part "$part"; done
  run_queue
else
  for part in $parts; do  # one after another, each with its own time
    say "$part"
    CORACLE_UNTIL=$(($(date +%s) + minutes * 60))
    export CORACLE_UNTIL
    queue_part "$part"
    run_queue
    unset ASAN_OPTIONS UBSAN_OPTIONS TSAN_OPTIONS CORACLE_FUZZ_SECONDS
  done
fi
finish
