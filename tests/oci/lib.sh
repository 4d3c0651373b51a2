# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# The library of the OCI runtime's tests: a temporary directory, a root file system with one static program, and the runtimes to
# compare, as three commands that keep their state in that directory. crun and runc are the peers; coracle-oci is ours.
#   CORACLE_BIN   the build directory; or an installed coracle-oci is on PATH
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
here=$root/tests/oci
bin=${CORACLE_BIN:-$root/build}
cache=${CORACLE_TEST_CACHE:-/var/tmp/coracle-tests}

skip_all() { echo "ok 1 - $(basename "$0" .sh) # SKIP $*"; exit 77; }
not_so() { echo "not ok 1 - $(basename "$0" .sh): $*"; exit 1; }
need_programs() { local p; for p in "$@"; do command -v "$p" >/dev/null || skip_all "$p is missing"; done; }

[ "$(id -u)" = 0 ] || skip_all "needs root"
need_programs busybox python3 crun runc

if [ "$(stat -f -c %T /sys/fs/cgroup 2>/dev/null)" = cgroup2fs ]; then cgroups=v2; else cgroups=v1; fi
. /etc/os-release

T=$(mktemp -d "${TMPDIR:-/var/tmp}/coracle-oci.XXXXXX")
chmod 755 "$T"  # a container with a user namespace needs access
cleanups=()
# Removes what the programs under test have left: processes and cgroups go with their containers, each deleted by its own runtime.
clean_up() {
  local each name
  for each in "${cleanups[@]}"; do $each; done
  for name in "$T"/bin/*; do
    [ -x "$name" ] || continue
    for each in $(timeout 20 "$name" list 2>/dev/null | awk '$1 != "ID" && $1 != "NAME" {print $1}'); do
      timeout 20 "$name" delete --force "$each" >/dev/null 2>&1
    done
  done
  awk -v t="$T/" 'index($5, t) == 1 {print $5}' /proc/self/mountinfo | sort -r | xargs -r -n 1 umount -l 2>/dev/null
  rm -rf "$T"
}
trap clean_up EXIT
trap 'exit 143' TERM INT

ours=$(command -v coracle-oci || true)
ours_arguments=
if [ -x "$bin/runtime/cli/coracle-oci" ]; then
  ours=$bin/runtime/cli/coracle-oci
  # In the build directory, the path of the helper must be given, as long as there is one.
  if "$ours" --help 2>/dev/null | grep -q -e --pause; then ours_arguments="--pause $bin/runtime/pause/coracle-pause"; fi
fi
[ -n "$ours" ] || skip_all "coracle-oci is not built"

# "$T/bin/NAME" is each runtime with its own state directory. crun refuses a machine with cgroup v2 controllers beside those of
# v1; it gets a view without them.
mkdir -p "$T/bin" "$T/state"
crun_prefix=
if [ $cgroups = v1 ] && grep -qs . /sys/fs/cgroup/unified/cgroup.controllers; then
  crun_prefix="exec unshare -m --propagation slave sh -c 'umount /sys/fs/cgroup/unified; exec \"\$@\"' sh"
fi
command_of() {  # command_of NAME: prints the program and its options, for measurements
  case $1 in
    coracle-oci) echo "$ours $ours_arguments --root $T/state/$1" ;;
    *)           echo "$(command -v "$1") --root $T/state/$1" ;;
  esac
}
for name in crun runc coracle-oci; do
  prefix=exec
  [ $name != crun ] || prefix=${crun_prefix:-exec}
  printf '#!/bin/sh\n%s %s "$@"\n' "$prefix" "$(command_of $name)" >"$T/bin/$name"
  chmod +x "$T/bin/$name"
done

make_rootfs() {  # make_rootfs DIRECTORY: busybox with all its names
  local applet
  mkdir -p "$1"/{bin,dev,etc,proc,root,run,sys,tmp}
  chmod 1777 "$1/tmp"
  cp "$(command -v busybox)" "$1/bin/busybox"
  for applet in $("$1/bin/busybox" --list); do
    case $applet in busybox|*/*) ;; *) ln -s busybox "$1/bin/$applet" ;; esac
  done
  printf 'root:x:0:0:root:/root:/bin/sh\nalice:x:1001:1001:alice:/tmp:/bin/sh\n' >"$1/etc/passwd"
  printf 'root:x:0:\nalice:x:1001:\nextra:x:1002:alice\n' >"$1/etc/group"
}
