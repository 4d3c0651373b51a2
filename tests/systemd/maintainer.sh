#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The package's maintainer scripts, as dpkg runs them, in a root of their own over this machine's /usr; systemd, the daemon and the
# kernel's settings are played. What a real package does in a real Debian: package.sh. TAP.
set -uo pipefail
source=${CORACLE_SOURCE:-$(cd "$(dirname "$0")/../.." && pwd)}
if [ "${1:-}" != inside ]; then
  name="maintainer scripts"
  user=(--user --map-root-user)
  [ "$(id -u)" != 0 ] || user=()
  unshare "${user[@]}" --mount true 2>/dev/null || { echo "ok 1 - $name # SKIP needs a mount namespace"; exit 77; }
  T=$(mktemp -d)
  trap 'rm -rf "$T"' EXIT
  CORACLE_SOURCE=$source unshare "${user[@]}" --mount bash "$0" inside "$T"
  status=$?
  exit $status
fi

T=$2
n=0 bad=0
ok() { n=$((n + 1)); echo "ok $n - $*"; }
not_ok() { n=$((n + 1)); bad=1; echo "not ok $n - $*"; }
is() { local name=$1 want=$2 got=$3; if [ "$got" = "$want" ]; then ok "$name"; else not_ok "$name"; printf '  | wanted: %s\n  | got:    %s\n' "$want" "$got"; fi; }
check() { local name=$1 out; shift; if out=$("$@" 2>&1); then ok "$name"; else not_ok "$name"; echo "$out" | sed 's/^/  | /'; fi; }

# ---- the root ----

R=$T/root
mkdir "$R" && mount -t tmpfs root "$R" && mkdir -p "$R"/{upper,work,usr,etc,var/lib,var/log,run,proc,dev,tmp,played} || exit 1
mount -t overlay -o "lowerdir=/usr,upperdir=$R/upper,workdir=$R/work" overlay "$R/usr" 2>/dev/null ||
  mount -t overlay -o "lowerdir=/usr,upperdir=$R/upper,workdir=$R/work,userxattr" overlay "$R/usr" 2>/dev/null ||
  { echo "ok 1 - maintainer scripts # SKIP overlayfs is not allowed here"; exit 77; }
mount --rbind /proc "$R/proc" && mount --rbind /dev "$R/dev" || exit 1
mkdir "$R/etc/alternatives" && cp -d /etc/alternatives/awk "$R/etc/alternatives/"
for each in bin sbin lib lib32 lib64 libx32; do [ ! -L "/$each" ] || cp -d "/$each" "$R/$each"; done
# shellcheck disable=SC2016  # for the players
{
  for each in deb-systemd-invoke systemctl modprobe; do printf '#!/bin/sh\necho "%s $*" >>/tmp/calls\n' "$each" >"$R/played/$each"; done
  printf '#!/bin/sh\necho "deb-systemd-helper $*" >>/tmp/calls\n[ "$2" != was-enabled ] || [ ! -e /tmp/disabled ]\n' >"$R/played/deb-systemd-helper"
  printf '#!/bin/sh\n[ -e /tmp/is-chroot ]\n' >"$R/played/ischroot"
  printf '#!/bin/sh\ncase $1 in -n) cat "/tmp/sysctl-$2" ;; -q) echo "${3#*=}" >"/tmp/sysctl-${3%%%%=*}" ;; esac\n' >"$R/played/sysctl"
}
chmod +x "$R"/played/*
scripts=$T/scripts
mkdir "$scripts" && for each in postinst prerm postrm; do
  sed 's/^#DEBHELPER#$/:/' "$source/systemd/debian/$each" >"$R/tmp/$each"
done
settings() { echo "$(cat "$R/tmp/sysctl-net.ipv4.ip_forward") $(cat "$R/tmp/sysctl-fs.inotify.max_user_instances")"; }
script() {  # script NAME ARGUMENTS...: one of ours, with what it calls in $calls
  local status
  : >"$R/tmp/calls"
  chroot "$R" env -i PATH=/played:/usr/sbin:/usr/bin:/sbin:/bin sh "/tmp/$@" >"$T/out" 2>&1
  status=$?
  calls=$(grep -vE '^modprobe|daemon-reload' "$R/tmp/calls" | tr '\n' ';')
  [ $status = 0 ] && [ ! -s "$T/out" ] || { not_ok "$* ends without a word"; sed 's/^/  | /' "$T/out"; }
}
unpack() {  # what dpkg does before postinst
  mkdir -p "$R"/usr/{bin,libexec/coracle,lib/modules-load.d,lib/sysctl.d} "$R/etc/coracle"
  cp "$source/systemd/sysctls" "$R/usr/libexec/coracle/"
  cp "$source/systemd/coracle.modules" "$R/usr/lib/modules-load.d/coracle.conf"
  cp "$source/systemd/coracle.sysctl" "$R/usr/lib/sysctl.d/50-coracle.conf"
  printf '#!/bin/sh\necho "coracled $*" >>/tmp/calls\n' >"$R/usr/bin/coracled"
  chmod +x "$R/usr/bin/coracled"
  cp "$source/systemd/config.example.yaml" "$R/etc/coracle/config.yaml"
}
pack_off() {  # what dpkg does behind prerm
  rm -rf "$R/usr/libexec/coracle" "$R/usr/lib/modules-load.d/coracle.conf" "$R/usr/lib/sysctl.d/50-coracle.conf" "$R/usr/bin/coracled"
}
all_files() { (cd "$R" && find etc var run -mindepth 1 -not -path 'run/mount*' | sort); }  # umount's own

mkdir -p "$R/run/systemd/system" "$R/var/log/containers"
ln -s /var/log/elsewhere/x.log "$R/var/log/containers/others.log"
echo 0 >"$R/tmp/sysctl-net.ipv4.ip_forward"
echo 128 >"$R/tmp/sysctl-fs.inotify.max_user_instances"
before=$(all_files)

# ---- its life ----

unpack
touch "$R/tmp/is-chroot"
script postinst configure ""
is "in a chroot the kernel, which is another system's, stays as it is" " 0 128" "$(grep ^modprobe "$R/tmp/calls") $(settings)"
check "… and nothing is remembered of it" test ! -e "$R/var/lib/coracle/sysctl-before"
rm "$R/tmp/is-chroot"
script postinst configure ""
is "installing enables and starts the daemon" \
  "deb-systemd-helper unmask coracled.service;deb-systemd-helper --quiet was-enabled coracled.service;deb-systemd-helper enable coracled.service;deb-systemd-invoke start coracled.service;" "$calls"
is "… loads the kernel's modules" "overlay bridge veth nf_tables" "$(sed -n 's/^modprobe //p' "$R/tmp/calls" | tr '\n' ' ' | sed 's/ $//')"
is "… and sets the kernel's settings" "1 8192" "$(settings)"
mkdir -p "$R"/var/lib/coracle/volumes/claim "$R"/run/coracle/volumes "$R"/var/log/pods/a "$R"/var/log/coracle "$R"/etc/coracle/manifests
touch "$R/var/lib/coracle/state.db" "$R/run/coracle/api.sock" "$R/etc/coracle/admin.kubeconfig"
ln -s /var/log/pods/a/0.log "$R/var/log/containers/a.log"
mkdir "$R/etc/issue.d" && ln -s /run/coracle/start.issue "$R/etc/issue.d/coracle.issue"  # as systemd-tmpfiles does
mount -t tmpfs volume "$R/run/coracle/volumes" && mount -t tmpfs volume "$R/var/lib/coracle/volumes/claim"

script prerm upgrade 2.0
is "before an upgrade everything goes on" "" "$calls"
unpack
script postrm upgrade 2.0
is "… and behind the old package" "" "$calls"
touch "$R/tmp/disabled"
script postinst configure 1.0
is "the new package restarts the daemon once and nothing else, and leaves it disabled where it was" \
  "deb-systemd-helper unmask coracled.service;deb-systemd-helper --quiet was-enabled coracled.service;deb-systemd-helper update-state coracled.service;deb-systemd-invoke restart coracled.service;" "$calls"
rm "$R/tmp/disabled"

script prerm remove
is "removing stops the pods' service, and the daemon with it" "deb-systemd-invoke stop coracle-pods.service coracled.service;" "$calls"
is "… and sets the kernel's settings back" "0 128" "$(settings)"
pack_off
script postrm remove
check "what was there while it ran is gone" test ! -e "$R/run/coracle" -a ! -L "$R/etc/issue.d/coracle.issue"
check "data and settings stay" test -e "$R/var/lib/coracle/state.db" -a -e "$R/etc/coracle/config.yaml" -a -e "$R/etc/coracle/admin.kubeconfig"
rm "$R/etc/coracle/config.yaml"  # dpkg, of conffiles
mkdir -p "$R/etc/systemd/system.control/coracle-pods.service.d"
script postrm purge
rmdir "$R/etc/systemd/system.control" "$R/etc/systemd" 2>/dev/null
is "purging leaves nothing" "$before" "$(all_files)"

# The state on a disk of its own.
disk=$R/var/lib/coracle
mkdir "$disk" && mount -t tmpfs disk "$disk" && mkdir -p "$disk/runtime/images" "$disk/lost+found" "$disk/volumes" && touch "$disk/state.db" "$disk/runtime/images/x"
script postrm purge
is "purging empties a state directory that is a disk of its own" "lost+found" "$(ls "$disk")"
check "… which stays where it is" mountpoint -q "$disk"
umount "$disk" && rmdir "$disk"
is "… and nothing else is left" "$before" "$(all_files)"

unpack
mkdir -p "$R/usr/share/coracle"
touch "$R/usr/share/coracle/installed-files"
script postinst configure ""
is "over what install.sh has installed, the daemon that runs is restarted" "deb-systemd-invoke restart coracled.service" "$(tr ';' '\n' <<<"$calls" | grep invoke)"
check "… whose files are the package's now" test ! -e "$R/usr/share/coracle/installed-files"
rm -rf "$R/run/systemd"
script postinst configure ""
is "without systemd nothing is started" "" "$(tr ';' '\n' <<<"$calls" | grep -v helper)"
script prerm remove
is "… and where it never ran, nothing is ended" "" "$calls"
mkdir "$R/run/coracle"
script prerm remove
is "… where it did, the pods are" "coracled --end-pods;" "$calls"
exit $bad
