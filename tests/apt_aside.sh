# SPDX-License-Identifier: Apache-2.0
# For sh, to be sourced: apt with its own lists, to unpack packages for tests. It supports any suite of Debian, packages and
# sources; it installs nothing, and does not change the machine's own lists.
#   apt_aside DIRECTORY SUITE    creates the lists there; 1 if that fails, with apt's messages in DIRECTORY/log
#   aside COMMAND ARGUMENT…      apt-get with these lists
# CORACLE_DEBIAN_MIRROR sets the mirror; the default is the one that this machine uses.

debian_mirror() {
  if [ -n "${CORACLE_DEBIAN_MIRROR:-}" ]; then echo "$CORACLE_DEBIAN_MIRROR"; return; fi
  { grep -rhE --include='*.list' --include='*.sources' '^(deb|URIs:) ' /etc/apt/sources.list /etc/apt/sources.list.d 2>/dev/null |
      grep -oE 'https?://[^ ]+/debian/?( |$)' | tr -d ' '
    echo http://deb.debian.org/debian; } | head -n 1
}

apt_aside() {
  aside_dir=$1
  mkdir -p "$1/parts" "$1/lists/partial" "$1/archives/partial"
  chmod 755 "$1"
  printf 'Types: deb deb-src\nURIs: %s\nSuites: %s\nComponents: main\nSigned-By: /usr/share/keyrings/debian-archive-keyring.gpg\n' \
    "$(debian_mirror)" "$2" >"$1/parts/debian.sources"
  : >"$1/status"  # independent of the packages installed here
  aside update >"$1/log" 2>&1
}

aside() {  # sid's lists expire after a week, and the clock may be wrong
  apt-get -q -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$aside_dir/parts" -o Dir::State::Lists="$aside_dir/lists" \
    -o Dir::State::status="$aside_dir/status" -o Dir::Cache="$aside_dir" -o APT::Sandbox::User=root -o Acquire::Check-Valid-Until=false \
    -o APT::Update::Error-Mode=any "$@"
}
