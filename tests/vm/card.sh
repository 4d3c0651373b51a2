#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A card of systemd/image.sh, in a virtual machine without a network: what is put on its first partition is taken in, pods run, and
# run again after a power cut; a mistake has its reason beside it. Then the package goes to another version, back, away and for good.
# TAP; skipped as a whole, or a part, with the reason.
#   card.sh [PART…]   amd64, read-only (amd64 too), arm64, armhf
# CORACLE_PACKAGE names the package of one part. Otherwise that of this commit in build/packages is taken, or made there.
set -uo pipefail
title="a card's image" all_parts="amd64 read-only arm64 armhf"
. "$(dirname "$0")/machine.sh"
for program in mkfs.vfat mcopy sfdisk debugfs; do command -v "$program" >/dev/null || skip_all "$program is missing"; done
image_bytes_most=$((300 << 20)) disk_bytes=$((8 << 30)) offset=$((4 << 20))

diagnose() { on 60 'systemctl --failed --no-pager; journalctl -b -u "coracle*" --no-pager -n 60; coraclectl get pods -A -o wide; ls -R /boot/firmware/coracle; lsblk' | sed 's/^/  | /'; tail -n 20 "$T/console.log" | sed 's/^/  | /'; }
fat() { MTOOLS_SKIP_CHECK=1 "$1" -i "$T/card.img@@$offset" "${@:2}"; }  # fat COMMAND ARGUMENTS: of mtools, on the first partition

# The tests' agent, on a port of virtio, and what its commands use.
files_for_tests() {
  mkdir -p "$T/files/usr/local/sbin" "$T/files/etc/systemd/system/multi-user.target.wants" "$T/files/root"
  sed 's|/dev/ttyS1|/dev/virtio-ports/agent|; /^stty/d' "$vm/guest/agent.sh" >"$T/files/usr/local/sbin/test-agent"
  chmod 755 "$T/files/usr/local/sbin/test-agent"
  printf '[Unit]\nStartLimitIntervalSec=0\n\n[Service]\nExecStart=/usr/local/sbin/test-agent\nRestart=always\nRestartSec=1\nKillMode=process\n' \
    >"$T/files/etc/systemd/system/test-agent.service"
  ln -s /etc/systemd/system/test-agent.service "$T/files/etc/systemd/system/multi-user.target.wants/test-agent.service"
  cp "$vm/guest/lib.sh" "$T/files/root/"
  chmod 700 "$T/files"  # which is not to be the mode of /
}

# An archive as "docker save" writes it, of the card's own busybox: for its processor.
archive() {  # archive ARCH
  local start sectors=512
  start=$(sfdisk --json "$T/card.img" | python3 -c 'import json, sys; print(json.load(sys.stdin)["partitiontable"]["partitions"][1]["start"])')
  mkdir -p "$T/layer/bin" "$T/archive"
  debugfs -R "dump /usr/bin/busybox $T/layer/bin/busybox" "$T/card.img?offset=$((start * sectors))" 2>/dev/null
  [ -s "$T/layer/bin/busybox" ] || return 1
  chmod 755 "$T/layer/bin/busybox"
  ln -s busybox "$T/layer/bin/sh"
  tar -C "$T/layer" --owner=0 --group=0 --sort=name --mtime=@0 -cf "$T/archive/layer.tar" .
  printf '{"architecture":"%s","os":"linux","config":{"Cmd":["/bin/sh"]},"rootfs":{"type":"layers","diff_ids":["sha256:%s"]}}' \
    "$1" "$(sha256sum <"$T/archive/layer.tar" | cut -d ' ' -f 1)" >"$T/archive/config.json"
  echo '[{"Config":"config.json","RepoTags":["localhost/card:1"],"Layers":["layer.tar"]}]' >"$T/archive/manifest.json"
  tar -C "$T/archive" -cf "$T/card-app.tar" manifest.json config.json layer.tar
  rm -rf "$T/layer" "$T/archive"
}

# $deb: the package of the source as it stands here.
find_package() {  # find_package ARCH
  local commit release
  release=$(. /etc/os-release && echo "$VERSION_ID")
  here() { git -C "$root" -c safe.directory="$root" "$@" 2>/dev/null; }
  commit=$(here log -1 --format=%h --abbrev=8)
  deb=${CORACLE_PACKAGE:-}
  [ -n "$deb" ] || [ -n "$(here status --porcelain)" ] || deb=$(ls "$root"/build/packages/coracle_*."$commit~deb${release}_$1".deb 2>/dev/null | tail -n 1)
  [ -n "$deb" ] || deb=$("$root/systemd/package.sh" --arch "$1" 2>&1 | tee "$T/package.log" | grep '^/.*\.deb$') ||
    { tail -n 30 "$T/package.log" | sed 's/^/  | /'; return 1; }
}

# That package, and one that has a higher version, on the first partition.
put_packages() {
  rm -rf "$T/b"
  dpkg-deb -R "$deb" "$T/b" && sed -i 's/^\(Version: .*\)$/\1+b/' "$T/b/DEBIAN/control" &&
    dpkg-deb --root-owner-group -Zgzip -z1 -b "$T/b" "$T/b.deb" >/dev/null && cp "$deb" "$T/a.deb" && fat mcopy "$T/a.deb" "$T/b.deb" ::
}

# By the real systemd and without a network. A read-only card keeps its package.
package_goes() {  # package_goes NAME
  local name=$1 before file apt
  apt='apt_here() { DEBIAN_FRONTEND=noninteractive apt-get -q -y "$@" >/tmp/apt 2>&1 || { tail -n 30 /tmp/apt; return 1; }; }; '
  before=$(on 30 container_pids)
  [ "$(wc -w <<<"$before")" = 2 ] || not_ok "$name: there are two containers, not: $before"
  for file in b a; do
    check "$name: apt goes to $file.deb: the daemon restarts, no container is disturbed" 300 "$apt"'pid=$(systemctl show -p MainPID --value coracled); apt_here install --allow-downgrades /boot/firmware/'$file'.deb &&
until_true 60 ready && [ "$(systemctl show -p MainPID --value coracled)" != "$pid" ] && is "$(container_pids)" "'"$before"'"' || diagnose
  done
  [ "$name" != read-only ] || return 0
  check "$name: apt removes it: pods and daemon are gone, data stays" 300 "$apt"'apt_here remove coracle && ! pgrep -x "coracle-pause|coracled" && ! [ -e /usr/bin/coracled ] && ! [ -e $pods_cgroup ] && test -s /var/lib/coracle/state.db' || diagnose
  check "$name: apt installs it again: the pods run again" 400 "$apt"'apt_here install /boot/firmware/b.deb && until_true 100 ready && until_true 100 eval "is \"\$(coraclectl get deployment app -o jsonpath={.status.readyReplicas})\" 2"' || diagnose
  check "$name: apt purges it: nothing is left" 300 "$apt"'apt_here purge coracle && is "$(find /var/lib /etc /usr /var/log /sys/fs/cgroup/system.slice -maxdepth 3 -name "*coracle*" -not -name "*coracle-card*" 2>/dev/null)" "" && ! [ -e /var/log/pods ] && ! [ -e /run/coracle ] && is "$(systemctl --failed --no-legend --no-pager | grep -v coracle-card)" ""' || diagnose
}

# What the first entry of the boot loader names: $T/vmlinuz, $T/initrd, $T/entry.
take_kernel() {
  rm -f "$T/vmlinuz" "$T/initrd" "$T/entry"
  fat mcopy ::loader/entries/coracle.conf "$T/entry" && fat mcopy "::$(sed -n 's/^linux //p' "$T/entry")" "$T/vmlinuz" &&
    fat mcopy "::$(sed -n 's/^initrd //p' "$T/entry")" "$T/initrd"
}

card_part() {  # card_part NAME BOARD ARCH MACHINE [OPTION…]
  local name=$1 board=$2 arch=$3 machine=$4 packed more=()
  shift 4
  command -v "qemu-system-$machine" >/dev/null || { ok "$name # SKIP qemu-system-$machine is missing"; return; }
  case $machine in
    x86_64)  [ -e /usr/share/ovmf/OVMF.fd ] || { ok "$name # SKIP ovmf is missing"; return; } ;;
    aarch64) [ -e /usr/share/qemu-efi-aarch64/QEMU_EFI.fd ] || { ok "$name # SKIP qemu-efi-aarch64 is missing"; return; }
             grep -qsx enabled /proc/sys/fs/binfmt_misc/qemu-aarch64 || { ok "$name # SKIP qemu-user-static is missing"; return; } ;;
    arm)     grep -qsx enabled /proc/sys/fs/binfmt_misc/qemu-arm || { ok "$name # SKIP qemu-user-static is missing"; return; } ;;
  esac
  rm -rf "$T/card.img" "$T/console.log" "$T/files"
  files_for_tests
  local started=$SECONDS
  find_package "$arch" || { not_ok "$name: the package is made"; return 1; }
  if "$root/systemd/image.sh" --board "$board" --package "$deb" --output "$T/card.img" --with busybox-static --files "$T/files" "$@" >"$T/image.log" 2>&1; then
    ok "$name: the image is made"
  else
    not_ok "$name: the image is made"; tail -n 40 "$T/image.log" | sed 's/^/  | /'; return 1
  fi
  echo "# made in $((SECONDS - started)) s"
  packed=$(xz -T0 -6 -c "$T/card.img" | wc -c)
  if [ "$packed" -le $image_bytes_most ]; then ok "$name: packed it has $((packed >> 20)) MiB"; else not_ok "$name: packed it has $((packed >> 20)) MiB"; fi
  truncate -s $disk_bytes "$T/card.img"  # the card is larger

  archive "${arch/armhf/arm}" || { not_ok "$name: an archive of an image"; return 1; }
  cat >"$T/app.yaml" <<'Y'
apiVersion: apps/v1
kind: Deployment
metadata: {name: app}
spec:
  replicas: 2
  selector: {matchLabels: {app: app}}
  template:
    metadata: {labels: {app: app}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: c, image: localhost/card:1, command: [sh, -c, "while :; do /bin/busybox sleep 1000; done"]}]
Y
  printf 'apiVersion: v1\nkind: Pod\nmetadata: {name: wrong}\nspec: {containers: [{name: c}]}\n' >"$T/wrong.yaml"
  echo 'podPidsLimit: 77' >"$T/config.yaml"
  printf 'shop-7\r\n' >"$T/hostname"
  fat mcopy "$T/app.yaml" "$T/wrong.yaml" ::coracle/manifests/ && fat mcopy "$T/card-app.tar" ::coracle/images/ &&
    fat mcopy "$T/config.yaml" "$T/hostname" ::coracle/ || { not_ok "$name: the first partition can be written to"; return 1; }

  put_packages || { not_ok "$name: packages of two versions"; return 1; }

  if [ "$machine" = arm ]; then  # its firmware is not in every Debian: the kernel and its words are given as the boot loader would
    take_kernel || { not_ok "$name: the first partition has a kernel"; return 1; }
    more=(-kernel "$T/vmlinuz" -initrd "$T/initrd" -append "$(sed -n 's/^options //p' "$T/entry")")
  fi

  words=lib.sh
  "$vm/vm.py" boot "$T" "$T/card.img" "$machine" "${more[@]}" || { not_ok "$name: qemu starts"; return 1; }
  check "$name: it starts, and the node is ready by the name on the card" 900 'until_true 250 ready && is "$(hostname)" shop-7 && coraclectl get nodes | grep -w shop-7' || { diagnose; "$vm/vm.py" cut "$T"; return 1; }
  check "$name: the image and the manifest on it run" 400 'until_true 120 eval "is \"\$(coraclectl get deployment app -o jsonpath={.status.readyReplicas})\" 2"' || diagnose
  check "$name: what others may enter they still may" 30 'is "$(stat -c "%a %U" / /etc /usr | sort -u)" "755 root"'
  check "$name: the settings on it hold" 30 'grep -x "podPidsLimit: 77" /etc/coracle/config.yaml'
  check "$name: the wrong manifest has its reason beside it and at the console" 90 'until_true 20 grep -q image /boot/firmware/coracle/manifests/wrong.yaml.error.txt && cat /etc/issue.d/coracle-card.issue | grep coracle/manifests/wrong.yaml' || diagnose
  check "$name: memory is limited, swap is in memory, the journal too" 30 'grep -w memory /sys/fs/cgroup/cgroup.controllers && grep zram /proc/swaps && ! [ -e /var/log/journal ]' || diagnose
  check "$name: the last partition is as large as the card" 90 'until_true 20 eval "[ \$(df --output=size -m /var | tail -n 1) -gt 3500 ]"' || diagnose
  check "$name: the root was checked at the start" 20 'test -e /run/initramfs/fsck-root' || diagnose
  check "$name: the first partition can only be read" 20 'findmnt -n -o OPTIONS /boot/firmware | grep -qE "^ro(,|$)"' || diagnose
  if [ "$name" = read-only ]; then
    check "$name: the root can only be read, what changes in /etc is kept" 20 'findmnt -n -o OPTIONS / | grep -qE "^ro(,|$)" && findmnt -n -o FSTYPE /etc | grep -x overlay' || diagnose
  fi
  check "$name: nothing failed" 300 'timeout 280 systemctl is-system-running --wait; is "$(systemctl --failed --no-legend --no-pager)" ""' || diagnose
  before=$(on 30 'cat /etc/machine-id')
  "$vm/vm.py" cut "$T"
  "$vm/vm.py" boot "$T" "$T/card.img" "$machine" "${more[@]}" || { not_ok "$name: qemu starts again"; return 1; }
  check "$name: after a power cut the pods run again" 900 'until_true 250 ready && until_true 100 eval "is \"\$(coraclectl get deployment app -o jsonpath={.status.readyReplicas})\" 2"' || diagnose
  check "$name: it is the same machine, and nothing was taken in twice" 60 "is \"\$(cat /etc/machine-id)\" '$before' && is \"\$(coraclectl get deployment app -o jsonpath={.metadata.generation})\" 1 && ! journalctl -b -u coracle-card-settings --no-pager | grep -i error" || diagnose
  package_goes "$name"
  "$vm/vm.py" cut "$T"
}

for part in $parts; do
  case $part in
    amd64)     card_part amd64 generic-amd64 amd64 x86_64 ;;
    read-only) card_part read-only generic-amd64 amd64 x86_64 --read-only ;;
    arm64)     card_part arm64 generic-arm64 arm64 aarch64 ;;
    armhf)     card_part armhf generic-armhf armhf arm ;;
  esac
done
echo "1..$n"
[ "$failures" -eq 0 ]
