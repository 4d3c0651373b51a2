# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# A few words for the commands that tests/vm/run.sh has run in the machine.
export KUBECONFIG=/etc/coracle/admin.kubeconfig

# until_true SECONDS COMMAND...: runs it every 200 ms until it succeeds; fails when time is up, showing the last try.
until_true() {
  local end=$((SECONDS + $1)) out
  shift
  until out=$("$@" 2>&1); do
    if [ "$SECONDS" -ge "$end" ]; then
      echo "not within its time: $*"
      echo "$out"
      return 1
    fi
    sleep 0.2
  done
}
is() { [ "$1" = "$2" ] || { printf 'want: %s\ngot:  %s\n' "$2" "$1"; return 1; }; }
of_pod() { coraclectl get pod "$1" -o "jsonpath=$2"; }
phase_is() { is "$(of_pod "$1" '{.status.phase}')" "$2"; }
ready() { coraclectl get nodes | grep -qw Ready; }
hello_runs() { is "$(coraclectl get deployment hello -o 'jsonpath={.status.readyReplicas}')" 2; }
hello_answers() { is "$(busybox wget -qO- -T 3 "http://$(coraclectl get service hello -o 'jsonpath={.spec.clusterIP}')")" "Hello from Coracle!"; }
# The pids of containers, which are the children of coracle-pause; the same ones mean that nothing was disturbed.
container_pids() {
  local pause
  for pause in $(pgrep -x coracle-pause); do cat /proc/"$pause"/task/*/children; done | tr ' ' '\n' | grep . | sort -n | tr '\n' ' '
}
rootfs() {  # rootfs DIRECTORY: a root file system of one static program
  local applet
  mkdir -p "$1/bin" "$1/etc" "$1/tmp"
  cp /bin/busybox "$1/bin/"
  for applet in $(busybox --list); do [ "$applet" = busybox ] || ln -sf busybox "$1/bin/$applet"; done
  echo 'root:x:0:0:root:/:/bin/sh' >"$1/etc/passwd"
}
