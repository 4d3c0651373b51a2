#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs Coracle on a Debian 12 or 13 machine: packages, build, binaries, unit, configuration; starts coracled and waits
# until it is ready. Running it again upgrades in place: the daemon is restarted, the pods keep running.
#
#   sudo systemd/install.sh              install or upgrade
#   sudo systemd/install.sh --hello      … and run a first application
#   sudo systemd/install.sh --uninstall  remove everything except the data
#   sudo systemd/install.sh --purge      … and the data too
set -euo pipefail
umask 022  # installed files are readable for everyone, whatever root's umask is
cd "$(dirname "$0")/.."
root=$PWD
build=${CORACLE_BUILD:-$root/build}
kubeconfig=/etc/coracle/admin.kubeconfig
pid_file=/run/coracle/coracled.pid
daemon_log=/var/log/coracled.log
sysctl_file=/usr/lib/sysctl.d/50-coracle.conf
sysctl_record=/var/lib/coracle/sysctl-before  # the machine's previous settings
ready_seconds=120

usage() { sed -n '6,9s/^# \{0,3\}//p' "$0"; }
say() { printf '\n%s\n' "$*"; }
die() { echo "install.sh: $*" >&2; exit 1; }

action=install hello=0
while [ $# -gt 0 ]; do
  case $1 in
    --hello) hello=1 ;;
    --uninstall) action=uninstall ;;
    --purge) action=purge ;;
    -h|--help) usage; exit 0 ;;
    *) echo "install.sh: unknown option $1" >&2; usage >&2; exit 2 ;;
  esac
  shift
done

with_systemd() { [ -d /run/systemd/system ]; }
ctl() { coraclectl --kubeconfig "$kubeconfig" "$@"; }

# Two owners of the same files would take them from each other.
not_a_package() {
  case $(dpkg-query -W -f '${db:Status-Status}' coracle 2>/dev/null || true) in
    ''|not-installed|config-files) ;;
    *) die "Coracle is installed here as a package: apt install ./coracle_*.deb upgrades it, apt remove coracle removes it" ;;
  esac
}

check_machine() {
  [ "$(id -u)" -eq 0 ] || die "needs root: sudo systemd/install.sh"
  [ -r /etc/os-release ] || die "this is no Debian: there is no /etc/os-release"
  local id id_like version
  id=$(. /etc/os-release; echo "${ID:-}")
  id_like=$(. /etc/os-release; echo "${ID_LIKE:-}")
  version=$(. /etc/os-release; echo "${VERSION_ID:-}")
  case " $id $id_like " in *" debian "*) ;; *) die "this is $id, not Debian: the packages it needs are known by Debian's names only" ;; esac
  if [ "$id" = debian ] && [ -n "$version" ] && [ "${version%%.*}" -lt 12 ]; then die "Debian $version is too old: it takes 12 or 13"; fi
  command -v apt-get >/dev/null || die "apt-get is missing"
  not_a_package
}

# ---- build ----

# The programs that are installed, without those of the tests.
targets() {
  meson introspect "$build" --targets | python3 -c '
import json, os, sys
for target in json.load(sys.stdin):
    if target["installed"]:
        for name in target["filename"]: print(os.path.relpath(name, sys.argv[1]))' "$build"
}

compile() {
  local log jobs failed=0 started=$SECONDS
  log=$(mktemp)
  jobs=$(systemd/compilers)
  if [ ! -f "$build/build.ninja" ]; then
    echo "compiling with $jobs of $(nproc) cores; the first time this takes a PC 3 to 5 minutes, a small board many times that"
    meson setup "$build" --prefix=/usr >"$log" 2>&1
  else  # meson must see changed sources before targets() queries it; a directory of another meson version is set up anew
    meson setup --reconfigure "$build" --prefix=/usr >"$log" 2>&1 || meson setup --wipe "$build" --prefix=/usr >"$log" 2>&1
  fi || { tail -n 40 "$log" >&2; rm -f "$log"; die "meson could not set up $build (above)"; }
  # shellcheck disable=SC2046  # a list of targets
  set -- $(targets)
  ninja -C "$build" -j "$jobs" "$@" 2>&1 | tee "$log" | systemd/time_left.py "$build" "$@" || failed=1
  [ -z "${SUDO_UID:-}" ] || chown -R "$SUDO_UID:${SUDO_GID:-$SUDO_UID}" "$build"
  [ "$failed" = 0 ] || { grep -v '^\[' "$log" | tail -n 60 >&2; rm -f "$log"; die "the build failed (above)"; }
  rm -f "$log"
  echo "built in $((SECONDS - started)) s"
}

# ---- files ----

# What was installed: a line for each file. By this list --uninstall works, and an upgrade takes away what has become needless.
file_list=/usr/share/coracle/installed-files

installed_now() {
  meson introspect "$build" --installed | python3 -c 'import json, sys; print("\n".join(sorted(json.load(sys.stdin).values())))'
  echo "$file_list"
}

remove_files() {  # remove_files: of a list on standard input; directories that are empty then go too
  local file
  while read -r file; do
    case $file in /usr/*|/etc/*) ;; *) continue ;; esac
    rm -f "$file"
    rmdir --parents --ignore-fail-on-non-empty "${file%/*}" 2>/dev/null || true
  done
}

check_config() {  # check_config PROGRAM
  [ ! -e /etc/coracle/config.yaml ] || "$1" --config /etc/coracle/config.yaml --check-config ||
    die "/etc/coracle/config.yaml is not accepted (above); nothing was changed: correct it and run this again"
}

install_files() {
  check_config "$build/daemon/coracled"  # before what runs is replaced by what would not start
  local list
  list=$(installed_now)
  meson install -C "$build" --no-rebuild --quiet
  sync -f /usr/bin  # what runs next is on the disk: the power may go at any time, and what was there before is gone
  [ ! -e "$file_list" ] || grep -vxFf <(echo "$list") "$file_list" | remove_files || true
  echo "$list" >"$file_list"
  mkdir -p /etc/coracle/manifests /var/log/pods
  local module
  while read -r module; do
    case $module in ''|'#'*) continue ;; esac
    modprobe "$module" 2>/dev/null || true  # it may be built in, or loaded on first use; the daemon reports missing ones
  done </usr/lib/modules-load.d/coracle.conf
  mkdir -p -m 0700 /var/lib/coracle
  systemd/sysctls set "$sysctl_file" "$sysctl_record"
}

# ---- the daemon, with and without systemd ----

# Prints the pid of our running coracled if systemd does not manage it.
direct_pid() {
  local pid
  pid=$(cat "$pid_file" 2>/dev/null) && [ -n "$pid" ] || return 1
  case $(readlink "/proc/$pid/exe" 2>/dev/null) in /usr/bin/coracled*) echo "$pid" ;; *) return 1 ;; esac
}

stop_direct() {
  local pid waited
  pid=$(direct_pid) || return 0
  kill -TERM "$pid"
  for ((waited = 0; waited < 150; waited++)); do
    [ -d "/proc/$pid" ] || break
    sleep 0.2
  done
  [ ! -d "/proc/$pid" ] || die "coracled ($pid) does not end"
  rm -f "$pid_file"
}

start_daemon() {
  if with_systemd; then
    systemctl daemon-reload
    systemd-tmpfiles --create /usr/lib/tmpfiles.d/coracle.conf
    systemctl enable --quiet coracled.service
    systemctl restart coracled.service || { journalctl -u coracled -n 30 --no-pager >&2; die "coracled does not start (above)"; }
    return
  fi
  echo "systemd is not PID 1 here: starting coracled directly. It ends with this machine and is not restarted by itself;"
  echo "its log is $daemon_log, its pid in $pid_file."
  stop_direct
  mkdir -p /run/coracle
  chmod 0700 /run/coracle
  setsid /usr/bin/coracled --config /etc/coracle/config.yaml >>"$daemon_log" 2>&1 </dev/null &
  echo $! >"$pid_file"
  disown
}

wait_ready() {
  local end=$((SECONDS + ready_seconds))
  until [ -s "$kubeconfig" ] && ctl get nodes 2>/dev/null | grep -qw Ready; do
    # Not direct_pid: for a moment, the process is still a shell that has not executed coracled yet.
    if ! with_systemd && [ ! -d "/proc/$(cat "$pid_file")" ]; then
      tail -n 30 "$daemon_log" >&2
      die "coracled ended (its log is above)"
    fi
    if [ "$SECONDS" -ge "$end" ]; then
      if with_systemd; then journalctl -u coracled -n 30 --no-pager >&2; else tail -n 30 "$daemon_log" >&2; fi
      die "coracled is not ready after $ready_seconds s (its log is above)"
    fi
    sleep 0.2
  done
}

install_all() {
  check_machine
  say "packages"
  if [ "$hello" = 1 ]; then systemd/packages.sh build hello; else systemd/packages.sh build; fi
  say "build"
  compile
  say "install"
  install_files
  start_daemon
  wait_ready
  coracled --version
  ctl get nodes -o wide
}

# ---- uninstall ----

# Removes a directory, without what is mounted below it. One that is a mount point itself, a disk of its own, stays and becomes empty.
remove_tree() {
  local dir=$1 target
  awk -v dir="$dir/" 'index($5, dir) == 1 {print $5}' /proc/self/mountinfo | sort -r | while read -r target; do
    umount -l "$(printf '%b' "$target")" || true
  done
  if mountpoint -q "$dir"; then
    find "$dir" -xdev -mindepth 1 -not -path "$dir/lost+found" -delete
  else
    rm -rf --one-file-system "$dir"
  fi
}

uninstall() {
  [ "$(id -u)" -eq 0 ] || die "needs root: sudo systemd/install.sh --$action"
  not_a_package
  say "stopping the pods and the daemon"
  if with_systemd && [ -e /usr/lib/systemd/system/coracled.service ]; then
    systemctl disable --quiet coracled.service || true
    systemctl stop coracled.service coracle-pods.service || true
  fi
  stop_direct
  if [ -x /usr/bin/coracled ]; then
    /usr/bin/coracled --end-pods || /usr/bin/coracled --remove-pods || echo "install.sh: some pods could not be removed (above)" >&2
  fi
  local hierarchy
  for hierarchy in /sys/fs/cgroup /sys/fs/cgroup/unified; do
    [ ! -d "$hierarchy/coracle" ] || find "$hierarchy/coracle" -depth -type d -exec rmdir {} + 2>/dev/null || true
  done
  [ ! -e "$sysctl_file" ] || systemd/sysctls restore "$sysctl_file" "$sysctl_record"
  say "removing files"
  local list dir
  if [ -e "$file_list" ]; then
    list=$(cat "$file_list")
    remove_files <<<"$list"
  elif [ -e /usr/bin/coracled ]; then
    die "there is no $file_list: an older install.sh was here; install once more, then uninstall"
  fi
  remove_tree /run/coracle
  rm -f "$daemon_log" /etc/issue.d/coracle.issue
  rmdir /etc/issue.d 2>/dev/null || true
  if with_systemd; then systemctl daemon-reload; systemctl reset-failed coracled.service coracle-pods.service 2>/dev/null || true; fi
  if [ "$action" = purge ]; then
    for dir in /var/lib/coracle /etc/coracle /var/log/pods /var/log/coracle; do remove_tree "$dir"; done
    find /var/log/containers -maxdepth 1 -lname '/var/log/pods/*' -delete 2>/dev/null || true
    rmdir /var/log/containers 2>/dev/null || true
    echo "Coracle and its data are gone. The Debian packages that were installed for it stay."
  else
    echo "Coracle is gone. Its data stays in /var/lib/coracle and /etc/coracle; --purge takes it away."
  fi
}

case $action in
  install) install_all; if [ "$hello" = 1 ]; then /usr/libexec/coracle/hello; fi ;;
  *) uninstall ;;
esac
