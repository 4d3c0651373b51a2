#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Cgroups of containers on a machine with systemd and all controllers in cgroup v2: the library's live tests as root, as a user
# without delegation, and as a user in a scope of their own. TAP. On other machines the same program is part of the suite "live".
bin=${CORACLE_BIN:-$(cd "$(dirname "$0")/../.." && pwd)/build}
program=$bin/tests/runtime/cgroup/cgroup_live_test
skip_all() { echo "ok 1 - cgroup # SKIP $*"; exit 77; }
[ "$(id -u)" = 0 ] || skip_all "needs root"
[ -x "$program" ] || skip_all "$program is not built"
[ -e /run/systemd/private ] || skip_all "systemd does not run"
[ "$(stat -f -c %T /sys/fs/cgroup)" = cgroup2fs ] || skip_all "cgroup v2 does not have the controllers"
id user >/dev/null 2>&1 || skip_all "there is no user called user"
n=0 failures=0 out=$(mktemp)
trap 'rm -f "$out"' EXIT

# as WHO EXPECTED COMMAND...: prints the test program's results; a skipped test is a failure where this machine has all it needs.
as() {
  local who=$1 expected=$2 verdict name status=0
  shift 2
  timeout 1200 "$@" >"$out" 2>&1 || status=$?
  while read -r verdict name; do
    n=$((n + 1))
    case $verdict in
      OK) echo "ok $n - $who: $name" ;;
      *)  failures=$((failures + 1)); echo "not ok $n - $who: $name ($verdict)" ;;
    esac
  done < <(sed -n 's/^\[ *\(OK\|FAILED\|SKIPPED\) *\] \([A-Za-z]*\.[a-z_0-9A-Z]*\) (.*/\1 \2/p' "$out")
  n=$((n + 1))
  if [ $status -eq 0 ] && [ "$(grep -c '^\[       OK' "$out")" -ge "$expected" ]; then echo "ok $n - $who: all ran"
  else failures=$((failures + 1)); echo "not ok $n - $who: status $status"; grep -v '^\[\( RUN\|       OK\)' "$out" | sed 's/^/  | /' | tail -n 60; fi
}
before=$(find /sys/fs/cgroup -name '*coracle*' | sort)
as root 23 "$program" '--gtest_filter=-Rootless.*:*v1_holds*:*there_is_no_systemd'

loginctl enable-linger user 2>/dev/null
systemctl start user@1000.service || echo "# user@1000.service: $(systemctl is-active user@1000.service)"
user=(setpriv --reuid user --regid user --init-groups env HOME=/home/user XDG_RUNTIME_DIR=/run/user/1000)
as 'user, nothing delegated' 4 "${user[@]}" CORACLE_TEST_DELEGATED=no "$program" '--gtest_filter=Rootless.*:Systemd.*'
as 'root of a user namespace' 3 "${user[@]}" unshare --user --map-root-user "$program" '--gtest_filter=Systemd.*'
mkdir -p /tmp/no-runtime-directory  # without systemd's own socket: through the message bus
as 'user, by the bus' 3 "${user[@]}" CORACLE_TEST_RUNTIME_DIR=/run/user/1000 \
  XDG_RUNTIME_DIR=/tmp/no-runtime-directory DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/1000/bus \
  "$program" '--gtest_filter=Systemd.*'
as 'user, in a scope of their own' 1 "${user[@]}" CORACLE_TEST_DELEGATED=yes systemd-run --user --scope --quiet -p Delegate=yes "$program" '--gtest_filter=Rootless.*'
as 'user, in a service delegated to them' 1 systemd-run --wait --pipe --quiet -p User=user -p Delegate=yes \
  -E CORACLE_TEST_DELEGATED=yes "$program" '--gtest_filter=Rootless.*'
# As in a container: the root of its view is a cgroup like any other, whose processes have to be moved. The old mount is removed
# first: mount(2), which Debian 12's command uses, does not mount a file system over itself.
as 'root of a cgroup namespace' 4 systemd-run --scope --quiet -p Delegate=yes unshare --cgroup --mount sh -c \
  'umount /sys/fs/cgroup && mount -t cgroup2 none /sys/fs/cgroup && exec "$@"' sh "$program" '--gtest_filter=Live.is_made*:Live.without_a_path*:Live.holds_every*:Live.tells_of_memory*'
loginctl disable-linger user 2>/dev/null

n=$((n + 1))
left=$(find /sys/fs/cgroup -name '*coracle*' | sort)
if [ "$left" = "$before" ] && ! systemctl list-units --all --no-legend | grep -q coracle; then echo "ok $n - nothing is left"
else failures=$((failures + 1)); echo "not ok $n - left: $left"; systemctl list-units --all --no-legend | grep coracle | sed 's/^/  | /'; fi
echo "1..$n"
[ $failures -eq 0 ]
