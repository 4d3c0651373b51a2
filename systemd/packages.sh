#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs what Coracle needs, by Debian package name; runs apt only if something is missing.
#   packages.sh build         what it is built with (and runs with)
#   packages.sh build test    … and what its tests use beside that
#   packages.sh --download …  only fetches them, for a time without a network
#   packages.sh --names SUITE ARCH build   prints what building for a processor takes in a Debian of that suite, for package.sh
set -eu

if [ "${1:-}" = --names ]; then suite=$2; else suite=$(. /etc/os-release; echo "${VERSION_CODENAME:-}"); fi
case $suite in
  bookworm) boost=libboost-json1.81-dev boost_headers=libboost1.81-dev ;;
  *)        boost=libboost-json-dev boost_headers=libboost-dev ;;
esac

tools="g++ meson ninja-build pkg-config python3 tzdata libcli11-dev ca-certificates"
libraries="$boost $boost_headers libsqlite3-dev libcurl4-openssl-dev libcpp-httplib-dev
  libssl-dev libseccomp-dev libcap-dev libyaml-dev libarchive-dev libzstd-dev zlib1g-dev libnl-route-3-dev libnftables-dev
  libsystemd-dev libldns-dev libabsl-dev libgtest-dev"
build="$tools $libraries"
test="busybox-static libfaketime curl jq iproute2 nftables skopeo docker-registry runc apache2-utils openssl procps util-linux
  ccache mold zstd strace mmdebstrap qemu-system-x86 qemu-utils e2fsprogs xz-utils debian-archive-keyring
  crun podman buildah containerd catatonit uidmap golang-go dpkg-dev dbus-daemon wrk gpg groff-base dosfstools mtools fdisk ovmf"
hello="busybox-static"

if [ "${1:-}" = --names ]; then
  if [ "$3" = "$(dpkg --print-architecture)" ]; then echo $build; exit 0; fi
  for each in $libraries; do tools="$tools $each:$3"; done
  echo $tools "pkgconf:$3" "crossbuild-essential-$3"  # pkgconf has the pkg-config of that processor
  exit 0
fi

mode= doing="installing from Debian (some minutes, the first time)"
if [ "${1:-}" = --download ]; then mode=--download-only doing="fetching from Debian"; shift; fi
wanted=
for set in "$@"; do
  case $set in
    build) wanted="$wanted $build" ;;
    test)  wanted="$wanted $test" ;;
    hello) wanted="$wanted $hello" ;;
    *) echo "packages.sh: unknown set $set (build, test, hello)" >&2; exit 2 ;;
  esac
done

missing=
for package in $wanted; do
  status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) || status=
  [ "$status" = installed ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" -ne 0 ]; then
  echo "packages.sh: these are missing, and only root can install them: apt-get install$missing" >&2
  exit 1
fi
echo "$doing:$missing"
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
# Waits for another apt process: a machine that has just booted may be upgrading itself. The lists may be missing or out of date.
apt() { apt-get -q -o DPkg::Lock::Timeout=600 "$@" >>"$log" 2>&1; }
# shellcheck disable=SC2086  # a list of words
apt install -y --no-install-recommends $mode $missing || { apt update && apt install -y --no-install-recommends $mode $missing; } ||
  { tail -n 15 "$log" >&2; echo "packages.sh: apt could not install what is missing (above)" >&2; rm -f "$log"; exit 1; }
rm -f "$log"
