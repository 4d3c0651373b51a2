#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes an image for a card, disk or USB stick that boots Debian with Coracle. What its owner puts on the first partition is taken
# in at the first start (card/README.txt). Needs root, a mirror of Debian, and Debian's mmdebstrap, dosfstools, mtools, fdisk,
# e2fsprogs and xz-utils; for another processor also qemu-user-static.
#
#   sudo systemd/image.sh [--board raspberrypi|generic-arm64|generic-armhf|generic-amd64] [--suite bookworm|trixie] [--output FILE]
#
#   --board BOARD    raspberrypi: Zero 2 W, 3, 4, and with trixie 5, with 64 bits; generic: what boots by UEFI (default: raspberrypi)
#   --suite SUITE    which Debian (default: this machine's)
#   --output FILE    FILE.img, or packed: FILE.img.xz, .zst or .gz (default: build/images/coracle-BOARD-SUITE.img.xz)
#   --package FILE   the package (default: the latest for board and suite in build/packages; else systemd/package.sh makes one)
#   --read-only      a root that is never written to; /var, and what changes in /etc, are on a partition of their own
#   --with P[,P…]    further packages of Debian
#   --files DIR      files that are put over those of the root
#
# CORACLE_DEBIAN_MIRROR names a mirror.
set -euo pipefail
umask 022
export MTOOLS_SKIP_CHECK=1  # mtools refuse sizes that are no multiple of a diskette's tracks
here=$(cd "$(dirname "$0")" && pwd)
root_of_source=$(dirname "$here")
usage() { sed -n '7,18s/^# \{0,1\}//p' "$0"; }
say() { echo "image.sh: $*"; }
die() { echo "image.sh: $*" >&2; exit 1; }
fail_usage() { echo "image.sh: $*; see --help" >&2; exit 2; }

board=raspberrypi kernel= suite= output= package= with= files= read_only=0
while [ $# -gt 0 ]; do
  case $1 in
    --board|--suite|--output|--package|--with|--files)
      [ -n "${2:-}" ] || fail_usage "$1 needs a value"
      printf -v "${1#--}" %s "$2"
      shift ;;
    --read-only) read_only=1 ;;
    -h|--help) usage; exit 0 ;;
    *) fail_usage "unknown option $1" ;;
  esac
  shift
done
[ -n "$suite" ] || suite=$(. /etc/os-release; echo "${VERSION_CODENAME:-}")
case $suite in
  bookworm) release=12 ;;
  trixie)   release=13 ;;
  *) fail_usage "--suite: bookworm or trixie, not ${suite:-unknown}" ;;
esac
case $board in
  raspberrypi|generic-arm64) arch=arm64 ;;
  generic-armhf) arch=armhf kernel=armmp-lpae ;;
  generic-amd64) arch=amd64 ;;
  *) fail_usage "--board: raspberrypi, generic-arm64, generic-armhf or generic-amd64, not $board" ;;
esac
[ -n "$output" ] || output=$root_of_source/build/images/coracle-$board-$suite.img.xz
case $output in
  *.img)     pack=(cat) ;;
  *.img.xz)  pack=(xz -T0 -6 -c) ;;
  *.img.zst) pack=(zstd -T0 -19 -q -c) ;;
  *.img.gz)  pack=(gzip -9 -c) ;;
  *) fail_usage "--output: a name that ends in .img, .img.xz, .img.zst or .img.gz" ;;
esac
[ -z "$files" ] || [ -d "$files" ] || die "$files is no directory"
[ -z "$package" ] || [ -r "$package" ] || die "$package cannot be read"
[ -z "$with" ] || [[ $with =~ ^[a-z0-9][a-z0-9+.,-]*$ ]] || fail_usage "--with: names of packages, with commas between"

# ---- what has to be there: told before an hour of work ----

[ "$(id -u)" = 0 ] || die "needs root: sudo systemd/image.sh"
for each in mmdebstrap:mmdebstrap mkfs.vfat:dosfstools mcopy:mtools sfdisk:fdisk mke2fs:e2fsprogs "${pack[0]}:${pack[0]}-utils"; do
  command -v "${each%%:*}" >/dev/null || die "${each%%:*} is missing: apt install $(sed 's/^\(zstd\|gzip\)-utils$/\1/' <<<"${each#*:}")"
done
own_arch=$(dpkg --print-architecture)
if [ "$arch" != "$own_arch" ]; then
  case $arch in arm64) emulator=aarch64 ;; armhf) emulator=arm ;; amd64) emulator=x86_64 ;; esac
  grep -qsx enabled "/proc/sys/fs/binfmt_misc/qemu-$emulator" ||
    die "this machine cannot run programs of $arch, which an image of it takes: apt install qemu-user-static"
fi
mirror=${CORACLE_DEBIAN_MIRROR:-http://deb.debian.org/debian}
T=$(mktemp -d "${TMPDIR:-/var/tmp}/coracle-image.XXXXXX")
root=$T/root
clean_up() {
  [ ! -d "$root" ] || awk -v below="$root/" 'index($5, below) == 1 {print $5}' /proc/self/mountinfo | sort -r | xargs -r -n 1 umount -l || true
  rm -rf --one-file-system "$T"
  rm -f "$output.new"
}
trap clean_up EXIT
trap 'exit 143' TERM
trap 'exit 130' INT
chmod 755 "$T"

components="main"
[ "$board" != raspberrypi ] || components="main non-free-firmware"
for each in $components; do
  /usr/lib/apt/apt-helper -o Acquire::Retries=2 download-file "$mirror/dists/$suite/$each/binary-$arch/Release" "$T/Release" >"$T/log" 2>&1 || {
    tail -n 3 "$T/log" >&2
    case $each in
      main) die "$mirror has no $suite for $arch, or cannot be reached (above); CORACLE_DEBIAN_MIRROR names another" ;;
      *) die "$mirror has no component $each, or cannot be reached (above). The Raspberry Pi's boot firmware is in it; \
the generic boards need none: --board generic-arm64" ;;
    esac
  }
done

# ---- the package ----

find_package() {  # the latest one, or nothing
  local each latest= version latest_version=
  for each in "$root_of_source"/build/packages/coracle_*~deb"${release}_$arch.deb"; do
    [ -e "$each" ] || continue
    version=$(dpkg-deb -f "$each" Version)
    if [ -z "$latest" ] || dpkg --compare-versions "$version" gt "$latest_version"; then latest=$each latest_version=$version; fi
  done
  echo "$latest"
}

[ -n "$package" ] || package=$(find_package)
if [ -z "$package" ]; then
  say "there is no package for $suite on $arch yet"
  "$here/package.sh" --arch "$arch" --suite "$suite"
  package=$(find_package)
fi
case "$(dpkg-deb -f "$package" Package Architecture | sort | tr '\n' ' ')" in
  "Architecture: $arch Package: coracle ") ;;
  *) die "$package is no package of Coracle for $arch" ;;
esac
case $(dpkg-deb -f "$package" Version) in
  *~deb"$release") ;;
  *) die "$package is not for $suite" ;;
esac
mkdir "$T/packages"
cp "$package" "$T/packages/"
"$here/package.sh" --output "$T/packages" --repository "$T/repository" --suite "$suite" >/dev/null

# ---- the root ----

packages="coracle,systemd,systemd-sysv,systemd-timesyncd,systemd-resolved,systemd-zram-generator,udev,kmod,dbus,procps,iproute2,nftables"
packages="$packages,ca-certificates,openssh-server,initramfs-tools,zstd,e2fsprogs,dosfstools,fdisk,linux-image-${kernel:-$arch}"
case $board in
  raspberrypi) packages="$packages,raspi-firmware,firmware-brcm80211,wireless-regdb,network-manager,wpasupplicant" ;;
  *)           packages="$packages,systemd-boot-efi" ;;
esac
[ -z "$with" ] || packages="$packages,$with"

keyring=/usr/share/keyrings/debian-archive-keyring.gpg
signed=
[ ! -e "$keyring" ] || signed="[signed-by=$keyring] "

# Before the packages: what their scripts read. Only files that no package has. By fstab the initrd gets what checks the root.
write_early_files() {
  if [ $read_only = 1 ]; then
    cat >"$T/fstab" <<'FSTAB'
LABEL=coracle-root  /               ext4  ro,noatime                    0 1
LABEL=coracle-state /var            ext4  noatime,errors=remount-ro     0 0
LABEL=CORACLE       /boot/firmware  vfat  ro,umask=022,nofail,x-systemd.device-timeout=10s  0 2
FSTAB
  else
    cat >"$T/fstab" <<'FSTAB'
LABEL=coracle-root  /               ext4  noatime,errors=remount-ro     0 1
LABEL=CORACLE       /boot/firmware  vfat  ro,umask=022,nofail,x-systemd.device-timeout=10s  0 2
FSTAB
  fi
  cat >"$T/early" <<EARLY
#!/bin/sh
set -eu
root=\$1
cp "$T/fstab" "\$root/etc/fstab"
mkdir -p "\$root/etc/initramfs-tools/conf.d" "\$root/etc/kernel/postinst.d" "\$root/etc/kernel/postrm.d" "\$root/etc/initramfs/post-update.d"
printf 'MODULES=most\nCOMPRESS=zstd\nRESUME=none\n' >"\$root/etc/initramfs-tools/conf.d/coracle-card"
mkdir -p "\$root/boot/firmware/coracle/manifests" "\$root/boot/firmware/coracle/images" "\$root/boot/firmware/coracle/network" \\
  "\$root/boot/firmware/coracle/certificates"
mkdir -p "\$root/usr/libexec/coracle-card"
cp "$here/card/take-in" "$here/card/grow" "$here/card/boot-files" "\$root/usr/libexec/coracle-card/"
EARLY
  if [ "$board" = raspberrypi ]; then
    cat >>"$T/early" <<EARLY
mkdir -p "\$root/etc/default" "\$root/usr/share/initramfs-tools/modules.d"
echo '$cmdline' >"\$root/etc/default/raspi-extra-cmdline"
echo reset_raspberrypi >"\$root/usr/share/initramfs-tools/modules.d/coracle-card"  # a root on USB needs it
EARLY
  else
    cat >>"$T/early" <<EARLY
echo 'root=LABEL=coracle-root $cmdline' >"\$root/etc/kernel/cmdline"
mkdir -p "\$root/boot/firmware/loader/entries"
for each in etc/kernel/postinst.d etc/kernel/postrm.d etc/initramfs/post-update.d; do
  ln -s /usr/libexec/coracle-card/boot-files "\$root/\$each/zz-coracle-card"
done
EARLY
  fi
  if [ $read_only = 1 ]; then
    cat >>"$T/early" <<'EARLY'
mkdir -p "$root/etc/initramfs-tools/hooks" "$root/etc/initramfs-tools/scripts/init-bottom"
cat >"$root/etc/initramfs-tools/hooks/coracle-card" <<'HOOK'
#!/bin/sh
[ "$1" != prereqs ] || exit 0
. /usr/share/initramfs-tools/hook-functions
manual_add_modules overlay ext4
copy_exec /sbin/e2fsck
HOOK
cat >"$root/etc/initramfs-tools/scripts/init-bottom/coracle-card" <<'SCRIPT'
#!/bin/sh
# The root is read-only: /var is another partition, and what changes in /etc is kept there. Before the first process, which reads
# /etc.
[ "$1" != prereqs ] || exit 0
. /scripts/functions
state=$(resolve_device LABEL=coracle-state)
e2fsck -p "$state" || [ $? -lt 4 ] || e2fsck -y "$state"  # as fsck.repair=yes says for the root: nobody is there to answer
mount -t ext4 -o noatime,errors=remount-ro "$state" "$rootmnt/var" || panic "the card's partition for /var cannot be mounted"
changes=$rootmnt/var/lib/coracle-card/etc
mkdir -p "$changes/upper" "$changes/work"
modprobe -q overlay
mount -t overlay -o "lowerdir=$rootmnt/etc,upperdir=$changes/upper,workdir=$changes/work" overlay "$rootmnt/etc" ||
  panic "the changes in /etc cannot be mounted"
SCRIPT
chmod 755 "$root/etc/initramfs-tools/hooks/coracle-card" "$root/etc/initramfs-tools/scripts/init-bottom/coracle-card"
EARLY
  fi
  chmod 755 "$T/early"
}

# cgroup_enable: Raspberry Pi OS' device trees switch memory off. panic: a machine that nobody watches starts again.
cmdline="cgroup_enable=memory panic=10 fsck.repair=yes"
[ "$board" != generic-amd64 ] || cmdline="$cmdline console=ttyS0,115200 console=tty0"
[ $read_only = 1 ] && cmdline="$cmdline ro" || cmdline="$cmdline rw"

put() { mkdir -p "$root${1%/*}"; cat >"$root$1"; }  # put PATH: of standard input
enable() {  # enable UNIT…: for multi-user.target
  local unit
  mkdir -p "$root/etc/systemd/system/multi-user.target.wants"
  for unit in "$@"; do ln -sf "/etc/systemd/system/$unit" "$root/etc/systemd/system/multi-user.target.wants/$unit"; done
}
mask() { local unit; for unit in "$@"; do ln -sf /dev/null "$root/etc/systemd/system/$unit"; done; }

configure() {
  local grows=/
  [ $read_only = 0 ] || grows=/var
  put /etc/fstab <"$T/fstab"
  # What is read-only is written to by apt alone, and for as long as it works.
  local remount="mount -o remount,rw /boot/firmware" back="mount -o remount,ro /boot/firmware"
  [ $read_only = 0 ] || remount="mount -o remount,rw /; $remount" back="$back; mount -o remount,ro /"
  put /etc/apt/apt.conf.d/90coracle-card <<APT
DPkg::Pre-Invoke { "{ $remount; } 2>/dev/null || true"; };
DPkg::Post-Invoke { "{ sync; $back; } 2>/dev/null || true"; };
APT

  echo coracle | put /etc/hostname
  printf '127.0.0.1 localhost\n127.0.1.1 coracle\n::1 localhost ip6-localhost ip6-loopback\n' | put /etc/hosts
  : | put /etc/machine-id  # made at the first start: each card has its own
  rm -f "$root"/etc/ssh/ssh_host_* "$root/var/lib/dbus/machine-id"
  mkdir -p "$root/etc/ssh/authorized_keys"
  printf 'AuthorizedKeysFile /etc/ssh/authorized_keys/%%u\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n' |
    put /etc/ssh/sshd_config.d/coracle-card.conf
  printf '[Unit]\nConditionPathExists=/etc/ssh/authorized_keys/root\n' | put /etc/systemd/system/ssh.service.d/coracle-card.conf
  chroot "$root" passwd -l root >/dev/null

  # The card wears out by what is written to it.
  printf '[Journal]\nStorage=volatile\nRuntimeMaxUse=16M\n' | put /etc/systemd/journald.conf.d/coracle-card.conf
  rm -rf "$root/var/log/journal"
  printf '[zram0]\nzram-size = min(ram / 2, 1024)\n' | put /etc/systemd/zram-generator.conf
  ln -sf /usr/share/systemd/tmp.mount "$root/etc/systemd/system/tmp.mount"
  mkdir -p "$root/etc/systemd/system/local-fs.target.wants"
  ln -sf /etc/systemd/system/tmp.mount "$root/etc/systemd/system/local-fs.target.wants/tmp.mount"
  [ -e "$root/usr/share/systemd/tmp.mount" ] || rm "$root/etc/systemd/system/tmp.mount" "$root/etc/systemd/system/local-fs.target.wants/tmp.mount"
  mask apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer e2scrub_reap.service
  # The hardware's watchdog; the Raspberry Pi's counts to 15 s.
  printf '[Manager]\nRuntimeWatchdogSec=14s\n' | put /etc/systemd/system.conf.d/coracle-card.conf

  # A file of systemd-networkd decides who cares for the network; without one NetworkManager, where it is installed.
  mask systemd-networkd-wait-online.service NetworkManager-wait-online.service
  if [ "$board" = raspberrypi ]; then
    printf '[Unit]\nConditionPathExistsGlob=!/etc/systemd/network/*.network\n' | put /etc/systemd/system/NetworkManager.service.d/coracle-card.conf
    printf '[Unit]\nConditionPathExistsGlob=/etc/systemd/network/*.network\n' | put /etc/systemd/system/systemd-networkd.service.d/coracle-card.conf
  else
    printf '[Match]\nType=ether\nKind=!*\n\n[Network]\nDHCP=yes\n' | put /etc/systemd/network/80-wired.network
  fi
  chroot "$root" systemctl enable --quiet systemd-networkd.service systemd-resolved.service systemd-timesyncd.service >"$T/log" 2>&1 ||
    { tail -n 5 "$T/log" >&2; die "the network's services cannot be enabled (above)"; }
  ln -sf ../run/systemd/resolve/stub-resolv.conf "$root/etc/resolv.conf"

  local unit
  for unit in coracle-card-settings.service coracle-card-objects.service; do put "/etc/systemd/system/$unit" <"$here/card/$unit"; done
  sed "s|@GROWS@|$grows|" "$here/card/coracle-card-grow.service" | put /etc/systemd/system/coracle-card-grow.service
  enable coracle-card-settings.service coracle-card-objects.service coracle-card-grow.service
  mkdir -p "$root/etc/issue.d"
  ln -sf /run/coracle-card.issue "$root/etc/issue.d/coracle-card.issue"
  rm -f "$root/var/lib/coracle/sysctl-before"

  rm -rf "$root"/etc/apt/sources.list.d/* "$root"/var/lib/apt/lists/* "$root"/var/cache/apt/*.bin "$root"/var/cache/apt/archives/*.deb
  {
    echo "deb http://deb.debian.org/debian $suite $components"
    echo "deb http://deb.debian.org/debian $suite-updates $components"
    echo "deb http://security.debian.org/debian-security $suite-security $components"
  } | put /etc/apt/sources.list
  # Directories that are there stay as they are: / is not for root alone because DIR is.
  [ -z "$files" ] || tar -C "$files" --owner=0 --group=0 -c . | tar -C "$root" -x --no-overwrite-dir --keep-directory-symlink
}

configure_boot() {
  cp "$here/card/README.txt" "$root/boot/firmware/README.txt"
  if [ "$board" = raspberrypi ]; then
    # The firmware's package writes cmdline.txt by this file, at the next kernel too.
    sed -i -E '/^#?ROOTPART=/d' "$root/etc/default/raspi-firmware"
    echo 'ROOTPART=LABEL=coracle-root' >>"$root/etc/default/raspi-firmware"
    [ -s "$root/boot/firmware/cmdline.txt" ] || die "the Raspberry Pi's firmware did not write cmdline.txt"
    sed -i -E 's#\broot=[^ ]*#root=LABEL=coracle-root#' "$root/boot/firmware/cmdline.txt"
    [ $read_only = 0 ] || sed -i -E 's# rw( |$)# #g' "$root/boot/firmware/cmdline.txt"
    grep -q 'root=LABEL=coracle-root .*cgroup_enable=memory' "$root/boot/firmware/cmdline.txt" || die "cmdline.txt is not as expected: $(cat "$root/boot/firmware/cmdline.txt")"
  else
    local efi name
    case $arch in
      arm64) efi=aa64 name=BOOTAA64.EFI ;;
      armhf) efi=arm name=BOOTARM.EFI ;;
      amd64) efi=x64 name=BOOTX64.EFI ;;
    esac
    mkdir -p "$root/boot/firmware/EFI/BOOT"
    cp "$root/usr/lib/systemd/boot/efi/systemd-boot$efi.efi" "$root/boot/firmware/EFI/BOOT/$name"
    printf 'default coracle.conf\ntimeout 0\n' >"$root/boot/firmware/loader/loader.conf"
    CARD_ROOT=$root "$here/card/boot-files"
    [ -s "$root/boot/firmware/loader/entries/coracle.conf" ] || die "no kernel was installed"
  fi
}

# ---- the image ----

mib=1048576
start_mib=4 boot_mib=1024  # of the first partition: two kernels with their initrds, and what its owner puts on it
journal_mib=32
# Blocks, inodes and the journal are those of the large file system that it becomes on the card, not of a small one.
ext4() {  # ext4 FILE LABEL DIRECTORY
  local used
  used=$(du -s --block-size=$mib --one-file-system "$3" | cut -f 1)
  truncate -s $(((used * 115 / 100 + 128 + journal_mib) * mib)) "$1"
  mke2fs -q -t ext4 -L "$2" -b 4096 -i 16384 -I 256 -J size=$journal_mib -E lazy_itable_init=0 -d "$3" "$1"
}
size_mib() { echo $(($(stat -c %s "$1") / mib)); }

assemble() {
  local id at second third=
  id=$(tr -d - </proc/sys/kernel/random/uuid | cut -c 1-8)
  mkfs.vfat -C -F 32 -n CORACLE "$T/boot.fat" $((boot_mib * 1024)) >/dev/null
  (cd "$root/boot/firmware" && mcopy -s -Q -i "$T/boot.fat" ./* ::)
  rm -rf "${root:?}"/boot/firmware/*
  if [ $read_only = 1 ]; then
    mkdir "$T/var"
    cp -a "$root/var/." "$T/var/"
    rm -rf "${root:?}"/var/*
    ext4 "$T/state.ext4" coracle-state "$T/var"
  fi
  ext4 "$T/root.ext4" coracle-root "$root"
  second=$((start_mib + boot_mib))
  at=$((second + $(size_mib "$T/root.ext4")))
  {  # type c, also where UEFI starts from it, which asks for no type: Windows hides a partition of type ef
    printf 'label: dos\nlabel-id: 0x%s\n' "$id"
    echo "start=$((start_mib * 2048)), size=$((boot_mib * 2048)), type=c, bootable"
    echo "start=$((second * 2048)), size=$(($(size_mib "$T/root.ext4") * 2048)), type=83"
    if [ $read_only = 1 ]; then
      third=$at at=$((at + $(size_mib "$T/state.ext4")))
      echo "start=$((third * 2048)), size=$(($(size_mib "$T/state.ext4") * 2048)), type=83"
    fi
  } >"$T/partitions"
  truncate -s $(((at + 1) * mib)) "$T/card.img"
  sfdisk --quiet "$T/card.img" <"$T/partitions"
  dd if="$T/boot.fat" of="$T/card.img" bs=1M seek=$start_mib conv=notrunc,sparse status=none
  dd if="$T/root.ext4" of="$T/card.img" bs=1M seek=$second conv=notrunc,sparse status=none
  [ -z "$third" ] || dd if="$T/state.ext4" of="$T/card.img" bs=1M seek=$third conv=notrunc,sparse status=none
}

say "$board, $suite, with ${package##*/}"
write_early_files
mmdebstrap --mode=root --variant=minbase --architectures="$arch" --include="$packages" \
  --aptopt='APT::Install-Recommends "false"' --dpkgopt='path-exclude=/usr/share/locale/*' --dpkgopt='path-exclude=/usr/share/doc/*' \
  --dpkgopt='path-include=/usr/share/doc/*/copyright' --dpkgopt='path-include=/usr/share/doc/coracle/*' \
  --essential-hook="$T/early" \
  "$suite" "$root" "deb $signed$mirror $suite $components" "deb [trusted=yes] copy:$T/repository $suite main" >"$T/log" 2>&1 ||
  { tail -n 40 "$T/log" >&2; die "Debian could not be installed (above)"; }
say "its settings and its kernel"
configure
configure_boot
say "the image"
assemble
mkdir -p "$(dirname "$output")"
"${pack[@]}" "$T/card.img" >"$output.new" || die "$output could not be written"
mv "$output.new" "$output"
say "$output: $(($(stat -c %s "$output") / mib)) MiB. Write it to a card: $(case $output in
  *.xz) echo xz -dc ;; *.zst) echo zstd -dc ;; *.gz) echo gzip -dc ;; *) echo cat ;; esac) ${output##*/} | sudo dd of=/dev/CARD bs=4M conv=fsync"
