#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the tests: installs what they need from Debian by name, builds, runs, and ends with the line
# "N passed, N failed, N skipped". What cannot run on this machine is skipped by name, with the reason.
#
#   sudo tests/run.sh            unit, live, OCI and end-to-end tests, the fuzzers' corpus, and a virtual machine with a few power cuts;
#                                about 30 minutes on 2 cores, and as long again the first time, to build
#   sudo tests/run.sh --long     adds a soak, hundreds of kills and power cuts, the sanitizers, fuzzing time, the benchmarks: hours
#        tests/run.sh --unit     unit tests only, seconds once built
#        tests/run.sh --only P   only the part P: unit simulation live oci fuzz e2e soak sanitize vm clock ocivm tsan bench
set -uo pipefail
cd "$(dirname "$0")/.."
root=$PWD

long=0 only=
while [ $# -gt 0 ]; do
  case $1 in
    --long) long=1 ;;
    --unit) only=unit ;;
    --only)
      only=${2:?--only needs a name}; shift
      case $only in unit|simulation|live|oci|fuzz|e2e|soak|sanitize|vm|clock|ocivm|tsan|bench) ;; *) echo "run.sh: there is no part $only; see --help" >&2; exit 2 ;; esac ;;
    -h|--help) sed -n '3,11s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "run.sh: unknown option $1; see --help" >&2; exit 2 ;;
  esac
  shift
done

export CORACLE_TEST_CACHE=${CORACLE_TEST_CACHE:-/var/tmp/coracle-tests}
build=${CORACLE_BUILD:-$root/build}
passed=0 failed=0 skipped=0
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT

say() { printf '\n== %s\n' "$*"; }
wants() { [ -z "$only" ] || [ "$only" = "$1" ]; }

# Adds up what a log says: GoogleTest summaries, and TAP lines ("ok", "not ok", "ok … # SKIP reason").
count() {  # count NAME LOG EXIT_STATUS
  local name=$1 log=$2 status=$3 ok bad skip
  ok=$(awk '/^\[  PASSED  \] [0-9]+ tests?\./ {n += $4} /^ok / && !/# SKIP/ {n++} END {print n + 0}' "$log")
  bad=$(awk '/^\[  FAILED  \] [0-9]+ tests?, listed below/ {n += $4} /^not ok / {n++} END {print n + 0}' "$log")
  skip=$(awk '/^\[  SKIPPED \] [0-9]+ tests?, listed below/ {n += $4} /^ok .*# SKIP/ {n++} END {print n + 0}' "$log")
  if [ "$status" -ne 0 ] && [ "$status" -ne 77 ] && [ "$bad" -eq 0 ]; then  # died without saying so
    bad=1
    echo "not ok $name: ended with status $status"
  fi
  [ "$status" -ne 77 ] || [ "$skip" -gt 0 ] || skip=1
  if [ "$ok" -eq 0 ] && [ "$bad" -eq 0 ] && [ "$skip" -eq 0 ]; then
    if grep -q '^\[==========\]' "$log"; then bad=1; echo "not ok $name: ran no test"
    else ok=1; fi  # a program of one test, a fuzzer's corpus: its exit status says it
  fi
  passed=$((passed + ok)) failed=$((failed + bad)) skipped=$((skipped + skip))
  printf '%-32s %4d passed %3d failed %3d skipped\n' "$name" "$ok" "$bad" "$skip"
}

# Runs one test program or script; shows its output only when it fails or skips.
run() {  # run NAME SECONDS COMMAND...
  local name=$1 seconds=$2 log=$results/${1//\//_}.log status=0
  shift 2
  timeout --kill-after=20 "$seconds" "$@" >"$log" 2>&1 </dev/null || status=$?
  if [ "$status" -eq 124 ] || [ "$status" -eq 137 ]; then echo "not ok $name: no end after $seconds s" >>"$log"; fi
  if [ "$status" -ne 0 ] && [ "$status" -ne 77 ] || grep -q '^not ok' "$log"; then
    if [ "$(wc -l <"$log")" -gt 400 ]; then  # of a long log, the failures and the end
      grep -nE -A 8 '^not ok|Failure$|ERROR: |WARNING: ThreadSanitizer' "$log" | head -n 200
      echo "…"; tail -n 150 "$log"
    else
      cat "$log"
    fi
  else
    grep -E '# SKIP|^(Skipped|skipped):' "$log" || grep -A1 -E '\[  SKIPPED \] [A-Z]|: Skipped$' "$log" | grep -vE '^--$' | head -n 20 || true
    grep -E '^(# )?(bench|measured):' "$log" || true
  fi
  count "$name" "$log" "$status"
}

meson_tests() {  # meson_tests BUILD_DIR SUITE: "name<TAB>program<TAB>environment..." of the suite's tests
  meson introspect "$1" --tests | python3 -c '
import json, sys
for test in json.load(sys.stdin):
    if any(s.split(":")[-1] == sys.argv[1] for s in test["suite"]):
        env = ["%s=%s" % pair for pair in test["env"].items()]
        print("\t".join([test["name"], str(int(test["timeout"] or 30)), *env, *test["cmd"]]))' "$2"
}

run_suite() {  # run_suite PREFIX BUILD_DIR SUITE [FACTOR]
  local prefix=$1 dir=$2 suite=$3 factor=${4:-1} line
  while IFS=$'\t' read -r -a line; do
    run "$prefix/${line[0]}" $((line[1] * factor)) env -C "$dir" "${line[@]:2}"  # as meson test: in the build directory
  done < <(meson_tests "$dir" "$suite")
}

run_simulation() {
  local count=150
  [ "$long" = 0 ] || count=10000
  run simulation $((300 * patience * patience)) "$build/tests/simulation/simulation" "$count"
}

setup() {  # setup BUILD_DIR OPTIONS...
  local dir=$1
  shift
  if [ -f "$dir/build.ninja" ]; then meson configure "$dir" "$@" >/dev/null
  else CXX="${CXX:-g++}" meson setup "$dir" "$@" >"$results/meson.log" 2>&1 || { cat "$results/meson.log"; return 1; }
  fi
}

compile() {  # compile BUILD_DIR [TARGETS]
  local dir=$1
  shift
  ninja -C "$dir" "$@" >"$results/ninja.log" 2>&1 || { grep -vE '^\[[0-9]+/[0-9]+\] (Compiling|Linking)' "$results/ninja.log" | tail -n 80; return 1; }
}

finish() {
  say "result"
  echo "$passed passed, $failed failed, $skipped skipped"
  [ "$failed" -eq 0 ]
  exit
}

say "packages"
"$root/systemd/packages.sh" build test || { echo "not ok packages: could not be installed"; failed=1; finish; }

say "build"
started=$SECONDS
if ! { setup "$build" && compile "$build"; }; then
  echo "not ok build"
  failed=1
  finish
fi
echo "built in $((SECONDS - started)) s"

patience=1
if [ "$long" = 1 ]; then  # more tries, more time
  export CORACLE_LONG=1 CORACLE_KILLS=200 CORACLE_CRASH_TRIES=300 CORACLE_POWER_CUTS=1000
  patience=5
fi
also() { [ "$only" = "$1" ] || { [ "$long" = 1 ] && wants "$1"; }; }  # parts of a long run

if wants unit; then say "unit"; tests/store/schema/fetch_fixtures.sh "$CORACLE_TEST_CACHE/k8s-api" || true; run_suite unit "$build" unit $patience; fi
if wants simulation; then say "simulation: controllers and scheduler, from seeds, with faults"; run_simulation; fi
if wants live; then say "live: real kernel objects, in namespaces of their own"; run_suite live "$build" live $patience; fi
if wants oci; then say "oci: coracle-oci beside crun and runc; each system call of a launch fails once"; run_suite oci "$build" oci $patience; fi
if wants fuzz; then say "fuzz: the corpus, replayed"; run_suite fuzz "$build" fuzz; fi
if wants e2e; then say "end to end: the real daemon, real containers, kubectl"; run_suite e2e "$build" e2e $patience; fi
if also soak; then say "soak: the same day over and over"; CORACLE_SOAK_SECONDS=${CORACLE_SOAK_SECONDS:-1800} run_suite soak "$build" soak; fi

if also sanitize; then
  say "sanitize: address and undefined behaviour"
  if setup "$build-asan" -Db_sanitize=address,undefined -Db_lundef=false -Doptimization=0 -Dcpp_args=-g1 && compile "$build-asan"; then
    export ASAN_OPTIONS=detect_stack_use_after_return=0 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
    run_suite asan "$build-asan" unit $((4 * patience))
    run asan/runtime_live 1200 "$build-asan/tests/runtime/container/runtime_live_test"
    # exec ends with the container's process ids for its children: the leak checker's helper would be born there, and not found.
    for each in oci_live oci_fields_live; do
      run "asan/$each" 600 env -C "$build-asan" ASAN_OPTIONS="$ASAN_OPTIONS:detect_leaks=0" sh "$root/tests/runtime/cli/$each.sh" runtime/cli/coracle-oci
    done
    CORACLE_FUZZ_SECONDS=${CORACLE_FUZZ_SECONDS:-60} run_suite asan "$build-asan" fuzz 20
    unset ASAN_OPTIONS UBSAN_OPTIONS
  else
    echo "not ok sanitize build"; failed=$((failed + 1))
  fi
fi

if wants vm; then
  say "virtual machine: systemd, cgroup v2, power cuts"
  run vm "$([ "$long" = 1 ] && echo 14400 || echo 2400)" env CORACLE_BIN="$build" CORACLE_LONG="$long" "$root/tests/vm/run.sh"
fi

if also clock; then
  say "virtual machine: a board without a clock"
  run clock 5400 env CORACLE_BIN="$build" "$root/tests/vm/clock.sh"
fi

if also ocivm; then
  say "virtual machine: the OCI runtimes with systemd and cgroup v2; the attacks"
  run ocivm 36000 env CORACLE_BIN="$build" CORACLE_LONG="$long" "$root/tests/oci/vm.sh"
  run ocivm/attacks 14400 env CORACLE_BIN="$build" "$root/tests/attacks/vm.sh"
fi

if also tsan; then
  say "sanitize: threads"
  if setup "$build-tsan" -Db_sanitize=thread -Db_lundef=false -Doptimization=0 -Dcpp_args=-g1 && compile "$build-tsan"; then
    TSAN_OPTIONS=halt_on_error=1 run_suite tsan "$build-tsan" unit $((6 * patience))
  else
    echo "not ok tsan build"; failed=$((failed + 1))
  fi
fi
if also bench; then say "benchmarks"; run_suite bench "$build" bench; fi

finish
