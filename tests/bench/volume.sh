#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `coraclectl volume export` and `import` compared with `tar --zstd` on the same files, in turns: 2 GB in 100,000 files, half of
# them text and half random. Both write to the disk and sync what they unpacked. Medians of the rounds; a ratio above 1 means that
# ours is faster.
. "$(dirname "$0")/lib.sh"
start_machine
quick && { rounds=1 directories=2; } || { rounds=3 directories=100; }
c apply -f - >/dev/null <<'Y' || exit 1
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 4Gi}}}}
Y
tree=$T/tree
for ((i = 0; i < directories; i++)); do
  mkdir -p "$tree/$i"
  if ((i % 2)); then seq "$i" 4000000; else openssl rand 20480000; fi | head -c 20480000 | split -b 20480 -a 3 - "$tree/$i/"
done
seconds() {  # seconds COMMAND...: prints its run time
  local began=$EPOCHREALTIME
  "$@" >"$T/said" 2>&1 || { echo "Bail out! $*: $(tail -n 1 "$T/said")" >&2; exit 1; }
  awk -v a="$began" -v b="$EPOCHREALTIME" 'BEGIN {printf "%.2f\n", b - a}'
}
tar_out() { tar --zstd -cf "$T/tar.tar.zst" -C "$tree" . && sync "$T/tar.tar.zst"; }
tar_in() { rm -rf "$T/unpacked" && mkdir "$T/unpacked" && sync -f "$T" && timed=$(seconds tar_in_now); }
tar_in_now() { tar --zstd -xpf "$T/tar.tar.zst" -C "$T/unpacked" && sync -f "$T/unpacked"; }
median() { sort -n "$1" | awk '{a[NR] = $1} END {print a[int((NR + 1) / 2)]}'; }
seconds tar_out >/dev/null
c volume import data "$T/tar.tar.zst" >/dev/null || exit 1
for ((i = 0; i < rounds; i++)); do
  sync; seconds tar_out >>"$T/tar.out"
  sync; seconds c volume export data "$T/ours.tar.zst" >>"$T/ours.out"
  tar_in && echo "$timed" >>"$T/tar.in"
  sync; seconds c volume import data "$T/ours.tar.zst" --replace >>"$T/ours.in"
  until_true 60 sh -c "! ls -A '$T/state/volumes' | grep -q removed"
done
for way in out in; do
  tar=$(median "$T/tar.$way") ours=$(median "$T/ours.$way")
  name=export; [ $way = out ] || name=import
  speed=$(awk -v a="$tar" -v b="$ours" 'BEGIN {printf "%.2f", a / b}')
  word=held; awk -v s="$speed" 'BEGIN {exit !(s < 0.9)}' && word=MISSED
  echo "bench: $word volume $name of $(find "$tree" -type f | wc -l) files, $(du -sm "$tree" | cut -f 1) MiB: $ours s; tar --zstd $tar s; speed $speed of tar's (bar 0.9)"
done
echo "bench: archives: ours $(stat -c %s "$T/ours.tar.zst"), tar's $(stat -c %s "$T/tar.tar.zst") bytes"
