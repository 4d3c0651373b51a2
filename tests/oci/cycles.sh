#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Containers are created, started, killed and deleted, one after another, 10,000 in a long run: afterwards the machine is
# unchanged, in mounts, cgroups, processes, files, open files and network namespaces. It runs in its own mount and pid namespaces,
# so that everything in them is ours; the kernel's machine-wide counters may change by other work, but not by one in each cycle.
# TAP.
#   CORACLE_CYCLES     number of cycles (200; 10,000 with CORACLE_LONG=1)
#   CORACLE_RUNTIME    the runtime (coracle-oci; crun, runc)
if [ "${1:-}" != inside ] && [ "$(id -u)" = 0 ]; then
  # Not exec: the first process of a pid namespace should only wait.
  unshare --mount --propagation private --pid --fork --mount-proc --kill-child "$BASH" -c '"$@"; exit' sh "$0" inside &
  trap 'kill -TERM $!' TERM INT
  wait $!
  exit
fi
. "$(dirname "$0")/lib.sh"
program=$bin/tests/bench/bench_oci
[ -x "$program" ] || skip_all "$program is not built"
export LC_ALL=C  # one order for all lists
name=${CORACLE_RUNTIME:-coracle-oci}
rounds=${CORACLE_CYCLES:-$([ "${CORACLE_LONG:-0}" = 1 ] && echo 10000 || echo 200)}
mkdir -p "$T/bundle/rootfs"
cp "$bin/tests/bench/stamp" "$T/bundle/rootfs/stamp"
"$program" bundle "$T/bundle" || exit 1
if [ $name = crun ] && [ -n "$crun_prefix" ]; then umount /sys/fs/cgroup/unified; fi

groups() { find /sys/fs/cgroup -type d \( -path '*/coracle-oci*' -o -path '*/coracle-bench/*' -o -path '*bench-*' \) 2>/dev/null | sort; }
remove_groups() { groups | sort -r | xargs -r rmdir 2>/dev/null; }
cleanups+=(remove_groups)
ours() {  # ours: the existing objects, by name
  case $1 in
    mounts)    awk '{print $5, $9}' /proc/self/mountinfo | sort ;;
    cgroups)   groups ;;
    processes) ps -e -o args= >"$T/ps"; sort "$T/ps" | grep -v '^ps ' ;;  # before a pipe adds processes
    files)     find "$T/state/$name" "$T/bundle" /run/coracle* /run/crun /run/runc /dev/shm -xdev \( -name "bench-$$-*" -o -path "$T/*" \) 2>/dev/null | sort ;;
  esac
}
counted() {  # counted: the kernel's counters for the whole machine
  case $1 in
    "open files")         cut -f 1 /proc/sys/fs/file-nr ;;
    "network namespaces") awk '$1 == "net_namespace" {print $2}' /proc/slabinfo ;;
    "cgroups")            awk '$1 == "pids" {print $3}' /proc/cgroups ;;
    "keys")               awk '$1 == "0:" {print $2}' /proc/key-users | cut -d / -f 1 ;;
    "inodes of pipes and sockets") awk '$1 == "sock_inode_cache" {print $2}' /proc/slabinfo ;;
  esac
}
named=(mounts cgroups processes files) numbered=("open files" "network namespaces" "cgroups" "keys" "inodes of pipes and sockets")
look() { local each; mkdir -p "$1"; for each in "${named[@]}"; do ours "$each" >"$1/$each"; done; for each in "${numbered[@]}"; do counted "$each" >"$1/$each.number"; done; }

last_of() { grep . "$1" | tail -n 1; }

command=$(command_of "$name")
"$program" cycles "$T/bundle" 3 "$command" >"$T/first" 2>&1 || { echo "not ok 1 - $name: $(last_of "$T/first")"; exit 1; }  # what is made once and kept
mkdir "$T/looks"
look "$T/looks/before"
n=1 failures=0
if "$program" cycles "$T/bundle" "$rounds" "$command" >"$T/said" 2>&1; then echo "ok 1 - $rounds containers come and go"
else failures=1; echo "not ok 1 - $rounds containers come and go: $(last_of "$T/said")"; fi
grep '^measured:' "$T/said"
sleep 2  # the kernel removes namespaces and cgroups asynchronously
look "$T/looks/after"
for each in "${named[@]}"; do
  n=$((n + 1))
  # A vanished object may belong to other work that has ended; a new one is ours.
  if differ=$(comm -13 "$T/looks/before/$each" "$T/looks/after/$each") && [ -z "$differ" ]; then echo "ok $n - $each are as before"
  else failures=1; echo "not ok $n - $each are not as before ($(wc -l <<<"$differ") lines)"; head -n 10 <<<"$differ" | sed 's/^/  | /'; fi
done
few=$((rounds / 4 + 50))
for each in "${numbered[@]}"; do
  before=$(cat "$T/looks/before/$each.number") after=$(cat "$T/looks/after/$each.number")
  [ -n "$before" ] || continue
  n=$((n + 1))
  # The kernel counts free objects in per-processor caches as used, some hundred of a small kind. Their number is the same after
  # another batch of containers; leaked objects grow with each batch.
  counts="$before, $after"
  for _ in 1 2; do
    [ $((after - before)) -gt $few ] || break
    "$program" cycles "$T/bundle" "$rounds" "$command" >"$T/said" 2>&1 || { counts+=", then: $(last_of "$T/said")"; break; }
    sleep 2
    before=$after after=$(counted "$each") counts+=", $after"
  done
  if [ $((after - before)) -le $few ]; then echo "ok $n - $each: $counts"
  else failures=1; echo "not ok $n - $each: $counts, each $rounds containers later"; fi
done
echo "1..$n"
exit $failures
