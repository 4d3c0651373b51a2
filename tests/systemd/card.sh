#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The scripts of a card's image (systemd/card), in a root made here; the daemon, the client, mounts and disks are played. A card that
# boots: tests/vm/card.sh. TAP.
set -uo pipefail
source=${CORACLE_SOURCE:-$(cd "$(dirname "$0")/../.." && pwd)}
n=0 bad=0
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
ok() { n=$((n + 1)); echo "ok $n - $*"; }
not_ok() { n=$((n + 1)); bad=1; echo "not ok $n - $*"; }
check() { local name=$1 out; shift; if out=$("$@" 2>&1); then ok "$name"; else not_ok "$name"; echo "$out" | sed 's/^/  | /' | tail -n 30; fi; }
is() { local name=$1 want=$2 got=$3; if [ "$got" = "$want" ]; then ok "$name"; else not_ok "$name"; printf 'wanted: %s\ngot:    %s\n' "$want" "$got" | sed 's/^/  | /'; fi; }
fails() { local name=$1 words=$2 out; shift 2; if out=$("$@" 2>&1); then not_ok "$name"; elif grep -q -- "$words" <<<"$out"; then ok "$name"; else not_ok "$name"; echo "$out" | sed 's/^/  | /'; fi; }

mkdir "$T/played" && : >"$T/calls"
play() { printf '#!/bin/sh\necho "%s $*" >>"%s/calls"\n%s\n' "$1" "$T" "${2:-}" >"$T/played/$1"; chmod +x "$T/played/$1"; }
calls() { local all; all=$(tr '\n' ';' <"$T/calls" 2>/dev/null); : >"$T/calls"; echo "$all"; }
R=$T/root card=$T/root/boot/firmware/coracle
run() { PATH=$T/played:$PATH CARD_ROOT=$R "$source/systemd/card/$1" "${@:2}" >"$T/out" 2>&1; }

# ---- what the owner puts on the card ----

play coracled "file=\$2 directory=\$(sed -n 's/^configDir: //p' \"\$2\"); [ -z \"\$directory\" ] || file=\$directory/registries.yaml
! grep -q wrong \"\$file\" || { echo \"coracled: \$file: unknown field \\\"wrong\\\"\" >&2; exit 2; }"
play coraclectl "case \$1 in apply) ! grep -q wrong \"\$3\" || { echo 'created: one'; echo \"\$3: no such kind\" >&2; exit 1; } ;; image) case \$3 in *damaged*) echo 'the archive holds no image' >&2; exit 1 ;; esac ;; esac"
play mount
play hostname
play agetty
play ssh-keygen "for last; do :; done; case \$1 in -l) grep -q ^ssh- \"\$last\" || { echo 'not a public key' >&2; exit 1; } ;; -q) [ ! -e \"\$last\" ] || exit 1; echo key >\"\$last\"; echo public >\"\$last.pub\" ;; esac"
mkdir -p "$R/boot/firmware" "$R/run" "$R/var/lib" "$R/etc/ssh" "$R/etc/NetworkManager"

run take-in settings
is "a card without the directory is no mistake" "0 " "$? $(calls)"

mkdir -p "$card"/{manifests,images,network}
: >"$R/etc/ssh/ssh_host_ed25519_key.new"  # the power went off
printf '\xef\xbb\xbfpodPidsLimit: 64\r\nlogLevel: notice\r\n' >"$card/config.yaml"
printf 'shop-7\r\n' >"$card/hostname"
echo 'configs: {}' >"$card/registries.yaml"
echo 'ssh-ed25519 AAAA owner' >"$card/authorized_keys"
printf '# of the shop\n[Match]\nName=eth0\n' >"$card/network/10-shop.network"
printf '[connection]\nid=shop\n' >"$card/network/shop.nmconnection"
touch "$card/.DS_Store" "$card/README.txt" "$card/network/._shop.nmconnection"
run take-in settings
is "settings are taken in" 0 $?
is "… without what Windows' editors add" "podPidsLimit: 64|logLevel: notice|" "$(tr '\n' '|' <"$R/etc/coracle/config.yaml")"
is "… the registries, for root only" "configs: {} 600" "$(cat "$R/etc/coracle/registries.yaml") $(stat -c %a "$R/etc/coracle/registries.yaml")"
is "… the name" "shop-7 127.0.1.1 shop-7" "$(cat "$R/etc/hostname") $(grep shop "$R/etc/hosts")"
is "… keys, where sshd looks, and one of the machine's own" "ssh-ed25519 AAAA owner key" "$(cat "$R/etc/ssh/authorized_keys/root" "$R/etc/ssh/ssh_host_ed25519_key" | tr '\n' ' ' | sed 's/ $//')"
is "… of which nothing half is left" "ssh_host_ed25519_key ssh_host_ed25519_key.pub" "$(cd "$R/etc/ssh" && ls -d ssh_host_* | tr '\n' ' ' | sed 's/ $//')"
is "… the network, where secrets are private" "644 600" "$(stat -c %a "$R/etc/systemd/network/10-shop.network" "$R/etc/NetworkManager/system-connections/shop.nmconnection" | tr '\n' ' ' | sed 's/ $//')"
is "nothing is written to the partition" "" "$(grep ^mount "$T/calls"; find "$card" -name '*.error.txt'; cat "$R/run/coracle-card.issue" 2>/dev/null)"
calls >/dev/null
echo "changed: here" >"$R/etc/coracle/config.yaml"
run take-in settings
is "at the next start nothing is taken in again" "changed: here " "$(cat "$R/etc/coracle/config.yaml") $(calls)"
echo "podPidsLimit: 65" >"$card/config.yaml"
run take-in settings
is "… but what has changed" "podPidsLimit: 65" "$(cat "$R/etc/coracle/config.yaml")"
calls >/dev/null

echo "wrong: 1" >"$card/config.yaml"
echo "Shop 7" >"$card/hostname"
echo "wrong: 1" >"$card/registries.yaml"
echo "no key" >"$card/authorized_keys"
echo "Name=eth0" >"$card/network/10-shop.network"
touch "$card/manifests.yaml" "$card/config.yaml.txt"
run take-in settings
is "mistakes are no reason not to start" 0 $?
is "what was there before stays" "podPidsLimit: 65 shop-7 [Match]" "$(cat "$R/etc/coracle/config.yaml" "$R/etc/hostname" | tr '\n' ' ')$(sed -n 2p "$R/etc/systemd/network/10-shop.network")"
is "each has its reason beside it" "authorized_keys config.yaml config.yaml.txt hostname manifests.yaml network/10-shop.network registries.yaml " \
  "$(cd "$card" && find . -name '*.error.txt' | sed 's|^\./||; s|\.error\.txt$||' | sort | tr '\n' ' ')"
check "… in the program's words, by the name on the card" grep -qx 'config.yaml: unknown field "wrong"' "$card/config.yaml.error.txt"
check "… whatever file it is in" grep -qx 'registries.yaml: unknown field "wrong"' "$card/registries.yaml.error.txt"
check "… a name whose end Windows hides is told" grep -q 'ends in .txt' "$card/config.yaml.txt.error.txt"
is "… all are shown at the consoles" 8 "$(wc -l <"$R/run/coracle-card.issue" | awk '{print $1 - 1}')"
check "… by name and reason" grep -qx 'coracle/hostname: "Shop7" is no host name: small letters, digits and - within' "$R/run/coracle-card.issue"
is "the partition can be written to for that time only" "mount -o remount,rw $R/boot/firmware mount -o remount,ro $R/boot/firmware" "$(grep ^mount "$T/calls" | tr '\n' ' ' | sed 's/ $//')"
echo '-----BEGIN OPENSSH PRIVATE KEY-----' >"$card/authorized_keys"
run take-in settings
check "a private key is told to be one" grep -q '^it holds a private key' "$card/authorized_keys.error.txt"
is "… and is not copied" "ssh-ed25519 AAAA owner" "$(cat "$R/etc/ssh/authorized_keys/root")"
calls >/dev/null
run take-in settings
is "a reason that is there already is not written again" "" "$(grep ^mount "$T/calls")"
echo "podPidsLimit: 66" >"$card/config.yaml"
rm "$card/hostname" "$card/authorized_keys" "$card/registries.yaml" "$card/manifests.yaml" "$card/config.yaml.txt"
echo '[Match]' >"$card/network/10-shop.network"
run take-in settings
is "what is corrected or gone has no reason any more" "podPidsLimit: 66 " "$(cat "$R/etc/coracle/config.yaml") $(find "$card" -name '*.error.txt'; ls "$R/run")"

play mount 'case $* in *remount,rw*) exit 32 ;; esac'
echo "wrong: 1" >"$card/config.yaml"
run take-in settings
is "where the partition cannot be written to, the reason is at the consoles" 'coracle/config.yaml: config.yaml: unknown field "wrong"' \
  "$(sed -n 2p "$R/run/coracle-card.issue")$(find "$card" -name '*.error.txt')"
play mount
echo "podPidsLimit: 66" >"$card/config.yaml"
run take-in settings
is "… until it is corrected" "" "$(ls "$R/run")"

mkdir "$card/certificates"
printf '%s\r\n' '-----BEGIN CERTIFICATE-----' 'AAAA' '-----END CERTIFICATE-----' >"$card/certificates/shop.crt"
printf '%s\n' '-----BEGIN PRIVATE KEY-----' 'AAAA' '-----END PRIVATE KEY-----' >"$card/certificates/shop.key"
cat "$card/certificates/shop.crt" "$card/certificates/shop.key" >"$card/certificates/client.pem"
echo 'no PEM' >"$card/certificates/other.pem"
touch "$card/certificates/shop.p12"
run take-in settings
is "files that registries.yaml names are taken in, keys for root only" "-----BEGIN CERTIFICATE-----|AAAA|-----END CERTIFICATE-----| 644 600 600" \
  "$(tr '\n' '|' <"$R/etc/coracle/certificates/shop.crt") $(stat -c %a "$R"/etc/coracle/certificates/{shop.crt,shop.key,client.pem} | tr '\n' ' ' | sed 's/ $//')"
is "… what is none has its reason" "certificates/other.pem certificates/shop.p12 " \
  "$(cd "$card" && find . -name '*.error.txt' | sed 's|^\./||; s|\.error\.txt$||' | sort | tr '\n' ' ')"
check "… in plain words" grep -q '^it has nothing in PEM' "$card/certificates/other.pem.error.txt"
is "… and is not there" "client.pem shop.crt shop.key" "$(ls "$R/etc/coracle/certificates" | tr '\n' ' ' | sed 's/ $//')"
rm -r "$card/certificates"
run take-in settings
is "… and none without its file" "" "$(find "$card" -name '*.error.txt')"

# ---- objects ----

calls >/dev/null
echo "kind: Pod" >"$card/manifests/10-pod.yaml"
echo "wrong" >"$card/manifests/20-other.yml"
touch "$card/manifests/notes.doc"
echo archive >"$card/images/app one.tar.gz"
echo archive >"$card/images/damaged.tar"
run take-in objects
is "images come first, then manifests, each by name" "image image wait apply apply" "$(sed -n 's/^coraclectl \([a-z]*\).*/\1/p' "$T/calls" | tr '\n' ' ' | sed 's/ $//')"
check "… a name may have a space" grep -qx "coraclectl image import $card/images/app one.tar.gz" "$T/calls"
is "what is refused has the reason beside it, by the name on the card" "manifests/20-other.yml: no such kind|the archive holds no image|" \
  "$(for each in manifests/20-other.yml images/damaged.tar; do sed -n '/^Correct/q; p' "$card/$each.error.txt" | grep . | tail -n 1; done | tr '\n' '|')"
check "… a file of another kind too" test -s "$card/manifests/notes.doc.error.txt"
calls >/dev/null
run take-in objects
is "at the next start only those are tried again" "image wait apply" "$(sed -n 's/^coraclectl \([a-z]*\).*/\1/p' "$T/calls" | tr '\n' ' ' | sed 's/ $//')"
is "the list of what was taken in has each name once" "" "$(cut -d ' ' -f 2- "$R/var/lib/coracle-card/taken" | sort | uniq -d)"
fails "a word that there is not" "unknown word" env CARD_ROOT="$R" "$source/systemd/card/take-in" nonsense

# ---- the size of the card ----

sys=$R/sys/devices/mmc/block/mmcblk0
mkdir -p "$sys"/mmcblk0p1 "$sys/mmcblk0p2" "$R/sys/class/block"
ln -s ../../devices/mmc/block/mmcblk0/mmcblk0p2 "$R/sys/class/block/mmcblk0p2"
numbers() { echo "$1" >"$sys/size"; printf '1\n' >"$sys/mmcblk0p1/partition"; echo 8192 >"$sys/mmcblk0p1/start"; echo 524288 >"$sys/mmcblk0p1/size"
  printf '2\n' >"$sys/mmcblk0p2/partition"; echo 532480 >"$sys/mmcblk0p2/start"; echo "$2" >"$sys/mmcblk0p2/size"; echo "$3" >"$T/blocks"; }
play findmnt 'echo /dev/mmcblk0p2'
play sfdisk "cat >>'$T/calls'; echo 61000000 >'$sys/mmcblk0p2/size'"
play partx
play dumpe2fs "echo 'Block count:              '\$(cat '$T/blocks'); echo 'Block size:               4096'"
play resize2fs
steps() { grep -E '^(sfdisk|partx|resize2fs|,)' "$T/calls" | tr '\n' ';'; : >"$T/calls"; }
numbers 62333952 2097152 262144
run grow /
is "the last partition, then its file system, become as large as the card" \
  "sfdisk --quiet --no-reread --force -N 2 /dev/mmcblk0;, +;partx --update --nr 2 /dev/mmcblk0;resize2fs /dev/mmcblk0p2;" "$(steps)"
numbers 62333952 61800000 262144
run grow /
is "… the second also where the power went off between" "resize2fs /dev/mmcblk0p2;" "$(steps)"
numbers 62333952 61800000 7725000
run grow /
is "… and neither at later starts" "" "$(steps)"
numbers 62333952 2097152 262144
mkdir "$sys/mmcblk0p3" && echo 3 >"$sys/mmcblk0p3/partition" && echo 40000000 >"$sys/mmcblk0p3/start"
run grow /
is "what has another partition behind it stays as it is" "0 " "$? $(steps)"

# ---- kernels ----

B=$R/boot/firmware
mkdir -p "$B/loader/entries" "$R/etc/kernel"
echo "root=LABEL=coracle-root rw" >"$R/etc/kernel/cmdline"
kernel() { echo "kernel $1" >"$R/boot/vmlinuz-$1"; echo "initrd $1" >"$R/boot/initrd.img-$1"; }
on_card() { (cd "$B" && ls -d vmlinuz-* initrd.img-* | tr '\n' ' '); }
play findmnt 'exit 1'
kernel 6.1.0-9
run boot-files
is "the first kernel is copied" "initrd.img-6.1.0-9 vmlinuz-6.1.0-9 " "$(on_card)"
is "… and its entry names it" "linux /vmlinuz-6.1.0-9|initrd /initrd.img-6.1.0-9|options root=LABEL=coracle-root rw|" "$(sed -n '3,$p' "$B/loader/entries/coracle.conf" | tr '\n' '|')"
echo "kernel 6.1.0-10" >"$R/boot/vmlinuz-6.1.0-10"
run boot-files
check "a kernel without its initrd waits for it" grep -qx "linux /vmlinuz-6.1.0-9" "$B/loader/entries/coracle.conf"
kernel 6.1.0-10
run boot-files
is "a new one has the first entry, the one before the second" "6.1.0-10 6.1.0-9" "$(sed -n 's/^version //p' "$B/loader/entries/coracle.conf" "$B/loader/entries/coracle-before.conf" | tr '\n' ' ' | sed 's/ $//')"
kernel 6.1.0-11
echo half >"$B/vmlinuz-6.1.0-11.new"  # the power went off
echo owner >"$B/mine.new"
run boot-files
is "of three, two stay; what a power cut left goes" "initrd.img-6.1.0-10 initrd.img-6.1.0-11 vmlinuz-6.1.0-10 vmlinuz-6.1.0-11 " "$(on_card)"
check "… and not what the owner has there" grep -qx owner "$B/mine.new"
echo "initrd anew" >"$R/boot/initrd.img-6.1.0-11"
run boot-files
is "an initrd that was made anew is copied" "initrd anew" "$(cat "$B/initrd.img-6.1.0-11")"
play findmnt 'echo ro,umask=0022'
play mount 'case $* in *remount,ro*) exit 32 ;; esac'
calls >/dev/null
run boot-files
is "a partition that cannot be made read-only again is no reason for a kernel not to install" \
  "0 mount -o remount,rw $B;mount -o remount,ro $B;" "$? $(grep ^mount "$T/calls" | tr '\n' ';')"
play findmnt 'exit 1'
play mount
rm -r "$B/loader"
run boot-files
is "a partition that is not mounted is no reason for a kernel not to install" 0 $?

# ---- image.sh ----

image=$source/systemd/image.sh
check "--help needs no root" bash -c '"$1" --help | grep -q -- --read-only' - "$image"
fails "an unknown board is an error" "not pc" "$image" --suite trixie --board pc
fails "an unknown suite is an error" "not sid" "$image" --suite sid
fails "an unknown option is an error" "unknown option --nonsense" "$image" --nonsense
fails "a name that says no format is an error" "ends in .img" "$image" --suite trixie --output "$T/card.iso"
for unit in "$source"/systemd/card/*.service; do
  sed -E 's#^(ExecStart)=[^ ]+#\1=/bin/true#; s#@GROWS@#/#' "$unit" >"$T/${unit##*/}"
done
sed -E 's#^(Exec(Start|Stop)(Post)?)=-?[^ ]+#\1=/bin/true#' "$source/systemd/coracled.service" >"$T/coracled.service"
sed -E 's#^(Exec(Start|Stop)(Post)?)=-?[^ ]+#\1=/bin/true#' "$source/systemd/coracle-pods.service" >"$T/coracle-pods.service"
if command -v systemd-analyze >/dev/null; then
  said=$(systemd-analyze verify --man=no "$T"/*.service 2>&1)
  is "systemd-analyze verify finds nothing in the card's units" "" "$said"
else
  ok "systemd-analyze verify # SKIP systemd-analyze is not here"
fi
exit $bad
