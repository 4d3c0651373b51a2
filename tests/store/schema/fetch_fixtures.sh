#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Unpacks Kubernetes' own samples of every kind (fixtures_test.cc) into $1/HEAD. They come from Debian sid's package of the API's
# Go types. Installs nothing.
set -eu
target=${1:?usage: fetch_fixtures.sh DIRECTORY}
[ ! -d "$target/HEAD" ] || exit 0
. "$(dirname "$0")/../../apt_aside.sh"

work=$(mktemp -d)
trap 'rm -rf --one-file-system "$work"' EXIT
mkdir -p "$target"
if apt_aside "$work" sid && (cd "$work" && aside download golang-k8s-api-dev >>log 2>&1); then
  dpkg-deb -x "$(find "$work" -maxdepth 1 -name '*.deb' | head -n 1)" "$work/root"
  found=$(find "$work/root" -type d -path '*/k8s.io/api/testdata/HEAD' | head -n 1)
  # All of it, or nothing: this may be ended meanwhile, or run twice at once.
  [ -z "$found" ] || { making=$(mktemp -d "$target/making.XXXXXX") && cp -r "$found" "$making/HEAD" && mv -T "$making/HEAD" "$target/HEAD" || true; rm -rf "$making"; }
fi
[ -d "$target/HEAD" ] || { echo "fetch_fixtures: none could be had:" >&2; tail -n 3 "$work/log" >&2; exit 1; }
