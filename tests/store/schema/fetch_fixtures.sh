#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Unpacks Kubernetes' own samples of every kind (fixtures_test.cc) aside, into $1/HEAD, out of Debian sid's package of the
# API's Go types, from the mirror this machine already uses. Installs nothing and leaves apt's own lists alone.
set -eu
target=${1:?usage: fetch_fixtures.sh DIRECTORY}
[ ! -d "$target/HEAD" ] || exit 0
mirror=$(grep -rhoE 'https?://[^ ]+/debian/?( |$)' /etc/apt/sources.list /etc/apt/sources.list.d 2>/dev/null | head -n 1 | tr -d ' ')
[ -n "$mirror" ] || mirror=$(grep -rhE '^URIs:' /etc/apt/sources.list.d 2>/dev/null | awk '{print $2}' | grep -v security | head -n 1)
[ -n "$mirror" ] || { echo "fetch_fixtures: no Debian mirror in /etc/apt/sources.list" >&2; exit 1; }

work=$(mktemp -d)
trap 'rm -rf --one-file-system "$work"' EXIT
mkdir -p "$work/lists/partial" "$work/archives/partial" "$work/parts" "$target"
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror sid main" > "$work/sources.list"
set -- -o Dir::Etc::sourcelist="$work/sources.list" -o Dir::Etc::sourceparts="$work/parts" \
       -o Dir::State::lists="$work/lists" -o Dir::State::status="$work/status" \
       -o Dir::Cache="$work" -o APT::Sandbox::User=root -o Acquire::Check-Valid-Until=false -q  # sid's lists age in a week; a clock may be off
: > "$work/status"  # what is installed here must not matter
chmod 755 "$work"
if apt-get "$@" update >"$work/log" 2>&1 && (cd "$work" && apt-get "$@" download golang-k8s-api-dev >>log 2>&1); then
  dpkg-deb -x "$(find "$work" -maxdepth 1 -name '*.deb' | head -n 1)" "$work/root"
  found=$(find "$work/root" -type d -path '*/k8s.io/api/testdata/HEAD' | head -n 1)
  [ -z "$found" ] || cp -r "$found" "$target/HEAD"
fi
[ -d "$target/HEAD" ] || { echo "fetch_fixtures: none could be had:" >&2; tail -n 3 "$work/log" >&2; exit 1; }
