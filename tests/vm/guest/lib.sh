# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Functions for the commands that tests/vm/run.sh runs in the virtual machine.
export KUBECONFIG=/etc/coracle/admin.kubeconfig
pods_cgroup=/sys/fs/cgroup/system.slice/coracle-pods.service

# until_true SECONDS COMMAND...: runs it every 200 ms until it succeeds; after the timeout it fails and prints the last output.
# SECONDS are those of an idle machine.
time_factor=3
until_true() {
  local out
  out=$(told "$@" 2>&1) && return
  shift
  echo "not within its time: $*"
  echo "$out"
  return 1
}
# told SECONDS COMMAND...: prints the output of the first success or of the last attempt. On a slow machine, a client may exceed
# its timeout once.
told() {
  local end=$((SECONDS + $1 * time_factor)) out
  shift
  until out=$("$@"); do
    if [ "$SECONDS" -ge "$end" ]; then echo "$out"; return 1; fi
    sleep 0.2
  done
  echo "$out"
}
is() { [ "$1" = "$2" ] || { printf 'want: %s\ngot:  %s\n' "$2" "$1"; return 1; }; }
of_pod() { coraclectl get pod "$1" -o "jsonpath=$2"; }
phase_is() { is "$(of_pod "$1" '{.status.phase}')" "$2"; }
ready() { coraclectl get nodes | grep -qw Ready; }
# The machine gets its address after the daemon has started at boot, and the daemon then starts anew: requests in between are
# refused. The Node does not tell, because its status may be the one from before the boot.
settled() { systemctl show -p StatusText coracled | grep -qw 10.0.2.15 && ready; }
hello_runs() { is "$(coraclectl get deployment hello -o 'jsonpath={.status.readyReplicas}')" 2; }
# fetch ADDRESS: prints the page at its port 80. The shell does this itself, so no name lookup is involved.
fetch() { timeout 5 bash -c "exec 5<>/dev/tcp/$1/80 && printf 'GET / HTTP/1.0\r\n\r\n' >&5 && sed '1,/^\r*\$/d' <&5"; }
hello_answers() { is "$(fetch "$(coraclectl get service hello -o 'jsonpath={.spec.clusterIP}')")" "Hello from Coracle!"; }
# The pids of containers, which are the children of coracle-pause; equal pids prove that nothing was disturbed.
container_pids() {
  local pause
  for pause in $(pgrep -x coracle-pause); do cat /proc/"$pause"/task/*/children; done | tr ' ' '\n' | grep . | sort -n | tr '\n' ' '
}
group_of() { echo "$pods_cgroup"/*/"$(of_pod "$1" '{.metadata.uid}')"; }  # group_of POD: its cgroup
limits_of() {  # limits_of CGROUP: all its settings, in one line
  local file
  for file in memory.max memory.swap.max memory.oom.group cpu.max cpu.weight pids.max; do echo "$file=$(cat "$1/$file")"; done | tr '\n' ' '
}
# All directories, and the controllers that each enables for its children.
all_groups() { find "$pods_cgroup" -type d | sort | while read -r group; do echo "$group: $(cat "$group/cgroup.subtree_control")"; done; }
rootfs() {  # rootfs DIRECTORY: a root file system with one static program
  local applet
  mkdir -p "$1/bin" "$1/etc" "$1/tmp"
  cp /bin/busybox "$1/bin/"
  for applet in sh cat date httpd sleep sync tail; do ln -sf busybox "$1/bin/$applet"; done
  echo 'root:x:0:0:root:/:/bin/sh' >"$1/etc/passwd"
}
# Prints "whole NAME" for each of our images whose layer on the disk equals the packed one; "half-made" for anything else.
whole_images() {
  local round images=/var/lib/coracle/runtime/images
  for round in "$images"/layers/*/diff/round; do
    [ -e "$round" ] && cmp -s "${round%/round}/bin/busybox" /bin/busybox && echo "whole localhost/cut:$(cat "$round")"
  done
  [ -d "$images/staging" ] || echo "damaged: there is no $images/staging"
  local half_made="find $images/staging $images/partial -mindepth 1 -maxdepth 1 -printf 'half-made %p\\n'"
  # What a pod that starts needs is made there, and gone in a moment. What a power cut left would stay.
  until_true 30 eval "! $half_made | grep ." >/dev/null 2>&1 || eval "$half_made" 2>/dev/null
  return 0
}
