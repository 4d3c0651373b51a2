#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The cost of a change: compares the programs of two build directories on one machine, in turns, with one driver.
#
#   tests/bench/compare.sh BEFORE AFTER [TURNS]     (root; AFTER also has what `ninja bench` builds; 21 turns, each about half a minute)
#
# First the memory of the daemon and of the other processes with two pods, for each build alone. Then both run at once, each
# in its own network namespaces, in turns of a few seconds: the latencies of clients, the time until 128 MiB of a container's
# output are in its log, and the size of the log. The kernel's time to create namespaces and cgroups varies twofold within
# minutes, so each figure of BEFORE has one of AFTER within seconds of it.
# Prints the median of each over the turns, and the median of their ratios: below 1, AFTER is faster or smaller.
# Two daemons of one build differ as well: `compare.sh AFTER AFTER` shows by how much.
set -uo pipefail
fail_usage() { echo "compare.sh: $*; usage: compare.sh BEFORE AFTER [TURNS]" >&2; exit 2; }
case ${1:-} in -h|--help) sed -n '3,12s/^# \{0,1\}//p' "$0"; exit 0 ;; esac
[ $# -ge 2 ] && [ $# -le 3 ] || fail_usage "it needs two build directories"
before=$(realpath -- "$1") after=$(realpath -- "$2") turns=${3:-21}
[[ $turns =~ ^[1-9][0-9]*$ ]] || fail_usage "TURNS is a number"
for each in "$before" "$after"; do
  [ -x "$each/daemon/coracled" ] || fail_usage "there is no daemon/coracled in $each"
  [ -r "$each/../systemd/coracled.service" ] || fail_usage "$each does not lie in its source tree, whose unit says how the daemon runs"
done
[ -x "$after/tests/bench/driver" ] && [ -x "$after/tests/bench/stamp" ] || fail_usage "there is no driver in $after: ninja -C $after bench"
command -v wrk >/dev/null || { echo "compare.sh: wrk is missing"; exit 77; }
here=$(dirname "$0")
figures=${COMPARE_FIGURES:-}  # set: this process is the machine $COMPARE_MACHINE of the main process

# The median of the driver's line that begins with NAME, in milliseconds.
median_of() { sed -n "s/^bench: $1 .*median \([0-9.]*\) ms.*/\1/p"; }
# Milliseconds between two responses over eight connections.
between_answers() {
  in_ns wrk -t 2 -c 8 -d 2s -H 'Authorization: Bearer bench' "https://10.55.0.2:6443$1" |
    awk '/Non-2xx|Socket errors/ {bad = 1} /^Requests\/sec:/ && !bad && $2 > 0 {print 1000 / $2}'
}
pss_kib() { cat "$@" | awk '/^Pss:/ {sum += $2} END {print sum}'; }
figure() { [ -n "$3" ] && echo "$3" >>"$figures/$2.$1" || { echo "compare.sh: no figure of $2 from $1" >&2; exit 1; }; }

client() { in_ns "$after/ctl/coraclectl" --kubeconfig "$config" "$@"; }  # the same client for both
make_talker() {  # make_talker: an image of busybox with a text of 64 MiB in lines of 128 bytes
  mkdir -p "$T/talker"
  cp "$(command -v busybox)" "$T/talker/busybox" && yes "$(printf '%0127d' 0)" | head -n 524288 >"$T/talker/text"
  c image pack "$T/talker" localhost/talker:1 --entrypoint /busybox
}
execs() { for _ in {1..10}; do milliseconds client exec pauses -- /busybox true || return 1; done; }
middle_of() { sort -n | awk '{v[NR] = $1} END {if (NR) print (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2}'; }
words() {
  client run says --image=localhost/talker:1 --restart=Never -- cat /text /text &&
    client wait --for=jsonpath='{.status.phase}'=Succeeded pod/says --timeout=60s
}
milliseconds() {  # milliseconds COMMAND...: prints its run time
  local from=${EPOCHREALTIME/./}
  "$@" >/dev/null 2>&1 || return
  local took=$((${EPOCHREALTIME/./} - from))
  printf '%d.%03d\n' $((took / 1000)) $((took % 1000))
}

# measure FIGURE: one figure of this machine
measure() {
  case $1 in
  memory) pss_kib "/proc/$daemon_pid/smaps_rollup" ;;
  pauses) our_processes -x coracle-pause | sed 's|.*|/proc/&/smaps_rollup|' | xargs cat | pss_kib - ;;
  start) in_ns "$driver" pod-start "$config" "$T/log" "$T/bundle" 20 | median_of 'POST pod to first instruction' ;;
  create) client delete configmaps --all >/dev/null
    in_ns "$driver" objects "$config" 200 | median_of 'create, on the disk' ;;
  get) between_answers /api/v1/namespaces/default/pods/gated-7 ;;
  list) between_answers /api/v1/namespaces/default/pods ;;
  watch) client delete configmap watched --ignore-not-found >/dev/null
    in_ns "$driver" watchers "$config" 100 50 4 | median_of 'change to watcher' ;;
  again) in_ns "$driver" killed "$config" "$T/log" 10 | median_of 'SIGKILL to running again' ;;
  exec) all=$(execs) && middle_of <<<"$all" ;;
  words) client delete pod says --ignore-not-found >/dev/null && milliseconds words ;;
  logs) milliseconds client logs says ;;
  esac
}
# The machine of one build: measures its memory alone, or the figures requested on standard input, and prints one line for each.
be_machine() {
  . "$here/lib.sh"
  unit_environment=$(sed -n 's/^Environment=//p' "$CORACLE_BIN/../systemd/coracled.service")  # from its own unit
  driver=$after/tests/bench/driver stamp=$after/tests/bench/stamp
  mkdir -p "$T/etc"
  echo 'bench,bench,1,"system:masters"' >"$T/etc/tokens.csv"
  EXTRA_CONFIG="tokenAuthFile: $T/etc/tokens.csv"
  start_machine >&2
  make_bundle >&2 || exit 1
  config=$T/etc/admin.kubeconfig
  in_ns "$driver" pods "$config" 2 >/dev/null || exit 1
  if [ "$COMPARE_WHAT" = memory ]; then
    read -r -t 5 <> <(:)
    figure "$COMPARE_MACHINE" memory "$(measure memory)"
    figure "$COMPARE_MACHINE" pauses "$(measure pauses)"
    return
  fi
  { in_ns "$driver" gated "$config" 200 && make_talker && client run pauses --image=localhost/talker:1 -- sleep 1000000 &&
    client wait --for=condition=Ready pod/pauses --timeout=60s; } >/dev/null || exit 1
  echo up
  while read -r asked; do
    figure "$COMPARE_MACHINE" "$asked" "$(measure "$asked")"
    echo done
  done
}
if [ -n "$figures" ]; then be_machine; exit; fi

figures=$(mktemp -d)
trap 'rm -rf "$figures"' EXIT
machine() {  # machine before|after WHAT
  CORACLE_BIN=${!1} COMPARE_FIGURES=$figures COMPARE_MACHINE=$1 COMPARE_WHAT=$2 bash "$0" "$before" "$after"
}
for _ in 1 2 3; do machine before memory && machine after memory || exit 1; done
for each in before after; do
  mkfifo "$figures/to.$each" "$figures/from.$each"
  machine "$each" turns <"$figures/to.$each" >"$figures/from.$each" &
done
exec {to_before}>"$figures/to.before" {to_after}>"$figures/to.after" {from_before}<"$figures/from.before" {from_after}<"$figures/from.after"
answer() { local from=from_$1 said; read -r said <&"${!from}" || { echo "compare.sh: the machine of $1 has ended" >&2; exit 1; }; }
ask() { local to=to_$1; echo "$2" >&"${!to}" && answer "$1"; }
answer before && answer after
for ((turn = 0; turn < turns; turn++)); do
  for what in start create get list watch again exec words logs; do
    if ((turn % 2 == 0)); then ask before $what && ask after $what; else ask after $what && ask before $what; fi
  done
done
exec {to_before}>&- {to_after}>&-
wait

report() {  # report NAME UNIT TEXT
  paste "$figures/$1.before" "$figures/$1.after" | awk -v unit="$2" -v text="$3" '
    function median(v, n,  i, j, t) {
      for (i = 2; i <= n; i++) for (j = i; j > 1 && v[j - 1] > v[j]; j--) {t = v[j]; v[j] = v[j - 1]; v[j - 1] = t}
      return n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2
    }
    {n++; b[n] = $1; a[n] = $2; r[n] = $2 / $1}
    END {printf "bench: %-40s %10.3f %s before %10.3f after: %.3f\n", text, median(b, n), unit, median(a, n), median(r, n)}'
}
report start ms "POST of a pod to its first instruction"
report create ms "create, on the disk"
report get ms "GET of a pod, from answer to answer"
report list ms "LIST of 200 pods, from answer to answer"
report watch ms "a change to each of 100 watchers"
report again ms "a killed container runs again"
report exec ms "exec by coraclectl, of 10 the median"
report words ms "128 MiB into a log"
report logs ms "logs of what is kept of it"
report memory KiB "PSS of the daemon with two pods"
report pauses KiB "PSS of its other processes"
programs="daemon/coracled ctl/coraclectl runtime/cli/coracle-oci runtime/pause/coracle-pause runtime/image/fetch/coracle-image"
report_size() {  # report_size TEXT PROGRAMS...
  local text=$1 each
  shift
  for each in before after; do
    (cd "${!each}" && size "$@") | awk 'NR > 1 {sum += $1 + $2} END {print sum / 1024}' >"$figures/size.$each"
  done
  report size KiB "text and data of $text"
}
for program in $programs; do report_size "$(basename "$program")" "$program"; done
report_size "all programs" $programs
