#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# systemd/package.sh --repository: what it lays out, as apt reads it. The packages are empty ones made here. And what a build of it
# asks for, where mmdebstrap is played; a real one: package.sh. TAP.
set -uo pipefail
source=${CORACLE_SOURCE:-$(cd "$(dirname "$0")/../.." && pwd)}
n=0 bad=0
T=$(mktemp -d)
trap 'GNUPGHOME=$T/gnupg gpgconf --kill all 2>/dev/null; rm -rf "$T"' EXIT
ok() { n=$((n + 1)); echo "ok $n - $*"; }
not_ok() { n=$((n + 1)); bad=1; echo "not ok $n - $*"; }
check() { local name=$1 out; shift; if out=$("$@" 2>&1); then ok "$name"; else not_ok "$name"; echo "$out" | sed 's/^/  | /' | tail -n 30; fi; }
is() { local name=$1 want=$2 got=$3; if [ "$got" = "$want" ]; then ok "$name"; else not_ok "$name"; printf '  | wanted: %s\n  | got:    %s\n' "$want" "$got"; fi; }
fails() { local name=$1 words=$2 out; shift 2; if out=$("$@" 2>&1); then not_ok "$name"; elif grep -q -- "$words" <<<"$out"; then ok "$name"; else not_ok "$name"; echo "$out" | sed 's/^/  | /'; fi; }
for each in gpg apt-get dpkg-deb; do
  command -v $each >/dev/null || { echo "ok 1 - repository # SKIP $each is missing"; exit 77; }
done
package() { TMPDIR=$T "$source/systemd/package.sh" "$@"; }

make_package() {  # make_package VERSION ARCH
  mkdir -p "$T/empty/DEBIAN" "$T/packages"
  printf 'Package: coracle\nVersion: %s\nArchitecture: %s\nMaintainer: Nobody <nobody@example.org>\nDescription: empty\n of two lines\n' \
    "$1" "$2" >"$T/empty/DEBIAN/control"
  dpkg-deb --root-owner-group -Zgzip -b "$T/empty" "$T/packages/coracle_$1_$2.deb" >/dev/null
}
make_package 0.1~deb12 amd64 && make_package 0.2~deb12 amd64 && make_package 0.2~deb12 arm64 && make_package 0.2~deb13 amd64 ||
  { echo "Bail out! dpkg-deb makes no package"; exit 1; }
(umask 077; mkdir "$T/gnupg")
gpg_here() { GNUPGHOME=$T/gnupg gpg --batch --quiet --passphrase '' --pinentry-mode loopback "$@"; }
gpg_here --quick-gen-key 'Packages <packages@example.org>' ed25519 sign never 2>/dev/null && gpg_here --armor --export-secret-keys >"$T/key.asc" &&
  gpg_here --armor --export >"$T/public.asc" || { echo "Bail out! gpg makes no key"; exit 1; }

# apt with nothing of this machine's. reads SUITE ARCH OPTIONS ARGUMENTS...
reads() {
  local state=$T/apt-$1-$2 suite=$1 arch=$2 options=$3
  shift 3
  mkdir -p "$state/lists/partial" "$state/archives/partial" "$state/etc/preferences.d"
  : >"$state/status"
  echo "deb [$options] file://$T/repository $suite main" >"$state/etc/coracle.list"
  (cd "$state" && "$@" -o APT::Architecture="$arch" -o APT::Architectures="$arch" -o Dir::Etc="$state/etc" -o Dir::Etc::SourceList="$state/etc/coracle.list" \
    -o Dir::Etc::SourceParts=/dev/null -o Dir::Etc::Parts=/dev/null -o Dir::Etc::Trusted=/dev/null -o Dir::Etc::TrustedParts=/dev/null \
    -o Dir::State="$state" -o Dir::State::Lists="$state/lists" -o Dir::State::status="$state/status" -o Dir::Cache="$state" \
    -o APT::Sandbox::User="$(id -un)" -o APT::Update::Error-Mode=any)
}
candidate() { reads "$1" "$2" "$3" apt-cache policy coracle | sed -n 's/^ *Candidate: //p'; }

check "a signed repository is laid out" package --output "$T/packages" --repository "$T/repository" --key "$T/key.asc"
signed=signed-by=$T/repository/coracle.gpg
check "apt reads it, by its key" reads bookworm amd64 "$signed" apt-get update
is "… and takes the later version" 0.2~deb12 "$(candidate bookworm amd64 "$signed")"
check "apt downloads it and finds it whole" reads bookworm amd64 "$signed" apt-get download coracle
check "… as it was" cmp "$T/apt-bookworm-amd64/coracle_0.2~deb12_amd64.deb" "$T/packages/coracle_0.2~deb12_amd64.deb"
check "the other processor's is there" reads bookworm arm64 "$signed" apt-get update
is "… and another Debian's" "0.2~deb12 0.2~deb13" \
  "$(candidate bookworm arm64 "$signed") $(reads trixie amd64 "$signed" apt-get update >/dev/null 2>&1; candidate trixie amd64 "$signed")"
GNUPGHOME=$T/gnupg gpg --batch --quiet --pinentry-mode loopback --passphrase '' --quick-gen-key 'Other <other@example.org>' ed25519 sign never 2>/dev/null
gpg_here --export 'Other' >"$T/other.gpg"
fails "another key is not enough" "NO_PUBKEY\|not signed" reads bookworm amd64 "signed-by=$T/other.gpg" apt-get update
sed -i 's/0.2~deb12/0.3~deb12/' "$T/repository/dists/bookworm/Release"
printf 'Package: other\n' >>"$T/repository/dists/bookworm/main/binary-amd64/Packages"
rm "$T/repository/dists/bookworm/main/binary-amd64/Packages.gz"; rm -rf "$T/apt-bookworm-amd64"
fails "what was changed after signing is refused" "unexpected size\|[Hh]ash" reads bookworm amd64 "$signed" apt-get update

rm -rf "$T"/packages/*~deb13* "$T"/packages/coracle_0.1*
check "laid out again, without a key" package --output "$T/packages" --repository "$T/repository"
fails "apt refuses what is not signed" "not signed" reads bookworm amd64 "signed-by=$T/other.gpg" apt-get update
check "… unless it is told to trust" reads bookworm amd64 trusted=yes apt-get update
is "packages that are there already stay" "0.1~deb12 0.2~deb12" \
  "$(reads bookworm amd64 trusted=yes apt-cache madison coracle | awk '{print $3}' | sort | tr '\n' ' ' | sed 's/ $//')"
check "README says how to use it" grep -q 'trusted=yes' "$T/repository/README"

# ---- a build ----

mkdir "$T/played" "$T/source"
cat >"$T/played/mmdebstrap" <<PLAYED
#!/bin/bash
echo "\$TMPDIR" >"$T/place"
printf '%s\n' "\$@" >"$T/arguments"
[ ! -e "$T/broken" ] || { echo "E: no space left on device"; exit 1; }
for each; do
  case \$each in
    --customize-hook=copy-in*)  read -r _ source script _ <<<"\$each"; rm -rf "$T/source"; cp -r "\$source" "$T/source"; cp "\$script" "$T/script" ;;
    --customize-hook=copy-out*) mkdir "\${each##* }/out"; : >"\${each##* }/out/coracle_1.0~deb12_armhf.deb" ;;
  esac
done
PLAYED
chmod +x "$T/played/mmdebstrap"
build() { PATH=$T/played:$PATH package --arch armhf --suite bookworm --version 1.0 --jobs 3 --output "$T/built"; }
check "a package is built for another processor" build
check "… and is where it is said to be" test -e "$T/built/coracle_1.0~deb12_armhf.deb"
check "its root is beside the rest of the work, not in memory" grep -q "^$T/coracle-package\." "$T/place"
is "… of this processor and that one" "--architectures=$(dpkg --print-architecture),armhf" "$(grep architectures "$T/arguments")"
check "… with that one's libraries and compilers" bash -c 'grep "^--include=" "$1" | grep "libboost-json1.81-dev:armhf" | grep -q "crossbuild-essential-armhf"' - "$T/arguments"
is "the source has debian/, of that version" "coracle (1.0~deb12) bookworm; urgency=medium" "$(head -n 1 "$T/source/debian/changelog")"
check "… whose control names what it takes, and nothing is left to fill in" bash -c 'grep "^Build-Depends: debhelper-compat (= 13), .*python3:any" "$1" && ! grep @ "$1" | grep -v "^Maintainer"' - "$T/source/debian/control"
check "… for that processor" grep -q -- '--host-arch=armhf' "$T/script"
is "nothing is left of the work" "" "$(find "$T" -maxdepth 1 -name 'coracle-package.*')"
touch "$T/broken"
fails "a build that fails says why" "no space left on device" build
check "… and keeps its log" grep -q "no space left" "$T/built/build.log"

fails "no packages are an error" "no packages" package --output "$T/none" --repository "$T/other"
fails "what is no key is an error" "no secret key" package --output "$T/packages" --repository "$T/other" --key "$source/README.md"
fails "a public key is an error" "no secret key" package --output "$T/packages" --repository "$T/other" --key "$T/public.asc"
fails "an unknown processor is an error" "not riscv64" package --arch riscv64
fails "an unknown suite is an error" "not sid" package --suite sid
fails "an unknown option is an error" "unknown option --nonsense" package --nonsense
exit $bad
