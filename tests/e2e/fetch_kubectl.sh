#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Unpacks kubectl of Debian 12, 13 and sid aside, into $1/<suite>/kubectl, from the mirror this machine already uses.
# Installs nothing and leaves apt's own lists alone. Prints "<suite> <path> <version>" for each one that could be had.
set -eu
target=${1:?usage: fetch_kubectl.sh DIRECTORY}
mirror=$(grep -rhoE 'https?://[^ ]+/debian/?( |$)' /etc/apt/sources.list /etc/apt/sources.list.d 2>/dev/null | head -n 1 | tr -d ' ')
[ -n "$mirror" ] || mirror=$(grep -rhE '^URIs:' /etc/apt/sources.list.d 2>/dev/null | awk '{print $2}' | grep -v security | head -n 1)
[ -n "$mirror" ] || { echo "fetch_kubectl: no Debian mirror in /etc/apt/sources.list" >&2; exit 1; }

for suite in bookworm trixie sid; do
  binary=$target/$suite/kubectl
  if [ ! -x "$binary" ]; then
    work=$(mktemp -d)
    mkdir -p "$work/lists/partial" "$work/archives/partial" "$work/parts" "$target/$suite"
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main" > "$work/sources.list"
    set -- -o Dir::Etc::sourcelist="$work/sources.list" -o Dir::Etc::sourceparts="$work/parts" \
           -o Dir::State::lists="$work/lists" -o Dir::State::status="$work/status" \
           -o Dir::Cache="$work" -o APT::Sandbox::User=root -o Acquire::Check-Valid-Until=false -q  # sid's lists age in a week; a clock may be off
    : > "$work/status"  # what is installed here must not matter
    chmod 755 "$work"
    if apt-get "$@" update >"$work/log" 2>&1; then
      for package in kubectl kubernetes-client; do  # Debian 12 has only the latter
        (cd "$work" && apt-get "$@" download "$package" >>log 2>&1) && break
      done
      deb=$(find "$work" -maxdepth 1 -name '*.deb' | head -n 1)
      if [ -n "$deb" ]; then
        dpkg-deb -x "$deb" "$work/root"
        found=$(find "$work/root" -type f -name kubectl -perm -100 | head -n 1)
        [ -z "$found" ] || cp "$found" "$binary"
      fi
    fi
    [ -x "$binary" ] || { echo "fetch_kubectl: none for $suite:" >&2; tail -n 3 "$work/log" >&2; }
    rm -rf "$work"
  fi
  [ ! -x "$binary" ] || echo "$suite $binary $("$binary" version --client -o json 2>/dev/null | sed -n 's/.*"gitVersion": *"\([^"]*\)".*/\1/p')"
done
