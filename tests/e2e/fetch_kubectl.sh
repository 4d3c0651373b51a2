#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Unpacks kubectl of Debian 12, 13 and sid into $1/<suite>/kubectl.
# Installs nothing. Prints "<suite> <path> <version>" for each one that is available.
set -eu
target=${1:?usage: fetch_kubectl.sh DIRECTORY}
. "$(dirname "$0")/../apt_aside.sh"
mkdir -p "$target"
exec 9>"$target/lock"
flock 9  # several tests may run it at once

for suite in bookworm trixie sid; do
  binary=$target/$suite/kubectl
  if [ ! -x "$binary" ]; then
    work=$(mktemp -d)
    mkdir -p "$target/$suite"
    # A mirror that gets too many requests refuses for a moment.
    if apt_aside "$work" "$suite" || { sleep 5; apt_aside "$work" "$suite"; } || { sleep 20; apt_aside "$work" "$suite"; }; then
      for package in kubectl kubernetes-client; do  # Debian 12 only has the latter
        (cd "$work" && { aside download "$package" || { sleep 5; aside download "$package"; }; } >>log 2>&1) && break
      done
      deb=$(find "$work" -maxdepth 1 -name '*.deb' | head -n 1)
      if [ -n "$deb" ]; then
        dpkg-deb -x "$deb" "$work/root"
        found=$(find "$work/root" -type f -name kubectl -perm -100 | head -n 1)
        [ -z "$found" ] || { cp "$found" "$binary.new" && mv "$binary.new" "$binary"; }  # all of it, or nothing
      fi
    fi
    [ -x "$binary" ] || { echo "fetch_kubectl: none for $suite:" >&2; tail -n 3 "$work/log" >&2; }
    rm -rf "$work"
  fi
  [ ! -x "$binary" ] || echo "$suite $binary $("$binary" version --client -o json 2>/dev/null | sed -n 's/.*"gitVersion": *"\([^"]*\)".*/\1/p')"
done
