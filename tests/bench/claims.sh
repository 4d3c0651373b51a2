#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The resources that are left a minute after hundreds of claims, each with a pod, were deleted: directories, mounts, quota
# projects (on a file system that has them, where this machine can make one), threads, and the daemon's memory. Then the time from
# the POST of a pod with a new claim of the default class to its first instruction, in turns with a pod with an emptyDir, both on
# the machine's own disk.
. "$(dirname "$0")/lib.sh"
volumes=$T/state/volumes
finish() { local status=$?; ! mountpoint -q "$volumes" || umount -l "$volumes"; (exit $status); cleanup; }
start_machine
trap finish EXIT
# 40 s: memory is freed after 4 s of rest, and again 25 s later, when the threads that had nothing to do have ended (idle_detector.h).
quick && { claims=20 at_once=10 seconds=40 count=10; } || { claims=500 at_once=50 seconds=60 count=100; }
in_ns "$driver" pods "$T/etc/admin.kubeconfig" 2 || exit 1
mkdir -p "$volumes"
truncate -s 256M "$T/volumes.img"
mkfs.ext4 -q -O quota,project -E quotatype=prjquota "$T/volumes.img" 2>"$T/mkfs.log" && mount -o loop,prjquota "$T/volumes.img" "$volumes" 2>>"$T/mkfs.log" ||
  echo "bench: no file system here that counts by projects: $(tail -n 1 "$T/mkfs.log")"
in_ns "$driver" claims-pass "$T/etc/admin.kubeconfig" "$daemon_pid" "$T/state" "$claims" "$at_once" "$seconds" || failures=1
if mountpoint -q "$volumes"; then stop_daemon; umount "$volumes"; start_daemon; fi
in_ns "$driver" claim-start "$T/etc/admin.kubeconfig" "$T/log" "$count" || failures=1
