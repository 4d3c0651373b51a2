#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Unpacks Debian sid's PACKAGES, and those they depend on whose names match REGEX, aside into DIRECTORY/root, from the mirror this
# machine already uses. Installs nothing and leaves apt's own lists alone. DIRECTORY/packages names what was unpacked, with
# versions; it is written last, so that a half-filled directory is filled again. Errors: status 1, with apt's words on stderr.
set -eu
target=${1:?usage: fetch_debs.sh DIRECTORY REGEX PACKAGE...} regex=$2
shift 2
[ ! -s "$target/packages" ] || exit 0

mirror=$(grep -rhoE 'https?://[^ ]+/debian/?( |$)' /etc/apt/sources.list /etc/apt/sources.list.d 2>/dev/null | head -n 1 | tr -d ' ')
[ -n "$mirror" ] || { echo "fetch_debs: no Debian mirror in /etc/apt/sources.list" >&2; exit 1; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
mkdir -p "$work/lists/partial" "$work/archives/partial" "$work/parts" "$work/debs"
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror sid main" > "$work/sources.list"
: > "$work/status"  # what is installed here must not matter
apt() {  # sid's lists age in a week, and a clock may be off
  command=$1
  shift
  apt-get -q -o Dir::Etc::sourcelist="$work/sources.list" -o Dir::Etc::sourceparts="$work/parts" -o Dir::State::lists="$work/lists" \
    -o Dir::State::status="$work/status" -o Dir::Cache="$work" -o APT::Sandbox::User=root -o Acquire::Check-Valid-Until=false \
    -o APT::Update::Error-Mode=any \
    "$command" "$@"
}
fail() { echo "fetch_debs: $1:" >&2; tail -n 3 "$work/log" >&2; exit 1; }

apt update >"$work/log" 2>&1 || fail "sid's lists cannot be had"
apt install --print-uris -y --no-install-recommends "$@" >"$work/uris" 2>"$work/log" || fail "sid does not have $*"
names=$(sed -nE "s/^'[^']*' ([^_]+)_.*/\1/p" "$work/uris" | grep -E "$regex")
# shellcheck disable=SC2086  # a list of words
(cd "$work/debs" && apt download $names >"$work/log" 2>&1) || fail "the packages cannot be had"

rm -rf "$target"
mkdir -p "$target/root"
for deb in "$work"/debs/*.deb; do dpkg-deb -x "$deb" "$target/root"; done
for deb in "$work"/debs/*.deb; do dpkg-deb -W --showformat='${Package} ${Version}\n' "$deb"; done > "$target/packages.new"
mv "$target/packages.new" "$target/packages"
