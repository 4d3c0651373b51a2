#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# podman with crun, with runc and with coracle-oci: the same commands must give the same results (podman.py). Its storage and
# configuration are in a temporary directory; its locks are the machine's, so no other podman may run. On a machine with systemd
# it lets systemd create the cgroups, and an unprivileged user runs containers as well. TAP.
#   CORACLE_PODMAN_ONLY=PATTERN,… some scenarios      CORACLE_PEERS=runc   beside that one only
. "$(dirname "$0")/lib.sh"
need_programs podman
peers=() installed_peers=()
for each in ${CORACLE_PEERS:-crun runc}; do peers+=("$each=$T/bin/$each"); installed_peers+=("$each=$(command -v "$each")"); done
make_rootfs "$T/rootfs"
mkdir -p "$T/store" "$T/run" "$T/tmp" "$T/work"
systemd_runs=
[ ! -d /run/systemd/system ] || systemd_runs=1
systemd_tree=
[ ! -x /opt/systemd/sbin/init ] || systemd_tree=/opt/systemd
settings() {  # settings DIRECTORY: writes containers.conf and storage.conf
  mkdir -p "$1"
  {
    echo '[containers]'
    echo 'log_driver = "k8s-file"'
    echo 'netns = "none"'  # who needs one asks for it: making them takes longer than all the rest, and is podman's own work
    if [ -z "$systemd_runs" ]; then
      # Hard limits cannot be raised everywhere.
      echo 'default_ulimits = ["nofile=1024:1024", "nproc=1000:1000"]'
    fi
    echo '[engine]'
    echo "cgroup_manager = \"$([ -n "$systemd_runs" ] && echo systemd || echo cgroupfs)\""
    echo 'events_logger = "file"'
    [ -n "$systemd_runs" ] || echo "tmp_dir = \"$T/libpod\""
    echo 'runtime_supports_json = ["crun", "runc", "coracle-oci"]'
    echo 'runtime_supports_nocgroup = ["crun", "coracle-oci"]'  # podman reads this name, in contrast to its manual
  } >"$1/containers.conf"
}
settings "$T/settings"
export CONTAINERS_CONF=$T/settings/containers.conf
printf '[storage]\ndriver = "overlay"\ngraphroot = "%s"\nrunroot = "%s"\n[storage.options]\nauto-userns-min-size = 1024\nauto-userns-max-size = 65536\n' "$T/store" "$T/run" >"$T/settings/storage.conf"
export CONTAINERS_STORAGE_CONF=$T/settings/storage.conf TMPDIR=$T/tmp
forget() { timeout 60 podman --runtime "$T/bin/crun" rm -f -t 0 -a >/dev/null 2>&1; timeout 60 podman pod rm -f -t 0 -a >/dev/null 2>&1; }
# Removes podman's own cgroup, which stays behind empty if podman creates cgroups itself.
remove_groups() {
  [ -z "$systemd_runs" ] || return 0
  find /sys/fs/cgroup -maxdepth 3 -type d -path '*/libpod_parent*' 2>/dev/null | sort -r | xargs -r rmdir 2>/dev/null
}
cleanups+=(forget remove_groups)
tar -C "$T/rootfs" -c . | podman import --quiet --change "ENV PATH=/bin" - localhost/box:latest >"$T/said" 2>&1 || not_so "podman cannot import an image: $(tail -n 1 "$T/said")"
status=0
"$here/podman.py" --work "$T/work" --cgroups $cgroups --systemd "$systemd_tree" --jobs "${CORACLE_PODMAN_JOBS:-3}" \
  --only "${CORACLE_PODMAN_ONLY:-*}" "${peers[@]}" coracle-oci="$T/bin/coracle-oci" || status=$?

# ---- as an unprivileged user ----
user=$(getent passwd 1000 | cut -d : -f 1)
if [ -z "$systemd_runs" ] || [ -z "$user" ] || ! grep -q "^$user:" /etc/subuid; then
  echo "ok 1 - podman rootless # SKIP there is no systemd, or no user 1000 with ranges in /etc/subuid"
  exit $status
fi
forget
unset CONTAINERS_STORAGE_CONF
loginctl enable-linger "$user"
for ((tries = 0; tries < 100; tries++)); do [ ! -S /run/user/1000/bus ] || break; sleep 1; done
mkdir -p "$T/plain" "$T/rootless"
chmod 777 "$T/rootless"
printf '#!/bin/sh\nexec %s %s "$@"\n' "$ours" "$ours_arguments" >"$T/plain/coracle-oci"  # with its default state directory
chmod +x "$T/plain/coracle-oci"
as_user() { runuser -u "$user" -- env HOME="/home/$user" XDG_RUNTIME_DIR=/run/user/1000 DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/1000/bus TMPDIR=/tmp "$@"; }
export TMPDIR=/tmp
tar -C "$T/rootfs" -c . | as_user podman import --quiet --change "ENV PATH=/bin" - localhost/box:latest >"$T/said" 2>&1 || not_so "podman cannot import an image for $user: $(tail -n 1 "$T/said")"
"$here/podman.py" --work "$T/rootless" --cgroups $cgroups --rootless "$user" --jobs "${CORACLE_PODMAN_JOBS:-3}" \
  --only "${CORACLE_PODMAN_ONLY:-*}" "${installed_peers[@]}" coracle-oci="$T/plain/coracle-oci" || status=1
exit $status
