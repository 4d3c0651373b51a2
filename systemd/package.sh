#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds Coracle as a Debian package, in a clean Debian made for it: coracle_VERSION_ARCH.deb, checked by lintian. What is built is
# the source as it stands here. Needs mmdebstrap and a mirror of Debian; root, or a user who may make namespaces.
#
#   systemd/package.sh [--arch amd64|arm64|armhf] [--suite bookworm|trixie] [--output DIR]
#   systemd/package.sh --repository DIR [--key FILE] [--output DIR]
#
#   --arch ARCH       for which processor (default: this machine's); for another one it is built by Debian's cross compilers
#   --suite SUITE     for which Debian, since their libraries differ (default: this machine's)
#   --output DIR      where packages are (default: build/packages)
#   --version VERSION the package's version, to which the suite is added (default: of the source and its last commit)
#   --jobs N          compilers at a time (default: as there are cores and memory for)
#   --repository DIR  builds nothing: lays the packages of --output out as a repository for apt, which any web server or a USB stick
#                     can carry; DIR/README says how a machine uses it. What is there already stays
#   --key FILE        signs it with that secret key of OpenPGP, as `gpg --export-secret-keys` writes it
#
# CORACLE_DEBIAN_MIRROR names a mirror; DEBFULLNAME and DEBEMAIL the maintainer.
set -euo pipefail
umask 022
root=$(cd "$(dirname "$0")/.." && pwd)
usage() { sed -n '6,19s/^# \{0,1\}//p' "$0"; }
say() { echo "package.sh: $*"; }
die() { echo "package.sh: $*" >&2; exit 1; }
fail_usage() { echo "package.sh: $*; see --help" >&2; exit 2; }

arch= suite= output=$root/build/packages version= jobs= repository= key=
while [ $# -gt 0 ]; do
  case $1 in
    --arch|--suite|--output|--version|--jobs|--repository|--key)
      [ -n "${2:-}" ] || fail_usage "$1 needs a value"
      printf -v "${1#--}" %s "$2"
      shift ;;
    -h|--help) usage; exit 0 ;;
    *) fail_usage "unknown option $1" ;;
  esac
  shift
done
own_arch=$(dpkg --print-architecture)
[ -n "$arch" ] || arch=$own_arch
[ -n "$suite" ] || suite=$(. /etc/os-release; echo "${VERSION_CODENAME:-}")
[ -n "$jobs" ] || jobs=$("$root/systemd/compilers")
case $arch in amd64|arm64|armhf) ;; *) fail_usage "--arch: amd64, arm64 or armhf, not $arch" ;; esac
case $suite in
  bookworm) release=12 ;;
  trixie)   release=13 ;;
  *) fail_usage "--suite: bookworm or trixie, not ${suite:-unknown}" ;;
esac
[[ $jobs =~ ^[1-9][0-9]*$ ]] || fail_usage "--jobs needs a number"
[ -z "$version" ] || [[ $version =~ ^[0-9][A-Za-z0-9.+~]*$ ]] || fail_usage "--version: $version is no version of a package"
[ -z "$key" ] || [ -n "$repository" ] || fail_usage "--key is for --repository"
[ -z "$key" ] || [ -r "$key" ] || die "$key cannot be read"
T=$(mktemp -d "${TMPDIR:-/var/tmp}/coracle-package.XXXXXX")
clean_up() {
  [ ! -d "$T/keys" ] || GNUPGHOME=$T/keys gpgconf --kill all 2>/dev/null || true
  rm -rf --one-file-system "$T"
}
trap clean_up EXIT
trap 'exit 143' TERM
trap 'exit 130' INT
chmod 755 "$T"  # where mmdebstrap makes a user namespace, its root has to read it

# ---- the source ----

git_here() { git -C "$root" -c safe.directory="$root" "$@" 2>/dev/null; }

# The files that the package is made of: what git knows, as it stands here, and what it would take in; without git everything but what
# is built.
source_files() {
  if git_here rev-parse --git-dir >/dev/null; then
    git_here ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' file; do
      [ ! -e "$root/$file" ] || printf '%s\0' "$file"
    done
  else
    (cd "$root" && find . -mindepth 1 -path './build*' -prune -o -path './.*' -prune -o -type f -print0)
  fi
}

# 0.1.0+git20261129123000.70ba6e6~deb12: later commits have higher versions, and a later Debian's package is the higher one of two.
source_version() {
  local released commit
  released=$(sed -n "s/^ *version: '\([^']*\)'.*/\1/p" "$root/meson.build" | head -n 1)
  [ -n "$released" ] || die "meson.build names no version"
  if ! commit=$(git_here log -1 --format=%h --abbrev=8); then echo "$released"; return; fi
  if git_here tag --points-at HEAD | grep -qxF "v$released"; then echo "$released"; return; fi
  echo "$released+git$(TZ=UTC git_here log -1 --date=format-local:%Y%m%d%H%M%S --format=%cd).$commit$(
    [ -z "$(git_here status --porcelain)" ] || echo +local)"
}

source_date() { git_here log -1 --format=%ct || stat -c %Y "$root/meson.build"; }

maintainer() { echo "${DEBFULLNAME:-The authors of Coracle} <${DEBEMAIL:-coracle@example.org}>"; }

# $T/coracle: the source with debian/.
prepare_source() {
  local date needs each
  date=$(source_date)
  mkdir "$T/coracle"
  (cd "$root" && source_files | tar -c --no-recursion --null -T -) | tar -x -C "$T/coracle" --no-same-owner
  cp -r "$T/coracle/systemd/debian" "$T/coracle/debian"
  needs=
  for each in $("$root/systemd/packages.sh" --names "$suite" "$own_arch" build); do
    case $each in
      g++) ;;  # of build-essential
      python3) needs="$needs, python3:any" ;;
      *) needs="$needs, $each" ;;
    esac
  done
  sed -e "s|@MAINTAINER@|$(maintainer)|" -e "s|@BUILD_DEPENDS@|${needs#, }|" "$T/coracle/debian/control.in" >"$T/coracle/debian/control"
  rm "$T/coracle/debian/control.in"
  printf 'coracle (%s) %s; urgency=medium\n\n  * Built by systemd/package.sh.\n\n -- %s  %s\n' "$version" "$suite" "$(maintainer)" \
    "$(LC_ALL=C date -u -R -d "@$date")" >"$T/coracle/debian/changelog"
}

# ---- the build ----

# Run in the clean Debian, in /build, as its root.
write_build_script() {
  cat >"$T/build.sh" <<BUILD
#!/bin/sh
set -eu
cd /build/coracle
export HOME=/build LC_ALL=C.UTF-8 DEB_BUILD_OPTIONS="nocheck parallel=$jobs"
if [ $arch != $own_arch ]; then export CONFIG_SITE=/etc/dpkg-cross/cross-config.$arch DEB_BUILD_PROFILES="cross nocheck"; fi
dpkg-buildpackage --build=any --host-arch=$arch --no-sign --no-check-builddeps
mkdir /build/out
mv /build/coracle_*.deb /build/out/
echo "package.sh: lintian"
lintian --allow-root --no-cfg --tag-display-limit 0 --info --fail-on error,warning /build/out/*.deb
BUILD
}

build_package() {
  local include mirror=()
  command -v mmdebstrap >/dev/null || die "mmdebstrap is missing: apt install mmdebstrap"
  if [ -z "$version" ]; then version=$(source_version); fi
  version=$version~deb$release
  prepare_source
  write_build_script
  # shellcheck disable=SC2046  # a list of words
  include=$(echo $("$root/systemd/packages.sh" --names "$suite" "$arch" build) debhelper lintian | tr ' ' ',')
  [ -z "${CORACLE_DEBIAN_MIRROR:-}" ] || mirror=("$CORACLE_DEBIAN_MIRROR")
  say "coracle $version for $arch: a clean $suite, then the build with $jobs at a time"
  # Its root is a gigabyte or two: not in /tmp, which is in memory on Debian 13.
  TMPDIR=$T mmdebstrap --variant=buildd --architectures="$own_arch$([ "$arch" = "$own_arch" ] || echo ",$arch")" --include="$include" \
    --aptopt='APT::Install-Recommends "false"' --dpkgopt='path-exclude=/usr/share/locale/*' --dpkgopt=force-unsafe-io --format=null \
    --customize-hook='mkdir "$1/build"' --customize-hook="copy-in $T/coracle $T/build.sh /build" \
    --customize-hook='chroot "$1" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin sh /build/build.sh' \
    --customize-hook="copy-out /build/out $T" \
    "$suite" /dev/null "${mirror[@]}" >"$T/log" 2>&1 || {
      cp "$T/log" "$output/build.log"
      tail -n 40 "$T/log" >&2
      die "the package could not be built (above; all of it is in $output/build.log)"
    }
  sed -n '/^package.sh: lintian/,$p' "$T/log" | grep -E '^[EWINOX]: ' || true
  mv "$T"/out/*.deb "$output/"
  echo "$output/coracle_${version}_$arch.deb"
}

# ---- the repository ----

# DIR/pool/SUITE/*.deb, DIR/dists/SUITE/main/binary-ARCH/Packages, and what says that they belong together: dists/SUITE/Release.
lay_out() {
  local found=0 deb field
  mkdir -p "$repository"
  for deb in "$output"/coracle_*.deb; do
    [ -e "$deb" ] || continue
    field=$(dpkg-deb -f "$deb" Version)
    case $field in
      *~deb12) suite=bookworm ;;
      *~deb13) suite=trixie ;;
      *) die "$deb: its version $field names no suite" ;;
    esac
    mkdir -p "$repository/pool/$suite"
    cp "$deb" "$repository/pool/$suite/"
    found=1
  done
  [ $found = 1 ] || die "there are no packages in $output; systemd/package.sh builds one"
  if [ -n "$key" ]; then
    command -v gpg >/dev/null || die "gpg is missing: apt install gpg"
    mkdir -m 700 "$T/keys"
    gpg_here --import "$key" 2>"$T/log" || { cat "$T/log" >&2; die "$key is no secret key of OpenPGP"; }
    gpg_here --list-secret-keys --with-colons | grep -q '^sec:' || die "$key holds no secret key"
    gpg_here --export >"$repository/coracle.gpg"
    chmod 644 "$repository/coracle.gpg"
  fi
  for suite in bookworm trixie; do
    [ ! -d "$repository/pool/$suite" ] || index_suite
  done
  describe_repository
  say "$repository/README says how to use it"
}

gpg_here() { GNUPGHOME=$T/keys gpg --batch --quiet --no-tty --pinentry-mode loopback --passphrase '' "$@"; }

index_suite() {
  local dists=$repository/dists/$suite each deb path architectures= new
  new=$T/dists-$suite
  for each in amd64 arm64 armhf; do
    for deb in "$repository/pool/$suite"/coracle_*_"$each".deb; do
      [ -e "$deb" ] || continue
      mkdir -p "$new/main/binary-$each"
      path=pool/$suite/${deb##*/}
      { dpkg-deb -f "$deb"
        printf 'Filename: %s\nSize: %s\nSHA256: %s\n\n' "$path" "$(stat -c %s "$deb")" "$(sha256sum "$deb" | cut -d ' ' -f 1)"
      } >>"$new/main/binary-$each/Packages"
    done
    [ ! -e "$new/main/binary-$each/Packages" ] || { architectures="$architectures $each"; gzip -9nk "$new/main/binary-$each/Packages"; }
  done
  { printf 'Origin: Coracle\nLabel: Coracle\nSuite: %s\nCodename: %s\nArchitectures:%s\nComponents: main\nDate: %s\nSHA256:\n' \
      "$suite" "$suite" "$architectures" "$(LC_ALL=C date -u '+%a, %d %b %Y %H:%M:%S UTC')"
    (cd "$new" && find main -type f | sort | while read -r path; do
      printf ' %s %s %s\n' "$(sha256sum "$path" | cut -d ' ' -f 1)" "$(stat -c %s "$path")" "$path"
    done); } >"$T/Release-$suite"
  mv "$T/Release-$suite" "$new/Release"
  if [ -n "$key" ]; then
    gpg_here --clearsign --digest-algo SHA512 -o "$new/InRelease" "$new/Release"
    gpg_here --armor --detach-sign --digest-algo SHA512 -o "$new/Release.gpg" "$new/Release"
  fi
  mkdir -p "$repository/dists"
  rm -rf "$dists"
  cp -r "$new" "$dists"
}

describe_repository() {
  local trust='signed-by=/etc/apt/keyrings/coracle.gpg' with_key='
  cp coracle.gpg /etc/apt/keyrings/    (after: mkdir -p /etc/apt/keyrings)'
  [ -n "$key" ] || trust='trusted=yes' with_key='
  It is not signed: whoever can change it, or what a machine reads of it, can change what is installed there.'
  cat >"$repository/README" <<README
Packages of Coracle, for apt. On a machine, as root, with SUITE for its Debian (bookworm is 12, trixie is 13), and URL for where this
directory is: http://server/path/, or file:///media/usb/path/
$with_key
  echo "deb [$trust] URL SUITE main" >/etc/apt/sources.list.d/coracle.list
  apt update && apt install coracle
README
}

mkdir -p "$output"
output=$(cd "$output" && pwd)
if [ -n "$repository" ]; then lay_out; else build_package; fi
