# SPDX-License-Identifier: Apache-2.0
# The library of the end-to-end tests: the real daemon in its own network namespace, with its own directories, and functions for
# checks. Source it, call `start_machine`, then `check NAME COMMAND...`; output is TAP. EXTRA_CONFIG: further lines of
# config.yaml. Every wait has a limit, and everything is removed on exit. Several scripts may run at once: each has its own
# namespaces, directories and cgroups, and only looks for its own processes.
set -uo pipefail

bin=${CORACLE_BIN:?CORACLE_BIN names the build directory}
coracled=$bin/daemon/coracled coraclectl=$bin/ctl/coraclectl pause=$bin/runtime/pause/coracle-pause
image_worker=$bin/runtime/image/fetch/coracle-image
cache=${CORACLE_TEST_CACHE:-/var/tmp/coracle-tests}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
test_number=0 failures=0 daemon_pid=
T=$(mktemp -d /tmp/coracle-e2e.XXXXXX)
ns=ce2e-$$
cgroup_mount=$(findmnt -n -t cgroup2 -o TARGET | head -n 1)

skip_all() { echo "ok 1 - $(basename "$0") # SKIP $*"; rm -rf "$T"; exit 77; }

[ "$(id -u)" = 0 ] || skip_all "needs root"
unshare -n true 2>/dev/null || skip_all "network namespaces are not allowed here"
command -v busybox >/dev/null || skip_all "busybox-static is missing"

# `grep -q` ends at the first match. The command before it in a pipe then fails if it still writes, and because of pipefail the whole
# pipe with it: a match would count as none, and with `!` none as a match. Without -q, grep reads all of its input.
grep() {
  local options=() is_quiet=
  while [[ ${1:-} =~ ^-[A-Za-z]+$ ]]; do
    [[ $1 != *q* ]] || is_quiet=yes
    [ "${1//q/}" = - ] || options+=("${1//q/}")
    shift
  done
  if [ -n "$is_quiet" ]; then command grep "${options[@]}" "$@" >/dev/null; else command grep "${options[@]}" "$@"; fi
}

in_ns() { nsenter --net="/run/netns/$ns" -- "$@"; }
k() { in_ns "${KUBECTL:-$coraclectl}" --kubeconfig "$T/etc/admin.kubeconfig" "$@"; }
c() { in_ns "$coraclectl" --kubeconfig "$T/etc/admin.kubeconfig" "$@"; }

# is_absent GET_ARGUMENT...: the server says that there is no such object; fails as long as it does not answer
is_absent() { local said; ! said=$(c get "$@" 2>&1) && grep -q NotFound <<<"$said"; }

# until_true SECONDS COMMAND...: runs it every 50 ms until it succeeds; fails after the timeout. The seconds apply to an idle
# machine; since other tests may run at the same time, the limit is three times as long.
until_true() {
  local end=$((SECONDS + $1 * 3))
  shift
  until "$@" >/dev/null 2>&1; do
    [ "$SECONDS" -lt "$end" ] || return 1
    read -r -t 0.05 <> <(:) || true
  done
}

# our_processes PGREP_ARGUMENT...: the matching processes of our own pods, not those of other scripts
our_processes() {
  local pid
  for pid in $(pgrep "$@"); do ! grep -qs "^0::.*/$ns/" "/proc/$pid/cgroup" || echo "$pid"; done
}

ok() { test_number=$((test_number + 1)); echo "ok $test_number - $*"; }
not_ok() { test_number=$((test_number + 1)); failures=$((failures + 1)); echo "not ok $test_number - $*"; }
check() {  # check NAME COMMAND...
  local name=$1 out status
  shift
  out=$("$@" 2>&1); status=$?
  if [ $status -eq 0 ]; then ok "$name"; else
    not_ok "$name"; echo "$out" | sed 's/^/  | /' | tail -n 40; echo "  | (status $status) $*" | cut -c1-400
  fi
}
expect() {  # expect NAME WANT COMMAND...: the command's output is exactly WANT
  local name=$1 want=$2 out
  shift 2
  out=$("$@" 2>&1) || true
  if [ "$out" = "$want" ]; then ok "$name"; else
    not_ok "$name"; printf '  | want: %s\n  | got:  %s\n' "$want" "$out" | head -n 40
  fi
}
expect_match() {  # expect_match NAME REGEX COMMAND...: the output has a line that matches
  local name=$1 want=$2 out
  shift 2
  out=$("$@" 2>&1) || true
  if grep -Eq -- "$want" <<<"$out"; then ok "$name"; else
    not_ok "$name"; printf '  | want a line like: %s\n' "$want"; echo "$out" | sed 's/^/  | /' | head -n 40
  fi
}
# soon CHECK NAME WANT COMMAND...: `expect` or `expect_match` for results that appear a moment later, such as events, which a
# separate thread writes
soon() {
  local check=$1 want=$3 asked=("${@:4}")
  if until_true 10 comes_true; then ok "$2"; else "$@"; fi
}
comes_true() {
  local out
  out=$("${asked[@]}" 2>&1) || true
  if [ "$check" = expect ]; then [ "$out" = "$want" ]; else grep -Eq -- "$want" <<<"$out"; fi
}
expect_fail() {  # expect_fail NAME REGEX COMMAND...: the command fails with a matching message
  local name=$1 want=$2 out status
  shift 2
  out=$("$@" 2>&1); status=$?
  if [ $status -ne 0 ] && grep -Eq -- "$want" <<<"$out"; then ok "$name"; else
    not_ok "$name"; printf '  | want failure like: %s\n  | status %s, got:\n' "$want" "$status"; echo "$out" | sed 's/^/  | /' | head -n 40
  fi
}

# A cgroup of our own for the pods; it gets the controllers that the daemon enables at the top for its usual cgroup.
enable_controllers() {
  local each
  for each in cpu memory pids io cpuset; do echo "+$each" >"$cgroup_mount/cgroup.subtree_control"; done 2>/dev/null
}

write_config() {
  [ -z "$cgroup_mount" ] || enable_controllers
  mkdir -p "$T/etc/manifests" "$T/state" "$T/run" "$T/log"
  cat > "$T/etc/config.yaml" <<EOF
nodeName: edge
nodeAddress: 10.55.0.2
stateDir: $T/state
runDir: $T/run
configDir: $T/etc
manifestsDir: $T/etc/manifests
logDir: $T/log
logLinksDir: $T/links
pauseProgram: $pause
imageProgram: $image_worker
insecureRegistries: ["127.0.0.1:${REGISTRY_PORT:-5999}", "10.55.0.2:${REGISTRY_PORT:-5999}"]
${cgroup_mount:+cgroupRoot: $cgroup_mount/$ns}
logLevel: ${CORACLE_LOG:-info}
${EXTRA_CONFIG:-}
EOF
}

# The outside of the machine: our namespace has one address and a default route to another host.
make_network() {
  ip netns add "$ns" && ip netns add "$ns-out" || return 1
  ip link add eth0 netns "$ns" type veth peer name eth0 netns "$ns-out"
  ip -n "$ns" link set lo up; ip -n "$ns-out" link set lo up
  ip -n "$ns" addr add 10.55.0.2/24 dev eth0; ip -n "$ns-out" addr add 10.55.0.1/24 dev eth0
  ip -n "$ns" link set eth0 up; ip -n "$ns-out" link set eth0 up
  ip -n "$ns" route add default via 10.55.0.1
}

# In a subshell, such as `check` uses for its command, the daemon's process id would be lost: later, no daemon or a wrong one
# would be stopped.
main_shell=$BASHPID  # the shell that reads this file
in_main_shell() { [ "$BASHPID" = "$main_shell" ] || { kill -USR1 "$main_shell"; exit 1; }; }
trap 'echo "Bail out! the daemon was started or stopped in a subshell, after test $test_number"; exit 1' USR1

unit_environment=$(sed -n 's/^Environment=//p' "$here/../../systemd/coracled.service")
launch() {  # launch: starts the daemon with the current state, in the background, with the environment of its unit
  in_main_shell
  # Not with in_ns: a function in the background runs in a subshell, and killing that leaves the daemon running.
  nsenter --net="/run/netns/$ns" -- env $unit_environment "$coracled" --config "$T/etc/config.yaml" >>"$T/coracled.log" 2>&1 &
  daemon_pid=$!
}
ready() { [ -s "$T/etc/admin.kubeconfig" ] && c get --raw /readyz; }
start_daemon() {
  launch
  until_true "${1:-20}" ready || { echo "Bail out! coracled is not ready:"; tail -n 40 "$T/coracled.log"; exit 1; }
}
kill_daemon() { in_main_shell; kill -KILL "$daemon_pid" 2>/dev/null; wait "$daemon_pid" 2>/dev/null; daemon_pid=; }
stop_daemon() {
  in_main_shell
  [ -n "$daemon_pid" ] || return 0
  kill -TERM "$daemon_pid" 2>/dev/null
  wait "$daemon_pid" 2>/dev/null
  until_true 20 sh -c '! kill -0 "$1"' - "$daemon_pid"  # if it is not a child of this shell
  daemon_pid=
}

make_busybox() {  # make_busybox: an image from Debian's busybox-static
  local dir=$T/rootfs
  mkdir -p "$dir"/{bin,etc,tmp,var,root,home}
  cp "$(command -v busybox)" "$dir/bin/busybox"
  for applet in $(busybox --list); do [ "$applet" = busybox ] || ln -s busybox "$dir/bin/$applet"; done
  echo 'root:x:0:0:root:/root:/bin/sh' > "$dir/etc/passwd"; echo 'nobody:x:65534:65534::/:/bin/sh' >> "$dir/etc/passwd"
  echo 'root:x:0:' > "$dir/etc/group"
  chmod 1777 "$dir/tmp"
  c image pack "$dir" localhost/busybox:latest --cmd sh
}

start_machine() {
  trap cleanup EXIT
  make_network || skip_all "cannot make network namespaces with veth pairs"
  write_config
  start_daemon
  make_busybox >"$T/pack.log" 2>&1 || { echo "Bail out! image pack:"; cat "$T/pack.log"; exit 1; }
}

declare -A hollow_pids=()
# hollow NAME [flags]: a node beside our own that runs nothing (tests/hollow/hollow_node.cc describes its flags and the
# annotations of its pods). After `hollow_identity NAME` it authenticates as system:node:NAME, otherwise as the administrator. Its
# process is ${hollow_pids[NAME]}: USR1 makes it silent, USR2 lets it report again, KILL simulates a power failure, TERM shuts it
# down.
hollow() {
  local name=$1 file=$T/etc/admin.kubeconfig
  shift
  [ ! -s "$T/hollow-$name.kubeconfig" ] || file=$T/hollow-$name.kubeconfig
  nsenter --net="/run/netns/$ns" -- "$bin/tests/hollow/hollow_node" --kubeconfig "$file" --name "$name" "$@" >"$T/hollow-$name.log" 2>&1 &
  hollow_pids[$name]=$!
  until_true 20 grep -q registered "$T/hollow-$name.log" || { cat "$T/hollow-$name.log"; return 1; }
}
hollow_signal() { kill -"$2" "${hollow_pids[$1]}"; }  # hollow_signal NAME SIGNAL
hollow_leave() {  # hollow_leave NAME: stops it and deletes its Node
  kill -TERM "${hollow_pids[$1]}" && wait "${hollow_pids[$1]}" 2>/dev/null
  unset "hollow_pids[$1]"
  k delete node "$1" >/dev/null 2>&1 || true  # a node may not delete itself
}
hollow_identity() {  # hollow_identity NAME: a kubeconfig for system:node:NAME, signed by our authority. Needs openssl
  local base=$T/hollow-$1
  openssl ecparam -name prime256v1 -genkey -noout -out "$base.key" 2>/dev/null
  openssl req -new -key "$base.key" -subj "/O=system:nodes/CN=system:node:$1" 2>/dev/null |
    openssl x509 -req -CA "$T/state/pki/ca.crt" -CAkey "$T/state/pki/ca.key" -CAcreateserial -CAserial "$base.srl" -days 2 -out "$base.crt" 2>/dev/null
  cat > "$base.kubeconfig" <<Y
{apiVersion: v1, kind: Config, current-context: it, contexts: [{name: it, context: {cluster: it, user: it}}],
 clusters: [{name: it, cluster: {server: "https://127.0.0.1:6443", certificate-authority: $T/state/pki/ca.crt}}],
 users: [{name: it, user: {client-certificate: $base.crt, client-key: $base.key}}]}
Y
}

cleanup() {
  local status=$?
  for pid in "${hollow_pids[@]}"; do kill -KILL "$pid" 2>/dev/null; wait "$pid" 2>/dev/null; done
  if [ -n "$daemon_pid" ]; then c delete pods --all -A --grace-period=1 --wait=true --timeout=20s >/dev/null 2>&1; fi
  stop_daemon
  in_ns "$coracled" --config "$T/etc/config.yaml" --remove-pods >"$T/remove.log" 2>&1 || { echo "# --remove-pods:"; sed 's/^/# /' "$T/remove.log"; }
  [ "$failures" -eq 0 ] && [ "$status" -eq 0 ] || { echo "# daemon's log:"; tail -n "${LOG_LINES:-60}" "$T/coracled.log" | sed 's/^/# /'; }
  ip netns del "$ns" 2>/dev/null; ip netns del "$ns-out" 2>/dev/null
  [ -z "$cgroup_mount" ] || find "$cgroup_mount/$ns" -depth -type d -exec rmdir {} + 2>/dev/null
  if mountpoint -q "$T/state"; then umount -l "$T/state"; fi
  [ -n "${KEEP:-}" ] || rm -rf "$T"
  [ "$failures" -eq 0 ] || exit 1
  exit "$status"
}
