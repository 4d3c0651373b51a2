#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Unpacks Debian sid's PACKAGES, and those of their dependencies whose names match REGEX, into DIRECTORY/root. Installs nothing.
# DIRECTORY/packages lists what was unpacked, with versions; it is written last, so that an incomplete directory is filled again.
# Errors: status 1, with apt's messages on stderr.
set -eu
target=${1:?usage: fetch_debs.sh DIRECTORY REGEX PACKAGE...} regex=$2
shift 2
[ ! -s "$target/packages" ] || exit 0

. "$(dirname "$0")/../apt_aside.sh"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/debs"
fail() { echo "fetch_debs: $1:" >&2; tail -n 3 "$work/log" >&2; exit 1; }

apt_aside "$work" sid || fail "sid's lists cannot be had"
aside install --print-uris -y --no-install-recommends "$@" >"$work/uris" 2>"$work/log" || fail "sid does not have $*"
names=$(sed -nE "s/^'[^']*' ([^_]+)_.*/\1/p" "$work/uris" | grep -E "$regex")
# shellcheck disable=SC2086  # a list of words
(cd "$work/debs" && aside download $names >"$work/log" 2>&1) || fail "the packages cannot be had"

rm -rf "$target"
mkdir -p "$target/root"
for deb in "$work"/debs/*.deb; do dpkg-deb -x "$deb" "$target/root"; done
for deb in "$work"/debs/*.deb; do dpkg-deb -W --showformat='${Package} ${Version}\n' "$deb"; done > "$target/packages.new"
mv "$target/packages.new" "$target/packages"
