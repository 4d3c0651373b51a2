#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds a bootable Debian for the virtual machine, of the same release as this machine (the programs under test are built here),
# and keeps it: base.ext4, vmlinuz, initrd, and the state of the machine after its start (vm.py keep). Prints the directory. The
# directory's name depends on all its inputs, so a change creates a new one.
#   image.sh CACHE_DIRECTORY [--oci | --databases] [--name]    --name: only print where it would be
#   --oci: for tests/oci/vm.sh: podman and the other runtimes, a message bus, a user, and at /opt/systemd a Debian to be run inside
#   --databases: for databases.sh: at /opt/databases a Debian with PostgreSQL and MariaDB, to be made an image
set -euo pipefail
cache=${1:?image.sh CACHE_DIRECTORY}
kind=vm name_only=
for option in "${@:2}"; do
  case $option in
    --oci)  kind=oci ;;
    --databases) kind=databases ;;
    --name) name_only=1 ;;
    *) echo "image.sh: unknown option $option" >&2; exit 2 ;;
  esac
done
here=$(cd "$(dirname "$0")" && pwd)
payload_bytes=$("$here/vm.py" payload-bytes)
. /etc/os-release
suite=${CORACLE_VM_SUITE:-$VERSION_CODENAME}
case $suite in
  bookworm) versioned="libboost-json1.81.0 libfmt9 libssl3 libcurl4 libarchive13 libsqlite3-0 libnl-route-3-200 libyaml-0-2 libcpp-httplib0.11" ;;
  trixie)   versioned="libboost-json1.83.0 libfmt10 libssl3t64 libcurl4t64 libarchive13t64 libsqlite3-0 libnl-route-3-200 libyaml-0-2 libcpp-httplib0.18" ;;
  *) echo "image.sh: no package list for $suite" >&2; exit 1 ;;
esac
packages="systemd systemd-sysv udev kmod linux-image-amd64 busybox-static iproute2 nftables procps ca-certificates
  libseccomp2 libcap2 libzstd1 zlib1g libnftables1 libsystemd0 libldns3 $versioned"
if [ $kind = vm ]; then packages="$packages nfs-common nfs-kernel-server e2fsprogs xfsprogs btrfs-progs"; fi
if [ $kind = oci ]; then
  packages="$packages podman crun runc buildah containerd conmon netavark aardvark-dns uidmap passt catatonit dbus dbus-user-session libpam-systemd
    python3-minimal python3"
fi

name=$kind-$suite-$( (echo "$packages" "${CORACLE_VM_ACCEL:-tcg}"; qemu-system-x86_64 --version
  cat "$0" "$here"/vm.py "$here"/guest/agent.* "$here"/guest/light.sh) | sha256sum | cut -c1-12)
dir=$cache/$name
if [ -n "$name_only" ]; then echo "$dir"; exit 0; fi
if [ -e "$dir/complete" ]; then echo "$dir"; exit 0; fi
mkdir -p "$cache"
exec 9>"$cache/$kind-image.lock"
flock 9  # a second process then finds it complete
if [ -e "$dir/complete" ]; then echo "$dir"; exit 0; fi
find "$cache" -maxdepth 1 -name "$kind-$suite-*" -mtime +0 -exec rm -rf {} + 2>/dev/null || true  # another build may be using one
work=$(mktemp -d "$cache/making.XXXXXX")
trap '"$here/vm.py" cut "$work/first" 9>&- 2>/dev/null; rm -rf "$work"' EXIT
root=$work/root

# ---- the system ----
debian() {  # debian DIRECTORY PACKAGES: separated by commas
  mmdebstrap --quiet --variant=minbase --include="$2" --aptopt='Apt::Install-Recommends "false"' \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
    "$suite" "$1" >"$work/log" 2>&1 || { tail -n 20 "$work/log" >&2; exit 1; }
  rm -rf "$1"/var/lib/apt/lists/* "$1"/var/cache/apt/*
}
debian "$root" "$(echo $packages | tr ' ' ',')"
echo edge >"$root/etc/hostname"
printf '127.0.0.1 localhost\n127.0.1.1 edge\n' >"$root/etc/hosts"
echo '/dev/vda / ext4 defaults 0 1' >"$root/etc/fstab"
chroot "$root" passwd -d root >/dev/null 2>&1
mkdir -p "$root/etc/systemd/network" "$root/var/log/journal"
printf '[Match]\nType=ether\nKind=!*\n\n[Network]\nDHCP=ipv4\n' >"$root/etc/systemd/network/80-wired.network"
install -m 755 "$here/guest/agent.sh" "$root/usr/local/sbin/test-agent"
install -m 755 "$here/guest/light.sh" "$root/usr/local/sbin/test-light"
install -m 644 "$here/guest/agent.service" "$root/etc/systemd/system/test-agent.service"
chroot "$root" systemctl enable --quiet test-agent.service systemd-networkd.service >/dev/null 2>&1
# Disables services that a small device does not need: they only cost time here, where every instruction is emulated.
chroot "$root" systemctl set-default --quiet multi-user.target >/dev/null 2>&1
if [ $kind != oci ]; then
  chroot "$root" systemctl mask --quiet systemd-logind.service dbus.service dbus.socket rpcbind.service rpcbind.socket >/dev/null 2>&1
fi
if [ $kind = vm ]; then
  chroot "$root" systemctl disable --quiet nfs-server.service nfs-client.target >/dev/null 2>&1  # only started explicitly
fi
chroot "$root" systemctl mask --quiet getty@tty1.service serial-getty@ttyS0.service systemd-networkd-wait-online.service \
  systemd-resolved.service systemd-update-utmp.service systemd-pstore.service \
  modprobe@efi_pstore.service modprobe@drm.service modprobe@fuse.service modprobe@loop.service modprobe@dm_mod.service \
  sys-kernel-debug.mount sys-kernel-tracing.mount sys-fs-fuse-connections.mount dev-hugepages.mount e2scrub_reap.service \
  apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer xfs_scrub_all.timer fstrim.timer >/dev/null 2>&1
echo 'nameserver 10.0.2.3' >"$root/etc/resolv.conf"
if [ $kind = oci ]; then
  chroot "$root" useradd --create-home --shell /bin/bash --uid 1000 user  # with its id ranges in /etc/subuid and /etc/subgid
  chroot "$root" systemctl mask --quiet podman.service podman.socket podman-auto-update.timer podman-restart.service \
    podman-clean-transient.service >/dev/null 2>&1
  debian "$work/inside" systemd,systemd-sysv
  rm -rf "$work"/inside/usr/lib/udev/hwdb.*
  mv "$work/inside" "$root/opt/systemd"
fi
if [ $kind = databases ]; then
  debian "$work/inside" postgresql,mariadb-server,procps
  rm -rf "$work"/inside/var/lib/{postgresql,mysql}/* "$work"/inside/usr/lib/*/libLLVM*  # without the compilation of queries
  mv "$work/inside" "$root/opt/databases"
fi

# ---- kernel, and a minimal initrd that mounts the disk ----
kernel=$(basename "$(ls -d "$root"/lib/modules/* | tail -n 1)")
cp "$root/boot/vmlinuz-$kernel" "$work/vmlinuz"
mkdir -p "$work/initrd/bin" "$work/initrd/modules" "$work/initrd/dev" "$work/initrd/proc" "$work/initrd/new"
cp "$root/bin/busybox" "$work/initrd/bin/busybox"
ln -s busybox "$work/initrd/bin/sh"
chroot "$root" modprobe --show-depends -S "$kernel" virtio_pci >"$work/modules"
chroot "$root" modprobe --show-depends -S "$kernel" virtio_blk >>"$work/modules"
chroot "$root" modprobe --show-depends -S "$kernel" ext4 >>"$work/modules"
n=100
awk '$1 == "insmod" && !seen[$2]++ {print $2}' "$work/modules" | while read -r module; do
  n=$((n + 1))
  case $module in
    *.xz) xz -dc "$root$module" >"$work/initrd/modules/$n.ko" ;;
    *)    cp "$root$module" "$work/initrd/modules/$n.ko" ;;
  esac
done
cat >"$work/initrd/init" <<'INIT'
#!/bin/sh
/bin/busybox mount -t devtmpfs dev /dev
/bin/busybox mount -t proc proc /proc
for module in /modules/*.ko; do /bin/busybox insmod "$module"; done
n=0
until [ -b /dev/vda ] || [ $n -ge 100 ]; do n=$((n + 1)); /bin/busybox sleep 0.1; done
/bin/busybox mount -t ext4 /dev/vda /new || exec /bin/busybox sh
init=/sbin/init
if /bin/busybox grep -qw test.light /proc/cmdline; then init=/usr/local/sbin/test-light; fi
/bin/busybox umount /proc
/bin/busybox mount -o move /dev /new/dev
exec /bin/busybox switch_root /new $init
INIT
chmod +x "$work/initrd/init"
(cd "$work/initrd" && find . | cpio --quiet -o -H newc 2>/dev/null || (cd "$work/initrd" && find . | "$root/bin/busybox" cpio -o -H newc)) | gzip -1 >"$work/initrd.gz"

# ---- the disk ----
rm -rf "$root"/boot/* "$root"/lib/modules/*/kernel/{sound,drivers/{gpu,media,infiniband,net/wireless,net/ethernet,staging,scsi,iio,hwmon,usb,ata,nvme,isdn},fs/{ocfs2,gfs2,ceph,smb,cifs,f2fs,jfs,reiserfs,ubifs}}
[ $kind = vm ] || rm -rf "$root"/lib/modules/*/kernel/fs/{btrfs,xfs}
chroot "$root" depmod "$kernel"
truncate -s 3G "$work/base.ext4"
mke2fs -q -t ext4 -L root -d "$root" "$work/base.ext4"
rm -rf "$root" "$work/initrd" "$work/modules" "$work/log"
mv "$work/initrd.gz" "$work/initrd"

# ---- booted once, so that tests need not wait for it ----
mkdir "$work/first"
truncate -s "$payload_bytes" "$work/first/payload"
"$here/vm.py" start "$work/first" "$work" -drive "file=$work/first/payload,if=virtio,format=raw,readonly=on" 9>&-
"$here/vm.py" run "$work/first" 1800 'timeout 1700 systemctl is-system-running --wait; systemctl --failed --no-legend --no-pager; sync' >"$work/first/log" 2>&1 || true
[ "$(cat "$work/first/log")" = running ] || { echo "image.sh: the machine does not start:" >&2; cat "$work/first/log" >&2; exit 1; }
"$here/vm.py" keep "$work/first" "$work"
rm -rf "$work/first"
touch "$work/complete"
mv "$work" "$dir"
trap - EXIT
echo "$dir"
