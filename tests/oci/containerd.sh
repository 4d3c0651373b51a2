#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# containerd with runc and with coracle-oci: the same ctr commands must give the same results (containerd.py). Its store and
# sockets are in a temporary directory; its shim, with the runtime options it uses, is Debian's. TAP.
#   CORACLE_CONTAINERD_ONLY=PATTERN,… some scenarios
# for: runtime/cli runtime/container runtime/launch runtime/cgroup
. "$(dirname "$0")/lib.sh"
need_programs containerd ctr containerd-shim-runc-v2
make_rootfs "$T/rootfs"
mkdir -p "$T/c/root" "$T/c/state" "$T/work"
cat >"$T/c/config.toml" <<EOT
version = 2
root = "$T/c/root"
state = "$T/c/state"
disabled_plugins = ["io.containerd.grpc.v1.cri", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs"]
[grpc]
  address = "$T/c/sock"
[ttrpc]
  address = "$T/c/sock.ttrpc"
EOT
containerd -c "$T/c/config.toml" >"$T/c/log" 2>&1 &
engine=$!
end_engine() { kill $engine 2>/dev/null; wait $engine 2>/dev/null; }
# Its shims survive it: their containers are ended first.
end_tasks() {
  local id
  for id in $(timeout 20 ctr -a "$T/c/sock" -n test task ls -q 2>/dev/null); do
    timeout 20 ctr -a "$T/c/sock" -n test task rm -f "$id" >/dev/null 2>&1
  done
  for id in $(timeout 20 ctr -a "$T/c/sock" -n test container ls -q 2>/dev/null); do
    timeout 20 ctr -a "$T/c/sock" -n test container rm "$id" >/dev/null 2>&1
  done
}
cleanups+=(end_tasks end_engine)
for ((i = 0; i < 200; i++)); do [ ! -S "$T/c/sock" ] || break; sleep 0.1; done
timeout 20 ctr -a "$T/c/sock" version >/dev/null 2>&1 || not_so "containerd does not start: $(tail -n 3 "$T/c/log")"
"$here/containerd.py" --work "$T/work" --rootfs "$T/rootfs" --address "$T/c/sock" --only "${CORACLE_CONTAINERD_ONLY:-*}" \
  runc="$T/bin/runc" coracle-oci="$T/bin/coracle-oci"
