# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# The library of the tests in a virtual machine (run.sh here, tests/oci/vm.sh, tests/attacks/vm.sh): requirements of this machine,
# a temporary directory that goes away with the virtual machine, the files that are copied into it, and running commands in it.
#   title="what is skipped where something is missing"; [all_parts="NAME…"]; . tests/vm/machine.sh
#   all_parts            of the script: its arguments name some of them. They, or all, are in $parts then
#   CORACLE_BIN          the build (default: build)             CORACLE_VM_FILES   or a tree of installed files
#   CORACLE_VM_SUITE     the machine's Debian (default: this one's)
#   CORACLE_TEST_CACHE   where such a Debian is kept, once made
case ${1:-} in -h|--help) sed -n '3,/^[^#]/s/^# \{0,1\}//p' "$0"; exit 0 ;; esac
parts=${*:-${all_parts:-}}
for part in $parts; do
  case " ${all_parts:-} " in
    *" $part "*) ;;
    *) echo "$(basename "$0"): unknown word $part${all_parts:+; the parts are: $all_parts}; see --help" >&2; exit 2 ;;
  esac
done
vm=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$vm/../.." && pwd)
build=$(realpath -m "${CORACLE_BIN:-$root/build}")
cache=${CORACLE_TEST_CACHE:-/var/tmp/coracle-tests}
n=0 failures=0

skip_all() { echo "ok 1 - $title # SKIP $*"; exit 77; }
ok() { n=$((n + 1)); echo "ok $n - $*"; }
not_ok() { n=$((n + 1)); failures=$((failures + 1)); echo "not ok $n - $*"; }
bail() { not_ok "$1"; shift; printf '%s\n' "$@" | sed 's/^/  | /' | tail -n 60; exit 1; }

[ "$(id -u)" = 0 ] || skip_all "needs root (to make a Debian)"
[ "$(uname -m)" = x86_64 ] || skip_all "the machine is made for x86_64"
for program in qemu-system-x86_64 qemu-img mmdebstrap mke2fs python3; do
  command -v "$program" >/dev/null || skip_all "$program is missing"
done

T=$(mktemp -d "${TMPDIR:-/var/tmp}/coracle-vm.XXXXXX")
finish() {
  local machine
  for machine in "$T" "$T"/cut-*; do [ ! -e "$machine/pid" ] || "$vm/vm.py" cut "$machine" 2>/dev/null; done
  if [ "$failures" -gt 0 ]; then echo "# the console's end:"; tail -n 20 "$T/console.log" 2>/dev/null | sed 's/^/# /'; fi
  rm -rf "$T"
}
trap finish EXIT
trap 'exit 143' TERM INT

# ---- files for the machine ----

# Files in $T/payload appear there below /, once $unpack has run. If the machine's Debian differs from the one that built the
# programs, missing libraries are included.
mkdir -p "$T/payload"
libraries() {  # libraries PROGRAM...: includes the libraries that they are linked with
  local program
  mkdir -p "$T/payload/payload/lib"
  for program in "$@"; do ldd "$program" 2>/dev/null | awk '$3 ~ /^\// {print $3}'; done | sort -u | xargs -r cp -L -t "$T/payload/payload/lib"
}
pack() {
  tar -C "$T/payload" --owner=0 --group=0 -cf "$T/payload.tar" $(ls -A "$T/payload") && rm -rf "$T/payload" &&
    truncate -s "$("$vm/vm.py" payload-bytes)" "$T/payload.tar" || bail "payload"
}
unpack='tar -C / --no-overwrite-dir -xf /dev/vdb || exit 1
  for library in /payload/lib/*; do [ ! -e $library ] || ldconfig -p | grep -q "^\s$(basename $library) " || cp $library /usr/local/lib/; done; ldconfig;'

# Includes what `build` would install, or the tree of CORACLE_VM_FILES, and the named scripts of guest/.
payload_of_build() {  # payload_of_build WORDS...
  mkdir -p "$T/payload/root"
  if [ -n "${CORACLE_VM_FILES:-}" ]; then  # a tree that is already installed
    cp -a "$CORACLE_VM_FILES/." "$T/payload/"
  else
    [ -x "$build/daemon/coracled" ] || bail "there is something to install" "$build/daemon/coracled is missing: build first"
    DESTDIR=$T/payload meson install -C "$build" --no-rebuild --quiet >"$T/install.log" 2>&1 || bail "meson install" "$(cat "$T/install.log")"
  fi
  if [ -d "$T/payload/usr/local/bin" ]; then  # a build for another prefix; the units contain /usr
    cp -a "$T/payload/usr/local/." "$T/payload/usr/" && rm -rf "$T/payload/usr/local"
  fi
  libraries "$T"/payload/usr/bin/*
  strip "$T"/payload/usr/bin/* 2>/dev/null
  words=$*
  (cd "$vm/guest" && cp -t "$T/payload/root" "$@")
}

# ---- the machine ----

# Times are those of an idle machine; if other work uses its processors, they are longer: see time_factor in guest/lib.sh.
words=
on() {  # on SECONDS SCRIPT: runs it, with the named scripts of guest/
  local seconds=$(($1 * 3)) said= word
  shift
  for word in $words; do said="$said. /root/$word 2>/dev/null; "; done
  "$vm/vm.py" run "$T" "$seconds" "$said$*"
}
check() {  # check NAME SECONDS SCRIPT: it must succeed in the machine
  local name=$1 seconds=$2 out status
  shift 2
  out=$(on "$seconds" "$@" 2>&1); status=$?
  if [ $status -eq 0 ]; then ok "$name"; sed -n 's/^measured: /# /p' <<<"$out"; return 0; fi
  not_ok "$name"; awk '{line[NR] = $0} END {for (i = 1; i <= NR; i++) if (i <= 10 || i > NR - 40) print "  | " line[i]}' <<<"$out"; echo "  | (status $status) $*" | cut -c1-300
  return 1
}

boot() {  # boot [OPTION...]: those of image.sh. A new machine is one that has started once already, told the time and what is new on its disk
  local verb=start
  image=$("$vm/image.sh" "$cache" "$@") || bail "a Debian for the machine can be made"
  [ -e "$T/disk.qcow2" ] || verb=resume
  "$vm/vm.py" $verb "$T" "$image" -drive "file=$T/payload.tar,if=virtio,format=raw,readonly=on" || bail "qemu starts" "$(cat "$T/qemu.log")"
  [ $verb = start ] || "$vm/vm.py" run "$T" 300 "date -s @$(date +%s); blockdev --flushbufs /dev/vdb" >/dev/null || bail "the machine goes on"
}
# Runs a script in the machine. Its output appears as it is written, over the machine's third serial line.
follow() {  # follow SECONDS SCRIPT
  local status=0 running
  : >"$T/acks"
  "$vm/vm.py" run "$T" "$1" "stty -F /dev/ttyS2 raw -echo; (
    $2
    ) >/dev/ttyS2 2>&1; s=\$?; sleep 1; exit \$s" >"$T/out" 2>&1 &
  running=$!
  tail -n +1 -f --pid=$running "$T/acks" &
  wait $! || true
  wait $running || status=$?
  cat "$T/out"
  return $status
}
