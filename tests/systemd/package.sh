#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The package in a fresh Debian: built, installed, run, upgraded and downgraded under pods that go on, removed, purged: what is there
# then is what was there before. In namespaces of its own; systemd is played by a script (the real one: tests/vm). TAP. Needs root,
# mmdebstrap and a mirror.
#   package.sh [SUITE [ARCH]]   (default: bookworm, this machine's processor)
# Programs of another processor are run by qemu-user-static, which cannot run pods: there the daemon is played too.
# CORACLE_PACKAGE names a package of that suite and processor that is built already.
set -uo pipefail
n=0 bad=0
ok() { n=$((n + 1)); echo "ok $n - $*"; }
not_ok() { n=$((n + 1)); bad=1; echo "not ok $n - $*"; }
check() {
  local name=$1 out status
  shift
  out=$("$@" 2>&1); status=$?
  if [ $status = 0 ]; then ok "$name"; else not_ok "$name"; echo "$out" | sed 's/^/  | /' | tail -n 40; echo "  | (status $status)"; fi
}
is() { local name=$1 want=$2 got=$3; if [ "$got" = "$want" ]; then ok "$name"; else not_ok "$name"; printf 'wanted: %s\ngot:    %s\n' "$want" "$got" | sed 's/^/  | /' | head -n 60; fi; }
until_true() {
  local end=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    [ "$SECONDS" -lt "$end" ] || return 1
    read -r -t 0.1 <> <(:) || true
  done
}

# ---- inside: process 1 of a fresh Debian, which is in /root/packages: a.deb, b.deb, and cgroup, which names the pods' cgroup; it is
# empty where the daemon is played ----

# Every file there is, but what keeps account of packages, and what comes and goes by itself.
state() {
  local pruned=(-false) each
  for each in /proc /sys /dev /run /tmp /root /var/lib/dpkg /var/cache/apt /var/lib/apt /var/log/apt /var/log/dpkg.log /var/cache/debconf \
    /etc/ld.so.cache /var/cache/ldconfig; do pruned+=(-o -path "$each"); done
  { find / -xdev \( "${pruned[@]}" \) -prune -o -printf '%p %M %u:%g %l\n'
    find / -xdev \( "${pruned[@]}" \) -prune -o -type f -print0 | xargs -0 sha256sum; } | sort
}

play_systemd() {
  mkdir -p /run/systemd/system  # apt runs dpkg with a PATH without /usr/local
  cat >/usr/bin/systemctl <<'PLAYED'
#!/bin/bash
# What the package's scripts ask of systemd.
words=()
for word in "$@"; do case $word in -*) ;; *) words+=("$word") ;; esac; done
verb=${words[0]} units=("${words[@]:1}")
played() { [ ! -s /root/packages/cgroup ]; }
daemon() { [ -s /run/coracled.pid ] && { played || [ -d "/proc/$(cat /run/coracled.pid)" ]; }; }
stop() {
  daemon || return 0
  if played; then rm /run/coracled.pid; return 0; fi
  kill -TERM "$(cat /run/coracled.pid)"
  for ((i = 0; i < 300; i++)); do daemon || break; sleep 0.1; done
  ! daemon
}
start() {
  if played; then echo played >/run/coracled.pid; return; fi
  GLIBC_TUNABLES=glibc.malloc.tcache_count=0 setsid /usr/bin/coracled --config /root/packages/config.yaml >>/root/packages/log 2>&1 </dev/null &
  echo $! >/run/coracled.pid
}
case $verb in
  daemon-reload|preset|is-enabled|is-active) ;;
  *) echo "$verb ${units[*]}" >>/root/packages/calls ;;
esac
for unit in "${units[@]}"; do
  case $verb:$unit in
    is-enabled:coracled.service) [ -e /etc/systemd/system/multi-user.target.wants/coracled.service ] && echo enabled || { echo disabled; exit 1; } ;;
    preset:coracled.service)  # which says nothing else of it: enabled
      mkdir -p /etc/systemd/system/multi-user.target.wants
      ln -sf /lib/systemd/system/coracled.service /etc/systemd/system/multi-user.target.wants/ ;;
    is-active:coracled.service) daemon || exit 3 ;;
    start:coracled.service) daemon || start ;;
    restart:coracled.service) stop; start ;;
    stop:coracled.service) stop ;;
    stop:coracle-pods.service) stop; played || /usr/bin/coracled --config /root/packages/config.yaml --end-pods ;;
  esac || exit 1
done
PLAYED
  chmod +x /usr/bin/systemctl
}

ctl() { coraclectl --kubeconfig /etc/coracle/admin.kubeconfig "$@"; }
ready() { ctl get --raw /readyz; }
apt_here() { DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends "$@"; }
calls() { local all; all=$(tr '\n' ';' </root/packages/calls); : >/root/packages/calls; echo "$all"; }
# The containers' processes, since when they run, and what they are; but for sleep, which comes and goes.
processes() {
  local uid file pid
  for uid in $(ctl get pods -o 'jsonpath={.items[*].metadata.uid}'); do
    for file in $(grep -l "$uid" /proc/[0-9]*/cgroup 2>/dev/null); do
      pid=${file#/proc/} pid=${pid%/cgroup}
      echo "$pid $(cut -d ' ' -f 22 "/proc/$pid/stat" 2>/dev/null) $({ tr '\0' ' ' <"/proc/$pid/cmdline"; } 2>/dev/null)"
    done
  done | grep -vE '^[0-9]+ [0-9]* (sleep .*)?$' | sort
}
counted() {  # the counter's log has every number, from 1 on
  ctl logs counter >/root/packages/numbers && [ "$(wc -l </root/packages/numbers)" -gt 3 ] && seq "$(wc -l </root/packages/numbers)" | cmp - /root/packages/numbers
}
moved() {  # moved NAME FILE WORDS: to another version
  local before since
  before=$(processes)
  check "$1" apt_here install --allow-downgrades "/root/packages/$2"
  is "… restarts the daemon once, and asks systemd for nothing else" "restart coracled.service;" "$(calls)"
  check "… it is ready" until_true 30 ready
  is "… the pods' processes are those of before" "$before" "$(processes)"
  is "… none was started again" "0 0 0" "$(ctl get pods -l 'app in (hello,counter)' -o 'jsonpath={.items[*].status.containerStatuses[*].restartCount}')"
  check "… no line of a log is lost" counted
}

as_packed() {
  is "the settings are conffiles" "/etc/coracle/config.yaml /etc/needrestart/conf.d/coracle.conf" \
    "$(dpkg-query -W -f '${Conffiles}' coracle | awk 'NF {print $1}' | sort | tr '\n' ' ' | sed 's/ $//')"
  is "all files are as they were packed" "" "$(dpkg --verify coracle 2>&1)"
  check "the settings as packed are accepted" coracled --check-config
}

# By qemu's user emulation: the package and its scripts, and programs that start.
inside_foreign() {
  local before=$1 each
  is "… and starts the daemon" "start coracled.service;" "$(calls)"
  as_packed
  for each in "coracled --version" "coraclectl version --client" "coracle-oci --version"; do
    # shellcheck disable=SC2086  # a program and its words
    check "$each" $each
  done
  coraclectl --kubeconfig /tmp/k config set-cluster far --server=https://192.0.2.1:6443 >/tmp/said 2>&1
  check "the client writes YAML, reads it, and writes JSON" sh -c 'coraclectl --kubeconfig /tmp/k config view -o json | grep -qF https://192.0.2.1:6443 || { cat /tmp/said /tmp/k; false; }'
  echo "logLevel: notice" >>/etc/coracle/config.yaml
  for each in b.deb a.deb; do
    check "apt goes to the other version" apt_here install --allow-downgrades "/root/packages/$each"
    is "… restarts the daemon once, and asks systemd for nothing else" "restart coracled.service;" "$(calls)"
    check "… a changed setting stays" grep -q '^logLevel: notice' /etc/coracle/config.yaml
  done
  check "apt removes it" apt_here remove coracle
  is "… the pods end before the daemon's files go" "stop coracle-pods.service coracled.service;" "$(calls)"
  check "… settings stay, and nothing of it is left to run" test -s /etc/coracle/config.yaml -a ! -e /usr/bin/coracled -a ! -e /run/coracle
  check "apt installs it again" apt_here install /root/packages/b.deb
  check "apt purges it" apt_here purge coracle
  is "purging leaves what was there before" "" "$(diff <(echo "$before") <(state))"
  exit $bad
}

inside() {
  local started before before_cut after
  mkdir -p /run/lock
  : >/root/packages/calls
  printf 'cgroupRoot: %s\n' "$(cat /root/packages/cgroup)" >/root/packages/config.yaml
  play_systemd
  before=$(state)
  started=$(date +%s%N)
  check "apt installs it" apt_here install /root/packages/a.deb
  if [ ! -s /root/packages/cgroup ]; then inside_foreign "$before"; fi
  is "… and starts the daemon" "start coracled.service;" "$(calls)"
  check "… which comes up" until_true 30 ready
  if [ $bad != 0 ]; then echo "Bail out! without it the rest says nothing"; cat /root/packages/log; exit 1; fi
  check "the first application runs" /usr/libexec/coracle/hello
  echo "# from apt install to the first application: $((($(date +%s%N) - started) / 1000000)) ms"
  as_packed
  cat >/root/packages/pods.yaml <<'Y'
apiVersion: v1
kind: Pod
metadata: {name: counter, labels: {app: counter}}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: localhost/busybox:latest, command: [sh, -c, "i=0; while :; do i=$((i + 1)); echo $i; sleep 0.1; done"]}]
---
apiVersion: v1
kind: Pod
metadata: {name: ender}
spec:
  restartPolicy: Never
  containers: [{name: main, image: localhost/busybox:latest, command: [sh, -c, "until [ -e /tmp/end ]; do sleep 0.1; done; exit 7"]}]
Y
  check "two more pods" ctl apply -f /root/packages/pods.yaml
  check "… run" ctl wait --for=condition=Ready pod/counter pod/ender --timeout=60s
  check "… in processes that are found" test "$(processes | grep -c httpd)" = 2 -a "$(processes | grep -c 'i=')" = 1
  echo "logLevel: notice" >>/etc/coracle/config.yaml
  moved "apt upgrades it" b.deb
  check "… a changed setting stays" grep -q '^logLevel: notice' /etc/coracle/config.yaml
  moved "apt downgrades it" a.deb
  before_cut=$(processes)
  check "an upgrade that is cut off between its files and its configuration" dpkg --unpack /root/packages/b.deb
  is "… asks systemd for nothing yet" "" "$(calls)"
  check "… dpkg goes on where it stopped" dpkg --configure -a
  is "… and the daemon restarts once" "restart coracled.service;" "$(calls)"
  check "… it is ready" until_true 30 ready
  is "… the pods' processes are those of before" "$before_cut" "$(processes)"
  check "a pod that ends" ctl exec ender -- touch /tmp/end
  check "… ends" until_true 20 sh -c '[ "$(coraclectl --kubeconfig /etc/coracle/admin.kubeconfig get pod ender -o "jsonpath={.status.phase}")" = Failed ]'
  is "… and its exit code is known" 7 "$(ctl get pod ender -o 'jsonpath={.status.containerStatuses[0].state.terminated.exitCode}')"

  check "apt removes it" apt_here remove coracle
  is "… the pods end before the daemon's files go" "stop coracle-pods.service coracled.service;" "$(calls)"
  is "… no process of a pod is left" "" "$(grep -lxE 'busybox|coracle-pause|httpd|sleep|coracled' /proc/[0-9]*/comm 2>/dev/null)"
  check "… data and settings stay" test -s /var/lib/coracle/state.db -a -s /etc/coracle/config.yaml -a -s /etc/coracle/admin.kubeconfig
  check "… nothing of it is left to run" test ! -e /usr/bin/coracled -a ! -e /run/coracle -a ! -e /usr/lib/systemd/system/coracled.service
  check "apt installs it again" apt_here install /root/packages/b.deb
  check "… the daemon comes up" until_true 30 ready
  check "… with what it had: the application runs again" ctl rollout status deployment/hello --timeout=60s
  check "apt purges it" apt_here purge coracle
  after=$(state)
  is "purging leaves what was there before" "" "$(diff <(echo "$before") <(echo "$after"))"
  [ $bad = 0 ] || { echo "# the daemon's log:"; tail -n 30 /root/packages/log | sed 's/^/# /'; }
  exit $bad
}
if [ "${1:-}" = inside ]; then inside; fi

# ---- outside ----

source=${CORACLE_SOURCE:-$(cd "$(dirname "$0")/../.." && pwd)}
own_arch=$(dpkg --print-architecture)
suite=${1:-bookworm} arch=${2:-$own_arch}
skip() { echo "ok 1 - package # SKIP $*"; exit 77; }
[ "$(id -u)" = 0 ] || skip "needs root"
command -v mmdebstrap >/dev/null || skip "mmdebstrap is missing"
if [ "$arch" != "$own_arch" ]; then
  case $arch in amd64) emulator=x86_64 ;; arm64) emulator=aarch64 ;; armhf) emulator=arm ;; *) skip "no processor $arch" ;; esac
  # F: the emulator is opened now, not in a root that lacks it.
  grep -qs '^flags:.*F' "/proc/sys/fs/binfmt_misc/qemu-$emulator" || skip "qemu-user-static is missing"
fi
T=$(mktemp -d "${TMPDIR:-/var/tmp}/coracle-package-test.XXXXXX")
cgroup_mount=$(findmnt -n -t cgroup2 -o TARGET | head -n 1)
cgroup=$cgroup_mount/coracle-packages-$$
clean_up() {
  awk -v below="$T/" 'index($5, below) == 1 {print $5}' /proc/self/mountinfo | sort -r | xargs -r -n 1 umount -l
  [ ! -d "$cgroup" ] || find "$cgroup" -depth -type d -exec rmdir {} + 2>/dev/null
  rm -rf --one-file-system "$T"
}
trap clean_up EXIT
trap 'exit 143' TERM
trap 'exit 130' INT

deb=${CORACLE_PACKAGE:-}
if [ -z "$deb" ]; then
  started=$SECONDS
  check "systemd/package.sh builds it for $suite on $arch, lintian finds nothing" "$source/systemd/package.sh" --arch "$arch" --suite "$suite" --output "$T/out"
  deb=$(echo "$T"/out/*.deb)
  echo "# built in $((SECONDS - started)) s"
fi
[ -e "$deb" ] || { echo "Bail out! there is no package"; exit 1; }

# The same with a higher version: what an upgrade is made of need not be built twice.
dpkg-deb -R "$deb" "$T/b" && sed -i 's/^\(Version: .*\)$/\1+b/' "$T/b/DEBIAN/control" && dpkg-deb --root-owner-group -Zgzip -z1 -b "$T/b" "$T/b.deb" >/dev/null ||
  { echo "Bail out! the package cannot be made anew"; exit 1; }

# What is in it is what meson installs, and what Debian asks of a package; meson's list is install.sh's too.
if [ -d "${CORACLE_BUILD:-$source/build}/meson-info" ]; then
  packed() { dpkg-deb --fsys-tarfile "$deb" | tar -t | sed -n 's/^\.\(.*[^/]\)$/\1/p' | sed 's/\(\/man\/.*\)\.gz$/\1/' |
    grep -vE '^/usr/share/doc/coracle/(changelog.*|copyright)$|^/usr/share/lintian/|^/etc/coracle/config.yaml$' | sort; }
  installed() { meson introspect "${CORACLE_BUILD:-$source/build}" --installed | python3 -c 'import json, sys; print("\n".join(json.load(sys.stdin).values()))' |
    sed 's|^/usr/local/|/usr/|; s|^/usr/etc/|/etc/|' | sort; }
  is "it has the files that meson installs" "$(installed)" "$(packed)"
fi

# shellcheck disable=SC2046  # a list of words
depends=$(dpkg-deb -f "$deb" Depends | tr ',' '\n' | sed -E 's/\(.*\)//; s/\|.*//; s/ //g' | paste -sd,)
mmdebstrap --quiet --variant=minbase --architectures="$arch" --include="$depends,busybox-static" --aptopt='APT::Install-Recommends "false"' --dpkgopt=force-unsafe-io "$suite" "$T/root" >"$T/log" 2>&1 ||
  { echo "Bail out! no fresh $suite:"; tail -n 20 "$T/log"; exit 1; }
rm -f "$T/root/usr/sbin/policy-rc.d"
mkdir "$T/root/root/packages"
cp "$deb" "$T/root/root/packages/a.deb"
cp "$T/b.deb" "$T/root/root/packages/b.deb"
cp "$0" "$T/root/root/test.sh"
[ "$arch" != "$own_arch" ] || echo "$cgroup" >"$T/root/root/packages/cgroup"
[ -e "$T/root/root/packages/cgroup" ] || : >"$T/root/root/packages/cgroup"
for each in cpu memory pids io cpuset; do [ -z "$cgroup_mount" ] || echo "+$each" >"$cgroup_mount/cgroup.subtree_control"; done 2>/dev/null
unshare --mount --pid --net --uts --ipc --fork --kill-child bash -c '
  ip link set lo up; hostname edge
  mount --make-rprivate / && mount --bind "$1" "$1" && mount -t proc proc "$1/proc" && mount --rbind /sys "$1/sys" && mount --rbind /dev "$1/dev" &&
  mount -t tmpfs run "$1/run" && mkdir -p "$1/run/before" && cd "$1" && pivot_root . run/before && umount -l run/before && rmdir run/before &&
  exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root bash /root/test.sh inside' bash "$T/root" >"$T/inside" 2>&1 </dev/null
status=$?
awk -v n="$n" '/^(not )?ok [0-9]+ /{i = $1 == "not" ? 3 : 2; $i = ++n} {print}' "$T/inside"
[ $status = 0 ] && [ $bad = 0 ]
