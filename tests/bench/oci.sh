#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# create+start+delete of the same bundle, and exec, with coracle-oci, crun and runc in turns; on cgroup v2 also the peak memory
# charged to a container with one static program. Then run in the foreground with podman's seccomp profile: with no compiled
# program kept anywhere (cold), and after that (warm). Prints medians and ratios, and as TAP whether the limits hold: with cgroup v2
# 0.8 of crun, on a machine with cgroup v1 controllers 0.3 of runc; cold 0.5 of crun, warm 0.25; 512 KiB.
#   tests/bench/oci.sh [BEFORE]
#   BEFORE              another build directory: its coracle-oci takes a turn in each round, too, and the median of each round's
#                       ratio of this build to that one must be at most 1.03; two copies of one build differ by 1 or 2 in a hundred
#   BENCH_SCALE=quick   small numbers, to see that it works
case ${1:-} in -h|--help) sed -n '3,10s/^# \{0,1\}//p' "$0"; exit 0 ;; esac
[ $# -le 1 ] || { echo "oci.sh: one build directory at most; usage: oci.sh [BEFORE]" >&2; exit 2; }
. "$(dirname "$0")/../oci/lib.sh"
before=
if [ $# -gt 0 ]; then
  before=$(realpath -- "$1")/runtime/cli/coracle-oci
  [ -x "$before" ] || { echo "oci.sh: there is no runtime/cli/coracle-oci in $1; usage: oci.sh [BEFORE]" >&2; exit 2; }
  before="before=$before --root $T/state/before"
  printf '#!/bin/sh\nexec %s "$@"\n' "${before#*=}" >"$T/bin/before"
  chmod +x "$T/bin/before"
fi
program=$bin/tests/bench/bench_oci
[ -x "$program" ] || skip_all "$program is not built"
if [ "${BENCH_SCALE:-full}" = quick ]; then rounds=10; else rounds=96; fi  # whole periods of turn_of() in oci.cc, for 2, 3 and 4
mkdir -p "$T/bundle/rootfs"
cp "$bin/tests/bench/stamp" "$T/bundle/rootfs/stamp"
"$program" bundle "$T/bundle" || exit 1
remove_groups() { find /sys/fs/cgroup -type d -name coracle-bench 2>/dev/null | while read -r group; do find "$group" -depth -type d -exec rmdir {} \; 2>/dev/null; done; }
cleanups+=(remove_groups)

peers="runc" against=runc bar=0.3
if [ $cgroups = v2 ]; then peers="crun runc" against=crun bar=0.8; fi
arguments=("coracle-oci=$(command_of coracle-oci)")
for name in $peers; do arguments+=("$name=$(command_of "$name")"); done
# It is the third, also of four: so it comes after each peer as often as coracle-oci does, from one round to the next too.
[ -z "$before" ] || arguments=("${arguments[@]:0:2}" "$before" "${arguments[@]:2}")
n=0 failures=0
judge() {  # judge WHAT VALUE BAR TEXT
  n=$((n + 1))
  if awk -v a="$2" -v b="$3" 'BEGIN {exit !(a != "" && a <= b)}'; then echo "ok $n - $1: $4"; else failures=1; echo "not ok $n - $1: $4"; fi
}
# compare OPERATION FILE: this build with BEFORE, if there is one
compare() {
  local mine theirs ratio
  [ -n "$before" ] || return 0
  read -r mine theirs ratio < <(awk -v what="$1" '$1 == "ratio" && $2 == what && $3 == "coracle-oci" && $4 == "before" {print $5, $6, $7}' "$2")
  judge "$1 against before" "${ratio:-}" 1.03 "${mine:-?} ms is ${ratio:-?} of before's ${theirs:-?} ms (bar 1.03)"
}
# A runtime that fails is left out, so that the others can still be measured.
able=()
for each in "${arguments[@]}"; do
  if "$program" time "$T/bundle" 1 "$each" >"$T/try" 2>&1; then able+=("$each")
  else n=$((n + 1)) failures=1; echo "not ok $n - ${each%%=*}: $(grep -m 1 'not ok' "$T/try" | cut -c 1-400)"; fi
done
"$program" time "$T/bundle" "$rounds" "${able[@]}" >"$T/times" || { cat "$T/times"; exit 1; }
grep '^bench:' "$T/times"
for what in create+start+delete exec; do
  read -r mine theirs < <(awk -v what=$what -v peer=$against '$1 == "ratio" && $2 == what && $3 == "coracle-oci" && $4 == peer {print $5, $6}' "$T/times")
  ratio=$(awk -v a="${mine:-}" -v b="${theirs:-}" 'BEGIN {if (a != "" && b > 0) printf "%.2f", a / b}')
  judge "$what" "$ratio" $bar "${mine:-?} ms is ${ratio:-?} of $against's ${theirs:-?} ms (bar $bar)"
  compare $what "$T/times"
done
if [ $cgroups = v2 ]; then
  "$program" peak "$T/bundle" "${able[@]}" >"$T/peaks" || { cat "$T/peaks"; exit 1; }
  grep '^bench:' "$T/peaks"
  mine=$(awk '$1 == "peak" && $2 == "coracle-oci" {print $3}' "$T/peaks")
  judge memory "$mine" 512 "a container of one static program peaks at ${mine:-?} KiB (bar 512)"
fi
# What podman writes for a container without options.
profile_of_podman() {
  local id settings=$T/podman.conf
  printf '[containers]\nnetns = "none"\ndefault_ulimits = ["nofile=1024:1024", "nproc=1000:1000"]\n[engine]\ncgroup_manager = "cgroupfs"\nevents_logger = "none"\ntmp_dir = "%s"\n' "$T/podman-tmp" >"$settings"
  podman() { CONTAINERS_CONF=$settings timeout 60 "$(type -P podman)" --root "$T/podman" --runroot "$T/podman-run" --runtime "$T/bin/crun" "$@"; }
  id=$(podman create --rootfs "$T/bundle/rootfs" /stamp 0) && podman init "$id" >/dev/null &&
    python3 -c 'import json, sys; json.dump(json.load(open(sys.argv[1]))["linux"]["seccomp"], sys.stdout)' "$(find "$T/podman" -path "*-containers/$id/userdata/config.json")" >"$T/profile"
  local made=$?
  podman rm -f -t 0 -a >/dev/null
  return $made
}
if ! command -v podman >/dev/null || ! profile_of_podman 2>"$T/why"; then
  n=$((n + 1))
  echo "ok $n - run with podman's profile # SKIP podman does not make one: $(tail -n 1 "$T/why" 2>/dev/null)"
else
  "$program" bundle "$T/bundle" "$T/profile" || exit 1
  crun=$(command_of crun)
  if [ $cgroups = v1 ] && [ -n "$crun_prefix" ]; then  # see lib.sh
    unshare -m --propagation slave sh -c 'umount /sys/fs/cgroup/unified; exec sleep 100000' &
    view=$!
    end_view() { kill $view 2>/dev/null; }
    cleanups+=(end_view)
    for ((i = 0; i < 200; i++)); do [ "$(cat /proc/$view/comm)" != sleep ] || break; sleep 0.05; done
    crun="@/proc/$view/ns/mnt $crun"
  fi
  "$program" runs "$T/bundle" "$rounds" "coracle-oci=$(command_of coracle-oci)" "crun=$crun" ${before:+"$before"} >"$T/runs" || { cat "$T/runs"; exit 1; }
  grep '^bench:' "$T/runs"
  for row in "cold-run 0.5" "run 0.25"; do
    what=${row% *}
    read -r mine theirs < <(awk -v what="$what" '$1 == "ratio" && $2 == what && $3 == "coracle-oci" {print $5, $6}' "$T/runs")
    ratio=$(awk -v a="${mine:-}" -v b="${theirs:-}" 'BEGIN {if (a != "" && b > 0) printf "%.2f", a / b}')
    judge "$what" "$ratio" "${row#* }" "${mine:-?} ms is ${ratio:-?} of crun's ${theirs:-?} ms (bar ${row#* })"
    compare "$what" "$T/runs"
  done
fi
echo "1..$n"
exit $failures
