#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Programs with Kubernetes' own client libraries, unmodified, against the real daemon: go/ with client-go and python/ with
# python3-kubernetes, both of Debian sid, node/ with npm's @kubernetes/client-node. Each program works as users of that library
# do, and prints the name of each check; here the output becomes TAP. The libraries are unpacked into the tests' cache, and a
# compiled program is compiled again when its source or its libraries have changed.
#
#   clients.sh go|python|node     CLIENTS_ONLY=REGEX runs only the checks whose names match
#
# A program gets the kubeconfig, the directory of this script, and the name of an image with a shell. It writes lines "ok - NAME",
# "not ok - NAME" and details, and may request "!stop" and "!start" of the daemon: the answer is "done" on its standard input.
. "$(dirname "$0")/../e2e/lib.sh"
language=${1:?usage: clients.sh go|python|node}
source=$(cd "$(dirname "$0")" && pwd)
store=$cache/clients/$language
mkdir -p "$store"
exec 8>"$store/lock"
flock 8  # two concurrent runs would both fill the cache

fetched() { "$source/fetch_debs.sh" "$@" >"$T/fetch.log" 2>&1 || skip_all "$(grep -m 1 ^fetch_debs "$T/fetch.log") $(tail -n 1 "$T/fetch.log")"; }

prepare_go() {
  fetched "$store/debs" '^golang-(.*-dev|[0-9.]+-(go|src))$' golang-k8s-client-go-dev golang-go
  local go key
  go=$(find "$store/debs/root/usr/lib" -path '*/bin/go' | head -n 1)
  key=$(cat "$store/debs/packages" "$source"/go/*.go | sha256sum | cut -c1-16)
  local binary=$store/clients-$key
  # Each informer compares its streamed list with an ordinary list at that resourceVersion, and ends the program if they differ.
  program=(env KUBE_WATCHLIST_INCONSISTENCY_DETECTOR=true "$binary")
  [ ! -x "$binary" ] || return 0
  mkdir -p "$store/path"
  ln -sfn "$store/debs/root/usr/share/gocode/src" "$store/path/src"
  rm -f "$store"/clients-*
  # Without modules and network: the packages' sources are the whole GOPATH. Without debugging symbols the build takes half the
  # time.
  (cd "$source/go" && env GO111MODULE=off GOFLAGS= GOTOOLCHAIN=local GOPROXY=off CGO_ENABLED=0 GOPATH="$store/path" GOCACHE="$store/build" \
    nice "$go" build -buildvcs=false -gcflags=all=-dwarf=false -ldflags='-s -w' -o "$binary" .) >"$T/build.log" 2>&1 ||
    { not_ok "the Go program compiles"; sed 's/^/  | /' "$T/build.log" | head -n 60; rm -rf "$T"; exit 1; }
}

prepare_python() {
  fetched "$store/debs" '^python3-' python3-kubernetes
  local packages=$store/debs/root/usr/lib/python3/dist-packages
  PYTHONPATH=$packages /usr/bin/python3 -c 'import kubernetes' 2>"$T/import.log" ||
    skip_all "sid's python3-kubernetes does not run here: $(tail -n 1 "$T/import.log")"
  program=(env PYTHONPATH="$packages" PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 /usr/bin/python3 "$source/python/main.py")
}

prepare_node() {
  local package=@kubernetes/client-node@1.4.0
  command -v node >/dev/null && command -v npm >/dev/null || skip_all "node or npm is missing"
  [ "$(node -p 'process.versions.node.split(".")[0] >= 18')" = true ] || skip_all "node $(node --version) is too old for $package"
  if [ "$(cat "$store/package" 2>/dev/null)" != "$package" ]; then
    rm -rf "$store/node_modules"
    (cd "$store" && timeout 120 npm install --fetch-retries=1 --fetch-retry-mintimeout=1000 --no-audit --no-fund --ignore-scripts --no-save --prefix "$store" "$package") >"$T/fetch.log" 2>&1 ||
      skip_all "npm has no $package: $(grep -m 1 -iE '^npm err' "$T/fetch.log")"
    echo "$package" >"$store/package"
  fi
  program=(env CLIENT_NODE="$store/node_modules" node "$source/node/main.mjs")
}

case $language in
  go|python|node) "prepare_$language" ;;
  *) echo "clients.sh: there is no program in $language" >&2; exit 2 ;;
esac
exec 8>&-

start_machine
# In this shell: only the shell that launched the daemon can stop it.
coproc PROGRAM { exec nsenter --net="/run/netns/$ns" -- "${program[@]}" "$T/etc/admin.kubeconfig" "$source" localhost/busybox:latest 2>"$T/program.err"; }
program_pid=$PROGRAM_PID
exec 5<&"${PROGRAM[0]}" 6>&"${PROGRAM[1]}"  # bash forgets PROGRAM once it has seen the program end, which may be before the last line is read
while IFS= read -r line <&5; do
  case $line in
    "ok - "*) ok "${line#ok - }" ;;
    "not ok - "*) not_ok "${line#not ok - }" ;;
    "!stop") stop_daemon; echo done >&6 ;;
    "!start") start_daemon; echo done >&6 ;;
    *) printf '  %s\n' "$line" ;;
  esac
done
wait "$program_pid"
status=$?
[ $status -eq 0 ] || not_ok "the $language program ends by itself (status $status)"
[ "$failures" -eq 0 ] || { echo "# the program's own log:"; tail -n 40 "$T/program.err" | cut -c1-300 | sed 's/^/# /'; }
