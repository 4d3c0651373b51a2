#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the OCI runtime-tools validation programs, once, and prints their directory: 58 programs, each a test of a runtime's
# command line or of a container's properties, and runtimetest, which examines the container from inside.
#   validation_programs.sh CACHE_DIRECTORY
# The source is Debian's golang-github-opencontainers-runtime-tools at commit 0105384 (the same in Debian 12 and 13; the -dev
# package omits the programs, so the source package is used). Upstream has continued since, to 5e63903 at the time of writing: the
# 58 programs are the same except for spelling, and it needs a newer Go than Debian 12 has. One difference matters: upstream's
# default /dev is no longer "noexec".
#   CORACLE_RUNTIME_TOOLS   an unpacked source tree of that commit, if apt has no source packages
set -euo pipefail
cache=${1:?validation_programs.sh CACHE_DIRECTORY}
package=golang-github-opencontainers-runtime-tools commit=0105384
dir=$cache/runtime-tools-$commit
if [ -e "$dir/complete" ]; then echo "$dir"; exit 0; fi
mkdir -p "$cache"
work=$(mktemp -d "$cache/making.XXXXXX")
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
why() { echo "$*" >&2; exit 1; }
command -v go >/dev/null || why "golang-go is not installed"

fetch_source() {
  command -v dpkg-source >/dev/null || why "dpkg-dev is not installed"
  . /etc/os-release
  . "$(dirname "$0")/../apt_aside.sh"
  apt_aside "$work" "$VERSION_CODENAME" && (cd "$work" && aside source --download-only "$package") >"$work/log" 2>&1 ||
    why "apt has no source of $package: $(grep -m 1 '^E:' "$work/log")"
  case $(ls "$work/$package"_*.dsc) in
    *"g$commit"*) ;;
    *) why "$(basename "$work/$package"_*.dsc) is not of commit $commit: compare, then change the name here" ;;
  esac
  dpkg-source --no-copy -x "$work/$package"_*.dsc "$work/source" >"$work/log" 2>&1 || why "$(tail -n 1 "$work/log")"
}
if [ -n "${CORACLE_RUNTIME_TOOLS:-}" ]; then
  [ -d "$CORACLE_RUNTIME_TOOLS/validation" ] || why "$CORACLE_RUNTIME_TOOLS has no directory validation"
  cp -a "$CORACLE_RUNTIME_TOOLS" "$work/source"
else
  fetch_source
fi

mkdir "$work/programs"
(cd "$work/source" && CGO_ENABLED=0 GO111MODULE=on GOFLAGS=-mod=vendor GOPROXY=off GOCACHE=$work/go-cache \
  go build -trimpath -ldflags '-s -w' -o "$work/programs/" ./validation/... ./cmd/runtimetest) >"$work/log" 2>&1 ||
  why "the programs do not build: $(tail -n 3 "$work/log")"
[ "$(find "$work/programs" -type f | wc -l)" = 59 ] || why "58 programs and runtimetest are expected, there are $(ls "$work/programs" | wc -l)"
touch "$work/programs/complete"
rm -rf "$dir"
mv "$work/programs" "$dir"
echo "$dir"
