#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Volumes of claims on a separate disk with project quotas (ext4): enforced sizes, a disk that is absent at boot, a power cut;
# volumes on an NFS server; and disks with XFS, which has project quotas too, and with btrfs, which has none.
# TAP; skipped as a whole, with the reason, without qemu.
#   storage.sh [PART...]   only these: sizes away nfs xfs btrfs
set -uo pipefail
title="volumes in a virtual machine"
all_parts="sizes away nfs xfs btrfs"
. "$(dirname "$0")/machine.sh"

diagnose() { on 60 'journalctl -u coracled --no-pager -n 40; coraclectl get pods,pvc,pv -o wide; coraclectl get events | tail -n 30; findmnt -R /srv; ls -la /srv/*' | sed 's/^/  | /'; }

payload_of_build lib.sh storage.sh
pack
boot

check "files are installed" 120 "$unpack"'. /root/lib.sh && coracled --version' || exit 1
check "a disk for volumes; the node is ready" 300 'disk_of_volumes 400 && mkdir -p /etc/coracle && echo "volumeDirs: [$volumes]" >/etc/coracle/config.yaml && echo "/root/volumes.img $volumes ext4 loop,prjquota,noauto 0 0" >>/etc/fstab
systemctl daemon-reload; systemd-tmpfiles --create coracle.conf; systemctl enable --quiet --now coracled && until_true 100 ready && rootfs /root/box && coraclectl image pack /root/box localhost/busybox:latest --cmd sh' || { diagnose; exit 1; }

has_part() { [[ " $parts " == *" $1 "* ]]; }

# Claims small and other of 16 MiB, with the pods one and two; $1 ends all these names.
check_claims() { check "two claims, each with a pod" 180 "claim small$1 16Mi && claim other$1 16Mi && pod one$1 small$1 'sleep 1000000' && pod two$1 other$1 'sleep 1000000' && until_true 100 phase_is one$1 Running && until_true 100 phase_is two$1 Running"; }
check_sizes() {
  check "nothing says that sizes are not held" 60 "! events_of small$1 | grep SizeNotEnforced" || diagnose
  check "a pod that fills its volume gets no more than its size" 180 "held_to 16 one$1 && [ \"\$got\" -ge 14 ]" || diagnose
  check "… and sees how large it is" 60 "in_pod one$1 '/bin/busybox df -m /data' | grep -qw 16" || diagnose
  check "… which is nobody else's concern" 60 "is \"\$(fills two$1 8)\" 8" || diagnose
  check "a claim that asks for more gets it while its pod runs" 120 "coraclectl patch pvc small$1 --type=merge -p '{\"spec\":{\"resources\":{\"requests\":{\"storage\":\"48Mi\"}}}}' && until_true 20 capacity_is small$1 48Mi && held_to 48 one$1 && [ \"\$got\" -ge 45 ]" || diagnose
  check "who owns a volume may give it to another project, and is not held to its size" 60 "place=\$(place_of other$1) && number=\$(project_of \"\$place\") && [ \"\$number\" -gt 0 ] && echo \"\$number\" >/root/project && chattr -p 0 \"\$place\" && is \"\$(project_of \"\$place\")\" 0" || diagnose
  check "… until the node sees it, which takes a minute, and says so" 200 "until_true 100 has_project \"\$(place_of other$1)\" \"\$(cat /root/project)\" && until_true 20 has_event other$1 ProjectChanged && held_to 16 two$1" || diagnose
}

if has_part sizes || has_part away || has_part nfs; then check_claims "" || { diagnose; exit 1; }; fi
if has_part sizes; then
  check_sizes ""
  check "fifty claims come and go" 600 'for i in $(seq 50); do claim c$i 4Mi && pod p$i c$i "echo x >/data/x; sleep 1000000"; done >/dev/null && until_true 300 eval "[ \$(coraclectl get pods --no-headers | grep -cw Running) = 52 ]" && coraclectl delete pod $(seq -f p%g 50) >/dev/null && coraclectl delete pvc $(seq -f c%g 50) >/dev/null && until_true 60 eval "[ \$(ls -A $volumes | grep -cv -e lost+found -e .coracle) = 2 ]"' || diagnose
  check "… and leave no volume behind" 60 'is "$(coraclectl get pv --no-headers | wc -l)" 2' || diagnose

  check "a block device is a pod's device, and no other" 180 'block_claim && until_true 100 phase_is raw Running && in_pod raw "echo raw >/dev/disk && /bin/busybox sync" && sync && is "$(head -c 3 /root/block.img)" raw && ! in_pod one "/bin/busybox mknod /tmp/b b 7 0 && /bin/busybox head -c 1 /tmp/b" && coraclectl delete pod raw >/dev/null' || diagnose
fi

if has_part away; then
  check "a claim that will be deleted while its disk is away" 180 'claim leaves 4Mi && pod four leaves "sleep 1000000" && until_true 100 phase_is four Running && place_of leaves >/root/leaves' || diagnose
  check "a program writes, the plug is pulled" 60 'in_pod two "echo kept >/data/kept; /bin/busybox sync"; place=$(coraclectl get pv -o "jsonpath={.items[0].spec.local.path}"); echo "$place" >/root/place; sync' || diagnose
  "$vm/vm.py" cut "$T"
  boot
  check "the machine is up again, without the volumes' disk" 300 'until_true 100 ready && ! mountpoint -q $volumes' || diagnose
  check "the pods wait for it, and say so" 120 'until_true 60 eval "events_of two | grep -q \"does not exist\"" && is "$(of_pod two "{.status.containerStatuses[0].ready}")" false' || diagnose
  check "a new claim waits too" 120 'claim late 4Mi && pod three late "sleep 1000000" && until_true 60 eval "events_of late | grep -q mounted"; events_of late' || diagnose
  check "a claim is deleted: its volume waits for the disk, and says so" 120 'coraclectl delete pod four --wait=false; coraclectl delete pvc leaves --wait=false; until_true 60 eval "! coraclectl get pvc leaves" && until_true 60 eval "coraclectl get events | grep VolumeFailedDelete | grep -q mounted" && is "$(coraclectl get pv --no-headers | grep -c /leaves)" 1' || diagnose
  check "and nothing was written where the disk belongs" 60 'is "$(ls -A $volumes | wc -l)" 0' || diagnose
  check "with the disk all go on, and have what they had" 180 'disk_of_volumes && until_true 100 phase_is three Running && until_true 60 eval "[ \"\$(in_pod two \"/bin/busybox cat /data/kept\")\" = kept ]"' || diagnose
  check "what was deleted meanwhile goes, with its data and its quota" 120 'until_true 60 eval "is \"\$(coraclectl get pv --no-headers | grep -c /leaves)\" 0" && until_true 20 eval "! ls -A $volumes | grep -q _leaves_" && ! [ -e "$(cat /root/leaves)" ]' || diagnose
  check "and the sizes hold still" 120 'until_true 60 in_pod one true && most=$(coraclectl get pvc small -o jsonpath={.status.capacity.storage}) && held_to "${most%Mi}" one' || diagnose
fi

# ---- an NFS server on this same machine ----

if has_part nfs; then
  check "a server that shares a directory" 180 'nfs_server && systemctl is-active nfs-server' || diagnose
  check "two pods have it, one by a claim" 240 'share_claim && nfs_pod direct "nfs: {server: 127.0.0.1, path: /srv/share}" && nfs_pod claimed "persistentVolumeClaim: {claimName: share}" && until_true 100 phase_is direct Running && until_true 100 phase_is claimed Running' || diagnose
  check "what one writes the other reads" 60 'in_pod direct "echo shared >/data/file" && is "$(in_pod claimed "/bin/busybox cat /data/file")" shared && is "$(cat /srv/share/file)" shared' || diagnose
  check "it is mounted by the volume's options, once for each" 60 'is "$(shares | wc -l)" 2 && shares | grep -q "vers=4.1"' || diagnose
  check "the server is not heard any more: others are as before" 240 'silence_server && claim aside 4Mi && pod aside aside "sleep 1000000" && until_true 60 phase_is aside Running && in_pod two true' || diagnose
  check "a pod that has a share goes all the same" 240 'coraclectl delete pod direct --wait=false && until_true 60 eval "! coraclectl get pod direct"' || diagnose
  check "… and leaves no mount" 60 'until_true 20 eval "is \"\$(shares | wc -l)\" 1"' || diagnose
  check "the daemon starts anew meanwhile" 120 'systemctl restart coracled && until_true 60 ready && until_true 60 phase_is claimed Running' || diagnose
  check "the server is heard again: what waited goes on" 120 'hear_server && until_true 60 eval "[ \"\$(in_pod claimed \"/bin/busybox cat /data/file\")\" = shared ]"' || diagnose
  check "a server that is stopped: a pod waits for it, and says so" 240 'coraclectl delete pod claimed >/dev/null; systemctl stop nfs-server; nfs_pod late "nfs: {server: 127.0.0.1, path: /srv/share}" && until_true 100 eval "events_of late | grep -q \"FailedMount: MountVolume.SetUp failed for volume .data. : mount failed: exit status 32: mount.nfs\""; events_of late' || diagnose
  check "… and runs once it is there" 240 'systemctl start nfs-server && until_true 120 phase_is late Running && is "$(in_pod late "/bin/busybox cat /data/file")" shared' || diagnose
  check "a directory that is not shared is refused in the program's words" 240 'nfs_pod wrong "nfs: {server: 127.0.0.1, path: /srv/other}" && until_true 100 eval "events_of wrong | grep -q \"mount.nfs:.*\(No such file\|access denied\)\""; events_of wrong' || diagnose
  check "the pods go, and no share stays" 240 'coraclectl delete pod late wrong --wait=false >/dev/null; until_true 60 eval "[ \"\$(shares | wc -l)\" = 0 ] && ! coraclectl get pod late" && is "$(cat /srv/share/file)" shared' || diagnose
fi

# ---- other file systems ----

# The largest disk gets the new volumes.
if has_part xfs; then
  check "a larger disk with XFS" 240 'another_disk xfs 1024 prjquota' || diagnose
  check_claims -xfs || diagnose
  check "which are on that disk" 60 'place_of small-xfs | grep "^/srv/xfs/"' || diagnose
  check_sizes -xfs
  check "they go, with their quotas" 180 'coraclectl delete pod one-xfs two-xfs >/dev/null && coraclectl delete pvc small-xfs other-xfs >/dev/null && until_true 60 is_empty /srv/xfs && until_true 20 has_no_quotas /srv/xfs' || diagnose
fi
if has_part btrfs; then
  check "a still larger disk with btrfs" 240 'another_disk btrfs 1536 defaults' || diagnose
  check "a claim and its pod, which writes more than its size" 180 'claim free 4Mi && pod free free "/bin/busybox dd if=/dev/zero of=/data/filler bs=1048576 count=8; sleep 1000000" && until_true 100 phase_is free Running && place_of free | grep "^/srv/btrfs/"' || diagnose
  check "an event says that nothing holds it to its size" 60 'has_event free "SizeNotEnforced: .* on /srv/btrfs/.*: the file system does not count by projects"' || diagnose
  check "… and then that it holds more" 360 'until_true 100 has_event free "SizeExceeded: the volume holds .*, more than its 4Mi"' || diagnose
  check "it goes" 180 'coraclectl delete pod free >/dev/null && coraclectl delete pvc free >/dev/null && until_true 60 is_empty /srv/btrfs' || diagnose
fi
echo "1..$n"
[ "$failures" -eq 0 ]
