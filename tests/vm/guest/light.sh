#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The machine's first process when it is booted with the word test.light: without systemd, with only what coracled needs, and the
# agent. It is used to examine the state after a power cut, since a whole system takes longer to start.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t cgroup2 cgroup /sys/fs/cgroup
mount -t tmpfs -o mode=755 run /run
mkdir -p /dev/pts /dev/shm
mount -t devpts pts /dev/pts
hostname edge
ip link set lo up
while :; do /usr/local/sbin/test-agent; done
